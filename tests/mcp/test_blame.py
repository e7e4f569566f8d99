"""Which sessions the tool `blame` of `clew mcp` reads for a file."""

from __future__ import annotations

import json
from pathlib import Path

from clew.io.paths import encode_claude
from tests.cli.running import clew
from tests.mcp.client import connect
from tests.unit.samples import claude_line

NOT_READ = "not read: 1 session where calls name the file, but not its folder"


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
    assert answer["notes"] == [NOT_READ]


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


def test_names_that_are_no_plain_words(home: Path, tmp_path: Path) -> None:
    for number, name in enumerate(("Gezeiten für Köln.py", "._.", "a b", "x.y.z", "表.py", "100%.txt")):
        write_session(home, f"s{number}", "/srv/tide", f"/srv/tide/{name}", "high\n", 10)
    file = tmp_path / "now"
    file.write_text("high\n")
    with connect(home, cwd=tmp_path) as client:
        for number, name in enumerate(("Gezeiten für Köln.py", "._.", "a b", "x.y.z", "表.py", "100%.txt")):
            answer = client.call("blame", path=str(file), recorded_path=f"/srv/tide/{name}")
            assert [row["ref"] for row in answer["results"]] == [f"claude-code:s{number}#2"], name
