"""An agent's author writes a session; the readers of these formats take it whole."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

import clew
from clew import Host, Library
from clew.errors import UnknownReference, UsageError
from clew.store import (
    Context,
    Draft,
    FileBackup,
    MessageBody,
    MessageRecord,
    Session,
    Store,
    Thinking,
    TodoItem,
    ToolCall,
    ToolResult,
    TrackedFile,
    Usage,
)
from tests.redact.planted import Planter
from tests.store.support import Quick, assert_whole, lines, log_of, said

SEED_TODOS = [
    TodoItem(content="Create weather app directory", status="completed", active_form="Creating weather app directory"),
    TodoItem(content="Create HTML file", status="in_progress", active_form="Creating HTML file"),
]


def test_a_store_stays_where_it_is_when_the_process_goes_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        Store("own", system=Quick()).session("s").user(name)
    before = [path.read_bytes() for path in sorted((tmp_path / "there").rglob("*")) if path.is_file()]
    monkeypatch.chdir(tmp_path / "here")
    with Store("own", system=Quick()).session("s") as session:
        monkeypatch.chdir(tmp_path / "there")
        session.user("again")
        assert len(list(session.messages())) == 2
    assert [path.read_bytes() for path in sorted((tmp_path / "there").rglob("*")) if path.is_file()] == before


@pytest.mark.parametrize("own", [{"seq": 77}, "x", None, -1])
def test_a_number_that_was_brought_along_is_none_here(tmp_path: Path, own: Any) -> None:
    with Store(tmp_path, system=Quick()).session("s") as session:
        taken = [session.user("a", metadata={"clew": own, "kept": 1}).seq for _ in range(3)]
    assert taken == [1, 2, 3]
    assert [record["metadata"] for record in lines(log_of(tmp_path))] == [
        {"kept": 1, "clew": {"seq": number}} for number in taken
    ]


def converse(place: Path) -> list[dict[str, Any]]:
    """The conversation of the format's own example."""
    with Store(place, version="9.1").session("s") as session:
        session.user("Create a weather website", thinking=Thinking(level="high"))
        reply = session.assistant(
            "I'll create a weather website for you.",
            calls=[ToolCall(id="call_001", name="bash", arguments={"command": "mkdir -p weather_app"})],
            usage=Usage(input_tokens=1500, output_tokens=200, cache_read_tokens=500, cache_write_tokens=0),
            todos=SEED_TODOS,
            model="tide-2",
        )
        session.results(ToolResult(tool_call_id="call_001", tool_name="bash", content="Directory created"))
        session.system("the sun is out")
        session.snapshot(
            reply.uuid,
            {"weather_app/index.html": TrackedFile(content_hash="abc123", size=0, state="created")},
            {"weather_app/style.css": FileBackup(backup_path="backups/style.css.backup", original_hash="def456")},
        )
    return lines(log_of(place))


@pytest.mark.seed("S1-56", "S1-57", "S1-24", "S1-30", "S1-54", "S1-58", "S0-46")
def test_the_readers_take_everything(tmp_path: Path) -> None:
    converse(tmp_path)
    assert_whole(tmp_path)
    [session] = Library(Host.at(tmp_path)).sources()
    assert [message.role for message in session.messages] == ["user", "assistant", "user", "system"]
    assert [record.kind for record in session.records] == ["snapshot"]
    assert (session.usage.input_tokens, session.usage.output_tokens) == (1500, 200)
    assert session.header.title == "Create a weather website"


@pytest.mark.seed("S1-6", "S1-7", "S1-8", "S1-9", "S1-11", "S1-17", "S1-18", "S1-20", "S1-21")
def test_records_have_the_shape_of_the_design(tmp_path: Path) -> None:
    user, reply, result, system = converse(tmp_path)
    keys = "type uuid parentUuid timestamp sessionId version context message thinkingMetadata todos isSidechain"
    assert list(user) == [*keys.split(), "metadata"]
    assert user["parentUuid"] is None
    assert user["thinkingMetadata"] == {"level": "high", "disabled": False, "triggers": []}
    assert (user["todos"], user["isSidechain"], user["sessionId"], user["version"]) == ([], False, "s", "9.1")
    assert "usage" not in user
    assert reply["parentUuid"] == user["uuid"]
    assert reply["message"]["toolCalls"] == [
        {"id": "call_001", "name": "bash", "arguments": {"command": "mkdir -p weather_app"}}
    ]
    assert reply["usage"] == {
        "inputTokens": 1500,
        "outputTokens": 200,
        "cacheReadTokens": 500,
        "cacheWriteTokens": 0,
    }
    assert reply["todos"][1] == {
        "content": "Create HTML file",
        "status": "in_progress",
        "activeForm": "Creating HTML file",
    }
    assert "thinkingMetadata" not in reply
    assert result["toolResults"][0]["success"] is True
    assert result["toolResults"][0]["error"] is None
    assert "message" not in result
    assert system["message"] == {"role": "system", "content": "the sun is out"}


@pytest.mark.seed("S1-13", "S1-14", "S1-16", "S1-25")
def test_snapshots_stand_in_their_own_file(tmp_path: Path) -> None:
    records = converse(tmp_path)
    [snapshot] = lines(log_of(tmp_path).with_name("snapshots.jsonl"))
    assert snapshot["messageId"] == records[1]["uuid"]
    assert "uuid" not in snapshot
    assert snapshot["snapshot"]["trackedFiles"]["weather_app/index.html"] == {
        "originalContent": None,
        "contentHash": "abc123",
        "size": 0,
        "state": "created",
    }
    assert snapshot["snapshot"]["fileBackups"]["weather_app/style.css"]["originalHash"] == "def456"


@pytest.mark.seed("S1-4", "S1-46")
def test_the_todo_list_stays_as_it_was_until_it_is_stated_anew(tmp_path: Path) -> None:
    with Store(tmp_path).session("s") as session:
        session.user("one")
        session.assistant("two", todos=SEED_TODOS)
        session.results(ToolResult(tool_call_id="c", tool_name="t", content=""))
        session.assistant("three")
    with Store(tmp_path).session("s") as session:
        session.user("four, by another process")
        session.assistant("five", todos=[])
        session.user("six")
    counts = [len(record["todos"]) for record in lines(log_of(tmp_path)) if "todos" in record]
    assert counts == [0, 2, 2, 2, 0, 0]


@pytest.mark.seed("S1-2", "S1-36", "S1-19", "S1-10")
def test_each_message_says_where_it_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = tmp_path / "repository"
    (repository / "deep").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "-b", "tides", repository], check=True)
    monkeypatch.chdir(repository / "deep")
    with Store(tmp_path).session("s") as session:
        session.user("here")
        (repository / ".git" / "HEAD").write_text("ref: refs/heads/moon/new\n")
        time.sleep(0.003)
        session.user("the branch has changed")
        (repository / ".git" / "HEAD").write_text("0123456789012345678901234567890123456789\n")
        time.sleep(0.003)
        session.user("a commit is checked out")
        monkeypatch.chdir(tmp_path)
        session.user("elsewhere")
        session.user("given", context=Context(cwd="/moon", platform="luna"))
    contexts = [record["context"] for record in lines(log_of(tmp_path))]
    assert [context.get("gitBranch") for context in contexts] == ["tides", "moon/new", None, None, None]
    assert [context["cwd"] for context in contexts[2:]] == [str(repository / "deep"), str(tmp_path), "/moon"]
    assert contexts[0]["userType"] == "external"
    assert contexts[4] == {"cwd": "/moon", "platform": "luna"}


def test_a_worktree_has_its_own_branch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "HEAD").write_text("ref: refs/heads/side\n")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / ".git").write_text("gitdir: ../own\n")
    monkeypatch.chdir(tmp_path / "tree")
    with Store(tmp_path).session("s") as session:
        session.user("x")
    assert lines(log_of(tmp_path))[0]["context"]["gitBranch"] == "side"


@pytest.mark.seed("S0-48")
def test_appending_changes_no_earlier_byte(tmp_path: Path) -> None:
    session = Store(tmp_path).session("s")
    before = b""
    for number in range(20):
        session.user(f"message {number}")
        if number == 10:
            session.switch(session.path()[2])
        now = log_of(tmp_path).read_bytes()
        assert now.startswith(before)
        before = now


@pytest.mark.seed("S1-29")
def test_sessions_are_listed_the_last_first(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for name in ("one", "two", "three"):
        with store.session(name) as session:
            session.user(name)
    with store.session("one") as session:
        session.user("again")
    assert next(store.sessions()).id == "one"
    assert {session.id for session in store.sessions()} == {"one", "two", "three"}
    assert store.get("two").path() == store.get("two").path()
    with pytest.raises(UnknownReference):
        store.get("four")


def test_nothing_is_there_before_the_first_message(tmp_path: Path) -> None:
    with Store(tmp_path).session("s") as session:
        assert (session.path(), session.head, list(session.records()), session.branches()) == ([], None, [], [])
    assert not log_of(tmp_path).parent.exists()


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", "a\\b", "C:x", "a\0b", "a\nb", ".hidden", "x" * 300])
def test_R01_names_that_lead_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    store = Store(tmp_path)
    if not name:
        return
    with pytest.raises(UsageError):
        store.session(name)


def test_a_folder_called_dot_sage_is_meant_itself(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / ".sage"):
        with Store(place).session("s") as session:
            session.user("x")
    assert len(lines(log_of(tmp_path))) == 2


def test_a_message_of_known_id_is_not_written_twice(tmp_path: Path) -> None:
    with Store(tmp_path).session("s") as session:
        first = session.user("x", uuid="mine")
        session.user("y")
        again = session.user("x", uuid="mine")
    assert (first.seq, again.seq, first.written, again.written) == (1, 1, True, False)
    with Store(tmp_path).session("s") as session:
        assert not session.user("x", uuid="mine").written
    assert len(lines(log_of(tmp_path))) == 2


def test_S04_what_is_there_already_is_made_durable_before_it_is_acknowledged(tmp_path: Path) -> None:
    synced: list[int] = []

    class Noting(Quick):
        sync = staticmethod(synced.append)

    Store(tmp_path, durability="system").session("s").user("x", uuid="mine")
    again = Store(tmp_path, system=Noting()).session("s")
    assert not again.user("x", uuid="mine").written
    assert len(synced) == 1


def test_several_at_once_are_there_or_none(tmp_path: Path) -> None:
    session = Store(tmp_path).session("s")

    def draft(content: Any, parent: Any = msgspec.UNSET, uuid: str = "") -> Draft:
        return Draft(MessageRecord(type="user", uuid=uuid, message=MessageBody(role="user", content=content)), parent)

    receipts = session.extend([draft("a", uuid="a"), draft("b"), draft("c", parent="a"), draft("a", uuid="a")])
    assert [receipt.seq for receipt in receipts] == [1, 2, 3, 1]
    with pytest.raises(UsageError):
        session.extend([draft("d"), draft("e", parent="nobody")])
    with pytest.raises(UsageError):
        session.extend([draft("d"), draft("\ud800")])
    assert len(lines(log_of(tmp_path))) == 3
    assert session.user("f").seq == 4


@pytest.mark.parametrize(
    "options",
    [
        {"content": 5},
        {"content": "x", "parent": "nobody"},
        {"content": "x", "timestamp": "yesterday"},
        {"content": "x", "thinking": Thinking(level="ultra")},  # type: ignore[arg-type]
        {"content": "x", "todos": [TodoItem(content="x", status="done")]},  # type: ignore[arg-type]
        {"content": "x", "uuid": "a\nb"},
        {"content": "x\ud800"},
        {"content": [{"n": object()}]},
    ],
)
def test_what_readers_would_report_is_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    session = Store(tmp_path).session("s")
    session.user("before")
    with pytest.raises(UsageError):
        session.user(options.pop("content"), **options)
    session.user("behind")
    session.close()
    assert len(lines(log_of(tmp_path))) == 2
    assert_whole(tmp_path)


@pytest.mark.seed("S1-28")
def test_settings_come_from_the_configuration(tmp_path: Path) -> None:
    assert Store(tmp_path).settings.durability == "disk"
    config = tmp_path / ".sage" / "config.json"
    beginning = Store(tmp_path, system=Quick()).session("s")
    assert not config.exists()
    beginning.user("the first")
    beginning.close()
    assert json.loads(config.read_bytes()) == {"clew": {"store": 1}}
    config.write_text('{"theme": "dark", "clew": {"durability": "system", "lock_wait": 2, "later": 1}}')
    store = Store(tmp_path)
    assert (store.settings.durability, store.settings.lock_wait) == ("system", 2)
    assert Store(tmp_path, durability="disk").settings.durability == "disk"
    with store.session("s") as session:
        session.user("x")
    assert "theme" in config.read_text()
    for wrong in ("[]", "{", '{"clew": {"durability": "never"}}'):
        config.write_text(wrong)
        with pytest.raises(UsageError, match="config"):
            Store(tmp_path)


def test_redaction_happens_before_bytes_reach_the_disk(tmp_path: Path) -> None:
    def redact(record: dict[str, Any]) -> dict[str, Any]:
        text = json.dumps(record).replace("hunter2", "[REDACTED]")
        changed: dict[str, Any] = json.loads(text)
        return changed

    with Store(tmp_path, redact=redact).session("s") as session:
        session.assistant("the word is hunter2", calls=[ToolCall(id="a", name="b", arguments=["hunter2"])])
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"hunter2" not in path.read_bytes()


SECRET = Planter("todos").github()


def redacting(place: Path) -> Session:
    """A new handle, as a second process has it."""
    return Store(place, redact="secrets", system=Quick()).session("s")


def holding_secret(place: Path) -> list[str]:
    return [path.name for path in place.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]


@pytest.mark.parametrize("todos", [None, [], [TodoItem(content=f"use {SECRET}")]], ids=["none", "empty", "secret"])
def test_a_redacted_session_is_continued_by_other_handles(tmp_path: Path, todos: list[TodoItem] | None) -> None:
    with redacting(tmp_path) as session:
        session.user("one", todos=todos)
    with redacting(tmp_path) as session:
        session.assistant(f"two {SECRET}")
        with redacting(tmp_path) as other:
            other.user("three")
        session.extend([Draft(MessageRecord(type="user", uuid="", message=MessageBody(role="user", content="four")))])
        session.title(f"about {SECRET}")
    assert len(lines(log_of(tmp_path))) == 5
    assert holding_secret(tmp_path) == []
    assert {"one", "three", "four"} <= set(said(log_of(tmp_path)))
    assert_whole(tmp_path)


def test_the_todo_list_of_a_resumed_session_is_masked(tmp_path: Path) -> None:
    with Store(tmp_path, system=Quick()).session("s") as session:
        session.user("one", todos=[TodoItem(content=f"use {SECRET}", active_form=f"using {SECRET}")])
    with redacting(tmp_path) as session:
        session.user("two")
        session.assistant("three")
    first, *others = lines(log_of(tmp_path))
    assert SECRET in first["todos"][0]["content"]
    for record in others:
        (todo,) = record["todos"]
        assert SECRET not in json.dumps(todo)
        assert "REDACTED" in todo["content"] and "REDACTED" in todo["activeForm"]
        assert todo["status"] == "pending"


def test_a_todo_list_of_another_program_is_masked(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    log.parent.mkdir(parents=True)
    todos = {"later": [1, None, 2.5, {"text": SECRET}], "open": True}
    record = {"type": "user", "uuid": "a", "parentUuid": None, "message": {"role": "user", "content": "x"}}
    log.write_text(json.dumps({**record, "todos": todos}) + "\n")
    with redacting(tmp_path) as session:
        session.user("two")
    stated = lines(log)[1]["todos"]
    assert SECRET not in json.dumps(stated)
    assert stated["later"][:3] == [1, None, 2.5] and stated["open"] is True


def test_undo_and_redo_work_under_redaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    (work / "a").write_text("before\n")
    with Store(tmp_path, system=Quick()).session("s") as session:
        session.user("one", todos=[TodoItem(content=f"use {SECRET}")])
    with redacting(tmp_path) as session, session.watch(session.assistant("two"), ["a"]):
        (work / "a").write_text("after\n")
    with redacting(tmp_path) as session:
        session.undo()
        assert (work / "a").read_text() == "before\n"
    with redacting(tmp_path) as session:
        session.redo()
        assert (work / "a").read_text() == "after\n"
    with redacting(tmp_path) as session:
        session.user("three")
    with redacting(tmp_path) as session:
        session.switch(session.path()[0])
        session.user("four")
    _, *others = log_of(tmp_path).read_text().splitlines()
    assert [number for number, line in enumerate(others) if SECRET in line] == []
    assert_whole(tmp_path)


def test_records_are_followed_as_they_come(tmp_path: Path) -> None:
    session = Store(tmp_path).session("s")
    other = Store(tmp_path).session("s")
    session.user("one")
    following = other.follow(poll=0.001, patience=0.3)
    assert next(following)["message"]["content"] == "one"
    session.user("two")
    with log_of(tmp_path).open("ab") as torn:
        torn.write(b'{"type":"user","half')
    assert next(following)["message"]["content"] == "two"
    session.user("three")
    assert [record["message"]["content"] for record in following] == ["three"]
    assert [record["message"]["content"] for record in other.follow(after=2, patience=0)] == ["three"]


def test_a_title_is_a_record_and_stands_in_the_list(tmp_path: Path) -> None:
    with Store(tmp_path).session("s") as session:
        session.user("one")
        session.title("About the tide")
        session.user("two")
    assert_whole(tmp_path)
    [found] = Library(Host.at(tmp_path)).sources()
    assert found.header.title == "About the tide"
    first, title, second = lines(log_of(tmp_path))
    assert second["parentUuid"] == title["parentUuid"] == first["uuid"]


@pytest.mark.seed("S1-50", "S1-52")
def test_a_log_of_another_program_is_continued(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    log.parent.mkdir(parents=True)
    foreign = (
        b'{"role":"user","content":"an old message","timestamp":"2026-01-01T00:00:00Z"}\n'
        b'{"type":"user","uuid":"u","timestamp":"2026-01-01T00:00:01Z","sessionId":"s","message":{"role":"user",'
        b'"content":"of the program"}}\n{"type":"later_kind","what":1}\n'
    )
    log.write_bytes(foreign)
    with Store(tmp_path).session("s") as session:
        receipt = session.assistant("an answer")
    assert receipt.seq == 4
    assert log.read_bytes().startswith(foreign)
    assert lines(log)[3]["parentUuid"] == "u"
    assert session.metadata["messageCount"] == 4


@pytest.mark.seed("S1-53", "S1-50")
def test_an_old_session_goes_on_in_the_new_form_and_stays_one_conversation(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    log.parent.mkdir(parents=True)
    call = {"id": "c", "name": "ls", "arguments": {}}
    result = {"tool_call_id": "c", "tool_name": "ls", "content": "x", "success": True, "error": None}
    old = [
        {"role": "user", "content": "one", "timestamp": "2026-01-11T22:00:00Z"},
        {"role": "assistant", "content": "two", "timestamp": "2026-01-11T22:00:01Z", "tool_calls": [call]},
        {"role": "tool", "content": "", "timestamp": "2026-01-11T22:00:02Z", "tool_results": [result]},
    ]
    log.write_text("".join(json.dumps(record) + "\n" for record in old))
    before = log.read_bytes()
    with Store(tmp_path).session("s") as session:
        first = session.assistant("four")
        second = session.user("five")
        assert (first.seq, second.seq) == (4, 5)
        assert len(session.path()) == 5
        assert [record.get("content") for record in session.messages()] == ["one", "two", "", None, None]
        assert [branch.messages for branch in session.branches()] == [5]
    assert log.read_bytes().startswith(before)
    assert [record["type"] for record in lines(log)[3:]] == ["assistant", "user"]
    [found] = Library(Host.at(tmp_path)).sources()
    assert len(found.facts.tree.path) == 5
    assert [message.uuid for message in found.messages] == session.path()
    assert list(found.problems()) == []
    assert session.metadata["messageCount"] == 5


@pytest.mark.seed("S1-53")
def test_it_may_branch_off_what_was_said_in_the_old_form(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    log.parent.mkdir(parents=True)
    words = [("user", "one"), ("assistant", "two"), ("user", "three")]
    log.write_text("".join(json.dumps({"role": role, "content": text}) + "\n" for role, text in words))
    with Store(tmp_path).session("s") as session:
        session.user("otherwise", parent=session.path()[1])
        assert [branch.messages for branch in session.branches()] == [3, 1]
        assert len(session.path()) == 3
        session.switch("main")
        session.user("four")
        assert len(session.path()) == 4


def test_a_word_that_no_message_has_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="no colour"):
        Store(tmp_path).session("s").user("x", colour="red")  # type: ignore[call-arg]


@pytest.mark.seed("S1-55")
def test_the_public_name_leads_here() -> None:
    assert clew.Store is Store
