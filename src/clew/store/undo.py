"""Undo and redo: files as the snapshots have them, the conversation, and its task list.

First a plan, then copies of what is there, then all files or none, and last the record in the log. Meanwhile a journal
in clew's data folder says what is being changed; after a crash the next command on the session rolls it back.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, count
from pathlib import Path

import msgspec

from clew.agents.sage_agent.written_records import BranchRecord, Record
from clew.errors import ClewError, PathRefused, SourceUnreadable, UnknownReference
from clew.io.blobs import digest_of
from clew.io.file_lock import locked
from clew.io.filesystem import SYSTEM, System, make_folder
from clew.io.safe_write import WIDEST, Change, Within
from clew.store.apply_changes import (
    apply_all,
    blocking_path,
    folders_of,
    has_folder,
    is_folder,
    is_there,
    remove_empty,
)
from clew.store.change_journal import (
    Journal,
    identity_of,
    missing_folders,
    read_journals,
    roll_back,
    undo_journal,
    undo_journals,
    write_journal,
)
from clew.store.conversation_tree import MAIN, NONE, Tree, node_of
from clew.store.file_state import NO_FILE, FileState, StateChange
from clew.store.layout import MESSAGES
from clew.store.snapshots import SnapshotEntry, Snapshots
from clew.store.undo_plan import (
    FileStep,
    Refused,
    RestorePlan,
    UndoRequest,
    UndoResult,
    content_of,
    plan_last_change,
    plan_one_file,
    plan_redo,
    plan_steps,
    plan_to_message,
    refuse_incomplete_redo,
    refuse_unsafe,
    relocate,
    todos_at,
)
from clew.store.unreadable_records import all_unknown_changes, unknown_changes
from clew.store.watch import interrupted, outcome_of_interrupted, record_interrupted
from clew.store.writer import RecordSlot, SessionHead, Writer

EARLIER = "earlier"
"""In a rescue folder: the folder for further versions of a file that is in it already."""


class Undo:
    """Undo and redo for one session."""

    def __init__(self, snapshots: Snapshots, writer: Writer, system: System = SYSTEM) -> None:
        self._snapshots, self._writer, self._system = snapshots, writer, system
        self._folder = snapshots.folder
        self._journaled: str | None = None
        """The uuid of the record whose journal was written."""

    def roll_back_interrupted(self) -> list[str]:
        """Roll back an undo that was interrupted, if there is one; return the restored files."""
        if not undo_journals(self._folder):
            return []
        with locked(self._system, self._folder / MESSAGES):
            tree = Tree()
            tree.read(self._folder / MESSAGES)
            return roll_back_interrupted_undos(self._snapshots, tree, self._system)

    def preview(self, tree: Tree, request: UndoRequest) -> UndoResult:
        """Return what would be done."""
        plan, steps = self._plan(tree, request)
        unknown = unknown_changes(self._snapshots, tree, plan)
        start, head, refusal = tree.uuid(tree.head), tree.uuid(plan.goal), None
        try:
            _refuse(steps, request, unknown)
        except (Refused, PathRefused) as error:
            refusal = str(error).removeprefix("nothing was changed: ")
        return UndoResult(request.action, start, head, steps, unknown=unknown, refusal=refusal)

    def run(self, request: UndoRequest) -> UndoResult:
        """Do it. On return all of it is done and recorded; on error nothing is."""
        results: list[UndoResult] = []
        self._journaled = None

        def make(at: RecordSlot) -> tuple[Record, SessionHead]:
            roll_back_interrupted_undos(self._snapshots, at.tree, self._system)
            plan, steps = self._plan(at.tree, request)
            unknown = unknown_changes(self._snapshots, at.tree, plan)
            _refuse(steps, request, unknown)
            rescued = self._restore(steps, request, at.uuid)
            start, head = at.tree.uuid(at.tree.head), at.tree.uuid(plan.goal)
            results.append(UndoResult(request.action, start, head, steps, None, rescued, unknown))
            return self._record(at, request, plan)

        try:
            receipt = self._writer.append_record(make)
        except BaseException as error:
            self._roll_back_after(error)
            raise
        with suppress(OSError):  # it is done and recorded; the next undo deletes the journal
            undo_journal(self._folder, receipt.uuid).unlink(missing_ok=True)
        removed = [step.path for step in results[0].steps if step.is_changing and step.target.is_nothing]
        _remove_empty_folders(request.root, removed)
        return msgspec.structs.replace(results[0], receipt=receipt)

    def _plan(self, tree: Tree, request: UndoRequest) -> tuple[RestorePlan, list[FileStep]]:
        entries = self._entries(request)
        goal = node_of(tree, request.to) if request.to is not None else None
        try:
            if request.action == "redo":
                plan = plan_redo(tree, entries, request.root)
            elif request.file is not None:
                plan = plan_one_file(tree, entries, request.root, request.file, goal)
            elif goal is not None:
                plan = plan_to_message(tree, entries, request.root, goal)
            else:
                plan = plan_last_change(tree, entries, request.root)
        except UnknownReference as error:
            # There is nothing to do as far as the logs say; say so if a part of them is lost.
            raise UnknownReference("; ".join([str(error), *all_unknown_changes(self._snapshots)[:1]])) from None
        return plan, plan_steps(self._snapshots, plan, request)

    def _entries(self, request: UndoRequest) -> list[SnapshotEntry]:
        """Return the snapshots, and after them what an interrupted tool did: what is in the workspace now."""
        entries = list(self._snapshots.entries())
        found = [outcome_of_interrupted(self._snapshots, cut, now) for cut, now in _interrupted_in(entries, request)]
        return relocate([*entries, *(one for one in found if one is not None)], request.moved_from, request.root)

    def content(self, state: FileState) -> bytes | None:
        """Return the content of a state; raises SourceUnreadable if it is not kept or damaged."""
        return content_of(self._snapshots, state)

    def _restore(self, steps: Sequence[FileStep], request: UndoRequest, uuid: str) -> Path | None:
        """Change the files and record it as a snapshot; return the folder with rescued copies."""
        changing = [step for step in steps if step.is_changing]
        if not changing:
            return None
        snapshots = self._snapshots
        with snapshots.writing() as log:
            # A redo restores what is there now, so that must be kept before it is replaced.
            snapshots.blobs.put(step.current for step in changing if step.current is not None)
            for cut, now in _interrupted_in(list(snapshots.entries()), request):
                record_interrupted(snapshots, log, cut, now)
            rescued = rescue([step for step in changing if step.verdict == "conflict"], request.rescue)
            self._write_journal(uuid, request.root, changing)
            changes = self._apply(request.root, {step.path: step for step in changing})
            snapshots.append(log, uuid, request.root, changes)
        return rescued

    def _apply(self, root: Path, steps: dict[str, FileStep]) -> dict[str, StateChange]:
        """Write all files; return the state of each before and after."""
        apply_all(
            root,
            [
                Change(path, step.content, step.target.mode, link=step.target.link, over=step.now.link)
                for path, step in steps.items()
            ],
        )
        changes: dict[str, StateChange] = {}
        with Within(root, apart=True, own=True) as within:
            for path, step in steps.items():
                mode = within.mode(path) if step.content is not None else None
                changes[path] = StateChange(step.now, _state_after(step, mode))
        return changes

    def _write_journal(self, uuid: str, root: Path, changing: Iterable[FileStep]) -> None:
        files = {}
        for step in changing:
            mode = None if step.target.mode is None else step.target.mode & WIDEST
            files[os.fsencode(step.path)] = (step.now, _state_after(step, mode))
        written = [os.fsdecode(name) for name, (_, wanted) in files.items() if not wanted.is_nothing]
        journal = Journal(uuid, str(root), files, missing_folders(root, written), identity_of(root))
        self._journaled = uuid
        write_journal(self._system, undo_journal(self._folder, uuid), journal)

    def _roll_back_after(self, error: BaseException) -> None:
        """Roll back the files after an error, unless the undo was recorded after all."""
        uuid, self._journaled = self._journaled, None
        if uuid is None or not undo_journal(self._folder, uuid).exists():
            return
        try:
            self.roll_back_interrupted()
        except (OSError, ClewError):
            error.add_note("files may be half undone; the next command on the session rolls that back")

    def _record(self, place: RecordSlot, request: UndoRequest, plan: RestorePlan) -> tuple[Record, SessionHead]:
        tree, goal = place.tree, plan.goal
        branch = tree.branches[goal] if goal != NONE else MAIN
        todos = todos_at(self._folder / MESSAGES, tree, goal)
        record = BranchRecord(
            uuid=place.uuid,
            timestamp=place.time,
            session_id=self._folder.name,
            action=request.action,
            branch_id=branch,
            message_id=tree.uuid(goal),
            from_id=tree.uuid(tree.head),
            todos=todos,
            metadata=place.number,
        )
        if goal == tree.head:
            return record, place.head
        return record, SessionHead(0, tree.uuid(goal), branch, not tree.forks_at(goal), todos)


def _state_after(step: FileStep, mode: int | None) -> FileState:
    """Return the state that a step leaves."""
    if step.content is None:
        return NO_FILE if step.target.link is None else FileState(None, link=step.target.link)
    return FileState(digest_of(step.content), mode, size=len(step.content))


def _interrupted_in(entries: Sequence[SnapshotEntry], request: UndoRequest) -> list[tuple[SnapshotEntry, Path]]:
    """Return the scans before interrupted tools, each with the folder where the workspace is now.

    Only those in the workspace that the user named: a record may name any folder, and a scan copies its files.
    """
    cut = interrupted(entries)
    pairs = zip(cut, relocate(cut, request.moved_from, request.root), strict=True)
    places = [(one, Path(str(there.root))) for one, there in pairs]
    root = request.root.resolve()
    return [(one, there) for one, there in places if has_folder(there) and there.resolve().is_relative_to(root)]


def roll_back_interrupted_undos(snapshots: Snapshots, tree: Tree, system: System = SYSTEM) -> list[str]:
    """Roll back undos that were not recorded, while the log is locked; return the restored files.

    If the workspace is not there now, the journal stays until it is.
    """
    restored: list[str] = []
    for path, journal in read_journals(undo_journals(snapshots.folder)):
        if all(mark.uuid != journal.id for _, mark in tree.switch_records):
            if not has_folder(Path(journal.root)):
                continue
            try:
                restored += roll_back(journal, lambda _, before: snapshots.blobs.get(before.digest or ""))
            except PathRefused as error:
                words = f"an undo in {journal.root} was interrupted, and cannot be rolled back: {error}"
                raise SourceUnreadable(f"{words}; remove {path} to leave the files as they are") from error
        # The process that finished the undo may be deleting it too.
        with suppress(FileNotFoundError):
            system.unlink(path)
    return restored


def _remove_empty_folders(root: Path, removed: Iterable[str]) -> None:
    """Remove the folders that are empty now that files were removed from them; links are not followed."""
    for path in removed:
        parts = path.split("/")[:-1]
        while parts and remove_empty(root, parts):
            parts.pop()


def rescue(conflicts: Sequence[FileStep], folder: Path | None) -> Path | None:
    """Keep plain copies of edited files; return the folder with them, or None if there is nothing to keep.

    If a copy would replace something in the folder, all of them go into a new folder inside it.
    """
    copies = list(_rescue_copies(conflicts))
    if not copies or folder is None:
        return None
    paths = [copy.path for copy in copies]
    candidates = chain([folder], (folder / str(number) for number in count(2)))
    target = next(one for one in candidates if _is_free_for(one, folder, paths))
    for above in ("", *folders_of(paths)):
        make_folder(SYSTEM, target / above)
    apply_all(target, copies)
    return target


def _is_free_for(target: Path, chosen: Path, paths: Sequence[str]) -> bool:
    """Return whether no path is taken or blocked; only the folder that the user chose may be a link."""
    if target != chosen and is_there(target) and not is_folder(target):
        return False
    return not any(is_there(target / path) or blocking_path(target, path, (), ()) for path in paths)


def _rescue_copies(conflicts: Sequence[FileStep]) -> Iterator[Change]:
    """Yield a copy of each version; the first one is where the file was, the others below EARLIER."""
    top_names = {step.path.partition("/")[0] for step in conflicts}
    files: set[str] = set()
    folders: set[str] = set()
    for step in conflicts:
        places = (_rescue_path(step.path, number, top_names) for number in count())
        for body in _versions_to_rescue(step):
            path = next(one for one in places if one not in folders and files.isdisjoint((one, *folders_of([one]))))
            files.add(path)
            folders.update(folders_of([path]))
            yield Change(path, body, 0o600)


def _rescue_path(path: str, number: int, top_names: set[str]) -> str:
    if not number:
        return path
    above = EARLIER + (str(number) if number > 1 else "")
    while above in top_names:
        above += "-"
    return f"{above}/{path}"


def _versions_to_rescue(step: FileStep) -> list[bytes]:
    """Return the edited versions of a file, the last one first, each once."""
    now = [step.current] if step.is_changed_since else []
    made = [one.made for one in reversed(step.outside_versions)]
    return list(dict.fromkeys(body for body in (*now, *made) if body is not None))


def _refuse(steps: Sequence[FileStep], request: UndoRequest, unknown: Sequence[str]) -> None:
    """Stop an undo or redo that must not be done."""
    if request.action == "redo":
        refuse_incomplete_redo(unknown)
    refuse_unsafe(steps, request, unknown)
