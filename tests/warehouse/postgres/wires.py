"""A line to a server that can be cut."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


class Wire:
    """Passes on what is said to a port, until so many bytes went towards the server."""

    def __init__(self, port: int, bytes_until_cut: int) -> None:
        self._server = port
        self._left = bytes_until_cut
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._door.getsockname()[1]
        self.cuts = 0
        self._open: list[socket.socket] = [self._door]
        self._threads: list[threading.Thread] = []
        self._start(self._listen)

    def _start(self, work: Callable[..., None], *given: object) -> None:
        thread = threading.Thread(target=work, args=given, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._door.accept()
                far = socket.create_connection(("127.0.0.1", self._server))
                self._open += [near, far]
                self._start(self._pass_on, near, far, True)
                self._start(self._pass_on, far, near, False)

    def _pass_on(self, source: socket.socket, target: socket.socket, counts: bool) -> None:
        with suppress(OSError):
            while said := source.recv(4096):
                if counts:
                    self._left -= len(said)
                    if self._left < 0:
                        self.cuts += 1
                        break
                target.sendall(said)
        _shut(source, target)

    def close(self) -> None:
        """No more. A number that is free again may be another line's, so nobody listens any more when it is closed."""
        _shut(*self._open)
        for thread in self._threads:
            thread.join(10)
        _shut(*self._open)
        for end in self._open:
            end.close()


def _shut(*ends: socket.socket) -> None:
    for end in ends:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextmanager
def wire(port: int, bytes_until_cut: int) -> Iterator[Wire]:
    """A line to a port, for a while."""
    found = Wire(port, bytes_until_cut)
    try:
        yield found
    finally:
        found.close()
