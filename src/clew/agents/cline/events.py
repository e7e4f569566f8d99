"""The files of Cline to events. Messages follow each other; none names its parent.

Cline 3 keeps counts with each reply. The extensions keep them in the file of what the editor displayed, one entry for
each request; they are reported as usage of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from msgspec import UNSET, Struct, UnsetType

from clew.agents.backups import read_inside
from clew.agents.base import SourceFile, masked_text
from clew.agents.cline import locate
from clew.agents.cline.records import (
    DisplayRecord,
    HistoryItem,
    Manifest,
    MessageRecord,
    Metrics,
    RequestCosts,
    SessionHeader,
)
from clew.agents.content import joined_output, text_block, text_or_none, text_or_unset
from clew.agents.decoding import EventDecoder, token_usage
from clew.io.codec import NOT_JSON, loads
from clew.io.compress import open_source
from clew.io.json_document import read_document_stream
from clew.io.typed_records import decode_value
from clew.model.blocks import Block, DocumentBlock, Image, Text, Thinking, ToolResult, ToolUse, Unknown
from clew.model.events import Event, SessionInfo, SubagentStarted, UsageReport
from clew.model.json import JSON
from clew.model.message import Metadata, ModelUse, Role
from clew.model.time import canonical_time
from clew.model.usage import TokenUsage

SUBAGENT_TOOL = "spawn_agent"
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
_PROMPT = re.compile(r"\s*<(user_input|task|feedback|user_message)\b[^>]*>\n?(.*?)\n?</\1>\s*", re.DOTALL)
"""A prompt as the client wraps it."""
_ENVIRONMENT_FOLDER = re.compile(r"# Current (?:Working|Workspace) Directory \((.+)\) Files")
_COST_ENTRIES = ("api_req_started", "deleted_api_reqs")
"""Display records with the counts of a request, or of requests whose messages were deleted."""
_T = TypeVar("_T", bound=Struct)


def read_events(source: SourceFile) -> Iterator[Event]:
    """Decode a session or a task."""
    decoder = _ClineDecoder(source, masked_text(source, locate.session_id(source.path)))
    yield from decoder.session_info()
    yield from decoder.read_document(locate.document_keys(source.path.name), decoder.decode)
    for number, name in enumerate(source.parts, 1):
        keys = locate.document_keys(Path(name).name)
        yield from decoder.read_document(keys, decoder.decode_displayed, number)
    yield from decoder.last_info()


class _ClineDecoder(EventDecoder):
    def __init__(self, source: SourceFile, session: str) -> None:
        super().__init__(source, session)
        self._session = session
        self._is_task = locate.is_task(source.path)
        self._subagent_tasks: list[tuple[str | None, JSON]] = []
        self._started_at: str | None = None
        self._ended_at: str | None = None

    def session_info(self) -> Iterator[Event]:
        """The facts that stand beside the messages."""
        yield SessionInfo(session_id=self._session, has_derived_parents=True)
        if self._is_task:
            yield SessionInfo(cwd=session_folder(self.source))
            return
        manifest = _read_struct(self.source, locate.manifest_name(self.source.path), Manifest)
        metadata = manifest.metadata
        is_subagent = locate.is_subagent(self.source.path)
        fork = metadata.fork.forkedFromSessionId if metadata is not None and metadata.fork is not None else None
        yield SessionInfo(
            cwd=session_folder(self.source),
            git_branch=metadata.git.branch if metadata is not None and metadata.git is not None else None,
            title=None if is_subagent else _own_title(manifest),
            is_subagent=is_subagent,
            parent_session_id=self.source.path.parent.name if is_subagent else None,
            agent_id=self._session.rpartition("__")[2] if is_subagent else None,
            extra={"extension": {"forked_from": fork}} if fork and not is_subagent else None,
        )

    def decode(self, value: dict[str, JSON], is_header: bool) -> Iterator[Event]:
        """An element of the list of messages, or what surrounds the messages of a session."""
        if is_header:
            yield from self._header(value)
            return
        record = decode_value(value, MessageRecord)
        role = _ROLES.get(record.role) if type(record.role) is str else None
        if role is None:
            yield self.make_record("other", text_or_none(value.get("type", value.get("role"))))
            return
        uuid = record.id if record.id is not None else UNSET
        blocks = list(self._blocks(record.content, role))
        message = self.make_chained(role, blocks, _metadata(record, role), uuid=uuid, time=record.ts)
        if self._is_task and role == "user":
            texts = [block.text for block in message.content if isinstance(block, Text)]
            folder = next(filter(None, map(environment_folder, texts)), None)
            # The first text is the task; a description of the environment stands behind it.
            yield SessionInfo(cwd=folder, title=texts[0] if texts and self.index == 1 else None)
        yield message

    def _header(self, value: dict[str, JSON]) -> Iterator[Event]:
        """What surrounds the messages of a session; a task is a list without a header."""
        if not self._is_task:
            header = decode_value(value, SessionHeader)
            yield SessionInfo(agent_version=header.origin.version if header.origin is not None else None)
            yield self.make_record("state", "session", time=header.updated_at)

    def decode_displayed(self, value: dict[str, JSON], is_header: bool) -> Iterator[Event]:
        """An element of the list of what the editor displayed."""
        if is_header:
            yield from self._header(value)
            return
        record = decode_value(value, DisplayRecord)
        time = canonical_time(record.ts)
        if isinstance(time, str):
            self._started_at = self._started_at or time
            self._ended_at = time
        if record.say in _COST_ENTRIES and (usage := _request_usage(record.text)) is not None:
            model = record.modelInfo.name if record.modelInfo is not None else None
            call = f"{self._session} {self.ref.record}"
            yield UsageReport(call_id=call, usage=usage, model=model, timestamp=time or None)
        kind = "cost" if record.say in _COST_ENTRIES else "progress"
        yield self.make_record(kind, record.say or record.ask, time=record.ts)

    def last_info(self) -> Iterator[Event]:
        """Times of a task, and the sub-agents of a session with the calls that started them."""
        extra: dict[str, JSON] | None = {"ended_at": self._ended_at} if self._ended_at is not None else None
        yield SessionInfo(started_at=self._started_at, extra=extra)
        calls = list(self._subagent_tasks)
        for path in locate.subagent_files(self.source.path):
            task = _first_prompt(path)
            call = next((each for each in calls if each[1] == task), None)
            if call is not None:
                calls.remove(call)
            session = masked_text(self.source, locate.session_id(path))
            agent = session.rpartition("__")[2]
            yield SubagentStarted(session_id=session, agent_id=agent, tool_id=call[0] if call is not None else None)

    def _blocks(self, content: JSON, role: Role) -> Iterator[Block]:
        if type(content) is str:
            yield _text(content, role)
            return
        for value in content if type(content) is list else ():
            yield self._block(value, role)

    def _block(self, value: JSON, role: Role) -> Block:
        if type(value) is not dict:
            return Unknown(value=value)
        match value.get("type"):
            case "text" if type(value.get("text")) is str:
                return _text(value["text"], role)
            case "thinking" if type(value.get("thinking")) is str:
                return Thinking(thinking=value["thinking"], signature=text_or_unset(value.get("signature")))
            case "reasoning" if type(value.get("text")) is str:
                return Thinking(thinking=value["text"])
            case "tool_use":
                call, name = text_or_none(value.get("id")), text_or_none(value.get("name"))
                if name == SUBAGENT_TOOL and type(value.get("input")) is dict:
                    self._subagent_tasks.append((call, value["input"].get("task")))
                return ToolUse(tool_id=call, tool_name=name, input=value.get("input"))
            case "tool_result":
                return _result(value)
            case "image" | "document" | "file":
                return _attachment(value) or Unknown(value=value)
        return Unknown(value=value)


def _result(value: dict[str, JSON]) -> ToolResult:
    output, failed = result_output(value.get("content"))
    if type(value.get("is_error")) is bool:
        failed = value["is_error"] or failed is True
    return ToolResult(
        tool_id=text_or_none(value.get("tool_use_id")),
        tool_name=text_or_none(value.get("name")) or UNSET,
        output=output,
        is_error=failed,
    )


def _own_title(manifest: Manifest) -> str | None:
    """The title of a session, unless it is only the prompt of the last run, which the client uses by itself."""
    title = manifest.metadata.title if manifest.metadata is not None else None
    if title is None or (manifest.prompt or "").strip().startswith(title.strip()):
        return None
    return title


def _text(text: str, role: Role) -> Text:
    """A text; a prompt without the tags that the client puts around it."""
    wrapped = _PROMPT.fullmatch(text) if role == "user" else None
    return Text(text=wrapped[2] if wrapped else text)


def environment_folder(text: str) -> str | None:
    """The folder that an extension names when it describes the environment to the model."""
    found = _ENVIRONMENT_FOLDER.search(text)
    return found[1] if found else None


def session_folder(source: SourceFile) -> str | None:
    """The folder of the project, where a file beside the messages names it."""
    if locate.is_task(source.path):
        item = _read_struct(source, locate.HISTORY_ITEM, HistoryItem)
        return item.workspace or item.cwdOnTaskInitialization or item.cwd
    manifest = _read_struct(source, locate.manifest_name(source.path), Manifest)
    return manifest.cwd or manifest.workspace_root


def _metadata(record: MessageRecord, role: Role) -> Metadata:
    metadata = Metadata()
    if record.isSummary:
        metadata.is_compact_summary = True
    if role != "assistant":
        return metadata
    if record.modelInfo is not None and record.modelInfo.name is not None:
        metadata.model = ModelUse(name=record.modelInfo.name)
    if record.metrics is not None and (usage := _token_usage(record.metrics)) != TokenUsage():
        metadata.token_usage = usage
        if record.id is not None:
            # A fork copies messages with their ids.
            metadata.message_id = record.id
    return metadata


def _token_usage(metrics: Metrics) -> TokenUsage:
    read, written = metrics.cacheReadTokens or 0, metrics.cacheWriteTokens or 0
    total = metrics.inputTokens
    if total is not None and total >= read + written:
        total -= read + written
    return token_usage(
        input=total,
        output=metrics.outputTokens,
        cache_read=metrics.cacheReadTokens,
        cache_write=metrics.cacheWriteTokens,
    )


def _request_usage(text: JSON) -> TokenUsage | None:
    """The counts of a request; None for one that has not ended."""
    try:
        value = loads(text.encode()) if type(text) is str else None
    except NOT_JSON:
        return None
    costs = decode_value(value, RequestCosts) if type(value) is dict else RequestCosts()
    if costs.tokensIn is None and costs.tokensOut is None:
        return None
    return token_usage(
        input=costs.tokensIn, output=costs.tokensOut, cache_read=costs.cacheReads, cache_write=costs.cacheWrites
    )


def result_output(content: JSON) -> tuple[JSON, bool | UnsetType]:
    """The output of a tool, and whether it failed.

    The tools of Cline 3 return `{query, result, success, error?}`, as a list or as the text of one such object. The
    results are the output. `success` is the only sign of a command that failed.
    """
    entries: JSON = content
    if type(content) is str and content.startswith('{"query":'):
        try:
            entries = [loads(content.encode())]
        except NOT_JSON:
            return content, UNSET
    if type(entries) is not list:
        return content, UNSET
    if entries and all(type(entry) is dict and "query" in entry and "success" in entry for entry in entries):
        texts = [_entry_text(entry) for entry in entries]
        return "\n".join(texts), not all(entry["success"] for entry in entries)
    return joined_output([_output_block(entry) for entry in entries]), UNSET


def _entry_text(entry: dict[str, JSON]) -> str:
    result = entry.get("result") or entry.get("error") or ""
    return result if type(result) is str else str(result)


def _output_block(entry: JSON) -> Block:
    return (_attachment(entry) if type(entry) is dict else None) or text_block(entry)


def _attachment(value: dict[str, JSON]) -> Block | None:
    """An image, document or file in a message; None where it has another shape."""
    source = value.get("source")
    match value.get("type"):
        case "image" if type(value.get("data")) is str:
            return Image(media_type=text_or_unset(value.get("mediaType")), encoding="base64", image=value["data"])
        case "image" | "document" as kind if type(source) is dict:
            encoding = {"base64": "base64", "url": "url", "text": "text"}.get(str(source.get("type")))
            body = source.get("url") if encoding == "url" else source.get("data")
            if encoding is None or type(body) is not str:
                return None
            media_type = text_or_unset(source.get("media_type"))
            if kind == "image":
                return Image(media_type=media_type, encoding=encoding, image=body)
            return DocumentBlock(media_type=media_type, encoding=encoding, document=body)
        case "file" if type(value.get("content")) is str and type(value.get("path")) is str:
            return DocumentBlock(encoding="text", document=value["content"], title=value["path"])
    return None


def _first_prompt(path: Path) -> str | None:
    """The text of the first message of a sub-agent: the task that its call names."""
    with open_source(path) as stream:
        for found in read_document_stream(stream, locate.document_keys(path.name)):
            if not found.is_header and found.value is not None:
                content = decode_value(found.value, MessageRecord).content
                first = content[0] if type(content) is list and content else content
                text = first.get("text") if type(first) is dict else first
                return _text(text, "user").text if type(text) is str else None
    return None


def _read_struct(source: SourceFile, name: str, record_type: type[_T]) -> _T:
    """A small JSON object beside a session; what is missing or damaged stays unset."""
    text = read_inside(source.path.parent, name)
    try:
        value = loads(text) if text is not None else None
    except NOT_JSON:
        value = None
    if type(value) is not dict:
        return record_type()
    return decode_value(value if source.mask is None else source.mask.value(value), record_type)
