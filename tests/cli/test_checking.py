"""verify and validate: what they prove, what they find, and what they return."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from clew.export.reading import DocumentStream, NativeFile
from tests.cli.running import DAMAGED, FORKED, LATEST, clew
from tests.unit.samples import SESSION, claude_line, write_lines


def test_verify_a_path_and_a_folder(demo: Path) -> None:
    (path,) = demo.rglob(f"{FORKED}.jsonl")
    proof = clew("verify", path, "--json").json
    assert (proof["files"], proof["identical"], proof["bytes"]) == (1, 1, path.stat().st_size)
    assert proof["records"] == len(path.read_bytes().splitlines())
    assert 0 < proof["document_bytes"] <= 2.2 * proof["bytes"]
    folder = clew("verify", demo / ".claude", "--json").json
    assert folder["files"] == 14
    both = clew("--home", demo, "verify", FORKED, LATEST, "--json").json
    assert both["files"] == 2


def test_verify_says_which_byte_is_different(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = DocumentStream.native_lines

    def broken(self: DocumentStream, file: NativeFile) -> Iterator[bytes]:
        for number, line in enumerate(real(self, file)):
            yield line.replace(b"user", b"USER") if number == 2 else line

    monkeypatch.setattr(DocumentStream, "native_lines", broken)
    (path,) = demo.rglob(f"{FORKED}.jsonl")
    ran = clew("verify", path)
    assert ran.code == 1
    assert "0 of 1 files restored byte for byte" in ran.out
    assert ran.err.startswith(f"{path}:3: differs from byte ")
    proof = clew("verify", path, "--json")
    assert proof.code == 1
    assert [(d["file"], d["line"]) for d in proof.json["different"]] == [(str(path), 3)]


def test_verify_notices_what_is_missing_at_the_end(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = DocumentStream.native_lines

    def shortened(self: DocumentStream, file: NativeFile) -> Iterator[bytes]:
        yield from list(real(self, file))[:-1]

    monkeypatch.setattr(DocumentStream, "native_lines", shortened)
    ran = clew("--home", demo, "verify", FORKED)
    assert ran.code == 1
    assert "at the end did not come back" in ran.err


def test_validate_exit_codes(demo: Path) -> None:
    assert clew("--home", demo, "validate", FORKED).code == 0
    assert clew("--home", demo, "validate", FORKED).out == ""
    assert clew("--home", demo, "validate", DAMAGED).code == 1
    assert clew("--home", demo, "validate", DAMAGED, "--level", "error").code == 0
    assert clew("--home", demo, "validate", "--level", "note").code == 1
    assert clew("--home", demo, "validate", "--level", "nonsense").code == 2


@pytest.mark.seed("S4-38")
def test_problems_as_data(tmp_path: Path) -> None:
    source = write_lines(
        tmp_path,
        claude_line("user", "u1", None),
        claude_line("user", "u2", "u1", sessionId="another"),
        b"not json",
        claude_line("user", "u3", "gone", timestamp=None),
    )
    ran = clew("validate", source.path, "--json")
    assert ran.code == 1
    for problem in ran.json:
        assert {"code", "severity", "message", "file", "line", "start", "end", "index", "path", "hint"} == set(problem)
        assert problem["file"] == str(source.path)
    found = {problem["code"]: problem for problem in ran.json}
    assert (found["other-session"]["index"], found["other-session"]["line"]) == (2, 2)
    assert (found["malformed-json"]["index"], found["malformed-json"]["line"]) == (None, 3)
    assert found["malformed-json"]["end"] - found["malformed-json"]["start"] == len("not json")
    assert (found["no-timestamp"]["index"], found["no-timestamp"]["severity"]) == (3, "error")
    assert found["missing-parent"]["severity"] == "warning"

    text = clew("validate", source.path)
    assert text.code == 1
    assert len(text.out.splitlines()) == len(ran.json)
    assert f"{source.path}:3: error: The line is not JSON. (byte {found['malformed-json']['start']})" in text.out


@pytest.mark.seed("S4-39")
def test_fail_fast_stops_at_the_first_problem_of_a_session(tmp_path: Path) -> None:
    source = write_lines(tmp_path, b"not json", b"nor this", claude_line("user", "u1", None))
    assert len(clew("validate", source.path, "--json").json) == 2
    assert len(clew("validate", source.path, "--json", "--fail-fast").json) == 1


def test_an_empty_session_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "projects" / "-p" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    path.touch()
    assert [problem["code"] for problem in clew("--home", tmp_path, "validate", "--json").json] == ["empty-session"]
    assert clew("--home", tmp_path, "verify").code == 0
    (row,) = clew("--home", tmp_path, "list", "--json").json
    assert (row["id"], row["messages"], row["total_tokens"]) == (SESSION, 0, None)


def test_no_problem_is_an_empty_list(demo: Path) -> None:
    ran = clew("--home", demo, "validate", FORKED, "--json")
    assert (ran.code, json.loads(ran.out)) == (0, [])


@pytest.mark.seed("S3-30")
def test_messages_that_two_files_share_are_named(tmp_path: Path) -> None:
    ids = [f"00000000-0000-4000-8000-{number:012}" for number in range(5)]
    project = tmp_path / ".claude" / "projects" / "-work"
    project.mkdir(parents=True)
    names = {name: f"{name * 8}-0000-4000-8000-000000000000" for name in "abc"}

    def write(name: str, own: list[str]) -> Path:
        parents = [None, *own]
        lines = [
            claude_line("user", one, above, sessionId=names[name]) for one, above in zip(own, parents, strict=False)
        ]
        return write_lines(project, *lines, name=names[name]).path

    first, fork, _ = write("a", ids[:3]), write("b", [*ids[:2], ids[3]]), write("c", ids[4:])

    def shared(*arguments: str | Path) -> list[tuple[str, int, str]]:
        problems = clew("--home", tmp_path, "validate", *arguments, "--json").json
        return [(p["file"], p["index"], p["message"]) for p in problems if p["code"] == "shared-uuid"]

    assert shared(names["a"], "--level", "note") == [
        (str(first), 1, f"{fork} also has 2 messages of this session, from this one on.")
    ]
    assert {file for file, _, _ in shared("--level", "note")} == {str(first), str(fork)}
    assert shared(names["a"]) == []
    assert shared(first, "--level", "note") == []
