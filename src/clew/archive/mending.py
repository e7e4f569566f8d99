"""Damage made good: chunks that came again from their sources take the place of those that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import msgspec

from clew.archive.health import Found, touched, unreadable, unreadable_dictionaries, write_health
from clew.archive.layout import Block, Version
from clew.archive.pruning import Plan, prune
from clew.archive.reading import Reader
from clew.archive.state import State, needed, runs_of
from clew.archive.writing import Writer
from clew.errors import SourceUnreadable


def mend(writer: Writer, found: Found) -> None:
    """Let every version use what can be read. What cannot be made good stays as it is."""
    state = writer.state
    bad = unreadable(state, found.damaged)
    moved = dict(_moved(writer, bad))
    reader = Reader(writer.folder, state)
    try:
        mended = sum(_remap(reader, version, moved) for version in touched(state, state.versions(), bad))
    finally:
        reader.close()
    if mended or found.headless or _can_go(state, found, bad):
        prune(writer, Plan([], list(state.versions()), state.stored, state.stored), found=found)
    else:
        write_health(writer.folder, state, found.damaged, writer.system)


def _can_go(state: State, found: Found, bad: set[Block]) -> bool:
    """True where something damaged is needed by nobody, or is there once more."""
    marks = needed(state, list(state.versions()))
    still = {block for block in bad if marks.find(1, block.first, block.first + block.count) >= 0}
    digests = {block.digest for block in still}
    spoiled = unreadable_dictionaries(state, found.damaged) & {block.dictionary for block in still}
    wanted = [part for part in found.damaged if part.digest in digests or getattr(part, "number", 0) in spoiled]
    return len(wanted) < len(found.damaged)


def _moved(writer: Writer, bad: set[Block]) -> Iterator[tuple[int, int]]:
    """Where the chunks of damaged blocks are now, by their hashes; a hash that is damaged itself names none."""
    known = writer.index()
    reader = Reader(writer.folder, writer.state)
    for block in bad:
        with suppress(SourceUnreadable, OSError):
            for at, (length, name) in enumerate(zip(*reader.table(block), strict=True)):
                if length and name in known:
                    yield block.first + at, known[name]
    reader.close()


def _remap(reader: Reader, version: Version, moved: dict[int, int]) -> bool:
    """Let a version use the chunks that came again; False where that does not give its content."""
    runs = zip(version.runs[::2], version.runs[1::2], strict=True)
    chunks = (moved.get(chunk, chunk) for first, count in runs for chunk in range(first, first + count))
    mended = msgspec.structs.replace(version, runs=runs_of(chunks))
    try:
        for _ in reader.pieces(mended):
            pass
    except (SourceUnreadable, OSError):
        return False
    versions = reader.state.files[version.place, version.path]
    versions[versions.index(version)] = mended
    return True
