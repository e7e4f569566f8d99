"""What was seen of a workspace last, kept beside the record of that look.

A look has a name, and its record says it. What was seen is written before the record, into a file of its own, and takes
its place behind it. So whoever is killed in between leaves what the last record saw, or what the new one did, and never
one that is taken for the other. Where neither is there, what the last look saw is not known.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from clew.errors import SourceUnreadable
from clew.io.blobs import digest_of
from clew.io.compress import open_regular
from clew.io.filesystem import System, replace_file

ALL = "workspace-*.seen"
"""Every such file of a session."""
_NEXT = "-next"


class Seen(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A file as it was when it was read."""

    size: int
    changed: int
    touched: int
    inode: int
    mode: int
    digest: str
    """Empty where it could not be read."""
    missing: str | None = None
    """Why its content is not kept."""
    unsure: bool = False
    """It may have changed since without looking different."""
    link: bytes | None = None
    """Where it leads, if it is a link; then there is no digest."""

    def looks_like(self, found: os.stat_result) -> bool:
        """True where it need not be read again; what could not be kept is tried again."""
        return (
            self.touched == found.st_ctime_ns
            and not self.unsure
            and self.missing is None
            and self.changed == found.st_mtime_ns
            and self.size == found.st_size
            and self.inode == found.st_ino
        )


Files = dict[str, Seen]


class Look(msgspec.Struct, array_like=True):
    """A whole workspace as it was seen at once."""

    named: Files
    odd: dict[bytes, Seen] = {}
    """Those whose names are no text."""
    links: bool = False
    """False where an earlier version wrote it, which did not look at links."""
    name: str = ""
    """The same as in the record of this look."""

    def beside(self, now: Files) -> tuple[Files, Files]:
        """What was seen, and what is there now, as far as they can be compared."""
        if self.links:
            return self.named, now
        # That a link is there does not mean that it is new.
        return self.named, {path: seen for path, seen in now.items() if seen.link is None}


_decoder = msgspec.msgpack.Decoder(Look)


class Sightings:
    """The last look at one workspace."""

    def __init__(self, place: Path, system: System) -> None:
        self._place, self._next, self._system = place, _next_to(place), system
        self._held: dict[Path, tuple[tuple[int, ...], Look]] = {}

    def last(self) -> Look | None:
        """Whatever was seen last, also if its record was never made."""
        return self._read(self._place) or self._read(self._next)

    def of(self, name: str) -> Look | None:
        """What the look of this name saw; None where that is not known any more."""
        looks = (self._read(place) for place in (self._place, self._next))
        return next((look for look in looks if look is not None and look.name == name), None)

    @contextmanager
    def noting(self, files: Files, before: str | None) -> Iterator[str]:
        """Keep what was seen, as long as its record is made; gives its name. `before` is that of the last record.

        It can be done without, so where it cannot be kept, that stops nobody.
        """
        known = self.of(before) if before is not None else None
        if known is not None and known.links and known.named == files:
            yield known.name  # nothing has changed, so it is the same look
            return
        name = secrets.token_hex(6)
        with suppress(OSError):
            self._settle(before)
            self._write(Look(files, {}, True, name))
        yield name
        with suppress(OSError):
            self._settle(name)

    def _settle(self, name: str | None) -> None:
        """Have the look of the last record take its place, if it does not have it."""
        following = self._read(self._next)
        if following is not None and following.name == name:
            self._system.replace(self._next, self._place)
            self._hold(self._place, following)

    def _write(self, look: Look) -> None:
        # It need not be durable, only whole.
        replace_file(self._system, self._next, spelled_look(look), durable=False)
        self._hold(self._next, look)

    def _hold(self, place: Path, look: Look) -> None:
        stamp = _stamp(place)
        self._held.clear()
        if stamp is not None:
            self._held[place] = (stamp, look)

    def _read(self, place: Path) -> Look | None:
        """A look, all names spelled alike; read again only where another process wrote it."""
        stamp = _stamp(place)
        if stamp is None:
            return None
        if place not in self._held or self._held[place][0] != stamp:
            found = read_look(place)
            if found is None:
                return None
            self._held[place] = (stamp, found)
        return self._held[place][1]


def place_of(folder: Path, root: Path | str) -> Path:
    """The file for a workspace."""
    return folder / ALL.replace("*", digest_of(os.fsencode(root))[:16])


def places_of(folder: Path, root: Path | str) -> tuple[Path, Path]:
    """The same, and the one that takes its place."""
    return place_of(folder, root), _next_to(place_of(folder, root))


def _next_to(place: Path) -> Path:
    return place.with_name(f"{place.stem}{_NEXT}{place.suffix}")


def _stamp(place: Path) -> tuple[int, ...] | None:
    try:
        found = place.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def read_look(path: Path) -> Look | None:
    """The file itself, all names in one; None where it cannot be read."""
    try:
        with open_regular(path)[0] as stream:
            found = _decoder.decode(stream.readall())
    except (OSError, SourceUnreadable, msgspec.MsgspecError):
        return None
    found.named.update({os.fsdecode(name): seen for name, seen in found.odd.items()})
    return found


def spelled_look(look: Look) -> bytes:
    """What was seen, as the file holds it."""
    try:
        return msgspec.msgpack.encode(Look(look.named, {}, look.links, look.name))
    except UnicodeEncodeError:
        odd = {name: seen for name, seen in look.named.items() if not name.isascii() and _is_odd(name)}
        named = {name: seen for name, seen in look.named.items() if name not in odd}
        by_bytes = {os.fsencode(name): seen for name, seen in odd.items()}
        return msgspec.msgpack.encode(Look(named, by_bytes, look.links, look.name))


def _is_odd(name: str) -> bool:
    return re.search("[\ud800-\udfff]", name) is not None
