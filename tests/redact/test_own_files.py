"""L06: the project passes its own scanner, and no test holds a secret as text."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from clew.redact.scanner import default_rules

ROOT = Path(__file__).resolve().parents[2]
SUFFIXES = {
    ".py",
    ".md",
    ".toml",
    ".json",
    ".jsonl",
    ".cjs",
    ".sh",
    ".txt",
    ".yml",
    ".yaml",
    ".html",
    ".css",
    ".js",
    "",
}


def own_files() -> list[Path]:
    """Every text file of the project, as version control knows them; else all that lie here."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode == 0:
        files = [ROOT / name for name in listed.stdout.splitlines()]
    else:
        files = [
            path for folder in ("src", "tests", "docs", "scripts", "benchmarks") for path in (ROOT / folder).rglob("*")
        ]
    return sorted(path for path in files if path.is_file() and path.suffix in SUFFIXES and ".venv" not in path.parts)


def test_there_are_files() -> None:
    assert len(own_files()) > 300


@pytest.mark.slow
def test_L06_the_project_passes_its_own_scanner() -> None:
    rules, found = default_rules(), []
    for path in own_files():
        name = path.relative_to(ROOT).as_posix()
        text = path.read_bytes().decode("utf-8", "surrogateescape")
        found += [
            f"{name}:{text.count(chr(10), 0, one.start) + 1}: {one.rule}"
            for one in rules.findings([text], frozenset({"secret"}), paths={0: str(path)}).get(0, [])
        ]
    assert found == []
