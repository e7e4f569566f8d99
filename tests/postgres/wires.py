"""A line to a server that can be cut."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Wire:
    """Passes on what is said to a port, until so many bytes went towards the server."""

    def __init__(self, port: int, bytes_until_cut: int) -> None:
        self._server = port
        self._left = bytes_until_cut
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._door.getsockname()[1]
        self.cuts = 0
        self._open: list[socket.socket] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._door.accept()
                far = socket.create_connection(("127.0.0.1", self._server))
                self._open += [near, far]
                threading.Thread(target=self._pass_on, args=(near, far, True), daemon=True).start()
                threading.Thread(target=self._pass_on, args=(far, near, False), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, counts: bool) -> None:
        with suppress(OSError):
            while said := source.recv(4096):
                if counts:
                    self._left -= len(said)
                    if self._left < 0:
                        self.cuts += 1
                        break
                target.sendall(said)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """No more."""
        for end in (self._door, *self._open):
            end.close()


@contextmanager
def wire(port: int, bytes_until_cut: int) -> Iterator[Wire]:
    """A line to a port, for a while."""
    found = Wire(port, bytes_until_cut)
    try:
        yield found
    finally:
        found.close()
