"""The other worktrees of a git repository, from the files that git keeps of them."""

from __future__ import annotations

from pathlib import Path


def same_folder_in_worktrees(folder: Path) -> list[Path]:
    """The folders that stand for this one in the other worktrees of its git repository."""
    try:
        top = next((place for place in (folder, *folder.parents) if (place / ".git").exists()), None)
        if top is None:
            return []
        tops = _worktrees(_common_folder(top / ".git"))
    except (OSError, UnicodeDecodeError):
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
    except (OSError, UnicodeDecodeError):
        return None
    return common.parent / folder.relative_to(top) if common.name == ".git" and common.parent != top else None


def _common_folder(git: Path) -> Path:
    """The folder `.git` of the main worktree. In another worktree, `.git` is a file that names its own folder."""
    if git.is_dir():
        return git
    own = git.parent / git.read_text().removeprefix("gitdir:").strip()
    return (own / (own / "commondir").read_text().strip()).resolve()


def _worktrees(common: Path) -> list[Path]:
    linked = sorted((common / "worktrees").glob("*/gitdir"))
    others = [_linked_worktree(file) for file in linked]
    return [common.parent, *others] if common.name == ".git" else others


def _linked_worktree(file: Path) -> Path:
    """The worktree that a file `gitdir` names: its path is absolute, or relative to the file."""
    git = Path(file.read_text().strip())
    return git.parent if git.is_absolute() else (file.parent / git).resolve().parent
