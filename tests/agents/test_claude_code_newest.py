"""What only the newest Claude Code writes is known: kept, and not reported."""

from pathlib import Path

from clew.agents.claude_code import ClaudeCode
from clew.export.verify import verify
from tests.unit.samples import SESSION, claude_line, read_lines

AGENT = ClaudeCode()
REFERENCE = {"type": "tool_reference", "tool_name": "TaskCreate"}


def test_requests_name_the_version_that_made_them(tmp_path: Path) -> None:
    shape = {"type": "api-request-shape", "sessionId": SESSION, "shape": {}, "shapeHash": "5f", "version": "2.1.325"}
    request = {"type": "api-request", "sessionId": SESSION, "id": "r1", "keep": 0, "tail": [], "version": "2.1.325"}
    found = read_lines(tmp_path, claude_line("user", "u1", None), shape, request)
    proof = verify(AGENT, found.source)
    assert (proof.unknown_types, proof.unknown_keys) == ({}, {})
    assert [record["kind"] for record in found.records] == ["state", "state"]


def test_usage_may_speak_of_credit(tmp_path: Path) -> None:
    line = claude_line("assistant", "a1", None, "Ding.")
    line["message"]["usage"] = {"input_tokens": 3, "output_tokens": 4, "fallback_credit": None}
    found = read_lines(tmp_path, line)
    assert verify(AGENT, found.source).unknown_keys == {}


def test_references_to_tools_are_kept_without_a_word(tmp_path: Path) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "ToolSearch", "input": {"query": "select:TaskCreate"}}
    found = read_lines(
        tmp_path,
        claude_line("assistant", "a1", None, [call]),
        claude_line("user", "r1", "a1", [{"type": "tool_result", "tool_use_id": "t1", "content": [REFERENCE]}]),
    )
    assert found.messages[1]["content"][0]["output"] == [{"type": "unknown", "value": REFERENCE}]
    assert verify(AGENT, found.source).unknown_types == {}
