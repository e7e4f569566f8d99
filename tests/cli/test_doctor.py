"""clew doctor: says what is wrong with a store, and mends it only when asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.store import Store
from tests.cli.running import clew, state
from tests.store.support import assert_whole, log_of


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A store with one of everything that can be wrong."""
    with Store(tmp_path).session("s") as session:
        session.user("x")
        session.user("y")
    log = log_of(tmp_path)
    log.parent.chmod(0o755)
    log.chmod(0o644)
    (log.parent / ".metadata.json.ab12.tmp").write_text("half")
    (log.parent / "metadata.json").write_text('{"id": "s", "messageCount": 7, "name": "kept"}')
    with log.open("ab") as end:
        end.write(b'{"type":"user","torn')
    return tmp_path


def test_it_looks_and_touches_nothing(place: Path) -> None:
    before = state(place)
    done = clew("doctor", place, "--json")
    assert done.code == 1
    codes = sorted(row["code"] for row in done.json)
    assert codes == [
        "leftover-file",
        "metadata-mismatch",
        "open-to-others",
        "open-to-others",
        "open-to-others",
        "torn-tail",
    ]
    assert not any(row["mended"] for row in done.json)
    assert state(place) == before


@pytest.mark.seed("S0-35")
def test_it_mends_when_asked(place: Path) -> None:
    done = clew("doctor", place, "--fix")
    assert done.code == 0
    *mended, aside = done.out.splitlines()
    assert all(line.startswith("repaired: ") for line in mended)
    assert "[quarantined]" in aside
    again = clew("doctor", place, "--json")
    assert [row["code"] for row in again.json] == ["quarantined"]
    assert again.code == 0
    assert_whole(place)
    assert Store(place).get("s").metadata["name"] == "kept"


def test_a_healthy_store_is_silent(tmp_path: Path, home: Path) -> None:
    for place in (tmp_path, home):
        with Store(place).session("s") as session:
            session.user("x")
    for words in (("doctor", tmp_path), ("doctor",), ("doctor", "--home", tmp_path)):
        done = clew(*words)
        assert (done.code, done.out) == (0, "")


def test_a_place_without_a_store_is_said_so(tmp_path: Path) -> None:
    assert clew("doctor", tmp_path).code == 3
    assert clew("doctor").code == 0


def test_a_home_without_a_store_has_no_problems(tmp_path: Path) -> None:
    assert clew("--home", tmp_path, "doctor").code == 0
    done = clew("doctor", tmp_path)
    assert done.code == 3 and "no such folder" in done.err
