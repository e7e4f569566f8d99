"""The tokens of a transcript, and nothing else of it: structs that name so little that the rest is skipped unread."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import cast

import msgspec

from clew.agents.base import SourceFile, open_main
from clew.agents.claude_code import locate
from clew.agents.claude_code.lines import outline
from clew.derive.calls import UNKNOWN, Calls
from clew.derive.usage import FIELDS
from clew.io.records import read_chunks, read_line

SYNTHETIC = "<synthetic>"
_SAID = frozenset({"assistant", "user", "system", "attachment"})
_NO_COUNTS = [UNKNOWN] * len(FIELDS)


class Created(msgspec.Struct, gc=False):
    ephemeral_5m_input_tokens: int | None = UNKNOWN
    ephemeral_1h_input_tokens: int | None = UNKNOWN


class Details(msgspec.Struct, gc=False):
    thinking_tokens: int | None = UNKNOWN


class Usage(msgspec.Struct, gc=False):
    """What the first pass wants of it too, with a number for what is not told."""

    input_tokens: int | None = UNKNOWN
    output_tokens: int | None = UNKNOWN
    cache_creation_input_tokens: int | None = UNKNOWN
    cache_read_input_tokens: int | None = UNKNOWN
    cache_creation: Created | None = None
    output_tokens_details: Details | None = None


_NO_CREATED, _NO_DETAILS = Created(), Details()


class Message(msgspec.Struct, gc=False):
    id: str | None = None
    model: str | None = None
    usage: Usage | None = None


class Said(msgspec.Struct, gc=False):
    """What is wanted of every line ..."""

    type: str | None = None
    uuid: str | None = None
    timestamp: str | int | float | None = None
    gitBranch: str | None = None
    message: Message | None = None
    usage: Usage | None = None


class Line(Said, gc=False):
    """... and of the first ones."""

    sessionId: str | None = None
    isSidechain: bool | None = None
    cwd: str | None = None


_DECODER = msgspec.json.Decoder(Line)
_decode, _decode_first = _DECODER.decode, _DECODER.decode_lines
_decode_lines = msgspec.json.Decoder(Said).decode_lines
_DAMAGED = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)


def tally(source: SourceFile) -> Calls:
    """The calls of a transcript."""
    tallier = _Tallier(source)
    with open_main(source) as stream:
        for chunk, whole in [(stream.read(), True)] if isinstance(stream, io.BytesIO) else read_chunks(stream):
            if whole:
                _see(tallier, chunk)
    return tallier.finish()


def _see(tallier: _Tallier, chunk: bytes) -> None:
    """See many lines: the first by itself, and the others at once where all of them are plain records."""
    view, size = memoryview(chunk), len(chunk)
    start = chunk.find(b"\n") + 1 or size
    try:
        first = _decode(view[:start])
        rest: Sequence[Said] = _decode_lines(view[start:]) if tallier.settle([first]) else _decode_first(view[start:])
    except _DAMAGED:
        _see_each(tallier, chunk)
        return
    if not tallier.is_settled:
        tallier.settle(cast(Sequence[Line], rest))
    tallier.see([first])
    tallier.see(rest)


def _see_each(tallier: _Tallier, chunk: bytes) -> None:
    """See lines of which at least one is no plain record."""
    for text in io.BytesIO(chunk):
        try:
            lines = [_decode(text)]
        except _DAMAGED:
            lines = _outlines(text)
        tallier.settle(lines)
        tallier.see(lines)


def _outlines(text: bytes) -> list[Line]:
    """What is wanted of the records on a line that is not plainly one."""
    values = [record.value for record in read_line(text, 0, 0)]
    return [msgspec.convert(outline(value, Line), Line) for value in values if value is not None]


class _Tallier:
    def __init__(self, source: SourceFile) -> None:
        self._path = source.path
        self._calls = Calls()
        self._calls.session = locate.named_session(source.path) or ""
        self._calls.is_agent = locate.is_agent_file(source.path)
        self._folder: str | None = None
        """Of a sidechain: it stands for the session's where nothing else does."""
        self.branch: str | None = None
        """The branch that was named last."""
        self._unnamed = 0
        self.is_settled = False
        """True when all is known that holds for the whole."""
        self._name: str | None = None
        """Of the reply that is under way ..."""
        self._first: Said | None = None
        """... its first line ..."""
        self._used: Usage | None = None
        """... and what it used so far."""

    def settle(self, lines: Sequence[Line]) -> bool:
        """Take what the first records that say it say for all; True when nothing is missing any more."""
        calls = self._calls
        for line in lines:
            if self.is_settled:
                break
            calls.session = calls.session or line.sessionId or ""
            if line.type in _SAID:
                if line.cwd:
                    self._folder = self._folder or line.cwd
                    if calls.folder is None and not line.isSidechain:
                        calls.folder = line.cwd
                calls.branch = calls.branch or line.gitBranch
            self.is_settled = bool(calls.folder and calls.branch and calls.session)
        return self.is_settled

    def see(self, lines: Sequence[Said]) -> None:
        """See lines; those of one reply repeat what it used, or say more of it."""
        name, used = self._name, self._used
        for line in lines:
            message = line.message
            if line.type != "assistant":
                if line.gitBranch and line.gitBranch != self.branch and line.type in _SAID:
                    self.branch = line.gitBranch
            elif message is None or message.model == SYNTHETIC:
                self.branch = line.gitBranch or self.branch
            else:
                usage = message.usage
                if message.id == name and used is not None and usage is not None and name:
                    if usage == used or _covers(usage, used):
                        used = usage
                        continue
                if self._first is not None:
                    self._count(self._first, used)
                self._first, used, name = line, usage, message.id
                # What a line leaves out, the lines before it said.
                line.gitBranch = self.branch = line.gitBranch or self.branch
        self._name, self._used = name, used

    def _count(self, line: Said, usage: Usage | None) -> None:
        """Count a reply by its first line and what it used in the end."""
        counts = _counts(usage)
        if counts is None:
            counts = _counts(line.usage)
        if counts is None or line.message is None:
            return
        key = line.message.id or line.uuid
        if key is None:
            self._unnamed += 1
            key = f"{self._path}:{self._unnamed}"
        self._calls.note(key, line.message.model, line.timestamp, line.gitBranch, counts)

    def finish(self) -> Calls:
        """The calls, once all lines were seen."""
        if self._first is not None:
            self._count(self._first, self._used)
        calls = self._calls
        calls.folder = calls.folder or self._folder
        calls.session = calls.session or locate.stem(self._path)
        return calls


def _counts(usage: Usage | None) -> list[int] | None:
    """The counts in the order of FIELDS; None where there is none."""
    if usage is None:
        return None
    created, details = usage.cache_creation or _NO_CREATED, usage.output_tokens_details or _NO_DETAILS
    counts = [
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_creation_input_tokens,
        usage.cache_read_input_tokens,
        created.ephemeral_5m_input_tokens,
        created.ephemeral_1h_input_tokens,
        details.thinking_tokens,
    ]
    told = [UNKNOWN if count is None else count for count in counts] if None in counts else counts
    return cast(list[int], told) if told != _NO_COUNTS else None


def _covers(usage: Usage, before: Usage) -> bool:
    """True where the later of two counts of one reply leaves nothing out and takes nothing back, seen at a glance."""
    return (
        usage.input_tokens == before.input_tokens
        and usage.cache_read_input_tokens == before.cache_read_input_tokens
        and usage.cache_creation_input_tokens == before.cache_creation_input_tokens
        and (UNKNOWN if usage.output_tokens is None else usage.output_tokens)
        >= (UNKNOWN if before.output_tokens is None else before.output_tokens)
        and usage.cache_creation == before.cache_creation
        and usage.output_tokens_details == before.output_tokens_details
    )
