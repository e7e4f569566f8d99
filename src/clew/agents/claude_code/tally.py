"""The tokens of a transcript, and nothing else of it: structs that name so little that the rest is skipped unread."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import cast

import msgspec

from clew.agents.base import SourceFile, open_main
from clew.agents.claude_code import locate
from clew.agents.claude_code.lines import outline
from clew.derive.calls import UNKNOWN, Call, Calls
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
    """See many lines at once, where all of them are plain records."""
    view, start = memoryview(chunk), 0
    try:
        if not tallier.is_settled:
            start = _see_first(tallier, chunk, view)
        lines: Sequence[Said] = _decode_lines(view[start:]) if tallier.is_settled else _decode_first(view[start:])
    except _DAMAGED:
        _see_each(tallier, chunk[start:])
        return
    if not tallier.is_settled:
        tallier.settle(cast(Sequence[Line], lines))
    tallier.see(lines)


def _see_first(tallier: _Tallier, chunk: bytes, view: memoryview) -> int:
    """See the first line, which mostly tells what holds for the whole. Returns where the next one begins."""
    stop = chunk.find(b"\n") + 1 or len(chunk)
    try:
        first = _decode(view[:stop])
    except _DAMAGED:
        return 0
    tallier.settle([first])
    tallier.see([first])
    return stop


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
        """Of the reply that is under way."""
        self._firsts: list[Said] = []
        """The first line of each reply ..."""
        self._used: list[Usage | None] = []
        """... and what it used, so far."""

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
        name, firsts, used = self._name, self._firsts, self._used
        for line in lines:
            message = line.message
            if line.type != "assistant":
                if line.gitBranch and line.gitBranch != self.branch and line.type in _SAID:
                    self.branch = line.gitBranch
            elif message is None or message.model == SYNTHETIC:
                self.branch = line.gitBranch or self.branch
            else:
                usage = message.usage
                if name is not None and message.id == name and _repeats(usage, used[-1]):
                    used[-1] = usage
                    continue
                name = message.id or None
                firsts.append(line)
                used.append(usage)
                # What a line leaves out, the lines before it said.
                line.gitBranch = self.branch = line.gitBranch or self.branch
        self._name = name

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
        calls = self._calls
        calls.folder = calls.folder or self._folder
        calls.session = calls.session or locate.stem(self._path)
        plain = _plain_calls(self._firsts, self._used)
        if plain is not None:
            calls.by_key = plain
            return calls
        for line, usage in zip(self._firsts, self._used, strict=True):
            self._count(line, usage)
        return calls


def _plain_calls(firsts: Sequence[Said], used: Sequence[Usage | None]) -> dict[str, Call] | None:
    """The calls, column by column, which is quicker; None where one is not like most: named, counted, and once."""
    usages = [usage for usage in used if usage is not None]
    said = [line.message for line in firsts if line.message is not None]
    names = [message.id for message in said if message.id]
    if not len(usages) == len(said) == len(set(names)) == len(firsts):
        return None
    created = [usage.cache_creation or _NO_CREATED for usage in usages]
    details = [usage.output_tokens_details or _NO_DETAILS for usage in usages]
    columns = [
        [usage.input_tokens for usage in usages],
        [usage.output_tokens for usage in usages],
        [usage.cache_creation_input_tokens for usage in usages],
        [usage.cache_read_input_tokens for usage in usages],
        [parts.ephemeral_5m_input_tokens for parts in created],
        [parts.ephemeral_1h_input_tokens for parts in created],
        [parts.thinking_tokens for parts in details],
    ]
    if any(None in column for column in columns) or (UNKNOWN in columns[0] and UNKNOWN in columns[1]):
        return None
    models, branches = [message.model or "" for message in said], [line.gitBranch for line in firsts]
    times = [line.timestamp for line in firsts]
    counts = zip(*columns, strict=True)
    return dict(zip(names, map(list, zip(models, times, branches, counts, strict=True)), strict=True))


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


def _repeats(usage: Usage | None, before: Usage | None) -> bool:
    """True where the later of two counts of one reply leaves nothing out and takes nothing back, seen at a glance."""
    if usage is None or before is None:
        return False
    return usage == before or (
        usage.input_tokens == before.input_tokens
        and usage.cache_read_input_tokens == before.cache_read_input_tokens
        and usage.cache_creation_input_tokens == before.cache_creation_input_tokens
        and (UNKNOWN if usage.output_tokens is None else usage.output_tokens)
        >= (UNKNOWN if before.output_tokens is None else before.output_tokens)
        and usage.cache_creation == before.cache_creation
        and usage.output_tokens_details == before.output_tokens_details
    )
