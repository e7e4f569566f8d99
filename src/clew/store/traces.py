"""What an erased message leaves elsewhere in its session: undo marks, later looks at the workspace, task lists. Pure.

An undo names what it replaced, a look at the workspace what had changed, and every message repeats the task list. What
only the erased message brought up goes from there too; what others bring up as well is theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from clew.io.codec import dumps
from clew.model.json import JSON

Record = dict[str, JSON]

GONE = "the copy of it was erased"


class Private(NamedTuple):
    """The files and contents that only an erased message names."""

    names: set[str]
    digests: set[str]

    def covers(self, record: Record, name: str) -> bool:
        """True where a record says of a file what only the erased message brought up."""
        return name in self.names or not self.digests.isdisjoint(_digests(record, name))


def private_to(erased: Iterable[Record], others: Iterable[Record]) -> Private:
    """What the records of a message name, and no record of another does."""
    mine, theirs = (
        [(name, _digests(record, name)) for record in records for name in _names(record)]
        for records in (erased, others)
    )
    names = {name for name, _ in mine} - {name for name, _ in theirs}
    return Private(names, {one for _, digests in mine for one in digests} - {one for _, all in theirs for one in all})


def without_files(record: Record, private: Private) -> Record | None:
    """The record of an undo without those files; None where it names none of them."""
    gone = {name for name in _names(record) if private.covers(record, name)}
    if not gone:
        return None
    snapshot = {key: _less(files, gone) for key, files in _part(record, "snapshot").items()}
    metadata, own = _part(record, "metadata"), _part(record, "metadata", "clew")
    own = {**own, "files": _less(own.get("files"), gone)}
    return {**record, "snapshot": snapshot, "metadata": {**metadata, "clew": own}}


def without_found(record: Record, private: Private) -> Record | None:
    """A look at the workspace that does not tell of those files; None where it does not anyway."""
    metadata, own = _part(record, "metadata"), _part(record, "metadata", "clew")
    found = _part(own, "found")
    left = {name: _forgotten(file, private) for name, file in found.items() if name not in private.names}
    return {**record, "metadata": {**metadata, "clew": {**own, "found": left}}} if left != found else None


def found_digests(record: Record) -> Iterator[str]:
    """The contents that a look at the workspace names."""
    for file in _part(record, "metadata", "clew", "found").values():
        for side in ("before", "now"):
            digest = _part(file, side).get("hash")
            if isinstance(digest, str):
                yield digest


def fitted(record: Record, length: int) -> bytes | None:
    """A record as a line of this length, filled up in its metadata; None where it is too long for that."""
    own = _part(record, "metadata")
    room = length - len(dumps({**record, "metadata": {**own, "erased": ""}}))
    if room >= 0:
        return dumps({**record, "metadata": {**own, "erased": " " * room}})
    line = dumps(record)
    return line[:-1] + b" " * (length - len(line)) + b"}" if len(line) <= length else None


def _forgotten(file: JSON, private: Private) -> JSON:
    """What was found of a file, its content not named where that is private."""
    gone: JSON = {"hash": "", "missing": GONE}
    if not isinstance(file, dict):
        return file
    return {key: gone if _part(value).get("hash") in private.digests else value for key, value in file.items()}


def _names(record: Record) -> set[str]:
    maps = (("snapshot", "trackedFiles"), ("snapshot", "fileBackups"), ("metadata", "clew", "files"))
    return {name for keys in maps for name in _part(record, *keys)}


def _digests(record: Record, name: str) -> set[str]:
    tracked = _part(record, "snapshot", "trackedFiles", name).get("contentHash")
    copied = _part(record, "snapshot", "fileBackups", name).get("originalHash")
    return {digest for digest in (tracked, copied) if isinstance(digest, str) and digest}


def _less(files: JSON, gone: set[str]) -> JSON:
    return {name: file for name, file in files.items() if name not in gone} if isinstance(files, dict) else files


def _part(value: JSON, *keys: str) -> Record:
    """An object inside a record; empty where there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}
