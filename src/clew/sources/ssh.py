"""Runs a fixed script on another machine over the system's own ssh, and reads its output in frames."""

from __future__ import annotations

import re
import secrets
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib.resources import files
from typing import IO, NamedTuple

from clew.errors import RemoteFailed, UsageError

CONNECT_SECONDS = 10

IDLE_SECONDS = 60
"""The connection is closed when the host sends nothing for this time."""
_MAX_FRAME_HEADER_BYTES = 4096
_MAX_GREETING_BYTES = 1 << 20
"""What a login shell may print before the script begins."""
_READ_BYTES = 1 << 18
_HOST = r"(?P<host>[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,252}[A-Za-z0-9_])?|[0-9A-Fa-f]*:[0-9A-Fa-f]*:[0-9A-Fa-f:.]*)"
_USER = r"(?:(?P<user>[A-Za-z0-9_][A-Za-z0-9_.-]{0,63})@)?"
_PLAIN = re.compile(_USER + _HOST)
_ADDRESS = re.compile(r"ssh://" + _USER + r"(?P<open>\[)?" + _HOST + r"(?(open)\])(?::(?P<port>[0-9]{1,5}))?/?")

# Agent, display and ports are not forwarded, and ssh asks nothing; the rest is the user's own configuration.
_OPTIONS = (
    "-T -a -x -o BatchMode=yes -o ClearAllForwardings=yes -o PermitLocalCommand=no -o RemoteCommand=none "
    f"-o Compression=yes -o ConnectTimeout={CONNECT_SECONDS} -o ServerAliveInterval=15 -o ServerAliveCountMax=3"
).split()


class Target(NamedTuple):
    """A host as ssh understands it: an alias of the user's configuration, or a name or address."""

    host: str
    user: str | None = None
    port: int | None = None

    @classmethod
    def parse(cls, text: str) -> Target:
        """Parse `host`, `user@host` or `ssh://user@host:port`; refuse anything that ssh could take for an option."""
        match = _ADDRESS.fullmatch(text) or _PLAIN.fullmatch(text)
        if match is None:
            raise UsageError(f"{text!r} is not a host for ssh; try host, user@host or ssh://user@host:port")
        port = match.groupdict().get("port")
        if port is not None and not 0 < int(port) < 65536:
            raise UsageError(f"{text!r}: there is no port {port}")
        return cls(match["host"], match["user"], int(port) if port else None)

    def __str__(self) -> str:
        user = f"{self.user}@" if self.user else ""
        return f"ssh://{user}{self.host}:{self.port}" if self.port else f"{user}{self.host}"

    def command(self, remote: str) -> list[str]:
        """Return the arguments of the ssh command; it is started without a shell on this machine."""
        program = shutil.which("ssh")
        if program is None:
            raise RemoteFailed("ssh is not installed")
        port = ["-p", str(self.port)] if self.port else []
        user = ["-l", self.user] if self.user else []
        return [program, *_OPTIONS, *port, *user, "--", self.host, remote]


class Connection:
    """One run of the script on the host. It sends frames, each after a random mark that no file can contain."""

    def __init__(self, target: Target, idle: float = IDLE_SECONDS) -> None:
        self._name, self._idle = target.host, idle
        mark = secrets.token_hex(16)
        self._mark = f"\n{mark} ".encode()
        self._buffer = b""
        self._waiting: float | None = None
        self._silent = False
        script = files("clew.sources").joinpath("remote.sh").read_bytes()
        # The login shell of the host may be of any kind: it only has to start `sh`, which reads the script from stdin.
        bootstrap = f"exec sh -c 'eval \"$(dd bs=1 count={len(script)} 2>/dev/null)\"'"
        command = target.command(bootstrap)
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the connection
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr)
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
        self._stderr.close()

    def send(self, lines: Iterable[str]) -> None:
        """Write lines in the background, so that neither side waits for the other to read."""
        text = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
        before = getattr(self, "_writer", None)
        self._writer = threading.Thread(target=self._write, args=(text, before), daemon=True)
        self._writer.start()

    def frame(self, word: str) -> list[str]:
        """Go to the next frame and return the fields of its header; its first word must be `word`."""
        for _ in self.payload(_MAX_GREETING_BYTES):
            pass
        self._buffer = self._buffer[len(self._mark) :]
        while b"\n" not in self._buffer[:_MAX_FRAME_HEADER_BYTES]:
            if len(self._buffer) >= _MAX_FRAME_HEADER_BYTES:
                raise self._failed("sent an unexpected answer.")
            self._read()
        head, _, self._buffer = self._buffer.partition(b"\n")
        found, *rest = head.decode("utf-8", "replace").split(" ")
        if found != word:
            raise self._failed("sent an unexpected answer.")
        return rest

    def number(self, word: str) -> int:
        """Go to the next frame and return the number in its header."""
        words = self.frame(word)
        if len(words) != 1 or not words[0].isdigit() or len(words[0]) > 18:
            raise self._failed("sent an unexpected answer.")
        return int(words[0])

    def payload(self, limit: int) -> Iterator[bytes]:
        """Yield the bytes before the next mark; raises RemoteFailed if there are more than the limit."""
        taken = 0
        while True:
            at = self._buffer.find(self._mark)
            ready = at if at >= 0 else max(len(self._buffer) - len(self._mark), 0)
            taken += ready
            if taken > limit:
                raise self._failed("sent more than was requested.")
            yield self._buffer[:ready]
            self._buffer = self._buffer[ready:]
            if at >= 0:
                return
            self._read()

    def _read(self) -> None:
        self._waiting = time.monotonic()
        piece = self._pipe(self._process.stdout).read1(_READ_BYTES)  # type: ignore[attr-defined]
        self._waiting = None
        if not piece:
            raise self._failed(None)
        self._buffer += piece

    def _write(self, text: bytes, before: threading.Thread | None) -> None:
        if before is not None:
            before.join()
        # A broken connection is reported by the next read.
        with suppress(OSError, ValueError):
            self._pipe(self._process.stdin).write(text)
            self._pipe(self._process.stdin).flush()

    def _watch(self) -> None:
        while self._process.poll() is None:
            time.sleep(min(1.0, self._idle / 4))
            # Only time spent waiting for the host counts, not the time between two requests.
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
            self._stderr.seek(0)
            why = _explain(self._stderr.read(1 << 16))
        return RemoteFailed(f"{self._name}: {why}")

    @staticmethod
    def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
        assert pipe is not None
        return pipe


def _explain(stderr: bytes) -> str:
    """Return the last line that ssh or the host wrote to stderr, with advice for common errors."""
    lines = [line.strip() for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    if not lines:
        return "the connection ended early."
    last = lines[-1]
    if "Host key verification failed" in last:
        return f"{last} Connect once by hand, so that ssh knows the host."
    if "Permission denied" in last:
        return f"{last} No password is asked for here: use a key, and an agent if the key has a passphrase."
    return f"{last.rstrip('.')}."
