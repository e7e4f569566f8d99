"""From where a conversation stands to another message: what each file was there, as the snapshots tell. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from clew.agents.sage_agent.records import MESSAGE_ROLES, RecordHeader
from clew.errors import PathRefused, UnknownReference
from clew.io.codec import NOT_JSON
from clew.io.safe_write import parts_of
from clew.store.conversation_tree import NONE, Tree, whole_lines
from clew.store.edits import Edit, Edits, in_time
from clew.store.snapshots import CUT_OFF, Change, FileState, Taken

Changes = dict[str, Change]


class Route(NamedTuple):
    """Where to go, and what files were there."""

    root: Path
    goal: int
    targets: dict[str, FileState]
    """By path below the root."""
    expected: dict[str, FileState]
    """Each file as the last record left it."""
    elsewhere: set[str]
    """Paths that are not below the root, or, where another program told them, may be elsewhere on some system."""
    edits: dict[str, list[Edit]]
    """What somebody made of files between the tool runs that are undone, and nothing would be left of."""
    passed: set[int]
    """The messages whose tools are undone or done again."""
    shared: int = NONE
    """The last message that is on both ways: what was done up to it stays."""
    mark: str | None = None
    """The undo that is taken back."""


class _Told(NamedTuple):
    """The snapshots in the words of one root."""

    by_anchor: dict[int, Changes]
    """By the prompt or reply that they belong to, all of its records merged."""
    by_mark: dict[str, Changes]
    """By the uuid of an undo or redo."""
    expected: dict[str, FileState]
    elsewhere: set[str]
    edits: Edits


def _told(tree: Tree, taken: Iterable[Taken], root: Path) -> _Told:
    marks = {mark.uuid for _, mark in tree.switch_records}
    told = _Told({}, {}, {}, set(), Edits())
    for one in in_time(taken):
        node = tree.places.get(one.message)
        if node is None and one.message not in marks:
            # An undo that was taken back: its record was never written.
            continue
        files = told.by_anchor.setdefault(anchor(tree, node), {}) if node is not None else {}
        if node is None:
            files = told.by_mark.setdefault(one.message, files)
        told.edits.begin(one, anchor(tree, node) if node is not None else NONE)
        for name, change in one.files.items():
            path = _below(one.root, name, root)
            if path is None or (one.root is None and not _is_plain(path)):
                path = name if one.root is None else posixpath.join(one.root, name)
                told.elsewhere.add(path)
            after = FileState("", missing=CUT_OFF) if one.is_open else change.after
            told.edits.note(path, Change(change.before, after))
            files[path] = Change(files[path].before if path in files else change.before, after)
            told.expected[path] = after
    return told


def moved(taken: Iterable[Taken], was: str | None, now: Path) -> list[Taken]:
    """The snapshots as if the workspace had always been where it is now."""
    if was is None:
        return list(taken)
    base = was.rstrip("/")

    def at(path: str) -> str:
        return f"{now}{path[len(base) :]}" if path == base or path.startswith(f"{base}/") else path

    return [
        one._replace(
            root=None if one.root is None else at(one.root),
            files={at(name): change for name, change in one.files.items()},
        )
        for one in taken
    ]


def _below(recorded: str | None, name: str, root: Path) -> str | None:
    """A recorded path below the root that was named; None where it is elsewhere."""
    base = str(root).rstrip("/") + "/"
    if name.startswith("/"):
        return name.removeprefix(base) if name.startswith(base) else None
    if recorded is None or recorded == str(root):
        return name
    full = f"{recorded.rstrip('/')}/{name}"
    return full.removeprefix(base) if full.startswith(base) else None


def _is_plain(path: str) -> bool:
    try:
        return bool(parts_of(path))
    except PathRefused:
        return False


def anchor(tree: Tree, node: int) -> int:
    """The prompt or reply that a record belongs to: a tool's result belongs to the call."""
    while not tree.is_significant(node) and tree.parents[node] != NONE:
        node = tree.parents[node]
    return node


def route_to(tree: Tree, taken: Sequence[Taken], root: Path, goal: int) -> Route:
    """To any message: what was done since it is undone, what led to it from another branch is done again."""
    return _route(tree, _told(tree, taken, root), root, goal)


def _route(tree: Tree, told: _Told, root: Path, goal: int) -> Route:
    targets = _targets(tree, told, goal)
    here, there = set(tree.ancestors(tree.head)), set(tree.ancestors(goal))
    edits = told.edits.lost(here - there, targets)
    shared = max(here & there, default=NONE)  # parents stand before children
    return Route(root, goal, targets, told.expected, told.elsewhere, edits, here ^ there, shared)


def _targets(tree: Tree, told: _Told, goal: int) -> dict[str, FileState]:
    here, there = list(tree.ancestors(tree.head)), list(tree.ancestors(goal))
    shared = set(here) & set(there)
    targets: dict[str, FileState] = {}
    for node in here:
        if node not in shared:
            # From the last to the first, so that what was before the first of them counts.
            targets.update({path: change.before for path, change in _changes(told, node)})
    for node in reversed(there):
        if node not in shared:
            targets.update({path: change.after for path, change in _changes(told, node)})
    return targets


def _changes(told: _Told, node: int) -> Iterator[tuple[str, Change]]:
    """What the tools of a message changed; what they were only thought to change does not count."""
    return ((path, change) for path, change in told.by_anchor.get(node, {}).items() if _is_change(change))


class FileDifference(NamedTuple):
    """A file that is not the same at the ends of two ways."""

    path: str
    one: FileState
    other: FileState


def differing_files(tree: Tree, taken: Sequence[Taken], root: Path, one: int, other: int) -> list[FileDifference]:
    """The files that the tools on either way left different, as far as the snapshots tell."""
    told = _told(tree, taken, root)
    ways = [list(tree.ancestors(node)) for node in (one, other)]
    shared = set(ways[0]) & set(ways[1])
    ends: list[dict[str, FileState]] = [{}, {}]
    begun: dict[str, FileState] = {}
    for end, way in zip(ends, ways, strict=True):
        for node in reversed(way):
            for path, change in _changes(told, node) if node not in shared else ():
                begun.setdefault(path, change.before)
                end[path] = change.after
    pairs = (FileDifference(path, *(end.get(path, begun[path]) for end in ends)) for path in sorted(begun))
    return [pair for pair in pairs if not pair.one.same_as(pair.other)]


def route_back(tree: Tree, taken: Sequence[Taken], root: Path) -> Route:
    """One step: to before the last message whose tools changed files."""
    told = _told(tree, taken, root)
    for node in tree.ancestors(tree.head):
        if any(_changes(told, node)):
            return _route(tree, told, root, tree.parents[node])
    raise UnknownReference("there is nothing to undo: no message up to here has a snapshot of a change")


def _is_change(change: Change) -> bool:
    return not change.before.same_as(change.after)


def route_of_file(tree: Tree, taken: Sequence[Taken], root: Path, file: str, goal: int | None) -> Route:
    """One file alone; the conversation stays where it is."""
    told = _told(tree, taken, root)
    path = _below(None, file, root) or file
    if goal is not None:
        route = _route(tree, told, root, goal)
    else:
        route = _route_before(tree, told, root, path)
    if path not in route.targets:
        raise UnknownReference(f"there is nothing to undo: no snapshot tells of a change of {file}")
    return route._replace(goal=tree.head, targets={path: route.targets[path]})


def _route_before(tree: Tree, told: _Told, root: Path, path: str) -> Route:
    """To before the last change of a file."""
    way = list(tree.ancestors(tree.head))
    changes = ((at, told.by_anchor.get(node, {}).get(path)) for at, node in enumerate(way))
    last = next(((at, one) for at, one in changes if one is not None and _is_change(one)), None)
    if last is None:
        return Route(root, tree.head, {}, {}, set(), {}, set())
    at, change = last
    targets = {path: change.before}
    edits = told.edits.lost({way[at]}, targets)
    passed, shared = set(way[: at + 1]), tree.parents[way[at]]
    return Route(root, tree.head, targets, told.expected, told.elsewhere, edits, passed, shared)


def route_on(tree: Tree, taken: Sequence[Taken], root: Path) -> Route:
    """To where the conversation stood before the last undo, with the files as they were then."""
    told = _told(tree, taken, root)
    last = last_undo(tree)
    if last is None:
        raise UnknownReference("there is nothing to redo: no undo was the last that happened")
    if last.from_id is not None and last.from_id not in tree.places:
        raise UnknownReference(f"the message {last.from_id}, where the conversation stood, is not there any more")
    goal = NONE if last.from_id is None else tree.places[last.from_id]
    changes = told.by_mark.get(str(last.uuid), {})
    targets = {path: change.before for path, change in changes.items()}
    return Route(root, goal, targets, told.expected, told.elsewhere, {}, set(), mark=str(last.uuid))


def last_undo(tree: Tree) -> RecordHeader | None:
    """The undo that a redo would take back; a message or a switch behind it means that there is none."""
    undone: list[RecordHeader] = []
    seen = 0
    for count, mark in tree.switch_records:
        if mark.action == "switch" or _has_message(tree, seen, count):
            undone.clear()
        if mark.action == "undo":
            undone.append(mark)
        elif mark.action == "redo" and undone:
            undone.pop()
        seen = count
    return undone[-1] if undone and not _has_message(tree, seen, len(tree.uuids)) else None


def _has_message(tree: Tree, start: int, stop: int) -> bool:
    return any(kind in MESSAGE_ROLES for kind in tree.kinds[start:stop])


class _Todos(msgspec.Struct):
    uuid: str | None = None
    todos: msgspec.Raw | UnsetType = UNSET


_decode = msgspec.json.Decoder(_Todos).decode


def todos_at(log: Path, tree: Tree, goal: int) -> msgspec.Raw | UnsetType:
    """The task list as it stood at a message; UNSET where no message up to it has one."""
    wanted = {tree.uuids[node]: node for node in tree.ancestors(goal)}
    best = NONE
    todos: msgspec.Raw | UnsetType = UNSET
    for uuid, found in _stated(log):
        # Parents stand before children, so the last on the way is the one nearest to the goal.
        if uuid in wanted and wanted[uuid] > best:
            best, todos = wanted[uuid], found
    return todos.copy() if todos is not UNSET else UNSET


def _stated(log: Path) -> Iterator[tuple[str, msgspec.Raw]]:
    for chunk in whole_lines(log):
        for line in chunk.split(b"\n"):
            try:
                found = _decode(line)
            except NOT_JSON:
                continue
            if found.uuid is not None and found.todos is not UNSET:
                yield found.uuid, found.todos
