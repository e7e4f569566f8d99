"""Any sequence of writes and merges from several machines, killed ones too, shows what one catalog over all shows."""

from __future__ import annotations

import random
import shutil
import tempfile
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from clew.errors import UnknownReference
from clew.warehouse.lake import write as writing
from clew.warehouse.lake.compact import compact
from clew.warehouse.lake.layout import VERSION_DIR
from clew.warehouse.lake.store import FolderStore
from tests.warehouse.lake.worlds import age, killed, rows, write
from tests.warehouse.machines import ROWS, Machine, catalogued
from tests.warehouse.test_merging import NAMES, World, steps, untitled

LATER = datetime(2027, 1, 1, tzinfo=UTC)
_more = st.one_of(
    st.tuples(st.just("merge"), st.just(0)),
    st.tuples(st.just("kill"), st.integers(0, 2), st.integers(0, 40)),
    st.tuples(st.just("kill_merge"), st.just(0), st.integers(0, 40)),
)


class _Lake(World):
    """The same machines, which write to one lake."""

    def __init__(self, top: Path) -> None:
        super().__init__(top)
        self.folder = top / "lake"
        self.store = FolderStore(self.folder)

    def write(self, machine: Machine) -> None:
        write(machine, self.store)

    def merge(self, _: Machine) -> None:
        age(self.folder, 7200)
        # Where nothing was written yet there is no lake, and that is said.
        with (
            nullcontext()
            if any(self.store.list(f"{VERSION_DIR}/"))
            else pytest.raises(UnknownReference, match="no lake")
        ):
            compact(self.store, LATER)

    def kill(self, machine: Machine, step: int) -> None:
        who = machine.publisher()
        killed(lambda: writing.write(self.store, machine.sources(), who, workers=1), step)

    def kill_merge(self, _: Machine, step: int) -> None:
        age(self.folder, 7200)
        killed(lambda: compact(self.store, LATER), step)


@pytest.mark.slow
@settings(
    max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), phases=(Phase.explicit, Phase.generate)
)
@given(steps, st.lists(_more, max_size=4), st.randoms(use_true_random=False))
def test_any_sequence_shows_what_one_catalog_shows(
    some: list[tuple[Any, ...]], more: list[tuple[Any, ...]], luck: random.Random
) -> None:
    top = Path(tempfile.mkdtemp())
    try:
        lake = _Lake(top)
        lake.grow(lake.machines[0], NAMES[0], 5)
        mixed = [*some, *more]
        luck.shuffle(mixed)
        for kind, *given_ in mixed:
            lake.do(kind, *given_)
        last = list(lake.machines)
        luck.shuffle(last)
        for machine in last:
            lake.write(machine)
        wanted = untitled(catalogued([machine.home for machine in lake.machines], top / "catalog"))
        found = untitled(rows(lake.store, ROWS))
        assert {name: found[name] for name in ROWS} == {name: wanted[name] for name in ROWS}
        lake.merge(last[0])
        assert untitled(rows(lake.store, ROWS)) == found
        assert [write(machine, lake.store).written for machine in lake.machines] == [0, 0, 0]
    finally:
        shutil.rmtree(top)
