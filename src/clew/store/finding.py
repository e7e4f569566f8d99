"""A finding of the checks of a store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from clew.model import Problem
from clew.model.codes import problem


class Finding(NamedTuple):
    """A problem, and a function that repairs it where that is possible."""

    problem: Problem
    mend: Callable[[], object] | None = None
    is_wrong: bool = True
    """False for a note: nothing is wrong, but it can be improved."""


def found(code: str, path: Path, detail: str = "", mend: Callable[[], object] | None = None) -> Finding:
    """Return a finding about a file."""
    return Finding(problem(code, detail, file=str(path)), mend)
