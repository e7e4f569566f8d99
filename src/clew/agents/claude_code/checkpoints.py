"""The copies that Claude Code makes of files before it changes them, and which message each belongs to."""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from pathlib import Path

from clew.agents.backups import read_copy
from clew.agents.claude_code.locate import home_of, stem
from clew.agents.file_evidence import ABSENT, FileChange, KnownContent, absolute, snapshot
from clew.model.json import JSON

_FOLDER = "file-history"
_BACKUP = re.compile(r"([0-9a-f]{16})@v\d+")
_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,99}")
_MAX_INDEXES = 4096

Entry = dict[str, JSON]


class Checkpoints:
    """Reads snapshot records. A copy is found in the folder of the session, or of one that it was forked from."""

    def __init__(self, path: Path) -> None:
        home = home_of(path)
        self._root = home / _FOLDER if home is not None else None
        self._sessions = OrderedDict({stem(path): None})
        self._indexes: OrderedDict[str, int] = OrderedDict()
        self._waiting: dict[str, list[tuple[str, Entry]]] = {}
        self._tracked: dict[str, JSON] = {}
        self._folder: str | None = None
        """Where the session began: tracked paths are relative to it."""

    def see(self, message: dict[str, JSON], folder: str | None, native: Mapping[str, JSON]) -> Iterator[FileChange]:
        """Remember where a message stands; yields the copies that were noted before it."""
        self._folder = self._folder or folder
        forked = native.get("forkedFrom")
        for claim in (native.get("sessionId"), forked.get("sessionId") if isinstance(forked, dict) else None):
            if isinstance(claim, str) and _SESSION.fullmatch(claim):
                self._sessions.setdefault(claim)
        uuid = message.get("uuid")
        if isinstance(uuid, str):
            self._indexes[uuid] = message["index"]
            if len(self._indexes) > _MAX_INDEXES:
                self._indexes.popitem(last=False)
            for path, entry in self._waiting.pop(uuid, ()):
                yield self._touch(path, entry, message["index"])

    def take(self, uuid: JSON, native: Mapping[str, JSON]) -> Iterator[FileChange]:
        """What a snapshot record shows of files before the message `uuid`: of an update, only what it adds."""
        path, backup = native.get("trackingPath"), native.get("backup")
        if isinstance(path, str) and isinstance(backup, dict):
            added = {path: backup}
        else:
            is_update = native.get("isSnapshotUpdate") is True
            files = _files(native.get("snapshot")).items()
            added = {name: entry for name, entry in files if not is_update or name not in self._tracked}
        self._tracked.update(added)
        for name, entry in added.items():
            if isinstance(uuid, str) and uuid in self._indexes:
                yield self._touch(name, entry, self._indexes[uuid])
            elif isinstance(uuid, str):
                self._waiting.setdefault(uuid, []).append((name, entry))

    def _touch(self, name: str, entry: Entry, index: int) -> FileChange:
        backup = entry.get("backupFileName", "")
        return snapshot(self._path(name, entry, backup), index, ABSENT if backup is None else self._copy(backup))

    def _path(self, name: str, entry: Entry, backup: JSON) -> str:
        """The file that is meant: the name of its copy begins with the digest of its path."""
        plain = absolute(name, self._folder)
        parent = entry.get("realParentDir")
        found = _BACKUP.fullmatch(backup) if isinstance(backup, str) else None
        if found is None or _digest(plain) == found[1] or not isinstance(parent, str):
            return plain
        other = absolute(re.split(r"[\\/]", name)[-1], parent)
        return other if _digest(other) == found[1] else plain

    def _copy(self, backup: JSON) -> KnownContent | None:
        if self._root is None or not isinstance(backup, str) or not _BACKUP.fullmatch(backup):
            return None
        copies = (read_copy(self._root / session, backup) for session in self._sessions)
        return next((copy for copy in copies if copy is not None), None)


def _digest(path: str) -> str:
    return hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _files(snapshot: JSON) -> dict[str, Entry]:
    files = snapshot.get("trackedFileBackups") if isinstance(snapshot, dict) else None
    entries = files.items() if isinstance(files, dict) else ()
    return {name: entry for name, entry in entries if isinstance(entry, dict)}
