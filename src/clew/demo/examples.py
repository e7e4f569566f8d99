"""The hand-written example sessions, among them the odd and the damaged ones."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

# Package data carries no leading dots: build tools and file listings pass over hidden names.
_FOLDERS = {"claude": ".claude", "codex": ".codex", "gemini": ".gemini", "sage": ".sage", "emacs.d": ".emacs.d"}

_HIDDEN = ("project_root",)
"""Other names without the leading dot that they have in a home."""


def copy_examples(target: Path) -> list[Path]:
    """Copy the hand-written sessions into the empty folder `target`; returns the files written."""
    home = files("clew.demo").joinpath("home")
    return [path for source, name in _FOLDERS.items() for path in _copy(home.joinpath(source), target / name)]


def _copy(folder: Traversable, target: Path) -> Iterator[Path]:
    target.mkdir(mode=0o700)
    for entry in sorted(folder.iterdir(), key=lambda each: each.name):
        path = target / (f".{entry.name}" if entry.name in _HIDDEN else entry.name)
        if entry.is_dir():
            yield from _copy(entry, path)
        else:
            path.touch(mode=0o600, exist_ok=False)
            path.write_bytes(entry.read_bytes())
            yield path
