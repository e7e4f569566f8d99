"""Gemini CLI's records to events.

The client replays its log: a message may be written anew at any time, and taken back. Each message is an event once, in
the place where it was first written and with its last version, so all records are read before the first event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from itertools import takewhile
from typing import Any

from msgspec import UNSET, Struct, UnsetType, to_builtins

from clew.agents.base import SourceFile, masked_text
from clew.agents.content import content_blocks, output_with_attachments, text_or_none, text_or_unset
from clew.agents.decoding import EventDecoder, token_usage
from clew.agents.derived_ids import derived_id, is_uuid
from clew.agents.gemini import locate
from clew.agents.gemini.records import (
    CHAT,
    STATE_KEYS,
    Action,
    ChatFile,
    ChatRecord,
    SessionState,
    Step,
    TodoDisplay,
    Tokens,
    ToolCall,
    UsageRecord,
)
from clew.agents.gemini_content import block_of_part, is_attachment, is_failed_command, single_text
from clew.io.codec import dumps
from clew.model.blocks import Block, DocumentBlock, Image, Text, Thinking, ToolResult, ToolUse
from clew.model.codes import problem
from clew.model.events import Event, SessionInfo, SubagentStarted
from clew.model.json import JSON
from clew.model.message import Message, Metadata, ModelUse, Role, SourceRef
from clew.model.record import Record
from clew.model.time import canonical_time, is_canonical, is_later
from clew.model.todo import Todo
from clew.model.usage import TokenUsage

RESULTS_SUFFIX = ":results"
"""Behind the uuid of a message: the uuid of the message with the results of its calls."""
CONTEXT_TAGS = ("<session_context>", "<hook_context>")
"""How texts begin in which the client describes the environment to the model."""
MAX_CONTEXT_CHARS = 8_000
MAX_PATH_HINTS = 40

_IS_ERROR = {"success": False, "error": True, "cancelled": True}
FINISHED_STATES = tuple(_IS_ERROR)
"""The states of a call that has ended."""

_ROLES: dict[str, Role] = {"user": "user", "gemini": "assistant"}
_TURN_ROLES: dict[str, Role] = {"user": "user", "model": "assistant"}
_COMMAND_PREFIXES = ("/", "?")
_NUDGE = "System: Please continue."
# What a JavaScript engine trims.
_JS_SPACE = "\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(map(chr, range(0x2000, 0x200B)))
_TODO_TOOL = "write_todos"
_PATH_ARGUMENTS = ("file_path", "absolute_path", "dir_path", "path", "directory")
_ROOT = -1
"""The parent of a message that follows no other."""


def read_events(source: SourceFile) -> Iterator[Event]:
    """Decode a session: first all records are replayed, then they become events, in file order."""
    files = [ChatFile(source, number) for number in range(1 + len(source.parts))]
    replay = Replay()
    for file in files:
        replay.add_file(file.steps(CHAT))
    replay.finish()
    later_versions = _find_steps(files, set(replay.later_slots.values()))
    decoder = _StepDecoder(source, replay, later_versions)
    yield SessionInfo(session_id=decoder.session, leaf_uuid=replay.leaf_uuid(), has_derived_parents=True)
    for file, count in zip(files, replay.step_counts, strict=True):
        # A file may have grown since it was replayed.
        for step, _ in zip(file.steps(CHAT), range(count), strict=False):
            yield from decoder.events(step)
    yield decoder.last_info()
    for file in files:
        if file.damage:
            yield problem("damaged-archive", file.damage, file=file.path)


def message_id(record: UsageRecord, file: int, slot: int) -> str:
    """The id of a message; where it has none, one made of its place."""
    return record.id if record.id is not None else derived_id(locate.AGENT, file, slot)


def call_id(message: str, session: str) -> str:
    """The id of the API call behind a message. Ids that are not random may stand in other sessions too."""
    return message if is_uuid(message) else f"{session} {message}"


class _Version(IntEnum):
    """What becomes of one version of a message."""

    EARLIER = 0
    SHOWN = 1
    """The message is an event here."""
    FIRST = 2
    """An earlier version; the message is an event here, with its last version, which stands behind other messages."""
    LAST = 3
    """The last version of a message that was an event before."""


class _Replayed(Struct, gc=False):
    """A message of the client's list."""

    id: str
    first_slot: int
    last_slot: int
    parent: int = _ROOT
    """The message before it, when it was last put on the list."""
    is_last_inside: bool = True
    is_summary: bool = False
    """True for a new message that replaced others."""
    finished_calls: list[JSON] = []
    has_results: bool = False


class Replay:
    """The list of messages that the client would show, and for each message where its last version stands.

    Each version of a message is known by its slot, its number among all versions.
    """

    def __init__(self) -> None:
        self.messages: list[_Replayed] = []
        self.answered_calls: set[str] = set()
        """Calls that a message of its own answers; the result that stands with the call is then a copy."""
        self.fates = bytearray()
        """For each slot a `_Version`."""
        self.later_slots: dict[int, int] = {}
        """For each FIRST version the LAST one."""
        self.step_counts: list[int] = []
        self.unknown_rewinds: list[JSON] = []
        """File and record of each rewind to a message that is not on the list: it takes back all messages."""
        self._numbers: dict[str, int] = {}
        self._active: list[int] = []
        self._positions: dict[int, int] = {}
        self._slots = 0
        self._lists: list[tuple[str, list[int]]] = []
        self._updated = ""
        self._is_replacing = False

    def add_file(self, steps: Iterable[Step[ChatRecord]]) -> None:
        """Replay a file by itself: the client reads only one of the files of a session."""
        count = 0
        for step in steps:
            count += 1
            record = step.record
            if record is None:
                pass
            elif step.action is Action.ADD:
                self._add(step, record)
            elif step.action is Action.REWIND:
                position = self._positions.get(self._numbers.get(record.rewind_to or "", _ROOT))
                if position is None:
                    self.unknown_rewinds.append([step.file, step.number])
                self._cut(position or 0)
            else:
                state: SessionState = record.set if record.set is not None else record
                if type(state.lastUpdated) is str:
                    self._updated = max(self._updated, state.lastUpdated)
                if step.action is Action.REPLACE:
                    self._is_replacing = bool(self._active)
                    self._cut(0)
            if not step.is_inside and step.action is not Action.REPLACE:
                self._is_replacing = False
        self.step_counts.append(count)
        if self._active:
            self._lists.append((self._updated, self._active))
        self._active, self._positions, self._updated = [], {}, ""

    def _add(self, step: Step[ChatRecord], record: ChatRecord) -> None:
        slot, self._slots = self._slots, self._slots + 1
        name = message_id(record, step.file, slot)
        number = self._numbers.get(name)
        answers = _answered_calls(record)
        if number is None and step.is_inside and answers and self.messages:
            # Written for the model only: the results stand with their calls, or were recorded when they came.
            return
        if number is None:
            number = self._numbers[name] = len(self.messages)
            is_summary = self._is_replacing and step.is_inside
            self.messages.append(_Replayed(name, slot, slot, is_summary=is_summary))
        message = self.messages[number]
        if number not in self._positions:
            message.parent = self._active[-1] if self._active else _ROOT
            self._positions[number] = len(self._active)
            self._active.append(number)
        if not step.is_inside or message.is_last_inside:
            # Messages that are kept when all are replaced are shortened there.
            message.last_slot, message.is_last_inside = slot, step.is_inside
            calls = record.toolCalls or () if _is_reply(record) else ()
            message.finished_calls = [call.id for call in calls if _is_finished(call)]
        if not step.is_inside:
            self.answered_calls.update(answers)

    def _cut(self, position: int) -> None:
        for number in self._active[position:]:
            del self._positions[number]
        del self._active[position:]

    def finish(self) -> None:
        """Decide which list counts, and what becomes of each version."""
        if self._lists:
            # The client shows the file that was changed last.
            latest = max(range(len(self._lists)), key=lambda at: (self._lists[at][0], at))
            self._active = self._lists[latest][1]
        before = _ROOT
        for number in self._active:
            self.messages[number].parent, before = before, number
        self.fates = bytearray(self._slots)
        following = self._slots
        for message in reversed(self.messages):
            first, last = message.first_slot, message.last_slot
            if last < following:
                self.fates[last] = _Version.SHOWN
            else:
                self.fates[first], self.fates[last] = _Version.FIRST, _Version.LAST
                self.later_slots[first] = last
            following = first
            message.has_results = any(self.is_unanswered(call) for call in message.finished_calls)

    def is_unanswered(self, call_id: JSON) -> bool:
        """True for a call that no message of its own answers."""
        return type(call_id) is not str or call_id not in self.answered_calls

    def uuid_of_end(self, number: int) -> str:
        """The uuid of a message, or of its results, which the next message follows."""
        message = self.messages[number]
        return message.id + RESULTS_SUFFIX if message.has_results else message.id

    def leaf_uuid(self) -> str:
        """Where the conversation stands; empty where all messages were taken back."""
        return self.uuid_of_end(self._active[-1]) if self._active else ""


def _state_of(step: Step[Any], record: UsageRecord) -> SessionState | None:
    """What a record that is no message says of the session; a saved chat says nothing."""
    if step.is_document_header:
        return record if record.messages is not UNSET else None
    if record.rewind_to is not None:
        return None
    return record.set if record.set is not None else record if record.is_header else None


def _is_finished(call: ToolCall) -> bool:
    """True for a call that has a result; after a crash a call may be left `executing`."""
    return call.status in FINISHED_STATES if type(call.status) is str else call.result is not None


def _is_reply(record: ChatRecord) -> bool:
    """True for a reply of a recorded chat, the only kind of record with thoughts, calls, a model and tokens."""
    return record.type == "gemini" and not _is_turn(record) and not _is_entry(record)


def _is_turn(record: ChatRecord) -> bool:
    return type(record.role) is str and record.role in _TURN_ROLES and record.parts is not UNSET


def _is_entry(record: ChatRecord) -> bool:
    return record.messageId is not UNSET and record.message is not UNSET


def _answered_calls(record: ChatRecord) -> list[str]:
    """The calls that a message answers which is made of responses and attachments alone."""
    if record.type != "user":
        return []
    found: list[str] = []
    for part in record.content if type(record.content) is list else [record.content]:
        if type(part) is not dict:
            return []
        response = part.get("functionResponse")
        if type(response) is dict:
            found += [response["id"]] if type(response.get("id")) is str else []
        elif not is_attachment(part):
            return []
    return found


def _find_steps(files: list[ChatFile], slots: set[int]) -> dict[int, Step[ChatRecord]]:
    """The versions of messages with these numbers."""
    if not slots:
        return {}
    versions = (step for file in files for step in file.steps(CHAT) if step.action is Action.ADD)
    return {slot: step for slot, step in enumerate(versions) if slot in slots}


class _StepDecoder(EventDecoder):
    """Makes events of steps, given their replay."""

    def __init__(self, source: SourceFile, replay: Replay, later_versions: dict[int, Step[ChatRecord]]) -> None:
        super().__init__(source)
        self.session = masked_text(source, locate.session_id(source))
        self._replay, self._later_versions = replay, later_versions
        self._known_chats: frozenset[str] = frozenset()
        if locate.is_log(source.path):
            self._known_chats = locate.known_chats(locate.project_folder(source.path))
        self._slot = self._number = 0
        self._state: dict[str, JSON] = {}
        self._context: str | None = None
        self._path_hints: list[str] = []
        self._unnamed_calls: dict[JSON, list[str]] = {}
        self._last_entries: dict[str, str] = {}
        """By session: its last entry in the log of prompts, which is one for all sessions of a project."""

    def events(self, step: Step[ChatRecord]) -> Iterator[Event]:
        """The events of the next step."""
        record = step.record
        if not step.is_inside:
            self.ref = SourceRef(step.file, step.number)
        if record is None:
            yield from step.problems
            yield self.make_record("fragment")
            return
        if step.action is not Action.ADD:
            yield self._state_record(step, record)
            return
        slot, self._slot = self._slot, self._slot + 1
        if slot >= len(self._replay.fates):
            return
        match self._replay.fates[slot]:
            case _Version.SHOWN:
                yield from self._message(record)
            case _Version.LAST:
                yield self.make_record("link", "place", message_uuid=record.id)
            case fate:
                if fate == _Version.FIRST:
                    later, own = self._later_versions.get(self._replay.later_slots[slot], step), self.ref
                    self.ref = SourceRef(later.file, later.number)
                    yield from self._message(later.record or record)
                    self.ref = own
                kind, uuid = text_or_unset(record.type), text_or_unset(record.id)
                yield self.make_record("progress", kind, message_uuid=uuid)

    def last_info(self) -> SessionInfo:
        """What is known of the session once all was read."""
        return SessionInfo(
            title=text_or_none(self._state.get("summary")),
            extra={
                "state": self._state,
                "context": self._context,
                "hints": self._path_hints,
                "unknown_rewinds": self._replay.unknown_rewinds,
            },
        )

    def _state_record(self, step: Step[ChatRecord], record: ChatRecord) -> Record:
        if record.rewind_to is not None:
            return self.make_record("rewind", message_uuid=record.rewind_to)
        state = _state_of(step, record)
        if state is None:
            if step.is_document_header:
                return self.make_record("state")
            return self.make_record("other", text_or_unset(record.type))
        for key in STATE_KEYS:
            if (value := getattr(state, key)) is not UNSET:
                self._state[key] = value
        time, summary = canonical_time(state.lastUpdated), text_or_unset(state.summary)
        if time is not UNSET:
            self._state["lastUpdated"] = time
        is_summary = state is record.set and summary is not UNSET
        kind = "summary" if is_summary else "state"
        if step.action is Action.REPLACE and self.index:
            kind = "rewind"
        return self.make_record(kind, time=state.lastUpdated, text=summary)

    def _message(self, record: ChatRecord) -> Iterator[Event]:
        """A message, the sub-agents that it starts, and the message with the results of its calls."""
        number, self._number = self._number, self._number + 1
        uuid = self._replay.messages[number].id
        form = self._form(record)
        if isinstance(form, Record):
            yield form
            return
        role, content = form
        is_reply = _is_reply(record)
        calls = record.toolCalls or [] if is_reply else []
        uses = [_tool_use(call, uuid, at) for at, call in enumerate(calls)]
        blocks = content_blocks([content] if type(content) is dict else content, block_of_part)
        if uses:
            blocks = _without_repeated_calls(blocks, calls)
        if record.thoughts and is_reply:
            blocks = _thoughts(record, blocks) + blocks
        blocks += uses
        known, parent = self._metadata(role, blocks, record, number), self._parent(record, number)
        message = self.make_message(role, blocks, known, uuid=uuid, parent=parent, time=record.timestamp)
        self._name_parts(message, uuid)
        self._note_hints(message)
        yield message
        for call, use in zip(calls, uses, strict=True):
            if type(call.agentId) is str:
                yield SubagentStarted(agent_id=call.agentId, tool_id=use.tool_id)
        results: list[Block] = [
            _tool_result(call, use)
            for call, use in zip(calls, uses, strict=True)
            if _is_finished(call) and self._replay.is_unanswered(use.tool_id)
        ]
        if results:
            time, todos = _last_time(message.timestamp, calls), _todos(calls)
            metadata = Metadata(todos=todos) if todos is not None else None
            yield self.make_message("user", results, metadata, uuid=uuid + RESULTS_SUFFIX, parent=uuid, time=time)

    def _form(self, record: ChatRecord) -> tuple[Role, JSON] | Record:
        """The role and the content of a message; a record for a prompt in the log whose chat is there too."""
        if _is_turn(record):
            return _TURN_ROLES[record.role], record.parts
        kind = record.type if type(record.type) is str else ""
        if not _is_entry(record):
            return _ROLES.get(kind, "system"), record.content
        if str(record.sessionId)[:8] in self._known_chats:
            return self.make_record("prompt", time=record.timestamp, text=text_or_unset(record.message))
        return _ROLES.get(kind, "system"), record.message

    def _parent(self, record: ChatRecord, number: int) -> str | UnsetType:
        if _is_entry(record):
            session = str(None if record.sessionId is UNSET else record.sessionId)
            last = self._last_entries.get(session, UNSET)
            self._last_entries[session] = self._replay.messages[number].id
            return last
        parent = self._replay.messages[number].parent
        return self._replay.uuid_of_end(parent) if parent != _ROOT else UNSET

    def _metadata(self, role: Role, blocks: list[Block], record: ChatRecord, number: int) -> Metadata:
        metadata, replayed = Metadata(), self._replay.messages[number]
        if role == "system" or (role == "user" and not is_typed(blocks)):
            metadata.is_meta = True
        if role == "user" and replayed.is_summary:
            metadata.is_compact_summary = True
        if role == "assistant" and _is_reply(record):
            if type(record.model) is str:
                metadata.model = ModelUse(name=record.model)
            usage = _usage(record.tokens)
            if usage is not None:
                metadata.token_usage = usage
                call = call_id(replayed.id, self.session)
                if call != replayed.id:
                    metadata.message_id = call
        return metadata

    def _name_parts(self, message: Message, uuid: str) -> None:
        """Give ids to calls among the parts that have none, and to the responses, which follow in the same order."""
        for position, block in enumerate(message.content):
            if type(block) is ToolUse and block.tool_id is None:
                block.tool_id = f"{uuid}:part{position}"
                self._unnamed_calls.setdefault(block.tool_name, []).append(block.tool_id)
            elif type(block) is ToolResult and block.tool_id is None:
                waiting = self._unnamed_calls.get(None if block.tool_name is UNSET else block.tool_name)
                if waiting:
                    block.tool_id = waiting.pop(0)

    def _note_hints(self, message: Message) -> None:
        """Note what may tell the folder of the project: the first words of the client, and paths in calls."""
        if message.role == "user" and self._context is None:
            text = "\n".join(block.text for block in message.content if type(block) is Text)
            if text.lstrip().startswith(CONTEXT_TAGS[0]):
                self._context = text[:MAX_CONTEXT_CHARS]
        hints = self._path_hints
        for block in message.content if len(hints) < MAX_PATH_HINTS else ():
            if type(block) is ToolUse and type(block.input) is dict and len(hints) < MAX_PATH_HINTS:
                hints += [path for key in _PATH_ARGUMENTS if type(path := block.input.get(key)) is str]


def _usage(tokens: Tokens | None) -> TokenUsage | None:
    """The counts of a request; an object without any count above zero says nothing.

    `total` shows that `cached` is a part of `input`, and that `tool`, what tools put into the prompt, is not.
    """
    if tokens is None:
        return None
    given, said, cached, thoughts = map(_count, (tokens.input, tokens.output, tokens.cached, tokens.thoughts))
    if from_tools := _count(tokens.tool):
        given = (given or 0) + from_tools
    if given is None and said is None and cached is None and thoughts is None:
        return None
    if not (given or said or cached or thoughts or _count(tokens.total)):
        return None
    output = None if said is None else said + (thoughts or 0)
    return token_usage(input=given, output=output, cache_read=cached, reasoning=thoughts, is_cache_in_input=True)


def _count(value: JSON) -> int | None:
    return value if type(value) is int and value >= 0 else None


def is_typed(blocks: list[Block]) -> bool:
    """True for content that a person may have typed."""
    if all(type(block) is ToolResult for block in blocks):
        return False
    text = "".join(block.text for block in blocks if type(block) is Text).strip()
    if not text:
        kinds = {type(block) for block in blocks}
        return ToolResult not in kinds and bool(kinds & {Image, DocumentBlock})
    leading = takewhile(lambda block: type(block) is Text, blocks)
    return text != _NUDGE and not is_ignored("".join(block.text for block in leading))  # type: ignore[union-attr]


def is_ignored(text: str) -> bool:
    """True for the beginning of a prompt that the client does not send when it goes on with a chat."""
    return text.lstrip(_JS_SPACE).startswith((*_COMMAND_PREFIXES, *CONTEXT_TAGS))


def _thoughts(record: ChatRecord, blocks: list[Block]) -> list[Block]:
    """The thoughts of a reply, each below its subject, unless they stand among its parts as well."""
    thoughts = record.thoughts or []
    if any(type(block) is Thinking for block in blocks):
        return []
    if any(type(thought.description) is not str for thought in thoughts):
        return []
    texts = [(text_or_none(thought.subject), thought.description) for thought in thoughts]
    return [Thinking(thinking="\n".join(filter(None, text))) for text in texts]


def _without_repeated_calls(blocks: list[Block], calls: list[ToolCall]) -> list[Block]:
    """The parts of a reply without the calls that `toolCalls` lists as well, which says more of them."""
    ids = {call.id for call in calls if type(call.id) is str}
    names = [text_or_none(call.name) for call in calls]
    kept: list[Block] = []
    for block in blocks:
        if type(block) is ToolUse:
            if block.tool_id in ids:
                continue
            if block.tool_id is None and block.tool_name in names:
                names.remove(block.tool_name)
                continue
        kept.append(block)
    return kept


def _tool_use(call: ToolCall, uuid: str, position: int) -> ToolUse:
    tool_id = call.id if type(call.id) is str else f"{uuid}:{position}"
    return ToolUse(tool_id=tool_id, tool_name=text_or_none(call.name), input=call.args)


def _tool_result(call: ToolCall, use: ToolUse) -> ToolResult:
    output = _output(call)
    is_error = _IS_ERROR[call.status] if type(call.status) is str else UNSET
    if is_failed_command(use.tool_name, output):
        is_error = True
    return ToolResult(tool_id=use.tool_id, tool_name=use.tool_name, output=output, is_error=is_error)


def _last_time(time: str | None | UnsetType, calls: list[ToolCall]) -> str | UnsetType:
    """When the last of the calls was recorded."""
    last = time or None
    for call in calls:
        time = call.timestamp
        if type(time) is str and is_canonical(time) and (last is None or is_later(time, last)):
            last = time
    return UNSET if last is None else last


def _todos(calls: list[ToolCall]) -> list[Todo] | None:
    """The task list that the last of the calls left behind."""
    for call in reversed(calls):
        display = call.resultDisplay.todos if type(call.resultDisplay) is TodoDisplay else None
        given = call.args.get("todos") if call.name == _TODO_TOOL and type(call.args) is dict else None
        for todos in (display, given):
            if type(todos) is list and all(type(todo) is dict for todo in todos):
                return [
                    Todo(
                        content=text_or_unset(todo.get("description", todo.get("content"))),
                        status=text_or_unset(todo.get("status")),
                    )
                    for todo in todos
                ]
    return None


def _output(call: ToolCall) -> JSON:
    """What a tool gave back: a text, or blocks as JSON.

    Nearly always the result is a list of one response with the id and the name of the call. Since February 2026, when
    the client began to mask long outputs, it may hold the responses of other calls too.
    """
    result = call.result
    if type(result) is str:
        return result
    first, *others = result if type(result) is list and result else [None]
    response = first.get("functionResponse") if type(first) is dict and len(first) == 1 else None
    if type(response) is not dict or not {"id", "name", "response"} <= response.keys() <= _RESPONSE_KEYS:
        return _other_output(call)
    _, text = single_text(response["response"])
    nested = response.get("parts", [])
    is_own = response["id"] == text_or_none(call.id) and response["name"] == text_or_none(call.name)
    is_alone = not any(type(part) is dict and "functionResponse" in part for part in others)
    if text is None or type(nested) is not list or not is_own or not is_alone:
        return _other_output(call)
    if not nested and not others:
        return text
    return [{"type": "text", "text": text}, *(to_builtins(block_of_part(part)) for part in (*nested, *others))]


_RESPONSE_KEYS = {"id", "name", "response", "parts"}


def _other_output(call: ToolCall) -> JSON:
    """The output in a result of another shape: the response with the id of the call, else its name, else all."""
    parts = call.result if type(call.result) is list else [call.result]
    responses = [part["functionResponse"] for part in parts if type(part) is dict and "functionResponse" in part]
    responses = [response for response in responses if type(response) is dict]
    for key, wanted in (("id", text_or_none(call.id)), ("name", text_or_none(call.name))):
        matching = [response for response in responses if wanted is not None and response.get(key) == wanted]
        if matching:
            responses = matching
            break
    texts = [_response_text(response.get("response")) for response in responses]
    texts += [part["text"] for part in parts if type(part) is dict and type(part.get("text")) is str]
    nested = [part for response in responses if type(response.get("parts")) is list for part in response["parts"]]
    attachments = [part for part in (*nested, *parts) if is_attachment(part)]
    if attachments or texts:
        return output_with_attachments("\n".join(texts), [block_of_part(part) for part in attachments])
    return UNSET if call.result is None else dumps(call.result).decode()


def _response_text(said: JSON) -> str:
    """The texts of a response, and whatever else it holds as JSON."""
    if type(said) is str:
        return said
    if type(said) is not dict:
        return dumps(said).decode()
    texts = {key: said[key] for key in ("output", "error") if type(said.get(key)) is str}
    others = {key: value for key, value in said.items() if key not in texts}
    return "\n".join([*texts.values(), *([dumps(others).decode()] if others or not texts else [])])
