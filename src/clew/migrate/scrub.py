"""A native session cleaned in place: planned, kept as it was, rewritten whole, and looked for where it was not reached.

Records keep their shape, ids and order, so that the agent goes on with the session. What else holds the same values,
and is not the session's, is only named.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

import msgspec

from clew.agents.base import SourceFile
from clew.agents.sage_agent.locate import AGENT, MESSAGES
from clew.agents.target_profile import BESIDE
from clew.archive.layout import manifest_numbers, packs, refuse_links
from clew.archive.recovering import recovered
from clew.archive.state import load
from clew.datadir import private_folder
from clew.errors import Busy, ClewError, PathRefused, SourceUnreadable
from clew.io.atomic import replacing
from clew.io.codec import dumps
from clew.io.compress import SUFFIXES, open_source, packer
from clew.redact.native import learn_file, masked_parts
from clew.redact.tree import Redactor
from clew.store.lock import WAIT, locked
from clew.store.system import SYSTEM

_PIECE = 1 << 20
_OVERLAP = 1 << 14
_MOST_FORMS = 4000
_LEAST = 8
"""Shorter values are not looked for elsewhere: they would be found by chance."""


class Dirty(msgspec.Struct, frozen=True):
    """A file that holds something: how many of its parts would change, and how it was when that was found."""

    path: Path
    changes: int
    size: int
    mtime_ns: int


def files_of(source: SourceFile) -> list[Path]:
    """Every file of a session, and the one in which its packed original may lie, which is emptied."""
    folder = source.path.parent
    return [source.path, *(folder / name for name in (*source.parts, *source.sides, source.path.name + BESIDE))]


def plan(source: SourceFile, redactor: Redactor) -> list[Dirty]:
    """The files of a session that would change. What is found in one of them is looked for in all."""
    # Not Path.is_file, which raises where a name is too long, as with the suffix of a packed original.
    files = [path for path in files_of(source) if os.path.isfile(path)]  # noqa: PTH113
    for path in files:
        learn_file(partial(open_source, path), redactor)
    if redactor.is_clean:
        return []
    return [dirty for path in files if (dirty := _look(path, redactor)) is not None]


def _look(path: Path, redactor: Redactor) -> Dirty | None:
    before = path.stat()
    changes = sum(raw != masked for raw, masked in masked_parts(partial(open_source, path), redactor))
    return Dirty(path, changes, before.st_size, before.st_mtime_ns) if changes else None


def other_name(path: Path) -> str | None:
    """Why replacing a file would leave its old content under another name; None where it would not."""
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        return f"is a link to {path.resolve()}, which would keep what is masked here; name that file instead"
    if found.st_nlink > 1:
        others = f"{found.st_nlink - 1} other hard link{'s' if found.st_nlink > 2 else ''}"
        return f"has {others}, which would keep what is masked here; remove them, or make this file a copy of its own"
    return None


def carry_out(source: SourceFile, steps: Iterable[Dirty], redactor: Redactor, kept: Path) -> list[Path]:
    """Rewrite the files, each after a copy of it was put below `kept`; returns the copies."""
    with _held(source) as old:
        copies = []
        for step in steps:
            copies.append(_rewrite(step, redactor, kept))
            if old is not None and step.path == source.path:
                # Who has the log open still would write to a file that is gone; of an emptied one they are told.
                SYSTEM.truncate(old, 0)
        return copies


def _held(source: SourceFile) -> AbstractContextManager[int | None]:
    """The lock of a session of the store; other agents have none to take."""
    is_ours = source.agent == AGENT and source.path.name == MESSAGES
    return locked(SYSTEM, source.path, WAIT) if is_ours else nullcontext()


def _rewrite(step: Dirty, redactor: Redactor, kept: Path) -> Path:
    """Replace one file; its times stay, because agents take the file written last for the one to go on with."""
    path = step.path
    before = path.stat()
    copy = _keep(path, kept)
    with replacing(path, stat.S_IMODE(before.st_mode)) as out:
        packed = packer(SUFFIXES.get(path.suffix))(out)
        for _, masked in masked_parts(partial(open_source, path), redactor):
            packed.write(masked)
        if packed is not out:
            packed.close()
        now = path.stat()
        if (now.st_size, now.st_mtime_ns) != (step.size, step.mtime_ns):
            raise Busy(f"{path}: another program writes to it; it was not changed")
        if (reason := other_name(path)) is not None:
            raise PathRefused(f"{path} {reason}")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    return copy


def _keep(path: Path, kept: Path) -> Path:
    """A copy of a file, for its owner alone."""
    number, copy = 1, kept / path.name
    while copy.exists():
        number += 1
        copy = kept / str(number) / path.name
    private_folder(str(copy.parent))
    with replacing(copy) as out, path.open("rb") as stream:
        for piece in iter(lambda: stream.read(_PIECE), b""):
            out.write(piece)
    return copy


def leftovers(values: Iterable[str], folders: Iterable[Path]) -> Iterator[Path]:
    """The files below folders that still hold one of the values, as it is or as JSON spells it."""
    forms = sorted({form for value in values if len(value) >= _LEAST for form in _forms(value)}, key=len, reverse=True)
    if not forms:
        return
    pattern = re.compile(b"|".join(map(re.escape, forms[:_MOST_FORMS])))
    for folder in dict.fromkeys(folders):
        for place, _, names in os.walk(folder, followlinks=False):
            for name in sorted(names):
                path = Path(place) / name
                if _holds(path, pattern):
                    yield path


def is_archived(folder: Path, sessions: Iterable[tuple[str, str]]) -> bool:
    """True where an archive has versions of the files of sessions, each given by agent and id, or cannot tell."""
    try:
        refuse_links(folder)
        if not manifest_numbers(folder) and not packs(folder):
            return False
        state = load(folder)
    except ClewError:
        return True
    if state.lost or recovered(state):
        return True
    return not {(version.agent, version.session) for version in state.versions()}.isdisjoint(sessions)


def _forms(value: str) -> Iterator[bytes]:
    yield value.encode("utf-8", "surrogatepass")
    try:
        yield dumps(value)[1:-1]
        yield dumps(dumps(value).decode())[3:-3]
    except UnicodeEncodeError:
        return


def _holds(path: Path, pattern: re.Pattern[bytes]) -> bool:
    """True for a file that can be read and holds something; packed ones are unpacked."""
    kept = b""
    try:
        with open_source(path) as stream:
            for piece in iter(lambda: stream.read(_PIECE), b""):
                if pattern.search(kept + piece) is not None:
                    return True
                kept = piece[-_OVERLAP:]
    except (OSError, SourceUnreadable):
        return False
    return False
