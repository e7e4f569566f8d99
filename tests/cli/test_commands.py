"""Every command on the demo home, as text and as JSON."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from clew import __version__
from clew.agents import registry
from clew.cli import COMMANDS
from tests.cli.running import BELL, DAMAGED, FORKED, LATEST, WITH_AGENTS, clew, run, state
from tests.demo_home import write_small_demo

ROOT = Path(__file__).resolve().parents[2]


def test_version() -> None:
    ran = clew("--version")
    assert (ran.code, ran.out) == (0, f"clew {__version__}\n")


def test_help_names_every_command() -> None:
    ran = clew("--help")
    assert ran.code == 0
    assert clew("-h").out == ran.out
    for name, meaning in COMMANDS.items():
        assert f"  {name} " in ran.out
        assert meaning in ran.out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str) -> None:
    ran = clew(name, "--help")
    assert ran.code == 0
    assert f"{name} [OPTIONS]" in ran.out
    assert clew(name, "--no-such-option").code == 2


def test_an_unknown_command() -> None:
    ran = clew("nonsense")
    assert ran.code == 2
    assert "No such command 'nonsense'" in ran.err


def test_without_a_command_it_says_what_is_here(demo: Path) -> None:
    ran = clew("--home", demo)
    assert ran.code == 0
    counted = dict(line.split()[:2] for line in ran.out.splitlines() if len(line.split()) > 1)
    known = {"claude-code": "9", "codex": "6", "gemini": "3", "sage-agent": "2", "sage-emacs": "3"}
    assert counted | known == counted
    assert "clew list" in ran.out
    found = clew("--home", demo, "--json").json
    assert found["agents"]["claude-code"]["sessions"] == 9
    assert found["agents"]["claude-code"]["subagents"] == 3
    assert found["tokens"]["claude-opus-4-6"]["output_tokens"] > 0


def test_list(demo: Path) -> None:
    ran = clew("list", "--home", demo)
    assert ran.code == 0
    rows = clew("list", "--home", demo, "--json").json
    listed = [row for row in rows if not row["is_agent_session"]]
    assert [line.split()[0] for line in ran.out.splitlines()[1:]] == [row["id"][:8] for row in listed]
    assert (len(rows), len(listed)) == (28, 23)
    assert rows == sorted(rows, key=lambda row: row["ended_at"] or "", reverse=True)
    latest = next(row for row in rows if row["id"] == LATEST)
    assert latest["title"] == "Remove the jump at midnight"
    assert (latest["project"], latest["agent"], latest["messages"]) == ("tidepool", "claude-code", 19)
    assert latest["tokens"]["output_tokens"] > 0
    assert latest["path"].startswith(str(demo))
    shown = clew("list", "--home", demo, "--subagents").out
    assert len(shown.splitlines()) == len(rows) + 1
    assert "agent-8d06219d" in shown
    assert len(clew("list", "--home", demo, "-n", "2").out.splitlines()) == 3
    assert clew("list", "--home", demo, "-n", "-1").code == 2


def test_show(demo: Path) -> None:
    text = clew("--home", demo, "show", FORKED)
    assert text.code == 0
    assert "When is the first new moon" in text.out
    messages = clew("--home", demo, "show", FORKED, "--json").lines
    assert [message["index"] for message in messages] == list(range(1, len(messages) + 1))
    assert [message["index"] for message in clew("--home", demo, "--json", "show", f"{FORKED}#3").lines] == [3]
    for detail in ("full", "conversation"):
        assert clew("--home", demo, "show", FORKED, "--detail", detail).code == 0
    missing = clew("--home", demo, "show", f"{FORKED}#999")
    assert (missing.code, missing.err) == (1, f"clew: session {FORKED} has no message 999\n")


def test_show_json_respects_detail(demo: Path) -> None:
    everything = clew("--home", demo, "show", FORKED, "--json").lines
    assert clew("--home", demo, "show", FORKED, "--json", "--detail", "full").lines == everything
    kinds = {
        detail: [
            (message["role"], block["type"])
            for message in clew("--home", demo, "show", FORKED, "--json", "--detail", detail).lines
            for block in message["content"]
        ]
        for detail in ("prompts", "conversation", "actions")
    }
    assert set(kinds["prompts"]) == {("user", "text")}
    assert set(kinds["conversation"]) == {("user", "text"), ("assistant", "text")}
    assert ("assistant", "tool_use") in kinds["actions"]
    assert ("assistant", "thinking") not in kinds["actions"]


def test_show_raw_gives_native_records(demo: Path, tmp_path: Path) -> None:
    (path,) = demo.rglob(f"{FORKED}.jsonl")
    assert clew("--home", demo, "show", FORKED, "--raw").raw == path.read_bytes()
    (line,) = clew("--home", demo, "show", f"{FORKED}#2", "--raw").lines
    assert line["uuid"] == clew("--home", demo, "show", f"{FORKED}#2", "--json").json["uuid"]
    assert clew("--home", demo, "show", f"{FORKED}#999", "--raw").code == 1
    # Also of a session in two files, of one record with two messages, and of an archive.
    folder = demo / ".sage" / "sessions" / BELL
    both = (folder / "messages.jsonl").read_bytes() + (folder / "snapshots.jsonl").read_bytes()
    assert clew("--home", demo, "show", BELL, "--raw").raw == both
    (conversation,) = demo.rglob("-home-ada-src-tide-tables/conversation.jsonl")
    assert clew("show", conversation, "--raw").raw == conversation.read_bytes()
    for message in ("2", "3"):
        assert clew("show", f"{conversation}#{message}", "--raw").raw == conversation.read_bytes().splitlines(True)[1]
    packed = tmp_path / f"{path.name}.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert clew("show", packed, "--raw").raw == path.read_bytes()


def test_a_graph_of_no_conversation_says_so(tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "projects" / "-p" / "0a6c1f5e-0000-4000-8000-00000000000a.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text('{"type":"summary","summary":"Only a title","leafUuid":"x"}\n')
    done = clew("graph", path)
    assert (done.code, done.out) == (0, "") and "no messages" in done.err


def test_graph(demo: Path) -> None:
    text = clew("--home", demo, "graph", FORKED)
    assert text.code == 0
    assert "(2 branches)" in text.out
    graph = clew("--home", demo, "graph", FORKED, "--json").json
    assert not graph["is_linear"]
    (fork,) = graph["fork_points"]
    assert len(fork["branches"]) == 2
    assert fork["uuid"] in graph["active_path"]
    tree = clew("--home", demo, "graph", FORKED, "--json", "--tree").json
    assert {node["uuid"] for node in tree} >= set(graph["active_path"])
    assert clew("--home", demo, "graph", FORKED, "--as", "mermaid").out.startswith(("graph", "flowchart"))
    assert clew("--home", demo, "graph", FORKED, "--as", "dot").out.startswith("digraph")


def test_agents(demo: Path) -> None:
    text = clew("--home", demo, "agents")
    assert text.code == 0
    assert str(demo / ".claude" / "projects") in text.out
    rows = clew("--home", demo, "agents", "--json").json
    assert {"claude-code", "codex", "sage-agent", "sage-emacs"} <= {row["id"] for row in rows}
    assert {"path": str(demo / ".claude" / "projects"), "exists": True, "error": None} in rows[0]["roots"]


def test_agents_names_versions_and_those_not_found(tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "projects" / "-work"
    folder.mkdir(parents=True)
    for number, version in enumerate(["2.0.9", "2.0.10", "1.0.83"]):
        session = f"aaaaaaaa-0000-4000-8000-00000000000{number}"
        record = {"type": "user", "uuid": session, "sessionId": session, "version": version, "cwd": "/work"}
        line = json.dumps({**record, "message": {"role": "user", "content": "Ring the bell."}})
        (folder / f"{session}.jsonl").write_text(line + "\n")
    ran = clew("--home", tmp_path, "agents")
    assert ran.code == 0
    (line,) = [line for line in ran.out.splitlines() if line.startswith("claude-code")]
    assert line.split()[:6] == ["claude-code", "Claude", "Code", "3", "1.0.83", "to"]
    assert "1.0.83 to 2.0.10  " + registry.get("claude-code").newest_tested_version in line
    assert "\nNot found: cline, codex, " in ran.out
    row, cline = clew("--home", tmp_path, "agents", "--json").json[:2]
    assert (row["sessions"], row["oldest_version"], row["newest_version"]) == (3, "1.0.83", "2.0.10")
    assert (cline["sessions"], cline["oldest_version"], cline["newest_version"]) == (0, None, None)


def test_an_agent_is_not_found_by_a_folder_of_another_program(tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "projects" / "-work"
    folder.mkdir(parents=True)
    text = " ".join(clew("--home", tmp_path, "agents").out.split())
    assert "sage-emacs" in text.partition("Not found: ")[2]
    (folder / "conversation.jsonl").write_text('{"role":"user","content":"Ring the bell."}\n')
    lines = clew("--home", tmp_path, "agents").out.splitlines()
    assert [line.split()[:3] for line in lines if line.startswith("sage-emacs")] == [["sage-emacs", "sage-emacs", "1"]]


def test_agents_sorts_versions_with_many_digits(tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "projects" / "-work"
    folder.mkdir(parents=True)
    record = {"type": "user", "uuid": LATEST, "sessionId": LATEST, "version": "9" * 5000, "cwd": "/work"}
    line = json.dumps({**record, "message": {"role": "user", "content": "Ring the bell."}})
    (folder / f"{LATEST}.jsonl").write_text(line + "\n")
    assert clew("--home", tmp_path, "agents").code == 0


def test_schema_is_the_published_one() -> None:
    published = json.loads((ROOT / "schemas" / "clew-session-1.2.schema.json").read_text(encoding="utf-8"))
    ran = clew("schema")
    assert ran.code == 0
    assert ran.json == clew("schema", "--json").json == published


def test_demo(tmp_path: Path) -> None:
    ran = clew("demo", tmp_path / "here", "--json")
    assert ran.code == 0
    assert sorted(ran.json["files"]) == sorted(state(tmp_path / "here"))
    again = clew("demo", tmp_path / "here")
    assert again.code == 2
    assert "is not empty" in again.err
    assert clew("--home", tmp_path / "here", "verify").code == 0


def test_verify(demo: Path) -> None:
    text = clew("--home", demo, "verify")
    assert text.code == 0
    assert "files restored byte for byte" in text.out
    proof = clew("--home", demo, "verify", "--json").json
    assert proof["identical"] == proof["files"] > 20
    assert proof["different"] == []
    assert proof["unknown_types"] == {}


def test_validate(demo: Path) -> None:
    text = clew("--home", demo, "validate")
    assert text.code == 1
    assert "[glued-records]" in text.out
    problems = clew("--home", demo, "validate", "--json").json
    assert len(text.out.splitlines()) == len(problems) == 3
    assert {problem["file"] for problem in problems} == {str(next(demo.rglob(f"{DAMAGED}.jsonl")))}


def test_migrate_dry_run_changes_nothing(demo: Path, tmp_path: Path) -> None:
    assert clew("migrate").code == 2
    assert clew("migrate", tmp_path / "nowhere").code == 3
    before = state(demo)
    text = clew("migrate", "--dry-run", demo)
    assert text.code == 0
    assert "nothing was changed" in text.err
    planned = clew("migrate", "-n", demo, "--json").json
    assert planned["dry_run"] is True
    assert len(planned["steps"]) == len(text.out.splitlines()) > 5
    assert state(demo) == before


def test_migrate_leaves_other_agents_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write_small_demo(home)
    before = state(home / ".claude")
    assert clew("migrate", home).code == 0
    assert state(home / ".claude") == before
    again = clew("migrate", home)
    assert (again.out, again.err) == ("", "nothing to do\n")
    assert clew("--home", home, "verify").code == 0


READING = [
    [],
    ["list"],
    ["list", "--text", "moon", "--has", "error"],
    ["show", LATEST, "--detail", "full"],
    ["show", WITH_AGENTS, "--raw"],
    ["graph", FORKED],
    ["export", "--to", "ndjson"],
    ["export", LATEST, "--to", "markdown"],
    ["verify"],
    ["validate", "--level", "note"],
    ["agents"],
    ["schema"],
]


@pytest.mark.slow
def test_S03_no_reading_command_changes_anything(demo: Path) -> None:
    before = state(demo)
    folders = {path: path.stat().st_mtime_ns for path in demo.rglob("*") if path.is_dir()}
    for words in READING:
        assert clew("--home", demo, *words).code in (0, 1)
        assert clew("--home", demo, "--json", *words).code in (0, 1)
    assert state(demo) == before
    assert {path: path.stat().st_mtime_ns for path in demo.rglob("*") if path.is_dir()} == folders


@pytest.mark.slow
def test_the_installed_command_runs(demo: Path) -> None:
    ran = run("--home", demo, "list", "--json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.json == clew("--home", demo, "list", "--json").json


def test_a_search_without_hits_says_so(demo: Path) -> None:
    ran = clew("--home", demo, "search", "zzzqqq")
    assert (ran.code, ran.out, ran.err.splitlines()[-1]) == (1, "", "nothing found for 'zzzqqq'")
    assert clew("--home", demo, "search", "zzzqqq", "--json").err == ""


@pytest.mark.parametrize("more", [(), ("--detail", "full")])
def test_nothing_is_printed_of_a_message_that_is_not_there(demo: Path, more: tuple[str, ...]) -> None:
    ran = clew("--home", demo, "show", "f005#99", *more)
    assert (ran.code, ran.out) == (1, "") and "has no message 99" in ran.err


@pytest.mark.parametrize("more", [(), ("--stdout",), ("-o", "home")])
def test_a_document_that_is_missing_is_named(tmp_path: Path, more: tuple[str, ...]) -> None:
    ran = clew("import", tmp_path / "nope.json", *more)
    assert (ran.code, ran.err) == (3, f"clew: {tmp_path / 'nope.json'}: no such file\n")


def test_a_file_that_cannot_be_written_is_named_as_it_was_given(demo: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    target = tmp_path / "file" / "x.json"
    ran = clew("--home", demo, "export", "f005", "--to", "json", "-o", target)
    assert ran.code == 3 and f"{target}: " in ran.err and ".tmp" not in ran.err
