"""The files that a conversion writes for the target: those of the session, and the lists that must name it."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from functools import cache
from io import BytesIO
from pathlib import Path

from clew.agents.base import SourceFile
from clew.agents.target_profile import Header, ReadFile, TargetProfile
from clew.convert.copies import place_of, places_of, read_pieces
from clew.convert.file_transaction import FileTransaction, StagedFile
from clew.convert.losses import Converted, Loss, refusal, serious
from clew.convert.origin import OriginalFile
from clew.errors import Busy, WouldLose
from clew.io.paths import safe_below
from clew.store.layout import refuse_copy

LOG_SUFFIX = ".jsonl"
_MAX_RETRIES = 20


class Prepared(ABC):
    """A conversion that is ready to be written."""

    losses: list[Loss]

    @abstractmethod
    def describe(self, home: Path) -> Converted:
        """The session as `write` would write it, with the files that are known without writing."""

    def rehearse(self, home: Path) -> Converted:
        """What `write` would do, file by file; writes nothing, and refuses what is in the way."""
        return self._write(FileTransaction(home, dry_run=True), home)

    def write(self, home: Path, *, allow_loss: bool = False) -> Converted:
        """Write the session below a home; where something would be lost, writes nothing unless that is allowed."""
        if serious(self.losses) and not allow_loss:
            raise WouldLose(refusal(self.losses))
        refuse_copy(home)
        attempts = 0
        while True:
            try:
                with FileTransaction(home) as transaction:
                    return self._write(transaction, home)
            except Busy:
                # Another program has changed a list that must name the session.
                attempts += 1
                if attempts > _MAX_RETRIES:
                    raise

    @abstractmethod
    def _write(self, transaction: FileTransaction, home: Path) -> Converted: ...


class SessionFiles:
    """The main file of a session, those beside it, and the copies that its agent keeps.

    `is_last`: the main file is renamed after all other files of the transaction.
    """

    def __init__(
        self, transaction: FileTransaction, main: Path, profile: TargetProfile | None, *, is_last: bool
    ) -> None:
        self._transaction, self._merges = transaction, profile.merged_files if profile else {}
        self.main = transaction.create(main, last=is_last)
        self._files: dict[str, StagedFile | BytesIO] = {"": self.main}
        self._copies: list[Path] = []

    def __contains__(self, name: str) -> bool:
        return name in self._files

    def write(self, name: str, piece: bytes) -> None:
        """Add to a file, named relative to the folder of the main one; "" is the main one."""
        if name not in self._files:
            path = self._path(name)
            is_merged = name in self._merges and path.is_file()
            self._files[name] = BytesIO() if is_merged else self._transaction.create(path)
        self._files[name].write(piece)

    def logs(self) -> list[OriginalFile]:
        """The files of lines that are written beside the main one."""
        return [
            OriginalFile(name, out.size, out.digest.hexdigest())
            for name, out in self._files.items()
            if name.endswith(LOG_SUFFIX) and isinstance(out, StagedFile)
        ]

    def write_copy(self, agent: str, name: str, content: Path) -> None:
        """Write a file that the agent keeps beside the session (backup, long output), unless the path exists."""
        path = place_of(places_of(SourceFile(agent, self.main.path)), name)
        if path is None or os.path.lexists(path):
            return
        self._copies.append(path)
        staged = self._transaction.create(path)
        for piece in read_pieces(content):
            staged.write(piece)
        staged.finish()

    def _path(self, name: str) -> Path:
        return self.main.path.parent / safe_below(name) if name else self.main.path

    def finish(self) -> list[Path]:
        """The paths of all files, once everything is written.

        A file that another session left is merged with what this one needs there.
        """
        for name, out in self._files.items():
            if isinstance(out, BytesIO):
                before = self._path(name).read_bytes()
                self._transaction.replace(self._path(name), before, self._merges[name](before, out.getvalue()))
        return [*map(self._path, self._files), *self._copies]


def file_reader(home: Path) -> ReadFile:
    """Gives the content of a file below a home."""

    def read(name: str) -> bytes | None:
        path = home / safe_below(name)
        return path.read_bytes() if path.is_file() else None

    return read


def register_session(transaction: FileTransaction, profile: TargetProfile, header: Header, home: Path) -> list[Path]:
    """Add the lists that must name a session to a transaction; returns their paths."""
    read = cache(file_reader(home))
    replaced = {home / safe_below(name): (read(name), content) for name, content in profile.register(header, read)}
    lines = {home / safe_below(name): line for name, line in profile.index_lines(header)}
    for path in (*replaced, *lines):
        if os.path.lexists(path) and not path.is_file():
            raise WouldLose(f"{path} exists and is not a folder")
    for path, (before, content) in replaced.items():
        transaction.replace(path, before, content)
    for path, line in lines.items():
        transaction.append(path, line)
    return [*replaced, *lines]
