"""What the tests of the store share: a file system that fails on demand, and ways to look at a log."""

from __future__ import annotations

import errno
import json
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from clew import Host, Library, verify
from clew.agents.checking import check_source
from clew.io.filesystem import System

CALLS = "open close write seek fstat stat truncate chmod mkdir rmdir replace unlink lock sync read".split()


class Quick(System):
    """Where a test is not about power cuts, nothing need reach the disk."""

    write_through = 0
    sync: Callable[[int], None] = staticmethod(lambda _: None)


class Faulty(System):
    """The n-th call fails; `torn` lets a write do half of its work before that, `short` only half of it."""

    def __init__(self, at: int, error: int = errno.EIO, *, kind: str = "before", only: str | None = None) -> None:
        self.at, self.error, self.kind, self.only = at, error, kind, only
        self.write_through = 0
        self.count, self.hit = 0, ""
        for name in CALLS:
            setattr(self, name, self._wrapped(name, getattr(Quick, name)))

    def _wrapped(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            if self.only is not None and name != self.only:
                return real(*arguments)
            self.count += 1
            if self.count != self.at:
                return real(*arguments)
            self.hit = name
            if name == "write" and self.kind in ("torn", "short"):
                done = real(arguments[0], arguments[1][: len(arguments[1]) // 2])
                if self.kind == "short":
                    return done
            if name == "close":
                real(*arguments)  # the descriptor is gone even where closing fails
            raise OSError(self.error, "injected")

        return call


class Kill(BaseException):
    """The process is gone."""


class Mortal(System):
    """Once armed, the n-th call is not made any more, nor any behind it: as if the process had been killed there."""

    def __init__(self) -> None:
        self.write_through = 0
        self.left: int | None = None
        self._opened: set[int] = set()
        for name in CALLS:
            setattr(self, name, self._wrapped(name, getattr(Quick, name)))

    @property
    def is_dead(self) -> bool:
        return self.left == 0

    def _wrapped(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            if self.left:
                self.left -= 1
            if self.is_dead and threading.current_thread() is not threading.main_thread():
                raise OSError(errno.EBADF, "the process is gone")
            if self.is_dead:
                raise Kill
            result = real(*arguments)
            if name == "open":
                self._opened.add(result)
            elif name == "close":
                self._opened.discard(arguments[0])
            return result

        return call

    def bury(self) -> None:
        """As the system does for the dead: what they had open is closed, and their locks with it."""
        for descriptor in self._opened:
            os.close(descriptor)
        self._opened.clear()


def lines(path: Path) -> list[dict[str, Any]]:
    """Every line of a log, each of which must be a record with a line end."""
    raw = path.read_bytes()
    assert raw == b"" or raw.endswith(b"\n"), raw[-80:]
    return [json.loads(line) for line in raw.splitlines()]


def said(path: Path) -> list[str]:
    """The words of all messages, in the order of the log."""
    return [record["message"]["content"] for record in lines(path) if "message" in record]


def uuids(path: Path) -> list[str]:
    return [record["uuid"] for record in lines(path)]


def assert_whole(place: Path) -> None:
    """The readers take everything below a place for what it is: no problem, no unknown key, the same bytes."""
    found = list(Library(Host.at(place)).sources())
    assert found
    for session in found:
        assert list(check_source(session.agent, session.source)) == []
        proof = verify(session.agent, session.source)
        assert proof.holds
        assert (proof.carried_raw, proof.unknown_types, proof.unknown_keys) == (0, {}, {})


@contextmanager
def in_memory() -> Iterator[Path]:
    """A folder that no disk slows down, where there is such a thing: for what is done ten thousand times."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="clew-test-", dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


def log_of(place: Path, session: str = "s") -> Path:
    return place / ".sage" / "sessions" / session / "messages.jsonl"
