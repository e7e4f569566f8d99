"""What a look at a whole folder leaves out: names, and patterns of names and paths."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import translate
from typing import NamedTuple

TEMPORARY = ".clew-"
"""How the names of files begin that are there while others are put back."""

_Pattern = Callable[[str], re.Match[str] | None]


class Ignored(NamedTuple):
    """What is left out: names, and patterns of names and paths. Asked for every file, so names come first."""

    names: frozenset[str]
    pattern: _Pattern | None
    path_pattern: _Pattern | None

    def covers(self, path: str) -> bool:
        """True where a path is left out."""
        name = path.rpartition("/")[2]
        if name in self.names or name.startswith(TEMPORARY):
            return True
        if self.pattern is not None and self.pattern(name) is not None:
            return True
        return self.path_pattern is not None and self.path_pattern(path) is not None

    def hides(self, path: str) -> bool:
        """True where a path is left out, or a folder above it."""
        parts = path.split("/")
        return any(self.covers("/".join(parts[:end])) for end in range(1, len(parts) + 1))

    @property
    def is_plain(self) -> bool:
        """True where there are names only."""
        return self.pattern is None and self.path_pattern is None


def ignoring(patterns: Iterable[str]) -> Ignored:
    """What a list leaves out; a pattern with a slash means the whole path below the folder."""
    plain, names, paths = set(), [], []
    for pattern in patterns:
        pattern = pattern.rstrip("/")
        if "/" in pattern:
            paths.append(pattern.lstrip("/"))
        elif re.search(r"[*?\[]", pattern):
            names.append(pattern)
        else:
            plain.add(pattern)
    return Ignored(frozenset(plain), _either(names), _either(paths))


def _either(patterns: Sequence[str]) -> _Pattern | None:
    return re.compile("|".join(translate(pattern) for pattern in patterns)).match if patterns else None
