"""Going back and on again: files as the snapshots have them, the conversation, and its task list.

First a plan, then copies of what is there, then all files or none, and last the record that makes it so. Meanwhile a
journal in clew's data folder says what is being done; after a crash the next command on the session rolls it back.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from clew.agents.backups import read_inside
from clew.agents.sage_agent.written_records import BranchRecord, Record
from clew.errors import ClewError, PathRefused, SourceUnreadable, UnknownReference
from clew.io.blobs import digest_of
from clew.io.file_lock import locked
from clew.io.filesystem import SYSTEM, System, make_folder
from clew.io.safe_write import WIDEST, CaseCollisionError, Within, refuse_twins
from clew.io.safe_write import Change as Written
from clew.store.blobs import Fresh
from clew.store.branches import node_of
from clew.store.conversation_tree import MAIN, NONE, Tree
from clew.store.edits import Edit
from clew.store.gaps import all_gaps, gaps
from clew.store.groups import folders_of, grouped
from clew.store.layout import BACKUPS, MESSAGES
from clew.store.pending import Pending, announce, announced, identity_of, journal_folder, put_as_it_was
from clew.store.placing import has_folder, is_there, obstacle, place, remove_empty, state_among
from clew.store.rescue import rescue
from clew.store.routes import Route, moved, route_back, route_of_file, route_on, route_to, todos_at
from clew.store.snapshots import NO_FILE, Change, FileState, Snapshots, Taken
from clew.store.steps import Between, Step, Undone, refuse, refuse_blind
from clew.store.watching import close, outcome, unclosed
from clew.store.writer import RecordSlot, SessionHead, Writer

PENDING = "undo-*.pending"
"""One file for each undo that is going on, named by its record, so that nobody mistakes another's for his own."""


_APART = "; --force goes on where this file system tells them apart"


class Wish(NamedTuple):
    """What is asked for."""

    action: Literal["undo", "redo"]
    root: Path
    to: str | None = None
    file: str | None = None
    force: bool = False
    rescue: Path | None = None
    allow_protected: bool = False
    was: str | None = None
    """Where the workspace was when the snapshots were made, if it was moved since."""


class Undoing:
    """Undo and redo for one session."""

    def __init__(self, snapshots: Snapshots, writer: Writer, system: System = SYSTEM) -> None:
        self._snapshots, self._writer, self._system = snapshots, writer, system
        self._folder = snapshots.folder
        self._announced: str | None = None

    def settle(self) -> list[str]:
        """Take back an undo that was cut off, if there is one; returns the files that were put back."""
        if not pending_undos(self._folder):
            return []
        with locked(self._system, self._folder / MESSAGES):
            tree = Tree()
            tree.read(self._folder / MESSAGES)
            return settle(self._snapshots, tree, self._system)

    def look(self, tree: Tree, wish: Wish) -> Undone:
        """What would be done."""
        route, steps = self._plan(tree, wish)
        unknown = gaps(self._snapshots, tree, route)
        return Undone(wish.action, tree.uuid(tree.head), tree.uuid(route.goal), steps, unknown=unknown)

    def carry_out(self, wish: Wish) -> Undone:
        """Do it. All of it is done and recorded on return, or nothing is."""
        done: list[Undone] = []
        self._announced = None

        def make(at: RecordSlot) -> tuple[Record, SessionHead]:
            settle(self._snapshots, at.tree, self._system)
            route, steps = self._plan(at.tree, wish)
            unknown = gaps(self._snapshots, at.tree, route)
            if wish.action == "redo":
                refuse_blind(unknown)
            refuse(steps, wish.root, wish.force, wish.allow_protected, unknown)
            kept = self._put_back(steps, wish, at.uuid)
            start, head = at.tree.uuid(at.tree.head), at.tree.uuid(route.goal)
            done.append(Undone(wish.action, start, head, steps, None, kept, unknown))
            return self._mark(at, wish, route)

        try:
            receipt = self._writer.append_record(make)
        except BaseException as error:
            self._take_back(error)
            raise
        with suppress(OSError):  # it is done and recorded; what is told of it is cleared away by the next one
            self._place(receipt.uuid).unlink(missing_ok=True)
        tidy(wish.root, [step.path for step in done[0].steps if step.is_changing and step.target.is_nothing])
        return msgspec.structs.replace(done[0], receipt=receipt)

    def _plan(self, tree: Tree, wish: Wish) -> tuple[Route, list[Step]]:
        route = self._route(tree, wish)
        steps = [step for group in grouped(route.targets) for step in self._steps(wish, group, route)]
        if wish.file is not None and all(step.verdict == "same" for step in steps):
            raise UnknownReference(f"{wish.file} is as it was then; there is nothing to undo")
        return route, _without_twins(_without_blocked(steps, wish.root), wish)

    def _route(self, tree: Tree, wish: Wish) -> Route:
        taken = self._taken(wish)
        goal = node_of(tree, wish.to) if wish.to is not None else None
        try:
            if wish.action == "redo":
                return route_on(tree, taken, wish.root)
            if wish.file is not None:
                return route_of_file(tree, taken, wish.root, wish.file, goal)
            return route_to(tree, taken, wish.root, goal) if goal is not None else route_back(tree, taken, wish.root)
        except UnknownReference as error:
            # Nothing is to be done as far as the logs tell, and they may not tell all.
            raise UnknownReference("; ".join([str(error), *all_gaps(self._snapshots)[:1]])) from None

    def _taken(self, wish: Wish) -> list[Taken]:
        """The snapshots, and behind them what came of a tool that was cut off: what lies there now."""
        taken = list(self._snapshots.taken())
        found = [outcome(self._snapshots, cut, now) for cut, now in _cut_off(taken, wish)]
        return moved([*taken, *(one for one in found if one is not None)], wish.was, wish.root)

    def _steps(self, wish: Wish, group: Sequence[str], route: Route) -> list[Step]:
        with Within(wish.root, apart=wish.force, own=True) as within:
            return [self._step(within, path, route.targets[path], route) for path in group]

    def _step(self, within: Within, path: str, target: FileState, route: Route) -> Step:
        expected = route.expected.get(path)
        if path in route.elsewhere:
            return Step(path, "refused", target, expected, reason=_why_elsewhere(path, route.root))
        try:
            now, there = state_among(within, path, route.targets)
        except PathRefused as error:
            way_out = _APART if isinstance(error, CaseCollisionError) else ""
            return Step(path, "refused", target, expected, reason=f"{error}{way_out}")
        if now.link is not None and (expected is None or expected.link != now.link):
            words = "it is a link that no tool made; put it aside first"
            return Step(path, "refused", target, expected, now, reason=words)
        if target.same_as(now):
            return Step(path, "same", target, expected, now, None, there, there)
        try:
            content = self._wanted_content(target, now)
        except SourceUnreadable as error:
            return Step(path, "missing", target, expected, now, str(error), None, there)
        if content is not None and digest_of(content) == now.digest and target.mode is None:
            return Step(path, "same", target, expected, now, None, content, there)
        step = Step(path, "remove" if target.is_nothing else "write", target, expected, now, None, content, there)
        return self._doubted(step, route.edits.get(path, ()))

    def _wanted_content(self, target: FileState, now: FileState) -> bytes | None:
        """What a file is to hold. A link can be put back, but not what stood behind it."""
        if target.link is not None and target.link != now.link:
            return None
        return self.content(target)

    def _doubted(self, step: Step, edits: Sequence[Edit]) -> Step:
        """The step as a conflict, where somebody's work would be lost."""
        if not edits and not step.is_changed_since:
            return step
        between = [Between(self._recorded(edit.left), self._made(edit.made, step)) for edit in edits]
        reasons = [_why(step.expected)] if step.is_changed_since else []
        reasons += [edit.why for edit in edits]
        if any(one.made is None and edit.made.link is None for one, edit in zip(between, edits, strict=True)):
            reasons.append("no copy of that could be kept")
        return msgspec.structs.replace(
            step,
            verdict="conflict",
            reason="; ".join(dict.fromkeys(reasons)),
            recorded=self._recorded(step.expected),
            between=between,
        )

    def _made(self, state: FileState, step: Step) -> bytes | None:
        """What somebody made of a file; of what lies there now there may be no copy yet."""
        return step.there if state.digest == step.now.digest else self._recorded(state)

    def _recorded(self, state: FileState | None) -> bytes | None:
        try:
            return self.content(state) if state is not None else None
        except SourceUnreadable:
            return None

    def content(self, state: FileState) -> bytes | None:
        """What a file held; raises SourceUnreadable where that cannot be had for sure."""
        if state.missing is not None:
            raise SourceUnreadable(state.missing)
        if state.digest is None:
            return None  # no file; a link holds nothing itself
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
            for cut, now in _cut_off(list(snapshots.taken()), wish):
                close(snapshots, log, cut, now)
            kept = rescue([step for step in changing if step.verdict == "conflict"], wish.rescue)
            self._announce(mark, wish.root, changing)
            changes = self._apply(wish.root, {step.path: step for step in changing})
            snapshots.append(log, mark, wish.root, changes)
        return kept

    def _apply(self, root: Path, steps: dict[str, Step]) -> dict[str, Change]:
        """Write all files; returns what each was and is."""
        place(
            root,
            [
                Written(path, step.content, step.target.mode, link=step.target.link, over=step.now.link)
                for path, step in steps.items()
            ],
        )
        changes: dict[str, Change] = {}
        for group in grouped(steps):
            with Within(root, apart=True, own=True) as within:
                changes.update({path: Change(steps[path].now, self._left(within, steps[path])) for path in group})
        return changes

    @staticmethod
    def _left(within: Within, step: Step) -> FileState:
        if step.content is None:
            return NO_FILE if step.target.link is None else FileState(None, link=step.target.link)
        return FileState(digest_of(step.content), within.mode(step.path), size=len(step.content))

    def _announce(self, mark: str, root: Path, changing: Iterable[Step]) -> None:
        """Say what is about to be done, durably, so that it can be taken back behind a crash."""
        files = {os.fsencode(step.path): (step.now, _wanted(step)) for step in changing}
        above = folders_of(os.fsdecode(name) for name, (_, wanted) in files.items() if not wanted.is_nothing)
        made = [os.fsencode(folder) for folder in above if not is_there(root / folder)]
        self._announced = mark
        make_folder(self._system, journal_folder(self._folder))
        announce(self._system, self._place(mark), Pending(mark, str(root), files, made, identity_of(root)))

    def _place(self, mark: str) -> Path:
        return journal_folder(self._folder) / PENDING.replace("*", mark)

    def _take_back(self, error: BaseException) -> None:
        """Something failed: what was done to files is undone, unless it is recorded after all."""
        mark, self._announced = self._announced, None
        if mark is None or not self._place(mark).exists():
            return
        try:
            self.settle()
        except (OSError, ClewError):
            error.add_note("files may be half undone; the next command on the session takes that back")

    def _mark(self, place: RecordSlot, wish: Wish, route: Route) -> tuple[Record, SessionHead]:
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
            return mark, place.head
        return mark, SessionHead(0, tree.uuid(goal), branch, not tree.forks_at(goal), todos)


def _why_elsewhere(path: str, root: Path) -> str:
    if path.startswith("/"):
        return f"it is not below {root}; if the workspace was moved there, say where it was with --from"
    return "it may be elsewhere on some system, and another program told the name"


def _why(expected: FileState | None) -> str:
    if expected is not None and expected.missing is not None:
        return f"may hold somebody's work: {expected.missing}"
    return "was changed since"


def _without_twins(steps: list[Step], wish: Wish) -> list[Step]:
    """The steps; refused where names differ so little that some systems hold them for one, unless it is forced."""
    if wish.force:
        return steps  # then the file system itself is asked
    try:
        refuse_twins([step.path for step in steps if step.is_changing])
    except CaseCollisionError as error:
        return [msgspec.structs.replace(step, verdict="refused", reason=f"{error}{_APART}") for step in steps]
    return steps


def _without_blocked(steps: list[Step], root: Path) -> list[Step]:
    """The steps; refused where something is in the way of a file, and would be at the end."""
    written = {step.path for step in steps if step.is_changing and not step.target.is_nothing}
    removed = {step.path for step in steps if step.is_changing and step.target.is_nothing}
    return [_unless_blocked(step, root, written, removed) if step.path in written else step for step in steps]


def _unless_blocked(step: Step, root: Path, written: set[str], removed: set[str]) -> Step:
    left = obstacle(root, step.path, written, removed)
    if left is None:
        return step
    if left in written:
        words = f"{left!r} was a file too, at another time; go back step by step"
    elif step.path.startswith(f"{left}/"):
        words = f"{left!r} is no folder now, and stays; put it aside first"
    else:
        words = f"it is a folder now, with files that no tool made, such as {left!r}; put them aside first"
    return msgspec.structs.replace(step, verdict="refused", reason=words)


def _cut_off(taken: Sequence[Taken], wish: Wish) -> list[tuple[Taken, Path]]:
    """The looks at whole workspaces that were the last word, each with where the workspace is now.

    Only those in the workspace that the user named: a record may name any folder, and looking copies its files.
    """
    cut = unclosed(taken)
    pairs = zip(cut, moved(cut, wish.was, wish.root), strict=True)
    places = [(one, Path(str(there.root))) for one, there in pairs]
    return [(one, there) for one, there in places if has_folder(there) and _is_inside(there, wish.root)]


def _is_inside(folder: Path, root: Path) -> bool:
    return folder.resolve().is_relative_to(root.resolve())


def _wanted(step: Step) -> FileState:
    if step.content is None:
        return NO_FILE if step.target.link is None else FileState(None, link=step.target.link)
    return FileState(digest_of(step.content), None if step.target.mode is None else step.target.mode & WIDEST)


def pending_undos(folder: Path) -> list[Path]:
    """The journals of undos of a session that are going on, or were cut off."""
    return sorted(journal_folder(folder).glob(PENDING))


def named_by_pending(folder: Path) -> set[str]:
    """The digests of what is needed to take such undos back."""
    pairs = [pair for _, found in announced(pending_undos(folder)) for pair in found.files.values()]
    return {state.digest for pair in pairs for state in pair if state.digest}


def settle(snapshots: Snapshots, tree: Tree, system: System = SYSTEM) -> list[str]:
    """Take back undos that were not finished, while the log is held; returns the files that were put back.

    Where the workspace is not there just now, what is to be put back waits for it.
    """
    restored: list[str] = []
    for path, found in announced(pending_undos(snapshots.folder)):
        if all(mark.uuid != found.mark for _, mark in tree.switch_records):
            if not has_folder(Path(found.root)):
                continue
            try:
                restored += put_as_it_was(found, lambda _, before: snapshots.blobs.get(before.digest or ""))
            except PathRefused as error:
                words = f"an undo in {found.root} was cut off, and cannot be taken back: {error}"
                raise SourceUnreadable(f"{words}; remove {path} to leave the files as they are") from error
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
