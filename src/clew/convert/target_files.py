"""The files that a conversion writes for the target: those of the session, and those that must name it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import TypeVar

from clew.agents.base import SourceFile
from clew.agents.target_profile import Header, Read, TargetProfile
from clew.convert.copies import place_of, places_of
from clew.convert.file_transaction import FileTransaction, StagedFile
from clew.errors import Busy, WouldLose
from clew.io.paths import safe_below


class Files:
    """The main file, those beside it, and the copies; `is_last`: the main one takes its place after all others."""

    def __init__(self, placing: FileTransaction, main: Path, receiver: TargetProfile | None, *, is_last: bool) -> None:
        self.main = main
        self.digest = hashlib.sha256()
        """Of what went into the main file so far."""
        self._placing, self._renewed = placing, receiver.renewed if receiver else {}
        self._is_last = is_last
        self._open: dict[str, StagedFile | BytesIO] = {}
        self._copies: list[Path] = []

    def open(self, name: str) -> StagedFile | BytesIO:
        """A file, named as it lies beside the main one; "" is the main one."""
        if name not in self._open:
            path = self.path(name)
            is_left = name in self._renewed and path.is_file()
            self._open[name] = BytesIO() if is_left else self._placing.new(path, last=self._is_last and not name)
        return self._open[name]

    def copy(self, agent: str, name: str) -> StagedFile | None:
        """A copy that the agent keeps for the session; None where there is one."""
        path = place_of(places_of(SourceFile(agent, self.main)), name)
        if path is None or os.path.lexists(path):
            return None
        self._copies.append(path)
        return self._placing.new(path)

    def path(self, name: str) -> Path:
        """Where a file goes."""
        return self.main.parent / safe_below(name) if name else self.main

    def has(self, name: str) -> bool:
        """True where something was written to a file."""
        return name in self._open

    def write(self, name: str, piece: bytes) -> None:
        """Add to a file."""
        self.open(name).write(piece)
        if not name:
            self.digest.update(piece)

    def finish(self) -> list[Path]:
        """The files, once all is written; one that stayed behind when another session went says what this one needs."""
        for name, out in self._open.items():
            if isinstance(out, BytesIO):
                before = self.path(name).read_bytes()
                self._placing.renew(self.path(name), before, self._renewed[name](before, out.getvalue()))
        return [*(self.path(name) for name in self._open), *self._copies]


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
