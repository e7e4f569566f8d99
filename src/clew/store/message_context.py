"""The surroundings of a message: working folder, git branch, platform, kind of user. Nothing is run to find them."""

from __future__ import annotations

import os
import stat
import sys
import time
from pathlib import Path

from msgspec import UNSET

from clew.agents.sage_agent.written_records import Context

_PLATFORMS = {"darwin": "macos", "win32": "windows", "cygwin": "windows"}
_MOMENT = 0.002
"""Seconds in which no program can have checked out another branch."""
_PATIENCE = 1.0
"""Seconds after which a folder without a repository is looked at again."""
_REF = "ref: refs/heads/"
_HEAD_LIMIT = 4096
"""Bytes of a file that names a branch or a folder of git."""
_clock, _cwd = time.monotonic, os.getcwd  # at hand, since every message asks


def platform() -> str:
    """macos, linux, windows, or the system's own name."""
    return _PLATFORMS.get(sys.platform, sys.platform)


class ContextReader:
    """The context of this process as it is at each look; what has not changed is not read again."""

    def __init__(self, user_type: str | None = "external") -> None:
        self._user_type = UNSET if user_type is None else user_type
        self._context = Context(cwd="", platform=platform(), user_type=self._user_type)
        self._head: Path | None = None
        self._mark: tuple[int, int] | None = None
        self._looked = self._searched = -_PATIENCE

    def read(self) -> Context:
        """The context; whether the branch has changed is looked at again after a moment."""
        clock = _clock()
        try:
            cwd = _cwd()
        except OSError:
            return self._context  # the folder is gone
        if cwd == self._context.cwd and clock - self._looked < _MOMENT:
            return self._context
        return self._look(cwd, clock)

    def _look(self, cwd: str, clock: float) -> Context:
        moved = cwd != self._context.cwd
        if moved or (self._head is None and clock - self._searched >= _PATIENCE):
            self._head, self._searched = find_head(Path(cwd)), clock
        self._looked = clock
        mark = _mark(self._head)
        if moved or mark != self._mark:
            self._mark = mark
            branch = branch_of(self._head)
            self._context = Context(cwd=cwd, git_branch=branch or UNSET, platform=platform(), user_type=self._user_type)
        return self._context


def find_head(folder: Path) -> Path | None:
    """The file that says which branch of a git repository is checked out."""
    for place in (folder, *folder.parents):
        git = place / ".git"
        if git.is_dir():
            return git / "HEAD"
        if git.is_file():
            # A worktree or submodule: the file says where its own folder is.
            target = _read(git).removeprefix("gitdir:").strip()
            # Two slashes mean another machine on some systems, which must not be asked.
            is_here = target and not target.startswith(("//", "\\\\"))
            return place / target / "HEAD" if is_here else None
    return None


def branch_of(head: Path | None) -> str | None:
    """The branch a HEAD names; None where a commit is checked out."""
    text = _read(head) if head is not None else ""
    return text.strip().removeprefix(_REF) if text.startswith(_REF) else None


def _mark(path: Path | None) -> tuple[int, int] | None:
    if path is None:
        return None
    try:
        found = os.stat(path)  # noqa: PTH116 - asked for every message
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino


def _read(path: Path) -> str:
    """The beginning of a file; nothing where it is no regular file, such as a pipe that never ends."""
    try:
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return ""
            return file.read(_HEAD_LIMIT).decode("utf-8", "replace")
    except OSError:
        return ""
