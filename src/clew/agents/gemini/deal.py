"""Records of the usual shapes in the words of the model: gathered as structs, then written and counted together."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from clew.agents.folding import Message
from clew.agents.gemini import tables
from clew.agents.gemini.fold import RESULTS, TODO_TOOL, is_typed
from clew.agents.gemini.locate import AGENT
from clew.agents.gemini.quick import OtherLine, Quick, Thought, Tokens
from clew.agents.gemini.scan import MAX_HINTS, Scanner
from clew.graph.links import MESSAGE, RESULT, SAID, SIGNIFICANT
from clew.io.codec import dumps
from clew.model.json import JSON

_REPLY, _ANSWER = MESSAGE | SAID | SIGNIFICANT, MESSAGE | SAID | RESULT
_encode_lines = msgspec.json.Encoder().encode_lines


_Row = tuple[str, str | None, int, int, float, str]
"""Of a message: uuid, parent, flags, index, and its time as a number and as text."""
_Place = tuple[str, int]
"""Uuid and index of a message."""


class _Ours(Struct, gc=False):
    """What is noted for the agent itself."""

    gemini: Any


class _Noted(Struct, gc=False):
    rest: Any


class _ThoughtRest(Struct, gc=False):
    subject: str
    timestamp: str


class _Thinking(Struct, tag_field="type", tag="thinking", gc=False):
    thinking: str
    extensions: _Ours


class _Text(Struct, tag_field="type", tag="text", gc=False):
    text: str


class _CallRest(Struct, gc=False):
    timestamp: str
    resultDisplay: Any
    description: str
    displayName: str
    renderOutputAsMarkdown: bool


class _Use(Struct, tag_field="type", tag="tool_use", gc=False):
    tool_id: str
    tool_name: str
    input: dict[str, JSON]
    extensions: _Ours


class _Result(Struct, tag_field="type", tag="tool_result", gc=False):
    tool_id: str
    tool_name: str
    output: Raw
    is_error: bool


class _ReplyRest(Struct, gc=False):
    tokens: Tokens
    thoughts: list[Thought] | UnsetType


class _Own(Struct, gc=False):
    plain: bool
    rest: _ReplyRest


class _Usage(Struct, gc=False):
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    reasoning_tokens: int


class _Model(Struct, gc=False):
    name: str


class _Metadata(Struct, gc=False):
    model: _Model
    token_usage: Any


class _Reply(Struct, gc=False):
    index: int
    role: str
    uuid: str
    timestamp: str
    parent_uuid: str | UnsetType
    content: list[Any]
    metadata: _Metadata
    extensions: _Ours


class _Answer(Struct, gc=False):
    index: int
    role: str
    uuid: str
    parent_uuid: str
    timestamp: str
    content: list[_Result]
    extensions: _Ours


class _Told(Struct, gc=False):
    timestamp: str
    content: JSON
    thoughts: list[Thought]
    tokens: Tokens
    model: str
    toolCalls: Any


class _State(Struct, gc=False):
    after: int
    kind: str
    timestamp: str


class _Version(Struct, gc=False):
    after: int
    kind: str
    message_uuid: str
    type: str
    extensions: _Ours


_JOINED = _Ours({"joined": True})


class Dealer:
    """Deals with the messages of one source; what it makes of them waits until it is put."""

    def __init__(self, quick: Quick, scanner: Scanner) -> None:
        self._quick, self._scanner = quick, scanner
        self._facts = scanner.facts
        self._made: list[Any] = []
        self._kept: list[Any] = []
        self._rows: list[_Row] = []
        self._tools: list[str] = []
        self._replies: list[tuple[str, str, Any]] = []
        self._last_model = _Model("")

    def take(self, line: Any, index: int, parent: str | None) -> _Place | None:
        """Take the next message and return what stands last then; None where the general way is needed."""
        kind = line.type
        if line.patch is not UNSET or line.displayContent is not UNSET or kind is UNSET:
            return None
        if kind == "gemini":
            return self._reply(line, index, parent)
        return self._prompt(line, index, parent) if kind == "user" else None

    def _reply(self, line: Any, index: int, parent: str | None) -> _Place | None:
        uuid, time, thoughts, tokens, calls = line.id, line.timestamp, line.thoughts, line.tokens, line.toolCalls
        if not _is_reply(line) or type(line.content) is not str or not self._quick.fits(_use(line)):
            return None
        stamp = _stamp(time)
        if stamp is None:
            return None
        blocks: list[Any] = [
            _Thinking(thought.description, _Ours(_Noted(_ThoughtRest(thought.subject, thought.timestamp))))
            for thought in thoughts
        ]
        if line.content:
            blocks.append(_Text(line.content))
        answer = _answer(line, blocks, index + 1) if calls is not UNSET else None
        if answer is None and calls is not UNSET:
            return None
        usage = _usage(tokens)
        own = _Own(True, _ReplyRest(tokens, UNSET if thoughts else []))
        metadata = _Metadata(self._model(line.model), usage or UNSET)
        above = UNSET if parent is None else parent
        self._made.append(_Reply(index, "assistant", uuid, time, above, blocks, metadata, _Ours(own)))
        self._rows.append((uuid, parent, _REPLY, index, stamp, time))
        self._replies.append((uuid, line.model, usage))
        if thoughts:
            self._facts.has_thinking = True
        return (uuid, index) if answer is None else self._answered(answer, calls)

    def _model(self, name: str) -> _Model:
        """The model that answers, nearly always the same as before."""
        if self._last_model.name != name:
            self._last_model = _Model(name)
        return self._last_model

    def _answered(self, answer: _Answer, calls: list[Any]) -> _Place:
        self._made.append(answer)
        self._rows.append((answer.uuid, answer.parent_uuid, _ANSWER, answer.index, 0.0, answer.timestamp))
        self._tools += [call.name for call in calls]
        self._facts.user_messages += 1
        if len(self._scanner.hints) < MAX_HINTS:
            self._scanner.called([call.args for call in calls])
        return answer.uuid, answer.index

    def _prompt(self, line: Any, index: int, parent: str | None) -> _Place | None:
        if line.timestamp is UNSET or line.content is UNSET or is_response(line):
            return None
        content = _content(line.content)
        if content is None or line.thoughts is not UNSET or line.tokens is not UNSET or line.model is not UNSET:
            return None
        if line.toolCalls is not UNSET or not self._quick.fits(("user", False, False, False)):
            return None
        stamp = _stamp(line.timestamp)
        if stamp is None:
            return None
        message: Message = {"index": index, "role": "user", "uuid": line.id, "timestamp": line.timestamp}
        if parent is not None:
            message["parent_uuid"] = parent
        message["content"] = [{"type": "text", "text": text} for text in content if text or type(content) is list]
        if type(content) is tuple:
            message["extensions"] = {AGENT: {"plain": True}}
        is_said = is_typed(message["content"])
        if not is_said:
            message["metadata"] = {"is_meta": True}
        self._made.append(message)
        flags = _REPLY if is_said else _REPLY & ~SIGNIFICANT
        self._rows.append((line.id, parent, flags, index, stamp if is_said else 0.0, line.timestamp))
        self._scanner.said(message, "\n".join(content) if is_said else None)
        return line.id, index

    def keep(self, line: Any, after: int) -> bool:
        """Take an earlier version of a reply; False where the general way is needed."""
        if line.type != "gemini" or line.patch is not UNSET or line.displayContent is not UNSET:
            return False
        if not _is_reply(line) or not self._quick.fits(_use(line)):
            return False
        told = _Told(line.timestamp, line.content, line.thoughts, line.tokens, line.model, line.toolCalls)
        self._kept.append(_Version(after, "progress", line.id, "gemini", _Ours(_Noted(told))))
        self._facts.records += 1
        return True

    def patch(self, time: str, after: int) -> None:
        """Take a line that says when the session was changed."""
        self._kept.append(_State(after, "state", time))
        self._facts.records += 1
        self._scanner.state["lastUpdated"] = time

    def put(self, messages: bytearray, records: bytearray, between: bytes) -> None:
        """Write what waits; no JSON of ours has a line end in it."""
        for made, out in ((self._made, messages), (self._kept, records)):
            if made and between == b",":
                out += memoryview(dumps(made))[1:-1]
                out += between
            else:
                out += _encode_lines(made).replace(b"\n", between)

    def drop(self) -> None:
        """Forget what waits."""
        self._made.clear()
        self._kept.clear()

    def note(self) -> None:
        """Note the facts of all that was taken so far."""
        if not self._rows:
            return
        facts, made = self._facts, len(self._rows)
        uuids, parents, flags, indexes, stamps, times = zip(*self._rows, strict=True)
        facts.records += made
        facts.messages += made
        facts.links.extend(uuids, parents, bytes(flags), indexes, stamps, [None] * made)
        # They are all spelled alike, so the first and the last say enough.
        for time in (times[0], max(times), min(times)):
            facts.saw_time(time)
        facts.tool_calls += len(self._tools)
        facts.tools.update(self._tools)
        self._scanner.replied(self._replies)
        self._rows.clear()
        self._tools.clear()
        self._replies.clear()


def _is_reply(line: Any) -> bool:
    """True for a reply that has all the usual keys."""
    if line.thoughts is UNSET or line.tokens is UNSET or line.model is UNSET or line.content is UNSET:
        return False
    return line.timestamp is not UNSET and (line.toolCalls is UNSET or len(line.toolCalls) > 0)


def _use(line: Any) -> tuple[str, bool, bool, bool]:
    is_other = type(line) is OtherLine
    return "gemini", bool(line.thoughts), bool(line.toolCalls), bool(line.toolCalls) and is_other


def is_response(line: Any) -> bool:
    """True for a prompt that may answer a call whose result was given with the call."""
    content = line.content
    return type(content) is list and any(type(part) is dict and "functionResponse" in part for part in content)


def is_time(time: str) -> bool:
    """True for a time that is spelled as the client spells it."""
    return _stamp(time) is not None


def _stamp(time: str) -> float | None:
    """The time that is spelled as the client spells it."""
    if len(time) != 24 or time[7] != "-" or time[10] != "T" or time[19] != "." or time[23] != "Z":
        return None
    try:
        return datetime.fromisoformat(time).timestamp()
    except ValueError:
        return None


def _usage(tokens: Tokens) -> Any:
    """The counts as `usage_of` gives them, where nothing is odd about them."""
    given, said, cached, thoughts = tokens.input, tokens.output, tokens.cached, tokens.thoughts
    if not (given >= cached >= 0 <= said and thoughts >= 0 <= tokens.tool and tokens.total > 0):
        return tables.usage_of(msgspec.structs.asdict(tokens))
    return _Usage(given - cached, said + thoughts, cached, thoughts)


def _answer(line: Any, blocks: list[Any], index: int) -> _Answer | None:
    """The message with the results of a reply, whose calls are added to its blocks."""
    results, last = [], line.timestamp
    for call in line.toolCalls:
        output, display = _output(call), call.resultDisplay
        if output is None or not (type(display) is Raw or (type(display) is dict and "todos" not in display)):
            return None
        time = call.timestamp
        rest = _CallRest(time, display, call.description, call.displayName, call.renderOutputAsMarkdown)
        blocks.append(_Use(call.id, call.name, call.args, _Ours(_Noted(rest))))
        results.append(_Result(call.id, call.name, output, False))
        if len(time) != 24:
            return None
        if time > last and _stamp(time) is not None:
            last = time
    return _Answer(index, "user", line.id + RESULTS, line.id, last, results, _JOINED) if results else None


def _output(call: Any) -> Raw | None:
    """The text of a result that is plainly this call's."""
    if len(call.result) != 1 or call.name == TODO_TOOL:
        return None
    response = call.result[0].functionResponse
    output = response.response.output
    return output if response.id == call.id and response.name == call.name and type(output) is Raw else None


def _content(content: JSON) -> tuple[str] | list[str] | None:
    """The words of a prompt: alone, or as a list of texts and nothing else."""
    if type(content) is str:
        return (content,)
    if type(content) is not list or any(type(part) is not dict or list(part) != ["text"] for part in content):
        return None
    texts = [part["text"] for part in content]
    return texts if all(type(text) is str for text in texts) else None
