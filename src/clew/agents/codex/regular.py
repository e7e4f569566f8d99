"""Regular lines the quick way: values that need no look inside go over as they are spelled.

A line is regular when it is one of a few kinds, has known keys only, in their usual order, and is spelled as we spell:
then its pieces are put into the text of a message or record. All other lines take the general way, by tables, and
nothing in a document tells which way a line went.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from clew.agents.base import Unit
from clew.agents.codex import spelling
from clew.agents.codex.carried import Carried, Found
from clew.agents.codex.outcome import spelled_outcome
from clew.agents.codex.parts import parse_arguments
from clew.agents.codex.shape import DONE
from clew.agents.codex.watch import ANSWERED, SPOKEN, Nodes, Watch
from clew.agents.codex.words import INJECTED
from clew.agents.orders import Order
from clew.io.codec import dumps

if TYPE_CHECKING:
    from clew.agents.codex.reading import CodexReading

_PASSED = "internal_chat_message_metadata_passthrough"
_LINE: Order = ("timestamp", "ordinal", "type", "payload", "metadata")
_RESULT: Order = ("type", "id", "call_id", "output", _PASSED, "metadata")
ORDERS: dict[str, list[Order]] = {
    "line": [_LINE],
    "line.function_call": [_LINE],
    "line.function_call_output": [_LINE],
    "line.custom_tool_call_output": [_LINE],
    "line.reasoning": [_LINE],
    "line.message": [_LINE],
    "line.custom_tool_call": [_LINE],
    "message": [("type", "id", "role", "content", "phase", _PASSED, "metadata")],
    "text": [("type", "text")],
    "custom_tool_call": [("type", "id", "status", "call_id", "name", "input", _PASSED, "metadata")],
    "function_call_output": [_RESULT],
    "custom_tool_call_output": [_RESULT],
    "reasoning": [("type", "id", "summary", "content", "encrypted_content", _PASSED, "metadata")],
}
"""The usual order of keys."""

_INJECTED = tuple(text.encode() for text in INJECTED)
_SPAWN = b"spawn_agent"
_TYPE = b'"payload":{"type":"'
_CALL_ID = b',"call_id":"'
_END = b'"}}\n'
_ONE = len(spelling.ONE_THOUGHT) - 1
_CALL_FIRST: Order = ("type", "name", "call_id", "arguments")
_CALL_LAST: Order = ("type", "name", "arguments", "call_id")


class Regular(Carried):
    """Makes messages and records of the regular lines of one rollout."""

    def __init__(self, reading: CodexReading, between: bytes, watch: Watch | None = None) -> None:
        super().__init__(reading, between, watch)
        self.messages: list[bytes] = []
        self._thread, self._calls = reading.thread, reading.calls
        self._nodes = watch.nodes if watch is not None else Nodes()
        self._slot = watch.slot if watch is not None else None
        if watch is not None:
            watch.slot.pieces = self.messages
            self._requests = watch.requests
        self._prefix = dumps(self._thread.prefix)[:-1]
        self._last: str | None = None
        self._last_spelled = b"null"
        self._described: tuple[str | None, str | None] = (None, None)
        self._metadata = b""
        self._close = self._end = b"}" + between
        self._call_keys: Order = ()
        """The keys of the last call."""

    def take(self, text: bytes, line: int) -> bool:
        """Make what a line becomes; False: it must take the general way."""
        if self._watch is not None and self._watch.copied.active:
            return False
        at = text.find(_TYPE, 30, 120) + 19
        if at < 30:
            return self._state(text)
        name = text[at : text.find(b'"', at)]
        way = _WAYS.get(name)
        return way(self, text, line) if way is not None else self._event(text, line, name)

    def add(self, unit: Unit) -> None:
        """Add what came the general way."""
        text = dumps(unit.value)
        if not unit.is_message:
            self.records.append(text + self._between)
        elif unit.value["role"] == "assistant":
            end = 2 if "metadata" in unit.value else 1
            begin = len(self.messages)
            self.messages += (text[:-end], b"", text[-end:] + self._between)
            if self._slot is not None:
                self._slot.open(self._reading.index, begin, begin + 1, end == 1)
        else:
            self.messages.append(text + self._between)

    def hand_over(self, messages: bytearray, records: bytearray, keep: int | None = None) -> None:
        """Hand over what was made, of the messages those pieces before `keep`."""
        messages += b"".join(self.messages[:keep])
        records += b"".join(self.records)
        del self.messages[:keep]
        self.records.clear()
        if self._watch is None:
            self._nodes.clear()

    # Messages

    def _result(self, text: bytes, line: int) -> bool:
        found = spelling.RESULT(text)
        ends = (len(text) - 3, b"") if text.endswith(_END) else spelling.kept_keys(text)
        if found is None or ends is None or not spelling.is_plain(text):
            return False
        time, ordinal, kind, own, call = found.groups()
        behind, kept = ends
        at = found.end()
        output = text[at:behind]
        name = call.decode()
        watch = self._watch
        if not spelling.is_string(output) or (watch is not None and watch.scanner.awaits(name)) or self._is_taken(own):
            return False
        if kind != b"function_call":
            kept = _joined(b'"type":"custom_tool_call_output"', kept)
        early, late, parent = self._place(line, own, time, ANSWERED)
        self.messages.append(
            b'{"index":%d,"role":"user","timestamp":"%b"%b,"content":[{"type":"tool_result","tool_id":"%b",'
            b'"tool_name":%b,"output":%b%b}]%b%b,"parent_uuid":%b%b'
            % (
                self._reading.index,
                time,
                early,
                call,
                dumps(self._calls.get(name)),
                output,
                spelled_outcome(text, at + 1),
                self._extension(kept, ordinal, line) if kept or ordinal or self._outline.inherited else b"",
                late,
                parent,
                self._news() if self._thread.has_news else self._end,
            )
        )
        return True

    def _call(self, text: bytes, line: int) -> bool:
        found = spelling.CALL(text)
        ends = (len(text) - 3, b"") if text.endswith(_END) else spelling.kept_keys(text)
        if found is None or ends is None:
            return False
        _, _, own, name, call = found.groups()
        behind, kept = ends
        keys = _CALL_FIRST
        if call is None:
            keys = _CALL_LAST
            told = spelling.CALL_BEHIND(text, text.rfind(_CALL_ID, found.end(), behind), behind)
            if told is None or told.end() != behind:
                return False
            call, behind = told[1], told.start()
        given = _given(text[found.end() : behind])
        if given is None or self._is_taken(own) or (self._watch is not None and name == _SPAWN):
            return False
        if own is not None or kept:
            keys = _call_keys(keys, own, kept)
        if keys is not self._call_keys:
            if not self._is_usual("function_call", keys):
                return False
            self._call_keys = keys
        content = b'{"type":"tool_use","tool_id":"%b","tool_name":"%b","input":%b}' % (call, name, given[0])
        # Now and then the oldest of them are forgotten.
        dict.__setitem__(self._calls, call.decode(), name.decode())
        self._say(line, found, own, content, _joined(kept, given[1]))
        return True

    def _custom(self, text: bytes, line: int) -> bool:
        found = spelling.CUSTOM(text)
        ends = (len(text) - 3, b"") if text.endswith(_END) else spelling.kept_keys(text)
        if found is None or ends is None or not spelling.is_plain(text):
            return False
        _, _, own, status, call, name = found.groups()
        behind, kept = ends
        given = text[found.end() : behind]
        if not spelling.is_string(given) or self._is_taken(own) or (self._watch is not None and name == _SPAWN):
            return False
        kept = _joined(b'"status":"%b"' % status, kept) if status is not None else kept
        kept = _joined(b'"type":"custom_tool_call"', kept)
        content = b'{"type":"tool_use","tool_id":"%b","tool_name":"%b","input":{"input":%b}}' % (call, name, given)
        dict.__setitem__(self._calls, call.decode(), name.decode())
        self._say(line, found, own, content, kept)
        return True

    def _say(
        self, line: int, found: Found, own: bytes | None, content: bytes, kept: bytes, stop: str | None = None
    ) -> None:
        """Add what the model says or does."""
        time, ordinal = found[1], found[2]
        early, late, parent = self._place(line, own, time, SPOKEN)
        index = self._reading.index
        thread = self._thread
        if stop is not None or thread.has_news or self._described != (thread.model, thread.effort):
            self._describe(stop)
        text = b'{"index":%d,"role":"assistant","timestamp":"%b"%b,"content":[%b]%b%b,"parent_uuid":%b%b' % (
            index,
            time,
            early,
            content,
            self._extension(kept, ordinal, line) if kept or ordinal or self._outline.inherited else b"",
            late,
            parent,
            self._metadata,
        )
        messages = self.messages
        begin = len(messages)
        if self._slot is None:
            messages += (text, self._usage(index), self._close)
        else:
            self._requests.item(index, None, "")
            messages += (text, b"", self._close)
            self._slot.open(index, begin, begin + 1, not self._metadata)

    def _usage(self, index: int) -> bytes:
        """What is known of the usage of an answer, as its last member."""
        spent = self._outline.spent.at(index)
        if spent is None:
            return b""
        usage = b',"token_usage":' + dumps(spent)
        return usage if self._metadata else b',"metadata":{' + usage[1:] + b"}"

    def _spoken(self, text: bytes, line: int) -> bool:
        found = spelling.SPOKEN(text)
        ends = spelling.SPOKEN_END(text, text.rfind(b'"}]') + 1)
        if found is None or ends is None or not spelling.is_plain(text):
            return False
        time, ordinal, own, assistant = found.groups()
        phase, kept = ends.groups()
        words = text[found.end() : ends.start()]
        if self._is_taken(own) or not spelling.is_string(words):
            return False
        if kept and not spelling.is_known(b"{" + kept[1:] + b"}"):
            return False
        if assistant is None:
            if phase is not None or kept or words.startswith(_INJECTED, 1):
                return False
            self._ask(line, time, own, words, self._extension(b"", ordinal, line))
            return True
        if self._watch is not None:
            self._watch.twins.saw_assistant(line, frozenset((words,)))
        rest = kept[1:] if phase is None else b'"phase":"%b"' % phase + kept
        stop = DONE.get(phase.decode()) if phase is not None else None
        self._say(line, found, own, b'{"type":"text","text":%b}' % words, rest, stop)
        return True

    def _ask(self, line: int, time: bytes, own: bytes | None, words: bytes, extension: bytes) -> None:
        """Add a prompt."""
        before, was_in_context = self._thread.last, self._thread.in_context
        early, late, parent = self._place(line, own, time, SPOKEN)
        uuid, self._thread.last, self._thread.in_context = self._thread.last or "", before, was_in_context
        self._thread.follow(uuid, False, True)
        if self._watch is not None:
            self._watch.asked(uuid, before, words)
        self.messages.append(
            b'{"index":%d,"role":"user","timestamp":"%b"%b,"content":[{"type":"text","text":%b}]%b%b,"parent_uuid":%b%b'
            % (self._reading.index, time, early, words, extension, late, parent, self._news())
        )

    def _thoughts(self, text: bytes, line: int) -> bool:
        found = spelling.REASONING(text)
        ends = (len(text) - 3, b"") if text.endswith(_END) else spelling.kept_keys(text)
        if found is None or ends is None or not spelling.is_plain(text):
            return False
        own = found[3]
        behind, kept = ends
        at = text.find(b'],"', found.end())
        after = spelling.SUMMARY_END(text, at) if at >= 0 else None
        if after is None or self._is_taken(own):
            return False
        content, signed = after.groups()
        signature = text[after.end() : behind]
        if not (spelling.is_string(signature) if signed else after.end() == behind):
            return False
        blocks = _blocks(text[found.end() : at + 1], b',"signature":' + signature if signed else b"")
        if blocks is None:
            return False
        kept = _joined(b'"content":null', kept) if content else kept
        kept = _joined(kept, b'"summary":[]') if at == found.end() + 1 else kept
        self._say(line, found, own, blocks, kept)
        return True

    def _is_taken(self, own: bytes | None) -> bool:
        """True for an id that cannot be the message's."""
        if own is None:
            return False
        name = own.decode()
        return name in self._outline.repeated or name.startswith(self._thread.prefix)

    def _place(self, line: int, own: bytes | None, time: bytes, flags: int) -> tuple[bytes, bytes, bytes]:
        """Take the next place in the thread: the id, before the content where it is the item's own, and the parent."""
        thread, nodes = self._thread, self._nodes
        self._reading.index += 1
        before = thread.last
        parent = self._last_spelled if before is self._last else dumps(before)
        if own is None:
            uuid = f"{thread.prefix}{line}"
            self._last_spelled = spelled = b'%b%d"' % (self._prefix, line)
            early, late = b"", b',"uuid":' + spelled
        else:
            uuid = own.decode()
            self._last_spelled = spelled = b'"%b"' % own
            early, late = b',"uuid":' + spelled, b""
            nodes.ids.append(uuid)
        nodes.uuids.append(uuid)
        nodes.parents.append(before)
        nodes.times.append(time)
        nodes.flags.append(flags)
        self._last = thread.last = uuid
        thread.in_context = False
        return early, late, parent

    def _extension(self, rest: bytes, ordinal: bytes | None, line: int) -> bytes:
        """What the model has no place for."""
        inherited = line <= self._outline.inherited
        if ordinal is None and not inherited:
            return b',"extensions":{"codex":{"rest":{"payload":{%b}}}}' % rest if rest else b""
        payload = b'"payload":{%b}' % rest if rest else b""
        kept = payload if ordinal is None else _joined(b'"ordinal":' + ordinal, payload)
        own = b'"rest":{%b}' % kept if kept else b""
        own = _joined(own, b'"inherited":true') if inherited else own
        return b',"extensions":{"codex":{%b}}' % own

    def _news(self) -> bytes:
        """The end of a message that is no answer."""
        news = self._thread.news()
        return (b',"metadata":' + dumps(news) + b"}" if news else b"}") + self._between

    def _describe(self, stop: str | None) -> None:
        """Spell the metadata of an answer, open at its end, and what closes it with the message."""
        thread = self._thread
        metadata = {**thread.news(), **self._reading.answered(stop)}
        is_lasting = len(metadata) == len(self._reading.answered(None)) and stop is None
        self._described = (thread.model, thread.effort) if is_lasting else ("", "")
        self._metadata = b',"metadata":' + dumps(metadata)[:-1] if metadata else b""
        self._close = (b"}}" if metadata else b"}") + self._between


_WAYS: dict[bytes, Callable[[Regular, bytes, int], bool]] = {
    b"reasoning": Regular._thoughts,
    b"function_call": Regular._call,
    b"custom_tool_call": Regular._custom,
    b"message": Regular._spoken,
    b"function_call_output": Regular._result,
    b"custom_tool_call_output": Regular._result,
    b"token_count": Regular._tokens,
}


def _joined(first: bytes, second: bytes) -> bytes:
    return first + b"," + second if first and second else first or second


def _given(spelled: bytes) -> tuple[bytes, bytes] | None:
    """What a call is given, and the member that keeps its spelling where that is not ours; None: not plain."""
    text = spelling.read_string(spelled)
    if text is None:
        return None
    parsed = parse_arguments(text)
    if type(parsed) is str:
        return spelled, b""
    given = dumps(parsed)
    return given, b"" if given == text.encode() else b'"arguments":' + spelled


def _call_keys(keys: Order, own: bytes | None, kept: bytes) -> Order:
    named = keys if own is None else (keys[0], "id", *keys[1:])
    if not kept:
        return named
    more = [name for name in (_PASSED, "metadata") if b'"%b":{' % name.encode() in kept]
    return (*named, *more)


def _blocks(summary: bytes, signature: bytes) -> bytes | None:
    """The blocks of some thoughts; the first one is signed."""
    if summary.startswith(spelling.ONE_THOUGHT) and spelling.is_string(one := summary[_ONE:-2]):
        return b'{"type":"thinking","thinking":' + one + signature + b"}"
    if summary == b"[]":
        return b'{"type":"thinking","thinking":""' + signature + b"}"
    try:
        thoughts = spelling.thoughts_of(summary)
    except spelling.DAMAGED:
        return None
    if dumps(thoughts) != summary or any(not spelling.is_thought(thought) for thought in thoughts):
        return None
    texts = [bytes(thought.text) for thought in thoughts]
    more = b"".join(b',{"type":"thinking","thinking":%b}' % text for text in texts[1:])
    return b'{"type":"thinking","thinking":' + texts[0] + signature + b"}" + more
