"""The comparison with peers runs, on next to nothing, and wrong answers score nothing."""

import json
from pathlib import Path

import pytest

pytest.importorskip("resource")

from benchmarks import peers
from benchmarks.truth import read_truth
from tests.counting.homes import SESSION, SONNET, claude, prompt, reply


def made(folder: Path, given: int) -> str:
    """A home and what shall be true of it."""
    claude(folder / "home", prompt("a needle1a2b3c lies here"), reply("m1", 5, 6, read=7, written=8))
    tokens = {SONNET: {"input": given, "output": 6, "cache_read": 7, "cache_creation": 8}}
    needles = [{"needle": "needle1a2b3c", "session": SESSION, "where": "user"}]
    truth = {"agents": {"claude": {"tokens": tokens, "needles": needles}}, "total": {"files": 1, "bytes": 1000}}
    (folder / "truth.json").write_text(json.dumps(truth))
    return f"{folder / 'home'}:{folder / 'truth.json'}"


@pytest.fixture(autouse=True)
def no_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)


def test_every_measure_has_a_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    peers.main([made(tmp_path, 5), "--rounds", "1"])
    printed = capsys.readouterr().out
    assert "- ccusage: missing" in printed
    for words in (
        "with no catalog",
        "from the catalog",
        "full sync",
        "nothing changed",
        "appended",
        "1 of 1",
        "over raw",
    ):
        assert words in printed
    assert "WRONG" not in printed and "MISSING" not in printed


def test_wrong_numbers_score_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    peers.main([made(tmp_path, 4), "--rounds", "1"])
    assert "WRONG NUMBERS" in capsys.readouterr().out


def test_the_truth_is_told_in_our_convention(tmp_path: Path) -> None:
    home, _, path = made(tmp_path, 5).partition(":")
    truth = read_truth(home, path)
    assert truth.tokens == {SONNET: (5, 6, 7, 8, 0)}
    assert [needle.session for needle in truth.needles] == [SESSION]
