"""The JSON Schema fits the types, the file in schemas/, the seed's example, and what we export."""

import io
import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from clew.agents.claude_code import ClaudeCode
from clew.agents.registry import load_all
from clew.analysis.document_validation import check_document
from clew.export.document import write_document
from clew.host import Host
from clew.model.load import dump_document, load_document
from clew.model.schema import DIALECT, json_schema
from scripts.schema import PAGE, render_schema
from tests.demo_home import write_small_demo
from tests.unit.samples import Record, seed

SCHEMA = json_schema()
CHECK = jsonschema.Draft202012Validator(SCHEMA)
TIME = "2026-11-01T00:00:00Z"


def errors(document: Record) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in CHECK.iter_errors(document)]


def test_the_file_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == render_schema(), "run scripts/schema.py"


def test_it_is_a_schema_of_its_dialect() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == DIALECT
    assert SCHEMA["$id"] == "urn:clew:session:1.2"
    assert SCHEMA["title"]


@pytest.mark.seed("S2-9", "S2-10", "S2-11", "S2-12", "S2-13", "S2-14", "S2-15", "S2-16", "S2-17", "S2-19", "S2-20")
def test_what_is_required() -> None:
    required = {name: set(part["required"]) for name, part in SCHEMA["$defs"].items()}
    assert set(SCHEMA["required"]) == {"schema_version", "export_timestamp", "agent", "session", "messages"}
    assert required["Session"] == {
        "id",
        "workspace",
        "workspace_encoded",
        "started_at",
        "ended_at",
        "source",
        "is_agent_session",
    }
    assert required["Source"] == {"type", "path"}
    assert required["Message"] == {"index", "role", "content"}


@pytest.mark.seed("S2-25", "S2-29", "S2-30", "S2-31", "S2-33")
def test_roles_and_blocks() -> None:
    message = SCHEMA["$defs"]["Message"]["properties"]
    assert message["role"]["enum"] == ["user", "assistant", "system"]
    names = [choice["$ref"].rpartition("/")[2] for choice in message["content"]["items"]["oneOf"]]
    tags = [SCHEMA["$defs"][name]["properties"]["type"]["const"] for name in names]
    assert tags == ["text", "thinking", "tool_use", "tool_result", "image", "document", "unknown"]


@pytest.mark.seed("S2-51")
def test_extensions_are_on_document_session_message_record_and_block() -> None:
    holders = [name for name, part in SCHEMA["$defs"].items() if "extensions" in part["properties"]]
    assert "extensions" in SCHEMA["properties"]
    assert {"Session", "Message", "Record", "Text", "Thinking", "ToolUse", "ToolResult", "Unknown"} <= set(holders)


@pytest.mark.seed("S2-46", "S2-2")
@pytest.mark.parametrize("name", ["example-document", "graph"])
def test_the_examples_are_valid(name: str) -> None:
    document = seed(f"seed-002/{name}")
    assert errors(document) == []
    assert check_document(document) == []


@pytest.mark.seed("S2-5")
def test_unknown_fields_are_allowed() -> None:
    document = seed("seed-002/example-document") | {"new": 1}
    document["messages"][0] |= {"new": 2, "extensions": {"anything": {"at": "all"}}}
    document["session"]["source"]["new"] = 3
    assert errors(document) == []


@pytest.mark.seed("S2-9", "S2-11", "S2-17", "S2-23", "S2-25", "S2-27")
@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("schema_version",), "2.0"),
        (("schema_version",), 1),
        (("agent",), "Claude Code"),
        (("session", "source", "type"), "moon"),
        (("messages", 0, "role"), "tool"),
        (("messages", 0, "index"), 0),
        (("messages", 0, "content"), "text"),
        (("messages", 0, "content", 0), {"type": "hologram"}),
        (("messages", 0, "content", 0), {"type": "text"}),
        (("messages", 1, "metadata", "token_usage", "input_tokens"), "many"),
        (("graph", "fork_points"), [{"uuid": "x"}]),
    ],
)
def test_schema_and_types_refuse_the_same(place: tuple[Any, ...], value: Any) -> None:
    document = deepcopy(seed("seed-002/example-document"))
    target = document
    for step in place[:-1]:
        target = target[step]
    target[place[-1]] = value
    assert errors(document)
    if value != {"type": "hologram"}:
        assert [problem.severity for problem in check_document(document)] == ["error"]


@pytest.mark.seed("S2-2", "S2-1", "S2-8", "S2-38")
def test_every_export_of_the_demo_is_valid(tmp_path: Path) -> None:
    write_small_demo(tmp_path / "demo")
    seen = set()
    for agent in load_all():
        for root in agent.roots(Host.at(tmp_path / "demo")):
            for source in agent.discover(root):
                out = io.BytesIO()
                write_document(agent, source, out, timestamp=TIME)
                document = json.loads(out.getvalue())
                assert errors(document) == [], source.path
                assert json.loads(dump_document(load_document(out.getvalue()))) == document, source.path
                serious = [problem for problem in check_document(document) if problem.code.startswith("bad-")]
                assert serious == [], source.path
                seen.add(agent.id)
    assert "claude-code" in seen


@pytest.mark.seed("S2-2")
def test_every_export_of_real_sessions_is_valid(shared: Path) -> None:
    agent = ClaudeCode()
    for path in sorted((shared / "corpus" / "claude-code").rglob("*.jsonl")):
        if path.stat().st_size > 1 << 20:
            continue
        out = io.BytesIO()
        write_document(agent, agent.locate(path), out, timestamp=TIME)
        document = json.loads(out.getvalue())
        assert errors(document) == [], path
        assert json.loads(dump_document(load_document(out.getvalue()))) == document, path
