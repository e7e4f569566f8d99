"""Cursor's rows to events.

A bubble is a message: a prompt, or a text, a thought or a call of the model. Those between two prompts share
`metadata.request_id`. A call and its result are one bubble and two messages. Token counts are not decoded: most are
zero, and what the others count is not known.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

from msgspec import UNSET

from clew.agents.base import SourceFile
from clew.agents.content import text_blocks
from clew.agents.cursor.layout import CHAT_KEY, MESSAGE_KEY
from clew.agents.cursor.records import Bubble, BubbleHeader, Composer, ImageData, KeyRow, ToolCall, Workspace
from clew.agents.database_rows import LINES, RESULT_SUFFIX, RowDecoder, decode_json, decode_row, parse_json
from clew.agents.decoding import known_facts, time_of_milliseconds
from clew.analysis.todos import as_todos
from clew.io.typed_records import decode_each, decode_value
from clew.model.blocks import Block, Image, Thinking, ToolResult, ToolUse
from clew.model.events import Event, SessionInfo
from clew.model.json import JSON
from clew.model.message import Metadata, ModelUse
from clew.model.time import canonical_time
from clew.model.todo import Todo

USER, ASSISTANT = 1, 2
_ENDED = ("completed", "error", "cancelled")


def read_events(source: SourceFile) -> Iterator[Event]:
    """Decode a chat, in file order."""
    decoder = _CursorDecoder(source)
    return decoder.read_lines(LINES.decode_file, decoder.decode)


class _CursorDecoder(RowDecoder):
    def __init__(self, source: SourceFile) -> None:
        super().__init__(source)
        self._named: frozenset[str] = frozenset()
        """The bubbles that the chat has, in whatever order."""
        self._last_named: str | None = None
        self._todos: list[Todo] = []
        """The todo list as it stands now: it is that of the last message."""
        self._model: str | None = None
        self._request: str | None = None

    def row_events(self, table: JSON, row: JSON) -> Iterator[Event]:
        """The events of a row."""
        pair = decode_row(row, KeyRow)
        key = pair.key or ""
        if key.startswith(CHAT_KEY):
            yield from self._chat(decode_json(pair.value, Composer))
        elif key.startswith(MESSAGE_KEY):
            bubble, name = decode_json(pair.value, Bubble), key.rpartition(":")[2]
            if bubble is None:
                yield from self.malformed_row("value", "bubble")
            elif self._named and name not in self._named:
                # What it followed is not recorded, so it cannot be shown as a branch.
                yield self.make_record("state", "removed bubble", text=bubble.text or UNSET)
            else:
                yield from self._bubble(bubble, name)
        else:
            yield self.make_record("other", key.partition(":")[0] or UNSET)

    def _chat(self, chat: Composer | None) -> Iterator[Event]:
        if chat is None:
            yield from self.malformed_row("value", "composerData")
            return
        headers = chat.fullConversationHeadersOnly
        ids = [header.bubbleId for header in decode_each(headers, BubbleHeader) if header.bubbleId]
        self._named, self._last_named = frozenset(ids), ids[-1] if ids else None
        self._todos = as_todos(chat.todos) or []
        self._model = chat.modelConfig.modelName if chat.modelConfig is not None else None
        parent = chat.subagentInfo.parentComposerId if chat.subagentInfo is not None else None
        extension = known_facts(mode=chat.unifiedMode, archived=chat.isArchived or None)
        yield SessionInfo(
            session_id=chat.composerId,
            cwd=_folder(chat.workspaceIdentifier),
            agent_id=chat.composerId if parent else None,
            parent_session_id=parent,
            is_subagent=parent is not None,
            started_at=time_of_milliseconds(chat.createdAt),
            title=chat.name or None,
            has_derived_parents=True,
            extra={"extension": extension},
        )
        children = chat.subComposerIds if isinstance(chat.subComposerIds, list) else []
        for child in children:
            if isinstance(child, str):
                yield from self.start_subagent(child, child, None)
        old = decode_each(chat.conversation, Bubble)
        if not old:
            yield self.make_record("title" if chat.name else "state", "composerData", text=chat.name or UNSET)
        for number, bubble in enumerate(old, 1):
            yield from self._bubble(bubble, bubble.bubbleId or f"bubble {number}")

    def _bubble(self, bubble: Bubble, name: str) -> Iterator[Event]:
        time, uuid = _time(bubble.createdAt), self.unused_uuid(name)
        if bubble.type != ASSISTANT:
            self._request = bubble.requestId
            yield self.make_next("user", uuid, [*text_blocks(bubble.text), *_images(bubble.images)], time)
            return
        content: list[Block] = []
        if bubble.thinking is not None:
            signature = bubble.thinking.signature or UNSET
            content.append(Thinking(thinking=bubble.thinking.text or "", signature=signature))
        content += text_blocks(bubble.text)
        call, result = _call(bubble.toolFormerData, uuid) if bubble.toolFormerData is not None else (None, None)
        if call is not None:
            content.append(call)
        metadata = self._metadata(bubble)
        if name == self._last_named and self._todos:
            metadata.todos = self._todos
        yield self.make_next("assistant", uuid, content, time, metadata)
        if result is not None:
            yield self.make_next("user", uuid + RESULT_SUFFIX, [result], time)

    def _metadata(self, bubble: Bubble) -> Metadata:
        self._request = bubble.requestId or bubble.usageUuid or self._request
        model = bubble.modelInfo.modelName if bubble.modelInfo is not None else None
        metadata = Metadata(model=ModelUse(name=model or self._model))
        if self._request:
            metadata.request_id = self._request
        return metadata


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
    return call, ToolResult(tool_id=call_id, output=output or "", is_error=is_error)


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


def _time(value: JSON) -> str | None:
    return time_of_milliseconds(value) if isinstance(value, int) else canonical_time(value) or None
