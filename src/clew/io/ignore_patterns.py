"""Which files and folders a scan of a workspace leaves out, by patterns with the meaning of a `.gitignore` file."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from typing import Any

TEMPORARY = ".clew-"
"""How the names of files begin that exist while others are restored."""
ALWAYS = (".git", ".hg", ".svn", ".sage", f"{TEMPORARY}*")
"""Left out whatever the patterns say: repositories, the store itself, and temporary files."""


class IgnorePatterns:
    """Patterns as in a `.gitignore` file at the root of the workspace; the last one that matches decides.

    `.gitignore` files in the workspace are not read. A line that is not a valid pattern matches nothing. One difference
    to git: `!folder` also brings back what an earlier pattern ignores inside that folder.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        # Loading pathspec takes longer than most commands, and few of them scan a workspace.
        from pathspec import GitIgnoreSpec

        valid: list[Any] = []
        for pattern in (*patterns, *ALWAYS):
            with suppress(ValueError):
                valid += GitIgnoreSpec.from_lines([pattern]).patterns
        self._spec = GitIgnoreSpec(valid)

    def ignores(self, path: str, *, is_folder: bool = False) -> bool:
        """Return whether a path relative to the workspace is left out, if no folder above it is."""
        if not path.isascii():
            # A name that is not valid UTF-8 has characters that cannot be encoded.
            path = path.encode("utf-8", "replace").decode()
        return self._spec.match_file(f"{path}/" if is_folder else path)

    def hides(self, path: str) -> bool:
        """Return whether a file is left out, by itself or with a folder above it."""
        parts = path.split("/")
        folders = ("/".join(parts[:end]) for end in range(1, len(parts)))
        return any(self.ignores(folder, is_folder=True) for folder in folders) or self.ignores(path)


@lru_cache(16)
def ignore_patterns(patterns: tuple[str, ...]) -> IgnorePatterns:
    """Return compiled patterns; the records of a session repeat the same few lists."""
    return IgnorePatterns(patterns)
