"""Claude Code's transcripts, line by line."""

from __future__ import annotations

from datetime import datetime

from clew.agents.told import ANSWER, INPUT, OUTPUT, PROMPT, THINKING, Block, Call, Message, Odd, words_of
from clew.derive.prompts import MARKERS
from clew.derive.titles import short_title

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

SYNTHETIC = "<synthetic>"
SETTLED = 64
"""After so many records nobody waits any longer for a branch, a slug or an agent's id."""
MOST = 10**10
"""A larger count is no count, and neither is one below zero."""

FIELDS = (
    "type uuid parentUuid timestamp sessionId isSidechain isMeta isCompactSummary cwd gitBranch version slug agentId "
    "message usage content origin attachment summary leafUuid aiTitle customTitle"
).split()
"""What is looked at in a line."""

_CHAIN = frozenset({"user", "assistant", "system", "attachment"})
_TEXT = (str, type(None))
_FLAG = (bool, type(None))


class Line:
    """A line as plain JSON gives it; a struct of the same attributes does as well."""

    __slots__ = FIELDS

    def __init__(self, record: dict[str, Any]) -> None:
        get = record.get
        for name in FIELDS:
            setattr(self, name, get(name))


class Transcript:
    """Takes the lines of one transcript in; `state` goes on where another one ended."""

    def __init__(self, path: str, state: dict[str, Any] | None = None) -> None:
        self._path = path
        self.lines = self.messages = self.user_messages = self.prompts = self.tool_calls = 0
        self.has_errors = self.has_thinking = False
        self.unsettled = SETTLED
        self.cwd: str | None = None
        self.any_cwd: str | None = None
        self.branch: str | None = None
        self.version: str | None = None
        self.slug: str | None = None
        self.agent_id: str | None = None
        self.claimed: str | None = None
        self.prompt: str | None = None
        self.first, self.last = "", ""
        self.titles: dict[str, str] = {}
        self.summaries: dict[str, str] = {}
        self.held: list[str] = []
        """Of the messages that summaries name, those that stood in this file up to where `state` begins."""
        self.models: dict[str, int] = {}
        self.tools: dict[str, int] = {}
        self._uuids: set[str] = set()
        self.calls: list[Call] = []
        """What was used, in the order of the lines; a call may stand there several times."""
        self._counted: tuple[Any, Any] = None, None
        self._is_whole = state is None
        for name, value in (state or {}).items():
            setattr(self, name, value)

    def state(self) -> dict[str, Any]:
        """What another one needs to go on, as JSON."""
        self.held += [leaf for leaf in self.summaries if leaf in self._uuids and leaf not in self.held]
        return {name: value for name, value in vars(self).items() if name[0] != "_" and name not in ("calls", "lines")}

    def add(self, lines: Sequence[Any]) -> list[Message]:
        """The messages of the next lines."""
        self.lines += len(lines)
        return [message for line in lines if (message := self._line(line)) is not None]

    def _line(self, line: Any) -> Message | None:
        if self.claimed is None and line.sessionId:
            if type(line.sessionId) is not str or not self._is_whole:
                raise Odd
            self.claimed = line.sessionId
        kind = line.type
        if kind is not None and type(kind) is not str:
            raise Odd
        if kind not in _CHAIN:
            self._other(line, kind)
            return None
        _check(line)
        self._context(line)
        if line.uuid:
            self._uuids.add(line.uuid)
        self.messages += 1
        if kind == "assistant":
            return self._reply(line)
        if kind == "user":
            return self._user(line)
        return self._system(line) if kind == "system" else self._attachment(line)

    def _other(self, line: Any, kind: Any) -> None:
        if type(kind) is not str:
            raise Odd
        if kind == "summary" and line.summary and line.leafUuid:
            if type(line.summary) is not str or type(line.leafUuid) is not str:
                raise Odd
            if not self._is_whole and line.leafUuid not in self.summaries:
                # Whether its message stands before the cut is known of those that were named before it alone.
                raise Odd
            self.summaries[line.leafUuid] = line.summary
        elif kind == "ai-title" and line.aiTitle:
            self.titles["ai"] = _text(line.aiTitle)
        elif kind == "custom-title" and line.customTitle:
            self.titles["custom"] = _text(line.customTitle)
        elif kind == "progress" and type(line.uuid) is str:
            self._uuids.add(line.uuid)

    def _context(self, line: Any) -> None:
        self.version = line.version or self.version
        time = line.timestamp
        if time:
            if time > self.last:
                self.last = time
            if time < self.first or not self.first:
                self.first = time
        if self.unsettled:
            if line.cwd:
                if self.cwd is None and not line.isSidechain:
                    self.cwd = line.cwd
                if self.any_cwd is None:
                    self.any_cwd = line.cwd
            self.branch = self.branch or line.gitBranch
            self.slug = self.slug or line.slug
            if line.agentId and self.agent_id is None:
                self.agent_id = line.agentId
            self.unsettled -= self.unsettled > 1 or self.cwd is not None

    def _reply(self, line: Any) -> Message:
        message = line.message
        if type(message) is not dict:
            raise Odd
        model = message.get("model")
        if type(model) not in _TEXT:
            raise Odd
        blocks = self._blocks(message.get("content"), ANSWER)
        if model != SYNTHETIC:
            if model:
                self.models[model] = self.models.get(model, 0) + 1
            self._count(line, message, model or "")
        return _message(line, "assistant", model or "", blocks)

    def _user(self, line: Any) -> Message:
        message = line.message
        if type(message) is not dict:
            raise Odd
        content = message.get("content")
        blocks = self._blocks(content, PROMPT)
        self.user_messages += 1
        is_answer = "tool_result" in [block.type for block in blocks]
        if not (is_answer or line.isMeta or line.isCompactSummary or line.isSidechain):
            texts = [block.text for block in blocks if block.type == "text"]
            if _is_human(content, blocks, texts, _kind(line.origin)):
                self.prompts += 1
                if self.prompt is None:
                    # No more of it is wanted than the title that it may give.
                    self.prompt = "\n".join(texts)[:1000] or None
        return _message(line, "user", _text(message.get("model") or ""), blocks)

    def _system(self, line: Any) -> Message:
        return _message(line, "system", "", self._blocks(line.content, OUTPUT))

    def _attachment(self, line: Any) -> Message:
        attachment = line.attachment
        if type(attachment) is dict and attachment.get("type") == "queued_command" and "prompt" in attachment:
            prompt = attachment["prompt"]
            self.user_messages += 1
            self.prompts += _is_queued_prompt(prompt, _kind(attachment.get("origin")))
            return _message(line, "user", "", self._blocks(prompt, PROMPT))
        return _message(line, "system", "", [])

    def _blocks(self, content: Any, said: str) -> list[Block]:
        if type(content) is str:
            return [Block("text", said, content)]
        if content is None:
            return []
        if type(content) is not list:
            raise Odd
        return [self._block(block, said) for block in content]

    def _block(self, block: Any, said: str) -> Block:
        if type(block) is not dict:
            raise Odd
        kind = block.get("type")
        if kind == "text":
            return Block("text", said, _text(block.get("text")))
        if kind == "tool_use":
            return self._call(block)
        if kind == "tool_result":
            return self._result(block)
        if kind == "thinking":
            self.has_thinking = True
            return Block("thinking", THINKING, _text(block.get("thinking")))
        if kind == "image":
            return Block("image", "", "")
        # Rare kinds are known in one place only.
        raise Odd

    def _call(self, block: dict[str, Any]) -> Block:
        given, key, name = block.get("input"), _text(block.get("id")), _text(block.get("name"))
        if "input" not in block:
            raise Odd
        self.tool_calls += 1
        self.tools[name] = self.tools.get(name, 0) + 1
        return Block("tool_use", INPUT, words_of(given), key, name, given if type(given) is dict else None)

    def _result(self, block: dict[str, Any]) -> Block:
        key, is_error = _text(block.get("tool_use_id")), block.get("is_error", False)
        if type(is_error) is not bool:
            raise Odd
        self.has_errors = self.has_errors or is_error
        return Block("tool_result", OUTPUT, _output(block.get("content")), key, is_error=is_error)

    def _count(self, line: Any, message: dict[str, Any], model: str) -> None:
        usage, key = message.get("usage"), message.get("id")
        if type(key) not in _TEXT:
            raise Odd
        if key and usage is not None and self._counted == (key, usage):
            return
        counts = _counts(usage)
        if counts is not None:
            self._counted = key, usage
        else:
            counts = _counts(line.usage)
        if counts is not None:
            call = key or line.uuid or f"{self._path}:{self.messages}"
            self.calls.append(Call(call, model, counts, self.messages))

    def title(self) -> str | None:
        """The title this file itself gives."""
        for kind in ("custom", "ai"):
            if kind in self.titles:
                return self.titles[kind]
        for leaf, summary in reversed(self.summaries.items()):
            if leaf in self._uuids or leaf in self.held:
                return summary
        return short_title(self.prompt)

    def header(self) -> dict[str, Any]:
        """What the lines tell of the session as a whole."""
        return {
            "title": self.title(),
            "workspace": self.cwd or self.any_cwd or "",
            "git_branch": self.branch,
            "slug": self.slug,
            "models": list(self.models),
            "started_at": self.first or None,
            "ended_at": self.last or None,
            "span": [self.first or None, self.last or None],
            "duration_seconds": self._duration(),
            "messages": self.messages,
            "turn_count": self.user_messages,
            "prompt_count": self.prompts,
            "tool_calls": self.tool_calls,
            "tools": list(self.tools),
            "has_errors": self.has_errors,
            "has_thinking": self.has_thinking,
            "agent_version": self.version,
            "is_titled": bool(self.titles),
            "summaries": self.summaries,
        }

    def _duration(self) -> float | None:
        if not self.first:
            return None
        return max(0.0, (datetime.fromisoformat(self.last) - datetime.fromisoformat(self.first)).total_seconds())


def _check(line: Any) -> None:
    """The envelope must be as it always is."""
    time = line.timestamp
    if time is not None:
        if type(time) is not str or len(time) != 24 or time[10] != "T" or time[23] != "Z":
            raise Odd
        try:
            datetime.fromisoformat(time)
        except ValueError:
            raise Odd from None
    texts = (line.uuid, line.parentUuid, line.sessionId, line.cwd, line.gitBranch, line.version, line.slug)
    if not set(map(type, (*texts, line.agentId))).issubset(_TEXT):
        raise Odd
    if not {type(line.isSidechain), type(line.isMeta), type(line.isCompactSummary)}.issubset(_FLAG):
        raise Odd


def _message(line: Any, role: str, model: str, blocks: list[Block]) -> Message:
    return Message(
        line.uuid,
        line.parentUuid,
        line.timestamp,
        role,
        model,
        line.gitBranch or "",
        bool(line.isSidechain),
        bool(line.isMeta),
        bool(line.isCompactSummary),
        blocks,
    )


def _text(value: Any) -> str:
    if type(value) is not str:
        raise Odd
    return value


def _kind(origin: Any) -> str | None:
    if origin is None:
        return None
    if type(origin) is not dict or type(origin.get("kind")) not in _TEXT:
        raise Odd
    kind: str | None = origin.get("kind")
    return kind


def _is_human(content: Any, blocks: list[Block], texts: list[str], origin: str | None) -> bool:
    if origin is not None:
        return origin == "human"
    if content is None or any(text.startswith(MARKERS) for text in texts):
        return False
    return bool(texts) or any(block.type == "image" for block in blocks)


def _is_queued_prompt(prompt: Any, origin: str | None) -> bool:
    if origin is not None:
        return origin == "human"
    if type(prompt) not in (str, list) or prompt == []:
        return False
    return not any(text.startswith(MARKERS) for text in words_of(prompt).split("\n"))


def _output(content: Any) -> str:
    if type(content) is str:
        return content
    if content is None:
        return ""
    if type(content) is not list:
        raise Odd
    texts = []
    for part in content:
        kind = part.get("type") if type(part) is dict else None
        if kind == "text":
            texts.append(_text(part.get("text")))
        elif kind != "image":
            raise Odd
    return "\n".join(texts)


def _counts(usage: Any) -> tuple[int | None, ...] | None:
    """The counts of a call in the usual order; None where it says nothing."""
    if usage is None:
        return None
    if type(usage) is not dict:
        raise Odd
    created, details = usage.get("cache_creation") or {}, usage.get("output_tokens_details") or {}
    if type(created) is not dict or type(details) is not dict:
        raise Odd
    found = (
        usage.get("input_tokens"),
        usage.get("output_tokens"),
        usage.get("cache_creation_input_tokens"),
        usage.get("cache_read_input_tokens"),
        created.get("ephemeral_5m_input_tokens"),
        created.get("ephemeral_1h_input_tokens"),
        details.get("thinking_tokens"),
    )
    if not set(map(type, found)).issubset((int, type(None))):
        raise Odd
    known = tuple([count if count is not None and 0 <= count <= MOST else None for count in found])
    return known if any(count is not None for count in found) else None
