"""A conversation with a fixed script on another machine, over the system's own ssh, in frames."""

from __future__ import annotations

import secrets
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib.resources import files
from typing import IO

from clew.errors import RemoteFailed
from clew.sources.target import Target

IDLE_SECONDS = 60
"""A host that sends nothing for so long is taken for dead."""
_HEAD_LIMIT = 4096
_NOISE_LIMIT = 1 << 20
"""Greetings that a shell prints before the script begins."""
_PIECE = 1 << 18


class Connection:
    """One run of the script on the host. What it sends comes in frames, each behind a mark that nobody can guess."""

    def __init__(self, target: Target, idle: float = IDLE_SECONDS) -> None:
        self._name, self._idle = target.host, idle
        mark = secrets.token_hex(16)
        self._mark = f"\n{mark} ".encode()
        self._buffer = b""
        self._waiting: float | None = None
        self._silent = False
        script = files("clew.sources").joinpath("remote.sh").read_bytes()
        # The login shell over there may be of any kind: it only has to start `sh`, which takes the script from us.
        bootstrap = f"exec sh -c 'eval \"$(dd bs=1 count={len(script)} 2>/dev/null)\"'"
        command = target.command(bootstrap)
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the connection
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said)
        threading.Thread(target=self._watch, daemon=True).start()
        self.send([script.decode() + mark])

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        with suppress(OSError):
            self._pipe(self._process.stdin).close()
        self._process.wait()
        self._pipe(self._process.stdout).close()
        self._said.close()

    def send(self, lines: Iterable[str]) -> None:
        """Write lines in the background, so that neither side waits for the other to read."""
        text = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
        before = getattr(self, "_writer", None)
        self._writer = threading.Thread(target=self._write, args=(text, before), daemon=True)
        self._writer.start()

    def frame(self, word: str) -> list[str]:
        """Go to the next frame and return what its head says behind the word, which is the one it must have."""
        for _ in self.payload(_NOISE_LIMIT):
            pass
        self._buffer = self._buffer[len(self._mark) :]
        while b"\n" not in self._buffer[:_HEAD_LIMIT]:
            if len(self._buffer) >= _HEAD_LIMIT:
                raise self._failed("answers with something else.")
            self._read()
        head, _, self._buffer = self._buffer.partition(b"\n")
        found, *rest = head.decode("utf-8", "replace").split(" ")
        if found != word:
            raise self._failed("answers with something else.")
        return rest

    def number(self, word: str) -> int:
        """The number in the head of the next frame."""
        words = self.frame(word)
        if len(words) != 1 or not words[0].isdigit() or len(words[0]) > 18:
            raise self._failed("answers with something else.")
        return int(words[0])

    def payload(self, limit: int) -> Iterator[bytes]:
        """What stands before the next mark, in pieces; a host that sends more than the limit is cut off."""
        taken = 0
        while True:
            at = self._buffer.find(self._mark)
            ready = at if at >= 0 else max(len(self._buffer) - len(self._mark), 0)
            taken += ready
            if taken > limit:
                raise self._failed("sends more than was asked for.")
            yield self._buffer[:ready]
            self._buffer = self._buffer[ready:]
            if at >= 0:
                return
            self._read()

    def _read(self) -> None:
        self._waiting = time.monotonic()
        piece = self._pipe(self._process.stdout).read1(_PIECE)  # type: ignore[attr-defined]
        self._waiting = None
        if not piece:
            raise self._failed(None)
        self._buffer += piece

    def _write(self, text: bytes, before: threading.Thread | None) -> None:
        if before is not None:
            before.join()
        # A host that has gone is noticed where we read.
        with suppress(OSError, ValueError):
            self._pipe(self._process.stdin).write(text)
            self._pipe(self._process.stdin).flush()

    def _watch(self) -> None:
        while self._process.poll() is None:
            time.sleep(min(1.0, self._idle / 4))
            # Only the host's silence counts, not the time that we need between two questions.
            since = self._waiting
            if since is not None and time.monotonic() - since > self._idle:
                self._silent = True
                self._process.kill()

    def _failed(self, why: str | None) -> RemoteFailed:
        if why is None and self._silent:
            why = f"no answer for {self._idle:g} seconds."
        if why is None:
            self._process.kill()
            self._process.wait()
            self._said.seek(0)
            why = _complaint(self._said.read(1 << 16))
        return RemoteFailed(f"{self._name}: {why}")

    @staticmethod
    def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
        assert pipe is not None
        return pipe


def _complaint(said: bytes) -> str:
    """The last thing ssh or the host said, and what to do about it where we know."""
    lines = [line.strip() for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    if not lines:
        return "the connection ended early."
    last = lines[-1]
    if "Host key verification failed" in last:
        return f"{last} Connect once by hand, so that ssh knows the host."
    if "Permission denied" in last:
        return f"{last} No password is asked for here: use a key, and an agent if the key has a passphrase."
    return f"{last.rstrip('.')}."
