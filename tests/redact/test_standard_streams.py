"""`clew redact -`: standard input, masked; `-o -`: standard output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import run
from tests.redact.planted import Planter

VALUE = Planter("streams").github()


def test_standard_input_is_masked(tmp_path: Path) -> None:
    done = run("redact", "-", "--redact-plain", input=f"use {VALUE} here\n".encode())
    assert (done.code, done.out) == (0, "use [REDACTED] here\n")
    assert "github_token" in done.err and VALUE not in done.err


@pytest.mark.slow
def test_lines_from_standard_input_stay_lines() -> None:
    lines = [{"text": "nothing"}, {"text": VALUE}]
    done = run("redact", "-", "--redact-plain", input="".join(json.dumps(line) + "\n" for line in lines).encode())
    assert [json.loads(line) for line in done.out.splitlines()] == [{"text": "nothing"}, {"text": "[REDACTED]"}]


@pytest.mark.slow
def test_several_files_go_to_standard_output(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(f"{name} {VALUE}\n")
    done = run("redact", tmp_path / "a", tmp_path / "b", "-o", "-", "--redact-plain")
    assert (done.code, done.out) == (0, "a [REDACTED]\nb [REDACTED]\n")


@pytest.mark.slow
def test_standard_input_goes_into_a_file_and_a_folder(tmp_path: Path) -> None:
    text = f"use {VALUE}\n".encode()
    for output, made in ((tmp_path / "out.txt", tmp_path / "out.txt"), (tmp_path, tmp_path / "stdin")):
        assert run("redact", "-", "-o", output, "--redact-plain", input=text).code == 0
        assert made.read_bytes() == b"use [REDACTED]\n"


def test_nothing_comes_in() -> None:
    done = run("redact", "-", input=b"")
    assert (done.code, done.out) == (0, "")
