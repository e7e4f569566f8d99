"""A PostgreSQL server for tests and measurements: in a folder that goes away, on loopback, with a password."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

USER = "loom"
_PLACES = "/usr/lib/postgresql"
_SERVANTS = ("postgres", "nobody")
"""Whose name the server runs under where we are root: it refuses to be root."""
_PATIENCE = 30.0
_READY = "ready to accept connections"


class Server(NamedTuple):
    """A server that runs."""

    port: int
    password: str
    folder: Path

    def url(self, database: str = "postgres", user: str = USER, password: str | None = None) -> str:
        """Where a database of it is."""
        return f"postgresql://{user}:{password or self.password}@127.0.0.1:{self.port}/{database}"

    @property
    def log(self) -> str:
        """Everything the server has said."""
        return (self.folder / "log").read_text(errors="replace")


def binaries() -> Path | None:
    """The folder with initdb and postgres; None where they are not installed."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    versions = sorted(Path(_PLACES).glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return versions[-1].parent if versions else None


def missing() -> str | None:
    """Why no server can be started; None where one can."""
    if binaries() is None:
        return "PostgreSQL is not installed; on Debian: apt install postgresql"
    if os.geteuid() == 0 and (_servant() is None or shutil.which("setpriv") is None):
        return "as root, PostgreSQL wants another user to run as, and setpriv"
    return None


def _servant() -> pwd.struct_passwd | None:
    for name in _SERVANTS:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    return None


def _as_servant(command: Sequence[str]) -> list[str]:
    if os.geteuid() != 0:
        return list(command)
    servant = _servant()
    assert servant is not None
    return ["setpriv", f"--reuid={servant.pw_uid}", f"--regid={servant.pw_gid}", "--clear-groups", *command]


@contextmanager
def running(*settings: str) -> Iterator[Server]:
    """A new server, until the end; `settings` are as `postgres -c` takes them."""
    folder = Path(tempfile.mkdtemp(prefix="clew-pg-"))
    process = None
    try:
        server = _prepared(folder)
        process = _started(server, settings)
        yield server
    finally:
        if process is not None:
            # A fast end: SIGTERM would wait for every client that is still there.
            process.send_signal(signal.SIGINT)
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _prepared(folder: Path) -> Server:
    place = binaries()
    assert place is not None
    server = Server(_free_port(), secrets.token_hex(12), folder)
    secret = folder / "password"
    secret.write_text(server.password)
    if os.geteuid() == 0:
        servant = _servant()
        assert servant is not None
        for path in (folder, secret):
            os.chown(path, servant.pw_uid, servant.pw_gid)
    options = ["--no-sync", "--encoding=UTF8", "--locale=C.UTF-8", "--auth=scram-sha-256", f"--username={USER}"]
    command = [str(place / "initdb"), *options, f"--pwfile={secret}", "-D", str(folder / "base")]
    subprocess.run(_as_servant(command), check=True, stdout=subprocess.DEVNULL, cwd=folder)
    return server


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _started(server: Server, settings: Sequence[str]) -> subprocess.Popen[bytes]:
    place = binaries()
    assert place is not None
    chosen = [f"port={server.port}", "listen_addresses=127.0.0.1", f"unix_socket_directories={server.folder}"]
    flags = [word for setting in (*chosen, *settings) for word in ("-c", setting)]
    command = _as_servant([str(place / "postgres"), "-D", str(server.folder / "base"), *flags])
    with (server.folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=server.folder)
    end = time.monotonic() + _PATIENCE
    while _READY not in server.log:
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"the server did not start: {server.log[-2000:]}")
        time.sleep(0.05)
    return process
