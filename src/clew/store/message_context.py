"""Finds the context of a message: working folder, git branch, platform, kind of user. No program is run."""

from __future__ import annotations

import os
import stat
import sys
import time
from pathlib import Path

from msgspec import UNSET

from clew.agents.sage_agent.written_records import Context

_PLATFORMS = {"darwin": "macos", "win32": "windows", "cygwin": "windows"}
_BRANCH_CHECK_SECONDS = 0.002
"""How often the git branch is read: no program checks out another one faster."""
_REPOSITORY_SEARCH_SECONDS = 1.0
"""How often a folder without a git repository is searched for one."""
_REF = "ref: refs/heads/"
_MAX_HEAD_BYTES = 4096


def platform() -> str:
    """macos, linux, windows, or the system's own name."""
    return _PLATFORMS.get(sys.platform, sys.platform)


class ContextReader:
    """Reads the context of this process; the git branch is read again when it may have changed."""

    def __init__(self, user_type: str | None = "external") -> None:
        self._user_type = UNSET if user_type is None else user_type
        self._context = Context(cwd="", platform=platform(), user_type=self._user_type)
        self._head: Path | None = None
        self._checked = self._searched = -_REPOSITORY_SEARCH_SECONDS

    def read(self) -> Context:
        """Return the current context."""
        clock = time.monotonic()
        try:
            cwd = os.getcwd()  # noqa: PTH109 - quicker, and asked for every message
        except OSError:
            return self._context  # the folder is gone
        if cwd == self._context.cwd and clock - self._checked < _BRANCH_CHECK_SECONDS:
            return self._context
        return self._refresh(cwd, clock)

    def _refresh(self, cwd: str, clock: float) -> Context:
        if cwd != self._context.cwd or (self._head is None and clock - self._searched >= _REPOSITORY_SEARCH_SECONDS):
            self._head, self._searched = find_head(Path(cwd)), clock
        self._checked = clock
        branch = branch_of(self._head) or UNSET
        if (cwd, branch) != (self._context.cwd, self._context.git_branch):
            self._context = Context(cwd=cwd, git_branch=branch, platform=platform(), user_type=self._user_type)
        return self._context


def find_head(folder: Path) -> Path | None:
    """Find the HEAD file of the git repository of a folder."""
    for place in (folder, *folder.parents):
        git = place / ".git"
        if git.is_dir():
            return git / "HEAD"
        if git.is_file():
            # In a worktree or submodule, this file names its git folder.
            target = _read(git).removeprefix("gitdir:").strip()
            # On some systems two slashes name another machine, which must not be contacted.
            is_here = target and not target.startswith(("//", "\\\\"))
            return place / target / "HEAD" if is_here else None
    return None


def branch_of(head: Path | None) -> str | None:
    """Return the branch that a HEAD file names; None where a commit is checked out."""
    text = _read(head) if head is not None else ""
    return text.strip().removeprefix(_REF) if text.startswith(_REF) else None


def _read(path: Path) -> str:
    """Read the beginning of a file; empty where it is not a regular file, such as a pipe that never ends."""
    try:
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return ""
            return file.read(_MAX_HEAD_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
