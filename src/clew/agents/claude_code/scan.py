"""The first pass over a transcript: names only the wanted fields, so that the rest is skipped unread."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from clew.agents.base import SourceFile
from clew.agents.claude_code.prompts import human_prompt, queued_prompt
from clew.derive.facts import Facts
from clew.graph.links import MESSAGE, RESULT, SAID, SIDECHAIN, SIGNIFICANT
from clew.io.codec import decode, dumps
from clew.io.compress import open_source
from clew.io.records import MAX_LINE, read_line, read_records
from clew.model import Subagent
from clew.model.json import JSON
from clew.model.time import is_canonical, parse_time, spell_time

SYNTHETIC = "<synthetic>"
_CHAIN = ("user", "assistant", "system", "attachment", "progress")


class _Block(msgspec.Struct, gc=False):
    type: str | None = None
    id: str | None = None
    name: str | None = None
    tool_use_id: str | None = None
    is_error: bool | None = None


class _Created(msgspec.Struct, gc=False):
    ephemeral_5m_input_tokens: int | None = None
    ephemeral_1h_input_tokens: int | None = None


class _Details(msgspec.Struct, gc=False):
    thinking_tokens: int | None = None


class _Usage(msgspec.Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation: _Created | None = None
    output_tokens_details: _Details | None = None

    def counts(self) -> tuple[int | None, ...]:
        created, details = self.cache_creation, self.output_tokens_details
        return (
            self.input_tokens,
            self.output_tokens,
            self.cache_creation_input_tokens,
            self.cache_read_input_tokens,
            created.ephemeral_5m_input_tokens if created else None,
            created.ephemeral_1h_input_tokens if created else None,
            details.thinking_tokens if details else None,
        )


class _Message(msgspec.Struct, gc=False):
    id: str | None = None
    model: str | None = None
    content: str | list[_Block] | None = None
    usage: _Usage | None = None


class _Result(msgspec.Struct, gc=False):
    agentId: str | None = None


class _Origin(msgspec.Struct, gc=False):
    kind: str | None = None


class _Attachment(msgspec.Struct, gc=False):
    type: str | None = None
    prompt: msgspec.Raw | UnsetType = UNSET
    origin: _Origin | None = None


class _Progress(msgspec.Struct, gc=False):
    agentId: str | None = None


class _Line(msgspec.Struct, gc=False):
    type: str | None = None
    uuid: str | None = None
    parentUuid: str | None = None
    logicalParentUuid: str | None = None
    timestamp: str | int | float | None = None
    sessionId: str | None = None
    agentId: str | None = None
    isSidechain: bool | None = None
    isMeta: bool | None = None
    isCompactSummary: bool | None = None
    cwd: str | None = None
    gitBranch: str | None = None
    version: str | None = None
    slug: str | None = None
    requestId: str | None = None
    message: _Message | None = None
    usage: _Usage | None = None
    toolUseResult: _Result | str | list[msgspec.Raw] | None = None
    origin: _Origin | None = None
    attachment: _Attachment | None = None
    data: _Progress | None = None
    parentToolUseID: str | None = None
    subtype: str | None = None
    summary: str | None = None
    aiTitle: str | None = None
    customTitle: str | None = None
    leafUuid: str | None = None


_decode = msgspec.json.Decoder(_Line).decode


def scan(source: SourceFile, tree: bool = True) -> Facts:
    """Ids, times, counts and, with `tree`, links of a transcript."""
    facts = Facts()
    scanner = _Scanner(facts, tree)
    see = scanner.see
    size = 0
    with open_source(source.path) as stream:
        while text := stream.readline(MAX_LINE):
            size += len(text)
            try:
                # A record is checked for real when it is read; here only its outline counts.
                line = _decode(text)
            except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
                scanner.see_damaged(text)
            else:
                see(line, text)
    facts.bytes = size
    scanner.finish()
    return facts


def first_claim(source: SourceFile) -> str | None:
    """The session id that the first record with one claims; reads no further."""
    with open_source(source.path) as stream:
        for record in read_records(stream):
            claim = record.value.get("sessionId") if record.value else None
            if isinstance(claim, str):
                return claim
    return None


class _Scanner:
    def __init__(self, facts: Facts, tree: bool) -> None:
        self.facts = facts
        self.calls: dict[str, str] = {}
        self.settled = False
        self.sessions: dict[str | None, int] = {}
        self.first = float("inf")
        self.last = float("-inf")
        self.add = facts.links.add if tree else facts.links.name

    def finish(self) -> None:
        """Hand over what was kept at hand."""
        self.facts.extra["calls"] = self.calls
        self.facts.sessions.update({name: count for name, count in self.sessions.items() if name is not None})

    def see_damaged(self, text: bytes) -> None:
        """A line that is no plain record: take it apart the careful way."""
        for record in read_line(text, 0, 0):
            if record.value is None:
                self.facts.records += 1
            else:
                self.see(msgspec.convert(_outline(record.value, _Line), _Line), record.raw)

    def see(self, line: _Line, text: bytes) -> None:
        facts = self.facts
        facts.records += 1
        kind = line.type
        if kind == "assistant" or kind == "user":
            self.said(line, text)
        elif kind == "system" or kind == "attachment":
            self.noted(line)
        elif kind == "progress":
            self.add(line.uuid, line.parentUuid, SIDECHAIN if line.isSidechain else 0)
            if line.data is not None and line.data.agentId and line.parentToolUseID:
                self.calls.setdefault(line.data.agentId, line.parentToolUseID)
        else:
            self.bookkeeping(line)
        if line.sessionId is not None and "claimed" not in facts.extra:
            facts.extra["claimed"] = line.sessionId

    def context(self, line: _Line) -> float:
        """Take what every chain record tells; returns its time in seconds."""
        facts = self.facts
        session = line.sessionId
        self.sessions[session] = self.sessions.get(session, 0) + 1
        facts.version = line.version or facts.version
        if not self.settled:
            self.settle(line)
        time, seconds = _read_time(line.timestamp)
        if time is not None:
            if seconds > self.last:
                self.last, facts.last_time = seconds, time
            if seconds < self.first:
                self.first, facts.first_time = seconds, time
        return seconds

    def settle(self, line: _Line) -> None:
        """What the first record that says it says for all."""
        facts, extra = self.facts, self.facts.extra
        if facts.cwd is None and line.cwd and not line.isSidechain:
            facts.cwd = line.cwd
        if "cwd" not in extra and line.cwd:
            extra["cwd"] = line.cwd
        facts.git_branch = facts.git_branch or line.gitBranch
        facts.slug = facts.slug or line.slug
        if line.agentId and "agent_id" not in extra:
            extra["agent_id"] = line.agentId
        self.settled = bool(facts.cwd and facts.git_branch and facts.slug and "agent_id" in extra)

    def noted(self, line: _Line) -> None:
        facts = self.facts
        seconds = self.context(line)
        facts.messages += 1
        flags = MESSAGE | (SIDECHAIN if line.isSidechain else 0)
        attachment = line.attachment
        if attachment is not None and attachment.type == "queued_command" and attachment.prompt is not UNSET:
            flags |= SIGNIFICANT | SAID
            facts.user_messages += 1
            if queued_prompt(bytes(attachment.prompt), attachment.origin.kind if attachment.origin else None):
                facts.prompts += 1
        self.add(line.uuid, line.parentUuid, flags, facts.messages, seconds, line.logicalParentUuid)

    def said(self, line: _Line, text: bytes) -> None:
        facts = self.facts
        seconds = self.context(line)
        facts.messages += 1
        flags = MESSAGE | SAID | SIDECHAIN if line.isSidechain else MESSAGE | SAID
        results = None
        message = line.message
        if message is not None and type(message.content) is list:
            results = self.blocks(line, message.content)
            if results:
                flags |= RESULT
        if line.type == "user":
            flags |= self.user(line, text, bool(results))
        else:
            flags |= self.assistant(line)
        self.add(line.uuid, line.parentUuid, flags, facts.messages, seconds, line.logicalParentUuid)

    def blocks(self, line: _Line, content: list[_Block]) -> list[str]:
        """Note calls and results; returns the calls this line answers."""
        results: list[str] = []
        facts = self.facts
        for block in content:
            kind = block.type
            if kind == "tool_use":
                facts.tool_calls += 1
                if block.name:
                    facts.tools[block.name] += 1
            elif kind == "tool_result":
                results.append(block.tool_use_id or "")
                if block.is_error:
                    facts.has_errors = True
            elif kind == "thinking":
                facts.has_thinking = True
        if results and type(line.toolUseResult) is _Result and line.toolUseResult.agentId:
            self.calls[line.toolUseResult.agentId] = results[0]
        return results

    def user(self, line: _Line, text: bytes, answers: bool) -> int:
        facts = self.facts
        facts.user_messages += 1
        if answers or line.isMeta or line.isCompactSummary:
            return 0
        if line.isSidechain:
            self.inline_agent(line)
        elif human_prompt(
            line.message.content if line.message else None, line.origin.kind if line.origin else None, text
        ):
            facts.prompts += 1
            if facts.first_prompt is None:
                facts.first_prompt = _prompt_text(text)
        return SIGNIFICANT

    def inline_agent(self, line: _Line) -> None:
        """Before sub-agents had files of their own, each was a chain with a root inside the parent's file."""
        if line.parentUuid is None and line.agentId is None and line.uuid is not None:
            self.facts.subagents.append(Subagent(root_uuid=line.uuid))

    def assistant(self, line: _Line) -> int:
        facts = self.facts
        message = line.message
        if message is None:
            return SIGNIFICANT
        usage = message.usage or line.usage
        if message.model and message.model != SYNTHETIC:
            facts.models[message.model] += 1
        if usage is not None and message.model != SYNTHETIC:
            facts.ledger.note(message.id or line.uuid or f"line {facts.records}", message.model, usage.counts())
        group = message.id
        return SIGNIFICANT if group is None or facts.links.begins_reply(group) else 0

    def bookkeeping(self, line: _Line) -> None:
        facts = self.facts
        if line.type == "summary" and line.summary and line.leafUuid:
            facts.summaries[line.leafUuid] = line.summary
        elif line.type == "ai-title" and line.aiTitle:
            facts.titles["ai"] = line.aiTitle
        elif line.type == "custom-title" and line.customTitle:
            facts.titles["custom"] = line.customTitle
        elif line.type == "last-prompt" and line.leafUuid:
            facts.leaf_uuid = line.leafUuid


def _read_time(time: JSON) -> tuple[str | None, float]:
    """A time in its canonical spelling and in seconds; None and 0 where it is none."""
    try:
        if len(time) == 24 and time[10] == "T" and time[23] == "Z":
            return time, datetime.fromisoformat(time).timestamp()
    except (TypeError, ValueError):
        pass
    spelled = _canonical(time)
    return spelled, datetime.fromisoformat(spelled).timestamp() if spelled is not None else 0.0


def _canonical(time: JSON) -> str | None:
    if isinstance(time, str) and is_canonical(time):
        return time
    stamp = parse_time(time)
    return spell_time(stamp) if stamp is not None else None


def _prompt_text(text: bytes) -> str | None:
    """The words of a prompt, read from its whole line."""
    message = decode(text.rstrip(b"\r\n")).value.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return content
    texts = [b.get("text") for b in content or () if isinstance(b, dict) and b.get("type") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str)) or None


def _outline(value: JSON, struct: type[msgspec.Struct]) -> dict[str, Any]:
    """Of an odd record only those fields that have the expected type."""
    outline: dict[str, Any] = {}
    for field in msgspec.structs.fields(struct):
        if field.name in value:
            item = value[field.name]
            for nested in (_Message, _Usage, _Created, _Details, _Attachment, _Result, _Origin, _Progress):
                if isinstance(item, dict) and _accepts(field.type, nested):
                    item = _outline(item, nested)
                    break
            if isinstance(item, list) and field.name == "content":
                item = [_outline(block, _Block) if isinstance(block, dict) else {} for block in item]
            if field.name == "prompt":
                outline[field.name] = msgspec.Raw(dumps(item))
                continue
            try:
                msgspec.convert(item, field.type)
            except msgspec.ValidationError:
                continue
            outline[field.name] = item
    return outline


def _accepts(annotation: Any, struct: type[msgspec.Struct]) -> bool:
    return struct in getattr(annotation, "__args__", (annotation,))
