"""The proof: native bytes -> unified JSON text -> parsed again -> native bytes, compared byte for byte."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import msgspec

from clew.agents.base import Agent, SourceFile, freeze, open_main
from clew.export.document import write_document
from clew.export.reading import DocumentStream, exact_units
from clew.io.compress import damage, open_source
from clew.model.json import JSON

LF = b"\n"
_SPOOL = 1 << 20
_TIME = "1970-01-01T00:00:00Z"


class Difference(msgspec.Struct):
    """A file that did not come back, and where it first differs."""

    file: str
    line: int
    why: str


class Proof(msgspec.Struct):
    """What was compared, and what came of it."""

    files: int = 0
    records: int = 0
    identical: int = 0
    different: list[Difference] = []
    carried_raw: int = 0
    bytes: int = 0
    document_bytes: int = 0
    unknown_types: dict[str, int] = {}
    unknown_keys: dict[str, int] = {}

    @property
    def holds(self) -> bool:
        return not self.different

    def add(self, other: Proof) -> None:
        """Count another proof in."""
        for name in ("files", "records", "identical", "carried_raw", "bytes", "document_bytes"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.different.extend(other.different)
        for name in ("unknown_types", "unknown_keys"):
            setattr(self, name, dict(Counter(getattr(self, name)) + Counter(getattr(other, name))))


def verify(agent: Agent, source: SourceFile) -> Proof:
    """Prove one session; its document lies on disk in between, so that size costs no memory."""
    proof = Proof()
    source = freeze(source)
    with tempfile.SpooledTemporaryFile(_SPOOL) as text:
        reading = write_document(agent, source, text, timestamp=_TIME)
        proof.document_bytes = text.tell()
        proof.carried_raw = reading.carried_raw
        proof.unknown_types, proof.unknown_keys = reading.unknown_types, reading.unknown_keys
        _compare(agent, source, DocumentStream(text), proof)
    return proof


def _compare(agent: Agent, source: SourceFile, document: DocumentStream, proof: Proof) -> None:
    folder = source.path.parent
    names = ["", *source.parts, *source.sides]
    with ExitStack() as stack:
        originals = {
            name: Original(folder / name if name else source.path, stack.enter_context(_open(source, name)))
            for name in names
        }

        def counted() -> Iterator[tuple[bool, dict[str, JSON]]]:
            for unit in exact_units(agent, document):
                proof.records += 1
                yield unit

        for name, piece in agent.write(document.header, counted()):
            originals[name].compare(piece)
        for original in originals.values():
            original.finish()
            _count(original, proof)


def _open(source: SourceFile, name: str) -> BinaryIO:
    """A file of the session: its logs unpacked, what travels along as it is."""
    if not name:
        return open_main(source)
    path = source.path.parent / name
    return open_source(path) if name in source.parts else path.open("rb")


def _count(original: Original, proof: Proof) -> None:
    proof.files += 1
    proof.bytes += original.bytes
    if original.why is None:
        proof.identical += 1
    else:
        proof.different.append(Difference(str(original.path), original.line, original.why))


class Original:
    """A source file next to the bytes that should equal it."""

    def __init__(self, path: Path, stream: BinaryIO) -> None:
        self.path, self._stream = path, stream
        self.bytes = 0
        self.line = 1
        self.why: str | None = None

    def compare(self, piece: bytes) -> None:
        """The next bytes of the file must be these."""
        expected = self._stream.read(len(piece))
        self.bytes += len(expected)
        if self.why is not None:
            return
        if expected == piece:
            self.line += piece.count(b"\n")
            return
        pairs = enumerate(zip(expected, piece, strict=False))
        at = next((at for at, (old, new) in pairs if old != new), min(len(expected), len(piece)))
        self.line += piece[:at].count(b"\n")
        # What stands there is somebody's words, and none of a report's business.
        self.why = f"differs from byte {at - piece.rfind(LF, 0, at)} of the line on"

    def finish(self) -> None:
        """Nothing may be left."""
        left = len(self._stream.read())
        self.bytes += left
        if left and self.why is None:
            self.why = f"{left} bytes at the end did not come back"
        if self.why is None and (found := damage(self._stream)):
            self.why = f"the archive is damaged ({found}); all that could be unpacked came back"
