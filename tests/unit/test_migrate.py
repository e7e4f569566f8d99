"""Migrations of the Sage stores: planned without writing, carried out without losing anything, done once."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from clew.agents.base import Agent
from clew.agents.sage_agent import SageAgent
from clew.agents.sage_emacs import SageEmacs
from clew.errors import Busy, WouldLose
from clew.host import Host
from clew.migrate import sage
from clew.migrate.sage import Originals, Step, rewrite
from clew.model.json import JSON
from tests.cli.running import run
from tests.json_values import spell
from tests.roundtrip import document_of

DEMO = Path(__file__).resolve().parents[2] / "src" / "clew" / "demo" / "home"
STAMP = "20270101T000000Z"
OLD, ALIGNED = "-home-ada-tide.tables-", "-home-ada-tide-tables"


def said(content: str, role: str = "user", **more: JSON) -> dict[str, JSON]:
    return {"role": role, "content": content, "timestamp": "2026-01-11T22:00:00Z", **more}


def write(path: Path, *lines: JSON) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(spell(line, 0) for line in lines))
    return path


def describe(folder: Path, path: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metadata.json").write_text(json.dumps({"project_dir": path, "mine": 1}))


def store(home: Path) -> Path:
    root = home / ".emacs.d" / "sage" / "projects"
    root.mkdir(parents=True, exist_ok=True)
    return root


def tree(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def backup_of(path: Path, stamp: str) -> Path:
    return path.with_name(f"{path.name}.bak-{stamp}")


def kinds(steps: list[Step]) -> list[str]:
    return [step.kind for step in steps]


def problems(agent: Agent, path: Path) -> list[str]:
    source = agent.locate(path)
    return [problem.code for problem in agent.check(source, agent.facts(source))]


# Names


@pytest.mark.seed("S0-36")
def test_a_folder_is_renamed_whole(home: Path) -> None:
    root = store(home)
    write(root / OLD / "conversation.jsonl", said("a"))
    write(root / OLD / "history" / "20260110-120000.jsonl", said("b"))
    describe(root / OLD, "/home/ada/tide.tables")
    before = tree(root / OLD)
    steps = sage.plan(home, names=True)
    assert [(step.kind, step.path.name, step.target and step.target.name) for step in steps] == [
        ("rename", OLD, ALIGNED)
    ]
    assert tree(root / OLD) == before, "a plan writes nothing"
    sage.apply(steps, STAMP)
    assert tree(root / ALIGNED) == before
    assert sage.plan(home, names=True) == []


@pytest.mark.seed("S0-36", "S0-7")
def test_two_folders_of_one_project_are_merged_without_loss(home: Path) -> None:
    root = store(home)
    write(root / OLD / "conversation.jsonl", said("old"), said("both"))
    write(root / OLD / "history" / "same.jsonl", said("h"))
    write(root / OLD / "history" / "stamp.jsonl", said("of the old"))
    write(root / OLD / "history" / "more.jsonl", said("m"))
    write(root / ALIGNED / "conversation.jsonl", said("both", uuid="u"), said("new"))
    write(root / ALIGNED / "history" / "same.jsonl", said("h"))
    write(root / ALIGNED / "history" / "stamp.jsonl", said("of the new"))
    describe(root / ALIGNED, "/home/ada/tide.tables")
    before, old = tree(root), tree(root / OLD)
    current = (root / ALIGNED / "conversation.jsonl").read_bytes()
    steps = sage.plan(home, names=True)
    assert tree(root) == before
    sage.apply(steps, STAMP)
    after = tree(root)
    assert after[f"{ALIGNED}/conversation.jsonl"] == current + spell(said("old"), 0)
    assert after[f"{ALIGNED}/history/stamp.jsonl"] == spell(said("of the new"), 0)
    assert after[f"{ALIGNED}/history/stamp-2.jsonl"] == spell(said("of the old"), 0)
    assert after[f"{ALIGNED}/history/more.jsonl"] == spell(said("m"), 0)
    assert after[f"{ALIGNED}/conversation.jsonl.bak-{STAMP}"] == current
    assert not (root / OLD).exists()
    assert tree(root.with_name(f"projects.migrated-{STAMP}") / OLD) == old
    assert problems(SageEmacs(), root / ALIGNED / "conversation.jsonl") == []
    assert json.loads(after[f"{ALIGNED}/metadata.json"])["mine"] == 1
    assert sage.plan(home, names=True) == []


@pytest.mark.seed("S0-36")
def test_several_old_names_of_one_project_meet(home: Path) -> None:
    root = store(home)
    for number, name in enumerate((OLD, OLD.rstrip("-"), ALIGNED + "-")):
        write(root / name / "conversation.jsonl", said(str(number)))
        write(root / name / "history" / "x.jsonl", said(f"h{number}"))
    sage.apply(sage.plan(root, names=True), STAMP)
    assert [path.name for path in root.iterdir()] == [ALIGNED]
    lines = (root / ALIGNED / "conversation.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["content"] for line in lines) == ["0", "1", "2"]
    names = sorted(path.name for path in (root / ALIGNED / "history").iterdir())
    assert names == ["x-2.jsonl", "x-3.jsonl", "x.jsonl"]
    assert sage.plan(root, names=True) == []


def test_an_archive_whose_name_is_taken_keeps_its_endings(home: Path) -> None:
    root = store(home)
    for number, folder in enumerate((OLD, ALIGNED)):
        write(root / folder / "conversation.jsonl", said("both"))
        for name in ("a.jsonl.gz", f"a.jsonl.bak-{STAMP}", "b.jsonl"):
            write(root / folder / "history" / name, said(str(number)))
    sage.apply(sage.plan(home, names=True), STAMP)
    names = {path.name for path in (root / ALIGNED / "history").iterdir()}
    assert names == {
        *("a.jsonl.gz", f"a.jsonl.bak-{STAMP}", "b.jsonl"),
        *("a-2.jsonl.gz", f"a-2.jsonl.bak-{STAMP}", "b-2.jsonl"),
    }


def test_projects_that_only_share_the_name_are_left_apart(home: Path) -> None:
    root = store(home)
    write(root / OLD / "conversation.jsonl", said("a"))
    describe(root / OLD, "/home/ada/tide.tables")
    write(root / ALIGNED / "conversation.jsonl", said("b"))
    describe(root / ALIGNED, "/home/ada/tide-tables")
    before = tree(root)
    steps = sage.plan(home, names=True)
    assert kinds(steps) == ["leave"]
    sage.apply(steps, STAMP)
    assert tree(root) == before


def test_a_path_that_ends_in_a_dash_keeps_its_name(home: Path) -> None:
    root = store(home)
    write(root / "-home-ada-x-" / "conversation.jsonl", said("a"))
    assert kinds(sage.plan(home, names=True)) == ["rename"]
    describe(root / "-home-ada-x-", "/home/ada/x-")
    assert sage.plan(home, names=True) == []


def test_files_of_others_stay_where_they_are(home: Path) -> None:
    folder = home / ".claude" / "projects" / "-home-ada-x.y"
    write(folder / "conversation.jsonl", said("a"))
    write(folder / "0b8c.jsonl", {"type": "user"})
    sage.apply(sage.plan(home, names=True), STAMP)
    assert list(tree(folder)) == ["0b8c.jsonl"]
    assert list(tree(folder.with_name("-home-ada-x-y"))) == ["conversation.jsonl"]
    assert sage.plan(home, names=True) == []


def test_what_appears_after_the_plan_is_not_overwritten(home: Path) -> None:
    root = store(home)
    write(root / OLD / "conversation.jsonl", said("a"))
    steps = sage.plan(home, names=True)
    write(root / ALIGNED / "conversation.jsonl", said("b"))
    before = tree(root)
    with pytest.raises(WouldLose):
        sage.apply(steps, STAMP)
    with pytest.raises(WouldLose):
        source, target = root / OLD / "conversation.jsonl", root / ALIGNED / "conversation.jsonl"
        sage.apply([Step("copy", source, target)], STAMP)
    assert tree(root) == before


# Records of sage-emacs


@pytest.mark.seed("S0-37", "S0-16")
def test_ids_are_added_as_they_were_derived(home: Path) -> None:
    call = {"name": "ls", "args": {}, "result": "x", "success": True}
    path = write(store(home) / ALIGNED / "conversation.jsonl", said("a"), said("b", "assistant", tool_calls=[call]))
    content = path.read_bytes() + b'{"role": "user", "content": "spaced"}\n{"role":"user","role":"user"}\nnot json\n'
    path.write_bytes(content)
    before = document_of(SageEmacs(), path)
    steps = sage.plan(home, ids=True)
    assert [(step.kind, step.changes) for step in steps] == [("ids", 3)]
    sage.apply(steps, STAMP)
    after = document_of(SageEmacs(), path)
    assert [item["uuid"] for item in after["messages"]] == [item["uuid"] for item in before["messages"]]
    assert after["session"]["id"] == before["session"]["id"]
    lines = path.read_bytes().splitlines()
    assert all(json.loads(line)["session_id"] == before["session"]["id"] for line in lines[:3])
    assert lines[2].startswith(b'{"role": "user", "content": "spaced", "uuid": ')
    assert lines[3:] == [b'{"role":"user","role":"user"}', b"not json"]
    assert backup_of(path, STAMP).read_bytes() == content
    assert sage.plan(home, ids=True) == []


@pytest.mark.seed("S0-38", "S0-33")
def test_estimates_are_added_where_nothing_is_known(home: Path) -> None:
    usage = {"input_tokens": 1}
    path = write(store(home) / ALIGNED / "conversation.jsonl", said("x" * 9), said("b", usage=usage), said("", "tool"))
    describe(path.parent, "/home/ada/tide.tables")
    steps = sage.plan(home, tokens=True)
    assert [(step.kind, step.changes) for step in steps] == [("tokens", 1), ("metadata", 0)]
    sage.apply(steps, STAMP)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line.get("tokens") for line in lines] == [{"estimated": 3}, None, None]
    assert document_of(SageEmacs(), path)["messages"][0]["metadata"] == {"estimated_tokens": 3}
    assert "metadata-mismatch" not in problems(SageEmacs(), path)
    assert sage.plan(home, tokens=True) == []


def test_several_migrations_keep_the_first_original(home: Path) -> None:
    root = store(home)
    shutil.copytree(DEMO / "emacs.d" / "sage" / "projects", root, dirs_exist_ok=True)
    before = tree(root)
    steps = sage.plan(home, names=True, ids=True, tokens=True)
    assert {"ids", "tokens", "metadata", "append", "copy", "set-aside"} <= set(kinds(steps))
    sage.apply(steps, STAMP)
    assert sage.plan(home, names=True, ids=True, tokens=True, metadata=True) == []
    kept = tree(root) | tree(root.with_name(f"projects.migrated-{STAMP}"))
    originals = [content for name, content in kept.items() if ".bak-" in name]
    conversations = [content for name, content in before.items() if name.endswith("conversation.jsonl")]
    assert all(content in originals for content in conversations)
    (folder,) = root.iterdir()
    contents = {json.loads(line)["content"] for line in (folder / "conversation.jsonl").read_text().splitlines()}
    expected = {json.loads(line)["content"] for raw in conversations for line in raw.splitlines()}
    assert contents == expected


@pytest.mark.parametrize("is_link", [True, False])
def test_a_backup_gets_another_name_where_its_own_is_taken(home: Path, tmp_path: Path, is_link: bool) -> None:
    path = write(store(home) / ALIGNED / "conversation.jsonl", said("the only copy"))
    taken, content = backup_of(path, STAMP), path.read_bytes()
    (tmp_path / "victim").write_text("kept")
    taken.symlink_to(tmp_path / "victim") if is_link else taken.write_text("kept")
    sage.apply(sage.plan(home, ids=True, tokens=True), STAMP)
    assert path.read_bytes() != content
    assert taken.with_name(f"{taken.name}-2").read_bytes() == content
    assert taken.read_text() == (tmp_path / "victim").read_text() == "kept"
    assert not taken.with_name(f"{taken.name}-3").exists()


@pytest.mark.parametrize("is_link", [True, False])
def test_files_are_set_aside_in_a_new_folder_where_one_is_there(home: Path, tmp_path: Path, is_link: bool) -> None:
    root = store(home)
    for folder in (OLD, ALIGNED):
        write(root / folder / "conversation.jsonl", said("ring"))
        describe(root / folder, "/home/ada/tide.tables")
    old, taken = tree(root / OLD), root.with_name(f"projects.migrated-{STAMP}")
    victim = tmp_path / "victim" if is_link else taken
    describe(victim / OLD, "precious")
    if is_link:
        taken.symlink_to(victim)
    before = tree(victim)
    sage.apply(sage.plan(home, names=True), STAMP)
    assert tree(victim) == before
    assert tree(taken.with_name(f"{taken.name}-2")) == {f"{OLD}/{name}": content for name, content in old.items()}


def test_a_file_that_is_being_written_is_not_replaced(tmp_path: Path) -> None:
    path = write(tmp_path / "conversation.jsonl", said("a"))

    def pieces() -> list[bytes]:
        with path.open("ab") as handle:
            handle.write(spell(said("meanwhile"), 0))
        return [b"new"]

    with pytest.raises(Busy):
        rewrite(path, (piece for piece in pieces_later(pieces)), Originals(STAMP))
    assert path.read_bytes() == spell(said("a"), 0) + spell(said("meanwhile"), 0)


def pieces_later(make: JSON) -> JSON:
    yield from make()


# Logs of Sage Agent


def log(home: Path, *lines: JSON) -> Path:
    return write(home / ".sage" / "sessions" / "session-1" / "messages.jsonl", *lines)


@pytest.mark.seed("S1-53", "S1-50")
def test_old_records_get_the_new_form(home: Path) -> None:
    call = {"id": "c", "name": "ls", "arguments": {}}
    answer = {"tool_call_id": "c", "tool_name": "ls", "content": "x", "success": True, "error": None}
    new = {
        "type": "user",
        "uuid": "n",
        "timestamp": "2026-01-11T22:00:00Z",
        "message": {"role": "user", "content": "new"},
    }
    path = log(
        home,
        said("a", tool_calls=None, metadata={"k": 1}),
        said("b", "assistant", tool_calls=[call]),
        said("", "tool", tool_results=[answer]),
        new,
    )
    (path.parent / "metadata.json").write_text('{"workingDirectory": "/Users/ada/x", "version": "0.9"}')
    content, before = path.read_bytes(), document_of(SageAgent(), path)
    steps = sage.plan(home, forms=True)
    assert [(step.kind, step.changes) for step in steps] == [("form", 3)]
    assert path.read_bytes() == content
    sage.apply(steps, STAMP)
    assert backup_of(path, STAMP).read_bytes() == content
    after = document_of(SageAgent(), path)
    for name in ("uuid", "parent_uuid", "role", "timestamp"):
        assert [item.get(name) for item in after["messages"]] == [item.get(name) for item in before["messages"]]
    first, _, third, _ = (json.loads(line) for line in path.read_text().splitlines())
    assert (first["type"], first["sessionId"], first["version"], first["metadata"]) == (
        "user",
        "session-1",
        "0.9",
        {"k": 1},
    )
    assert first["context"] == {"cwd": "/Users/ada/x", "platform": "macos"}
    assert third["type"] == "tool_result"
    assert third["message"]["toolResults"][0]["toolCallId"] == "c"
    assert sage.plan(home, forms=True) == []


_WRAPPED = {"recordType": "message", "type": "user", "uuid": "n", "parentUuid": "p"}


@pytest.mark.parametrize("odd", [{"role": ["user"]}, {"role": "user", "seq": 1, "payload": _WRAPPED}])
def test_a_record_that_only_resembles_the_older_form_is_left_alone(home: Path, odd: dict[str, JSON]) -> None:
    odd = {**odd, "content": "x"}
    path = log(home, said("a"), odd)
    steps = sage.plan(home, forms=True)
    assert [(step.kind, step.changes) for step in steps] == [("form", 1)]
    sage.apply(steps, STAMP)
    assert json.loads(path.read_text().splitlines()[1]) == odd


def test_a_wrapped_message_gets_its_parent_where_its_ids_are(home: Path) -> None:
    message = {"role": "user", "content": "new"}
    payload = {"recordType": "message", "type": "user", "uuid": "n", "timestamp": "2026-01-11T22:01:00Z"}
    path = log(home, said("a"), {"seq": 1, "payload": {**payload, "message": message}})
    before = document_of(SageAgent(), path)
    sage.apply(sage.plan(home, forms=True), STAMP)
    first, second = (json.loads(line) for line in path.read_text().splitlines())
    assert second == {"seq": 1, "payload": {**payload, "message": message, "parentUuid": first["uuid"]}}
    after = document_of(SageAgent(), path)
    assert [item.get("parent_uuid") for item in after["messages"]] == [None, first["uuid"]]
    assert [item["uuid"] for item in after["messages"]] == [item["uuid"] for item in before["messages"]]


def test_a_log_in_the_new_form_is_left_alone() -> None:
    assert sage.plan(DEMO / "nothing", names=True, forms=True, metadata=True) == []
    steps = sage.plan(DEMO / "sage" / "sessions", forms=True)
    assert [step.path.parent.name[:8] for step in steps] == ["bea30fe7"]


# Metadata


@pytest.mark.seed("S0-35", "S0-34")
@pytest.mark.parametrize("metadata", [None, "{", '{"message_count": 7, "mine": 1}'])
def test_metadata_of_sage_emacs_are_rebuilt(home: Path, metadata: str | None) -> None:
    path = write(store(home) / ALIGNED / "conversation.jsonl", said("a"), said("b"))
    place = path.parent / "metadata.json"
    if metadata is not None:
        place.write_text(metadata)
    steps = sage.plan(home, metadata=True)
    assert kinds(steps) == ["metadata"]
    sage.apply(steps, STAMP)
    rebuilt = json.loads(place.read_text())
    assert (rebuilt["message_count"], rebuilt["total_size"]) == (2, len(path.read_bytes()))
    assert rebuilt["created_at"] == "2026-01-11T22:00:00Z"
    assert problems(SageEmacs(), path) == []
    assert sage.plan(home, metadata=True) == []
    if metadata is not None:
        assert backup_of(place, STAMP).read_text() == metadata


@pytest.mark.parametrize("program", ["sage-agent", "sage-emacs"])
def test_P11_a_pipe_in_the_place_of_metadata_is_left_alone(home: Path, program: str) -> None:
    if program == "sage-emacs":
        folder = write(store(home) / ALIGNED / "conversation.jsonl", said("a")).parent
    else:
        folder = home / ".sage" / "sessions" / "65e3e58a-4436-41d2-b07c-28cc2b6f97b8"
        shutil.copytree(DEMO / "sage" / "sessions" / folder.name, folder)
        (folder / "metadata.json").unlink()
    os.mkfifo(folder / "metadata.json")
    ran = run("migrate", home)
    assert ran.code == 0, ran.err
    assert "leave" in ran.out and "not a regular file" in ran.out
    assert (folder / "metadata.json").is_fifo()


def test_P11_a_pipe_in_the_place_of_a_conversation_is_told(home: Path) -> None:
    write(store(home) / OLD / "conversation.jsonl", said("a"))
    (store(home) / ALIGNED).mkdir()
    os.mkfifo(store(home) / ALIGNED / "conversation.jsonl")
    ran = run("migrate", home)
    assert ran.code == 3 and "not a regular file" in ran.err


@pytest.mark.seed("S1-26")
def test_metadata_of_sage_agent_are_rebuilt(home: Path) -> None:
    folder = home / ".sage" / "sessions" / "65e3e58a-4436-41d2-b07c-28cc2b6f97b8"
    shutil.copytree(DEMO / "sage" / "sessions" / folder.name, folder)
    was = json.loads((folder / "metadata.json").read_text())
    assert sage.plan(home, metadata=True) == []
    (folder / "metadata.json").unlink()
    sage.apply(sage.plan(home, metadata=True), STAMP)
    rebuilt = json.loads((folder / "metadata.json").read_text())
    same = ("id", "customTitle", "summary", "firstPrompt", "createdAt", "workingDirectory", "gitBranch", "messageCount")
    assert {name: rebuilt[name] for name in same} == {name: was[name] for name in same}
    assert problems(SageAgent(), folder / "messages.jsonl") == []


def test_a_whole_home_is_planned_at_once(home: Path) -> None:
    write(store(home) / OLD / "conversation.jsonl", said("a"))
    log(home, said("b"))
    steps = sage.plan(home, names=True, ids=True, tokens=True, forms=True, metadata=True)
    assert kinds(steps) == ["ids", "tokens", "metadata", "rename", "form", "metadata"]
    sage.apply(steps, STAMP)
    assert sage.plan(home, names=True, ids=True, tokens=True, forms=True, metadata=True) == []
    assert [
        source.path.parent.name for root in SageEmacs().roots(Host.at(home)) for source in SageEmacs().discover(root)
    ] == [ALIGNED]
