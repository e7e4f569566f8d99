"""Cursor's rows to events.

A bubble is a message: a prompt, or a text, a thought or a call of the model. Those between two prompts share
`metadata.request_id`. A call and its result are one bubble and two messages. Token counts are not decoded: most are
zero, and what the others count is not known.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

from msgspec import UNSET, UnsetType

from clew.agents.base import SourceFile, fragment_events, open_main
from clew.agents.cursor.layout import CHAT_KEY, MESSAGE_KEY
from clew.agents.cursor.records import Bubble, BubbleHeader, Composer, ImageData, KeyRow, TodoItem, ToolCall, Workspace
from clew.agents.database_rows import LINES, Line, decode_json, decode_row, parse_json
from clew.io.compress import damage
from clew.io.records import RawRecord
from clew.io.typed_records import decode_each, decode_value
from clew.model.blocks import Block, Image, Text, Thinking, ToolResult, ToolUse
from clew.model.codes import problem
from clew.model.events import Event, SessionInfo, SubagentStarted
from clew.model.json import JSON
from clew.model.message import Message, Metadata, ModelUse, Role, SourceRef
from clew.model.record import ORIGIN, Record
from clew.model.time import canonical_time, format_utc
from clew.model.todo import Todo

RESULT_SUFFIX = ":result"
"""Behind the uuid of a call: the uuid of the message with its result."""
USER, ASSISTANT = 1, 2
_ENDED = ("completed", "error", "cancelled")


def read_events(source: SourceFile) -> Iterator[Event]:
    """Decode a chat, in file order."""
    decoder = _Decoder()
    with open_main(source) as stream:
        for number, line in LINES.decode_file(stream):
            if isinstance(line, RawRecord):
                yield from fragment_events(source, line, number, after=decoder.index)
            else:
                yield from decoder.events(line, SourceRef(0, number - 1))
        found = damage(stream)
    if found:
        yield problem("damaged-archive", found, file=str(source.path))


class _Decoder:
    def __init__(self) -> None:
        self.index = 0
        self._tail: str | None = None
        """The uuid that the next message follows."""
        self._named: frozenset[str] = frozenset()
        """The bubbles that the chat has, in whatever order."""
        self._last_named: str | None = None
        self._todos: list[Todo] = []
        """The todo list as it stands now: it is that of the last message."""
        self._model: str | None = None
        self._request: str | None = None
        self._uuids: set[str] = set()

    def events(self, line: Line, ref: SourceRef) -> Iterator[Event]:
        """The events of the next line."""
        row = decode_row(line.row, KeyRow)
        key = row.key or ""
        if line.clew_rows is not None:
            session = line.session if isinstance(line.session, str) else None
            yield SessionInfo(session_id=session, has_derived_parents=True)
            yield self._record("state", ref, "header")
        elif line.type == ORIGIN:
            yield self._record("state", ref, ORIGIN)
        elif key.startswith(CHAT_KEY):
            yield from self._chat(decode_json(row.value, Composer), ref)
        elif key.startswith(MESSAGE_KEY):
            bubble = decode_json(row.value, Bubble)
            name = key.rpartition(":")[2]
            if bubble is None:
                yield problem("malformed-json", line=ref.record + 1, path="row.value")
                yield self._record("other", ref, "bubble")
            elif self._named and name not in self._named:
                # What it followed is not recorded, so it cannot be shown as a branch.
                yield self._record("state", ref, "removed bubble", bubble.text or UNSET)
            else:
                yield from self._bubble(bubble, name, ref)
        else:
            yield self._record("other", ref, key.partition(":")[0] or UNSET)

    def _chat(self, chat: Composer | None, ref: SourceRef) -> Iterator[Event]:
        if chat is None:
            yield problem("malformed-json", line=ref.record + 1, path="row.value")
            yield self._record("other", ref, "composerData")
            return
        headers = chat.fullConversationHeadersOnly
        ids = [header.bubbleId for header in decode_each(headers, BubbleHeader) if header.bubbleId]
        self._named, self._last_named = frozenset(ids), ids[-1] if ids else None
        self._todos = [
            Todo(content=_text(entry.content), status=_text(entry.status))
            for entry in decode_each(chat.todos, TodoItem)
        ]
        self._model = chat.modelConfig.modelName if chat.modelConfig is not None else None
        parent = chat.subagentInfo.parentComposerId if chat.subagentInfo is not None else None
        extra: dict[str, JSON] = {"mode": chat.unifiedMode, "archived": chat.isArchived or None}
        yield SessionInfo(
            session_id=chat.composerId,
            cwd=_folder(chat.workspaceIdentifier),
            agent_id=chat.composerId if parent else None,
            parent_session_id=parent,
            is_subagent=parent is not None,
            started_at=_milliseconds(chat.createdAt),
            title=chat.name or None,
            has_derived_parents=True,
            extra={"extension": {name: value for name, value in extra.items() if value is not None}},
        )
        children = chat.subComposerIds if isinstance(chat.subComposerIds, list) else []
        for child in children:
            if isinstance(child, str):
                yield SubagentStarted(session_id=child, agent_id=child)
        old = decode_each(chat.conversation, Bubble)
        if not old:
            yield self._record("title" if chat.name else "state", ref, "composerData", chat.name or UNSET)
        for number, bubble in enumerate(old, 1):
            yield from self._bubble(bubble, bubble.bubbleId or f"bubble {number}", ref)

    def _bubble(self, bubble: Bubble, name: str, ref: SourceRef) -> Iterator[Event]:
        time = _time(bubble.createdAt)
        uuid = name if name not in self._uuids else f"{name}#{len(self._uuids)}"
        self._uuids.add(uuid)
        if bubble.type != ASSISTANT:
            self._request = bubble.requestId
            content: list[Block] = [*([Text(text=bubble.text)] if bubble.text else []), *_images(bubble.images)]
            yield self._message("user", uuid, ref, content, time, Metadata())
            return
        content = []
        if bubble.thinking is not None:
            signature = bubble.thinking.signature or UNSET
            content.append(Thinking(thinking=bubble.thinking.text or "", signature=signature))
        if bubble.text:
            content.append(Text(text=bubble.text))
        call, result = _call(bubble.toolFormerData, uuid) if bubble.toolFormerData is not None else (None, None)
        if call is not None:
            content.append(call)
        metadata = self._metadata(bubble)
        if name == self._last_named and self._todos:
            metadata.todos = self._todos
        yield self._message("assistant", uuid, ref, content, time, metadata)
        if result is not None:
            yield self._message("user", uuid + RESULT_SUFFIX, ref, [result], time, Metadata())

    def _metadata(self, bubble: Bubble) -> Metadata:
        self._request = bubble.requestId or bubble.usageUuid or self._request
        model = bubble.modelInfo.modelName if bubble.modelInfo is not None else None
        metadata = Metadata(model=ModelUse(name=model or self._model))
        if self._request:
            metadata.request_id = self._request
        return metadata

    def _message(
        self, role: Role, uuid: str, ref: SourceRef, content: list[Block], time: str | None, metadata: Metadata
    ) -> Message:
        self.index += 1
        parent, self._tail = self._tail, uuid
        return Message(
            index=self.index,
            uuid=uuid,
            parent_uuid=parent,
            role=role,
            timestamp=UNSET if time is None else time,
            content=content,
            metadata=metadata if metadata != Metadata() else UNSET,
            source=ref,
        )

    def _record(
        self, kind: str, ref: SourceRef, type: str | UnsetType = UNSET, text: str | UnsetType = UNSET
    ) -> Record:
        return Record(after=self.index, kind=kind, type=type, text=text, source=ref)


def _call(tool: ToolCall, uuid: str) -> tuple[ToolUse, ToolResult | None]:
    # The id may be two ids, on two lines.
    call_id = (tool.toolCallId or uuid).partition("\n")[0]
    given = parse_json(tool.rawArgs)
    if given is None:
        given = parse_json(tool.params) if isinstance(tool.params, str) else tool.params
    call = ToolUse(tool_id=call_id, tool_name=tool.name, input=given if given is not None else {})
    if tool.status not in _ENDED:
        return call, None
    parsed = parse_json(tool.result)
    output = parsed if isinstance(parsed, str) else tool.result
    if output is None and tool.error is not None:
        output = tool.error
    is_error = tool.status != "completed" or _failed(parsed)
    return call, ToolResult(tool_id=call_id, tool_name=_text(tool.name), output=output or "", is_error=is_error)


def _failed(result: JSON) -> bool:
    """True for a command with an exit status other than 0."""
    status = result.get("exitCodeV2", result.get("exitCode")) if isinstance(result, dict) else None
    return isinstance(status, int) and status != 0


def _images(images: JSON) -> Iterator[Block]:
    for value in images if isinstance(images, list) else ():
        image = decode_value(value, ImageData) if isinstance(value, dict) else ImageData()
        if isinstance(image.data, str):
            yield Image(media_type="image/png", encoding="base64", image=image.data)
        elif image.path:
            yield Image(encoding="url", image=image.path)


def _folder(workspace: Workspace | None) -> str | None:
    uri = workspace.uri if workspace is not None else None
    if uri is None:
        return None
    if uri.external and not (uri.fsPath or uri.path):
        return unquote(urlsplit(uri.external).path)
    return uri.fsPath or uri.path


def _milliseconds(value: int | None) -> str | None:
    return format_utc(value * 1000) if value is not None and 0 < value < 1 << 45 else None


def _time(value: JSON) -> str | None:
    if isinstance(value, int):
        return _milliseconds(value)
    found = canonical_time(value) if isinstance(value, str) else UNSET
    return None if found is UNSET else found


def _text(value: JSON) -> str | UnsetType:
    return value if type(value) is str else UNSET
