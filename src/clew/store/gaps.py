"""What the logs of a session do not tell any more: lines that cannot be read, and what was erased.

An undo takes files back by what the snapshots say. Where one is lost that it would need, files would stay as they are
and nobody would know; so the places are found, and whoever goes on does so knowingly.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from clew.agents.sage_agent.records import parse_all_headers, parse_header
from clew.errors import SourceUnreadable
from clew.store.conversation_tree import Tree, whole_lines
from clew.store.layout import MESSAGES, SNAPSHOTS
from clew.store.log import record_in
from clew.store.pending import ASIDE, journal_folder
from clew.store.routes import Route, anchor
from clew.store.snapshots import Snapshots


def unreadable_messages(log: Path, behind: str | None = None) -> list[int]:
    """The numbers of the lines that are no records; of those behind a record, where one is named that is there."""
    found: list[int] = []
    number = 0
    for chunk in whole_lines(log):
        known = parse_all_headers(chunk)
        if known is not None and (behind is None or all(one.uuid != behind for one in known)):
            number += chunk.count(b"\n")
            continue
        for line in chunk.split(b"\n")[:-1]:
            number += 1
            if behind is not None and (one := parse_header(line)) is not None and one.uuid == behind:
                found, behind = [], None
            elif line.strip() and record_in(line) is None:
                found.append(number)
    return found


def unreadable_snapshots(snapshots: Snapshots) -> list[int]:
    """The numbers of the lines that are no snapshots."""
    return [number for number, one in snapshots.numbered() if one is None]


def are_gone(snapshots: Snapshots) -> bool:
    """True where there are copies, and no log that could name them."""
    return not (snapshots.folder / SNAPSHOTS).exists() and bool(snapshots.blobs.all())


def refuse_unsure(snapshots: Snapshots) -> None:
    """Stop before a copy is removed that something may name which cannot be read."""
    journals = sorted(journal_folder(snapshots.folder).glob(ASIDE))
    unsure = [*all_gaps(snapshots), *(f"{path} cannot be read" for path in journals)]
    if unsure:
        raise SourceUnreadable(f"no copy was removed: what names them is not known for sure: {unsure[0]}")


def gaps(snapshots: Snapshots, tree: Tree, route: Route) -> list[str]:
    """What is not known on the way, each with its place."""
    return [*_lost_messages(snapshots.folder / MESSAGES, tree, route), *_lost_snapshots(snapshots, tree, route)]


def all_gaps(snapshots: Snapshots) -> list[str]:
    """The same wherever it may be."""
    log = snapshots.folder / MESSAGES
    lines = [_unreadable(log, number) for number in (unreadable_messages(log) if log.exists() else ())]
    lines += [_unreadable(snapshots.folder / SNAPSHOTS, number) for number in unreadable_snapshots(snapshots)]
    return [*lines, *([_gone(snapshots)] if are_gone(snapshots) else [])]


def _lost_messages(log: Path, tree: Tree, route: Route) -> Iterator[str]:
    start = route.mark or tree.uuid(route.shared)
    lines = unreadable_messages(log, start)
    yield from (_unreadable(log, number) for number in lines)
    for node in sorted(route.passed & tree.orphans.keys()) if not lines else ():
        yield f"{log}: the message {tree.orphans[node]} before {tree.uuids[node]} is not there"


def _lost_snapshots(snapshots: Snapshots, tree: Tree, route: Route) -> Iterator[str]:
    if are_gone(snapshots):
        yield _gone(snapshots)
    shared = set(tree.ancestors(route.shared))
    lost: list[int] = []
    erased: dict[str, None] = {}
    for number, one in snapshots.numbered():
        if one is None:
            lost.append(number)
            continue
        place = tree.places.get(one.message)
        node = anchor(tree, place) if place is not None else None
        if one.message == route.mark or (node in shared and not one.is_late):
            lost.clear()  # snapshots stand in the order of the tools, so those were of tools before the way
        if one.is_erased and (one.message == route.mark or node in route.passed):
            erased[one.message] = None
    yield from (_unreadable(snapshots.folder / SNAPSHOTS, number) for number in lost)
    yield from (f"what the tools of {uuid} changed was erased" for uuid in erased)


def _unreadable(path: Path, number: int) -> str:
    return f"{path}:{number}: the line cannot be read"


def _gone(snapshots: Snapshots) -> str:
    return f"{snapshots.folder / SNAPSHOTS} is gone"
