"""Records of a session that are lost: lines that cannot be read, and snapshots that were erased.

An undo restores files from the snapshots. Without one that it needs, some files would stay as they are unnoticed. So
the places of lost records are reported, and the undo stops unless it is forced.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from clew.agents.sage_agent.records import parse_all_headers, parse_header
from clew.errors import SourceUnreadable
from clew.store.change_journal import UNREADABLE, undo_folder
from clew.store.conversation_tree import Tree
from clew.store.layout import MESSAGES, SNAPSHOTS
from clew.store.log import record_in, whole_lines
from clew.store.snapshots import Snapshots
from clew.store.undo_plan import RestorePlan, owning_message


def unreadable_messages(log: Path, after: str | None = None) -> list[int]:
    """Return the numbers of lines that are not records; with `after`, the uuid of a record, only of lines after it."""
    found: list[int] = []
    number = 0
    for chunk in whole_lines(log):
        known = parse_all_headers(chunk)
        if known is not None and (after is None or all(one.uuid != after for one in known)):
            number += chunk.count(b"\n")
            continue
        for line in chunk.split(b"\n")[:-1]:
            number += 1
            if after is not None and (one := parse_header(line)) is not None and one.uuid == after:
                found, after = [], None
            elif line.strip() and record_in(line) is None:
                found.append(number)
    return found


def unreadable_snapshots(snapshots: Snapshots) -> list[int]:
    """Return the numbers of lines that are not snapshots."""
    return [number for number, one in snapshots.numbered_entries() if one is None]


def is_log_missing(snapshots: Snapshots) -> bool:
    """Return whether there are blobs, but no log that could name them."""
    return not (snapshots.folder / SNAPSHOTS).exists() and bool(snapshots.blobs.all())


def refuse_unreadable(snapshots: Snapshots) -> None:
    """Raise SourceUnreadable if a record or journal that may name blobs cannot be read."""
    journals = sorted(undo_folder(snapshots.folder).glob(UNREADABLE))
    unknown = [*all_unknown_changes(snapshots), *(f"{path} cannot be read" for path in journals)]
    if unknown:
        raise SourceUnreadable(f"no copy was removed: the records that may name them cannot be read: {unknown[0]}")


def unknown_changes(snapshots: Snapshots, tree: Tree, plan: RestorePlan) -> list[str]:
    """Return the lost records that a plan needs, each with its place."""
    return [*_lost_messages(snapshots.folder / MESSAGES, tree, plan), *_lost_snapshots(snapshots, tree, plan)]


def all_unknown_changes(snapshots: Snapshots) -> list[str]:
    """Return all lost records, each with its place."""
    log = snapshots.folder / MESSAGES
    lines = [_unreadable(log, number) for number in (unreadable_messages(log) if log.exists() else ())]
    lines += [_unreadable(snapshots.folder / SNAPSHOTS, number) for number in unreadable_snapshots(snapshots)]
    return [*lines, *([_gone(snapshots)] if is_log_missing(snapshots) else [])]


def _lost_messages(log: Path, tree: Tree, plan: RestorePlan) -> Iterator[str]:
    start = plan.undone or tree.uuid(plan.common_ancestor)
    lines = unreadable_messages(log, start)
    yield from (_unreadable(log, number) for number in lines)
    for node in sorted(plan.passed & tree.orphans.keys()) if not lines else ():
        yield f"{log}: the message {tree.orphans[node]} before {tree.uuids[node]} is not there"


def _lost_snapshots(snapshots: Snapshots, tree: Tree, plan: RestorePlan) -> Iterator[str]:
    if is_log_missing(snapshots):
        yield _gone(snapshots)
    shared = set(tree.ancestors(plan.common_ancestor))
    lost: list[int] = []
    erased: dict[str, None] = {}
    for number, one in snapshots.numbered_entries():
        if one is None:
            lost.append(number)
            continue
        place = tree.places.get(one.message)
        node = owning_message(tree, place) if place is not None else None
        if one.message == plan.undone or (node in shared and not one.is_late):
            # Snapshots are in the order of the tools, so the lost ones belong to tools that are not undone.
            lost.clear()
        if one.is_erased and (one.message == plan.undone or node in plan.passed):
            erased[one.message] = None
    yield from (_unreadable(snapshots.folder / SNAPSHOTS, number) for number in lost)
    yield from (f"what the tools of {uuid} changed was erased" for uuid in erased)


def _unreadable(path: Path, number: int) -> str:
    return f"{path}:{number}: the line cannot be read"


def _gone(snapshots: Snapshots) -> str:
    return f"{snapshots.folder / SNAPSHOTS} is missing"
