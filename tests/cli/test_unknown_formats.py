"""What an agent writes in a form that clew does not know is reported, never passed over in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import clew
from tests.demo_home import write_small_demo

NEW_RECORDS = {
    "claude-code": (
        ".claude/projects/*/*.jsonl",
        '{"type":"quantum-note","uuid":"7f0c","timestamp":"2026-10-01T08:00:00Z"}',
    ),
    "codex": (".codex/sessions/**/*.jsonl", '{"timestamp":"2026-10-01T08:00:00Z","type":"quantum_item","payload":{}}'),
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write_small_demo(tmp_path / "home")
    return tmp_path / "home"


def test_known_formats_give_no_warning(home: Path) -> None:
    assert "does not know" not in clew("--home", home).err
    assert "does not know" not in clew("--home", home, "sync").err


@pytest.mark.parametrize("agent", NEW_RECORDS)
def test_unknown_records_are_reported_everywhere(home: Path, agent: str) -> None:
    pattern, line = NEW_RECORDS[agent]
    path = sorted(home.glob(pattern))[0]
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    for words in ((), ("sync",)):
        (warning,) = (each for each in clew("--home", home, *words).err.splitlines() if "does not know" in each)
        assert f"clew: {agent} " in warning and "1 session has records" in warning
        assert "(quantum" in warning and str(path) in warning
    found = [each for each in clew("--home", home, "doctor", "--json").json if each["code"] == "unknown-type"]
    assert [(each["file"], each["severity"]) for each in found] == [(str(path), "note")]
    assert "quantum" in found[0]["message"]
    path.write_text(path.read_text(encoding="utf-8").replace(f"{line}\n", ""), encoding="utf-8")
    assert "does not know" not in clew("--home", home).err


def test_what_is_no_name_is_not_printed(home: Path) -> None:
    path = sorted(home.glob(NEW_RECORDS["claude-code"][0]))[0]
    with path.open("a", encoding="utf-8") as file:
        file.write('{"type":"hunter2 is my password\\u001b[31m","uuid":"7f0c"}\n')
    ran = clew("--home", home)
    assert "(unnamed)" in ran.err and "hunter2" not in ran.err
    assert "hunter2" not in clew("--home", home, "doctor").out
