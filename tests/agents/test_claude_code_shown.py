"""Messages for who only looks at them are those of the general way, less what no face shows; in one pass or two."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clew.agents import base
from clew.agents.base import facts_and_messages, freeze, shown_messages, skim
from clew.agents.claude_code import ClaudeCode
from clew.agents.redacted import redacted
from clew.demo import write_demo
from clew.derive.facts import Facts
from clew.redact.setting import chosen
from clew.redact.tree import Redactor
from tests.render.pages import page
from tests.unit.samples import claude_line

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "claude-code"
RESULT = {"type": "tool_result", "tool_use_id": "a"}
SHOWN = ("is_sidechain", "is_meta", "message_id", "is_compact_summary", "origin", "logical_parent_uuid")


def both(path: Path) -> tuple[list[Any], list[Any]]:
    agent = ClaudeCode()
    source = agent.locate(path)
    facts = agent.scan(source)
    general = [unit.value for unit in agent.read(source, facts) if unit.is_message]
    return general, list(shown_messages(agent, source, facts))


def core(value: Any) -> Any:
    """A message as faces see it."""
    if isinstance(value, list):
        return [core(item) for item in value]
    if not isinstance(value, dict):
        return value
    plain = {name: item if name in ("input", "value") else core(item) for name, item in value.items()}
    for name in ("extensions", "signature", "citations", "cache_control", "caller"):
        plain.pop(name, None)
    if "role" in plain:
        metadata = value.get("metadata") or {}
        plain["metadata"] = {name: metadata[name] for name in SHOWN if name in metadata}
        plain["model"] = (metadata.get("model") or {}).get("name")
    return plain


def agree(path: Path) -> int:
    general, shown = both(path)
    assert core(general) == core(shown), path
    assert page(general) == page(shown), path
    agree_at_once(path, shown)
    return len(general)


def agree_at_once(path: Path, shown: list[Any]) -> None:
    """One pass gives the messages and the facts of two."""
    agent = ClaudeCode()
    source = agent.locate(path)
    facts, messages = agent.shown_at_once(source)
    # A line that is not regular bears what differs from most others, which one pass does not know.
    assert core(list(messages)) == core(shown), path
    before = skim(agent, source, tree=True, counts=False)
    assert agent.session(source, facts) == agent.session(source, before), path
    assert told(facts) == told(before), path


def told(facts: Facts) -> Any:
    """What a page may know from the first pass."""
    plain = (facts.messages, facts.prompts, facts.user_messages, facts.has_errors, facts.has_thinking, facts.leaf_uuid)
    return plain, facts.sessions, facts.titles, facts.summaries, facts.extra, facts.tree.graph()


def test_they_agree_on_the_demo(tmp_path: Path) -> None:
    write_demo(tmp_path)
    assert sum(agree(path) for path in tmp_path.rglob("projects/**/*.jsonl")) > 80


def test_they_agree_on_real_sessions() -> None:
    if not CORPUS.is_dir():
        pytest.skip("no corpus beside the project")
    found = [path for path in sorted(CORPUS.rglob("*.jsonl")) if path.stat().st_size < 2_000_000]
    assert sum(agree(path) for path in found) > 100


@pytest.mark.parametrize(
    "change",
    [
        {"timestamp": "soon"},
        {"timestamp": 3},
        {"isMeta": "yes"},
        {"isSidechain": None},
        {"message": {"role": "user", "content": None}},
        {"message": {"role": "user", "content": [1]}},
        {"message": {"role": "user", "content": [{"type": "text"}]}},
        {"message": {"role": "user", "content": [{"type": "thinking", "thinking": "x", "signature": 4}]}},
        {"message": {"role": "user", "content": [{"type": "tool_use", "id": "a", "name": "T"}]}},
        {"message": {"role": "user", "content": [{"type": "tool_use", "id": 3, "name": "T", "input": {}}]}},
        {"message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}},
        {"message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": {"x": 1}}]}},
        {"message": {"role": "user", "content": [{**RESULT, "content": [{"type": "text"}]}]}},
        {"message": {"role": "user", "content": [{**RESULT, "content": "x", "is_error": 1}]}},
        {"message": {"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "x"}}]}},
        {"message": "words"},
        {"type": "system", "content": "note"},
        {"type": "system", "content": "note", "message": None, "isMeta": True, "logicalParentUuid": "u1"},
        {"type": "system", "message": None},
        {"type": "system", "message": None, "content": None},
        {"type": "system", "message": None, "content": [{"type": "text", "text": "note"}]},
        {"type": "attachment", "message": None, "attachment": {"type": "environment"}},
        {"type": "attachment", "message": None, "attachment": {"type": None}, "content": "beside"},
        {"type": "attachment", "message": None, "attachment": {"type": "queued_command"}},
        {"type": "attachment", "message": None, "attachment": {"type": "queued_command", "prompt": "go on"}},
        {"type": "attachment", "message": None, "attachment": "words"},
        {"type": "attachment", "message": None},
        {"type": "never-heard-of"},
        {"type": None},
        {"uuid": 5},
        {"uuid": None},
        {"parentUuid": ""},
        {"parentUuid": "u1", "logicalParentUuid": None},
        {"parentUuid": "u1", "toolUseResult": {"agentId": 7}},
        {"message": {"role": "assistant", "id": None, "content": "x"}, "type": "assistant"},
        {"message": {"role": "assistant", "id": "r", "model": None, "content": "x"}, "type": "assistant"},
        {"origin": "human"},
        {"origin": {"kind": 1}},
        {"isCompactSummary": True},
    ],
)  # fmt: skip
def test_they_agree_on_odd_lines(tmp_path: Path, change: dict[str, Any]) -> None:
    lines = [claude_line("user", f"u{n}", None) | (change if n == 2 else {}) for n in (1, 2, 3)]
    path = tmp_path / "0a6c1f5e-0000-4000-8000-00000000000a.jsonl"
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines), encoding="utf-8")
    agree(path)


def test_both_ways_know_the_calls_of_the_other(tmp_path: Path) -> None:
    def call(key: str, **more: Any) -> dict[str, Any]:
        said = {"role": "assistant", "content": [{"type": "tool_use", "id": key, "name": key.upper(), "input": {}}]}
        return claude_line("assistant", f"c-{key}", None, message=said) | more

    def result(key: str, **more: Any) -> dict[str, Any]:
        said = {"role": "user", "content": [{**RESULT, "tool_use_id": key, "content": "x"}]}
        return claude_line("user", f"r-{key}", None, message=said) | more

    odd = {"timestamp": "soon"}
    lines = [call("a"), call("b"), result("a", **odd), call("c", **odd), result("b"), result("c"), call("a")]
    path = tmp_path / "0a6c1f5e-0000-4000-8000-00000000000a.jsonl"
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines), encoding="utf-8")
    assert agree(path) == len(lines)


@pytest.mark.parametrize("odd", [b"", b"{", b"\xff", b"null", b"\x00\x00", b'{"type":"user"}{"type":"user"}'])
def test_they_agree_on_damaged_lines(tmp_path: Path, odd: bytes) -> None:
    line = json.dumps(claude_line("user", "u1", None), separators=(",", ":")).encode()
    path = tmp_path / "0a6c1f5e-0000-4000-8000-00000000000a.jsonl"
    path.write_bytes(line + b"\n" + odd + b"\n" + line[:-1] + b',"x":"\xff"}\n' + line[:40])
    agree(path)


def test_a_source_that_is_larger_is_read_twice_and_shows_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_demo(tmp_path)
    paths = list(tmp_path.rglob("projects/**/*.jsonl"))

    def pages() -> list[str]:
        found = [facts_and_messages(ClaudeCode(), ClaudeCode().locate(path)) for path in paths]
        return [page(messages) for _, messages in found]

    at_once = pages()
    monkeypatch.setattr(base, "AT_ONCE", 0)
    monkeypatch.setattr(ClaudeCode, "shown_at_once", lambda *_: pytest.fail("read at once"))
    assert pages() == at_once


@pytest.mark.parametrize("words", ["nothing to hide", "password=" + "hunter2-Zq81xTtPw"])
def test_P01_what_is_read_at_once_is_masked_as_what_is_read_twice(tmp_path: Path, words: str) -> None:
    path = tmp_path / "0a6c1f5e-0000-4000-8000-00000000000a.jsonl"
    lines = [claude_line("user", f"u{n}", None, message={"role": "user", "content": f"{n} {words}"}) for n in (1, 2)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    source = freeze(ClaudeCode().locate(path))
    twice = redacted(ClaudeCode(), Redactor(chosen("secrets")))
    expected = list(shown_messages(twice, source, skim(twice, source, tree=True, counts=False)))
    _, messages = facts_and_messages(redacted(ClaudeCode(), Redactor(chosen("secrets"))), source)
    found = list(messages)
    assert found == expected
    assert ("hunter2" in str(found)) is False
    assert ("REDACTED" in str(found)) is ("password" in words)
