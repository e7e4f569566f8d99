"""Gemini CLI's checkpoints: the whole project, committed to a repository of its own before a tool changes a file.

The repository is read by its objects alone: its settings and hooks are never looked at. Objects that a link or a list
of alternates leads to belong to another repository, so a store of objects with either of them is not read.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from clew.agents.backups import is_behind_link, read_inside
from clew.agents.file_evidence import FileChange, FileContent, absolute, first_text
from clew.agents.gemini.locate import CHATS
from clew.agents.gemini.project_registry import marker
from clew.errors import SourceUnreadable, UsageError
from clew.io.codec import NOT_JSON, dumps, loads
from clew.io.git import repository_of_objects
from clew.model.json import JSON

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_MAX_BYTES = 64 << 20
"""Bytes that a checkpoint, or a file of its commit, may have."""
_MAX_CHECKPOINTS = 2000
"""So many checkpoints of a project are looked into."""
PATH_ARGUMENTS = ("file_path", "absolute_path", "path")


class Checkpoints:
    """The checkpoints of the project that a chat belongs to, by the call they were made for."""

    def __init__(self, chat: Path) -> None:
        project = next((up for up in chat.parents if up.name == CHATS), chat.parent).parent
        self._chat, self._folder = chat, project / "checkpoints"
        self._history = project.parent.parent / "history" / project.name
        root = marker(project) or marker(self._history)
        self._root = absolute(root, None) if root else None
        self._touched: set[str] = set()

    def before(self, tool: str, arguments: dict[str, JSON], index: int) -> Iterator[FileChange]:
        """The files of the session so far as they were when a call was made, if there is a checkpoint for it."""
        argument = first_text(arguments, *PATH_ARGUMENTS)
        if argument is None or self._root is None:
            return
        self._touched.add(absolute(argument, None))
        commits = self._commits_by_call.get(_call_key(tool, arguments), [])
        if len(commits) != 1:
            # The same call twice: which is which is not recorded.
            return
        root = f"{self._root}/"
        names = {path: f"{commits[0]}:{path.removeprefix(root)}" for path in self._touched if path.startswith(root)}
        contents = self._read_files(list(names.values()))
        for path, name in names.items():
            # A file that is not in the commit may exist: git may have been told to ignore it.
            if name in contents:
                state = FileContent(contents[name], True)
                yield FileChange(path, "snapshot", index, index, "backup", state, state)

    @cached_property
    def _commits_by_call(self) -> dict[bytes, list[str]]:
        commits = defaultdict[bytes, list[str]](list)
        for path in sorted(self._folder.glob("*.json"))[:_MAX_CHECKPOINTS] if not self._folder.is_symlink() else ():
            checkpoint = _read_checkpoint(self._folder, path.name)
            if checkpoint is not None:
                call, commit = checkpoint
                commits[call].append(commit)
        return commits

    def _read_files(self, names: list[str]) -> dict[str, bytes]:
        """The contents of the files of a commit, by their names in git; nothing where git fails."""
        if self._objects is None:
            return {}
        try:
            with repository_of_objects(self._objects) as repository:
                return repository.files(names, _MAX_BYTES)
        except (SourceUnreadable, UsageError):
            return {}

    @cached_property
    def _objects(self) -> Path | None:
        """The store of objects, if all of it is its own."""
        objects = self._history / ".git" / "objects"
        if not objects.is_dir() or is_behind_link(objects, self._chat) or os.path.lexists(objects / "info/alternates"):
            return None
        inner = (f"{below}/{name}" for below, folders, files in os.walk(objects) for name in (*folders, *files))
        return None if any(map(os.path.islink, inner)) else objects


def _read_checkpoint(folder: Path, name: str) -> tuple[bytes, str] | None:
    """The call that a checkpoint was made for, and its commit."""
    try:
        found = loads(read_inside(folder, name, _MAX_BYTES) or b"")
    except NOT_JSON:
        return None
    call, commit = (found.get("toolCall"), found.get("commitHash")) if isinstance(found, dict) else (None, None)
    if not isinstance(call, dict) or not isinstance(commit, str) or not _COMMIT.fullmatch(commit):
        return None
    return _call_key(call.get("name"), call.get("args")), commit


def _call_key(tool: JSON, arguments: JSON) -> bytes:
    return dumps([tool, arguments])
