"""The tokens of a transcript, and nothing else of it: structs that name so little that the rest is skipped unread."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import cast

import msgspec

from clew.agents.base import SourceFile, open_main
from clew.agents.claude_code import locate
from clew.agents.claude_code.glance import SAID, SYNTHETIC, Created, Details, Doubt, Glance, Said, Usage
from clew.agents.claude_code.lines import outline
from clew.derive.calls import UNKNOWN, Calls
from clew.derive.usage import FIELDS
from clew.io.records import read_chunks, read_line

_NO_COUNTS = [UNKNOWN] * len(FIELDS)


class Line(Said, gc=False):
    """What is wanted of the first lines, and of all where they are not plain."""

    uuid: str | None = None
    usage: Usage | None = None
    sessionId: str | None = None
    cwd: str | None = None


_DECODER = msgspec.json.Decoder(Line)
_decode, _decode_lines = _DECODER.decode, _DECODER.decode_lines
_DAMAGED = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)


def tally(source: SourceFile) -> Calls:
    """The calls of a transcript."""
    try:
        return _at_a_glance(source)
    except (Doubt, *_DAMAGED):
        return _carefully(source)


def _chunks(source: SourceFile) -> Iterator[tuple[bytes, bool]]:
    with open_main(source) as stream:
        yield from read_chunks(stream)


def _at_a_glance(source: SourceFile) -> Calls:
    head, glance = _Head(source, is_hasty=True), Glance()
    for chunk, whole in _chunks(source):
        if not whole:
            raise Doubt
        if head.is_settled:
            glance.read(chunk, head.is_sidechain)
            continue
        # The first line mostly tells what holds for the whole.
        view, start = memoryview(chunk), chunk.find(b"\n") + 1 or len(chunk)
        lines = [_decode(view[:start])]
        glance.see(lines)
        if head.settle(lines):
            glance.read(view[start:], head.is_sidechain)
        else:
            lines = _decode_lines(view[start:])
            head.settle(lines)
            glance.see(lines)
    calls = head.finish()
    if glance.is_unnamed and calls.branch:
        # Whether it was named before or after makes a difference.
        raise Doubt
    calls.columns = glance.columns()
    return calls


def _carefully(source: SourceFile) -> Calls:
    """The calls of a transcript that is not plain."""
    head = _Head(source)
    tallier = _Tallier(head)
    for chunk, whole in _chunks(source):
        for lines in _apart(chunk) if whole else ():
            head.settle(lines)
            tallier.see(lines)
    head.finish()
    tallier.finish()
    return head.calls


def _apart(chunk: bytes) -> Iterator[list[Line]]:
    """All lines at once where each is a plain record, else one by one."""
    try:
        yield _decode_lines(chunk)
        return
    except _DAMAGED:
        pass
    for text in io.BytesIO(chunk):
        try:
            yield [_decode(text)]
        except _DAMAGED:
            yield _outlines(text)


def _outlines(text: bytes) -> list[Line]:
    """What is wanted of the records on a line that is not plainly one."""
    values = [record.value for record in read_line(text, 0, 0)]
    return [msgspec.convert(outline(value, Line), Line) for value in values if value is not None]


class _Head:
    """What holds for the whole of a transcript."""

    def __init__(self, source: SourceFile, *, is_hasty: bool = False) -> None:
        self.path = source.path
        self._is_hasty = is_hasty
        """True for who goes back where what begins as a sidechain is more than that."""
        self.calls = Calls()
        self.calls.session = locate.named_session(source.path) or ""
        self.calls.is_agent = locate.is_agent_file(source.path)
        self._folder: str | None = None
        """Of a sidechain: it stands for the session's where nothing else does."""
        self.is_settled = False
        """True when all is known."""

    def settle(self, lines: Sequence[Line]) -> bool:
        """Take what the first records that say it say for all; True when nothing is missing any more."""
        calls = self.calls
        for line in lines:
            if self.is_settled:
                break
            calls.session = calls.session or line.sessionId or ""
            if line.type in SAID:
                if line.cwd:
                    self._folder = self._folder or line.cwd
                    if calls.folder is None and not line.isSidechain:
                        calls.folder = line.cwd
                calls.branch = calls.branch or line.gitBranch
            folder = calls.folder or (self._folder if self._is_hasty else None)
            self.is_settled = bool(folder and calls.branch and calls.session)
        return self.is_settled

    @property
    def is_sidechain(self) -> bool:
        """True where nothing but a sidechain was seen."""
        return self.calls.folder is None

    def finish(self) -> Calls:
        """Once all lines were seen."""
        self.calls.folder = self.calls.folder or self._folder
        self.calls.session = self.calls.session or locate.stem(self.path)
        return self.calls


class _Tallier:
    """Follows lines one by one, whatever they leave out."""

    def __init__(self, head: _Head) -> None:
        self._head = head
        self._branch: str | None = None
        """The branch that was named last."""
        self._unnamed = 0
        self._replies: list[Line] = []

    def see(self, lines: Sequence[Line]) -> None:
        """See lines."""
        for line in lines:
            message = line.message
            if line.type in SAID:
                # What a line leaves out, the lines before it said.
                line.gitBranch = self._branch = line.gitBranch or self._branch
            if line.type == "assistant" and message is not None and message.model != SYNTHETIC:
                self._replies.append(line)

    def finish(self) -> None:
        """Count the replies, once all lines were seen."""
        for line in self._replies:
            self._count(line)

    def _count(self, line: Line) -> None:
        message = line.message
        counts = _counts(message.usage) if message is not None else None
        if counts is None:
            counts = _counts(line.usage)
        if counts is None or message is None:
            return
        key = message.id or line.uuid
        if key is None:
            self._unnamed += 1
            key = f"{self._head.path}:{self._unnamed}"
        self._head.calls.note(key, message.model, line.timestamp, line.gitBranch, counts)


def _counts(usage: Usage | None) -> list[int] | None:
    """The counts in the order of FIELDS; None where there is none."""
    if usage is None:
        return None
    created, details = usage.cache_creation or Created(), usage.output_tokens_details or Details()
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
