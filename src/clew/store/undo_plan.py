"""Plans an undo or redo: which state each file gets, and what stops it before anything is changed."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from clew.agents.backups import read_inside
from clew.agents.protected_paths import is_protected, leads_out
from clew.agents.sage_agent.records import MESSAGE_ROLES, RecordHeader
from clew.errors import PathRefused, SourceUnreadable, UnknownReference, WouldLose
from clew.io.blobs import digest_of
from clew.io.codec import NOT_JSON
from clew.io.safe_write import CaseCollisionError, Within, parts_of, refuse_twins
from clew.store.apply_changes import blocking_path, state_among
from clew.store.conversation_tree import NONE, Tree, node_of
from clew.store.file_state import INTERRUPTED, NO_FILE, FileState, StateChange
from clew.store.layout import BACKUPS
from clew.store.log import complete_lines
from clew.store.outside_edits import OutsideEdit, OutsideEdits, in_tool_order
from clew.store.snapshots import SnapshotEntry, Snapshots
from clew.store.writer import Receipt

Verdict = Literal["write", "remove", "same", "conflict", "missing", "refused"]
"""What restoring a file would do. A conflict would lose an edit."""
Changes = dict[str, StateChange]

_FORCE_CASE = "; --force continues if this file system has both"


class UndoRequest(NamedTuple):
    """What the user asks for."""

    action: Literal["undo", "redo"]
    root: Path
    to: str | None = None
    file: str | None = None
    force: bool = False
    rescue: Path | None = None
    allow_protected: bool = False
    moved_from: str | None = None
    """Where the workspace was when the snapshots were made, if it was moved since."""


class OutsideVersion(msgspec.Struct, frozen=True):
    """The content of a file that was edited between two tool runs."""

    left: bytes | None
    """The content after the tool before, if it is kept."""
    made: bytes | None


class FileStep(msgspec.Struct, frozen=True):
    """One file of a plan."""

    path: str
    verdict: Verdict
    target: FileState
    expected: FileState | None = None
    """The state after the last record; None if no record says it."""
    now: FileState = NO_FILE
    reason: str | None = None
    content: bytes | None = None
    """The content to write."""
    current: bytes | None = None
    """The content that is there."""
    recorded: bytes | None = None
    """Of a conflict: the content after the last record, if it is kept."""
    outside_versions: list[OutsideVersion] = []
    """Versions that were edited between tool runs, and that would be lost."""

    @property
    def is_changing(self) -> bool:
        """Return whether the file is written or removed."""
        return self.verdict in ("write", "remove", "conflict")

    @property
    def is_changed_since(self) -> bool:
        """Return whether the file differs from the last record."""
        return not self.now.is_nothing and (self.expected is None or not self.expected.same_as(self.now))


class UndoResult(msgspec.Struct, frozen=True):
    """What an undo or redo did, or would do."""

    action: Literal["undo", "redo"]
    start: str | None
    """The last message of the conversation before."""
    head: str | None
    """The last message of the conversation now."""
    steps: list[FileStep]
    receipt: Receipt | None = None
    """The record of it; None if nothing was done."""
    rescue: Path | None = None
    """The folder with copies of edited files."""
    unknown: list[str] = []
    """Records that are lost, with their place: other files may not be as they were."""
    refusal: str | None = None
    """Why it would be refused; None if it would be done."""


class Refused(WouldLose):
    """The undo would lose an edit, or cannot restore everything. Holds the plan."""

    def __init__(self, words: str, steps: Sequence[FileStep]) -> None:
        super().__init__(words)
        self.steps = list(steps)


class RestorePlan(NamedTuple):
    """Where the conversation goes, and the state that files had there."""

    root: Path
    goal: int
    targets: dict[str, FileState]
    """By path below the root."""
    expected: dict[str, FileState]
    """The state of each file after the last record."""
    outside_paths: set[str]
    """Paths that are not below the root, or that another program recorded and that some systems resolve elsewhere."""
    edits: dict[str, list[OutsideEdit]]
    """Edits between the tool runs that are undone, which would be lost."""
    passed: set[int]
    """The messages whose tools are undone or done again."""
    common_ancestor: int = NONE
    """The last message before both the start and the goal: what was done up to it stays."""
    undone: str | None = None
    """Of a redo: the uuid of the undo that is reversed."""


class _MergedSnapshots(NamedTuple):
    """All snapshots with paths relative to one root, merged per message."""

    by_message: dict[int, Changes]
    """By the prompt or reply that they belong to."""
    by_undo: dict[str, Changes]
    """By the uuid of an undo or redo."""
    expected: dict[str, FileState]
    outside_paths: set[str]
    edits: OutsideEdits


def _merge_snapshots(tree: Tree, entries: Iterable[SnapshotEntry], root: Path) -> _MergedSnapshots:
    undo_ids = {mark.uuid for _, mark in tree.switch_records}
    merged = _MergedSnapshots({}, {}, {}, set(), OutsideEdits())
    for one in in_tool_order(entries):
        node = tree.places.get(one.message)
        if node is not None:
            owner = owning_message(tree, node)
            files = merged.by_message.setdefault(owner, {})
        elif one.message in undo_ids:
            owner = NONE
            files = merged.by_undo.setdefault(one.message, {})
        else:
            continue  # an undo that was rolled back: its record was never written
        merged.edits.begin(one, owner)
        for name, change in one.files.items():
            path = _below(one.root, name, root)
            if path is None or (one.root is None and not _is_plain(path)):
                path = name if one.root is None else posixpath.join(one.root, name)
                merged.outside_paths.add(path)
            after = FileState("", missing=INTERRUPTED) if one.is_open else change.after
            merged.edits.note(path, StateChange(change.before, after))
            files[path] = StateChange(files[path].before if path in files else change.before, after)
            merged.expected[path] = after
    return merged


def relocate(entries: Iterable[SnapshotEntry], moved_from: str | None, now: Path) -> list[SnapshotEntry]:
    """Return the snapshots as if the workspace had always been where it is now."""
    if moved_from is None:
        return list(entries)
    base = moved_from.rstrip("/")

    def at(path: str) -> str:
        return f"{now}{path[len(base) :]}" if path == base or path.startswith(f"{base}/") else path

    return [
        one._replace(
            root=None if one.root is None else at(one.root),
            files={at(name): change for name, change in one.files.items()},
        )
        for one in entries
    ]


def _below(recorded: str | None, name: str, root: Path) -> str | None:
    """Return a recorded path relative to the root; None if it is elsewhere."""
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


def owning_message(tree: Tree, node: int) -> int:
    """Return the prompt or reply that a record belongs to: a tool's result belongs to the call."""
    while not tree.is_significant(node) and tree.parents[node] != NONE:
        node = tree.parents[node]
    return node


def plan_to_message(tree: Tree, entries: Sequence[SnapshotEntry], root: Path, goal: int) -> RestorePlan:
    """Plan to go to any message: undo what was done since, and redo what led to it on another branch."""
    return _plan(tree, _merge_snapshots(tree, entries, root), root, goal)


def plan_last_change(tree: Tree, entries: Sequence[SnapshotEntry], root: Path) -> RestorePlan:
    """Plan one step: to before the last message whose tools changed files."""
    merged = _merge_snapshots(tree, entries, root)
    for node in tree.ancestors(tree.head):
        if any(_changes(merged, node)):
            return _plan(tree, merged, root, tree.parents[node])
    raise UnknownReference(
        "nothing to undo: no message has recorded a change of files (an agent records it with Session.watch)"
    )


def plan_one_file(tree: Tree, entries: Sequence[SnapshotEntry], root: Path, file: str, goal: int | None) -> RestorePlan:
    """Plan to restore one file; the conversation stays where it is."""
    merged = _merge_snapshots(tree, entries, root)
    path = _below(None, file, root) or file
    plan = _plan_before_change(tree, merged, root, path) if goal is None else _plan(tree, merged, root, goal)
    if path not in plan.targets:
        raise UnknownReference(f"nothing to undo: no snapshot records a change of {file}")
    return plan._replace(goal=tree.head, targets={path: plan.targets[path]})


def plan_redo(tree: Tree, entries: Sequence[SnapshotEntry], root: Path) -> RestorePlan:
    """Plan to go to where the conversation was before the last undo, with the files as they were then."""
    merged = _merge_snapshots(tree, entries, root)
    last = last_undo(tree)
    if last is None:
        raise UnknownReference("nothing to redo: the last action was not an undo")
    if last.from_id is not None and last.from_id not in tree.places:
        raise UnknownReference(f"the message {last.from_id}, where the conversation was, no longer exists")
    goal = NONE if last.from_id is None else tree.places[last.from_id]
    changes = merged.by_undo.get(str(last.uuid), {})
    targets = {path: change.before for path, change in changes.items()}
    return RestorePlan(root, goal, targets, merged.expected, merged.outside_paths, {}, set(), undone=str(last.uuid))


def _plan(tree: Tree, merged: _MergedSnapshots, root: Path, goal: int) -> RestorePlan:
    here, there = list(tree.ancestors(tree.head)), list(tree.ancestors(goal))
    shared = set(here) & set(there)
    targets: dict[str, FileState] = {}
    for node in here:
        if node not in shared:
            # From the last message to the first, so that the state before the first one remains.
            targets.update({path: change.before for path, change in _changes(merged, node)})
    for node in reversed(there):
        if node not in shared:
            targets.update({path: change.after for path, change in _changes(merged, node)})
    edits = merged.edits.lost(set(here) - shared, targets)
    passed = set(here) ^ set(there)
    # Parents come before children, so the largest node is the nearest common one.
    return RestorePlan(
        root, goal, targets, merged.expected, merged.outside_paths, edits, passed, max(shared, default=NONE)
    )


def _plan_before_change(tree: Tree, merged: _MergedSnapshots, root: Path, path: str) -> RestorePlan:
    """Plan to go to before the last change of a file."""
    ancestors = list(tree.ancestors(tree.head))
    for at, node in enumerate(ancestors):
        change = merged.by_message.get(node, {}).get(path)
        if change is not None and _is_change(change):
            targets = {path: change.before}
            edits = merged.edits.lost({node}, targets)
            passed, shared = set(ancestors[: at + 1]), tree.parents[node]
            return RestorePlan(root, tree.head, targets, merged.expected, merged.outside_paths, edits, passed, shared)
    return RestorePlan(root, tree.head, {}, {}, set(), {}, set())


def _changes(merged: _MergedSnapshots, node: int) -> Iterator[tuple[str, StateChange]]:
    """Yield the files that the tools of a message changed, without those that were only watched."""
    return ((path, change) for path, change in merged.by_message.get(node, {}).items() if _is_change(change))


def _is_change(change: StateChange) -> bool:
    return not change.before.same_as(change.after)


class FileDifference(NamedTuple):
    """A file that differs between two messages."""

    path: str
    one: FileState
    other: FileState


def differing_files(
    tree: Tree, entries: Sequence[SnapshotEntry], root: Path, one: int, other: int
) -> list[FileDifference]:
    """Return the files that differ between two messages, as far as the snapshots say."""
    merged = _merge_snapshots(tree, entries, root)
    paths = [list(tree.ancestors(node)) for node in (one, other)]
    shared = set(paths[0]) & set(paths[1])
    ends: list[dict[str, FileState]] = [{}, {}]
    start: dict[str, FileState] = {}
    for end, nodes in zip(ends, paths, strict=True):
        for node in reversed(nodes):
            for path, change in _changes(merged, node) if node not in shared else ():
                start.setdefault(path, change.before)
                end[path] = change.after
    pairs = (FileDifference(path, *(end.get(path, start[path]) for end in ends)) for path in sorted(start))
    return [pair for pair in pairs if not pair.one.same_as(pair.other)]


class Comparison(NamedTuple):
    """Two paths through a conversation, as uuids in order."""

    base: str | None
    """The last message they share."""
    one: list[str]
    other: list[str]
    files: list[FileDifference]
    """The files that differ at their ends, as far as snapshots record them."""


def compare_branches(tree: Tree, one: str, other: str, entries: Sequence[SnapshotEntry], root: Path) -> Comparison:
    """Compare two branches or messages; file names are relative to the root."""
    ends = node_of(tree, one), node_of(tree, other)
    passed = set(tree.ancestors(ends[0]))
    base = next((node for node in tree.ancestors(ends[1]) if node in passed), NONE)
    shared = set(tree.path(base)) if base != NONE else set()
    paths = [[uuid for uuid in tree.path(node) if uuid not in shared] for node in ends]
    return Comparison(tree.uuid(base), paths[0], paths[1], differing_files(tree, entries, root, *ends))


def last_undo(tree: Tree) -> RecordHeader | None:
    """Return the undo that a redo would reverse; None if a message or a switch came after it."""
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


_decode_todos = msgspec.json.Decoder(_Todos).decode


def todos_at(log: Path, tree: Tree, goal: int) -> msgspec.Raw | UnsetType:
    """Return the task list at a message; UNSET if no message up to it has one."""
    wanted = {tree.uuids[node]: node for node in tree.ancestors(goal)}
    nearest = NONE
    todos: msgspec.Raw | UnsetType = UNSET
    for line in complete_lines(log):
        try:
            found = _decode_todos(line)
        except NOT_JSON:
            continue
        if found.uuid is None or found.todos is UNSET:
            continue
        # Parents come before children, so the largest node is the nearest to the goal.
        if wanted.get(found.uuid, NONE) > nearest:
            nearest, todos = wanted[found.uuid], found.todos
    return todos.copy() if todos is not UNSET else UNSET


def plan_steps(snapshots: Snapshots, plan: RestorePlan, request: UndoRequest) -> list[FileStep]:
    """Compare each file of a plan with what is there; changes nothing."""
    with Within(request.root, apart=request.force, own=True) as within:
        steps = [_step(snapshots, within, path, plan) for path in plan.targets]
    if request.file is not None and all(step.verdict == "same" for step in steps):
        raise UnknownReference(f"{request.file} has not changed since then; nothing to undo")
    return _refuse_case_collisions(_refuse_blocked(steps, request.root), request)


def _step(snapshots: Snapshots, within: Within, path: str, plan: RestorePlan) -> FileStep:
    target, expected = plan.targets[path], plan.expected.get(path)
    if path in plan.outside_paths:
        return FileStep(path, "refused", target, expected, reason=_why_outside(path, plan.root))
    try:
        now, current = state_among(within, path, plan.targets)
    except PathRefused as error:
        hint = _FORCE_CASE if isinstance(error, CaseCollisionError) else ""
        return FileStep(path, "refused", target, expected, reason=f"{error}{hint}")
    if now.link is not None and (expected is None or expected.link != now.link):
        words = "it is a link that was not made by a tool; move it away first"
        return FileStep(path, "refused", target, expected, now, reason=words)
    if target.same_as(now):
        return FileStep(path, "same", target, expected, now, None, current, current)
    try:
        # A link can be restored, but not the file behind it.
        is_new_link = target.link is not None and target.link != now.link
        content = None if is_new_link else content_of(snapshots, target)
    except SourceUnreadable as error:
        return FileStep(path, "missing", target, expected, now, str(error), None, current)
    if content is not None and digest_of(content) == now.digest and target.mode is None:
        return FileStep(path, "same", target, expected, now, None, content, current)
    verdict: Verdict = "remove" if target.is_nothing else "write"
    step = FileStep(path, verdict, target, expected, now, None, content, current)
    return _with_conflict(snapshots, step, plan.edits.get(path, ()))


def _with_conflict(snapshots: Snapshots, step: FileStep, edits: Sequence[OutsideEdit]) -> FileStep:
    """Return the step as a conflict if it would lose an edit."""
    if not edits and not step.is_changed_since:
        return step
    versions = []
    for edit in edits:
        # There may be no blob yet of what is in the workspace now.
        made = step.current if edit.made.digest == step.now.digest else _content_or_none(snapshots, edit.made)
        versions.append(OutsideVersion(_content_or_none(snapshots, edit.left), made))
    reasons = [_why_changed(step.expected)] if step.is_changed_since else []
    reasons += [edit.why for edit in edits]
    if any(one.made is None and edit.made.link is None for one, edit in zip(versions, edits, strict=True)):
        reasons.append("it could not be backed up")
    return msgspec.structs.replace(
        step,
        verdict="conflict",
        reason="; ".join(dict.fromkeys(reasons)),
        recorded=_content_or_none(snapshots, step.expected),
        outside_versions=versions,
    )


def _content_or_none(snapshots: Snapshots, state: FileState | None) -> bytes | None:
    try:
        return content_of(snapshots, state) if state is not None else None
    except SourceUnreadable:
        return None


def content_of(snapshots: Snapshots, state: FileState) -> bytes | None:
    """Return the content of a state, None for no file; raises SourceUnreadable if it is not kept or damaged."""
    if state.missing is not None:
        raise SourceUnreadable(state.missing)
    if state.digest is None:
        return None  # no file; a link has no content of its own
    if state.text is not None:
        return state.text.encode()
    if state.backup is None:
        return snapshots.blobs.get(state.digest)
    body = read_inside(snapshots.folder / BACKUPS, state.backup)
    if body is None:
        raise SourceUnreadable(f"the copy {state.backup} is missing")
    if state.digest and digest_of(body) != state.digest:
        raise SourceUnreadable(f"the copy {state.backup} is damaged: its checksum differs")
    return body


def _why_outside(path: str, root: Path) -> str:
    if path.startswith("/"):
        return f"it is not below {root}; if the workspace was moved, give its former path with --from"
    return "this path means something else on some systems, and another program recorded it"


def _why_changed(expected: FileState | None) -> str:
    if expected is not None and expected.missing is not None:
        return f"may hold edits by a person: {expected.missing}"
    return "was changed since"


def _refuse_case_collisions(steps: list[FileStep], request: UndoRequest) -> list[FileStep]:
    """Refuse all steps if names differ only in case or in ways that some file systems ignore."""
    if request.force:
        return steps  # then the file system itself decides
    try:
        refuse_twins([step.path for step in steps if step.is_changing])
    except CaseCollisionError as error:
        return [msgspec.structs.replace(step, verdict="refused", reason=f"{error}{_FORCE_CASE}") for step in steps]
    return steps


def _refuse_blocked(steps: list[FileStep], root: Path) -> list[FileStep]:
    """Refuse steps whose path cannot become a file, because of something that is there and stays."""
    written = {step.path for step in steps if step.is_changing and not step.target.is_nothing}
    removed = {step.path for step in steps if step.is_changing and step.target.is_nothing}
    checked: list[FileStep] = []
    for step in steps:
        blocking = blocking_path(root, step.path, written, removed) if step.path in written else None
        if blocking is None:
            checked.append(step)
            continue
        if blocking in written:
            words = f"{blocking!r} was a file too, at another time; go back step by step"
        elif step.path.startswith(f"{blocking}/"):
            words = f"{blocking!r} is not a folder now, and stays; move it away first"
        else:
            words = f"it is a folder now, with files not made by a tool, such as {blocking!r}; move them away first"
        checked.append(msgspec.structs.replace(step, verdict="refused", reason=words))
    return checked


def refuse_incomplete_redo(unknown: Sequence[str]) -> None:
    """Stop a redo, forced or not, if the record of the undo is lost: the conversation would go on without the files."""
    if unknown:
        words = f"nothing was changed: what the undo replaced is not known for certain: {unknown[0]}"
        raise Refused(f"{words}; an undo to the message goes by what its tools recorded", ())


def refuse_unsafe(steps: Sequence[FileStep], request: UndoRequest, unknown: Sequence[str]) -> None:
    """Stop before anything is changed, if something must not be. The workspace itself may be a protected folder."""
    root, force, allow_protected = request.root, request.force, request.allow_protected
    if unknown and not force:
        words = f"nothing was changed: the files to restore are not known for certain: {unknown[0]}"
        raise Refused(f"{words}; --force goes on with what is known", steps)
    refused = [step for step in steps if step.verdict == "refused"]
    if refused:
        raise PathRefused(f"nothing was changed: {refused[0].path!r}: {refused[0].reason}")
    protected = [step for step in steps if step.is_changing and is_protected(f"{root}/{step.path}")]
    if protected and not allow_protected:
        words = "programs run this file automatically; use --allow-protected to change it"
        raise PathRefused(f"nothing was changed: {protected[0].path!r}: {words}")
    leading_out = [step for step in steps if step.is_changing and leads_out(step.path, step.target.link, str(root))]
    if leading_out and not allow_protected:
        words = "it was a link that leads out of the workspace; use --allow-protected to restore it"
        raise PathRefused(f"nothing was changed: {leading_out[0].path!r}: {words}")
    missing = [step for step in steps if step.verdict == "missing"]
    if missing and not force:
        words = f"nothing was changed: {missing[0].path!r} cannot be restored: {missing[0].reason}"
        raise Refused(f"{words}; --force leaves it as it is", steps)
    conflicts = [step for step in steps if step.verdict == "conflict"]
    if conflicts and not force:
        words = f"nothing was changed: {conflicts[0].path!r} {conflicts[0].reason}"
        raise Refused(f"{words}; --force goes on, and keeps a copy", steps)
