"""The app as one run of it: socket, keys, pages, and the catalog kept fresh meanwhile."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from pathlib import Path

from clew.errors import UsageError
from clew.host import Host
from clew.web.app import make_app
from clew.web.guard import Keys, names
from clew.web.routes import pages
from clew.web.serve import bind, run
from clew.web.shelf import Shelf
from clew.web.syncing import Syncing
from clew.web.warming import warm

ALL_ADDRESSES = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}
"""What listens on all addresses of the machine, and the address that a link on the machine itself leads to."""


def listen(host: str, port: int | None, usual: int, is_allowed: bool) -> socket.socket:
    """A socket on the port that was named, or on the usual one, or on a free one where that is taken."""
    if port is not None:
        return bind(host, port, is_allowed=is_allowed)
    try:
        return bind(host, usual, is_allowed=is_allowed)
    except UsageError:
        return bind(host, 0, is_allowed=is_allowed)


class App:
    """One run of the app."""

    def __init__(
        self,
        hosts: Sequence[Host],
        folder: Path,
        listening: socket.socket,
        host: str,
        *,
        profile: str = "none",
        engine: str = "",
    ) -> None:
        self._listening, self._host = listening, host
        self._port: int = listening.getsockname()[1]
        self._hosts, self._folder, self._profile, self._engine = hosts, folder, profile, engine
        self._keys = Keys(self._port)
        self._syncing = Syncing([])

    def keep_fresh(self, options: Sequence[str], roots: Sequence[Path]) -> None:
        """Sync the catalog while the app runs."""
        self.follow(Syncing(options, roots))

    def follow(self, syncing: Syncing) -> None:
        """Let this keep the catalog fresh."""
        self._syncing = syncing
        syncing.start()

    def link(self) -> str:
        """The link that lets a browser in; it is good once. What stands behind the # is never sent."""
        name = ALL_ADDRESSES.get(self._host, self._host)
        return f"http://{_spelled(name)}:{self._port}/enter#token={self._keys.link}"

    def run(self, used: Callable[[], None]) -> None:
        """Serve until somebody stops it; `used` is called when a link was."""
        shelf = Shelf(self._hosts, self._folder, profile=self._profile, syncing=self._syncing, engine=self._engine)
        shelf.prepare(warm)
        is_everywhere = self._host in ALL_ADDRESSES
        own = names(self._port, () if is_everywhere else (_spelled(self._host),))
        try:
            run(make_app(pages(shelf), self._keys, own, used, any_address=is_everywhere), self._listening)
        finally:
            self._syncing.stop()
            shelf.close()
            self._listening.close()


def _spelled(host: str) -> str:
    return f"[{host}]" if ":" in host else host
