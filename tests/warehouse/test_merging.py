"""What is shown follows from the set of batches alone, in any order and repetition, and is what the catalog shows."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from clew.warehouse.ingest import Batch
from tests.catalog.worlds import append, claude_lines, claude_path, spelled
from tests.warehouse.machines import Machine, catalogued, engine, shown

NAMES = [f"{letter * 8}-7777-4777-8777-777777777777" for letter in "abc"]
_name, _machine = st.sampled_from(NAMES), st.integers(0, 2)
_few = st.one_of(st.sampled_from([5, 10, 15]), st.integers(1, 14))
"""Whole exchanges, and such as end between a call and its result."""
steps = st.lists(
    st.one_of(
        st.tuples(st.just("grow"), _machine, _name, _few),
        st.tuples(st.just("rewrite"), _machine, _name, _few, st.integers(0, 1)),
        st.tuples(st.just("fork"), _machine, _name, _name),
        st.tuples(st.just("share"), _machine, _name, _machine),
        st.tuples(st.just("write"), _machine),
    ),
    min_size=1,
    max_size=12,
)


class World:
    """Three machines that share sessions, and all that they ever wrote."""

    def __init__(self, top: Path) -> None:
        self.machines = [Machine(top, f"m{number}") for number in range(3)]
        self.batches: list[Batch] = []
        self._count: dict[Path, int] = {}
        self._clock = 1_790_000_000

    def do(self, kind: str, machine: int, *given: Any) -> None:
        """One step."""
        getattr(self, kind)(self.machines[machine], *given)

    def grow(self, machine: Machine, name: str, count: int) -> None:
        path = self._path(machine, name)
        first = self._count.get(path, 0)
        append(path, spelled(claude_lines(name, first, count)))
        self._done(path, first + count)

    def rewrite(self, machine: Machine, name: str, count: int, seed: int) -> None:
        path = self._path(machine, name)
        path.write_bytes(spelled(claude_lines(name, 0, count, seed)))
        self._done(path, count)

    def fork(self, machine: Machine, name: str, other: str) -> None:
        path, copy = self._path(machine, name), self._path(machine, other)
        if name != other and path.exists():
            old, new = (f'"sessionId":"{session}"'.encode() for session in (name, other))
            copy.write_bytes(path.read_bytes().replace(old, new))
            self._done(copy, self._count[path])

    def share(self, machine: Machine, name: str, other: int) -> None:
        path, copy = self._path(machine, name), self._path(self.machines[other], name)
        if path != copy and path.exists():
            shutil.copy(path, copy)
            self._done(copy, self._count[path])

    def write(self, machine: Machine) -> None:
        self.batches += machine.batches()

    def _done(self, path: Path, count: int) -> None:
        self._count[path] = count
        self._clock += 1
        os.utime(path, (self._clock, self._clock))

    def _path(self, machine: Machine, name: str) -> Path:
        path = claude_path(machine.home, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


def untitled(rows: dict[str, list[tuple[Any, ...]]]) -> dict[str, list[tuple[Any, ...]]]:
    """Of two sessions with one name and the same length either may give the title: the catalog goes by path."""
    sessions = sorted((*row[:5], *row[6:]) for row in rows["sessions"])
    return {**rows, "sessions": sessions}


@pytest.mark.slow
@settings(
    max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), phases=(Phase.explicit, Phase.generate)
)
@given(steps, st.randoms(use_true_random=False))
def test_any_order_and_repetition_gives_what_one_catalog_gives(
    some: list[tuple[Any, ...]], luck: random.Random
) -> None:
    top = Path(tempfile.mkdtemp())
    try:
        world = World(top)
        world.grow(world.machines[0], NAMES[0], 5)
        for kind, *given_ in some:
            world.do(kind, *given_)
        for machine in world.machines:
            world.write(machine)
        wanted = untitled(catalogued([machine.home for machine in world.machines], top / "catalog"))
        mixed = world.batches + luck.choices(world.batches, k=luck.randrange(len(world.batches)))
        luck.shuffle(mixed)
        assert untitled(shown(engine(mixed))) == wanted
        assert untitled(shown(engine(mixed, unique=True))) == wanted
    finally:
        shutil.rmtree(top)


def _two_states(tmp_path: Path, first: str, second: str) -> dict[str, list[tuple[Any, ...]]]:
    """A session that was written at one level, grew, and was written at another."""
    machine = Machine(tmp_path, "one")
    path = claude_path(machine.home, NAMES[0])
    path.parent.mkdir(parents=True)
    path.write_bytes(spelled(claude_lines(NAMES[0], 0, 5)))
    before = machine.batches(first)
    append(path, spelled(claude_lines(NAMES[0], 5, 5)))
    return shown(engine([*before, *machine.batches(second)]))


def test_the_latest_state_counts_whatever_its_level(tmp_path: Path) -> None:
    found = _two_states(tmp_path, "raw", "metrics")
    assert len(found["messages"]) == 10
    assert len(found["tool_calls"]) == 2


def test_of_one_state_the_level_that_tells_most_counts(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "one")
    path = claude_path(machine.home, NAMES[0])
    path.parent.mkdir(parents=True)
    path.write_bytes(spelled(claude_lines(NAMES[0], 0, 5)))
    raw = shown(engine(machine.batches("raw")))
    assert shown(engine([*machine.batches("raw"), *machine.batches("metrics"), *machine.batches("redacted")])) == raw


def test_a_copy_that_knows_the_result_comes_before_one_that_does_not(tmp_path: Path) -> None:
    machines = [Machine(tmp_path, f"m{number}") for number in range(4)]
    batches = []
    for count, machine in zip((4, 5, 4, 3), machines, strict=True):
        path = claude_path(machine.home, NAMES[0])
        path.parent.mkdir(parents=True)
        path.write_bytes(spelled(claude_lines(NAMES[0], 0, count)))
        batches += machine.batches()
    found = shown(engine(batches))
    assert len(found["messages"]) == 5
    assert [call[3] != "" for call in found["tool_calls"]] == [True]
    assert len(found["file_changes"]) == 1
    assert found == catalogued([machine.home for machine in machines], tmp_path / "catalog")


USED = {
    "each knows a part": ({"input_tokens": 900, "output_tokens": 1}, {"input_tokens": 3, "output_tokens": 800}),
    "above the limit together": (
        {"input_tokens": 150_000, "output_tokens": 9},
        {"input_tokens": 1, "output_tokens": 5, "cache_read_input_tokens": 90_000},
    ),
    "what was written to the cache": (
        {"input_tokens": 5, "output_tokens": 5, "cache_creation_input_tokens": 77},
        {
            **{"input_tokens": 6, "output_tokens": 1, "cache_creation_input_tokens": 40},
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 40},
        },
    ),
    "nothing written for five minutes": (
        {
            **{"input_tokens": 5, "output_tokens": 5, "cache_creation_input_tokens": 1000},
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 40},
        },
        {"input_tokens": 6, "output_tokens": 1},
    ),
    "to be rounded": ({"input_tokens": 1, "output_tokens": 0}, {"input_tokens": 0, "output_tokens": 1}),
}


@pytest.mark.parametrize("model", ["claude-sonnet-4-20250514", "gemini-2.5-flash-lite", "nobody-knows"])
@pytest.mark.parametrize("used", USED.values(), ids=USED)
def test_copies_that_disagree_cost_what_their_merged_counts_cost(
    tmp_path: Path, used: tuple[dict[str, Any], ...], model: str
) -> None:
    machines = [Machine(tmp_path, f"m{number}") for number in range(2)]
    for machine, usage in zip(machines, used, strict=True):
        lines = claude_lines(NAMES[0], 0, 2)
        lines[1]["message"] |= {"usage": usage, "model": model}
        path = claude_path(machine.home, NAMES[0])
        path.parent.mkdir(parents=True)
        path.write_bytes(spelled(lines))
    wanted = catalogued([machine.home for machine in machines], tmp_path / "catalog")["usage"]
    assert len(wanted) == 1
    assert (wanted[0][-2] > 0) == (model != "nobody-knows")
    batches = [batch for machine in machines for batch in machine.batches()]
    assert shown(engine(batches))["usage"] == wanted
    assert shown(engine(reversed(batches), unique=True))["usage"] == wanted
