"""Each benchmark runs, on next to nothing. What it finds is not judged here."""

from pathlib import Path

import pytest

pytest.importorskip("resource")

from benchmarks.__main__ import NAMES, main
from benchmarks.corpus import parse_size, write_home, write_session
from benchmarks.measure import agent_files, total
from clew import Host, Library, verify


@pytest.mark.parametrize("name", [name for name in NAMES if name != "engines"])  # which starts a cluster
def test_it_runs(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_home(tmp_path, 60_000)
    main([name, "--home", str(tmp_path), "--rounds", "1", "--starts", "1", "--session", "50KB"])
    printed = capsys.readouterr().out
    assert f"\n{name}: " in printed
    assert "floor" in printed


def test_a_made_home_is_the_same_every_time(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_home(tmp_path / name, 500_000)
    one, two = (agent_files(tmp_path / name, "claude-code") for name in ("one", "two"))
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]
    assert 500_000 <= total(one) < 700_000


def test_a_made_home_is_what_clew_knows(tmp_path: Path) -> None:
    write_home(tmp_path, 500_000)
    for session in Library(Host.at(tmp_path)).sources():
        proof = verify(session.agent, session.source)
        assert proof.holds
        assert (proof.carried_raw, proof.unknown_types, proof.unknown_keys) == (0, {}, {})
        assert session.facts.tree.is_linear


def test_longer_messages_are_as_many(tmp_path: Path) -> None:
    turns, size = write_session(tmp_path / "a.jsonl", 0.5, size=100_000)
    again, longer = write_session(tmp_path / "b.jsonl", 0.5, turns=turns, scale=10)
    assert again == turns
    assert 5 * size < longer < 11 * size
    lines = [len((tmp_path / name).read_bytes().splitlines()) for name in ("a.jsonl", "b.jsonl")]
    assert lines[0] == lines[1]


@pytest.mark.parametrize(("text", "size"), [("200MB", 200_000_000), ("1.5GB", 1_500_000_000), ("77", 77)])
def test_sizes_are_understood(text: str, size: int) -> None:
    assert parse_size(text) == size
