"""The state of one file at one moment, and how two states compare."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from clew.io.safe_write import WIDEST

INTERRUPTED = "a tool that was to change it was interrupted"
"""The reason of a state that is not known, because no record says how the tool ended."""


class FileState(msgspec.Struct, frozen=True, gc=False):
    """A file at one moment."""

    digest: str | None
    """None: there is no file. Empty: there is one, and its content is not known."""
    mode: int | None = None
    missing: str | None = None
    """Why its content is not kept."""
    size: int = 0
    text: str | None = None
    """Its content, where the record itself holds it."""
    backup: str | None = None
    """The name of a copy that another program made."""
    link: bytes | None = None
    """The target, if it is a link."""

    @property
    def is_nothing(self) -> bool:
        """Return whether there is neither a file nor a link."""
        return self.digest is None and self.link is None

    def same_as(self, other: FileState) -> bool:
        """Return whether content and mode are equal, as far as they can be restored."""
        if self.link is not None or other.link is not None:
            # With a reason, the file behind the link was not read, and may have changed.
            return self.link == other.link and self.missing is None and other.missing is None
        if self.digest != other.digest or self.digest == "":
            return False
        return self.mode is None or other.mode is None or self.mode & WIDEST == other.mode & WIDEST


NO_FILE = FileState(None)


class StateChange(NamedTuple):
    """A file before and after a tool, an undo or a redo."""

    before: FileState
    after: FileState

    @property
    def is_of_links(self) -> bool:
        """Return whether there was no file before or after, but a link."""
        if self.before.digest is not None or self.after.digest is not None:
            return False
        return self.before.link is not None or self.after.link is not None
