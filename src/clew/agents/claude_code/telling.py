"""Transcripts on their way into the catalog: typed decoding that skips what is not wanted, most of all tools' results
for the client, which repeat what the model was given.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from clew.agents.base import SourceFile, open_main
from clew.agents.claude_code import locate
from clew.agents.claude_code.header import named_session
from clew.agents.lean.claude_code import FIELDS, Line, Transcript
from clew.agents.told import Call, Message, merged
from clew.derive.session import project_of
from clew.io.compress import damage
from clew.io.records import TOO_LONG, read_chunks, read_line
from clew.model.json import JSON

_Line = msgspec.defstruct("_Line", [(name, Any, None) for name in FIELDS], gc=False)
_decode_lines = msgspec.json.Decoder(_Line).decode_lines
_DAMAGED = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
_MOST = 20
"""So many problems of a source are told."""


class ClaudeTeller:
    """One transcript."""

    def __init__(self, source: SourceFile) -> None:
        self._source = source
        self._transcript = Transcript(str(source.path))
        self._read_to = 0
        self._is_whole = not source.path.name.endswith((".gz", ".zst"))
        self.problems: list[dict[str, JSON]] = []
        self.lines = self._whole_lines = 0
        self._is_inside = False
        """Between the pieces of a line that is too long."""

    def messages(self) -> Iterator[list[Message]]:
        with open_main(self._source) as stream:
            for chunk, whole in read_chunks(stream):
                if not whole:
                    self._pass_over(chunk)
                elif chunk.endswith(b"\n"):
                    yield self._take(chunk)
                    self._read_to += len(chunk)
                    self._whole_lines = self.lines
                else:
                    yield self._take_last(chunk)
            if found := damage(stream):
                self._problem(found, 0)

    def _take(self, chunk: bytes) -> list[Message]:
        try:
            lines = _decode_lines(chunk)
        except _DAMAGED:
            return self._take_apart(chunk)
        self.lines += len(lines)
        return self._transcript.add(lines)

    def _pass_over(self, piece: bytes) -> None:
        """A piece of a line that is too long. Nobody can go on behind such a line: it is not known what it says."""
        if not self._is_inside:
            self.lines += 1
            self._problem(TOO_LONG, self.lines)
        self._is_inside = not piece.endswith(b"\n")
        self._is_whole = False

    def _take_last(self, chunk: bytes) -> list[Message]:
        """A chunk that ends inside a line. Where that is the beginning of a record, the rest may follow."""
        at = chunk.rfind(b"\n") + 1
        found = self._take(chunk[:at]) if at else []
        self._read_to += at
        self._whole_lines = self.lines
        before = self._transcript.lines
        found += self._take_apart(chunk[at:])
        self._is_whole = self._is_whole and self._transcript.lines == before
        return found

    def _take_apart(self, chunk: bytes) -> list[Message]:
        """Lines of which at least one is no plain record."""
        messages: list[Message] = []
        for text in _lines(chunk):
            self.lines += 1
            for record in read_line(text, self.lines, 0):
                for code in record.findings:
                    self._problem(code, self.lines)
                if record.value is not None:
                    messages += self._transcript.add([Line(record.value)])
        return messages

    def _problem(self, code: str, line: int) -> None:
        if len(self.problems) < _MOST:
            self.problems.append({"code": code, "line": line})

    def calls(self) -> list[Call]:
        return merged(self._transcript.calls)

    def header(self) -> dict[str, JSON]:
        header = self._transcript.header()
        return {**self._base(), **header, "project": project_of(header["workspace"])}

    def _base(self) -> dict[str, JSON]:
        """What the place of the file tells."""
        path, claimed = self._source.path, self._transcript.claimed
        is_agent = locate.is_agent_file(path)
        origin = self._source.origin
        return {
            "id": named_session(path) or claimed or locate.stem(path),
            "workspace_encoded": locate.project_folder(path),
            "is_agent_session": is_agent,
            "parent_session_id": claimed if is_agent else None,
            "agent_id": locate.stem(path).removeprefix("agent-") if is_agent else None,
            "source": origin._asdict() if origin else {"type": "local", "host": None, "path": str(path)},
        }

    def state(self) -> tuple[int, dict[str, JSON] | None]:
        if not self._is_whole:
            return -1, None
        header = self._base()
        workspace = self._transcript.cwd or self._transcript.any_cwd or ""
        header["project"] = project_of(workspace)
        kept = [problem for problem in self.problems if problem["line"] <= self._whole_lines]
        place = {"header": header, "workspace": workspace, "lines": self._whole_lines, "problems": kept}
        return self._read_to, {**place, "state": self._transcript.state()}


def _lines(chunk: bytes) -> list[bytes]:
    """Lines that end in a line feed alone."""
    lines = chunk.split(b"\n")
    return [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
