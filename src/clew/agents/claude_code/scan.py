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
from clew.io.records import MAX_LINE, read_records
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


def scan(source: SourceFile) -> Facts:
    """Ids, times, counts and links of a transcript."""
    facts = Facts()
    scanner = _Scanner(facts)
    with open_source(source.path) as stream:
        while text := stream.readline(MAX_LINE):
            facts.bytes += len(text)
            try:
                # A record is checked for real when it is read; here only its outline counts.
                scanner.see(_decode(text), text)
            except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
                scanner.see_damaged(text)
    facts.extra["calls"] = scanner.calls
    return facts


class _Scanner:
    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.calls: dict[str, str] = {}

    def see_damaged(self, text: bytes) -> None:
        """A line that is no plain record: take it apart the careful way."""
        import io

        for record in read_records(io.BytesIO(text)):
            self.facts.records += record.value is None
            if record.value is not None:
                self.see(msgspec.convert(_outline(record.value, _Line), _Line), record.raw)

    def see(self, line: _Line, text: bytes) -> None:
        facts = self.facts
        facts.records += 1
        kind = line.type
        if kind in ("user", "assistant"):
            self.said(line, text)
        elif kind in ("system", "attachment"):
            self.noted(line, text)
        elif kind == "progress":
            facts.links.add(line.uuid, line.parentUuid, SIDECHAIN if line.isSidechain else 0)
            if line.data is not None and line.data.agentId and line.parentToolUseID:
                self.calls.setdefault(line.data.agentId, line.parentToolUseID)
        else:
            self.bookkeeping(line)

    def context(self, line: _Line) -> str | None:
        """Take what every chain record tells; returns its time in canonical spelling."""
        facts = self.facts
        time = line.timestamp
        if type(time) is not str or len(time) != 24 or time[23] != "Z":
            time = _canonical(time)
        facts.saw_time(time)
        if line.sessionId is not None:
            facts.sessions[line.sessionId] += 1
        if facts.cwd is None and line.cwd and not line.isSidechain:
            facts.cwd = line.cwd
        if "cwd" not in facts.extra and line.cwd:
            facts.extra["cwd"] = line.cwd
        facts.git_branch = facts.git_branch or line.gitBranch
        facts.version = line.version or facts.version
        facts.slug = facts.slug or line.slug
        if line.agentId and "agent_id" not in facts.extra:
            facts.extra["agent_id"] = line.agentId
        return time

    def noted(self, line: _Line, text: bytes) -> None:
        facts = self.facts
        time = self.context(line)
        facts.messages += 1
        flags = MESSAGE | (SIDECHAIN if line.isSidechain else 0)
        attachment = line.attachment
        if attachment is not None and attachment.type == "queued_command" and attachment.prompt is not UNSET:
            flags |= SIGNIFICANT | SAID
            facts.user_messages += 1
            if queued_prompt(bytes(attachment.prompt), attachment.origin.kind if attachment.origin else None):
                facts.prompts += 1
        facts.links.add(line.uuid, line.parentUuid, flags, facts.messages, _seconds(time), line.logicalParentUuid)

    def said(self, line: _Line, text: bytes) -> None:
        facts = self.facts
        time = self.context(line)
        facts.messages += 1
        flags = MESSAGE | SAID | (SIDECHAIN if line.isSidechain else 0)
        results = self.blocks(line)
        if results:
            flags |= RESULT
        if line.type == "user":
            flags |= self.user(line, text, bool(results))
        else:
            flags |= self.assistant(line)
        seconds = _seconds(time) if flags & SIGNIFICANT else 0.0
        facts.links.add(line.uuid, line.parentUuid, flags, facts.messages, seconds, line.logicalParentUuid)

    def blocks(self, line: _Line) -> list[str]:
        """Note calls and results; returns the calls this line answers."""
        content = line.message.content if line.message is not None else None
        results: list[str] = []
        if type(content) is not list:
            return results
        facts = self.facts
        for block in content:
            if block.type == "tool_use":
                facts.tool_calls += 1
                if block.name:
                    facts.tools[block.name] += 1
            elif block.type == "tool_result":
                results.append(block.tool_use_id or "")
                facts.has_errors = facts.has_errors or block.is_error is True
            elif block.type == "thinking":
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
        elif human_prompt(line.message.content if line.message else None, line.origin.kind if line.origin else None, text):
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
        if line.sessionId is not None and "claimed" not in facts.extra:
            facts.extra["claimed"] = line.sessionId


def _seconds(time: str | None) -> float:
    try:
        return datetime.fromisoformat(time).timestamp() if time is not None else 0.0
    except ValueError:
        return 0.0


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
