"""The index of an archive: an SQLite database that says where each chunk lies and which versions of files there are.

Everything in it comes from the packs. `Index.sync` on an empty index rebuilds it; after a crash or a restored backup
the same method reads the packs that are new or have changed. `index.sha256` holds the checksum of the file: an index
without the right checksum is not used.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from clew.archive.packs import CHUNKS, FORMAT, PackContent, read_pack
from clew.archive.records import (
    CHECKSUM,
    INDEX,
    Capture,
    Files,
    Version,
    add_version,
    pack_names,
    pack_path,
)
from clew.errors import Busy, InvalidDocument, SourceUnreadable
from clew.io.filesystem import SYSTEM, System, open_regular, replace_file

WAIT_SECONDS = 10.0
_APPLICATION_ID = 0x636C6577  # "clew"
_SCHEMA = f"""
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {FORMAT};
CREATE TABLE packs (name TEXT PRIMARY KEY, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, damage TEXT NOT NULL)
    WITHOUT ROWID;
CREATE TABLE blocks (id INTEGER PRIMARY KEY, pack TEXT NOT NULL, offset INTEGER NOT NULL, size INTEGER NOT NULL,
    raw INTEGER NOT NULL, damaged INTEGER NOT NULL);
CREATE TABLE chunks (id BLOB, block INTEGER, start INTEGER NOT NULL, size INTEGER NOT NULL, PRIMARY KEY (id, block))
    WITHOUT ROWID;
CREATE TABLE versions (id INTEGER PRIMARY KEY, pack TEXT NOT NULL, record BLOB NOT NULL);
CREATE TABLE captures (id INTEGER PRIMARY KEY, pack TEXT NOT NULL, record BLOB NOT NULL);
CREATE TABLE replaced (name TEXT PRIMARY KEY) WITHOUT ROWID;
"""

INTACT = ""
DAMAGED = "damaged"
"""The index knows all files that the pack has a part of."""
MISSING = "missing"
UNREADABLE = "unreadable"
"""The pack may list files that the index does not know. Such a pack is not rewritten or removed."""


class PackRow(NamedTuple):
    """What the index knows about a pack."""

    size: int
    mtime_ns: int
    damage: str


class ChunkPlace(NamedTuple):
    """Where a chunk lies."""

    pack: str
    offset: int
    """Of its block."""
    start: int
    """Of the chunk in the uncompressed block."""
    size: int
    stored: float
    """The share of the compressed block that the chunk takes."""


class Index:
    """An index that is open for reading, or for reading and writing."""

    def __init__(self, db: sqlite3.Connection, folder: Path | None = None, system: System = SYSTEM) -> None:
        self.db, self._folder, self._system = db, folder, system

    @classmethod
    def in_memory(cls) -> Index:
        """Return an empty index that is not stored."""
        db = sqlite3.connect(":memory:", isolation_level=None)
        db.executescript(_SCHEMA)
        return cls(db)

    @classmethod
    def open_to_read(cls, folder: Path, *, check: bool = True) -> Index | None:
        """Open the index file of an archive; None where it is missing or does not have its checksum.

        While another process writes, the checksum is not checked: that process did it.
        """
        try:
            if check and (_journal(folder).exists() or not _has_checksum(folder)):
                return None
            db = sqlite3.connect(
                f"{(folder / INDEX).absolute().as_uri()}?mode=ro", uri=True, timeout=WAIT_SECONDS, isolation_level=None
            )
            return cls(db) if _is_supported(db, folder) else None
        except sqlite3.Error:
            return None

    @classmethod
    def open_to_write(cls, folder: Path, system: System) -> Index:
        """Open the index file of an archive, or create it; the caller holds the lock of the archive."""
        try:
            if _journal(folder).is_file():
                _roll_back(folder)
            if not _journal(folder).exists() and _has_checksum(folder):
                db = _connect(folder)
                if _is_supported(db, folder):
                    return cls(db, folder, system)
        except sqlite3.Error:
            pass
        with closing(cls.in_memory()) as rebuilt:
            rebuilt.sync(folder)
            rebuilt._save(folder, system)
        return cls(_connect(folder), folder, system)

    def copy(self) -> Index:
        """Return a copy in memory."""
        copied = sqlite3.connect(":memory:", isolation_level=None)
        self.db.backup(copied)
        return Index(copied)

    def close(self) -> None:
        """Close the database."""
        self.db.close()

    def _save(self, folder: Path, system: System) -> None:
        """Write a rebuilt index in the place of a damaged one. The damaged one goes first, so that its journal is never
        applied to the new file."""
        for path in (folder / INDEX, _journal(folder)):
            with suppress(FileNotFoundError):
                system.unlink(path)
        replace_file(system, folder / INDEX, self.db.serialize())
        _write_checksum(folder, system)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make all changes or none; the changes are on disk when the block ends."""
        self._query("BEGIN IMMEDIATE")
        try:
            yield
            self._query("COMMIT")
        except BaseException:
            if self.db.in_transaction:
                self._query("ROLLBACK")
            raise
        if self._folder is not None:
            _write_checksum(self._folder, self._system)

    def _query(self, statement: str, *values: object) -> list[Any]:
        """Run a statement and return its rows; raises errors of SQLite as errors of clew."""
        try:
            return self.db.execute(statement, values).fetchall()
        except sqlite3.DatabaseError as error:
            where = self._folder / INDEX if self._folder is not None else INDEX
            if getattr(error, "sqlite_errorcode", 0) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise Busy(f"{where}: another process uses the index") from error
            raise SourceUnreadable(f"{where}: {error}") from error

    # Packs

    def packs(self) -> dict[str, PackRow]:
        """Return what is known about each pack."""
        return {name: PackRow(*row) for name, *row in self._query("SELECT * FROM packs ORDER BY name")}

    def replaced(self) -> set[str]:
        """Return the names of packs whose content other packs hold now."""
        return {name for (name,) in self._query("SELECT name FROM replaced")}

    def changed_packs(self, folder: Path) -> list[str]:
        """Return the packs that are not in the folder as the index knows them, or not in the index."""
        known, replaced, present = self.packs(), self.replaced(), set(pack_names(folder))
        changed = [name for name in present - replaced if not _is_as_known(folder, name, known.get(name))]
        return sorted(changed + [name for name in known.keys() - present if known[name].damage != MISSING])

    def sync(self, folder: Path, recheck: Collection[str] = ()) -> None:
        """Read the packs that changed, and those in `recheck`, and make the index agree with them."""
        names = sorted({*self.changed_packs(folder), *recheck})
        if not names:
            return
        with self.transaction():
            for name in names:
                try:
                    status = pack_path(folder, name).stat()
                    content = read_pack(folder, name)
                except FileNotFoundError:
                    self._mark_damaged(name, PackContent([], [], []))
                    self._query("UPDATE packs SET size = 0, mtime_ns = 0, damage = ? WHERE name = ?", MISSING, name)
                    continue
                except SourceUnreadable:
                    content = PackContent([], [], [(0, status.st_size)])
                if name not in self.replaced():
                    self.put_pack(name, status, content)

    def put_pack(self, name: str, status: os.stat_result, content: PackContent) -> None:
        """Replace what the index knows about a pack by its content."""
        known = self.packs().get(name)
        is_known = known is not None and known.damage != UNREADABLE
        damage = INTACT
        if content.is_damaged:
            damage = DAMAGED if is_known or content.has_all_records else UNREADABLE
        row = (name, status.st_size, status.st_mtime_ns, damage)
        self._query("INSERT OR REPLACE INTO packs VALUES (?, ?, ?, ?)", *row)
        if damage and is_known:
            # The index knows more than the damaged pack can say.
            self._mark_damaged(name, content)
            return
        self._remove_blocks(name)
        for block in (*content.blocks, *content.damaged):
            if block.kind == CHUNKS:
                raw, is_damaged = sum(entry.size for entry in block.table), block in content.damaged
                insert = "INSERT INTO blocks VALUES (NULL, ?, ?, ?, ?, ?) RETURNING id"
                ((number,),) = self._query(insert, name, block.offset, block.size, raw, is_damaged)
                for entry in block.table:
                    self._query("INSERT OR IGNORE INTO chunks VALUES (?, ?, ?, ?)", entry.id, number, *entry[1:])
        self._put_records(name, content)

    def _mark_damaged(self, name: str, content: PackContent) -> None:
        """Mark the blocks of a pack that are not among its intact blocks."""
        self._query("UPDATE blocks SET damaged = 1 WHERE pack = ?", name)
        for block in content.blocks:
            self._query("UPDATE blocks SET damaged = 0 WHERE pack = ? AND offset = ?", name, block.offset)

    def _put_records(self, name: str, content: PackContent) -> None:
        for table in ("versions", "captures"):
            self._query(f"DELETE FROM {table} WHERE pack = ?", name)
        for records in content.records():
            for table, values in (("versions", records.versions), ("captures", records.captures)):
                for value in values:
                    self._query(f"INSERT INTO {table} VALUES (NULL, ?, ?)", name, msgspec.msgpack.encode(value))
            packs = self.packs()
            if all(one in packs and packs[one].damage == INTACT for one in (name, *records.needs)):
                self._remove_packs(records.replaces)

    def _remove_packs(self, names: Collection[str]) -> None:
        """Forget packs that were replaced."""
        for name in names:
            self._remove_blocks(name)
            self._query("DELETE FROM packs WHERE name = ?", name)
            self._query("DELETE FROM versions WHERE pack = ?", name)
            self._query("DELETE FROM captures WHERE pack = ?", name)
            self._query("INSERT OR IGNORE INTO replaced VALUES (?)", name)

    def _remove_blocks(self, pack: str) -> None:
        self._query("DELETE FROM chunks WHERE block IN (SELECT id FROM blocks WHERE pack = ?)", pack)
        self._query("DELETE FROM blocks WHERE pack = ?", pack)

    @property
    def stored(self) -> int:
        """The size of all packs in bytes."""
        return int(self._query("SELECT coalesce(sum(size), 0) FROM packs")[0][0])

    @property
    def block_count(self) -> int:
        """The number of blocks of chunks."""
        return int(self._query("SELECT count(*) FROM blocks WHERE NOT damaged")[0][0])

    # Chunks

    def has_chunk(self, chunk: bytes) -> bool:
        """Return True where the archive holds a chunk in an intact block."""
        query = "SELECT 1 FROM chunks JOIN blocks ON blocks.id = block WHERE chunks.id = ? AND NOT damaged LIMIT 1"
        return bool(self._query(query, chunk))

    def places(self, chunk: bytes) -> list[ChunkPlace]:
        """Return all places of a chunk in intact blocks."""
        query = """SELECT pack, offset, start, chunks.size, blocks.size * 1.0 * chunks.size / max(raw, 1)
            FROM chunks JOIN blocks ON blocks.id = block WHERE chunks.id = ? AND NOT damaged"""
        return [ChunkPlace(*row) for row in self._query(query, chunk)]

    def chunks_of(self, packs: Collection[str]) -> list[tuple[bytes, ChunkPlace]]:
        """Return the chunks in intact blocks of some packs, in the order in which they lie there."""
        query = """SELECT chunks.id, pack, offset, start, chunks.size, 0.0
            FROM blocks JOIN chunks ON blocks.id = block WHERE pack = ? AND NOT damaged"""
        found = [(row[0], ChunkPlace(*row[1:])) for pack in packs for row in self._query(query, pack)]
        return sorted(found, key=lambda one: one[1][:3])

    def chunks_between(self, pack: str, start: int, end: int | None) -> set[bytes]:
        """Return the ids of the chunks of all blocks that begin in a range of bytes, damaged blocks included."""
        query = """SELECT chunks.id FROM blocks JOIN chunks ON blocks.id = block
            WHERE pack = ? AND offset >= ? AND (? IS NULL OR offset < ?)"""
        return {chunk for (chunk,) in self._query(query, pack, start, end, end)}

    # Versions

    def version_rows(self) -> list[tuple[str, Version]]:
        """Return all records of versions, oldest first, each with the name of its pack."""
        decode = msgspec.msgpack.Decoder(Version).decode
        rows = [(pack, decode(raw)) for pack, raw in self._query("SELECT pack, record FROM versions ORDER BY id")]
        return sorted(rows, key=lambda row: row[1].capture)

    def files(self) -> Files:
        """Return the versions of each file."""
        files: Files = {}
        for _, version in self.version_rows():
            add_version(files, version)
        return files

    def captures(self) -> list[tuple[str, Capture]]:
        """Return the history, oldest first, each entry with the name of its pack."""
        decode = msgspec.msgpack.Decoder(Capture).decode
        rows = [(pack, decode(raw)) for pack, raw in self._query("SELECT pack, record FROM captures")]
        return sorted(rows, key=lambda row: row[1].number)

    def incomplete(self, versions: Iterable[Version]) -> list[Version]:
        """Return the versions that need a chunk that no intact block holds."""
        query = "SELECT chunks.id FROM chunks JOIN blocks ON blocks.id = block WHERE NOT damaged"
        known = {chunk for (chunk,) in self._query(query)}
        return [version for version in versions if not known.issuperset(version.chunk_ids())]


def _is_as_known(folder: Path, name: str, known: PackRow | None) -> bool:
    if known is None:
        return False
    status = pack_path(folder, name).stat()
    return (status.st_size, status.st_mtime_ns) == (known.size, known.mtime_ns)


def _journal(folder: Path) -> Path:
    return folder / f"{INDEX}-journal"


def _connect(folder: Path) -> sqlite3.Connection:
    db = sqlite3.connect(folder / INDEX, timeout=WAIT_SECONDS, isolation_level=None)
    db.execute("PRAGMA journal_mode = DELETE")
    db.execute("PRAGMA synchronous = FULL")
    # What a prune drops is overwritten: nothing of it stays in free pages.
    db.execute("PRAGMA secure_delete = ON")
    return db


def _roll_back(folder: Path) -> None:
    """Let SQLite undo the transaction of a process that was killed. The file is then as its checksum says."""
    db = _connect(folder)
    try:
        db.execute("BEGIN IMMEDIATE")
        db.execute("ROLLBACK")
    finally:
        db.close()


def _is_supported(db: sqlite3.Connection, folder: Path) -> bool:
    """Return True for an index of this format, and close any other; raises InvalidDocument for one of a newer clew."""
    is_supported = False
    try:
        (application,), (version,) = (
            db.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
        )
        if application == _APPLICATION_ID and version > FORMAT:
            raise InvalidDocument(f"{folder / INDEX}: written by another clew; this one reads format {FORMAT}")
        is_supported = bool(application == _APPLICATION_ID and version == FORMAT)
    finally:
        if not is_supported:
            db.close()
    return is_supported


def _has_checksum(folder: Path) -> bool:
    """Return True where the index has the size and the checksum that were noted."""
    try:
        with open(open_regular(SYSTEM, folder / CHECKSUM, os.O_RDONLY), "rb") as stream:
            size, _, digest = stream.read(100).decode("ascii", "replace").strip().partition(" ")
        return _measure(folder, size) == f"{size} {digest}"
    except (OSError, SourceUnreadable):
        return False


def _measure(folder: Path, expected_size: str | None = None) -> str:
    """Return the size and the SHA-256 of the index; only the size where it is not the expected one."""
    with open(open_regular(SYSTEM, folder / INDEX, os.O_RDONLY), "rb") as stream:
        size = str(os.fstat(stream.fileno()).st_size)
        if expected_size is not None and size != expected_size:
            return size
        return f"{size} {hashlib.file_digest(stream, 'sha256').hexdigest()}"


def _write_checksum(folder: Path, system: System) -> None:
    replace_file(system, folder / CHECKSUM, f"{_measure(folder)}\n".encode(), durable=False)
