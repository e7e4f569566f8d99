"""Going back and on again: files as the snapshots have them, the conversation, and its task list.

First a plan, then copies of what is there, then all files or none, and last the record that makes it so. A file that
tells what is being done lies in the session's folder meanwhile; whoever finds it there behind a crash takes it back.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from clew.agents.backups import read_inside
from clew.errors import ClewError, PathRefused, SourceUnreadable, UnknownReference, WouldLose
from clew.io.blobs import digest_of
from clew.io.protected import is_protected
from clew.io.within import WIDEST, Within, refuse_twins
from clew.io.within import Change as Written
from clew.store.blobs import Fresh
from clew.store.branches import node_of
from clew.store.drafts import Receipt, State
from clew.store.layout import BACKUPS, MESSAGES
from clew.store.lock import locked
from clew.store.pending import Pending, announce, announced, grouped, put_as_it_was, remove_empty
from clew.store.routes import Route, route_back, route_of_file, route_on, route_to, todos_at
from clew.store.snapshots import NO_FILE, Change, FileState, Snapshots
from clew.store.system import FOLDER_MODE, SYSTEM, System, make_folder
from clew.store.tree import MAIN, NONE, Tree
from clew.store.wire import BranchRecord, Wire
from clew.store.writer import Place, Writer

PENDING = "undo-*.pending"
"""One file for each undo that is going on, named by its record, so that nobody mistakes another's for his own."""

Verdict = Literal["write", "remove", "same", "conflict", "missing", "refused"]
"""What putting a file back comes to. A conflict is a file that is not as the last record left it."""


class Step(msgspec.Struct, frozen=True):
    """One file of a plan."""

    path: str
    verdict: Verdict
    target: FileState
    expected: FileState | None = None
    """As the last record left it; None where none tells."""
    now: FileState = NO_FILE
    reason: str | None = None
    content: bytes | None = None
    there: bytes | None = None
    recorded: bytes | None = None
    """What a file in conflict held when the last record was made, where that can be had."""

    @property
    def is_changing(self) -> bool:
        return self.verdict in ("write", "remove", "conflict")


class Undone(msgspec.Struct, frozen=True):
    """What an undo or redo did, or would do."""

    action: Literal["undo", "redo"]
    start: str | None
    """The message that the conversation stood at."""
    head: str | None
    """The one it stands at now."""
    steps: list[Step]
    receipt: Receipt | None = None
    """The record of it; None where nothing was done."""
    rescue: Path | None = None
    """Where copies of files lie that somebody had changed."""


class Refused(WouldLose):
    """Going on would lose what somebody changed, or cannot bring back everything. Holds the plan."""

    def __init__(self, words: str, steps: Sequence[Step]) -> None:
        super().__init__(words)
        self.steps = list(steps)


class Wish(NamedTuple):
    """What is asked for."""

    action: Literal["undo", "redo"]
    root: Path
    to: str | None = None
    file: str | None = None
    force: bool = False
    rescue: Path | None = None
    allow_protected: bool = False


class Undoing:
    """Undo and redo for one session."""

    def __init__(self, snapshots: Snapshots, writer: Writer, system: System = SYSTEM) -> None:
        self._snapshots, self._writer, self._system = snapshots, writer, system
        self._folder = snapshots.folder
        self._announced: str | None = None

    def settle(self) -> list[str]:
        """Take back an undo that was cut off, if there is one; returns the files that were put back."""
        if not _places(self._folder):
            return []
        with locked(self._system, self._folder / MESSAGES):
            tree = Tree()
            tree.read(self._folder / MESSAGES)
            return settle(self._snapshots, tree, self._system)

    def look(self, tree: Tree, wish: Wish) -> Undone:
        """What would be done."""
        route, steps = self._plan(tree, wish)
        return Undone(wish.action, tree.uuid(tree.head), tree.uuid(route.goal), steps)

    def carry_out(self, wish: Wish) -> Undone:
        """Do it. All of it is done and recorded on return, or nothing is."""
        done: list[Undone] = []
        self._announced = None

        def make(place: Place) -> tuple[Wire, State]:
            settle(self._snapshots, place.tree, self._system)
            route, steps = self._plan(place.tree, wish)
            refuse(steps, wish.force, wish.allow_protected)
            rescue = self._put_back(steps, wish, place.uuid)
            start, head = place.tree.uuid(place.tree.head), place.tree.uuid(route.goal)
            done.append(Undone(wish.action, start, head, steps, None, rescue))
            return self._mark(place, wish, route)

        try:
            receipt = self._writer.note(make)
        except BaseException as error:
            self._take_back(error)
            raise
        self._place(receipt.uuid).unlink(missing_ok=True)
        tidy(wish.root, [step.path for step in done[0].steps if step.is_changing and step.content is None])
        return msgspec.structs.replace(done[0], receipt=receipt)

    def _plan(self, tree: Tree, wish: Wish) -> tuple[Route, list[Step]]:
        taken = list(self._snapshots.taken())
        if wish.action == "redo":
            route = route_on(tree, taken, wish.root)
        elif wish.file is not None:
            goal = node_of(tree, wish.to) if wish.to is not None else None
            route = route_of_file(tree, taken, wish.root, wish.file, goal)
        elif wish.to is not None:
            route = route_to(tree, taken, wish.root, node_of(tree, wish.to))
        else:
            route = route_back(tree, taken, wish.root)
        steps = [step for group in grouped(route.targets) for step in self._steps(wish.root, group, route)]
        if wish.file is not None and all(step.verdict == "same" for step in steps):
            raise UnknownReference(f"{wish.file} is as it was then; there is nothing to undo")
        return route, _without_twins(steps)

    def _steps(self, root: Path, group: Sequence[str], route: Route) -> list[Step]:
        with Within(root) as within:
            return [self._step(within, path, route.targets[path], route) for path in group]

    def _step(self, within: Within, path: str, target: FileState, route: Route) -> Step:
        expected = route.expected.get(path)
        if path in route.elsewhere:
            return Step(path, "refused", target, expected, reason=f"it is not below {route.root}")
        try:
            there = within.read(path)
            now = FileState(digest_of(there), within.mode(path), size=len(there)) if there is not None else NO_FILE
        except PathRefused as error:
            return Step(path, "refused", target, expected, reason=str(error))
        if target.same_as(now):
            return Step(path, "same", target, expected, now, None, there, there)
        try:
            content = self.content(target)
        except SourceUnreadable as error:
            return Step(path, "missing", target, expected, now, str(error), None, there)
        if content is not None and digest_of(content) == now.digest and target.mode is None:
            return Step(path, "same", target, expected, now, None, content, there)
        if there is not None and (expected is None or not expected.same_as(now)):
            recorded = self._recorded(expected)
            return Step(path, "conflict", target, expected, now, _why(expected), content, there, recorded)
        return Step(path, "remove" if content is None else "write", target, expected, now, None, content, there)

    def _recorded(self, expected: FileState | None) -> bytes | None:
        try:
            return self.content(expected) if expected is not None else None
        except SourceUnreadable:
            return None

    def content(self, state: FileState) -> bytes | None:
        """What a file held; raises SourceUnreadable where that cannot be had for sure."""
        if state.missing is not None:
            raise SourceUnreadable(state.missing)
        if state.digest is None:
            return None
        if state.text is not None:
            return state.text.encode()
        if state.backup is None:
            return self._snapshots.blobs.get(state.digest)
        body = read_inside(self._folder / BACKUPS, state.backup)
        if body is None:
            raise SourceUnreadable(f"the copy {state.backup} is gone")
        if state.digest and digest_of(body) != state.digest:
            raise SourceUnreadable(f"the copy {state.backup} is damaged: its content has another digest")
        return body

    def _put_back(self, steps: Sequence[Step], wish: Wish, mark: str) -> Path | None:
        changing = [step for step in steps if step.is_changing]
        if not changing:
            return None
        snapshots = self._snapshots
        with snapshots.writing() as log:
            # What is there now can be had again by a redo, so it must be safe before it is replaced.
            snapshots.blobs.put(Fresh(step.there, step.target.digest) for step in changing if step.there is not None)
            rescue = _rescue([step for step in changing if step.verdict == "conflict"], wish.rescue)
            self._announce(mark, wish.root, changing)
            changes = self._apply(wish.root, {step.path: step for step in changing})
            snapshots.append(log, mark, wish.root, changes)
        return rescue

    def _apply(self, root: Path, steps: dict[str, Step]) -> dict[str, Change]:
        """Write all files; returns what each was and is."""
        changes: dict[str, Change] = {}
        for group in grouped(steps):
            with Within(root) as within:
                within.apply([Written(path, steps[path].content, steps[path].target.mode) for path in group])
                changes.update({path: Change(steps[path].now, self._left(within, steps[path])) for path in group})
        return changes

    @staticmethod
    def _left(within: Within, step: Step) -> FileState:
        if step.content is None:
            return NO_FILE
        return FileState(digest_of(step.content), within.mode(step.path), size=len(step.content))

    def _announce(self, mark: str, root: Path, changing: Iterable[Step]) -> None:
        """Say what is about to be done, durably, so that it can be taken back behind a crash."""
        files = {os.fsencode(step.path): (step.now, _wanted(step)) for step in changing}
        self._announced = mark
        announce(self._system, self._place(mark), Pending(mark, str(root), files))

    def _place(self, mark: str) -> Path:
        return self._folder / PENDING.replace("*", mark)

    def _take_back(self, error: BaseException) -> None:
        """Something failed: what was done to files is undone, unless it is recorded after all."""
        mark, self._announced = self._announced, None
        if mark is None or not self._place(mark).exists():
            return
        try:
            self.settle()
        except (OSError, ClewError):
            error.add_note("files may be half undone; the next command on the session takes that back")

    def _mark(self, place: Place, wish: Wish, route: Route) -> tuple[Wire, State]:
        tree, goal = place.tree, route.goal
        branch = tree.branches[goal] if goal != NONE else MAIN
        todos = todos_at(self._folder / MESSAGES, tree, goal)
        mark = BranchRecord(
            uuid=place.uuid,
            timestamp=place.time,
            session_id=self._folder.name,
            action=wish.action,
            branch_id=branch,
            message_id=tree.uuid(goal),
            from_id=tree.uuid(tree.head),
            todos=todos,
            metadata=place.number,
        )
        if goal == tree.head:
            return mark, place.state.copied()
        return mark, State(0, tree.uuid(goal), branch, not tree.forks_at(goal), todos)


def refuse(steps: Sequence[Step], force: bool, allow_protected: bool) -> None:
    """Stop before anything is changed, if something must not be."""
    refused = [step for step in steps if step.verdict == "refused"]
    if refused:
        raise PathRefused(f"nothing was changed: {refused[0].path!r}: {refused[0].reason}")
    protected = [step for step in steps if step.is_changing and is_protected(step.path)]
    if protected and not allow_protected:
        words = "programs trust this file without asking; --allow-protected changes it"
        raise PathRefused(f"nothing was changed: {protected[0].path!r}: {words}")
    missing = [step for step in steps if step.verdict == "missing"]
    if missing and not force:
        words = f"nothing was changed: {missing[0].path!r} cannot be brought back: {missing[0].reason}"
        raise Refused(f"{words}; --force leaves it as it is", steps)
    conflicts = [step for step in steps if step.verdict == "conflict"]
    if conflicts and not force:
        words = f"nothing was changed: {conflicts[0].path!r} {conflicts[0].reason}"
        raise Refused(f"{words}; --force goes on, and keeps a copy", steps)


def _why(expected: FileState | None) -> str:
    if expected is not None and expected.missing is not None:
        return f"may hold somebody's work: {expected.missing}"
    return "was changed since"


def _without_twins(steps: list[Step]) -> list[Step]:
    try:
        refuse_twins([step.path for step in steps if step.is_changing])
    except PathRefused as error:
        return [msgspec.structs.replace(step, verdict="refused", reason=str(error)) for step in steps]
    return steps


def _rescue(conflicts: Sequence[Step], folder: Path | None) -> Path | None:
    """Plain copies of what somebody changed, where a person finds them."""
    kept = [Written(step.path, step.there, 0o600) for step in conflicts if step.there is not None]
    if not kept or folder is None:
        return None
    make_folder(SYSTEM, folder)
    with Within(folder) as copies:
        copies.apply(kept)
    for inner in folder.rglob("*"):
        if inner.is_dir():
            inner.chmod(FOLDER_MODE)
    return folder


def _wanted(step: Step) -> FileState:
    if step.content is None:
        return NO_FILE
    return FileState(digest_of(step.content), None if step.target.mode is None else step.target.mode & WIDEST)


def _places(folder: Path) -> list[Path]:
    return sorted(folder.glob(PENDING))


def named_by_pending(folder: Path) -> set[str]:
    """The digests of what is needed to take such undos back."""
    pairs = [pair for _, found in announced(_places(folder)) for pair in found.files.values()]
    return {state.digest for pair in pairs for state in pair if state.digest}


def settle(snapshots: Snapshots, tree: Tree, system: System = SYSTEM) -> list[str]:
    """Take back undos that were not finished, while the log is held; returns the files that were put back.

    Where the workspace is not there just now, what is to be put back waits for it.
    """
    restored: list[str] = []
    for path, found in announced(_places(snapshots.folder)):
        if all(mark.uuid != found.mark for _, mark in tree.moves):
            if not Path(found.root).is_dir():
                continue
            restored += put_as_it_was(found, lambda _, before: snapshots.blobs.get(before.digest or ""))
        # Whoever finished it may be clearing it away himself.
        with suppress(FileNotFoundError):
            system.unlink(path)
    return restored


def tidy(root: Path, removed: Iterable[str]) -> None:
    """Remove the folders that are empty now that files were removed from them; links are not followed."""
    for path in removed:
        parts = path.split("/")[:-1]
        while parts and remove_empty(root, parts):
            parts.pop()
