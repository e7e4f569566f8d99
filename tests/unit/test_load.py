"""Documents of any minor version load as typed values and come back whole."""

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from clew.errors import InvalidDocument
from clew.model import SCHEMA_VERSION, Document, Image, Text, Thinking, ToolResult, ToolUse, Unknown
from clew.model.load import dump_document, load_document, migrate
from tests.unit.samples import Record, seed

EXAMPLE: Record = seed("seed-002/example-document")


def example(**changes: Any) -> Record:
    return deepcopy(EXAMPLE) | changes


def again(document: Record) -> Any:
    return json.loads(dump_document(load_document(document)))


def reason(document: Any) -> str:
    with pytest.raises(InvalidDocument) as caught:
        load_document(document)
    return str(caught.value)


@pytest.mark.seed("S2-46", "S2-8", "S2-12")
def test_the_example_comes_back_unchanged() -> None:
    assert again(EXAMPLE) == EXAMPLE
    assert again(seed("seed-002/graph")) == seed("seed-002/graph")


@pytest.mark.seed("S2-46", "S2-10")
def test_the_example_re_exported_differs_in_its_time_only() -> None:
    document = load_document(json.dumps(EXAMPLE).encode())
    document.export_timestamp = "2026-11-01T00:00:00Z"
    assert json.loads(dump_document(document)) == EXAMPLE | {"export_timestamp": "2026-11-01T00:00:00Z"}


@pytest.mark.seed("S2-23", "S2-24", "S2-25", "S2-26", "S2-27", "S2-28", "S2-32")
def test_messages_are_typed() -> None:
    document = load_document(EXAMPLE)
    first, second, third = document.messages
    assert [message.index for message in document.messages] == [1, 2, 3]
    assert (first.uuid, first.parent_uuid, first.role) == ("msg-001", None, "user")
    assert first.timestamp == "2025-12-27T09:00:00Z"
    assert [type(block) for block in second.content] == [Text, ToolUse]
    assert third.metadata is UNSET
    bare = load_document(example(messages=[{"index": 1, "role": "system", "content": []}])).messages[0]
    assert bare.uuid is bare.parent_uuid is bare.timestamp is UNSET


@pytest.mark.seed("S2-29", "S2-30", "S2-31", "S2-33")
def test_blocks_are_typed() -> None:
    blocks = [
        *seed("seed-002/blocks"),
        {"type": "thinking", "thinking": "hm", "signature": "Eu0B"},
        {"type": "image", "media_type": "image/png", "encoding": "base64", "image": "aGk="},
        {"type": "document", "media_type": "application/pdf", "encoding": "base64", "document": "aGk=", "title": None},
        {"type": "unknown", "value": {"type": "server_tool_use", "n": 1}},
    ]
    document = example(messages=[{"index": 1, "role": "user", "content": blocks}])
    loaded = load_document(document).messages[0].content
    assert [type(block) for block in loaded[:5]] == [Text, ToolUse, ToolResult, Thinking, Image]
    assert again(document)["messages"][0]["content"] == blocks


@pytest.mark.seed("S2-34", "S2-35", "S2-36", "S2-37")
def test_metadata_is_typed() -> None:
    stated = seed("seed-002/metadata")
    message = {"index": 1, "role": "assistant", "content": [], "metadata": stated}
    metadata = load_document(example(messages=[message])).messages[0].metadata
    assert metadata is not UNSET
    assert (metadata.cwd, metadata.git_branch, metadata.agent_version) == ("/home/user/myproject", "main", "1.0.29")
    assert (metadata.user_type, metadata.is_meta, metadata.request_id) == ("external", False, "req_abc123")
    assert metadata.model is not UNSET
    assert metadata.model.stop_sequence is None
    assert metadata.token_usage is not UNSET
    assert metadata.token_usage.cache_read_tokens == 1200
    assert again(example(messages=[message]))["messages"] == [message]


@pytest.mark.seed("S2-13", "S2-14", "S2-15", "S2-17", "S2-18", "S2-19", "S2-20")
def test_the_example_session_and_message_come_back() -> None:
    document = example(session=seed("seed-002/session"), messages=[seed("seed-002/message")])
    assert again(document) == document
    session = load_document(document).session
    assert (session.id, session.source.type, session.source.host) == ("abc123-def456", "local", None)
    document["session"]["source"] = {"type": "wsl", "host": "Ubuntu", "path": "/home/ada/x.jsonl"}
    assert load_document(document).session.source.host == "Ubuntu"


@pytest.mark.seed("S2-9", "S2-47")
@pytest.mark.parametrize("version", ["1.0", "1.0.0", "1.1", "1.1.3", "1.7"])
def test_every_minor_version_loads(version: str) -> None:
    assert again(example(schema_version=version)) == example(schema_version=version)


@pytest.mark.seed("S2-47")
def test_another_major_version_is_refused_with_both_versions() -> None:
    text = reason(example(schema_version="2.0"))
    assert "2.0" in text
    assert SCHEMA_VERSION in text


NEWER: Record = {
    "new": {"a": [1, None]},
    "session": {"new": 1, "source": {"new": 2}, "subagents": [{"agent_id": "x", "new": 3}]},
    "message": {"new": "m", "extensions": {"claude-code": {"rest": {"k": 1}}}},
    "metadata": {"new": True, "model": {"new": 4}, "token_usage": {"new": 5}, "todos": [{"content": "a", "new": 6}]},
    "block": {"type": "text", "text": "t", "new": [7]},
}


def newer() -> Record:
    document = example(schema_version="1.7", new=NEWER["new"])
    document["session"] |= {"new": 1, "subagents": [{"session_id": None, "agent_id": "x", "tool_id": None, "new": 3}]}
    document["session"]["source"]["new"] = 2
    document["messages"][0] |= NEWER["message"] | {"metadata": NEWER["metadata"]}
    document["messages"][0]["content"] = [
        NEWER["block"],
        {"type": "hologram", "voxels": [1]},
        {"type": "text", "text": "u"},
    ]
    tracked = {"a.py": {"state": "modified", "new": 8}}
    document["records"] = [{"after": 1, "kind": "snapshot", "new": 9, "snapshot": {"files": tracked, "new": 10}}]
    document["graph"]["new"] = 11
    document["graph"]["fork_points"] = [
        {"uuid": "msg-001", "index": 1, "branches": [{"uuid": "x", "index": 2, "new": 12}]}
    ]
    document["extensions"] = {"clew": {"mine": 1}}
    return document


@pytest.mark.seed("S2-5", "S2-47", "S2-51")
def test_fields_of_a_newer_version_survive_at_every_level() -> None:
    before = newer()
    document = load_document(before)
    assert before == newer()
    assert json.loads(dump_document(document)) == before
    assert json.loads(dump_document(document)) == before, "dumping must not use anything up"


@pytest.mark.seed("S2-5")
def test_kept_fields_can_be_seen_in_the_extensions() -> None:
    message = load_document(newer()).messages[0]
    assert message.extensions is not UNSET
    kept = message.extensions["clew"]["fields"]
    assert {"at": [], "values": {"new": "m"}} in kept
    assert {"at": ["metadata", "token_usage"], "values": {"new": 5}} in kept
    assert {"at": ["metadata", "todos", 0], "values": {"new": 6}} in kept
    assert isinstance(message.content[1], Unknown)
    assert message.content[1].value == {"type": "hologram", "voxels": [1]}


def test_a_changed_document_keeps_what_still_has_a_place() -> None:
    document = load_document(newer())
    document.messages[0].metadata = UNSET
    dumped = json.loads(dump_document(document))
    assert dumped["messages"][0]["new"] == "m"
    lost = dumped["messages"][0]["extensions"]["clew"]["fields"]
    assert {"at": ["metadata"], "values": {"new": True}} in lost


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
EXTRA = st.dictionaries(st.text(max_size=6).map("x_".__add__), JSON_VALUES, max_size=3)


@pytest.mark.seed("S2-5")
@given(EXTRA, EXTRA, EXTRA, EXTRA, EXTRA)
def test_any_unknown_fields_survive(top: Record, session: Record, message: Record, block: Record, deep: Record) -> None:
    document = example() | top
    document["session"] |= session
    document["messages"][1] |= message
    document["messages"][1]["content"][0] |= block
    document["messages"][1]["metadata"]["token_usage"] |= deep
    assert again(document) == document


@pytest.mark.seed("S2-9", "S2-10", "S2-11", "S2-12", "S2-13", "S2-14", "S2-15", "S2-16", "S2-19")
@pytest.mark.parametrize("name", ["schema_version", "export_timestamp", "agent", "session", "messages"])
def test_required_fields_of_the_document(name: str) -> None:
    document = example()
    del document[name]
    text = reason(document)
    assert text.startswith("$")
    assert f"`{name}`" in text


@pytest.mark.seed("S2-13", "S2-14", "S2-15", "S2-16", "S2-17", "S2-19", "S2-20")
@pytest.mark.parametrize(
    "name", ["id", "workspace", "workspace_encoded", "started_at", "ended_at", "source", "is_agent_session"]
)
def test_required_fields_of_the_session(name: str) -> None:
    document = example()
    del document["session"][name]
    assert reason(document) == f"$.session: object missing required field `{name}`"


@pytest.mark.seed("S2-17", "S2-23", "S2-25", "S2-27", "S2-11")
@pytest.mark.parametrize(
    ("place", "value", "path"),
    [
        (("messages", 0, "role"), "tool", "$.messages[0].role"),
        (("messages", 0, "content"), "text", "$.messages[0].content"),
        (("messages", 0, "index"), 0, "$.messages[0].index"),
        (("messages", 0, "index"), "1", "$.messages[0].index"),
        (("messages", 0, "content", 0), {"text": "no type"}, "$.messages[0].content[0]"),
        (("messages", 0, "content", 0), 3, "$.messages[0].content[0]"),
        (
            ("messages", 1, "metadata", "token_usage", "input_tokens"),
            "many",
            "$.messages[1].metadata.token_usage.input_tokens",
        ),
        (("session", "source", "type"), "moon", "$.session.source.type"),
        (("session", "id"), None, "$.session.id"),
        (("agent",), "Claude Code", "$.agent"),
        (("extensions",), [], "$.extensions"),
        (("graph", "active_path"), None, "$.graph.active_path"),
    ],
)
def test_ill_typed_values_are_refused_with_their_place(place: tuple[Any, ...], value: Any, path: str) -> None:
    document = example()
    target = document
    for step in place[:-1]:
        target = target[step]
    target[place[-1]] = value
    assert reason(document).startswith(f"{path}: ")


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"null", b'"\\ud800"', b"[" * 100_000, b"\xff{}"])
def test_what_is_no_document_is_refused(text: bytes) -> None:
    assert reason(text).startswith("$: ")


@pytest.mark.parametrize("version", [None, 1, "one", "", "1", "1.x", [1]])
def test_what_is_no_version_is_refused(version: Any) -> None:
    assert "no version" in reason(example(schema_version=version))


@pytest.mark.seed("S2-7")
def test_a_byte_order_mark_is_read_and_not_written() -> None:
    document = load_document(b"\xef\xbb\xbf" + json.dumps(EXAMPLE).encode())
    assert dump_document(document).startswith(b"{")


def test_our_own_extension_must_be_ours() -> None:
    assert "extensions.clew" in reason(example(new=1, extensions={"clew": 3}))
    assert again(example(extensions={"clew": 3})) == example(extensions={"clew": 3})


@pytest.mark.seed("S2-48")
def test_documents_migrate_forward_only() -> None:
    old = load_document(EXAMPLE)
    new = migrate(old)
    assert (old.schema_version, new.schema_version) == ("1.0", SCHEMA_VERSION)
    assert json.loads(dump_document(new)) == EXAMPLE | {"schema_version": SCHEMA_VERSION}
    assert migrate(new, "1.2") == new
    for document, to in (
        (new, "1.0"),
        (new, "1.3"),
        (load_document(example(schema_version="1.7")), "1.2"),
        (new, "2.0"),
    ):
        with pytest.raises(InvalidDocument, match=to):
            migrate(document, to)


@pytest.mark.seed("S2-48")
def test_readers_can_branch_on_the_version() -> None:
    assert isinstance(load_document(example(schema_version="1.4")), Document)
    assert load_document(example(schema_version="1.4")).schema_version == "1.4"
