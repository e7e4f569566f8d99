"""What an archive lets go of, by a policy: first a plan, and only then the work.

A chunk that some version needs stays, whatever happens to others. The new packs and a manifest that says everything
are on disk before an old pack goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from clew.archive.blocks import RAW, digest_of
from clew.archive.layout import HASH_BYTES, Block, Dictionary, Version
from clew.archive.reading import Reader
from clew.archive.state import State
from clew.archive.writing import Writer, replace_all

DAY_US = 86_400 * 1_000_000


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
        kept.sort(key=lambda version: (active[version.place, version.main], version.main, version.mtime_ns))
        many = _too_many(state, kept, policy.max_size)
        dropped += kept[:many]
        kept = kept[many:]
    return Plan(dropped, kept, state.stored, _size(state, kept))


def activity(state: State) -> dict[tuple[int, bytes], int]:
    """When each session was last written to, by its main file: its files stay or go together.

    What is shared is as young as the youngest session that may need it.
    """
    found: dict[tuple[int, bytes], int] = {}
    youngest: dict[tuple[int, str], int] = {}
    for version in state.versions():
        of, agent = (version.place, version.main), (version.place, version.agent)
        found[of] = max(found.get(of, 0), version.mtime_ns)
        youngest[agent] = max(youngest.get(agent, 0), version.mtime_ns)
    for version in state.versions():
        if version.role == "shared":
            found[version.place, version.main] = youngest[version.place, version.agent]
    return found


def _too_many(state: State, kept: Sequence[Version], limit: int) -> int:
    """How many of the oldest must go until the rest fits."""
    low, high = 0, len(kept)
    while low < high:
        middle = (low + high) // 2
        if _size(state, kept[middle:]) <= limit:
            high = middle
        else:
            low = middle + 1
    return low


def needed(state: State, kept: Sequence[Version]) -> bytearray:
    """For each chunk whether some version needs it."""
    marks = bytearray(state.next_chunk)
    for version in kept:
        for first, count in zip(version.runs[::2], version.runs[1::2], strict=True):
            marks[first : first + count] = b"\1" * count
    return marks


def _size(state: State, kept: Sequence[Version]) -> int:
    """About how large the packs are with these versions alone."""
    marks = needed(state, kept)
    whole = 0.0
    for block in state.blocks:
        live = marks.count(1, block.first, block.first + block.count)
        whole += block.size * live / block.live
    return round(whole) + sum(entry.size for entry in _used(state, marks))


def _used(state: State, marks: bytearray) -> list[Dictionary]:
    numbers = {block.dictionary for block in state.blocks if marks.count(1, block.first, block.first + block.count)}
    newest = {entry.agent: entry.number for entry in state.dictionaries}
    return [entry for entry in state.dictionaries if entry.number in numbers or entry.number == newest[entry.agent]]


def prune(writer: Writer, decided: Plan, repack: bool = False) -> None:
    """Let go of what was decided on; with `repack` every block is packed anew."""
    state = writer.state
    marks = needed(state, decided.kept)
    gone = {block.pack for block in state.blocks if repack or _is_worn(block, marks)}
    used = _used(state, marks)
    gone |= {entry.pack for entry in state.dictionaries if entry not in used}
    reader = Reader(writer.folder, state)
    try:
        if gone:
            writer.begin_pack()
        dictionaries = [_moved(writer, reader, entry) if entry.pack in gone else entry for entry in used]
        blocks = [block for block in state.blocks if block.pack not in gone]
        for entry in state.dictionaries:
            writer.codec.learn(entry.number, reader.dictionary(entry))
        for group in _groups([block for block in state.blocks if block.pack in gone]):
            blocks += _rewritten(writer, reader, group, marks, repack)
    finally:
        reader.close()
    writer.sync()
    state.blocks = sorted(blocks, key=lambda block: block.first)
    state.dictionaries = dictionaries
    state.files = _left(state, decided.kept)
    replace_all(writer.folder, state, writer.system)


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
    pack, offset = writer.append(reader.stored(entry))
    return msgspec.structs.replace(entry, pack=pack, offset=offset)


def _groups(blocks: list[Block]) -> Iterator[list[Block]]:
    """Blocks that become one: small ones whose chunks follow each other."""
    group: list[Block] = []
    for block in sorted(blocks, key=lambda one: one.first):
        last = group[-1] if group else None
        if last is not None and (
            last.first + last.count != block.first
            or last.dictionary != block.dictionary
            or sum(one.raw for one in group) + block.raw > RAW
        ):
            yield group
            group = []
        group.append(block)
    if group:
        yield group


def _rewritten(writer: Writer, reader: Reader, group: list[Block], marks: bytearray, repack: bool) -> Iterator[Block]:
    """The block that takes the place of some; none where nobody needs them."""
    first, count = group[0].first, sum(block.count for block in group)
    live = marks.count(1, first, first + count)
    if not live:
        return
    if len(group) == 1 and live == group[0].live and not repack:
        pack, offset = writer.append(reader.stored(group[0]))
        yield msgspec.structs.replace(group[0], pack=pack, offset=offset)
        return
    chunks, hashes = [], []
    for block in group:
        unpacked = reader.unpack(block)
        for at in range(block.count):
            wanted = marks[block.first + at]
            chunks.append(unpacked.chunk(at) if wanted else b"")
            hashes.append(unpacked.table.hashes[at] if wanted else bytes(HASH_BYTES))
    stored = writer.codec.pack(chunks, hashes, group[0].dictionary)
    pack, offset = writer.append(stored)
    raw = sum(map(len, chunks))
    yield Block(pack, offset, len(stored), first, count, live, raw, group[0].dictionary, digest_of(stored))
