"""Hosts that may be named to the system's own ssh, and the command that connects to one."""

from __future__ import annotations

import re
import shutil
from typing import NamedTuple

from clew.errors import RemoteFailed, UsageError

CONNECT_SECONDS = 10

_HOST = r"(?P<host>[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,252}[A-Za-z0-9_])?|[0-9A-Fa-f]*:[0-9A-Fa-f]*:[0-9A-Fa-f:.]*)"
_USER = r"(?:(?P<user>[A-Za-z0-9_][A-Za-z0-9_.-]{0,63})@)?"
_PLAIN = re.compile(_USER + _HOST)
_ADDRESS = re.compile(r"ssh://" + _USER + r"(?P<open>\[)?" + _HOST + r"(?(open)\])(?::(?P<port>[0-9]{1,5}))?/?")

# No agent, display or port of ours goes over there, no prompt comes up here; the rest is the user's own configuration.
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
        """`host`, `user@host` or `ssh://user@host:port`; anything that ssh could take for an option is refused."""
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
        """The words of the command; no shell of ours ever sees them."""
        program = shutil.which("ssh")
        if program is None:
            raise RemoteFailed("ssh is not installed")
        port = ["-p", str(self.port)] if self.port else []
        user = ["-l", self.user] if self.user else []
        return [program, *_OPTIONS, *port, *user, "--", self.host, remote]
