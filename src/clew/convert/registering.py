"""The files below a home that name a session, so that its agent sees it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TypeVar

from clew.agents.target_profile import Header, Read, TargetProfile
from clew.convert.file_transaction import FileTransaction
from clew.errors import Busy, WouldLose
from clew.io.paths import safe_below

T = TypeVar("T")
_TRIES = 20


def reader(home: Path) -> Read:
    """Gives what a file below a home holds."""

    def read(name: str) -> bytes | None:
        path = home / safe_below(name)
        return path.read_bytes() if path.is_file() else None

    return read


def patiently(write: Callable[[], T]) -> T:
    """Write, and write anew where somebody else has changed meanwhile what should name the session."""
    for _ in range(_TRIES):
        with suppress(Busy):
            return write()
    return write()


class Registration:
    """What is to be said of a session below a home; what cannot be said is refused at once."""

    def __init__(self, receiver: TargetProfile, header: Header, home: Path) -> None:
        read = cache(reader(home))
        found = list(receiver.register(header, read))
        self._lines = {home / safe_below(name): line for name, line in receiver.listed(header)}
        self._files = {home / safe_below(name): (read(name), content) for name, content in found}
        for path in self.files:
            if os.path.lexists(path) and not path.is_file():
                raise WouldLose(f"{path} is in the way")

    @property
    def files(self) -> list[Path]:
        """The files that will name it."""
        return [*self._files, *self._lines]

    def place(self, placing: FileTransaction) -> None:
        """Let it be said together with the other files."""
        for path, (before, content) in self._files.items():
            placing.renew(path, before, content)
        for path, line in self._lines.items():
            placing.add(path, line)
