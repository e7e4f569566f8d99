"""Which sessions the tool `blame` of `clew mcp` reads for a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clew import Library
from clew.blame import blame_file
from clew.io.paths import encode_claude
from clew.store import Store, ToolCall, ToolResult
from tests.cli.running import clew
from tests.mcp.client import ToolFailed, connect
from tests.unit.samples import claude_line

CODEX_ID = "019a3f6e-0000-7000-8000-000000000001"
TIME = "2026-01-01T10:00:00.000Z"
NOT_READ = "not read: 1 session that may mean another file of this name"


def write_session(
    home: Path, name: str, workspace: str, path: str, content: str, hour: int, old: str | None = None
) -> None:
    """A session of Claude Code that writes one file, named as in its records; `old` is what the file was before."""
    call = {"type": "tool_use", "id": "t1", "name": "Write", "input": {"file_path": path, "content": content}}
    done = {"type": "tool_result", "tool_use_id": "t1", "content": "File created"}
    known = {"cwd": workspace, "sessionId": name, "timestamp": f"2026-01-01T{hour}:00:00.000Z"}
    lines = [
        claude_line("user", "u1", None, f"Write the table, {name}", **known),
        claude_line("assistant", "a1", "u1", [call], **known),
        claude_line("user", "r1", "a1", [done], **known),
    ]
    kind = "create" if old is None else "update"
    lines[2]["toolUseResult"] = {"type": kind, "filePath": path, "content": content, "originalFile": old}
    file = home / ".claude" / "projects" / encode_claude(workspace) / f"{name}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_sessions_that_name_the_path_are_read_and_others_counted(home: Path, tmp_path: Path) -> None:
    write_session(home, "absolute", "/elsewhere", "/srv/tide/src/table.py", "high\n", 10)
    write_session(home, "relative", "/srv/tide", "src/table.py", "high\nlow\n", 11, "high\n")
    write_session(home, "other-file", "/srv/moon", "lib/table.py", "high\nlow\nnew\n", 12)
    file = tmp_path / "table.py"
    file.write_text("high\nlow\n")
    with connect(home, cwd=tmp_path) as client:
        answer = client.call("blame", path=str(file), recorded_path="/srv/tide/src/table.py")
    refs = [(row["first"], row["last"], row["ref"]) for row in answer["results"]]
    assert refs == [(1, 1, "claude-code:absolute#2"), (2, 2, "claude-code:relative#2")]
    assert "notes" not in answer
    file.write_text("high\nlow\nnew\n")
    with connect(home, cwd=tmp_path) as client:
        answer = client.call("blame", path=str(file), recorded_path="/srv/tide/src/table.py")
    assert [row["ref"] for row in answer["results"]][-1] is None
    assert answer["notes"] == [f"{NOT_READ}; `all_sessions` reads them"]


def test_all_sessions_are_read_if_asked(home: Path, tmp_path: Path) -> None:
    # The recorded working folder is that of the file, but neither the workspace nor a call names it.
    write_session(home, "moved-on", "/srv/tide/src", "table.py", "high\n", 10)
    (session,) = (home / ".claude" / "projects").glob("*/*.jsonl")
    start = claude_line("user", "u0", None, "Look around", cwd="/srv/moon", sessionId="moved-on")
    session.write_text(
        json.dumps(start) + "\n" + session.read_text().replace('"parentUuid": null', '"parentUuid": "u0"')
    )
    file = tmp_path / "table.py"
    file.write_text("high\n")
    blame = "--home", home, "blame", file, "--as", "/srv/tide/src/table.py", "--json"
    ran = clew(*blame)
    assert (ran.code, [line["session"] for line in ran.json]) == (1, [None])
    assert f"clew: {NOT_READ}; --all-sessions reads them\n" in ran.err
    ran = clew(*blame, "--all-sessions")
    assert (ran.code, [line["session"] for line in ran.json], ran.err) == (0, ["moved-on"], "")


def test_a_file_in_the_workspace_itself_needs_no_folder(home: Path, tmp_path: Path) -> None:
    write_session(home, "inside", "/srv/tide", "table.py", "high\n", 10)
    file = tmp_path / "table.py"
    file.write_text("high\n")
    with connect(home, cwd=tmp_path) as client:
        answer = client.call("blame", path=str(file), recorded_path="/srv/tide/table.py")
    assert [row["ref"] for row in answer["results"]] == ["claude-code:inside#2"]
    assert "notes" not in answer


@pytest.mark.parametrize("name", ["Gezeiten für Köln.py", "._.", "a b", "x.y.z", "表.py", "100%.txt", "ü/表/ß.py"])
def test_names_that_are_no_plain_words(home: Path, tmp_path: Path, name: str) -> None:
    write_session(home, "relative", "/srv/tide", name, "high\n", 10)
    file = tmp_path / "now"
    file.write_text("high\n")
    with connect(home, cwd=tmp_path) as client:
        answer = client.call("blame", path=str(file), recorded_path=f"/srv/tide/{name}")
    assert [row["ref"] for row in answer["results"]] == ["claude-code:relative#2"]


def test_a_call_with_its_own_working_folder(home: Path, tmp_path: Path) -> None:
    patch = "*** Begin Patch\n*** Add File: deep/table.py\n+high\n*** End Patch\n"
    arguments = {"command": ["apply_patch", patch], "workdir": "/srv/tide/src"}
    call = {"type": "function_call", "name": "shell", "arguments": json.dumps(arguments), "call_id": "c1"}
    output = json.dumps(
        {"output": "Success. Updated the following files:\nA deep/table.py\n", "metadata": {"exit_code": 0}}
    )
    lines = [
        ("session_meta", {"id": CODEX_ID, "timestamp": TIME, "cwd": "/srv/moon", "cli_version": "0.50.0"}),
        ("response_item", {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Write it"}]}),
        ("response_item", call),
        ("response_item", {"type": "function_call_output", "call_id": "c1", "output": output}),
    ]
    file = home / ".codex" / "sessions" / "2026" / "01" / "01" / f"rollout-2026-01-01T10-00-00-{CODEX_ID}.jsonl"
    file.parent.mkdir(parents=True)
    rows = [{"timestamp": TIME, "type": kind, "payload": payload} for kind, payload in lines]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    now = tmp_path / "table.py"
    now.write_text("high\n")
    with connect(home, cwd=tmp_path) as client:
        answer = client.call("blame", path=str(now), recorded_path="/srv/tide/src/deep/table.py")
    assert [row["ref"] for row in answer["results"]] == [f"codex:{CODEX_ID}#2"]


def test_changes_outside_of_calls_in_a_session_that_names_another_file(home: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    session = Store(home).session("stored")
    other = ToolCall(id="c1", name="bash", arguments={"command": "cat /srv/moon/table.py"})
    reply = session.assistant("I look first.", calls=[other])
    with session.watch(reply, ["table.py"], root=work):
        (work / "table.py").write_text("high\n")
    session.results(ToolResult(tool_call_id="c1", tool_name="bash", content="low"))
    with connect(home, cwd=tmp_path) as client:
        answer = client.call("blame", path=str(work / "table.py"))
    assert [row["ref"] for row in answer["results"]] == ["sage-agent:stored#1"]


def test_the_limit_never_leaves_out_a_session_that_changed_the_file(home: Path, tmp_path: Path) -> None:
    write_session(home, "writer", "/srv/tide", "/srv/tide/table.py", "high\n", 10)
    read = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "/srv/tide/table.py"}}
    reader = claude_line("assistant", "a1", None, [read], cwd="/srv/tide", sessionId="reader")
    (home / ".claude" / "projects" / "-srv-tide" / "reader.jsonl").write_text(json.dumps(reader) + "\n")
    file = tmp_path / "table.py"
    file.write_text("high\nlow\n")
    library = Library(home)
    blamed = blame_file(library, file, "/srv/tide/table.py", max_bytes=1)
    assert ([session.id for session in blamed.sessions], blamed.unread_sessions) == (["writer"], 1)
    assert blamed.may_miss_origins
    blamed = blame_file(library, file, "/srv/tide/table.py", max_bytes=1, all_sessions=True)
    assert ({session.id for session in blamed.sessions}, blamed.unread_sessions) == ({"writer", "reader"}, 0)


def test_paths_and_ranges_that_cannot_be(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "table.py"
    file.write_text("high\n")
    with connect(home, cwd=tmp_path) as client:
        with pytest.raises(ToolFailed, match="line 3 is after the last one 2"):
            client.call("blame", path=str(file), first=3, last=2)
        with pytest.raises(ToolFailed, match="~nobody-of-this-name/x: "):
            client.call("blame", path="~nobody-of-this-name/x")
