"""A real sshd on loopback, with keys and a configuration of its own, and a home that is nobody's."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import clew
from tests.demo_home import write_small_demo

SERVER = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
CLIENT = shutil.which("ssh")
LONG_AGO = 1_700_000_000
"""What was written just now may still change; what is old is settled."""


class Box:
    """Another machine, as far as ssh can tell. Its alias is `box`; `down` is a host where nobody listens."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "over there"
        self.bin = folder / "bin"
        self.log = folder / "sshd.log"
        self.shell = "/bin/sh"
        self.home.mkdir()
        self.bin.mkdir()
        for key in ("host", "user"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)]
            subprocess.run(command, check=True)
        self.port, dead = _free_port(), _free_port()
        self._configure_server()
        self._configure_client(dead)
        self.on_login()

    def on_login(self, *lines: str) -> None:
        """What happens between a login and the command that was asked for."""
        script = [
            "#!/bin/sh",
            f"HOME='{self.home}'; SHELL={self.shell}; export HOME SHELL",
            'cd "$HOME"',
            *lines,
            'exec "$SHELL" -c "$SSH_ORIGINAL_COMMAND"',
        ]
        _write_program(self.folder / "login", script)

    def _configure_server(self) -> None:
        (self.folder / "sshd_config").write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self.folder / 'host'}\nPidFile none\n"
            f"AuthorizedKeysFile {self.folder / 'user.pub'}\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n"
            f"PasswordAuthentication no\nKbdInteractiveAuthentication no\nLogLevel VERBOSE\nPrintMotd no\n"
            f"ForceCommand '{self.folder / 'login'}'\n"
        )

    def _configure_client(self, dead: int) -> None:
        public = (self.folder / "host.pub").read_text().split()
        (self.folder / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {public[0]} {public[1]}\n")
        shared = (
            f"  HostName 127.0.0.1\n  User {pwd.getpwuid(os.getuid()).pw_name}\n  IdentitiesOnly yes\n"
            f"  IdentityFile {self.folder / 'user'}\n  UserKnownHostsFile {self.folder / 'known_hosts'}\n"
        )
        (self.folder / "config").write_text(
            f"Host box\n  Port {self.port}\n{shared}Host down\n  Port {dead}\n{shared}"
            f"Host stranger\n  Port {self.port}\n{shared.replace('known_hosts', 'nobody')}"
        )
        _write_program(self.bin / "ssh", ["#!/bin/sh", f"exec '{CLIENT}' -F '{self.folder / 'config'}' \"$@\""])

    def sessions(self) -> int:
        """How many there are, read on the spot."""
        return len(list(clew.sessions(self.home)))

    def connections(self) -> int:
        """How often somebody came in so far."""
        return self.log.read_text(errors="replace").count("Accepted publickey")


def _write_program(path: Path, lines: list[str]) -> None:
    path.write_text("\n".join(lines) + "\n")
    path.chmod(0o755)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def box(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Box]:
    """The other machine, with the demo as its home; `ssh` finds it."""
    if SERVER is None or CLIENT is None:
        pytest.skip("sshd is not installed")
    if os.getuid() == 0:
        # The server refuses to start for root without it.
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    box = Box(tmp_path_factory.mktemp("box"))
    write_small_demo(box.home)
    for path in box.home.rglob("*"):
        os.utime(path, (LONG_AGO, LONG_AGO))
    monkeypatch.setenv("PATH", f"{box.bin}{os.pathsep}{os.environ['PATH']}")
    with box.log.open("wb") as log:
        server = subprocess.Popen([SERVER, "-D", "-e", "-f", str(box.folder / "sshd_config")], stderr=log)
    try:
        _wait_for(server, box)
        yield box
    finally:
        server.terminate()
        server.wait(10)


def _wait_for(server: subprocess.Popen[bytes], box: Box) -> None:
    for _ in range(200):
        assert server.poll() is None, box.log.read_text()
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", box.port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"sshd does not listen: {box.log.read_text()}")
