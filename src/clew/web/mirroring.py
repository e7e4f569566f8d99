"""A copy of what a server has, kept in step while the app runs."""

from __future__ import annotations

from pathlib import Path

from clew.errors import Busy, ClewError
from clew.host import Host
from clew.web.syncing import Syncing


class Mirroring(Syncing):
    """Looks at the server now and then, and copies what is new."""

    def __init__(self, url: str, folder: Path) -> None:
        super().__init__([])
        self._url, self._folder = url, folder

    def _sync(self) -> None:
        from clew.warehouse.postgres.mirror import mirror

        try:
            mirror(self._url, self._folder)
            self.state = "fresh"
        except Busy:
            self.state = "fresh"
        except ClewError:
            # The next look may find it again; until then, what was copied is shown.
            self.state = "failed"


def no_home(folder: Path) -> Host:
    """A home without sessions: what is shown does not come from this machine."""
    return Host.at(folder / "no-home")
