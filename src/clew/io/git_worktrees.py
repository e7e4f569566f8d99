"""The other worktrees of a git repository, from the files that git keeps of them."""

from __future__ import annotations

import os
from pathlib import Path

from clew.errors import SourceUnreadable
from clew.io.compress import open_regular

MAX_FILE_BYTES = 64 << 10
"""Size of the files with the paths of worktrees."""


def same_folder_in_worktrees(folder: Path) -> list[Path]:
    """The folders that stand for this one in the other worktrees of its git repository."""
    try:
        top = next((place for place in (folder, *folder.parents) if (place / ".git").exists()), None)
        if top is None:
            return []
        tops = _worktrees(_common_folder(top / ".git"))
    except (OSError, ValueError, SourceUnreadable):
        return []
    rest = folder.relative_to(top)
    return [other / rest for other in tops if other != top]


def same_folder_in_main_worktree(folder: Path) -> Path | None:
    """The folder that stands for one of a linked worktree in the main one; None for any other folder."""
    try:
        top = next((place for place in (folder, *folder.parents) if (place / ".git").exists()), None)
        if top is None or not (top / ".git").is_file():
            return None
        common = _common_folder(top / ".git")
    except (OSError, ValueError, SourceUnreadable):
        return None
    return common.parent / folder.relative_to(top) if common.name == ".git" and common.parent != top else None


def _common_folder(git: Path) -> Path:
    """The folder `.git` of the main worktree. In another worktree, `.git` is a file that names its own folder."""
    if git.is_dir():
        return git
    own = _own_folder(git)
    return (own / _small_text(own / "commondir")).resolve()


def _own_folder(git: Path) -> Path:
    """The folder that the file `.git` of a linked worktree names."""
    return git.parent / _small_text(git).removeprefix("gitdir:").strip()


def _worktrees(common: Path) -> list[Path]:
    linked = sorted((common / "worktrees").glob("*/gitdir"))
    others = [other for file in linked if (other := _linked_worktree(file)) is not None]
    return [common.parent, *others] if common.name == ".git" else others


def _linked_worktree(file: Path) -> Path | None:
    """The worktree that a file `gitdir` names: its path is absolute, or relative to the file.

    None if it does not name this repository in turn: the file could name any folder.
    """
    try:
        git = Path(_small_text(file))
        git = git if git.is_absolute() else (file.parent / git).resolve()
        return git.parent if _own_folder(git).resolve() == file.parent.resolve() else None
    except (OSError, ValueError, SourceUnreadable):
        return None


def _small_text(path: Path) -> str:
    """The content of a small regular file. Raises SourceUnreadable for any other."""
    handle, size = open_regular(path)
    with handle:
        if size > MAX_FILE_BYTES:
            raise SourceUnreadable(f"{path}: larger than {MAX_FILE_BYTES >> 10} KB")
        return os.fsdecode(handle.read(MAX_FILE_BYTES)).strip()
