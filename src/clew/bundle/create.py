"""Writes an evidence bundle. Each session is staged completely before it is added, so that none is there in part."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, BinaryIO, NamedTuple, cast

import msgspec

from clew.agents.source import SourceFile, file_states, masked_text, open_file, open_main
from clew.bundle.format import (
    END,
    FIRST_PREVIOUS_HASH,
    FORMAT,
    FORMAT_VERSION,
    MANIFEST,
    SIGNATURE,
    Content,
    Manifest,
    NativeContent,
    RecordEntry,
    SessionEntry,
    SessionHead,
    chain_member,
    commitment,
    document_member,
    header,
    native_member,
    padding,
    records,
    seal,
    seal_session,
)
from clew.errors import SourceUnreadable
from clew.export.document import write_document
from clew.io.compress import open_regular
from clew.io.database_paths import database_of
from clew.io.paths import escape_controls, escape_invalid_utf8
from clew.model.json import JSON
from clew.model.time import spell_time
from clew.redact.native_files import masked_parts
from clew.redact.redactor import Redactor
from clew.stored_session import StoredSession

ATTEMPTS = 3
"""A session that is written to meanwhile is read again, up to so many times."""
_SPOOL_BYTES = 8 << 20
_COPY_BYTES = 1 << 20


class Masking(NamedTuple):
    """How the sessions of a bundle are masked."""

    new_redactor: Callable[[], Redactor]
    """Makes one for each session."""
    key: bytes
    """The key of the commitments to the original records."""


class BundleDescription(NamedTuple):
    """The values of the manifest that are known before a session is read."""

    clew_version: str
    created_at: str
    filters: str
    since: str | None
    until: str | None
    sources: list[dict[str, JSON]]


class BundleWriter:
    """A bundle in the making."""

    def __init__(self, out: IO[bytes], description: BundleDescription, masking: Masking | None = None) -> None:
        self._out, self._description, self._masking = out, description, masking
        self._filters = description.filters
        """Masked by what was learned from every session so far: they may name a value that only a session reveals."""
        self._head = FIRST_PREVIOUS_HASH
        self.sessions: list[SessionHead] = []
        """Those that were written."""
        self._counts = {"sessions": 0, "messages": 0, "records": 0, "files": 0, "native_bytes": 0}
        self._times: list[str] = []
        """The first and the last activity."""

    def add(self, session: StoredSession) -> None:
        """Add a session. Raises SourceUnreadable where it cannot be read as a whole; then nothing of it is written."""
        for attempt in range(ATTEMPTS):
            before = _states(session.source)
            with _new_spool() as content, _new_spool() as chain:
                staged = _StagedSession(
                    len(self.sessions) + 1, self._head, self._description.created_at, content, chain
                )
                staged.read(session, self._masking)
                if before == _states(session.source):
                    self._write(staged)
                    return
            session.forget()
            if attempt == ATTEMPTS - 1:
                raise SourceUnreadable(f"{session.path}: was written to while it was read; try again later")

    def _write(self, staged: _StagedSession) -> None:
        self._filters = masked_text(staged.source, self._filters)
        staged.content.seek(0)
        for member in (staged.entry.document, *staged.entry.files):
            self._write_member(member.member, staged.content, member.bytes)
        size = staged.chain.tell()
        staged.chain.seek(0)
        self._write_member(chain_member(staged.number), staged.chain, size)
        entry, self._head = staged.entry, staged.head
        count = sum(file.records for file in entry.files)
        self.sessions.append(SessionHead(entry.number, entry.agent, entry.id, count, staged.head.hex()))
        self._counts["sessions"] += 1
        self._counts["messages"] += staged.messages
        self._counts["records"] += count
        self._counts["files"] += len(entry.files)
        self._counts["native_bytes"] += sum(file.bytes for file in entry.files)
        times = [*self._times, *(time for time in (entry.started_at, entry.ended_at) if time)]
        self._times = [min(times), max(times)] if times else []

    def _write_member(self, name: str, content: IO[bytes], size: int) -> None:
        self._out.write(header(name, size))
        left = size
        while left:
            piece = content.read(min(left, _COPY_BYTES))
            assert piece, "the staged content is as long as was counted"
            self._out.write(piece)
            left -= len(piece)
        self._out.write(padding(size))

    def finish(
        self,
        problems: Iterable[str],
        redaction: dict[str, JSON] | None,
        sign: Callable[[bytes], bytes] | None = None,
    ) -> Manifest:
        """Write the manifest, its signature and the end of the archive."""
        description, (first, last) = self._description, self._times or (None, None)
        manifest = Manifest(
            format=FORMAT,
            version=FORMAT_VERSION,
            clew=description.clew_version,
            created_at=description.created_at,
            filters=self._filters,
            since=description.since,
            until=description.until,
            first_activity=first,
            last_activity=last,
            redaction=redaction,
            sources=description.sources,
            counts=self._counts,
            problems=list(problems),
            sessions=self.sessions,
            head=self._head.hex(),
        )
        text, _ = seal(self._head, manifest)
        self._write_member(MANIFEST, io.BytesIO(text), len(text))
        if sign is not None:
            signature = sign(text)
            self._write_member(SIGNATURE, io.BytesIO(signature), len(signature))
        self._out.write(END)
        return manifest


class _StagedSession:
    """The members of one session: document and native files one after the other in `content`, and the chain."""

    entry: SessionEntry
    source: SourceFile
    """The files of the session, masked if the bundle is."""

    def __init__(self, number: int, head: bytes, timestamp: str, content: IO[bytes], chain: IO[bytes]) -> None:
        self.number, self.head, self._timestamp = number, head, timestamp
        self.content, self.chain = content, chain
        self.messages = 0

    def read(self, session: StoredSession, masking: Masking | None) -> None:
        """Stage a session, masked on demand."""
        redactor = masking.new_redactor() if masking is not None else None
        shown = session if redactor is None else session.redacted(redactor)
        self.source = source = shown.source
        if source.mask is not None:
            source.mask.learn()
        written = write_document(shown.agent, source, self.content, timestamp=self._timestamp, native=False)
        self.messages = written.messages
        document = self._chain_document()
        files = []
        for file, name in enumerate(("", *source.parts, *source.sides), 1):
            pairs = _record_pairs(session.source, name, redactor)
            files.append(self._stage_file(file, name or source.path.name, pairs, source, masking))
        header = shown.session_object
        self.entry = SessionEntry(
            number=self.number,
            agent=shown.agent.id,
            id=str(header["id"]),
            workspace=_text(header["workspace"]),
            started_at=_text(header["started_at"]),
            ended_at=_text(header["ended_at"]),
            document=document,
            files=files,
        )
        line, self.head = seal_session(self.head, self.entry)
        self.chain.write(line)

    def _chain_document(self) -> Content:
        """Add the lines of the staged document to the chain."""
        self.content.seek(0)
        lines = ((line, line) for line in records(cast("BinaryIO", self.content)))
        chained = self._chain_records(0, lines, None)
        return Content(document_member(self.number), chained.size, chained.digest.hexdigest(), chained.records)

    def _stage_file(
        self, file: int, name: str, pairs: Iterable[tuple[bytes, bytes]], source: SourceFile, masking: Masking | None
    ) -> NativeContent:
        """Stage a native file, and add its records to the chain."""
        chained = self._chain_records(file, self._copied(pairs), masking)
        return NativeContent(
            member=native_member(self.number, file, Path(name).suffix),
            bytes=chained.size,
            sha256=chained.digest.hexdigest(),
            records=chained.records,
            path=masked_text(source, escape_invalid_utf8(name)),
            modified_at=_modified_at(source.path.parent / name),
        )

    def _copied(self, pairs: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
        for pair in pairs:
            self.content.write(pair[1])
            yield pair

    def _chain_records(self, file: int, pairs: Iterable[tuple[bytes, bytes]], masking: Masking | None) -> _ChainedFile:
        """Add an entry for each record of a file to the chain."""
        chained, line = _ChainedFile(), 1
        for original, written in pairs:
            chained.add(written)
            lines = written.count(b"\n")
            entry = RecordEntry(file, line, len(written), hashlib.sha256(written).hexdigest(), lines)
            if masking is not None:
                entry.original = commitment(masking.key, self.number, file, chained.records, original)
                # A piece of a very long line is one record too.
                entry.original_records = original.count(b"\n") + (not original.endswith(b"\n"))
            sealed, self.head = seal(self.head, entry)
            self.chain.write(sealed)
            line += lines
        return chained


class _ChainedFile:
    """Size and digest of a file whose records were added to the chain."""

    def __init__(self) -> None:
        self.records, self.size, self.digest = 0, 0, hashlib.sha256()

    def add(self, record: bytes) -> None:
        self.records += 1
        self.size += len(record)
        self.digest.update(record)


def _new_spool() -> SpooledTemporaryFile[bytes]:
    return SpooledTemporaryFile(_SPOOL_BYTES)


def _record_pairs(source: SourceFile, name: str, redactor: Redactor | None) -> Iterator[tuple[bytes, bytes]]:
    """Yield the records of a native file, each as it is and as it is written."""
    if redactor is None:
        with _open_native(source, name) as stream:
            for record in records(stream):
                yield record, record
        return
    for raw, masked in masked_parts(partial(open_file, source, name), redactor):
        if raw == masked:
            yield from ((record, record) for record in records(io.BytesIO(raw)))
        else:
            yield raw, masked


def _open_native(source: SourceFile, name: str) -> BinaryIO:
    """Open a file of a session as it is on disk, compressed or not; a session in a database is a dump of its rows."""
    if not name and database_of(source.path) is not None:
        return open_main(source)
    path = source.path.parent / name if name else source.path
    try:
        raw, _ = open_regular(path)
    except OSError as error:
        raise SourceUnreadable(f"{escape_controls(str(path))}: {error.strerror or error}") from error
    return cast(BinaryIO, io.BufferedReader(raw))


def _states(source: SourceFile) -> object:
    """What changes when one of the files of a session does."""
    return file_states(msgspec.structs.replace(source, parts=(*source.parts, *source.sides)))


def _modified_at(path: Path) -> str | None:
    try:
        return spell_time(datetime.fromtimestamp(int(path.stat().st_mtime), UTC))
    except OSError:
        return None


def _text(value: JSON) -> str | None:
    return value if isinstance(value, str) else None
