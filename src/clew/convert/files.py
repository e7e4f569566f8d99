"""The new files of one session, on their way to their places."""

from __future__ import annotations

import hashlib
import os
from io import BytesIO
from pathlib import Path

from clew.agents.base import SourceFile
from clew.agents.target_profile import TargetProfile
from clew.convert.copies import place_of, places_of
from clew.convert.file_transaction import FileTransaction, StagedFile
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
