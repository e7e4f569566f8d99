"""Masks secrets in the native files of a session, in place, and finds other files that contain them.

Records keep their shape, ids and order, so that the agent can continue the session. Originals are kept in a private
folder. Files that do not belong to the session are only named.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

import msgspec

from clew.agents.sage_agent.locate import AGENT, MESSAGES
from clew.agents.source import SourceFile, open_main, source_state
from clew.agents.target_profile import ORIGINAL_FILE_SUFFIX
from clew.archive.archive import open_archive
from clew.archive.records import INDEX, check_folder, pack_names
from clew.datadir import private_folder
from clew.errors import Busy, ClewError, PathRefused, SourceUnreadable
from clew.io.atomic import replacing
from clew.io.codec import dumps
from clew.io.compress import SUFFIXES, open_source, packer
from clew.io.database_paths import is_in_database
from clew.io.file_lock import locked
from clew.io.filesystem import SYSTEM
from clew.io.paths import walk
from clew.redact.native_files import learn_file, masked_parts
from clew.redact.redactor import Redactor

_PIECE_BYTES = 1 << 20
_OVERLAP_BYTES = 1 << 14
_MAX_SEARCHED_FORMS = 4000
_MIN_SEARCHED_CHARACTERS = 8
"""Shorter values are not searched for elsewhere: they would be found by chance."""


class Dirty(msgspec.Struct, frozen=True):
    """A file with secrets: how many of its parts would change, and its size and time when that was found."""

    path: Path
    changes: int
    size: int
    mtime_ns: int


def files_of(source: SourceFile) -> list[Path]:
    """Every file of a session, and the file that may have its packed original, which is emptied."""
    folder = source.path.parent
    return [
        source.path,
        *(folder / name for name in (*source.parts, *source.sides, source.path.name + ORIGINAL_FILE_SUFFIX)),
    ]


def plan(source: SourceFile, redactor: Redactor) -> list[Dirty]:
    """The files of a session that would change. What is found in one of them is masked in all.

    Rows of a database are planned too, although they are not changed: then `other_name` says so.
    """
    # Not Path.is_file, which raises where a name is too long, as with the suffix of a packed original.
    files = {path: partial(open_source, path) for path in files_of(source) if os.path.isfile(path)}  # noqa: PTH113
    if is_in_database(str(source.path)):
        files[source.path] = partial(open_main, source)
    for opened in files.values():
        learn_file(opened, redactor)
    if redactor.is_clean:
        return []
    found: list[Dirty] = []
    for path, opened in files.items():
        before = source_state(source) if path == source.path else path.stat()
        changes = sum(raw != masked for raw, masked in masked_parts(opened, redactor))
        if changes:
            found.append(Dirty(path, changes, before.st_size, before.st_mtime_ns))
    return found


def other_name(path: Path) -> str | None:
    """Why replacing a file would leave its old content under another name; None where it would not."""
    if is_in_database(str(path)):
        return "is in a database of the agent, which clew never changes"
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        return f"is a link to {path.resolve()}, which would keep what is masked here; name that file instead"
    if found.st_nlink > 1:
        others = f"{found.st_nlink - 1} other hard link{'s' if found.st_nlink > 2 else ''}"
        return f"has {others}, which would keep what is masked here; remove them, or make this file a copy of its own"
    return None


def carry_out(source: SourceFile, steps: Iterable[Dirty], redactor: Redactor, kept: Path) -> list[Path]:
    """Rewrite the files, each after a copy of it was put below `kept`; returns the copies."""
    # Sessions of the store have a lock; other agents' have none.
    is_ours = source.agent == AGENT and source.path.name == MESSAGES
    lock: AbstractContextManager[int | None] = locked(SYSTEM, source.path) if is_ours else nullcontext()
    with lock:
        return [_rewrite(step, redactor, kept) for step in steps]


def _rewrite(step: Dirty, redactor: Redactor, kept: Path) -> Path:
    """Replace one file; its times stay, because agents continue the session that was written last."""
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
        shutil.copyfileobj(stream, out)
    return copy


def leftovers(values: Iterable[str], folders: Iterable[Path]) -> Iterator[Path]:
    """The files below folders that still contain one of the values, as it is or escaped in JSON."""
    searched = (value for value in values if len(value) >= _MIN_SEARCHED_CHARACTERS)
    forms = sorted({form for value in searched for form in _encoded_forms(value)}, key=len, reverse=True)
    if not forms:
        return
    pattern = re.compile(b"|".join(map(re.escape, forms[:_MAX_SEARCHED_FORMS])))
    for folder in dict.fromkeys(folders):
        for parent, _, names in walk(folder):
            for name in sorted(names):
                if _contains(Path(parent) / name, pattern):
                    yield Path(parent) / name


def is_archived(folder: Path, sessions: Iterable[tuple[str, str]]) -> bool:
    """True where an archive has versions of these sessions (agent and id), or where it cannot be read completely."""
    try:
        check_folder(folder)
        if not (folder / INDEX).exists() and not pack_names(folder):
            return False
        with open_archive(folder) as archive:
            is_readable = not any(row.damage for row in archive.index.packs().values())
            archived = {(version.agent, version.session) for _, version in archive.index.version_rows()}
    except ClewError:
        return True
    return not is_readable or not archived.isdisjoint(sessions)


def _encoded_forms(value: str) -> Iterator[bytes]:
    yield value.encode("utf-8", "surrogatepass")
    try:
        yield dumps(value)[1:-1]
        yield dumps(dumps(value).decode())[3:-3]
    except UnicodeEncodeError:
        return


def _contains(path: Path, pattern: re.Pattern[bytes]) -> bool:
    """True for a file that can be read and matches; compressed files are decompressed."""
    overlap = b""
    try:
        with open_source(path) as stream:
            for piece in iter(lambda: stream.read(_PIECE_BYTES), b""):
                if pattern.search(overlap + piece) is not None:
                    return True
                overlap = piece[-_OVERLAP_BYTES:]
    except (OSError, SourceUnreadable):
        return False
    return False
