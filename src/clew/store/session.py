"""`Session`: append messages, record and undo file changes, branch, read and follow."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypedDict, Unpack, get_args

from msgspec import UNSET

from clew.agents.sage_agent.records import TITLE, is_old_form
from clew.agents.sage_agent.written_records import (
    BranchRecord,
    Context,
    FileBackup,
    FileMaps,
    Level,
    MessageBody,
    MessageRecord,
    NoteRecord,
    Record,
    SnapshotRecord,
    Status,
    Thinking,
    TodoItem,
    ToolCall,
    ToolResult,
    TrackedFile,
    Usage,
    encode_lines,
    refuse_odd,
)
from clew.errors import ClewError, SourceUnreadable, UnknownReference, UsageError
from clew.model.json import JSON
from clew.model.time import parse_time
from clew.store import session_metadata
from clew.store.change_journal import digests_in_undo_journals
from clew.store.conversation_tree import MAIN, Branch, Tree, list_branches, node_of
from clew.store.file_state import FileState
from clew.store.follow import follow
from clew.store.layout import BACKUPS, MESSAGES, RESCUE, SCANS, refuse_links
from clew.store.log import read_log
from clew.store.message_context import ContextReader
from clew.store.snapshots import Snapshots, name_below, root_for
from clew.store.undo import Undo
from clew.store.undo_plan import Comparison, UndoRequest, UndoResult, compare_branches
from clew.store.unreadable_records import refuse_unreadable
from clew.store.watch import Watch
from clew.store.writer import Draft, Receipt, RecordSlot, SessionHead, Writer, WriterConfig

LEVELS, STATUSES = get_args(Level), get_args(Status)

Content = str | list[dict[str, JSON]]
"""Text, or a list of content blocks."""


class MessageOptions(TypedDict, total=False):
    """Options of every message; the store finds what is not given."""

    uuid: str | None
    parent: str | None
    """The message that it follows. Default: the last one. An older one starts a branch; None starts a new root."""
    timestamp: str | None
    context: Context | None
    version: str | None
    sidechain: bool | None
    metadata: dict[str, JSON] | None
    """Any other data of the agent."""


class Session:
    """One conversation on disk. An append returns when the record is durable; readers see complete records only.

    Any number of processes may append to a session, and threads may share a handle. No file is
    created before the first append.
    """

    def __init__(self, folder: Path, config: WriterConfig | None = None) -> None:
        refuse_links(folder, BACKUPS, RESCUE, SCANS)
        self.folder, self.id = folder, folder.name
        self._config = config or WriterConfig()
        self._writer = Writer(folder, self._config)
        self._is_undo_checked = False
        self._tree = Tree()
        self._seen: os.stat_result | None = None
        self._snapshots = Snapshots(folder, self._config, self._writer.now)
        self._undo = Undo(self._snapshots, self._writer, self._config.system)

    def __repr__(self) -> str:
        return f"<Session {self.id} in {self.folder.parent}>"

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Make everything durable and bring the metadata up to date."""
        self._writer.close()

    # Appending

    def user(
        self,
        content: Content,
        *,
        todos: Sequence[TodoItem] | None = None,
        thinking: Thinking | None = None,
        **options: Unpack[MessageOptions],
    ) -> Receipt:
        """Append a prompt. Without `todos` the task list stays the same."""
        body = MessageBody(role="user", content=content)
        record = MessageRecord(type="user", uuid="", message=body, thinking_metadata=thinking or UNSET)
        return self._add(record, options, todos)

    def assistant(
        self,
        content: Content = "",
        *,
        calls: Sequence[ToolCall] = (),
        usage: Usage | None = None,
        todos: Sequence[TodoItem] | None = None,
        thinking: Thinking | None = None,
        model: str | None = None,
        **options: Unpack[MessageOptions],
    ) -> Receipt:
        """Append a reply of the model, with its tool calls and token usage."""
        body = MessageBody(role="assistant", content=content, tool_calls=list(calls) or UNSET)
        record = MessageRecord(
            type="assistant", uuid="", message=body, usage=usage or UNSET, thinking_metadata=thinking or UNSET
        )
        if model is not None:
            options["metadata"] = {"model": model, **(options.get("metadata") or {})}
        return self._add(record, options, todos)

    def results(self, *results: ToolResult, **options: Unpack[MessageOptions]) -> Receipt:
        """Append the results of tool calls."""
        if not results:
            raise UsageError("a tool result message needs a result")
        return self._add(MessageRecord(type="tool_result", uuid="", tool_results=list(results)), options)

    def system(
        self, content: Content, *, todos: Sequence[TodoItem] | None = None, **options: Unpack[MessageOptions]
    ) -> Receipt:
        """Append a system message."""
        body = MessageBody(role="system", content=content)
        return self._add(MessageRecord(type="system", uuid="", message=body), options, todos)

    def _add(self, record: MessageRecord, options: MessageOptions, todos: Sequence[TodoItem] | None = None) -> Receipt:
        if not options.keys() <= MessageOptions.__annotations__.keys():
            raise TypeError(
                f"a message has no {', '.join(sorted(options.keys() - MessageOptions.__annotations__.keys()))}"
            )
        record.uuid = options.get("uuid") or ""
        if todos is not None:
            record.todos = list(todos)
        for name in ("timestamp", "context", "version"):
            if options.get(name) is not None:
                setattr(record, name, options[name])
        parent = options.get("parent", UNSET)
        return self.append(Draft(record, parent, options.get("sidechain"), options.get("metadata")))

    def append(self, draft: Draft) -> Receipt:
        """Append a message."""
        return self.extend([draft])[0]

    def extend(self, drafts: Sequence[Draft]) -> list[Receipt]:
        """Append several messages with one lock, one write and one sync: all of them, or none."""
        for draft in drafts:
            _check(draft.record)
        if not self._is_undo_checked:
            self._is_undo_checked = True
            with suppress(OSError, ClewError):  # no reason to refuse the message: `watch` tries again
                self.roll_back_interrupted_undo()
        return self._writer.append(drafts)

    def snapshot(
        self,
        message: str,
        files: dict[str, TrackedFile],
        backups: dict[str, FileBackup] | None = None,
        *,
        is_update: bool = False,
        timestamp: str | None = None,
    ) -> None:
        """Append a snapshot of files at a message. Backups must be durable before they are named here."""
        record = SnapshotRecord(
            message_id=message,
            timestamp=timestamp or self._writer.now(),
            is_snapshot_update=is_update,
            snapshot=FileMaps(tracked_files=files, file_backups=backups or {}),
        )
        with self._snapshots.writing() as log:
            log.append(encode_lines([record]))

    def watch(
        self,
        message: str | Receipt,
        paths: str | Path | Sequence[str | Path] | None = None,
        *,
        root: Path | str | None = None,
    ) -> Watch:
        """Record what a tool of a message does to files: `with session.watch(message, ["a.py"]): ...`.

        With paths, those below the workspace `root` (default: the working folder) are watched; without, all of it.
        Where there is no `with`, call `before()` and `after()`.
        """
        self.roll_back_interrupted_undo()  # a tool must not see half of an undo
        uuid = message if isinstance(message, str) else message.uuid
        paths = [paths] if isinstance(paths, str | Path) else paths
        named = None if paths is None else [name_below(root, path) for path in paths]
        watch = Watch(self._snapshots, uuid, root_for(root), named)
        if isinstance(message, str) and uuid not in self.tree().places:
            raise UsageError(f"session {self.id}: no message has the uuid {uuid!r}; append it before its tools run")
        return watch

    def undo(
        self,
        to: str | None = None,
        *,
        file: str | None = None,
        root: Path | str | None = None,
        force: bool = False,
        dry_run: bool = False,
        allow_protected: bool = False,
        rescue: Path | None = None,
        moved_from: Path | str | None = None,
    ) -> UndoResult:
        """Go back to before the last message that changed files, or `to` a branch or message, with the files.

        With `file`, only that file goes back, and the conversation stays. Files that were edited since are only
        replaced by `force`; copies of them are then kept in `rescue` (default: in the session's folder). Files that
        programs trust without asking, such as `.git/hooks`, are only touched with `allow_protected`. Where the
        workspace was moved since, `moved_from` is where it was.
        """
        was = _folder_that_was(moved_from)
        file = None if file is None else name_below(root, file)
        return self._go(UndoRequest("undo", root_for(root), to, file, force, rescue, allow_protected, was), dry_run)

    def redo(
        self,
        *,
        root: Path | str | None = None,
        force: bool = False,
        dry_run: bool = False,
        allow_protected: bool = False,
        rescue: Path | None = None,
        moved_from: Path | str | None = None,
    ) -> UndoResult:
        """Reverse the last undo, if no message was appended since."""
        was = _folder_that_was(moved_from)
        request = UndoRequest(
            "redo", root_for(root), force=force, rescue=rescue, allow_protected=allow_protected, moved_from=was
        )
        return self._go(request, dry_run)

    def _go(self, request: UndoRequest, dry_run: bool) -> UndoResult:
        if not is_session(self.folder):
            raise UnknownReference(f"session {self.id!r}: nothing to {request.action}: it has no messages")
        if dry_run:
            return self._undo.preview(self.tree(), request)
        return self._undo.run(request._replace(rescue=request.rescue or self._rescue()))

    def roll_back_interrupted_undo(self) -> list[str]:
        """Roll back an undo or redo that a crash interrupted; returns the restored files.

        `watch`, `undo`, `redo` and the first message of a handle do so too.
        """
        return self._undo.roll_back_interrupted()

    def clear(self) -> list[str]:
        """Remove the copies of files that no record names; returns their digests.

        Raises SourceUnreadable where a record cannot be read, for it may name any of them.
        """
        refuse_unreadable(self._snapshots)
        return self._snapshots.clear(lambda: digests_in_undo_journals(self.folder))

    def _rescue(self) -> Path:
        return self.folder / RESCUE / self._writer.now().replace(":", "")

    def title(self, text: str) -> Receipt:
        """Set the title of the session."""

        def make(place: RecordSlot) -> tuple[Record, SessionHead]:
            note = NoteRecord(
                type=TITLE,
                uuid=place.uuid,
                parent_uuid=place.head.head,
                timestamp=place.time,
                session_id=self.id,
                message=MessageBody(role="system", content=text),
                metadata=place.number,
            )
            return note, place.head

        receipt = self._writer.append_record(make)
        self.describe(customTitle=text)
        return receipt

    def describe(self, **stated: JSON) -> None:
        """Set keys of metadata.json: `state="completed"`, `name=`, `model=`, ..."""
        refuse_odd(stated, "the metadata")
        self._writer.describe(**stated)

    # Branches

    def branches(self) -> list[Branch]:
        """Return every branch, in the order in which they started."""
        return list_branches(self.tree())

    def switch(self, target: str) -> Receipt:
        """Continue at a branch (its name or id) or at a message (its uuid); appends a record."""

        def make(place: RecordSlot) -> tuple[Record, SessionHead]:
            tree, node = place.tree, node_of(place.tree, target)
            mark = BranchRecord(
                uuid=place.uuid,
                timestamp=place.time,
                session_id=self.id,
                action="switch",
                branch_id=tree.branches[node],
                message_id=tree.uuids[node],
                metadata=place.number,
            )
            return mark, SessionHead(0, tree.uuids[node], tree.branches[node], not tree.forks_at(node))

        return self._writer.append_record(make)

    def name_branch(self, target: str, name: str) -> Receipt:
        """Name a branch."""
        if not name or not name.isprintable() or any(char in name for char in " #@") or name == MAIN:
            raise UsageError(f"{name!r} is not a valid branch name: no spaces, no # or @, and not `{MAIN}`")

        def make(place: RecordSlot) -> tuple[Record, SessionHead]:
            tree = place.tree
            branch = tree.branches[node_of(tree, target)]
            taken = {known for known in (*tree.heads, *tree.names.values()) if known != tree.names.get(branch)}
            if name in taken or name in tree.places:
                raise UsageError(f"session {self.id}: {name!r} is already the name of another branch")
            mark = BranchRecord(
                uuid=place.uuid,
                timestamp=place.time,
                session_id=self.id,
                action="name",
                branch_id=branch,
                name=name,
                metadata=place.number,
            )
            return mark, place.head

        return self._writer.append_record(make)

    def compare(self, one: str, other: str, *, root: Path | str | None = None) -> Comparison:
        """Compare two branches or messages: common part, what each has alone, and files that differ at their ends.

        File names are relative to the workspace `root` (default: the working folder).
        """
        return compare_branches(self.tree(), one, other, list(self._snapshots.entries()), root_for(root))

    def content(self, state: FileState) -> bytes | None:
        """Return the content of a file, None where there was none; raises SourceUnreadable where it is not known."""
        return self._undo.content(state)

    # Reading

    def tree(self) -> Tree:
        """Return the conversation tree, up to date with the log."""
        try:
            found = (self.folder / MESSAGES).stat()
            if self._is_rewritten(found):
                self._tree = Tree()
            self._seen = found
            self._tree.read(self.folder / MESSAGES)
        except FileNotFoundError:
            return self._tree
        except OSError as error:
            raise SourceUnreadable(f"{self.folder / MESSAGES}: {error.strerror or error}") from error
        return self._tree

    def _is_rewritten(self, found: os.stat_result) -> bool:
        """True where the log is another file than the one that was read, or was rewritten."""
        seen = self._seen
        if seen is None or found.st_size < self._tree.end or found.st_ino != seen.st_ino:
            return True
        return found.st_size == seen.st_size and found.st_mtime_ns != seen.st_mtime_ns

    @property
    def head(self) -> str | None:
        """The uuid of the message that the next one follows."""
        tree = self.tree()
        return tree.uuid(tree.head)

    def path(self, target: str | None = None) -> list[str]:
        """Return the uuids from the first message to the head, or to a branch or message."""
        tree = self.tree()
        return tree.path(node_of(tree, target) if target is not None else None)

    def records(self) -> Iterator[dict[str, JSON]]:
        """Yield every record of the log; lines that are not JSON objects are left out."""
        return read_log(self.folder / MESSAGES)

    def messages(self, target: str | None = None) -> Iterator[dict[str, JSON]]:
        """Yield the messages on the path to the head, or to a branch or message."""
        wanted = set(self.path(target))
        return (record for uuid, record in self.by_uuid() if uuid in wanted)

    def by_uuid(self) -> Iterator[tuple[JSON, dict[str, JSON]]]:
        """Yield every record with its uuid; messages of the older form have a derived one."""
        given = iter(self.tree().given)
        return ((next(given, None) if is_old_form(one) else one.get("uuid"), one) for one in self.records())

    def follow(self, after: int = 0, *, poll: float = 0.05, patience: float | None = None) -> Iterator[dict[str, JSON]]:
        """Yield the records after number `after`, and new ones; ends when none came for `patience` seconds."""
        return follow(self.folder / MESSAGES, after, poll, patience)

    @property
    def metadata(self) -> dict[str, JSON]:
        """The content of metadata.json."""
        return session_metadata.read(self.folder)

    @property
    def context_reader(self) -> ContextReader:
        """Reads the context that messages without one get."""
        return self._writer.context_reader

    @property
    def backups(self) -> Path:
        """The folder with the contents of files."""
        return self.folder / BACKUPS


def _folder_that_was(place: Path | str | None) -> str | None:
    """A folder as records name it, which need not be there any more."""
    return None if place is None else str(Path(place).expanduser().absolute().resolve())


def _check(record: MessageRecord) -> None:
    """Refuse values that a reader of the log would report as a problem."""
    body, thinking = record.message, record.thinking_metadata
    if body is not UNSET and not isinstance(body.content, (str, list)):
        raise UsageError("the content is neither text nor a list of blocks")
    if record.uuid and (len(record.uuid) > 200 or not record.uuid.isprintable()):
        raise UsageError(f"not an id: {record.uuid[:80]!r}")
    if record.timestamp is not UNSET and parse_time(record.timestamp) is None:
        raise UsageError(f"not a time in ISO 8601: {record.timestamp!r}")
    if thinking is not UNSET and thinking.level not in LEVELS:
        raise UsageError(f"the thinking level is {thinking.level!r}, not one of {', '.join(LEVELS)}")
    if record.todos:
        _check_todos(record.todos)


def _check_todos(todos: JSON) -> None:
    for todo in todos if isinstance(todos, list) else ():
        if todo.status not in STATUSES:
            raise UsageError(f"the status of a todo is {todo.status!r}, not one of {', '.join(STATUSES)}")


def is_session(folder: Path) -> bool:
    """True for a folder that has a log."""
    return os.path.isfile(folder / MESSAGES)  # noqa: PTH113 - asked for every folder of a store
