"""Tools of several messages that run at the same time: nobody is told what is not known, and nobody's work is lost."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from clew.store import Receipt, Session, Store, ToolCall, ToolResult
from clew.store.watch import Watch
from tests.files.asking import known
from tests.files.storing import NAMES, Deed, World
from tests.files.test_store import shown
from tests.store.support import Quick, in_memory

HOWS = ("append", "prepend", "replace", "rewrite", "delete")
MANY = 40


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def begin(world: World, names: list[str] | None) -> Watch:
    message = world.note(world.session.assistant("I begin."))
    watch = world.session.watch(message, names, root=world.work)
    watch.before()
    return watch


@pytest.mark.parametrize("outer", [["a.txt"], None])
@pytest.mark.parametrize("inner", [["a.txt"], None])
def test_the_last_look_counts_and_not_the_last_result(
    world: World, outer: list[str] | None, inner: list[str] | None
) -> None:
    world.look()
    calls = [ToolCall(id=name, name="bash", arguments={"command": "make"}) for name in "xy"]
    one, other = (world.note(world.session.assistant(call.id, calls=[call])) for call in calls)
    first, second = world.session.watch(one, outer, root=world.work), world.session.watch(other, inner, root=world.work)
    first.before()
    second.before()
    world.deed(Deed("append", "a.txt"), "x")
    first.after()
    world.deed(Deed("append", "a.txt"), "y")
    second.after()
    for call in ("y", "x"):
        world.note(world.session.results(ToolResult(tool_call_id=call, tool_name="bash", content="ok")))
    world.say("user")
    history, path = world.history(), world.path("a.txt")
    assert known(history, world.index, path) == ("exact", world.moments[-1]["a.txt"])
    assert known(history, 4, path) == ("exact", world.moments[4]["a.txt"])
    assert history.at(5, path).certainty == "unknown"
    changes = [mark for mark in history.timelines[path].all_evidence if mark.action == "change"]
    assert {mark.note for mark in changes} == {"tools of several messages ran at the same time"}
    assert all(mark.after is None for mark in changes)
    shown(world, history)


def test_what_was_put_back_before_the_end_is_not_what_the_other_left(world: World) -> None:
    world.look()
    outer = begin(world, None)
    world.deed(Deed("append", "a.txt"), "x")
    inner = begin(world, ["a.txt"])
    kept = world.disk()["a.txt"]
    world.deed(Deed("append", "a.txt"), "y")
    inner.after()
    (world.work / "a.txt").write_bytes(kept[: -len(kept.splitlines(keepends=True)[-1])])
    outer.after()
    world.say("user")
    history = world.history()
    shown(world, history)
    assert history.at(world.index, world.path("a.txt")).certainty == "unknown"


def test_named_files_of_their_own_are_each_ones_doing(world: World) -> None:
    """Tools beside each other that watch different files have nothing to do with each other."""
    world.look()
    one, other = begin(world, ["a.txt"]), begin(world, ["b.txt"])
    world.deed(Deed("append", "a.txt"), "m4")
    world.deed(Deed("append", "b.txt"), "m5")
    other.after()
    one.after()
    world.say("user")
    history = world.history()
    for name in ("a.txt", "b.txt"):
        assert known(history, world.index, world.path(name)) == ("exact", world.moments[-1][name])
    doings = [mark for mark in history.all_evidence() if mark.action == "change"]
    assert [(mark.call, Path(mark.path).name) for mark in doings] == [(4, "a.txt"), (5, "b.txt")]


class Several:
    """Tools at work, some of several messages at once."""

    def __init__(self, world: World, chance: random.Random) -> None:
        self.world, self._chance = world, chance
        self._running: list[tuple[Watch, str]] = []
        self._owed: list[ToolResult] = []

    def step(self) -> None:
        match self._chance.choice(["begin", "begin", "deed", "deed", "deed", "end", "end", "say", "result"]):
            case "begin" if len(self._running) < 3:
                self._begin()
            case "deed" if self._running:
                _, who = self._chance.choice(self._running)
                self.world.deed(Deed(self._chance.choice(HOWS), self._chance.choice(NAMES)), who)
            case "end" if self._running:
                self.end()
            case "result" if self._owed:
                self._return()
            case "say":
                self.world.say(self._chance.choice(["user", "assistant", "system"]))

    def _begin(self) -> None:
        names = list(NAMES) if self._chance.random() < 0.4 else None
        calls = [ToolCall(id=f"c{self.world.index}", name="bash", arguments={"command": "make"})]
        message = self.world.note(self.world.session.assistant("I begin.", calls=calls))
        watch = self.world.session.watch(message, names, root=self.world.work)
        watch.before()
        self._running.append((watch, f"m{self.world.index}"))

    def end(self) -> None:
        watch, who = self._running.pop(self._chance.randrange(len(self._running)))
        watch.after()
        self._owed.append(ToolResult(tool_call_id=f"c{int(who[1:]) - 1}", tool_name="bash", content="ok"))

    def _return(self) -> None:
        result = self._owed.pop(self._chance.randrange(len(self._owed)))
        self.world.note(self.world.session.results(result))

    def finish(self) -> None:
        while self._running:
            self.end()
        while self._owed:
            self._return()


@pytest.mark.parametrize("seed", range(MANY))
def test_whatever_runs_beside_what_nothing_is_called_exact_that_was_not(seed: int) -> None:
    chance = random.Random(seed)
    with in_memory() as home:
        world = World(home)
        world.look()
        several = Several(world, chance)
        for _ in range(chance.randrange(6, 24)):
            several.step()
        several.finish()
        world.look(named=chance.random() < 0.5)
        shown(world, world.history())


def overlapping(session: Session, work: Path, named: bool) -> tuple[Receipt, Receipt]:
    """A tool that is watched as a whole, and one of another message while it runs."""
    with session.watch(session.assistant("0"), ["f"], root=work):
        (work / "f").write_text("0")
    outer = session.assistant("outer")
    watch = session.watch(outer, root=work)
    watch.before()
    (work / "f").write_text("1")
    inner = session.assistant("inner")
    with session.watch(inner, ["f"] if named else None, root=work):
        (work / "f").write_text("2")
    watch.after()
    return outer, inner


@pytest.mark.parametrize("named", [True, False])
def test_R09_what_a_tool_found_that_another_had_made_is_no_conflict(tmp_path: Path, named: bool) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "f").write_text("00")
    session = Store(tmp_path, system=Quick()).session("s")
    start = session.user("go")
    overlapping(session, work, named)
    [step] = session.undo(start.uuid, root=work).steps
    assert (step.verdict, (work / "f").read_text()) == ("write", "00")


def test_R09_what_somebody_changed_where_no_other_tool_looked_is_one(tmp_path: Path) -> None:
    """The other tool leaves the file out, so it was not seen to change it."""
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / ".sage").mkdir()
    (tmp_path / ".sage/config.json").write_text('{"clew": {"ignore": ["*.log"]}}')
    session = Store(tmp_path, system=Quick()).session("s")
    start = session.user("go")
    with session.watch(session.assistant("0"), ["f.log"], root=work):
        (work / "f.log").write_text("0")
    watch = session.watch(session.assistant("outer"), root=work)
    watch.before()
    (work / "f.log").write_text("somebody's")
    with session.watch(session.assistant("inner"), ["f.log"], root=work):
        (work / "f.log").write_text("2")
    watch.after()
    [step] = session.undo(start.uuid, root=work, dry_run=True).steps
    assert (step.verdict, step.reason) == ("conflict", "was edited between two tool runs")
