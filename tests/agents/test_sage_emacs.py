"""sage-emacs: every version of its records is read, checked, and comes back byte for byte."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.agents.base import Agent, Claim, SourceFile
from clew.agents.sage_emacs import SageEmacs
from clew.host import Host
from clew.io.paths import encode, same_project
from clew.model import Document, Problem
from clew.model.json import JSON
from clew.testing import AgentConformance
from tests.json_values import Line, records, spell, words
from tests.roundtrip import document_of, header_of, original, round_trip

ROOT = Path(__file__).resolve().parents[2]
SEED = ROOT / "tests" / "fixtures" / "seeds" / "seed-000"
DEMO = ROOT / "src" / "clew" / "demo" / "home" / "emacs.d" / "sage" / "projects"
AGENT = SageEmacs()

KEYS = words("""
    role content timestamp uuid session_id sessionId parentUuid tool_calls name args result duration_ms success id
    tokens estimated usage input_tokens output_tokens tool_call_id cwd type text model
""")
WORDS = ["user", "assistant", "system", "tool", "text"]


def seed(name: str) -> JSON:
    return json.loads((SEED / name).read_text(encoding="utf-8"))


def write(path: Path, *lines: JSON) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(spell(line, 0) for line in lines))
    return path


def conversation(tmp_path: Path, *lines: JSON) -> Path:
    return write(tmp_path / "projects" / "-home-ada-x" / "conversation.jsonl", *lines)


def message(role: str = "user", content: JSON = "Hello.", **more: JSON) -> dict[str, JSON]:
    return {"role": role, "content": content, "timestamp": "2026-01-11T22:00:00Z", **more}


def sources(home: Path) -> list[SourceFile]:
    return [source for root in AGENT.roots(Host.at(home)) for source in AGENT.discover(root)]


def problems(path: Path) -> list[Problem]:
    source = AGENT.locate(path)
    return list(AGENT.check(source, AGENT.facts(source)))


def codes(found: Iterable[Problem]) -> list[str]:
    return [problem.code for problem in found]


def project_files(folder: Path) -> list[Path]:
    return [source.path for source in AGENT.discover(folder)]


# Places


@pytest.mark.seed("S0-1", "S0-40")
def test_every_preset_is_found_without_options(home: Path) -> None:
    for base in (".emacs.d/sage", ".config/emacs/sage", ".sage", ".claude"):
        write(home / base / "projects" / "-p" / "conversation.jsonl", message())
        write(home / base / "projects" / "-p" / "history" / "20260110-120000.jsonl", message())
    names = [source.path.relative_to(home).as_posix() for source in sources(home)]
    assert len(names) == 8
    assert names[:2] == [
        ".emacs.d/sage/projects/-p/conversation.jsonl",
        ".emacs.d/sage/projects/-p/history/20260110-120000.jsonl",
    ]


def test_folders_of_other_agents_are_not_claimed(home: Path) -> None:
    write(home / ".claude" / "projects" / "-p" / "0b8c.jsonl", {"type": "user", "uuid": "u"})
    write(home / ".claude" / "projects" / "-p" / "history" / "x.jsonl", {"type": "user", "uuid": "u"})
    write(home / ".sage" / "projects" / "p" / "0b8c.jsonl", {"type": "session_start"})
    assert sources(home) == []


def test_an_archive_without_a_conversation_is_found(tmp_path: Path) -> None:
    write(tmp_path / "-p" / "history" / "kept.jsonl", message())
    (tmp_path / "-p" / "metadata.json").write_text("{}")
    assert [path.name for path in project_files(tmp_path)] == ["kept.jsonl"]


@pytest.mark.parametrize(
    ("name", "head", "claim"),
    [
        ("-p/conversation.jsonl", b'{"role":"user","content":"x"}\n', Claim.YES),
        ("-p/conversation.jsonl", b'{"content":"' + b"x" * 100, Claim.YES),
        ("-p/conversation.jsonl", b"", Claim.MAYBE),
        ("-p/conversation.jsonl", b'{"type":"user","message":{"role":"user"}}\n', Claim.NO),
        ("-p/history/old.jsonl", b'{"role":"user","content":"x"}\n', Claim.YES),
        ("elsewhere.jsonl", b'{"role":"user","content":"x"}\n', Claim.MAYBE),
        ("elsewhere.jsonl", b'{"role":"_system_prompt","content":"x"}\n', Claim.NO),
        ("elsewhere.jsonl", b'{"role":"user","message":{"content":[]}}\n', Claim.NO),
        ("s/messages.jsonl", b'{"role":"user","content":"x"}\n', Claim.NO),
        ("notes.txt", b'{"role":"user","content":"x"}\n', Claim.NO),
    ],
)
def test_claims_go_by_content(name: str, head: bytes, claim: Claim) -> None:
    assert AGENT.claims(Path(name), head) is claim


@pytest.mark.seed("S0-3", "S0-4", "S0-5")
@pytest.mark.parametrize("row", seed("encodings.json"), ids=lambda row: row["path"])
def test_the_encoding_table_holds(row: dict[str, str]) -> None:
    assert encode(row["path"], "sage-legacy") == row["sage"]
    assert encode(row["path"], "claude-seed") == row["claude"]
    assert encode(row["path"], "claude-code") == row["claude"]


@pytest.mark.seed("S0-7")
@pytest.mark.parametrize(
    "name", ["-home-u-github.com-r-", "-home-u-github.com-r", "-home-u-github-com-r", "-home-u-github-com-r-"]
)
def test_all_names_of_one_path_are_one_project(name: str, tmp_path: Path) -> None:
    assert same_project(name, "/home/u/github.com/r")
    assert not same_project(name, "/home/u/github.com/rs")
    path = write(tmp_path / "projects" / name / "conversation.jsonl", message())
    (path.parent / "metadata.json").write_text('{"project_dir": "/home/u/github.com/r/"}')
    assert document_of(AGENT, path)["session"]["workspace"] == "/home/u/github.com/r"


@pytest.mark.seed("S0-6")
def test_new_folders_get_the_aligned_name(tmp_path: Path) -> None:
    path = write(tmp_path / "projects" / "-home-u-github.com-r-" / "conversation.jsonl", message())
    (path.parent / "metadata.json").write_text('{"project_dir": "/home/u/github.com/r"}')
    document = document_of(AGENT, path)
    assert AGENT.target(header_of(document)) == ".emacs.d/sage/projects/-home-u-github.com-r-/conversation.jsonl"
    # What comes from elsewhere is new, and gets the aligned name.
    document["session"]["workspace_encoded"] = ""
    assert AGENT.target(header_of(document)) == ".emacs.d/sage/projects/-home-u-github-com-r/conversation.jsonl"


@pytest.mark.seed("S0-8")
def test_the_workspace_is_never_decoded_from_a_name(tmp_path: Path) -> None:
    path = write(tmp_path / "projects" / "-home-ada-my-app-v1-2" / "conversation.jsonl", message())
    assert document_of(AGENT, path)["session"]["workspace"] == ""
    write(path, message(cwd="/home/ada/my-app/v1.2"))
    assert document_of(AGENT, path)["session"]["workspace"] == "/home/ada/my-app/v1.2"
    (path.parent / "metadata.json").write_text('{"project_dir": "/home/ada/my.app-v1.2"}')
    session = document_of(AGENT, path)["session"]
    assert session["workspace"] == "/home/ada/my.app-v1.2"
    assert session["workspace_encoded"] == "-home-ada-my-app-v1-2"


# Records


@pytest.mark.seed("S0-9", "S0-10", "S0-11", "S0-49")
@pytest.mark.parametrize("role", ["user", "assistant", "system"])
def test_the_current_schema(tmp_path: Path, role: str) -> None:
    document = document_of(AGENT, conversation(tmp_path, {**seed("sage-message.json"), "role": role}))
    (only,) = document["messages"]
    assert only["role"] == role
    assert only["content"] == [{"type": "text", "text": "message content"}]
    assert only["timestamp"] == "2026-01-11T22:00:00Z"


@pytest.mark.seed("S0-11")
@pytest.mark.parametrize("spelled", ["2026-01-11T17:00:00-0500", "2026-01-11T22:00:00+0000", "2026-01-11T22:00:00"])
def test_times_with_an_offset_without_colon(tmp_path: Path, spelled: str) -> None:
    path = conversation(tmp_path, {**message(), "timestamp": spelled})
    document = document_of(AGENT, path)
    assert document["messages"][0]["timestamp"] == "2026-01-11T22:00:00Z"
    assert document["session"]["started_at"] == "2026-01-11T22:00:00Z"
    assert round_trip(AGENT, path)[""] == path.read_bytes()


@pytest.mark.seed("S0-16", "SX-2")
@pytest.mark.parametrize("key", ["session_id", "sessionId"])
def test_optional_ids_are_read_and_written(tmp_path: Path, key: str) -> None:
    record = seed("sage-extended.json")
    record[key] = record.pop("session_id")
    path = conversation(tmp_path, record, message())
    document = document_of(AGENT, path)
    assert document["messages"][0]["uuid"] == "optional-message-uuid"
    assert document["session"]["id"] == AGENT.session_id(AGENT.locate(path)) == "optional-session-uuid"
    assert round_trip(AGENT, path)[""] == path.read_bytes()


@pytest.mark.seed("S0-17", "S0-49")
def test_derived_ids_are_stable_and_not_written(tmp_path: Path) -> None:
    path = conversation(tmp_path, message(), message("assistant"), message())
    first, second = document_of(AGENT, path), document_of(AGENT, path)
    assert first["messages"] == second["messages"]
    assert first["session"]["id"] == second["session"]["id"] == AGENT.session_id(AGENT.locate(path))
    uuids = [item["uuid"] for item in first["messages"]]
    assert len(set(uuids)) == 3
    assert [item.get("parent_uuid") for item in first["messages"]] == [None, *uuids[:2]]
    assert round_trip(AGENT, path)[""] == path.read_bytes()


def test_derived_ids_survive_archiving_and_renaming(tmp_path: Path) -> None:
    current = write(tmp_path / "a" / "-home-x.y-" / "conversation.jsonl", message(), message("assistant"))
    archive = write(tmp_path / "b" / "-home-x-y" / "history" / "20260110-120000.jsonl", message("assistant"))
    assert document_of(AGENT, current)["messages"][1]["uuid"] == document_of(AGENT, archive)["messages"][0]["uuid"]


def test_sessions_have_ids_by_place_not_by_home(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / home / ".emacs.d" / "sage" / "projects" / "-p" / name, message())
        for home in ("ada", "bob")
        for name in ("conversation.jsonl", "history/conversation.jsonl")
    ]
    ids = [AGENT.session_id(AGENT.locate(path)) for path in paths]
    assert ids[:2] == ids[2:]
    assert ids[0] != ids[1]


@pytest.mark.seed("S0-18", "SX-7")
def test_a_call_and_its_result_are_two_messages(tmp_path: Path) -> None:
    path = conversation(tmp_path, message(), seed("sage-tool-calls.json"), message())
    document = document_of(AGENT, path)
    assert [item["role"] for item in document["messages"]] == ["user", "assistant", "user", "user"]
    _, call, answer, after = document["messages"]
    use, result = call["content"][1], answer["content"][0]
    assert call["content"][0] == {"type": "text", "text": "Let me read that file"}
    assert (use["type"], use["tool_name"], use["input"]) == ("tool_use", "read_file", {"path": "example.el"})
    assert use["tool_id"] == result["tool_id"] == f"{call['uuid']}:t0"
    assert (result["output"], result["is_error"]) == ("file contents...", False)
    assert answer["parent_uuid"] == call["uuid"]
    assert after["parent_uuid"] == answer["uuid"]
    assert round_trip(AGENT, path)[""] == path.read_bytes()


@pytest.mark.seed("S0-19")
@pytest.mark.parametrize(("success", "is_error"), [(True, False), (False, True), (None, True)])
def test_a_call_without_success_is_an_error(tmp_path: Path, success: bool | None, is_error: bool) -> None:
    call = {"name": "run_shell", "args": {}, "result": "", "duration_ms": 38, "success": success}
    path = conversation(tmp_path, message("assistant", "", tool_calls=[call]))
    document = document_of(AGENT, path)
    assert document["messages"][1]["content"][0]["is_error"] is is_error
    assert document["native"]["files"][0]["records"][0]["tool_calls"][0]["duration_ms"] == 38
    assert round_trip(AGENT, path)[""] == path.read_bytes()


def test_only_answered_calls_have_results(tmp_path: Path) -> None:
    calls = [{"id": "a", "name": "x", "args": {}}, {"id": "b", "name": "y", "args": {}, "result": {"n": 1}}]
    path = conversation(tmp_path, message("assistant", "Look.", tool_calls=calls), message("assistant"))
    document = document_of(AGENT, path)
    assert [block["tool_id"] for block in document["messages"][0]["content"][1:]] == ["a", "b"]
    assert [block["tool_id"] for block in document["messages"][1]["content"]] == ["b"]
    assert document["messages"][1]["content"][0]["output"] == '{"n":1}'
    assert round_trip(AGENT, path)[""] == path.read_bytes()


def test_the_role_tool_is_a_result(tmp_path: Path) -> None:
    path = conversation(tmp_path, message("tool", "done", tool_call_id="c1", name="make"))
    document = document_of(AGENT, path)
    (only,) = document["messages"]
    assert only["role"] == "user"
    assert only["content"] == [{"type": "tool_result", "tool_id": "c1", "tool_name": "make", "output": "done"}]
    assert round_trip(AGENT, path)[""] == path.read_bytes()


@pytest.mark.seed("S0-32", "S0-33")
def test_estimates_stay_apart_from_counts(tmp_path: Path) -> None:
    usage = {"input_tokens": 10, "output_tokens": 5, "cache_read_tokens": 3, "estimated_cost_usd": 0.1}
    path = conversation(tmp_path, seed("sage-tokens.json"), message("assistant", usage=usage))
    document = document_of(AGENT, path)
    guessed, counted = (item["metadata"] for item in document["messages"])
    assert guessed == {"estimated_tokens": 150}
    assert counted["token_usage"] == {"input_tokens": 10, "output_tokens": 5, "cache_read_tokens": 3}
    total = AGENT.facts(AGENT.locate(path)).ledger.total()
    assert (total.calls, total.input_tokens, total.output_tokens) == (1, 10, 5)
    assert round_trip(AGENT, path)[""] == path.read_bytes()


@pytest.mark.seed("SX-9", "SX-11")
def test_unknown_roles_and_keys_are_kept(tmp_path: Path) -> None:
    lines = [{"role": "oracle", "content": "42"}, message(content=[{"type": "text", "text": "a"}, 7], mood="good")]
    path = conversation(tmp_path, *lines)
    document = document_of(AGENT, path)
    assert document["records"][0]["text"] == "42"
    assert [block["type"] for block in document["messages"][0]["content"]] == ["text", "unknown"]
    assert round_trip(AGENT, path)[""] == path.read_bytes()


# Sessions


@pytest.mark.seed("S0-40", "S0-41")
def test_each_archive_is_a_session(tmp_path: Path) -> None:
    folder = tmp_path / "projects" / "-home-ada-x"
    write(folder / "conversation.jsonl", message())
    stamped = write(folder / "history" / "20260110-120000.jsonl", {"role": "user", "content": "x"})
    named = write(folder / "history" / "before-the-move.jsonl", {"role": "user", "content": "x"})
    (folder / "metadata.json").write_text('{"project_dir": "/home/ada/x", "created_at": "2026-01-01T00:00:00Z"}')
    found = list(AGENT.discover(folder.parent))
    assert len({AGENT.session_id(source) for source in found}) == 3
    assert [source.sides for source in found] == [("metadata.json",), (), ()]
    session = document_of(AGENT, stamped)["session"]
    assert session["workspace"] == "/home/ada/x"
    assert session["started_at"] is None
    assert session["ended_at"] == "2026-01-10T12:00:00Z"
    assert session["extensions"]["sage-emacs"]["archived_at"] == "2026-01-10T12:00:00Z"
    assert document_of(AGENT, named)["session"]["ended_at"] is None
    assert AGENT.target(header_of(document_of(AGENT, named))).endswith("-home-ada-x/history/before-the-move.jsonl")


@pytest.mark.seed("S0-34", "S0-35")
def test_metadata_travel_along_and_give_times(tmp_path: Path) -> None:
    path = conversation(tmp_path, {"role": "user", "content": "x"})
    (path.parent / "metadata.json").write_bytes((SEED / "metadata.json").read_bytes())
    document = document_of(AGENT, path)
    assert document["session"]["workspace"] == "/home/user/project"
    assert document["session"]["started_at"] == "2026-01-11T22:00:00Z"
    assert document["session"]["ended_at"] == "2026-01-11T22:30:00Z"
    assert round_trip(AGENT, path) == original(AGENT, path)


def test_an_archive_written_backwards_is_read_forwards(tmp_path: Path) -> None:
    lines = [message("assistant" if n % 2 else "user", str(n), timestamp=f"2026-01-11T22:00:0{n}Z") for n in range(4)]
    path = conversation(tmp_path, *reversed(lines))
    facts = AGENT.facts(AGENT.locate(path))
    document = document_of(AGENT, path)
    said = {item["uuid"]: item["content"][0]["text"] for item in document["messages"]}
    assert [said[uuid] for uuid in facts.tree.graph().active_path] == ["0", "1", "2", "3"]
    assert round_trip(AGENT, path)[""] == path.read_bytes()


def test_a_compressed_archive_is_read(tmp_path: Path) -> None:
    path = tmp_path / "-p" / "history" / "20260110-120000.jsonl.gz"
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress(spell(message(), 0)))
    (tmp_path / "-p" / "metadata.json").write_text("{}")
    assert project_files(tmp_path) == [path]
    assert round_trip(AGENT, path) == {"": spell(message(), 0)}


# Checks


@pytest.mark.seed("S0-43")
def test_roles_are_checked(tmp_path: Path) -> None:
    path = conversation(tmp_path, message(), message("tool"), message("oracle"), {"content": "x"})
    found = [problem for problem in problems(path) if problem.code.endswith("role")]
    assert [(problem.code, problem.severity, problem.line) for problem in found] == [
        ("tool-role", "warning", 2),
        ("bad-role", "error", 3),
        ("bad-role", "error", 4),
    ]


@pytest.mark.seed("S0-44")
@pytest.mark.parametrize("record", [message(content=""), message(content=None), message(content=[]), {"role": "user"}])
def test_content_is_checked(tmp_path: Path, record: dict[str, JSON]) -> None:
    found = [problem for problem in problems(conversation(tmp_path, record)) if problem.code == "bad-content"]
    assert [problem.severity for problem in found] == ["error"]


@pytest.mark.seed("S0-45")
@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ({}, [("time-missing", "note")]),
        ({"timestamp": "yesterday"}, [("bad-timestamp", "error")]),
        ({"timestamp": 5}, [("bad-timestamp", "error")]),
        ({"timestamp": "2026-01-11T17:00:00-0500"}, []),
    ],
)
def test_times_are_checked(tmp_path: Path, times: dict[str, JSON], expected: list[tuple[str, str]]) -> None:
    found = problems(conversation(tmp_path, {"role": "user", "content": "x", **times}))
    assert [(problem.code, problem.severity) for problem in found if "time" in problem.code] == expected


@pytest.mark.seed("S0-35")
@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (None, ["metadata-missing"]),
        ("{", ["metadata-damaged"]),
        ("[]", ["metadata-damaged"]),
        ('{"message_count": 1, "total_size": 70}', []),
        ('{"message_count": 2, "total_size": 70}', ["metadata-mismatch"]),
        ("{}", ["metadata-mismatch", "metadata-mismatch"]),
    ],
)
def test_wrong_metadata_stop_nothing(tmp_path: Path, metadata: str | None, expected: list[str]) -> None:
    path = conversation(tmp_path, message())
    if metadata is not None:
        (path.parent / "metadata.json").write_text(metadata)
    assert codes(problems(path)) == expected
    assert len(document_of(AGENT, path)["messages"]) == 1
    assert round_trip(AGENT, path) == original(AGENT, path)


# Bytes


@pytest.mark.parametrize("path", project_files(DEMO), ids=lambda path: path.relative_to(DEMO).as_posix())
def test_the_demo_comes_back(path: Path) -> None:
    document = document_of(AGENT, path)
    msgspec.convert(document, Document)
    assert round_trip(AGENT, path) == original(AGENT, path)
    assert problems(path) == []


def test_the_demo_is_complete() -> None:
    assert len(project_files(DEMO)) == 3


class TestConformance(AgentConformance):
    agent: ClassVar[Agent] = AGENT
    fixtures: ClassVar[list[Path]] = project_files(DEMO)


@pytest.mark.slow
@given(st.lists(st.tuples(records(KEYS, WORDS), st.integers(0, 15)), max_size=5))
def test_any_json_comes_back(tmp_path_factory: pytest.TempPathFactory, lines: list[Line]) -> None:
    path = tmp_path_factory.mktemp("any") / "conversation.jsonl"
    path.write_bytes(b"".join(spell(record, dialect) for record, dialect in lines))
    document = document_of(AGENT, path)
    msgspec.convert(document, Document)
    assert round_trip(AGENT, path) == original(AGENT, path)
    assert problems(path) is not None


@given(st.data())
def test_a_cut_loses_at_most_the_last_record(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    whole = (DEMO / "-home-ada-src-tide-tables" / "conversation.jsonl").read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    path = tmp_path_factory.mktemp("cut") / "conversation.jsonl"
    path.write_bytes(whole[:cut])
    document = document_of(AGENT, path)
    assert round_trip(AGENT, path) == original(AGENT, path)
    seen = {item["uuid"] for item in document["messages"]}
    assert len(seen) >= whole[:cut].count(b"\n")


@pytest.mark.seed("S0-47")
def test_reading_from_any_line_gives_the_same_records(tmp_path: Path) -> None:
    whole = (DEMO / "-home-ada-src-tide-tables" / "conversation.jsonl").read_bytes()
    lines = whole.splitlines(keepends=True)
    full = document_of(AGENT, conversation_of(tmp_path / "full", whole))["messages"]
    for start in range(len(lines)):
        rest = document_of(AGENT, conversation_of(tmp_path / str(start), b"".join(lines[start:])))["messages"]
        assert [item["content"] for item in rest] == [item["content"] for item in full][-len(rest) :]


def conversation_of(folder: Path, content: bytes) -> Path:
    folder.mkdir()
    (folder / "conversation.jsonl").write_bytes(content)
    return folder / "conversation.jsonl"
