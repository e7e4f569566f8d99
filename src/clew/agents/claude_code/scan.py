"""The first pass over a transcript: names only the wanted fields, so that the rest is skipped unread."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from clew.agents.base import SourceFile, open_main
from clew.agents.claude_code.prompts import human_prompt, queued_prompt
from clew.derive.facts import Facts
from clew.derive.usage import FIELDS
from clew.graph.links import MESSAGE, RESULT, SAID, SIDECHAIN, SIGNIFICANT
from clew.io.codec import dumps
from clew.io.codec import loads as _decode_any
from clew.io.compress import open_source
from clew.io.records import read_chunks, read_line, read_lines, read_records
from clew.model import Subagent
from clew.model.json import JSON
from clew.model.time import is_canonical, parse_time, spell_time

SYNTHETIC = "<synthetic>"
_NO_COUNTS = (None,) * len(FIELDS)


class _Block(msgspec.Struct, gc=False):
    type: str | None = None
    text: msgspec.Raw | UnsetType = UNSET
    id: str | None = None
    name: str | None = None
    input: msgspec.Raw | UnsetType = UNSET
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


_decoder = msgspec.json.Decoder(_Line)
_decode, _decode_lines = _decoder.decode, _decoder.decode_lines
_DAMAGED = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)


SETTLED = 64
"""After so many records nobody waits any longer for a branch, a slug or an agent's id."""


def scan(source: SourceFile, tree: bool = True, counts: bool = True) -> Facts:
    """What one pass over a transcript tells; `tree`: links between records; `counts`: tokens, models and tools."""
    scanner = _Scanner(Facts(), source.path, tree, counts)
    see = scanner.see
    with open_main(source) as stream:
        for chunk, whole in read_chunks(stream):
            if not whole:
                scanner.facts.records += 1
                continue
            try:
                # A record is checked for real when it is read; here only its outline counts.
                lines = _decode_lines(chunk)
            except _DAMAGED:
                scanner.read_damaged(chunk)
            else:
                for line in lines:
                    see(line)
    return scanner.finish()


def first_claim(source: SourceFile) -> str | None:
    """The session id that the first record with one claims; reads no further."""
    with open_source(source.path) as stream:
        for record in read_records(stream):
            claim = record.value.get("sessionId") if record.value else None
            if isinstance(claim, str):
                return claim
    return None


class _Scanner:
    """Collects facts from lines, one after the other."""

    def __init__(self, facts: Facts, path: Path, tree: bool, counts: bool) -> None:
        self.facts = facts
        self.path = path
        self.counts = counts
        self.calls: dict[str, str] = {}
        self.unsettled = SETTLED
        self.session: str | None = None
        self.of_session = 0
        self.first: str | None = None
        self.last = ""
        self.add = facts.links.add if tree else facts.links.name if counts else _leave

    def finish(self) -> Facts:
        """Hand over what was kept at hand."""
        facts = self.facts
        self._count_session(None)
        facts.extra["calls"] = self.calls
        for time in (self.first, self.last):
            facts.saw_time(time or None)
        return facts

    def read_damaged(self, chunk: bytes) -> None:
        """Lines of which at least one is no plain record: take that one apart the careful way."""
        for text, *_ in read_lines(io.BytesIO(chunk)):
            try:
                self.see(_decode(text))
            except _DAMAGED:
                self._salvage(text)

    def _salvage(self, text: bytes) -> None:
        for record in read_line(text, 0, 0):
            if record.value is None:
                self.facts.records += 1
            else:
                self.see(msgspec.convert(_outline(record.value, _Line), _Line))

    def see(self, line: _Line) -> None:
        """See a record."""
        facts = self.facts
        facts.records += 1
        kind = line.type
        if kind == "assistant" or kind == "user":
            self.said(line)
        elif kind == "system" or kind == "attachment":
            self.noted(line)
        elif kind == "progress":
            self.add(line.uuid, line.parentUuid, SIDECHAIN if line.isSidechain else 0)
            if line.data is not None and line.data.agentId and line.parentToolUseID:
                self.calls.setdefault(line.data.agentId, line.parentToolUseID)
        else:
            self.bookkeeping(line)
        if line.sessionId and "claimed" not in facts.extra:
            facts.extra["claimed"] = line.sessionId

    def context(self, line: _Line) -> None:
        """Take what every chain record tells."""
        if line.sessionId == self.session:
            self.of_session += 1
        else:
            self._count_session(line.sessionId)
        if line.version:
            self.facts.version = line.version
        if self.unsettled:
            self.settle(line)
        time = line.timestamp
        if type(time) is str and len(time) == 24 and time[10] == "T" and time[23] == "Z":
            if time > self.last and _is_time(time):
                self.last = time
            if (self.first is None or time < self.first) and _is_time(time):
                self.first = time
        elif time and (spelled := _canonical(time)) is not None:
            self.facts.saw_time(spelled)

    def _count_session(self, session: str | None) -> None:
        if self.session:
            self.facts.sessions[self.session] += self.of_session
        self.session, self.of_session = session, 1

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
        self.unsettled -= self.unsettled > 1 or facts.cwd is not None

    def noted(self, line: _Line) -> None:
        facts = self.facts
        self.context(line)
        facts.messages += 1
        flags = MESSAGE | (SIDECHAIN if line.isSidechain else 0)
        attachment = line.attachment
        if attachment is not None and attachment.type == "queued_command" and attachment.prompt is not UNSET:
            flags |= SIGNIFICANT | SAID
            facts.user_messages += 1
            if queued_prompt(bytes(attachment.prompt), attachment.origin.kind if attachment.origin else None):
                facts.prompts += 1
        self.add(line.uuid, line.parentUuid, flags, facts.messages, _seconds(line.timestamp), line.logicalParentUuid)

    def said(self, line: _Line) -> None:
        facts = self.facts
        self.context(line)
        facts.messages += 1
        flags = MESSAGE | SAID | SIDECHAIN if line.isSidechain else MESSAGE | SAID
        answers = False
        message = line.message
        if message and type(message.content) is list:
            answers = self.blocks(line, message.content)
            if answers:
                flags |= RESULT
        flags |= self.user(line, answers) if line.type == "user" else self.assistant(line)
        seconds = _seconds(line.timestamp) if flags & SIGNIFICANT else 0.0
        self.add(line.uuid, line.parentUuid, flags, facts.messages, seconds, line.logicalParentUuid)

    def blocks(self, line: _Line, content: list[_Block]) -> bool:
        """Note calls and results; True where the line answers a call."""
        answered: str | None = None
        facts = self.facts
        for block in content:
            kind = block.type
            if kind == "tool_use":
                # A block without what makes a call is none.
                if self.counts and block.id is not None and block.name is not None and block.input is not UNSET:
                    facts.tool_calls += 1
                    facts.tools[block.name] += 1
            elif kind == "tool_result" and block.tool_use_id is not None:
                if answered is None:
                    answered = block.tool_use_id
                if block.is_error:
                    facts.has_errors = True
            elif kind == "thinking":
                facts.has_thinking = True
        if answered is not None and type(line.toolUseResult) is _Result and line.toolUseResult.agentId:
            self.calls[line.toolUseResult.agentId] = answered
        return answered is not None

    def user(self, line: _Line, answers: bool) -> int:
        facts = self.facts
        facts.user_messages += 1
        if answers or line.isMeta or line.isCompactSummary:
            return 0
        if line.isSidechain:
            self.inline_agent(line)
        else:
            self.prompt(line.message.content if line.message else None, line.origin.kind if line.origin else None)
        return SIGNIFICANT

    def prompt(self, content: str | list[_Block] | None, origin: str | None) -> None:
        facts = self.facts
        texts = _texts(content)
        if human_prompt(content, origin, texts):
            facts.prompts += 1
            if facts.first_prompt is None:
                facts.first_prompt = "\n".join(texts) or None

    def inline_agent(self, line: _Line) -> None:
        """Before sub-agents had files of their own, each was a chain with a root inside the parent's file."""
        if not line.parentUuid and not line.agentId and line.uuid:
            self.facts.subagents.append(Subagent(root_uuid=line.uuid))

    def assistant(self, line: _Line) -> int:
        facts = self.facts
        message = line.message
        if not message:
            return SIGNIFICANT
        if self.counts and message.model != SYNTHETIC:
            if message.model:
                facts.models[message.model] += 1
            counts = message.usage.counts() if message.usage else _NO_COUNTS
            if counts == _NO_COUNTS and line.usage:
                counts = line.usage.counts()
            if counts != _NO_COUNTS:
                call = message.id or line.uuid or f"{self.path}:{facts.records}"
                facts.ledger.note(call, message.model, counts)
        group = message.id
        return SIGNIFICANT if not group or facts.links.begins_reply(group) else 0

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


def _leave(*_ignored: object) -> None:
    """For whom neither links nor names are wanted."""


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _seconds(time: JSON) -> float:
    try:
        stamp = datetime.fromisoformat(time)
        return stamp.timestamp() if stamp.tzinfo is not None else stamp.replace(tzinfo=UTC).timestamp()
    except (TypeError, ValueError):
        parsed = parse_time(time)
        return parsed.timestamp() if parsed is not None else 0.0


def _canonical(time: JSON) -> str | None:
    if isinstance(time, str) and is_canonical(time):
        return time
    stamp = parse_time(time)
    return spell_time(stamp) if stamp is not None else None


def _texts(content: str | list[_Block] | None) -> list[str]:
    """The texts of a prompt."""
    if isinstance(content, str):
        return [content]
    raws = [block.text for block in content or () if block.type == "text" and block.text is not UNSET]
    texts = [_decode_any(raw) for raw in raws]
    return [text for text in texts if isinstance(text, str)]


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
            if field.name in ("prompt", "text", "input"):
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
