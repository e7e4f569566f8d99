"""Removing versions by a policy, and rewriting packs.

A chunk that some kept version needs stays. Packs with chunks or records that are no longer needed are rewritten: the
new packs are durable and in the index before an old one is removed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import NamedTuple

from clew.archive.archive import Archive
from clew.archive.archived_home import catalog_path, is_gone
from clew.archive.holds import NOTHING_KNOWN, CatalogFacts, Held, Holds, KnownSessions
from clew.archive.index import INTACT, UNREADABLE
from clew.archive.packs import RECORD_COPIES
from clew.archive.records import FileKey, SourceHome, Version
from clew.archive.writer import ArchiveWriter
from clew.errors import WouldLose

DAY_US = 86_400_000_000
MAX_SMALL_PACKS = 32
"""A capture that leaves more small packs than this merges them into one."""
SMALL_PACK_BYTES = 4 << 20
_RECORD_BYTES = 120
"""Compressed size of the record of a version without its chunk ids, about."""


class Policy(NamedTuple):
    """What is kept; None is no limit."""

    keep_days: float | None = None
    """Sessions that were active in the last days: they were written to, or have a message of that time."""
    keep_versions: int | None = None
    """The newest versions of each file."""
    max_size: int | None = None
    """Bytes that the packs may take; sessions that were not active for longest go first."""


class Plan(NamedTuple):
    """What a prune removes, or why it removes nothing."""

    dropped: list[Version]
    """Empty if the prune is refused."""
    kept: list[Version]
    size: int
    """Bytes of the packs now."""
    left: int
    """About how many bytes will be left."""
    held: Mapping[Version, Held] = MappingProxyType({})
    """Versions that the policy would remove and a hold forbids to remove, with the hold."""
    only_copies: Collection[Version] = ()
    """The newest versions that the policy would remove of files that are no longer on this machine, if not held."""
    refusal: str = ""
    """Why the prune is refused."""


def plan(
    archive: Archive,
    policy: Policy,
    now_us: int,
    known: KnownSessions = NOTHING_KNOWN,
    *,
    skip_held: bool = False,
    allow_loss: bool = False,
) -> Plan:
    """Decide which versions go, or that the prune is refused.

    With `skip_held`, what is held stays; otherwise the prune is refused. It is also refused if it would remove files
    that only the archive has, without `allow_loss`. `known` is what catalogs know of the sessions.
    """
    kept: list[Version] = []
    dropped: list[Version] = []
    active = last_activity(archive.versions(), known)
    for versions in archive.files.values():
        excess = len(versions) - policy.keep_versions if policy.keep_versions is not None else 0
        for number, version in enumerate(versions):
            last_us = active[version.session_key] // 1000
            is_old = policy.keep_days is not None and last_us < now_us - policy.keep_days * DAY_US
            (dropped if number < excess or is_old else kept).append(version)
    left, fitting = _measure_sessions(archive, kept, active, policy.max_size)
    dropped += [version for version in kept if version.session_key not in fitting]
    kept = [version for version in kept if version.session_key in fitting]
    held = _held_versions(archive, dropped, held_sessions(archive, now_us, known)) if dropped else {}
    if skip_held and held:
        dropped = [version for version in dropped if version not in held]
        kept += held
        left, _ = _measure_sessions(archive, kept, active, None)
    free = {version for version in archive.newest() if version not in held}
    only_copies = dict.fromkeys(version for version in dropped if version in free and is_gone(version))
    refusal = _refusal({} if skip_held else held, () if allow_loss else only_copies)
    if refusal:
        dropped, kept = [], [*archive.versions()]
    return Plan(dropped, kept, archive.stored, left if dropped else archive.stored, held, only_copies, refusal)


def _refusal(held: Mapping[Version, Held], only_copies: Collection[Version]) -> str:
    """Why versions must not be removed; empty if nothing is held or lost."""
    reasons = []
    if held:
        holds = "; ".join(sorted({one.hold for one in held.values()}))
        reasons.append(f"files of {count_sessions(held)} are held ({holds}); use --skip-held to remove the others")
    if only_copies:
        sessions = count_sessions(only_copies)
        reasons.append(f"files of {sessions} exist only in the archive; use --allow-loss to remove them")
    return "; ".join(reasons)


def count_sessions(versions: Iterable[Version]) -> str:
    """Say to how many sessions versions belong. A file that sessions share is no session of its own."""
    number = len({version.session_key for version in versions if version.role != "shared"})
    return {0: "several sessions", 1: "1 session"}.get(number, f"{number} sessions")


def held_sessions(archive: Archive, now_us: int, known: KnownSessions = NOTHING_KNOWN) -> dict[FileKey, Held]:
    """Find the archived sessions that are held, with the hold, by their main files."""
    holds, now = Holds(archive.folder, known), datetime.fromtimestamp(now_us / 1e6, UTC)
    sessions: dict[FileKey, list[Version]] = {}
    for version in archive.newest() if holds.all else ():
        if version.role != "shared":
            sessions.setdefault(version.session_key, []).append(version)
    active, found = last_activity(archive.versions(), known), {}
    for key, files in sessions.items():
        last_write = datetime.fromtimestamp(active[key] / 1e9, UTC)
        archived_at = datetime.fromtimestamp(max(version.taken_us for version in files) / 1e6, UTC)
        agent, session = files[0].agent, files[0].session
        held = holds.find(agent, session, catalog_path(key, known), last_write, now, archived_at=archived_at)
        if held is not None:
            found[key] = held
    return found


def _held_versions(archive: Archive, dropped: Iterable[Version], held: Mapping[FileKey, Held]) -> dict[Version, Held]:
    """Find the versions that a hold forbids to remove. Files that sessions share are held with any of them."""
    of_agent = {(one.home, one.agent): held[one.session_key] for one in archive.newest() if one.session_key in held}
    found = {}
    for version in dropped:
        is_shared = version.role == "shared"
        hold = of_agent.get((version.home, version.agent)) if is_shared else held.get(version.session_key)
        if hold is not None:
            found[version] = hold
    return found


def last_activity(versions: Iterable[Version], known: KnownSessions) -> dict[FileKey, int]:
    """Return when each session was last active, in nanoseconds, by its main file: its files stay or go together.

    That is the last write or the last message, whichever is later. A file that was only touched, or copied back, was
    not written to. A shared file counts as active as the last active session among those that may need it.
    """
    found: dict[FileKey, int] = {}
    of_agent: dict[tuple[SourceHome, str], int] = {}
    shared: dict[FileKey, tuple[SourceHome, str]] = {}
    for version in versions:
        agent, key = (version.home, version.agent), version.session_key
        if key not in found:
            last_message = known.get(catalog_path(key, known), CatalogFacts()).last_message
            found[key] = round(last_message.timestamp() * 1e9) if last_message is not None else 0
        found[key] = max(found[key], version.written_ns)
        of_agent[agent] = max(of_agent.get(agent, 0), found[key])
        if version.role == "shared":
            shared[key] = agent
    return found | {key: of_agent[agent] for key, agent in shared.items()}


def _measure_sessions(
    archive: Archive, versions: Sequence[Version], active: dict[FileKey, int], limit: int | None
) -> tuple[int, set[FileKey]]:
    """Return about how many bytes the sessions take, and which they are: the newest, up to the limit."""
    sessions: dict[FileKey, list[Version]] = {}
    shared = {version.session_key for version in versions if version.role == "shared"}
    for version in versions:
        sessions.setdefault(version.session_key, []).append(version)
    newest_first = sorted(sessions, key=lambda key: (active[key], key in shared, key[1]), reverse=True)
    size, counted, fitting = 0.0, set[bytes](), set[FileKey]()
    for key in newest_first:
        chunks = {chunk for version in sessions[key] for chunk in version.chunk_ids()} - counted
        stored = sum(place.stored for chunk in chunks for place in archive.index.places(chunk)[:1])
        stored += sum(RECORD_COPIES * (len(one.chunks) + _RECORD_BYTES) for one in sessions[key])
        if limit is not None and size + stored > limit:
            break
        size += stored
        counted |= chunks
        fitting.add(key)
    return round(size), fitting


def prune(writer: ArchiveWriter, decided: Plan, repack: bool = False) -> None:
    """Remove what was decided on; with `repack`, compress everything that stays again. Raises WouldLose if refused."""
    if decided.refusal:
        raise WouldLose(f"nothing was removed: {decided.refusal}")
    rows = writer.index.version_rows()
    kept = set(decided.kept)
    affected = {version.file for version in decided.dropped}
    # A version that a newer one replaced must not come back when that newer one goes.
    packs = {pack for pack, version in rows if version.file in affected and version not in kept}
    needed = {chunk for version in decided.kept for chunk in version.chunk_ids()}
    known = writer.index.packs()
    packs |= {place.pack for chunk, place in writer.index.chunks_of(known) if chunk not in needed}
    rewrite_packs(writer, known.keys() if repack else packs, decided.kept)


def merge_packs(writer: ArchiveWriter) -> None:
    """Merge small packs where there are many, and drop damaged packs from which nothing is needed any more."""
    known = writer.index.packs()
    small = [name for name, row in known.items() if row.size < SMALL_PACK_BYTES and row.damage == INTACT]
    damaged = [name for name, row in known.items() if row.damage not in (INTACT, UNREADABLE)]
    packs = {*damaged, *(small if len(small) > MAX_SMALL_PACKS else ())}
    if packs:
        rewrite_packs(writer, packs, list(writer.versions()))


def rewrite_packs(writer: ArchiveWriter, packs: Collection[str], kept: Sequence[Version]) -> None:
    """Write what the kept versions need from some packs into new ones, and remove the old ones.

    A pack with unreadable bytes stays as it is. So does every damaged pack while some kept version is not
    complete: what is missing may be in it.
    """
    known = writer.index.packs()
    is_complete = not writer.index.incomplete(kept)
    replaced = {
        name for name in packs if known[name].damage == INTACT or (known[name].damage != UNREADABLE and is_complete)
    }
    if not replaced:
        return
    needed = {chunk for version in kept for chunk in version.chunk_ids()}
    elsewhere = {chunk for chunk, _ in writer.index.chunks_of(known.keys() - replaced)}
    for chunk, _ in writer.index.chunks_of(sorted(replaced)):
        if chunk in needed and chunk not in elsewhere and not writer.is_stored(chunk):
            writer.store(chunk, writer.chunk(chunk))
            if writer.pack_is_full:
                writer.next_pack()
    stays = set(kept)
    versions = dict.fromkeys(one for pack, one in writer.index.version_rows() if pack in replaced and one in stays)
    captures = [capture for pack, capture in writer.index.captures() if pack in replaced]
    writer.commit_rewritten(list(versions), captures, replaced)
