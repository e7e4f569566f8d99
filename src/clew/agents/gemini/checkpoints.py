"""Gemini CLI's checkpoints: the whole project, committed to a repository of its own before a tool changes a file.

The repository is read by its objects alone. Its settings and hooks are never looked at: git is given a repository
made for the purpose, to which only the objects are lent. Objects that a link or a list of alternates leads to belong to
another repository, so a store of objects with either of them is not read.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from clew.agents.backups import is_behind_link, read_inside
from clew.agents.file_evidence import FileChange, FileContent, KnownContent, absolute, first_text
from clew.agents.gemini.locate import CHATS
from clew.agents.gemini.project_registry import marker
from clew.io.codec import NOT_JSON, dumps, loads
from clew.io.git import SAFE_GIT
from clew.model.json import JSON

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_MAX_BYTES = 64 << 20
"""Bytes that a checkpoint, or the files of one commit together, may have."""
_DESCRIBED = re.compile(rb"([0-9a-f]{40,64}) ([a-z]+) ([0-9]{1,18})")
_MAX_CHECKPOINTS = 2000
"""So many checkpoints of a project are looked into."""
_MAX_SECONDS = 60
PATH_ARGUMENTS = ("file_path", "absolute_path", "path")


class Checkpoints:
    """The checkpoints of the project that a chat belongs to, by the call they were made for."""

    def __init__(self, chat: Path) -> None:
        project = next((up for up in chat.parents if up.name == CHATS), chat.parent).parent
        self._chat, self._folder = chat, project / "checkpoints"
        self._history = project.parent.parent / "history" / project.name
        root = marker(project) or marker(self._history)
        self._root = absolute(root, None) if root else None
        self._commits: dict[bytes, list[str]] | None = None
        self._touched: set[str] = set()

    def before(self, name: str, given: dict[str, JSON], index: int) -> Iterator[FileChange]:
        """The files of the session so far as they were when a call was made, if there is a checkpoint for it."""
        path = first_text(given, *PATH_ARGUMENTS)
        if path is None or self._root is None:
            return
        self._touched.add(absolute(path, None))
        commits = self._all().get(_call(name, given), [])
        if len(commits) != 1:
            # The same call twice: which is which is not recorded.
            return
        inside = {one: one[len(self._root) + 1 :] for one in self._touched if one.startswith(self._root + "/")}
        for one, state in zip(inside, self._read(commits[0], list(inside.values())), strict=False):
            if state is not None:
                yield FileChange(one, "snapshot", index, index, "backup", state, state)

    def _all(self) -> dict[bytes, list[str]]:
        if self._commits is None:
            self._commits = {}
            for path in sorted(self._folder.glob("*.json"))[:_MAX_CHECKPOINTS] if not self._folder.is_symlink() else ():
                found = _checkpoint(self._folder, path.name)
                if found is not None:
                    self._commits.setdefault(found[0], []).append(found[1])
        return self._commits

    def _read(self, commit: str, paths: list[str]) -> Iterator[KnownContent | None]:
        names = [f"{commit}:{path}" for path in paths]
        if self._objects is None or any("\n" in name for name in names):
            return iter(())
        with tempfile.TemporaryDirectory() as folder:
            return iter(_contents(Path(folder), self._objects, commit, names))

    @cached_property
    def _objects(self) -> Path | None:
        """The store of objects, if all of it is its own."""
        objects = self._history / ".git" / "objects"
        if not objects.is_dir() or is_behind_link(objects, self._chat) or os.path.lexists(objects / "info/alternates"):
            return None
        inner = (f"{below}/{name}" for below, folders, files in os.walk(objects) for name in (*folders, *files))
        return None if any(map(os.path.islink, inner)) else objects


def _contents(own: Path, objects: Path, commit: str, names: Sequence[str]) -> list[KnownContent | None]:
    """The contents of files in a commit; None where it has no such file: git may have been told to ignore it.

    Sizes are asked for first, so that a small object that unpacks to a large one does not fill the memory.
    """
    for folder in ("objects", "refs"):
        (own / folder).mkdir()
    (own / "HEAD").write_text("ref: refs/heads/main\n")
    first, *found = _described(_cat_file(own, objects, "--batch-check", [f"{commit}^{{commit}}", *names])) or [None]
    if first is None or len(found) != len(names):
        return []
    wanted: list[str] = []
    left = _MAX_BYTES
    for one in found:
        if one is not None and one[1] == "blob" and one[2] <= left:
            wanted.append(one[0])
            left -= one[2]
    bodies = dict(_bodies(_cat_file(own, objects, "--batch", wanted))) if wanted else {}
    return [FileContent(bodies[one[0]], True) if one is not None and one[0] in bodies else None for one in found]


def _cat_file(own: Path, objects: Path, batch_option: str, names: Sequence[str]) -> bytes:
    """The output of `git cat-file` for objects; empty if it fails."""
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(own),
        "GIT_DIR": str(own),
        "GIT_OBJECT_DIRECTORY": str(objects),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }
    command = [*SAFE_GIT, "cat-file", batch_option]
    try:
        lines = "".join(f"{name}\n" for name in names).encode("utf-8", "surrogateescape")
        done = subprocess.run(command, input=lines, capture_output=True, env=environment, cwd=own, timeout=_MAX_SECONDS)
    except (OSError, subprocess.TimeoutExpired, UnicodeEncodeError):
        return b""
    return done.stdout


def _described(output: bytes) -> list[tuple[str, str, int] | None]:
    """Name, kind and size of each object; None where there is none."""
    found = (_DESCRIBED.fullmatch(line) for line in output.split(b"\n")[:-1])
    return [(one[1].decode(), one[2].decode(), int(one[3])) if one is not None else None for one in found]


def _bodies(output: bytes) -> Iterator[tuple[str, bytes]]:
    """Name and content of each object."""
    at = 0
    while (end := output.find(b"\n", at)) >= 0:
        found = _DESCRIBED.fullmatch(output[at:end])
        if found is None:
            return
        at, size = end + 1, int(found[3])
        yield found[1].decode(), output[at : at + size]
        at += size + 1


def _checkpoint(folder: Path, name: str) -> tuple[bytes, str] | None:
    """The call that a checkpoint was made for, and its commit."""
    try:
        found = loads(read_inside(folder, name, _MAX_BYTES) or b"")
    except NOT_JSON:
        return None
    call, commit = (found.get("toolCall"), found.get("commitHash")) if isinstance(found, dict) else (None, None)
    if not isinstance(call, dict) or not isinstance(commit, str) or not _COMMIT.fullmatch(commit):
        return None
    return _call(call.get("name"), call.get("args")), commit


def _call(name: JSON, given: JSON) -> bytes:
    return dumps([name, given])
