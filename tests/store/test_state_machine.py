"""Any mixture of appends, branches, crashes and handles, against a model of a few lines."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from clew import Host, Library
from clew.errors import UnknownReference
from clew.io.file_lock import locked
from clew.io.filesystem import SYSTEM
from clew.store import Session, Store
from clew.store.undo_plan import Refused
from tests.store.support import Quick, assert_whole, lines, log_of

HANDLES = st.integers(0, 2)
PHASES = [phase for phase in Phase if phase is not Phase.shrink]
"""Each step touches the disk: a failing run is short enough to read, and shrinking it takes minutes."""
NUMBERS = st.integers(0, 10**6)


FILES = ("a", "b", "sub/c")
CONTENTS = st.one_of(st.none(), st.sampled_from([b"", b"one", b"two\0", bytes(range(256)) * 3]))
Content = bytes | None


def put(root: Path, name: str, content: Content) -> None:
    path = root / name
    path.parent.mkdir(exist_ok=True)
    if content is None:
        path.unlink(missing_ok=True)
    else:
        path.write_bytes(content)


class Model:
    """What should be there: every message with its parent, where it stands, and the names."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.parents: dict[str, str | None] = {}
        self.words: dict[str, str] = {}
        self.head: str | None = None
        self.names: dict[str, str] = {}
        self.records = 0
        self.files: dict[str, Content] = dict.fromkeys(FILES)
        """What is on disk."""
        self.recorded: dict[str, Content] = {}
        """The same as the last record left it."""
        self.changes: dict[str, dict[str, tuple[Content, Content]]] = {}
        """What the tools of each message changed."""
        self.versions: dict[str, set[Content]] = {}
        """All that records tell of each file."""
        self.edits: list[tuple[str | None, str, bytes]] = []
        """What somebody made of files before the tools of a message ran."""
        self.undone: list[tuple[str | None, dict[str, Content]]] = []
        """For each undo that can be taken back: where it stood, and what it replaced."""

    def add(self, uuid: str, parent: str | None, words: str) -> None:
        assert uuid not in self.parents
        self.order.append(uuid)
        self.parents[uuid], self.words[uuid], self.head = parent, words, uuid
        self.records += 1
        self.undone.clear()

    def path(self, at: str | None) -> list[str]:
        path: list[str] = []
        while at is not None:
            path.insert(0, at)
            at = self.parents[at]
        return path

    def tips(self) -> set[str]:
        return set(self.order) - set(self.parents.values())

    def targets(self, goal: str | None) -> dict[str, Content]:
        """The files as they were at a message."""
        here, there = self.path(self.head), self.path(goal)
        shared = set(here) & set(there)
        found: dict[str, Content] = {}
        for uuid in reversed([uuid for uuid in here if uuid not in shared]):
            found.update({name: before for name, (before, _) in self.changes.get(uuid, {}).items()})
        for uuid in [uuid for uuid in there if uuid not in shared]:
            found.update({name: after for name, (_, after) in self.changes.get(uuid, {}).items()})
        return found

    def is_lost(self, name: str, target: Content) -> bool:
        """Whether putting a file back would lose what somebody wrote."""
        now = self.files[name]
        return now is not None and now != target and now != self.recorded.get(name)

    def note(self, name: str, before: Content, after: Content, message: str | None) -> None:
        """A record tells of a file."""
        known = self.versions.setdefault(name, set())
        if name in self.recorded and before is not None and before not in known:
            self.edits.append((message, name, before))
        known |= {before, after}
        self.recorded[name] = after

    def passes_over(self, goal: str | None, name: str, target: Content) -> bool:
        """Whether what somebody made of a file between two tools would be lost."""
        undone = set(self.path(self.head)) - set(self.path(goal))
        lost = [
            made
            for message, at, made in self.edits
            if at == name and made != target and (message in undone or made == self.recorded.get(name))
        ]
        return self.files[name] != target and bool(lost)

    def move(self, goal: str | None, targets: dict[str, Content]) -> dict[str, Content]:
        """Go there; returns what was replaced."""
        replaced = {name: self.files[name] for name, target in targets.items() if self.files[name] != target}
        self.files.update({name: targets[name] for name in replaced})
        for name, before in replaced.items():
            self.note(name, before, targets[name], None)
        self.head = goal
        self.records += 1
        return replaced


class Sessions(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.place = Path(tempfile.mkdtemp(prefix="clew-machine-"))
        self.work = Path(tempfile.mkdtemp(prefix="clew-machine-files-")).resolve()
        self.model = Model()
        self.handles: list[Session] = [self._opened() for _ in range(3)]

    def _opened(self) -> Session:
        return Store(self.place, system=Quick()).session("s")

    @rule(handle=HANDLES, words=st.text(max_size=20).filter(lambda text: text.isprintable()))
    def append(self, handle: int, words: str) -> None:
        receipt = self.handles[handle].user(words)
        self.model.add(receipt.uuid, self.model.head, words)
        assert receipt.seq == self.model.records

    @rule(handle=HANDLES, words=st.lists(st.text("abc", max_size=3), min_size=1, max_size=4))
    def append_with_own_ids(self, handle: int, words: list[str]) -> None:
        for word in words:
            name = f"own-{len(self.model.order)}"
            self.handles[handle].assistant(word, uuid=name)
            self.model.add(name, self.model.head, word)

    @precondition(lambda self: self.model.order)
    @rule(handle=HANDLES, number=NUMBERS)
    def repeat(self, handle: int, number: int) -> None:
        uuid = self.model.order[number % len(self.model.order)]
        assert not self.handles[handle].user("again", uuid=uuid).written

    @precondition(lambda self: self.model.order)
    @rule(handle=HANDLES, number=NUMBERS)
    def branch(self, handle: int, number: int) -> None:
        parent = self.model.order[number % len(self.model.order)]
        receipt = self.handles[handle].user("another way", parent=parent)
        self.model.add(receipt.uuid, parent, "another way")

    @precondition(lambda self: self.model.order)
    @rule(handle=HANDLES, number=NUMBERS)
    def switch(self, handle: int, number: int) -> None:
        target = self.model.order[number % len(self.model.order)]
        self.handles[handle].switch(target)
        self.model.head = target
        self.model.records += 1
        self.model.undone.clear()

    @precondition(lambda self: self.model.order)
    @rule(handle=HANDLES, number=NUMBERS)
    def name(self, handle: int, number: int) -> None:
        session = self.handles[handle]
        branches = session.branches()
        chosen = branches[number % len(branches)]
        name = f"name-{self.model.records}"
        session.name_branch(chosen.id, name)
        self.model.names[chosen.id] = name
        self.model.records += 1

    @rule(handle=HANDLES, contents=st.dictionaries(st.sampled_from(FILES), CONTENTS), whole=st.booleans())
    def run_a_tool(self, handle: int, contents: dict[str, Content], whole: bool) -> None:
        session, model = self.handles[handle], self.model
        uuid = session.assistant("runs a tool").uuid
        model.add(uuid, model.head, "runs a tool")
        with session.watch(uuid, None if whole else list(contents), root=self.work):
            for name, content in contents.items():
                put(self.work, name, content)
        changed = {name: (model.files[name], new) for name, new in contents.items() if model.files[name] != new}
        model.changes[uuid] = changed
        for name, new in contents.items():
            if not whole or name in changed:
                model.note(name, model.files[name], new, uuid)
        model.files.update(contents)

    @rule(name=st.sampled_from(FILES), content=CONTENTS)
    def edit_by_hand(self, name: str, content: Content) -> None:
        put(self.work, name, content)
        self.model.files[name] = content

    @rule(handle=HANDLES, force=st.booleans(), number=st.one_of(st.none(), NUMBERS))
    def undo(self, handle: int, force: bool, number: int | None) -> None:
        model = self.model
        if number is not None and model.order:
            goal: str | None = model.order[number % len(model.order)]
            to = goal
        else:
            changing = [uuid for uuid in model.path(model.head) if model.changes.get(uuid)]
            if not changing:
                with pytest.raises(UnknownReference):
                    self.handles[handle].undo(root=self.work, force=force)
                return
            goal, to = model.parents[changing[-1]], None
        targets = model.targets(goal)
        lost = [name for name, new in targets.items() if model.is_lost(name, new) or model.passes_over(goal, name, new)]
        if not force and lost:
            with pytest.raises(Refused):
                self.handles[handle].undo(to, root=self.work)
            return
        start = model.head
        done = self.handles[handle].undo(to, root=self.work, force=force)
        assert done.head == goal
        model.undone.append((start, model.move(goal, targets)))

    @rule(handle=HANDLES, force=st.booleans())
    def redo(self, handle: int, force: bool) -> None:
        model = self.model
        if not model.undone:
            with pytest.raises(UnknownReference):
                self.handles[handle].redo(root=self.work, force=force)
            return
        goal, targets = model.undone[-1]
        if not force and any(model.is_lost(name, target) for name, target in targets.items()):
            with pytest.raises(Refused):
                self.handles[handle].redo(root=self.work)
            return
        self.handles[handle].redo(root=self.work, force=force)
        model.undone.pop()
        model.move(goal, targets)

    @rule(handle=HANDLES)
    def clear(self, handle: int) -> None:
        """Nothing that is named goes, or a later undo would fail."""
        self.handles[handle].clear()

    @invariant()
    def files_are_as_they_should_be(self) -> None:
        for name, content in self.model.files.items():
            path = self.work / name
            assert (path.read_bytes() if path.exists() else None) == content

    @rule(handle=HANDLES)
    def reopen(self, handle: int) -> None:
        self.handles[handle].close()
        self.handles[handle] = self._opened()

    @precondition(lambda self: self.model.order)
    @rule(handle=HANDLES, junk=st.binary(min_size=1, max_size=30).filter(lambda junk: b"\n" not in junk))
    def crash(self, handle: int, junk: bytes) -> None:
        """A process dies in the middle of a write."""
        self.handles[handle]._writer._log.drop()
        self.handles[handle] = self._opened()
        # It holds the lock then: nobody else is in the middle of anything.
        with locked(SYSTEM, log_of(self.place)), log_of(self.place).open("ab") as log:
            log.write(b'{"type":"user","uuid":"torn","x":"' + junk)

    @invariant()
    def everything_is_there(self) -> None:
        session = self._opened()
        found = [record for record in session.records() if record["type"] in ("user", "assistant")]
        assert [record["uuid"] for record in found] == self.model.order
        assert {record["uuid"]: record["parentUuid"] for record in found} == self.model.parents
        assert session.head == self.model.head
        assert session.path() == self.model.path(self.model.head)
        branches = session.branches()
        assert {branch.head for branch in branches} == self.model.tips()
        assert sum(branch.messages for branch in branches) == len(self.model.order)
        assert {branch.id: branch.name for branch in branches if branch.name != branch.id} == self.model.names

    @rule(handle=HANDLES, count=st.integers(2, 30))
    def append_without_a_pause(self, handle: int, count: int) -> None:
        receipts = [self.handles[handle].user(f"{number}") for number in range(count)]
        for number, receipt in enumerate(receipts):
            self.model.add(receipt.uuid, self.model.head, f"{number}")
            assert receipt.seq == self.model.records

    def teardown(self) -> None:
        if not hasattr(self, "place"):
            return
        if self.model.order:
            self.handles[0].user("the last word")
            for handle in self.handles:
                handle.close()
            assert len(lines(log_of(self.place))) == self.model.records + 1
            # Handles that were closed earlier may have counted less; whoever closes last is right.
            with self._opened() as session:
                session.describe()
            assert_whole(self.place)
            [found] = Library(Host.at(self.place)).sources()
            assert found.facts.tree.graph().active_path == session.path()
        shutil.rmtree(self.place)
        shutil.rmtree(self.work)


TestSessions = Sessions.TestCase
TestSessions.settings = settings(stateful_step_count=25, phases=PHASES)


class Hurried(Sessions):
    """The same at the faster level."""

    def _opened(self) -> Session:
        return Store(self.place, system=Quick(), durability="system").session("s")


TestHurried = Hurried.TestCase
TestHurried.settings = settings(stateful_step_count=25, phases=PHASES)
