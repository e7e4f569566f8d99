"""How records come into a session's log: each is given its place (parent, branch, number) under the lock.

Where a session stands is found from the end of the log. The whole log is read only by those who branch off,
or bring ids of their own that might be there already.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from clew.errors import SourceUnreadable, UsageError, WouldLose
from clew.io.codec import decode
from clew.io.filesystem import SYSTEM, System, make_folder, telling_forbidden
from clew.io.records import MAX_RECORD_BYTES
from clew.model.json import JSON
from clew.store import metadata
from clew.store.burst import Burst
from clew.store.context import Surroundings
from clew.store.drafts import Draft, Receipt, State
from clew.store.layout import FORMAT, MESSAGES, OWN, Redact, Settings, refuse_copy
from clew.store.log import Log
from clew.store.news import News
from clew.store.stamps import FIRST, Clock, Times, beginning, new_uuid
from clew.store.tree import MAIN, NONE, SIGNIFICANT, Peek, Tree, number_of, peek
from clew.store.wire import Context, MessageRecord, Wire, encode_lines

DESCRIBE_AFTER = 5
"""Seconds after which the metadata of a session that is being written are renewed."""
_CANNOT_SPELL = (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError)


class Place(NamedTuple):
    """What a record that is no message is told."""

    uuid: str
    time: str
    state: State
    tree: Tree
    number: dict[str, JSON]


class World(NamedTuple):
    """What a session's writer is given from outside."""

    settings: Settings = Settings()
    system: System = SYSTEM
    clock: Clock = time.time
    version: str = "0.1.0"
    redact: Redact | None = None
    begin: Callable[[], object] = bool
    """Called before the first folder is made, so that a store that is new says which form it has."""


class Writer:
    """The one way into a session's log, for any number of threads."""

    def __init__(self, folder: Path, world: World) -> None:
        self.folder, self.session = folder, folder.name
        self._world, self._times, self._beginning = world, Times(world.clock), beginning()
        settings = world.settings
        durable = settings.durability == "disk"
        self.surroundings = Surroundings(settings.user_type)
        self.log = Log(
            folder / MESSAGES,
            system=world.system,
            durable=durable,
            wait=settings.lock_wait,
        )
        self._version = world.version
        self._state = State()
        self._tree: Tree | None = None
        self._ready = self._began = False
        self._news = News(world.redact)
        self.burst = Burst(self.log, self._news, self._times, self.surroundings, world.version)
        self._can_hurry = world.redact is None
        self._described = -DESCRIBE_AFTER
        self._numbers: dict[str, int] = {}
        """By uuid, where that was asked for or given from outside."""

    def _begin(self) -> None:
        self.burst.close()
        if not self._ready:
            self._prepare()
        if self.log.begin():
            self._resume()

    def _prepare(self) -> None:
        written = max(self._world.settings.store, metadata.format_of(self.folder))
        if written > FORMAT:
            raise WouldLose(f"{self.folder}: a newer version of clew wrote this store ({written}); it is only read")
        refuse_copy(self.folder)
        with telling_forbidden(self.folder):
            self._world.begin()
            make_folder(self._world.system, self.folder)
        self._ready = True

    def add(self, draft: Draft) -> Receipt:
        """Append a message; it is in the log on return, or nothing is."""
        log = self.log
        # As `_held` does, without what that costs: nearly every record comes this way.
        log.refuse_own()
        with log.guard:
            self._begin()
            try:
                receipt = self._place(draft, self._times.now(), self.surroundings.now())
                if receipt.written:
                    log.append(self._spell([draft.record]))
                    self._learn(draft)
                    self._committed()
                else:
                    log.settle()
                if not (self._can_hurry and self._hurries(draft.record)):
                    log.finish()
                return receipt
            except BaseException:
                self._forget()
                log.finish()
                raise

    def _hurries(self, record: MessageRecord) -> bool:
        """Whether the lock is kept for what may follow at once."""
        return self._tree is None and self.burst.open(record, self._state, self._beginning)

    def extend(self, drafts: Sequence[Draft]) -> list[Receipt]:
        """Append messages; all of them are in the log on return, or none that was not there before."""
        with self._held():
            time, context = self._times.now(), self.surroundings.now()
            receipts = [self._place(draft, time, context) for draft in drafts]
            fresh = [draft for draft, given in zip(drafts, receipts, strict=True) if given.written]
            if fresh:
                self.log.append(self._spell([draft.record for draft in fresh]))
                for draft in fresh:
                    self._learn(draft)
                self._committed()
            elif receipts:
                self.log.settle()
            return receipts

    def note(self, make: Callable[[Place], tuple[Wire, State]]) -> Receipt:
        """Append a record that is no message; `make` is told its place, and gives it and where the session stands."""
        with self._held():
            number = self._state.seq + 1
            uuid = self._uuid(number)
            place = Place(uuid, self._times.now(), self._state.copied(), self.tree(), {OWN: {"seq": number}})
            record, self._state = make(place)
            self._state.seq = number
            line = self._spell([record])
            self.log.append(line)
            self._tree = None if (found := peek(line)) is None else self._grown([found])
            self._committed()
            return Receipt(uuid, number)

    @contextmanager
    def _held(self) -> Iterator[None]:
        """The lock, for this thread of this process alone."""
        self.log.refuse_own()
        self.burst.refuse_own()
        with self.log.guard:
            self._begin()
            try:
                yield
            except BaseException:
                self._forget()
                raise
            finally:
                self.log.finish()

    def _forget(self) -> None:
        """Something went wrong: where the session stands is found anew from the log."""
        self._tree = None
        self._numbers.clear()
        self.log.forget()

    def _uuid(self, number: int) -> str:
        return self._beginning + str(FIRST + number)

    def now(self) -> str:
        """The time, as records spell it."""
        return self._times.now()

    def tree(self) -> Tree:
        """The whole log, while it is held."""
        if self._tree is None:
            self._tree = Tree()
        if self._tree.end < self.log.end:
            self._tree.read(self.log.path, self.log.end)
        return self._tree

    def _place(self, draft: Draft, time: str, context: Context) -> Receipt:
        """Give a message its place, unless the log holds its id already."""
        record, state = draft.record, self._state
        seq = state.seq + 1
        if not record.uuid:
            record.uuid = self._beginning + str(FIRST + seq)
        elif record.uuid in self.tree().places:
            return Receipt(record.uuid, self._number_of(record.uuid), False)
        else:
            self._numbers[record.uuid] = seq
        if draft.parent is UNSET and state.is_tip and state.branch == MAIN and record.branch_id is UNSET:
            # The usual case, apart because it is that of nearly every message.
            record.parent_uuid = state.head
            record.is_sidechain = draft.sidechain is True
        else:
            self._follow(draft, state)
        if record.todos is not UNSET:
            state.todos = record.todos
        elif record.type != "tool_result":
            record.todos = state.todos
        record.session_id = self.session
        if record.timestamp is UNSET:
            record.timestamp = time
        if record.context is UNSET:
            record.context = context
        if record.version is UNSET:
            record.version = self._version
        # A number that was brought along, with a record of another session, is none here.
        own: dict[str, JSON] = {OWN: {"seq": seq}}
        record.metadata = own | draft.extra | own if draft.extra else own
        state.seq, state.head = seq, record.uuid
        if self._tree is not None:
            self._grown([Peek(record.type, record.uuid, record.parent_uuid, record.branch_id or None)])
        return Receipt(record.uuid, seq)

    def _learn(self, draft: Draft) -> None:
        """Remember for the metadata what stands in the log now; of a message that was refused, nothing."""
        news, record = self._news, draft.record
        news.last, news.later = record, None
        if record.type == "user" or draft.extra or news.first is None:
            news.note(record, draft.extra)

    def _follow(self, draft: Draft, state: State) -> None:
        """Give the record its parent and branch, where that is not just the next on the main branch."""
        record, parent = draft.record, draft.parent
        record.branch_parent_uuid = UNSET
        if parent is UNSET or parent == state.head:
            parent = state.head
        else:
            state.todos, state.is_tip = UNSET, False
        if not state.is_tip:
            parent, state.branch, state.is_tip = self._branch_off(record, parent)
        record.parent_uuid = parent
        away = state.branch != MAIN
        record.branch_id = state.branch if away else UNSET
        record.is_sidechain = away if draft.sidechain is None else draft.sidechain

    def _branch_off(self, record: MessageRecord, parent: str | None) -> tuple[str | None, str, bool]:
        tree = self.tree()
        node = NONE if parent is None else tree.places.get(parent)
        if node is None:
            raise UsageError(f"session {self.session}: no record has the uuid {parent!r}, so nothing can follow it")
        forks = tree.forks_at(node)
        if record.type not in SIGNIFICANT:
            return parent, tree.branches[node] if node != NONE else MAIN, not forks
        if not forks:
            return parent, tree.branches[node] if node != NONE else MAIN, True
        branch = new_uuid()[:8]
        while branch in tree.heads:
            branch = new_uuid()[:8]
        record.branch_parent_uuid = parent
        return parent, branch, True

    def _spell(self, records: Sequence[Wire]) -> bytes:
        """The lines of records."""
        redact = self._world.redact
        try:
            lines = encode_lines(records if redact is None else [redact(_as_json(one)) for one in records])
        except _CANNOT_SPELL as error:
            raise UsageError(f"the record cannot be written as JSON: {error}") from error
        if len(lines) >= MAX_RECORD_BYTES and max(map(len, lines.split(b"\n"))) >= MAX_RECORD_BYTES:
            raise UsageError(f"a record is longer than {MAX_RECORD_BYTES} bytes, and could not be read again")
        return lines

    def _grown(self, found: list[Peek]) -> Tree:
        """Keep the tree up with what is about to stand in the log."""
        assert self._tree is not None
        self._tree.extend(found)
        return self._tree

    def _number_of(self, uuid: str) -> int:
        """The number of a record that is there, or stands earlier in the same batch."""
        if uuid not in self._numbers:
            places = ((peek(line), line) for line in self.log.backward())
            self._numbers |= {found.uuid: number_of(line) for found, line in places if found is not None and found.uuid}
        return self._numbers.get(uuid, 0)

    def _resume(self) -> None:
        """Find where the session stands, from the end of its log, which somebody else wrote."""
        log = self.log
        try:
            self._began = log.end == 0
            self._beginning = beginning()
            if self._tree is not None and self._tree.end > log.end:
                self._tree = None
            elif self._tree is not None:
                # Others have written: what is behind must be in before what this handle adds.
                self._tree.read(log.path, log.end)
            self._state = standing(log.backward(), log.path) or self._standing_by_tree()
        except BaseException:
            log.drop()
            raise

    def _standing_by_tree(self) -> State:
        """The same where the end of the log does not tell: records of the older form have no ids of their own."""
        tree = self.tree()
        seq = metadata.count_records(self.log.path)
        if tree.head == NONE:
            return State(seq)
        return State(seq, tree.uuids[tree.head], tree.branches[tree.head], not tree.forks_at(tree.head))

    def _committed(self) -> None:
        self._news.is_told = False
        if self._tree is not None:
            self._tree.end = self.log.end
        if self._times.second - self._described >= DESCRIBE_AFTER:
            # The messages are safe; metadata that could not be written now are written later, or by the doctor.
            with suppress(OSError, SourceUnreadable, *_CANNOT_SPELL):
                self._describe({})

    def _describe(self, stated: dict[str, JSON]) -> None:
        self._times.now()
        self._described = self._times.second
        known = metadata.known(self.folder)
        if not known and not self._began:
            known = metadata.from_log(self.folder)
        self._news.forget_erased(self.log.place_of)
        made: dict[str, JSON] = {
            **{"id": self.session, "createdAt": self.now(), "version": self._world.version, "state": "active"},
            **{"isSidechain": False, "workingDirectory": "", **known},
            **{**self._news.told(known), **stated, "messageCount": self._state.seq},
        }
        redact = self._world.redact
        metadata.write(self._world.system, self.folder, made if redact is None else redact(made))
        self._news.is_told = True

    def describe(self, **stated: JSON) -> None:
        """Renew the metadata; what is stated stands in them from now on."""
        with self._held():
            self._describe(stated)

    def close(self) -> None:
        """Make everything durable and the metadata true."""
        try:
            if not self._news.is_told:
                self.describe()
        finally:
            self.log.refuse_own()
            with self.log.guard:
                self.burst.close()
                self.log.close()
            self._ready = False


def _as_json(record: Wire) -> dict[str, JSON]:
    """A record as plain JSON values, so that all of it can be masked: also a todo list copied from the log."""
    value: dict[str, JSON] = msgspec.to_builtins(record, enc_hook=_decoded)
    return value


def _decoded(value: JSON) -> JSON:
    if isinstance(value, msgspec.Raw):
        # Another program may have written it, so it need not be text that a strict decoder accepts.
        return decode(bytes(value)).value
    raise TypeError(f"JSON has no {type(value).__name__}")


class _Last(Peek, rename="camel"):
    todos: msgspec.Raw | UnsetType = UNSET


_last = msgspec.json.Decoder(_Last).decode


def standing(lines: Iterator[bytes], path: Path) -> State | None:
    """Where a session stands, from its lines, last first; None where they do not tell."""
    seq: int | None = None
    last: Peek | None = None
    expected: str | None = None
    for line in lines:
        found = peek(line)
        if found is None:
            continue
        if seq is None:
            # A record without a number was written by another program: then all are counted.
            seq = number_of(line) or metadata.count_records(path)
        if last is not None and found.uuid != expected:
            break
        if found.is_switch and last is None:
            return State(seq, found.message_id, found.branch_id or MAIN, False, _last(line).todos)
        if found.is_old:
            return None
        if not found.moves:
            continue
        last = last or found
        if found.is_significant or found.parent_uuid is None:
            return State(seq, last.uuid, last.branch_id or MAIN, True, _last(line).todos)
        expected = found.parent_uuid
    if last is not None:
        return State(seq or 0, last.uuid, last.branch_id or MAIN, False)
    return State(seq or 0, todos=[] if seq is None else UNSET)
