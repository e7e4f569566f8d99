"""The quick way for records of the usual shapes: what has no place in the model goes over as text, unread.

A line takes it only if its struct gives the same bytes back and every text in it is spelled as we spell it; anything
else takes the general way, which gives the same.
"""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from clew.agents.folding import Message
from clew.agents.gemini import tables
from clew.agents.gemini.fold import RESULTS, TODO_TOOL, is_typed
from clew.agents.gemini.locate import AGENT
from clew.agents.mapping import Context, Table
from clew.io.codec import NOT_JSON, dumps, loads
from clew.model.json import JSON
from clew.model.time import is_canonical

_SUSPECT = re.compile(rb"\\[u/]")
_ESCAPED = re.compile(rb"(?:[^\\]++|\\(?:[^u/]|u00(?:0[0-7bef]|1[0-9a-f])))*+", re.DOTALL)
"""Text without escapes that we spell in another way."""
_QUOTE = ord('"')
_PATCH = re.compile(rb'\{"\$set":\{"lastUpdated":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)"\}\}\n')
_encode = msgspec.json.Encoder().encode


class _Thought(Struct, gc=False):
    subject: str
    description: str
    timestamp: str


class _Rest(Struct, gc=False):
    subject: str
    timestamp: str


class _Noted(Struct, gc=False):
    rest: _Rest


class _Thinking(Struct, tag_field="type", tag="thinking", gc=False):
    thinking: str
    extensions: dict[str, _Noted]


class _Said(Struct, gc=False):
    output: Raw


class _Response(Struct, gc=False):
    id: str
    name: str
    response: _Said


class _Part(Struct, gc=False):
    functionResponse: _Response


class _Call(Struct):
    id: str
    name: str
    args: Raw
    result: list[_Part]
    status: Literal["success"]
    timestamp: str
    resultDisplay: Raw
    description: str
    displayName: str
    renderOutputAsMarkdown: bool


class _OtherCall(Struct):
    """The same in the other order that the client has."""

    id: str
    name: str
    args: Raw
    result: list[_Part]
    status: Literal["success"]
    timestamp: str
    resultDisplay: Raw
    displayName: str
    description: str
    renderOutputAsMarkdown: bool


class _Text(Struct, gc=False):
    text: str


class _User(Struct):
    id: str
    timestamp: str
    type: Literal["user"]
    content: str | list[_Text]


class _Tokens(Struct, gc=False):
    input: int
    output: int
    cached: int
    thoughts: int
    tool: int
    total: int


class _Reply(Struct):
    id: str
    timestamp: str
    type: Literal["gemini"]
    content: Raw
    thoughts: list[_Thought]
    tokens: _Tokens
    model: str


class _Gemini(_Reply):
    toolCalls: list[_Call] | UnsetType = UNSET


class _OtherGemini(_Reply):
    toolCalls: list[_OtherCall] | UnsetType = UNSET


class Dealt(NamedTuple):
    """A record in the words of the model."""

    message: Message
    results: Message | None = None
    prompt: str | None = None
    hints: tuple[JSON, ...] = ()
    has_thinking: bool = False


class _Shape:
    """One shape of record: its struct, and the tables that must know nothing unusual of it."""

    def __init__(self, struct: type[Struct], table: Table, *lists: tuple[str, Table, type[Struct]]) -> None:
        self.decode = msgspec.json.Decoder(struct).decode
        self._table, self._keys, self._lists = table, struct.__struct_fields__, lists

    def uses(self, line: Any) -> int:
        """Which of the lists the record has, as a number."""
        found = 0
        for number, (name, _, _) in enumerate(self._lists):
            found |= (1 << number) if getattr(line, name) else 0
        return found

    def fits(self, line: Any, context: Context) -> bool:
        """True when the general way would note nothing about the order of keys in this source."""
        keys = tuple(key for key in self._keys if getattr(line, key) is not UNSET)
        used = [(self._table, keys), (tables.VERSION.table, keys)]
        used += [(table, of.__struct_fields__) for name, table, of in self._lists if getattr(line, name)]
        return all(table.plan(keys, context).unusual is None for table, keys in used)


_THOUGHTS = ("thoughts", tables.THOUGHT.table, _Thought)
_GEMINI = tables.GEMINI.table
_REPLIES = (
    _Shape(_Gemini, _GEMINI, _THOUGHTS, ("toolCalls", tables.CALL.table, _Call)),
    _Shape(_OtherGemini, _GEMINI, _THOUGHTS, ("toolCalls", tables.CALL.table, _OtherCall)),
)
_PROMPTS = (_Shape(_User, tables.USER.table),)
_HEAD = 200
"""A message says its type so near to its beginning."""


class Quick:
    """Takes the lines of one source the quick way."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._fits: dict[tuple[_Shape, int], bool] = {}
        self._patches: bool | None = None
        self._replies = _REPLIES

    def decode(self, text: bytes) -> Any:
        """The struct of a line that holds a message; None where the general way is needed."""
        if not _is_usual(text):
            return None
        for shape in self._replies if text.find(b'"type":"gemini"', 0, _HEAD) > 0 else _PROMPTS:
            try:
                line = shape.decode(text)
                spelled = _encode(line)
            except (*NOT_JSON, msgspec.ValidationError):
                continue
            if len(spelled) + 1 != len(text) or not text.startswith(spelled):
                continue
            sort = (shape, shape.uses(line))
            if sort not in self._fits:
                self._fits[sort] = shape.fits(line, self._context)
                if shape is _REPLIES[1]:
                    self._replies = _REPLIES[::-1]
            return line if self._fits[sort] else None
        return None

    def patch(self, text: bytes) -> bytes | None:
        """The time in a line that says nothing else than when the session was changed."""
        match = _PATCH.fullmatch(text)
        if match is None:
            return None
        if self._patches is None:
            used = ((tables.SET.table, (tables.PATCH,)), (tables.SET_TABLE, ("lastUpdated",)))
            self._patches = all(table.plan(keys, self._context).unusual is None for table, keys in used)
        return match.group(1) if self._patches else None


def _is_usual(text: bytes) -> bool:
    """True where every string is spelled as we would spell it."""
    if _SUSPECT.search(text) and _ESCAPED.fullmatch(text) is None:
        return False
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def version(line: Any, after: int) -> Message:
    """An earlier version of a message."""
    named = ((name, getattr(line, name)) for name in line.__struct_fields__ if name not in ("id", "type"))
    rest = {name: value for name, value in named if value is not UNSET}
    record = {"after": after, "kind": "progress", "message_uuid": line.id, "type": line.type}
    return {**record, "extensions": {AGENT: {"rest": rest}}}


def deal(line: Any, index: int, parent: str | None) -> Dealt | None:
    """The message in a line, and its results; None where the general way is needed."""
    time = line.timestamp
    if len(time) != 24 or time[10] != "T" or time[23] != "Z":
        return None
    base: Message = {"index": index, "role": "user", "uuid": line.id, "timestamp": time}
    if parent is not None:
        base["parent_uuid"] = parent
    return _prompt(line, base) if type(line) is _User else _reply(line, base)


def _prompt(line: _User, message: Message) -> Dealt:
    content = line.content
    if isinstance(content, str):
        message["content"] = [{"type": "text", "text": content}] if content else []
        message["extensions"] = {AGENT: {"plain": True}}
    else:
        message["content"] = [{"type": "text", "text": part.text} for part in content]
    if not is_typed(message["content"]):
        message["metadata"] = {"is_meta": True}
        return Dealt(message)
    return Dealt(message, prompt="\n".join(block["text"] for block in message["content"]))


def _reply(line: Any, message: Message) -> Dealt | None:
    blocks: list[Any] = [
        _Thinking(thought.description, {AGENT: _Noted(_Rest(thought.subject, thought.timestamp))})
        for thought in line.thoughts
    ]
    words = memoryview(line.content)
    if words[0] != _QUOTE:
        return None
    if words.nbytes > 2:
        blocks.append({"type": "text", "text": line.content})
    own: Message = {"tokens": line.tokens} if line.thoughts else {"tokens": line.tokens, "thoughts": []}
    usage = _usage(line.tokens)
    message["role"], message["content"] = "assistant", blocks
    metadata: Message = {"model": {"name": line.model}}
    message["metadata"] = {**metadata, "token_usage": usage} if usage else metadata
    message["extensions"] = {AGENT: {"plain": True, "rest": own}}
    dealt = Dealt(message) if line.toolCalls is UNSET else _called(message, line.toolCalls)
    return dealt._replace(has_thinking=True) if dealt is not None and line.thoughts else dealt


def _usage(tokens: _Tokens) -> dict[str, int]:
    """The counts as `usage_of` gives them, where nothing is odd about them."""
    given, said, cached, thoughts = tokens.input, tokens.output, tokens.cached, tokens.thoughts
    if given < cached or min(given, said, cached, thoughts, tokens.tool, tokens.total) < 0 or not tokens.total:
        return tables.usage_of(msgspec.structs.asdict(tokens))
    return {
        "input_tokens": given - cached,
        "output_tokens": said + thoughts,
        "cache_read_tokens": cached,
        "reasoning_tokens": thoughts,
    }


def _called(message: Message, calls: list[Any]) -> Dealt | None:
    results, hints = [], []
    last = message["timestamp"]
    if not calls:
        return None
    for call in calls:
        output = _output(call)
        arguments = _opened(call.args)
        if output is None or arguments is None or not _is_plain_display(call.resultDisplay):
            return None
        hints.append(arguments)
        rest = {
            "timestamp": call.timestamp,
            "resultDisplay": call.resultDisplay,
            "description": call.description,
            "displayName": call.displayName,
            "renderOutputAsMarkdown": call.renderOutputAsMarkdown,
        }
        block = {"type": "tool_use", "tool_id": call.id, "tool_name": call.name, "input": call.args}
        message["content"].append({**block, "extensions": {AGENT: {"rest": rest}}})
        result = {"type": "tool_result", "tool_id": call.id, "tool_name": call.name, "output": output}
        results.append({**result, "is_error": False})
        if len(call.timestamp) != 24:
            return None
        if call.timestamp > last and _is_time(call.timestamp):
            last = call.timestamp
    uuid = message["uuid"]
    answer = {"index": message["index"] + 1, "role": "user", "uuid": uuid + RESULTS, "parent_uuid": uuid}
    joined = {"timestamp": last, "content": results, "extensions": {AGENT: {"joined": True}}}
    return Dealt(message, {**answer, **joined}, hints=tuple(hints))


def _is_time(text: str) -> bool:
    return text[10] == "T" and text[23] == "Z" and is_canonical(text)


def _output(call: Any) -> Raw | None:
    """The text of a result that is plainly this call's."""
    if len(call.result) != 1 or call.name == TODO_TOOL:
        return None
    response = call.result[0].functionResponse
    output: Raw = response.response.output
    return output if response.id == call.id and response.name == call.name and _is_text(output) else None


def _is_text(value: Raw) -> bool:
    return memoryview(value)[0] == _QUOTE


def _opened(value: Raw) -> JSON:
    """An object that we would spell like this; None where we would not."""
    found = loads(value)
    return found if isinstance(found, dict) and dumps(found) == bytes(value) else None


def _is_plain_display(value: Raw) -> bool:
    """True for a display that need not be looked into: a text, or an object that is no task list."""
    if _is_text(value):
        return True
    found = _opened(value)
    return found is not None and "todos" not in found
