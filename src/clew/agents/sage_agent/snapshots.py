"""The snapshots beside the messages: where each one stands, read when its message comes.

What clew's own store recorded says which folder its paths are relative to, and of each file what was there before a
tool and behind it, with a copy of both.
"""

from __future__ import annotations

import base64
import io
import os
import re
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from clew.agents.base import SourceFile
from clew.agents.file_evidence import ABSENT, OTHER, Action, FileContent, State, absolute
from clew.agents.sage_agent.locate import BACKUPS, MESSAGES, SNAPSHOTS
from clew.errors import SourceUnreadable
from clew.io.blobs import digest_in, read_blob
from clew.io.compress import open_source
from clew.io.ignore_patterns import ignoring
from clew.io.records import RawRecord, read_records
from clew.model.json import JSON

ACTIONS: dict[str, Action] = {"created": "create", "modified": "change", "deleted": "delete"}
_DIGEST = re.compile(r"[0-9a-f]{64}", re.IGNORECASE)
_LINK = "it is a link, which is not followed"
_UNREADABLE = "something whose snapshot cannot be read"
_LOST = "something that no look at the folder tells of"
_OTHER_DIGEST = "the copy of it does not have the digest that the record names"

Entry = dict[str, JSON]


class Moment(NamedTuple):
    """A file at one moment."""

    state: State | None
    """None: what it held cannot be had."""
    digest: str | None = None
    """The digest of that nevertheless; "" where there was something, and no more is known."""
    note: str | None = None
    """Why it cannot be had."""


class Told(NamedTuple):
    """One file before and behind a tool."""

    action: Action
    before: Moment
    after: Moment
    modes: tuple[int, int] | None = None


class Taken(NamedTuple):
    """One record of clew's own store."""

    root: str
    files: dict[str, Told]
    """By absolute path."""
    time: JSON
    is_open: bool
    """Made before a tool ran."""
    is_late: bool
    """Made long behind one that was cut off: others may have changed the files too."""
    log: int | None
    """How long the log of messages was; None where that is not told, or is not so any more."""
    ignored: tuple[str, ...] | None
    """What was left out, where the whole folder was looked at."""
    found: dict[str, Moment]
    """Files that were not as the look before saw them, as they were then."""
    left: dict[str, Moment]
    """Those that were not so when they were looked at next, as they were at this look at the whole folder."""


class Begun(NamedTuple):
    """A tool whose files were looked at before it ran."""

    number: int
    """Its place among all records."""
    message: str
    root: str
    ignored: tuple[str, ...] | None
    """As in records."""
    files: frozenset[str]


class Ran(NamedTuple):
    """The same when it was over."""

    begun: Begun
    end: int
    place: tuple[int, int]
    files: frozenset[str]
    """Those that are told of."""


class Gap(NamedTuple):
    """Where records do not tell all: the messages of those before and behind, and what may have happened, in words."""

    last: str | None
    following: str | None
    what: str


class Snapshots:
    """The snapshots of one session."""

    def __init__(self, source: SourceFile) -> None:
        self._path: Path | None = source.path.parent / SNAPSHOTS if SNAPSHOTS in source.parts else None
        self._copies = source.path.parent / BACKUPS
        self._places: dict[str, list[tuple[int, int]]] = {}
        self._log = source.path
        self._stream: BinaryIO | None = None
        self._messages: BinaryIO | None = None
        self._seen: set[str] = set()
        self._next: dict[int, list[tuple[int, int]]] = {}
        """By the place of a look at a whole folder: those of the records that tell what differed since."""
        self._below: dict[tuple[str, tuple[str, ...]], frozenset[str]] = {}
        self.gaps: list[Gap] = []
        self.overlaps: list[tuple[Ran, Ran]] = []
        """Runs of different messages that were at work at the same time."""

    def __enter__(self) -> Snapshots:
        if self._path is not None:
            with open_source(self._path) as stream:
                self._index(read_records(stream))
            self._stream = self._path.open("rb")
            self._messages = self._log.open("rb", buffering=0) if self._log.name == MESSAGES else None
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self._stream, self._messages):
            if stream is not None:
                stream.close()

    def _index(self, records: Iterator[RawRecord]) -> None:
        last: str | None = None
        is_damaged = False
        looks, runs = _Looks(self.gaps, self._next), _Runs(self.overlaps)
        for record in records:
            uuid = record.value.get("messageId") if record.value is not None else None
            if record.value is None or not isinstance(uuid, str):
                # What has no line end was never acknowledged: no tool ran behind it, and none before it was over.
                is_damaged = is_damaged or (bool(record.raw.strip()) and bool(record.end))
                continue
            if is_damaged:
                self.gaps.append(Gap(last, uuid, _UNREADABLE))
                looks.forget()
            last, is_damaged = uuid, False
            self._places.setdefault(uuid, []).append((record.start, record.stop))
            self._seen.update(_plain_files(record.value))
            if (own := own_part(record.value)) is not None:
                looks.follow(own, uuid, (record.start, record.stop))
                runs.follow(own, uuid, (record.start, record.stop), _paths(record.value, own))
        if is_damaged:
            self.gaps.append(Gap(last, None, _UNREADABLE))

    def records(self, uuid: str) -> Iterator[dict[str, JSON]]:
        """The snapshots of a message, in their order."""
        return (self._record(place) for place in self._places.get(uuid, ()))

    def _record(self, place: tuple[int, int]) -> dict[str, JSON]:
        assert self._stream is not None
        self._stream.seek(place[0])
        return next((one.value or {} for one in read_records(io.BytesIO(self._stream.read(place[1] - place[0])))), {})

    def taken(self, uuid: str) -> Iterator[Taken]:
        """Those of clew's own store."""
        for place in self._places.get(uuid, ()):
            record = self._record(place)
            own = own_part(record)
            if own is not None:
                behind = [self._record(other) for other in self._next.get(place[0], ())]
                yield Taken(
                    own["root"],
                    dict(_told(record, own, self._copies)),
                    record.get("timestamp"),
                    own.get("open") is True,
                    own.get("late") is True,
                    self._length(own.get("log")),
                    _ignored(own),
                    dict(_found(record, "now", self._copies)),
                    {path: at for other in behind for path, at in _found(other, "before", self._copies)},
                )

    def _length(self, log: JSON) -> int | None:
        """A length that the log of messages had, if it can have been: where a line ends."""
        if type(log) is not int or log <= 0 or self._messages is None:
            return None
        self._messages.seek(log - 1)
        return log if self._messages.read(1) == b"\n" else None

    def told_at(self, place: tuple[int, int]) -> dict[str, Told]:
        """What one record of clew's own store says."""
        record = self._record(place)
        return dict(_told(record, own_part(record) or {}, self._copies))

    def below(self, root: str, ignored: tuple[str, ...]) -> frozenset[str]:
        """The files of a folder that a look at the whole of it sees, as far as any record tells of them."""
        if (root, ignored) not in self._below:
            hides, base = ignoring(ignored).hides, root.rstrip("/") + "/"
            inside = (path for path in self._seen if path.startswith(base))
            self._below[root, ignored] = frozenset(path for path in inside if not hides(path[len(base) :]))
        return self._below[root, ignored]


class _Looks:
    """The last look at each whole folder, as the records are gone through."""

    def __init__(self, gaps: list[Gap], following: dict[int, list[tuple[int, int]]]) -> None:
        self._gaps, self._following = gaps, following
        self._last: dict[str, tuple[str, int]] = {}
        self._messages: dict[str, str] = {}

    def forget(self) -> None:
        """A record cannot be read, which may have been a look."""
        self._last.clear()

    def follow(self, own: dict[str, JSON], uuid: str, place: tuple[int, int]) -> None:
        """Note what comes behind which look, and where nothing tells what came between two of them."""
        root, since = own["root"], self._last.get(own["root"])
        if own.get("lost") is True:
            self._gaps.append(Gap(self._messages.get(root), uuid, _LOST))
        elif since is not None and since[0] == own.get("since"):
            self._following.setdefault(since[1], []).append(place)
        if own.get("late") is True:
            # It belongs where the tool was cut off, and what it saw does not.
            self._last.pop(root, None)
        elif isinstance(own.get("ignored"), list):
            self._last[root] = (uuid, place[0])
            self._messages[root] = uuid


class _Runs:
    """The tools that were watched, as the records are gone through."""

    def __init__(self, overlaps: list[tuple[Ran, Ran]]) -> None:
        self._overlaps = overlaps
        self._begun: list[Begun] = []
        self._ended: list[Ran] = []
        self._number = 0

    def follow(self, own: dict[str, JSON], uuid: str, place: tuple[int, int], files: frozenset[str]) -> None:
        """Note what began, and what was at work when something ended. Who was looked at late may still be at work."""
        self._number += 1
        begun = Begun(self._number, uuid, own["root"], _ignored(own), files)
        if own.get("open") is True:
            self._begun.append(begun)
        elif own.get("late") is not True and (opened := self._opened(begun)) is not None:
            self._begun.remove(opened)
            ran = Ran(opened, self._number, place, files)
            first = bisect_right(self._ended, opened.number, key=lambda other: other.end)
            beside = (other for other in self._ended[first:] if other.begun.message != uuid)
            self._overlaps += [(other, ran) for other in beside]
            self._ended.append(ran)

    def _opened(self, ended: Begun) -> Begun | None:
        return next((one for one in reversed(self._begun) if _is_end(one, ended)), None)


def _is_end(begun: Begun, ended: Begun) -> bool:
    if (begun.message, begun.root, begun.ignored) != (ended.message, ended.root, ended.ignored):
        return False
    return begun.ignored is not None or begun.files == ended.files


def _ignored(own: dict[str, JSON]) -> tuple[str, ...] | None:
    ignored = own.get("ignored")
    return tuple(map(str, ignored)) if isinstance(ignored, list) else None


def own_part(record: dict[str, JSON]) -> dict[str, JSON] | None:
    """What clew's own store adds to a snapshot; None where another program wrote it."""
    metadata = record.get("metadata")
    own = metadata.get("clew") if isinstance(metadata, dict) else None
    return own if isinstance(own, dict) and isinstance(own.get("root"), str) else None


def digest_from(value: JSON) -> str | None:
    """A digest that a record names; None where it is none."""
    return value.lower() if isinstance(value, str) and _DIGEST.fullmatch(value) else None


def _maps(record: dict[str, JSON], own: dict[str, JSON]) -> tuple[Entry, Entry, Entry]:
    snapshot = record.get("snapshot")
    maps = (snapshot.get("trackedFiles"), snapshot.get("fileBackups")) if isinstance(snapshot, dict) else (None, None)
    tracked, backups, facts = (one if isinstance(one, dict) else {} for one in (*maps, own.get("files")))
    return tracked, backups, facts


def _names(record: dict[str, JSON], own: dict[str, JSON]) -> Iterator[tuple[str, Entry, Entry, Entry]]:
    """The files of a record: absolute path, and what each of its three maps says."""
    maps = _maps(record, own)
    for name in dict.fromkeys(name for one in maps for name in one):
        entry, copy, fact = ({**found} if isinstance(found := one.get(name), dict) else {} for one in maps)
        yield _path(own["root"], name, fact), entry, copy, fact


def _path(root: str, name: str, fact: Entry) -> str:
    """An absolute path, by its bytes where those are no text."""
    raw = fact.get("raw")
    if isinstance(raw, str):
        with suppress(ValueError):
            name = os.fsdecode(base64.b64decode(raw))
    return absolute(name if name.startswith("/") else f"{root}/{name}", None)


def _paths(record: dict[str, JSON], own: dict[str, JSON]) -> frozenset[str]:
    return frozenset(path for path, _, _, _ in _names(record, own))


def _plain_files(record: dict[str, JSON]) -> Iterator[str]:
    """The files of a record that were looked at for what they are: no links, nothing that was refused."""
    own = own_part(record)
    for path, _, _, fact in _names(record, own) if own is not None else ():
        if not fact.keys() & _ODD:
            yield path
    for path, file in _found_files(record):
        if not any(one.keys() & _ODD for one in (file.get("before"), file.get("now")) if isinstance(one, dict)):
            yield path


_ODD = {"missing", "missingAfter", "link", "linkBefore"}


def _found_files(record: dict[str, JSON]) -> Iterator[tuple[str, Entry]]:
    own = own_part(record) or {}
    found = own.get("found")
    for name, file in found.items() if isinstance(found, dict) else ():
        if isinstance(file, dict):
            yield _path(own["root"], name, file), file


def _found(record: dict[str, JSON], side: str, copies: Path) -> Iterator[tuple[str, Moment]]:
    """What a look at a whole folder found otherwise than the one before: as it was at that (before), or is (now)."""
    for path, file in _found_files(record):
        state = file.get(side)
        if not isinstance(state, dict):
            continue
        digest = digest_from(state.get("hash"))
        if "link" in state:
            yield path, Moment(None, "", _LINK)
        elif isinstance(missing := state.get("missing"), str):
            yield path, Moment(None, digest or "", missing)
        elif "hash" in state:
            yield path, _kept(copies, digest) if digest is not None else Moment(None, "", "no content is recorded")
        else:
            yield path, Moment(ABSENT)


def _told(record: dict[str, JSON], own: dict[str, JSON], copies: Path) -> Iterator[tuple[str, Told]]:
    for path, entry, copy, fact in _names(record, own):
        before, after = _before(entry, copy, fact, copies), _after(entry, fact, copies)
        is_link = "link" in fact or "linkBefore" in fact
        action = ACTIONS.get(str(entry.get("state")), "change" if is_link else "snapshot")
        yield path, Told(action, before, after, _modes(fact.get("modeBefore"), fact.get("mode")))


def _modes(before: JSON, after: JSON) -> tuple[int, int] | None:
    is_told = all(type(mode) is int and 0 <= mode <= 0o7777 for mode in (before, after))
    return (before, after) if is_told else None


def _before(entry: Entry, copy: Entry, fact: Entry, copies: Path) -> Moment:
    if "linkBefore" in fact:
        return Moment(None, OTHER, _LINK)
    if fact.get("existed") is False:
        return Moment(ABSENT)
    if isinstance(missing := fact.get("missing"), str):
        return Moment(None, OTHER, missing)
    digest, backup = digest_from(copy.get("originalHash")), copy.get("backupPath")
    named = digest_in(re.split(r"[\\/]", backup)[-1]) if isinstance(backup, str) else None
    if named is None:
        return Moment(None, digest or "", "no content from before is recorded")
    if digest is not None and digest != named:
        return Moment(None, digest, _OTHER_DIGEST)
    return _kept(copies, named)


def _after(entry: Entry, fact: Entry, copies: Path) -> Moment:
    if "link" in fact:
        return Moment(None, OTHER, _LINK)
    state = entry.get("state")
    if state == "deleted" or (state in ("unchanged", None) and fact.get("existed") is False):
        return Moment(ABSENT)
    digest, missing = digest_from(entry.get("contentHash")), fact.get("missingAfter")
    if isinstance(missing, str):
        return Moment(None, digest or OTHER, missing)
    if digest is None:
        return Moment(None, None, "the record does not hold it")
    return _kept(copies, digest)


def _kept(copies: Path, digest: str) -> Moment:
    if copies.is_symlink():
        return Moment(None, digest, "the copies of files lie behind a link, which is not followed")
    try:
        return Moment(FileContent(read_blob(copies, digest), True), digest)
    except SourceUnreadable as error:
        return Moment(None, digest, str(error))
