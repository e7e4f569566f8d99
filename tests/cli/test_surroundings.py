"""Pipes, signals, unreadable files, and content that wants to steer the terminal."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from clew.agents.base import SourceFile
from clew.agents.claude_code import ClaudeCode
from tests.cli.running import COMMAND, FORKED, LATEST, clew, run
from tests.unit.samples import SESSION, claude_line


def long_session(home: Path) -> Path:
    """A session whose output does not fit into a pipe."""
    path = home / ".claude" / "projects" / "-p" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(claude_line("user", f"u{n}", None, "x" * 1000)) + "\n" for n in range(500)))
    return path


@pytest.mark.parametrize(
    "words",
    [["show", SESSION], ["show", SESSION, "--json"], ["show", SESSION, "--raw"], ["export"], ["list", "--json"], []],
)
def test_a_reader_that_leaves_is_no_error(tmp_path: Path, words: list[str]) -> None:
    long_session(tmp_path)
    process = subprocess.Popen(
        [*COMMAND, "--home", str(tmp_path), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert (process.wait(timeout=30), said) == (141, b"")


def test_head_gets_what_it_wants(tmp_path: Path) -> None:
    long_session(tmp_path)
    command = " ".join(f"'{word}'" for word in (*COMMAND, "--home", str(tmp_path), "show", SESSION, "--json"))
    done = subprocess.run(f"{command} | head -n 1", shell=True, capture_output=True, timeout=60, check=True)
    assert json.loads(done.stdout)["index"] == 1
    assert done.stderr == b""


def test_control_characters_of_a_file_name_are_shown_so_that_they_can_be_copied(tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "projects" / "-p" / "two\nlines  and a\ttab\x1b[1m.jsonl"
    path.parent.mkdir(parents=True)
    shown = f"{path.parent}/two\\nlines  and a\\ttab\\x1b[1m.jsonl"
    line = claude_line("user", "u1", None, "hello")
    path.write_text(json.dumps(line) + "\n{torn\n" + json.dumps({**line, "uuid": "u2"}) + "\n")
    (problem,) = clew("--home", tmp_path, "validate", path).out.splitlines()
    assert problem.startswith(f"{shown}:2: ")
    assert clew("--home", tmp_path, "sync").code == 0
    assert shown in clew("--home", tmp_path, "doctor").out
    path.unlink()
    assert clew("--home", tmp_path, "sync", "--forget-gone").code == 0
    os.mkfifo(path)
    for words in (["list"], ["stats"], ["export"]):
        assert f"clew: {shown}: not a regular file" in clew("--home", tmp_path, *words).err.splitlines(), words
    assert "two\\nlines" in clew("--home", tmp_path, "show", path).err


def test_control_characters_of_a_changed_file_are_shown_so_that_they_can_be_copied(tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "projects" / "-p" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    call = {"type": "tool_use", "id": "t1", "name": "Write", "input": {"file_path": "/w/a\nb  c", "content": "x"}}
    line = {**claude_line("assistant", "u1", None, [call]), "cwd": "/w"}
    path.write_text(json.dumps(line) + "\n")
    ran = clew("--home", tmp_path, "files", SESSION)
    assert "a\\nb  c" in ran.out, ran.err


@pytest.mark.slow
def test_an_interrupt_is_130(tmp_path: Path) -> None:
    long_session(tmp_path)
    process = subprocess.Popen(
        [*COMMAND, "--home", str(tmp_path), "export"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    # Once the first byte has come, the rest waits for us to read it.
    first = process.stdout.read(1)
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert first == b"{"
    assert process.returncode == 130
    assert said.decode().strip() == "clew: interrupted"


def test_an_interrupted_export_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = long_session(tmp_path)

    def interrupted(self: ClaudeCode, source: SourceFile) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ClaudeCode, "events", interrupted)
    ran = clew("export", path, "-o", tmp_path / "out" / "x.json")
    assert ran.code == 130
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("words", [["verify"], ["show"], ["graph"], ["export"]])
def test_P11_a_file_that_cannot_be_read_is_one_line(tmp_path: Path, words: list[str]) -> None:
    fifo = tmp_path / f"{SESSION}.jsonl"
    os.mkfifo(fifo)
    ran = run(*words, fifo)
    assert (ran.code, ran.raw) == (3, b"")
    assert ran.err == f"clew: {fifo}: not a regular file\n"


def test_P11_permission_denied_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = long_session(tmp_path)
    real = os.open

    def denied(name: str | os.PathLike[str], *rest: int, **more: int) -> int:
        if str(name) == str(path):
            raise PermissionError(13, "Permission denied", str(name))
        return real(name, *rest, **more)

    monkeypatch.setattr(os, "open", denied)
    for words in (["verify"], ["show", SESSION], ["export", SESSION], ["graph", SESSION]):
        ran = clew("--home", tmp_path, *words)
        assert (ran.code, ran.out, ran.err) == (3, "", f"clew: {path}: Permission denied\n")
    listed = clew("--home", tmp_path, "list")
    assert listed.code == 1
    assert f"clew: {path}: Permission denied" in listed.err
    (problem,) = clew("--home", tmp_path, "validate", "--json").json
    assert problem["code"] == "unreadable"


def test_P11_one_unreadable_file_hides_no_other(demo: Path, tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "projects" / "-p"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "x.jsonl")
    os.mkfifo(folder / "agent-x.jsonl")
    (folder / "loop.jsonl").symlink_to("loop.jsonl")
    (folder / f"{SESSION}.jsonl").write_text(json.dumps(claude_line("user", "u1", None)) + "\n")
    assert clew("--home", tmp_path, "show", SESSION[:5]).code == 0
    ran = clew("--home", tmp_path, "list", "--json")
    assert [row["id"] for row in ran.json] == [SESSION]
    # A link is passed over: it may lead to what is no session of anybody.
    assert len(ran.err.splitlines()) == 2
    assert clew("--home", tmp_path).code == 0
    assert clew("--home", tmp_path, "--json").json["agents"]["claude-code"]["sessions"] == 1


def test_a_target_that_cannot_be_written(demo: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    ran = clew("--home", demo, "export", FORKED, "-o", tmp_path / "file" / "x.json")
    assert ran.code == 3
    assert ran.err.startswith("clew: ")
    assert len(ran.err.splitlines()) == 1


HOSTILE = "".join(
    [
        "\x1b[2J\x1b[31mred",
        "\x1b]0;title\x07",
        "\x1b]52;c;ZXZpbA==\x07",
        "\x1b]8;;http://example.org\x1b\\link",
        "\x1bP1;2|dcs\x1b\\",
        "\x1b_apc\x1b\\",
        "\x9b31m\x9d0;c1\x9c",
        "over\rwritten\b\b\bback",
        "\u202eoverride\u2066isolate",
        "zero\u200bwidth\u2060\ufeff",
        "\x7f\x00",
    ]
)


def hostile_session(home: Path) -> None:
    """A session with hostile content wherever content can be."""
    folder = home / ".claude" / "projects" / "-p"
    folder.mkdir(parents=True)
    call = {"type": "tool_use", "id": f"t{HOSTILE}", "name": f"Bash{HOSTILE}", "input": {"command": HOSTILE}}
    answer = {"type": "tool_result", "tool_use_id": f"t{HOSTILE}", "content": HOSTILE, "is_error": True}
    common = {"sessionId": f"id{HOSTILE}", "cwd": f"/home/{HOSTILE}", "gitBranch": HOSTILE, "version": HOSTILE}
    reply = claude_line("assistant", "a1", "u1", [{"type": "thinking", "thinking": HOSTILE}, call], **common)
    reply["message"]["model"] = f"model{HOSTILE}"
    lines = [
        claude_line("user", "u1", None, f"Title {HOSTILE}", **common),
        reply,
        claude_line("user", "r1", "a1", [answer], **common),
        claude_line("user", f"u{HOSTILE}", "gone", HOSTILE, **common),
        {"type": f"new{HOSTILE}", f"key{HOSTILE}": 1},
        {"type": "custom-title", "customTitle": f"My {HOSTILE}", **common},
    ]
    (folder / "notes.jsonl").write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    (folder / "more.jsonl").write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines))


PLAIN = {"PAGER": "cat", "NO_COLOR": "1"}


def on_a_terminal(*words: str | Path, settings: Mapping[str, str] = PLAIN) -> str:
    """What a command prints when it runs on a terminal."""
    ours, theirs = pty.openpty()
    asked = {name: value for name, value in os.environ.items() if name not in ("LESS", "PAGER", "NO_COLOR")}
    environment = {**asked, "TERM": "xterm-256color", **settings}
    process = subprocess.Popen(
        [*COMMAND, *map(str, words)], stdin=theirs, stdout=theirs, stderr=theirs, env=environment, close_fds=True
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    process.wait(timeout=30)
    os.close(ours)
    return seen.decode()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "flags", "is_coloured"),
    [
        ({}, "-FRX", True),
        ({"LESS": "-R -X"}, "-R -X", True),
        ({"LESS": "-X"}, "-X", False),
        ({"NO_COLOR": "1"}, "-FRX", False),
    ],
)
def test_a_session_is_paged_in_colours_where_the_pager_shows_them(
    demo: Path, tmp_path: Path, settings: dict[str, str], flags: str, is_coloured: bool
) -> None:
    pager = tmp_path / "less"
    pager.write_text('#!/bin/sh\necho "paged with $LESS"\ncat\n')
    pager.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    seen = on_a_terminal("--home", demo, "show", LATEST, settings={**settings, "PATH": path})
    assert seen.startswith(f"paged with {flags}\r\n")
    assert ("\x1b[1m" in seen) is is_coloured


FORBIDDEN = ("\x9b", "\x9d", "\b", "\x07", "\x00", "\x7f", "\u202e", "\u2066", "\u200b", "\u2060", "\ufeff")


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        [],
        ["list", "--subagents"],
        ["show", "@last"],
        ["show", "@last", "--detail", "full"],
        ["show", "@last#2"],
        ["graph", "@last"],
        ["verify"],
        ["validate", "--level", "note"],
        ["show", "id"],
        ["agents"],
    ],
    ids=" ".join,
)
def test_H08_nothing_in_a_session_steers_the_terminal(tmp_path: Path, words: list[str]) -> None:
    hostile_session(tmp_path)
    # A first sync that takes long shows a progress bar.
    assert clew("--home", tmp_path, "sync").code == 0
    seen = on_a_terminal("--home", tmp_path, *words)
    assert seen
    # Content is there, and what would steer is shown instead.
    assert words in ([], ["agents"]) or "\N{SYMBOL FOR ESCAPE}" in seen or r"\x1b" in seen
    for mark in FORBIDDEN:
        assert mark not in seen, repr(mark)
    # Colours of our own are fine; nothing else may follow an escape.
    foreign = [part for part in seen.split("\x1b")[1:] if not part.startswith("[") or not _is_colour(part)]
    assert not foreign
    assert "\x1b[31mred" not in seen
    # The terminal itself puts a carriage return before each line feed.
    assert "\r" not in seen.replace("\r\n", "\n")


def _is_colour(part: str) -> bool:
    codes, found, _ = part[1:].partition("m")
    return bool(found) and all(code.isdigit() or not code for code in codes.split(";"))


@pytest.mark.parametrize("words", [["list", "--json"], ["show", "@last", "--json"], ["graph", "@last", "--json"]])
def test_H08_json_stays_escaped_and_whole(tmp_path: Path, words: list[str]) -> None:
    hostile_session(tmp_path)
    ran = clew("--home", tmp_path, *words)
    assert ran.code == 0
    assert not any(byte < 0x20 and byte != 0x0A for byte in ran.raw)
    if "graph" not in words:
        assert any(HOSTILE in text for text in _strings(ran.lines))


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in items for text in _strings(item)]
