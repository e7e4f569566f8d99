"""Any mixture of appends, branches, crashes and handles, against a model of a few lines."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from clew import Host, Library
from clew.store import Session, Store
from tests.store.support import Quick, assert_whole, lines, log_of

HANDLES = st.integers(0, 2)
PHASES = [phase for phase in Phase if phase is not Phase.shrink]
"""Each step touches the disk: a failing run is short enough to read, and shrinking it takes minutes."""
NUMBERS = st.integers(0, 10**6)


class Model:
    """What should be there: every message with its parent, where it stands, and the names."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.parents: dict[str, str | None] = {}
        self.words: dict[str, str] = {}
        self.head: str | None = None
        self.names: dict[str, str] = {}
        self.records = 0

    def add(self, uuid: str, parent: str | None, words: str) -> None:
        assert uuid not in self.parents
        self.order.append(uuid)
        self.parents[uuid], self.words[uuid], self.head = parent, words, uuid
        self.records += 1

    def path(self, at: str | None) -> list[str]:
        path: list[str] = []
        while at is not None:
            path.insert(0, at)
            at = self.parents[at]
        return path

    def tips(self) -> set[str]:
        return set(self.order) - set(self.parents.values())


class Sessions(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.place = Path(tempfile.mkdtemp(prefix="clew-machine-"))
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

    @rule(handle=HANDLES)
    def reopen(self, handle: int) -> None:
        self.handles[handle].close()
        self.handles[handle] = self._opened()

    @precondition(lambda self: self.model.order)
    @rule(handle=HANDLES, junk=st.binary(min_size=1, max_size=30).filter(lambda junk: b"\n" not in junk))
    def crash(self, handle: int, junk: bytes) -> None:
        """A process dies in the middle of a write."""
        self.handles[handle]._writer.log.drop()
        self.handles[handle] = self._opened()
        with log_of(self.place).open("ab") as log:
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


TestSessions = Sessions.TestCase
TestSessions.settings = settings(stateful_step_count=25, phases=PHASES)
