"""Messages for who only looks at them are those of the general way, less what no face shows; in one pass or two."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clew.agents import base
from clew.agents.base import freeze, show, shown_messages, skim
from clew.agents.claude_code import ClaudeCode
from clew.agents.redacted import redacted
from clew.demo import write_demo
from clew.redact.setting import chosen
from clew.redact.tree import Redactor
from tests.render.pages import page
from tests.unit.samples import claude_line

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "claude-code"
RESULT = {"type": "tool_result", "tool_use_id": "a"}
SOURCE = {"type": "base64", "media_type": "image/png", "data": "aGk="}
IMAGE = {"type": "image", "source": SOURCE}
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
    """One pass gives the header, the forks and the messages of two."""
    agent = ClaudeCode()
    source = agent.locate(path)
    session, tree, messages = agent.shown_at_once(source)
    # A line that is not regular bears what differs from most others, which one pass does not know.
    assert core(list(messages)) == core(shown), path
    before = skim(agent, source, tree=True, counts=False)
    assert session == agent.session(source, before), path
    if tree is None:
        assert before.tree.is_linear, path
    else:
        assert tree.graph() == before.tree.graph(), path


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
        {"message": {"role": "user", "content": [IMAGE, {"type": "text", "text": "look"}]}},
        {"message": {"role": "user", "content": [{**IMAGE, "cache_control": {"type": "ephemeral"}}]}},
        {"message": {"role": "user", "content": [{"type": "image", "source": {**SOURCE, "data": None}}]}},
        {"message": {"role": "user", "content": [{"type": "image", "source": {**SOURCE, "more": "x"}}]}},
        {"message": {"role": "user", "content": [{"type": "image"}]}},
        {"message": {"role": "user", "content": [{"type": "image", "source": "x"}]}},
        {"message": {"role": "user", "content": [{**RESULT, "content": [IMAGE, {"type": "text", "text": "x"}]}]}},
        {"message": {"role": "user", "content": [{**RESULT, "content": [{**IMAGE, "x": None}]}]}},
        {"message": {"role": "user", "content": [{**RESULT, "content": [{"type": "text", "text": "a", "x": 1}]}]}},
        {"message": {"role": "user", "content": [{**RESULT, "content": [{"type": "image"}]}]}},
        {"message": {"role": "user", "content": [{**RESULT, "content": [{"source": SOURCE, "type": "document"}]}]}},
        {"message": {"role": "user", "content": [{**RESULT, "content": ["x", None]}]}},
        {"message": {"role": "user", "content": [{**RESULT, "content": [{"type": []}]}]}},
        {"message": {"role": "user", "content": [{**RESULT, "content": []}]}},
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
    for parents in ((None, None, None), (None, "u1", "u2")):
        agree(written(tmp_path, [line | (change if n == 1 else {}) for n, line in enumerate(following(*parents))]))


def following(*parents: str | None) -> list[dict[str, Any]]:
    return [claude_line("user", f"u{n}", parent) for n, parent in enumerate(parents, 1)]


def written(folder: Path, lines: Sequence[dict[str, Any]]) -> Path:
    path = folder / "0a6c1f5e-0000-4000-8000-00000000000a.jsonl"
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines), encoding="utf-8")
    return path


STEPS: dict[str, dict[str, Any]] = {
    "prompt": {"type": "user"},
    "marked": {"type": "user", "isMeta": True},
    "aside": {"type": "user", "isSidechain": True},
    "reply": {"type": "assistant", "message": {"role": "assistant", "id": "r1", "content": []}},
    "call": {"type": "assistant", "message": {"role": "assistant", "content": [
        {"type": "tool_use", "id": "t1", "name": "Task", "input": {}}]}},
    "read": {"type": "assistant", "message": {"role": "assistant", "content": [
        {"type": "tool_use", "id": "t1", "name": "Read", "input": {}}]}},
    "agent": {"type": "user", "toolUseResult": {"agentId": "a1"}, "message": {"role": "user", "content": [
        {**RESULT, "tool_use_id": "t1", "content": "done"}]}},
    "progress": {"type": "progress", "message": None, "data": {"agentId": "a2"}, "parentToolUseID": "t2"},
    "system": {"type": "system", "message": None, "content": "note"},
    "queued": {"type": "attachment", "message": None, "attachment": {"type": "queued_command", "prompt": "go on"}},
    "summary": {"type": "summary", "message": None, "summary": "What was done", "leafUuid": "u1"},
    "elsewhere": {"type": "summary", "message": None, "summary": "What else was done", "leafUuid": "v1"},
    "title": {"type": "ai-title", "message": None, "aiTitle": "A title"},
    "leaf": {"type": "last-prompt", "message": None, "leafUuid": "u1"},
    "there": {"type": "user", "cwd": "/home/ada/src", "slug": "so-it-goes", "version": "2.1.0", "gitBranch": "main"},
    "other": {"type": "user", "sessionId": "0b0e2d8c-5a0f-4a5e-9d53-0d5a4f3c2b12"},
    "later": {"type": "user", "timestamp": "2026-01-02T10:00:00+02:00"},
}  # fmt: skip
"""What a record may be; one that is no part of the conversation is passed over by those behind it."""


@given(
    kinds=st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=7),
    odd=st.none() | st.tuples(st.integers(0, 6), st.sampled_from(["u0", "u1", "u2", "v1", None])),
)
@example(kinds=["prompt", "read", "agent"], odd=None)
@example(kinds=["aside", "aside", "call", "agent"], odd=None)
@example(kinds=["summary", "prompt", "progress", "prompt"], odd=None)
@example(kinds=["prompt", "prompt", "prompt"], odd=(0, "u2"))
def test_they_agree_on_straight_sessions_and_on_others(
    tmp_path_factory: pytest.TempPathFactory, kinds: list[str], odd: tuple[int, str | None] | None
) -> None:
    lines, before = [], None
    for number, kind in enumerate(kinds):
        uuid = f"u{number}"
        parent = odd[1] if odd is not None and odd[0] == number else before
        lines.append(claude_line("user", uuid, parent) | STEPS[kind])
        before = before if kind in ("summary", "elsewhere", "title", "leaf") else uuid
    agree(written(tmp_path_factory.mktemp("session"), lines))


def test_both_ways_know_the_calls_of_the_other(tmp_path: Path) -> None:
    def call(key: str, **more: Any) -> dict[str, Any]:
        said = {"role": "assistant", "content": [{"type": "tool_use", "id": key, "name": key.upper(), "input": {}}]}
        return claude_line("assistant", f"c-{key}", None, message=said) | more

    def result(key: str, **more: Any) -> dict[str, Any]:
        said = {"role": "user", "content": [{**RESULT, "tool_use_id": key, "content": "x"}]}
        return claude_line("user", f"r-{key}", None, message=said) | more

    odd = {"timestamp": "soon"}
    lines = [call("a"), call("b"), result("a", **odd), call("c", **odd), result("b"), result("c"), call("a")]
    assert agree(written(tmp_path, lines)) == len(lines)


@pytest.mark.parametrize("odd", [b"", b"{", b"\xff", b"null", b"\x00\x00", b'{"type":"user"}{"type":"user"}'])
def test_they_agree_on_damaged_lines(tmp_path: Path, odd: bytes) -> None:
    line = json.dumps(claude_line("user", "u1", None), separators=(",", ":")).encode()
    for glued in (line + odd, odd + line, line + line[:40], b"junk" + line):
        path = tmp_path / "0a6c1f5e-0000-4000-8000-00000000000b.jsonl"
        path.write_bytes(glued + b"\n")
        agree(path)
    path = tmp_path / "0a6c1f5e-0000-4000-8000-00000000000a.jsonl"
    path.write_bytes(line + b"\n" + odd + b"\n" + line[:-1] + b',"x":"\xff"}\n' + line[:40])
    agree(path)


def test_a_source_that_is_larger_is_read_twice_and_shows_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_demo(tmp_path)
    paths = list(tmp_path.rglob("projects/**/*.jsonl"))

    def pages() -> list[str]:
        return [page(show(ClaudeCode(), ClaudeCode().locate(path)).messages) for path in paths]

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
    found = list(show(redacted(ClaudeCode(), Redactor(chosen("secrets"))), source).messages)
    assert found == expected
    assert ("hunter2" in str(found)) is False
    assert ("REDACTED" in str(found)) is ("password" in words)
