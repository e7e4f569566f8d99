"""Sessions of other agents, written for Gemini CLI: read back, they say the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.agents import registry
from clew.agents.base import Header
from clew.agents.gemini.target_profile import TARGET_PROFILE
from clew.convert.prepare import prepare
from clew.model.json import JSON
from clew.model.unit import Unit
from tests.agents.gemini_worlds import (
    AGENT,
    EVENTS,
    HASH,
    ROOT,
    Record,
    active,
    gemini,
    header,
    log,
    opened,
    replaced,
    rewind,
    user,
)
from tests.agents.gemini_worlds import SESSION as SESSION_ID
from tests.agents.gemini_worlds import call as native_call
from tests.agents.gemini_worlds import document as native_document
from tests.roundtrip import composed_files, document_of, header_of

Message = dict[str, JSON]
ID = "3f6d0a52-9c1b-4e87-b5d2-70a4e8c91f36"
SESSION: Message = {
    "id": ID,
    "workspace": ROOT,
    "workspace_encoded": "",
    "started_at": "2026-10-20T09:14:00Z",
    "ended_at": "2026-10-20T10:00:00.500Z",
    "title": "Bells",
    "is_agent_session": False,
}


def text(words: str) -> Message:
    return {"type": "text", "text": words}


def use(id: str, name: str = "Bash") -> Message:
    return {"type": "tool_use", "tool_id": id, "tool_name": name, "input": {"command": "ls"}}


def result(id: str, output: JSON = "a\nb", **more: JSON) -> Message:
    return {"type": "tool_result", "tool_id": id, "tool_name": "Bash", "output": output, **more}


def said(role: str, *blocks: Message, **metadata: JSON) -> Message:
    return {"role": role, "content": list(blocks), "timestamp": "2026-10-20T09:20:00.000Z", "metadata": metadata}


def composed(folder: Path, *messages: Message, session: Message = SESSION) -> Path:
    """Written below a folder as `convert` does it."""
    numbered = ({"index": index, "uuid": f"m{index}", **message} for index, message in enumerate(messages, 1))
    units = (Unit(True, message, 0, 0, 0, ()) for message in numbered)
    head = Header("1.1", "2026-11-01T00:00:00Z", "gemini", session, {})
    path = folder / AGENT.target(head)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(piece for name, piece in AGENT.encode(head, units) if not name))
    return path


def lines(path: Path) -> list[Message]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.mark.parametrize("time", ["2026-10-20T09:20:00.000Z", None])
def test_calls_without_an_id_get_different_ones(tmp_path: Path, time: str | None) -> None:
    unnamed: Message = {"type": "tool_use", "tool_id": None, "tool_name": "Bash", "input": {}}
    messages = [{**said("assistant", unnamed, unnamed), "timestamp": time} for _ in range(2)]
    replies = [line for line in lines(composed(tmp_path, *messages)) if line.get("type") == "gemini"]
    ids = [call["id"] for reply in replies for call in reply["toolCalls"]]
    assert len(ids) == len(set(ids)) == 4


@pytest.mark.seed("S3-32")
def test_a_conversation_reads_back_as_it_was(tmp_path: Path) -> None:
    usage = {"input_tokens": 60, "output_tokens": 10, "cache_read_tokens": 40, "reasoning_tokens": 3}
    path = composed(
        tmp_path,
        said("user", text("List.")),
        said(
            "assistant",
            {"type": "thinking", "thinking": "Hm."},
            text("I list."),
            use("t1"),
            use("t2"),
            model={"name": "claude-opus"},
            token_usage=usage,
        ),
        said("user", result("t1"), result("t2", "no", is_error=True)),
        said("assistant", text("Two files.")),
    )
    assert path.relative_to(tmp_path).as_posix() == ".gemini/tmp/bell/chats/session-2026-10-20T09-14-3f6d0a52.jsonl"
    first = lines(path)[0]
    assert (first["sessionId"], first["projectHash"], first["kind"]) == (ID, HASH, "main")
    assert lines(path)[2]["tokens"] == {
        "input": 100,
        "output": 7,
        "cached": 40,
        "thoughts": 3,
        "tool": 0,
        "total": 110,
    }
    found = document_of(AGENT, path)
    assert [(message["role"], [block["type"] for block in message["content"]]) for message in found["messages"]] == [
        ("user", ["text"]),
        ("assistant", ["thinking", "text", "tool_use", "tool_use"]),
        ("user", ["tool_result", "tool_result"]),
        ("assistant", ["text"]),
    ]
    results = found["messages"][2]["content"]
    assert [(block["tool_id"], block["output"], block["is_error"]) for block in results] == [
        ("t1", "a\nb", False),
        ("t2", "no", True),
    ]
    assert found["messages"][1]["metadata"]["token_usage"] == usage
    assert found["session"]["title"] == "Bells"
    assert not [problem for problem in opened(path).problems() if problem.severity != "note"]


def test_results_that_come_one_by_one_find_their_calls(tmp_path: Path) -> None:
    path = composed(
        tmp_path,
        said("assistant", use("t1"), message_id="x", token_usage={"input_tokens": 5, "output_tokens": 1}),
        said("assistant", use("t2"), message_id="x", token_usage={"input_tokens": 5, "output_tokens": 9}),
        said("user", result("t2", "two")),
        said("user", result("t1", "one"), text("And?")),
        said("assistant", text("Well.")),
    )
    records = [line for line in lines(path) if "id" in line]
    assert [record["type"] for record in records] == ["gemini", "gemini", "user", "gemini"]
    outputs = [
        call["result"][0]["functionResponse"]["response"]["output"] for r in records[:2] for call in r["toolCalls"]
    ]
    assert outputs == ["one", "two"]
    assert [record["tokens"] for record in records[:2]] == [
        None,
        {"input": 5, "output": 9, "cached": 0, "thoughts": 0, "tool": 0, "total": 14},
    ]


def test_a_call_without_an_answer_is_cancelled(tmp_path: Path) -> None:
    path = composed(tmp_path, said("assistant", use("t1")), said("user", text("Stop.")))
    (call,) = lines(path)[1]["toolCalls"]
    assert call["status"] == "cancelled"
    assert "error" in call["result"][0]["functionResponse"]["response"]


def test_pictures_go_over(tmp_path: Path) -> None:
    picture = {"type": "image", "media_type": "image/png", "encoding": "base64", "image": "aGk="}
    path = composed(
        tmp_path,
        said("user", text("See"), picture),
        said("assistant", use("t1")),
        said("user", result("t1", [text("seen"), picture])),
    )
    messages = document_of(AGENT, path)["messages"]
    assert messages[0]["content"][1] == picture
    assert messages[2]["content"][0]["output"] == [text("seen"), picture]


def test_a_subagent_goes_below_its_parent(tmp_path: Path) -> None:
    session = {**SESSION, "is_agent_session": True, "parent_session_id": "p/1"}
    path = composed(tmp_path, said("user", text("Check.")), session=session)
    assert path.relative_to(tmp_path).as_posix() == f".gemini/tmp/bell/chats/p_1/{ID}.jsonl"
    assert opened(path).session_object["is_agent_session"] is True


@pytest.mark.parametrize("title", [None, ""])
def test_sparse_messages_are_written(tmp_path: Path, title: str | None) -> None:
    session = {**SESSION, "title": title, "started_at": None, "ended_at": None}
    bare: list[Message] = [
        {"role": "user", "content": [text("Hi")], "uuid": None},
        {"role": "assistant", "content": [{"type": "tool_use", "tool_id": None, "tool_name": None, "input": "x"}]},
        {"role": "system", "content": [text("Note.")]},
        {"role": "user", "content": [result("nobody", {"a": 1})]},
        {"role": "user", "content": []},
    ]
    path = composed(tmp_path, *bare, session=session)
    assert [record["type"] for record in lines(path) if "id" in record] == ["user", "gemini", "info", "user"]
    assert path.name == "session-2026-11-01T00-00-3f6d0a52.jsonl"


def test_the_client_is_told_where_the_project_is() -> None:
    header_of = Header("1.1", "", "gemini", SESSION, {})
    files = dict(TARGET_PROFILE.register(header_of, lambda _: None))
    assert json.loads(files[".gemini/projects.json"]) == {"projects": {ROOT: "bell"}}
    assert files[".gemini/tmp/bell/.project_root"] == files[".gemini/history/bell/.project_root"] == ROOT.encode()
    assert dict(TARGET_PROFILE.register(header_of, files.get)) == {}
    assert TARGET_PROFILE.resume(SESSION) == ["gemini", "--resume", ID]


def copied(path: Path, folder: Path) -> Path:
    """A session of Gemini CLI under a new id."""
    written = prepare(AGENT, AGENT.locate(path), AGENT.id, with_original=False).write(folder, allow_loss=True)
    return Path(written.files[0])


def contents(path: Path) -> dict[JSON, JSON]:
    return {message["uuid"]: message["content"] for message in document_of(AGENT, path)["messages"]}


def test_a_session_under_a_new_id_replays_to_the_same_list(tmp_path: Path) -> None:
    compressed = {"$set": {"messages": [user("s", "So far."), user("c", "anew", sessionId=SESSION_ID)]}}
    records = [
        {"odd": True},
        user("a", sessionId=SESSION_ID),
        gemini("b", toolCalls=[native_call("t")]),
        rewind("b"),
        user("c"),
        compressed,
        gemini("d"),
        user("a", "back"),
    ]
    path = log(tmp_path, header(), *records)
    written = copied(path, tmp_path / "copy")
    assert active(written) == active(path)
    assert contents(written) == contents(path)
    assert SESSION_ID not in written.read_text()
    new_id = AGENT.session_id(AGENT.locate(written))
    assert lines(written)[0] == {**header(), "sessionId": new_id}
    assert written.name == f"session-2026-10-20T09-14-{new_id[:8]}.jsonl"


@pytest.mark.parametrize(
    "records",
    [
        [user("b"), user("c"), rewind("c"), user("c")],
        [user("b"), rewind("z"), user("b"), user("d"), user("b")],
        [replaced(user("b"), user("c")), rewind("c"), user("c")],
        [user("a"), user("b"), rewind("a"), user("a"), user("d"), user("a")],
    ],
)
def test_a_message_written_again_after_a_rewind_keeps_its_place(tmp_path: Path, records: list[Record]) -> None:
    path = log(tmp_path, header(), *records)
    written = copied(path, tmp_path / "copy")
    assert active(written) == active(path)
    assert contents(written) == contents(path)


@pytest.mark.slow
@given(st.lists(EVENTS, max_size=12))
def test_any_copy_replays_to_the_same_list(tmp_path_factory: pytest.TempPathFactory, events: list[Record]) -> None:
    path = log(tmp_path_factory.mktemp("log"), header(), user("first"), *events)
    written = copied(path, tmp_path_factory.mktemp("copy"))
    assert active(written) == active(path)
    assert contents(written).keys() == contents(path).keys()


def test_a_document_under_a_new_id_becomes_a_log(tmp_path: Path) -> None:
    nameless = {"type": "user", "content": "Hi"}
    path = native_document(tmp_path, nameless, gemini("b", toolCalls=[native_call("t")]), kind="main")
    written = copied(path, tmp_path / "copy")
    assert written.suffix == ".jsonl"
    assert contents(written) == contents(path)
    assert [len(line) for line in lines(written)] == [5, 3, 5]


def test_a_copy_of_a_session_without_a_header_has_one(tmp_path: Path) -> None:
    written = copied(log(tmp_path, user("a"), gemini("b")), tmp_path / "copy")
    new_id = AGENT.session_id(AGENT.locate(written))
    assert [line.get("sessionId") for line in lines(written)] == [new_id, None, None]
    assert new_id != SESSION_ID


@pytest.mark.parametrize(
    ("branch", "expected"), [("d", ["a", "b", "c", "d"]), ("f", ["a", "b", "e", "f"]), (None, ["a", "b", "e", "f"])]
)
def test_a_branch_goes_over_without_the_rewinds(tmp_path: Path, branch: str | None, expected: list[str]) -> None:
    records = [user("a"), gemini("b"), user("c"), gemini("d"), rewind("c"), user("e"), gemini("f")]
    path = log(tmp_path, header(), *records)
    found = prepare(AGENT, AGENT.locate(path), "gemini", branch).write(tmp_path / "home", allow_loss=True)
    assert active(Path(found.files[0])) == expected


@pytest.mark.parametrize(("branch", "expected"), [("b", ["a", "b"]), ("e", ["s", "c", "d", "e"])])
def test_a_branch_goes_over_without_the_compression(tmp_path: Path, branch: str, expected: list[str]) -> None:
    records = [user("a"), gemini("b"), user("c"), gemini("d"), replaced(user("s"), user("c"), gemini("d")), user("e")]
    path = log(tmp_path, header(), *records)
    found = prepare(AGENT, AGENT.locate(path), "gemini", branch).write(tmp_path / "home", allow_loss=True)
    assert active(Path(found.files[0])) == expected


def test_rewinds_are_composed_with_the_messages_of_a_document(tmp_path: Path) -> None:
    records = [user("a"), gemini("b", toolCalls=[native_call("t")]), user("c"), rewind("c"), user("d")]
    path = log(tmp_path, header(), *records)
    document = document_of(AGENT, path)
    again = tmp_path / "again" / ".gemini" / "tmp" / "bell" / "chats" / path.name
    again.parent.mkdir(parents=True)
    again.write_bytes(composed_files(AGENT, document)[""])
    assert active(again) == active(path) == ["a", "b", "d"]
    assert contents(again) == contents(path)


def test_its_own_sessions_go_back_to_their_places(tmp_path: Path) -> None:
    path = log(tmp_path, header(), user("a"))
    assert tmp_path / AGENT.target(header_of(document_of(AGENT, path))) == path


def test_every_agent_of_the_demo_can_be_written(tmp_path: Path, demo_sessions: list[tuple[str, Path]]) -> None:
    for name, path in demo_sessions:
        source = document_of(registry.get(name), path)
        if not source["messages"]:
            continue
        session = {**source["session"], "id": ID}
        written = composed(tmp_path / str(abs(hash(path))), *source["messages"], session=session)
        document_of(AGENT, written)
        assert not [p for p in opened(written).problems() if p.code in ("malformed-json", "wrong-type", "unknown-type")]


@pytest.fixture
def demo_sessions() -> list[tuple[str, Path]]:
    home = Path(__file__).resolve().parents[2] / "src" / "clew" / "demo" / "home"
    claude = [("claude-code", path) for path in sorted((home / "claude" / "projects").rglob("*.jsonl"))]
    return [*claude, *(("sage-agent", path) for path in sorted((home / "sage").rglob("messages.jsonl")))]
