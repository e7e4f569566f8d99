"""What an archive lets go of, by a policy: first a plan, and only then the work.

A chunk that some version needs stays, whatever happens to others. The new packs and a manifest that says everything
are on disk before an old pack goes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeVar

import msgspec

from clew.archive.blocks import RAW
from clew.archive.health import Found, examine, look, unreadable, unreadable_dictionaries, write_health
from clew.archive.layout import DAMAGED, HASH_BYTES, Block, Dictionary, Version, open_inside, pack_path
from clew.archive.reading import Reader
from clew.archive.recovering import is_understood, stray_bytes
from clew.archive.state import State, needed
from clew.archive.writing import Writer, replace_all
from clew.errors import SourceUnreadable
from clew.io.filesystem import make_folder, replace_file

DAY_US = 86_400 * 1_000_000
_SET_ASIDE = re.compile(r"(?:captures|packs)-[0-9]{8,}\.(?:manifest|pack-at-[0-9]+)")
"""What clew calls a file in `damaged`."""
AnyPart = TypeVar("AnyPart", Block, Dictionary)


class Policy(NamedTuple):
    """What is kept; None is no limit."""

    keep_days: float | None = None
    """Sessions that were written to in the last days."""
    keep_versions: int | None = None
    """Of each file so many versions, the newest."""
    max_size: int | None = None
    """The packs are no larger; what was not written to for longest goes first."""


class Plan(NamedTuple):
    """What would go."""

    dropped: list[Version]
    kept: list[Version]
    size: int
    """Of the packs now."""
    left: int
    """About what is left of them."""


def plan(state: State, policy: Policy, now_us: int) -> Plan:
    """Decide which versions go."""
    kept: list[Version] = []
    dropped: list[Version] = []
    active = activity(state)
    for versions in state.files.values():
        many = len(versions) - policy.keep_versions if policy.keep_versions is not None else 0
        for at, version in enumerate(versions):
            last_us = active[version.place, version.main] // 1000
            is_old = policy.keep_days is not None and last_us < now_us - policy.keep_days * DAY_US
            (dropped if at < many or is_old else kept).append(version)
    if policy.max_size is not None:
        gone = _too_large(state, kept, active, policy.max_size)
        dropped += [version for version in kept if (version.place, version.main) in gone]
        kept = [version for version in kept if (version.place, version.main) not in gone]
    return Plan(dropped, kept, state.stored, _size(state, kept))


def activity(state: State) -> dict[tuple[int, bytes], int]:
    """When each session was last written to, by its main file: its files stay or go together.

    A file that was only touched, or copied back, was not written to. What is shared is as young as the youngest
    session that may need it.
    """
    found: dict[tuple[int, bytes], int] = {}
    youngest: dict[tuple[int, str], int] = {}
    for version in state.versions():
        of, agent = (version.place, version.main), (version.place, version.agent)
        found[of] = max(found.get(of, 0), version.written_ns)
        youngest[agent] = max(youngest.get(agent, 0), version.written_ns)
    for version in state.versions():
        if version.role == "shared":
            found[version.place, version.main] = youngest[version.place, version.agent]
    return found


def _too_large(
    state: State, kept: Sequence[Version], active: dict[tuple[int, bytes], int], limit: int
) -> set[tuple[int, bytes]]:
    """The sessions, whole ones, that must go until the rest fits: those first that were not written to for longest."""
    shared = {(one.place, one.main) for one in kept if one.role == "shared"}
    order = sorted({(one.place, one.main) for one in kept}, key=lambda of: (active[of], of in shared, of))
    low, high = 0, len(order)
    while low < high:
        middle = (low + high) // 2
        stays = set(order[middle:])
        if _size(state, [one for one in kept if (one.place, one.main) in stays]) <= limit:
            high = middle
        else:
            low = middle + 1
    return set(order[:low])


def _size(state: State, kept: Sequence[Version]) -> int:
    """About how large the packs are with these versions alone."""
    marks = needed(state, kept)
    whole = 0.0
    for block in state.blocks:
        live = marks.count(1, block.first, block.first + block.count)
        whole += block.size * live / block.live
    return round(whole) + sum(entry.size for entry in _used(state, marks))


def _used(state: State, marks: bytearray, spoiled: Collection[int] = ()) -> list[Dictionary]:
    """The dictionaries that some block needs, and of each agent the newest unless nobody can read it."""
    numbers = {block.dictionary for block in state.blocks if marks.count(1, block.first, block.first + block.count)}
    newest = {entry.agent: entry.number for entry in state.dictionaries if entry.number not in spoiled}
    numbers |= set(newest.values())
    return [entry for entry in state.dictionaries if entry.number in numbers]


def prune(writer: Writer, decided: Plan, repack: bool = False, found: Found | None = None) -> None:
    """Let go of what was decided on; with `repack` every block is packed anew. What is damaged stays as it is.

    Bytes of a pack that belong to nothing are kept in `damaged`, unless something was dropped: they may be of that.
    A pack that holds parts of another archive, or nothing that can be read, is not touched.
    """
    state = writer.state
    wrong = look(writer.folder, state) if found is None else found
    marks = needed(state, decided.kept)
    used = _used(state, marks, unreadable_dictionaries(state, wrong.damaged))
    gone = {block.pack for block in state.blocks if repack or _is_worn(block, marks)}
    gone |= {entry.pack for entry in state.dictionaries if entry not in used}
    gone |= {part.pack for part in (*wrong.headless, *wrong.damaged)}
    gone = {number for number in gone if is_understood(writer.folder, state, number, wrong.headless)}
    reader = Reader(writer.folder, state)
    try:
        if gone:
            writer.begin_pack()
        dictionaries = [_moved(writer, reader, entry) if entry.pack in gone else entry for entry in used]
        blocks = [block for block in state.blocks if block.pack not in gone]
        bad = unreadable(state, wrong.damaged)
        for group in _groups([block for block in state.blocks if block.pack in gone], bad):
            blocks += _rewritten(writer, reader, group, marks, bad, repack)
    finally:
        reader.close()
    writer.sync()
    if not decided.dropped:
        _keep_stray(writer, gone)
    state.retired |= gone
    state.blocks = sorted(blocks, key=lambda block: block.first)
    state.dictionaries = dictionaries
    state.files = _left(state, decided.kept)
    replace_all(writer.folder, state, writer.system)
    if decided.dropped:
        _empty_damaged(writer)
    _tell_health(writer, wrong)


def _keep_stray(writer: Writer, gone: Collection[int]) -> None:
    """Copy what belongs to no part out of packs that are given up: it may be what is left of a damaged one."""
    state = writer.state
    for number in sorted(gone):
        path = pack_path(writer.folder, number)
        if not path.exists():
            continue
        own = [part for part in state.parts() if part.pack == number]
        with open_inside(path) as stream:
            for start, end in stray_bytes(own, path.stat().st_size):
                stream.seek(start)
                make_folder(writer.system, writer.folder / DAMAGED)
                place = writer.folder / DAMAGED / f"{path.parent.name}-{path.name}-at-{start}"
                replace_file(writer.system, place, stream.read(end - start))


def _empty_damaged(writer: Writer) -> None:
    """Remove what was set aside: it may hold what was dropped. What is not known there stays."""
    folder = writer.folder / DAMAGED
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        if _SET_ASIDE.fullmatch(path.name):
            writer.system.unlink(path)
    with suppress(OSError):
        writer.system.rmdir(folder)


def _tell_health(writer: Writer, wrong: Found) -> None:
    """Keep what is still damaged, wherever it is now."""
    digests = {part.digest for part in wrong.damaged}
    reader = Reader(writer.folder, writer.state)
    left = examine(reader, [part for part in writer.state.parts() if part.digest in digests])
    reader.close()
    write_health(writer.folder, writer.state, [*left.damaged, *left.headless], writer.system)


def _left(state: State, kept: Sequence[Version]) -> dict[tuple[int, bytes], list[Version]]:
    """The versions that stay, each file's in the order it had: by time they would change places where a clock went
    back."""
    stays = set(kept)
    left = {key: [one for one in versions if one in stays] for key, versions in state.files.items()}
    return {key: versions for key, versions in left.items() if versions}


def _is_worn(block: Block, marks: bytearray) -> bool:
    """True where a block has chunks that nobody needs, and that were not taken out yet."""
    return marks.count(1, block.first, block.first + block.count) < block.live


def _moved(writer: Writer, reader: Reader, entry: Dictionary) -> Dictionary:
    """A dictionary written once more, from whichever place it can be read."""
    for one in sorted(reader.state.dictionaries, key=lambda other: other != entry):
        if one.digest == entry.digest:
            with suppress(OSError, SourceUnreadable):
                return writer.put_dictionary(entry.number, entry.agent, reader.stored(one), entry.learned)
    return _carried(writer, reader, entry)


def _carried(writer: Writer, reader: Reader, part: AnyPart) -> AnyPart:
    """A damaged part moved as it is; one whose pack is gone stays named, so that it is not forgotten."""
    try:
        pack, offset = writer.append(reader.unchecked(part))
    except FileNotFoundError:
        return part
    return msgspec.structs.replace(part, pack=pack, offset=offset)


def _groups(blocks: list[Block], bad: set[Block]) -> Iterator[list[Block]]:
    """Blocks that become one: small ones whose chunks follow each other."""
    group: list[Block] = []
    for block in sorted(blocks, key=lambda one: one.first):
        last = group[-1] if group else None
        if last is not None and (
            last.first + last.count != block.first
            or last.dictionary != block.dictionary
            or sum(one.raw for one in group) + block.raw > RAW
            or not bad.isdisjoint((last, block))
        ):
            yield group
            group = []
        group.append(block)
    if group:
        yield group


def _rewritten(
    writer: Writer, reader: Reader, group: list[Block], marks: bytearray, bad: set[Block], repack: bool
) -> Iterator[Block]:
    """The block that takes the place of some; none where nobody needs them."""
    first, count = group[0].first, sum(block.count for block in group)
    live = marks.count(1, first, first + count)
    if not live:
        return
    if group[0] in bad:
        yield _carried(writer, reader, group[0])
    elif len(group) == 1 and live == group[0].live and not repack:
        yield writer.put_block([reader.stored(group[0])], first, count, live, group[0].raw, group[0].dictionary)
    else:
        yield _packed(writer, reader, group, marks)


def _packed(writer: Writer, reader: Reader, group: list[Block], marks: bytearray) -> Block:
    """Some blocks as one, with what is needed of them."""
    chunks, hashes = [], []
    for block in group:
        unpacked = reader.unpack(block)
        for at in range(block.count):
            wanted = marks[block.first + at]
            chunks.append(unpacked.chunk(at) if wanted else b"")
            hashes.append(unpacked.table.hashes[at] if wanted else bytes(HASH_BYTES))
    first, known = group[0].first, group[0].dictionary
    if not writer.codec.knows(known):
        writer.codec.learn(known, reader.dictionary(known))
    stored, dictionary = writer.codec.pack(chunks, hashes, known)
    live = marks.count(1, first, first + len(chunks))
    return writer.put_block([stored], first, len(chunks), live, sum(map(len, chunks)), dictionary)
