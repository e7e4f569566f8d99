"""What is wrong with a store, one thing at a time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from clew.model import Problem
from clew.model.codes import problem


class Finding(NamedTuple):
    """One thing that is wrong, and how to mend it where that can be done."""

    problem: Problem
    mend: Callable[[], object] | None = None
    is_wrong: bool = True
    """False where nothing is wrong, and it may only be made better."""


def found(code: str, path: Path, detail: str = "", mend: Callable[[], object] | None = None) -> Finding:
    """A finding about a file."""
    return Finding(problem(code, detail, file=str(path)), mend)
