"""VS Code's chats to events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from msgspec import UNSET, UnsetType

from clew.agents.base import SourceFile, file_stem, fragment_events, masked_text, open_main
from clew.agents.content import parse_arguments, text_blocks
from clew.agents.decoding import EventDecoder, metadata_of, token_usage
from clew.agents.vscode_chat import workspace_of
from clew.agents.vscode_chat.mutation_log import DELETE, INITIAL, PUSH, RESPONSE, SET, Chat, Request
from clew.agents.vscode_chat.records import (
    DOCUMENT_REQUESTS,
    ChatRequest,
    DisplayedCall,
    Prompt,
    RequestResult,
    ResultMetadata,
    Round,
    is_document_name,
)
from clew.analysis.todos import as_todos
from clew.io.compress import damage
from clew.io.json_document import read_document_stream
from clew.io.records import RawRecord, read_records
from clew.io.typed_records import decode_value
from clew.model import Problem
from clew.model.blocks import Block, Image, Text, Thinking, ToolResult, ToolUse
from clew.model.codes import problem
from clew.model.events import Event, SessionInfo
from clew.model.json import JSON
from clew.model.message import Message, Metadata, ModelUse, Role, SourceRef
from clew.model.record import Record
from clew.model.time import canonical_time
from clew.model.todo import Todo

TODO_TOOL = "manage_todo_list"
_STATUSES = {"not-started": "pending", "in-progress": "in_progress"}
_CANCELLED, _FAILED = 2, 3


class _Line(NamedTuple):
    """A record of the file: its number, and what it becomes where no message comes from it."""

    number: int
    record: Record
    problems: tuple[Problem, ...] = ()


def read_events(source: SourceFile) -> Iterator[Event]:
    """Decode a chat. All of it is read first: a line may change any earlier one."""
    chat = Chat()
    with open_main(source) as stream:
        if is_document_name(source.path.name):
            lines = list(_read_document(source, read_document_stream(stream, (DOCUMENT_REQUESTS,)), chat))
        else:
            lines = list(_read_log(source, read_records(stream), chat))
        broken = damage(stream)
    decoder = _ChatDecoder(source, masked_text(source, file_stem(source.path)))
    titles = (chat.state.get("customTitle"), chat.state.get("computedTitle"))
    yield SessionInfo(
        cwd=masked_text(source, workspace_of(source.path)) or None,
        started_at=canonical_time(chat.state.get("creationDate")) or None,
        title=next((title for title in titles if isinstance(title, str)), None),
        has_derived_parents=True,
    )
    messages = [message for request in chat.all_requests for message in decoder.messages(request)]
    yield from _in_file_order(messages, lines)
    if messages:
        yield SessionInfo(leaf_uuid=decoder.leaf(chat))
    if broken:
        yield problem("damaged-archive", broken, file=str(source.path))


def _read_document(source: SourceFile, records: Iterator[RawRecord], chat: Chat) -> Iterator[_Line]:
    for number, raw in enumerate(records):
        if raw.value is None:
            yield _fragment(source, raw, number)
        elif number:
            chat.add_request(raw.value, number)
            yield _Line(number, Record(after=0, kind="state", type="request", source=SourceRef(0, number)))
        else:
            chat.state = raw.value
            yield _Line(number, Record(after=0, kind="state", type="session", source=SourceRef(0, number)))


def _read_log(source: SourceFile, records: Iterator[RawRecord], chat: Chat) -> Iterator[_Line]:
    for raw in records:
        number = raw.line - 1
        if raw.value is None:
            yield _fragment(source, raw, number)
            continue
        problems: list[Problem] = []
        if not chat.apply(raw.value, number) and raw.value.get("kind") in (INITIAL, SET, PUSH, DELETE):
            detail = f"the change of {_path(raw.value)} cannot be applied"
            problems.append(
                problem("wrong-type", detail, file=str(source.path), line=raw.line, start=raw.start, end=raw.stop)
            )
        yield _Line(number, _log_record(raw.value, number), tuple(problems))


def check(source: SourceFile) -> Iterator[Problem]:
    """The changes in a log that cannot be applied."""
    if not is_document_name(source.path.name):
        with open_main(source) as stream:
            for line in _read_log(source, read_records(stream), Chat()):
                yield from (found for found in line.problems if found.code == "wrong-type")


def _fragment(source: SourceFile, raw: RawRecord, number: int) -> _Line:
    *problems, record = fragment_events(source, raw, number + 1, after=0)
    assert isinstance(record, Record)
    return _Line(number, record, tuple(found for found in problems if isinstance(found, Problem)))


def _log_record(entry: dict[str, JSON], number: int) -> Record:
    kind, path = entry.get("kind"), _path(entry)
    found = Record(after=0, kind="state", type=path, source=SourceRef(0, number))
    if kind not in (INITIAL, SET, PUSH, DELETE):
        found.kind = "other"
    elif path.startswith(f"{DOCUMENT_REQUESTS}.{RESPONSE}"):
        found.kind = "progress"
    elif path == "customTitle" and kind == SET and isinstance(entry.get("v"), str):
        found.kind, found.text = "title", entry["v"]
    return found


def _path(entry: dict[str, JSON]) -> str:
    """The path of a change, without positions in arrays."""
    path = entry.get("k")
    return ".".join(step for step in path if isinstance(step, str)) if isinstance(path, list) else "session"


def _in_file_order(messages: list[Message], lines: list[_Line]) -> Iterator[Event]:
    """The messages, with the records that no message comes from in their places between them."""
    used = {message.source.record for message in messages if isinstance(message.source, SourceRef)}
    at, index = 0, 0
    for message in messages:
        assert isinstance(message.source, SourceRef)
        while at < len(lines) and lines[at].number <= message.source.record:
            yield from _line_events(lines[at], index, used)
            at += 1
        yield message
        index = message.index
    for line in lines[at:]:
        yield from _line_events(line, index, used)


def _line_events(line: _Line, after: int, used: set[int]) -> Iterator[Event]:
    yield from line.problems
    if line.number not in used:
        line.record.after = after
        yield line.record


class _ChatDecoder(EventDecoder):
    """Turns requests into messages that follow one another."""

    def __init__(self, source: SourceFile, session: str) -> None:
        super().__init__(source, session)
        self._last: dict[int, str | None] = {}
        """By request: its last message."""
        self._sources: dict[int, SourceRef] = {}
        self._request: Request
        self._values: ChatRequest

    def messages(self, request: Request) -> Iterator[Message]:
        """The messages of a request, behind those of the request before it."""
        self._request, self._values = request, decode_value(request.value, ChatRequest)
        self.chain.last = self._last.get(id(request.before)) if request.before is not None else None
        values, result = self._values, self._values.result or RequestResult()
        text = values.message.text if isinstance(values.message, Prompt) else values.message
        yield self._add("user", [*text_blocks(text), *self._images()], "message", values.requestId)
        metadata = result.metadata or ResultMetadata()
        replies: list[Message] = []
        rounds = self._rounds(metadata) if metadata.toolCallRounds else self._displayed()
        for message in rounds:
            if message.role == "assistant":
                replies.append(message)
            yield message
        for reply in replies:
            self._describe_reply(reply, metadata, is_last=reply is replies[-1])
        if result.errorDetails is not None and result.errorDetails.message:
            error = text_blocks(result.errorDetails.message)
            yield self._add("system", error, "result", None, Metadata(is_meta=True))
        self._last[id(request)] = self.chain.last

    def leaf(self, chat: Chat) -> str:
        """The last message that the chat shows; empty where there is none.

        Requests from a checkpoint on that the person went back to are there until the next prompt.
        """
        last = ""
        for request in chat.requests:
            if request.value.get("shouldBeRemovedOnSend"):
                break
            last = self._last.get(id(request)) or last
        return last

    def _add(
        self, role: Role, blocks: list[Block], member: str | int, uuid: str | None, metadata: Metadata | None = None
    ) -> Message:
        """The next message, from the record that holds a member of the request."""
        record = member if isinstance(member, int) else self._request.record_of(member)
        self.ref = self._sources.setdefault(record, SourceRef(0, record))
        return self.make_chained(role, blocks, metadata, uuid=uuid or UNSET, time=self._values.timestamp)

    def _images(self) -> Iterator[Image]:
        attachments = self._values.variableData.variables if self._values.variableData is not None else None
        for item in attachments or ():
            if item.kind == "image":
                content = item.value if isinstance(item.value, str) else None
                encoding: str | UnsetType = "base64" if content is not None else UNSET
                yield Image(media_type=item.mimeType or UNSET, encoding=encoding, image=content or UNSET)

    # Rounds of GitHub Copilot

    def _rounds(self, metadata: ResultMetadata) -> Iterator[Message]:
        results, displayed = metadata.toolCallResults or {}, self._displayed_calls()
        for one in metadata.toolCallRounds or ():
            blocks: list[Block] = []
            thoughts = one.thinking.text if one.thinking is not None else None
            thoughts = "\n".join(map(str, thoughts)) if isinstance(thoughts, list) else thoughts
            if isinstance(thoughts, str) and thoughts:
                blocks.append(Thinking(thinking=thoughts))
            blocks += text_blocks(one.response)
            calls = [
                ToolUse(tool_id=c.id, tool_name=c.name, input=parse_arguments(c.arguments)) for c in one.toolCalls or ()
            ]
            reply = self._add("assistant", [*blocks, *calls], "result", one.id)
            if one.timestamp is not None:
                reply.timestamp = canonical_time(one.timestamp)
            yield reply
            answered = [call for call in calls if call.tool_id in results]
            if answered:
                yield self._results(one, answered, results, displayed)

    def _results(
        self, one: Round, calls: list[ToolUse], results: dict[str, JSON], displayed: dict[str, DisplayedCall]
    ) -> Message:
        """The results of the calls of a round."""
        blocks: list[Block] = []
        todos: list[Todo] | UnsetType = UNSET
        for call in calls:
            assert call.tool_id is not None
            shown = displayed.get(call.tool_id.partition("__vscode-")[0]) or displayed.get(call.tool_id)
            blocks.append(
                ToolResult(
                    tool_id=call.tool_id,
                    tool_name=call.tool_name,
                    output=_prompt_text(results[call.tool_id]),
                    is_error=True if shown is not None and _has_failed(shown) else UNSET,
                )
            )
            if call.tool_name == TODO_TOOL:
                todos = _todos(call.input) or todos
        uuid = f"{one.id}:results" if one.id else None
        return self._add("user", blocks, "result", uuid, Metadata(todos=todos))

    def _describe_reply(self, reply: Message, metadata: ResultMetadata, *, is_last: bool) -> None:
        """Give a reply its model, and the last one what is stated once for the request: tokens, and how it ended."""
        values = self._values
        stop_reason: str | UnsetType = UNSET
        if is_last:
            state = values.modelState.value if values.modelState is not None else None
            is_cancelled = values.isCanceled is True or state == _CANCELLED
            stop_reason = "cancelled" if is_cancelled else "error" if state == _FAILED else UNSET
            if values.responseId:
                metadata_of(reply).message_id = values.responseId
            if metadata.promptTokens is not None or metadata.outputTokens is not None:
                usage = token_usage(input=metadata.promptTokens, output=metadata.outputTokens)
                metadata_of(reply).token_usage = usage
        model = metadata.resolvedModel or (values.modelId or "").rpartition("/")[2] or UNSET
        if model is not UNSET or stop_reason is not UNSET:
            metadata_of(reply).model = ModelUse(name=model, stop_reason=stop_reason)

    # What the editor displays

    def _displayed_calls(self) -> dict[str, DisplayedCall]:
        calls = (_displayed_call(part) for part in self._parts())
        return {call.toolCallId: call for call in calls if call is not None and call.toolCallId is not None}

    def _parts(self) -> list[JSON]:
        parts = self._request.value.get(RESPONSE)
        return parts if isinstance(parts, list) else []

    def _displayed(self) -> Iterator[Message]:
        """The replies as the editor displays them: a message for the parts that one record holds."""
        blocks: list[Block] = []
        results: list[Block] = []
        records = self._request.response_records
        for number, part in enumerate(self._parts()):
            call = _displayed_call(part)
            if call is not None:
                blocks.append(ToolUse(tool_id=call.toolCallId, tool_name=call.toolId, input=_call_input(call)))
                results += _displayed_result(call)
            elif isinstance(text := _part_text(part), Text | Thinking):
                blocks.append(text)
            is_last = number + 1 == len(records) or records[number + 1] != records[number]
            if (is_last or results) and blocks:
                yield self._add("assistant", blocks, records[number], f"{self._values.requestId}:{number}")
                if results:
                    yield self._add("user", results, records[number], f"{self._values.requestId}:{number}:results")
                blocks, results = [], []


def _displayed_call(part: JSON) -> DisplayedCall | None:
    if not isinstance(part, dict) or part.get("kind") != "toolInvocationSerialized":
        return None
    call = decode_value(part, DisplayedCall)
    return None if part.get("subAgentInvocationId") else call


def _call_input(call: DisplayedCall) -> JSON:
    """What is known of the arguments of a displayed call."""
    data = call.toolSpecificData or {}
    if isinstance(data.get("rawInput"), dict):
        return data["rawInput"]
    line = data.get("commandLine")
    command = line.get("original") if isinstance(line, dict) else data.get("command")
    return {"command": command} if isinstance(command, str) else {}


def _displayed_result(call: DisplayedCall) -> Iterator[ToolResult]:
    message = call.pastTenseMessage or call.invocationMessage
    text = message.get("value") if isinstance(message, dict) else message
    if isinstance(text, str):
        is_error = True if _has_failed(call) else UNSET
        yield ToolResult(tool_id=call.toolCallId, tool_name=call.toolId, output=text, is_error=is_error)


def _has_failed(call: DisplayedCall) -> bool:
    details, data = call.resultDetails, call.toolSpecificData or {}
    state = data.get("terminalCommandState")
    exit_code = state.get("exitCode") if isinstance(state, dict) else None
    return (isinstance(details, dict) and details.get("isError") is True) or exit_code not in (None, 0)


def _part_text(part: JSON) -> Text | Thinking | None:
    """The text of a part of a response; parts of other kinds display what calls did."""
    if not isinstance(part, dict):
        return None
    value, kind = part.get("value"), part.get("kind")
    if kind == "inlineReference":
        name = part.get("name") or _file_name(part.get("inlineReference"))
        return Text(text=name) if isinstance(name, str) and name else None
    if not isinstance(value, str) or not value:
        return None
    if kind == "thinking":
        return Thinking(thinking=value)
    return Text(text=value) if kind in (None, "markdownContent", "markdownVuln") else None


def _file_name(reference: JSON) -> JSON:
    return reference.get("path") if isinstance(reference, dict) else None


def _prompt_text(value: JSON) -> str:
    """The text of a result, which is a text or a tree of elements for the prompt."""
    texts: list[str] = []
    waiting: list[JSON] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            texts.append(item)
        elif isinstance(item, list):
            waiting += reversed(item)
        elif isinstance(item, dict):
            if item.get("lineBreakBefore") is True and texts:
                texts.append("\n")
            waiting += [item[key] for key in ("children", "node", "text", "value", "content") if key in item]
    return "".join(texts)


def _todos(arguments: JSON) -> list[Todo] | None:
    items = arguments.get("todoList") if isinstance(arguments, dict) else None
    if not isinstance(items, list):
        return None
    renamed = [
        {**item, "content": item.get("title"), "status": _STATUSES.get(str(item.get("status")), item.get("status"))}
        for item in items
        if isinstance(item, dict)
    ]
    return as_todos(renamed)
