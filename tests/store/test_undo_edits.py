"""Undo beside what people did: an edit between two tool runs, or behind one that was killed, is never lost unsaid."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from clew.errors import PathRefused, UnknownReference
from clew.store import Refused, Session, Store
from tests.cli.running import run
from tests.store.support import Quick, assert_whole


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    monkeypatch.chdir(root)
    (root / "a.txt").write_bytes(b"one\n")
    return root


@pytest.fixture
def session(tmp_path: Path, work: Path) -> Session:
    return Store(tmp_path, system=Quick()).session("s")


def step(session: Session, change: Callable[[], object], *paths: str, uuid: str) -> None:
    session.assistant("I change it.", uuid=uuid)
    with session.watch(uuid, list(paths) or None):
        change()


def writes(path: Path, content: bytes) -> Callable[[], object]:
    return lambda: path.write_bytes(content)


@pytest.mark.parametrize("paths", [("a.txt",), ()], ids=["named", "whole"])
def test_R09_an_edit_between_two_runs_is_a_conflict(
    session: Session, work: Path, tmp_path: Path, paths: tuple[str, ...]
) -> None:
    file = work / "a.txt"
    session.user("go", uuid="q")
    step(session, writes(file, b"two\n"), *paths, uuid="r1")
    file.write_bytes(b"two, and mine\n")
    step(session, writes(file, b"three\n"), *paths, uuid="r2")
    with pytest.raises(Refused, match=r"'a\.txt' was edited between two tool runs") as caught:
        session.undo(to="q")
    [conflict] = caught.value.steps
    assert [(one.left, one.made) for one in conflict.outside_versions] == [(b"two\n", b"two, and mine\n")]
    assert file.read_bytes() == b"three\n" and session.head == "r2"
    done = session.undo(to="q", force=True)
    assert file.read_bytes() == b"one\n"
    assert done.rescue is not None and (done.rescue / "a.txt").read_bytes() == b"two, and mine\n"
    session.redo()
    assert file.read_bytes() == b"three\n"
    session.close()
    assert_whole(tmp_path)


def test_R09_one_step_at_a_time_brings_the_edit_back_and_then_asks(session: Session, work: Path) -> None:
    file = work / "a.txt"
    session.user("go", uuid="q")
    step(session, writes(file, b"two\n"), uuid="r1")
    file.write_bytes(b"mine\n")
    step(session, writes(file, b"three\n"), uuid="r2")
    session.undo()
    assert file.read_bytes() == b"mine\n"
    with pytest.raises(Refused, match="between two tool runs"):
        session.undo()
    done = session.undo(force=True)
    assert file.read_bytes() == b"one\n" and done.rescue is not None
    assert (done.rescue / "a.txt").read_bytes() == b"mine\n"


def test_R09_between_two_tools_of_one_message(session: Session, work: Path) -> None:
    file = work / "a.txt"
    session.user("go")
    session.assistant("two tools", uuid="r")
    for mine, content in ((None, b"two\n"), (b"mine\n", b"three\n")):
        if mine is not None:
            file.write_bytes(mine)
        with session.watch("r", ["a.txt"]):
            file.write_bytes(content)
    for name in (None, "a.txt"):
        with pytest.raises(Refused, match="between two tool runs"):
            session.undo(file=name)
    done = session.undo(force=True)
    assert done.rescue is not None and (done.rescue / "a.txt").read_bytes() == b"mine\n"


def test_R09_every_version_that_somebody_made_is_kept(session: Session, work: Path) -> None:
    file = work / "a.txt"
    session.user("go", uuid="q")
    for number in range(3):
        step(session, writes(file, b"tool %d" % number), uuid=f"r{number}")
        file.write_bytes(b"mine %d" % number)
    done = session.undo(to="q", force=True)
    assert done.rescue is not None
    kept = {str(path.relative_to(done.rescue)): path.read_bytes() for path in done.rescue.rglob("*") if path.is_file()}
    assert kept == {"a.txt": b"mine 2", "earlier/a.txt": b"mine 1", "earlier2/a.txt": b"mine 0"}


def test_what_no_one_touched_or_is_there_again_is_no_conflict(session: Session, work: Path) -> None:
    file = work / "a.txt"
    session.user("go", uuid="q")
    step(session, writes(file, b"two\n"), uuid="r1")
    file.write_bytes(b"one\n")  # as it was before the first tool: nothing is lost by going there
    step(session, writes(file, b"three\n"), uuid="r2")
    step(session, writes(file, b"four\n"), uuid="r3")
    session.undo(to="q")
    assert file.read_bytes() == b"one\n"


def test_tools_beside_each_other_are_not_taken_for_people(session: Session, work: Path) -> None:
    session.user("go", uuid="q")
    session.assistant("two at once", uuid="r")
    first, second = session.watch("r"), session.watch("r")
    first.before()
    (work / "a.txt").write_bytes(b"half\n")
    second.before()
    (work / "a.txt").write_bytes(b"whole\n")
    (work / "b.txt").write_bytes(b"by the second\n")
    second.after()
    first.after()
    session.undo()
    assert [path.name for path in work.iterdir()] == ["a.txt"] and (work / "a.txt").read_bytes() == b"one\n"


KILLED = """
import os, signal, sys
from clew.store import Store
session = Store(sys.argv[1]).session("s")
session.user("go", uuid="q")
with session.watch(session.assistant("a command", uuid="r")):
    open("a.txt", "w").write("half")
    open("new.txt", "w").write("new")
    os.remove("gone.txt")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def killed(work: Path, tmp_path: Path) -> Session:
    """A session whose tool was killed with its process while the whole workspace was watched."""
    (work / "gone.txt").write_bytes(b"gone\n")
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], cwd=work, timeout=60)
    assert done.returncode == -signal.SIGKILL
    return Store(tmp_path, system=Quick()).session("s")


def files(work: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in work.iterdir()}


BEFORE = {"a.txt": b"one\n", "gone.txt": b"gone\n"}
HALF = {"a.txt": b"half", "new.txt": b"new"}


def test_what_a_killed_tool_did_to_the_workspace_is_undone(killed: Session, work: Path, tmp_path: Path) -> None:
    log = (killed.folder / "snapshots.jsonl").read_bytes()
    plan = killed.undo(dry_run=True)
    assert {one.path: one.verdict for one in plan.steps} == {
        "a.txt": "conflict",
        "new.txt": "conflict",
        "gone.txt": "write",
    }
    with pytest.raises(Refused, match="may hold edits by a person: a tool that was to change it was interrupted"):
        killed.undo()
    assert files(work) == HALF and (killed.folder / "snapshots.jsonl").read_bytes() == log
    done = killed.undo(force=True)
    assert files(work) == BEFORE and killed.head == "q"
    assert done.rescue is not None and files(done.rescue) == HALF
    killed.redo()
    assert files(work) == HALF
    killed.close()
    assert_whole(tmp_path)


@pytest.mark.slow
def test_what_was_done_behind_a_kill_cannot_be_told_apart_and_is_kept(killed: Session, work: Path) -> None:
    (work / "mine.txt").write_bytes(b"mine")
    with killed.watch(killed.assistant("the next", uuid="r2")):
        (work / "a.txt").write_bytes(b"next")
        (work / "mine.txt").write_bytes(b"changed")
    killed.undo()
    assert files(work) == {**HALF, "mine.txt": b"mine"}
    with pytest.raises(Refused, match="was interrupted"):
        killed.undo()
    killed.redo()
    with pytest.raises(Refused, match="was interrupted"):
        killed.undo(to="q")
    done = killed.undo(to="q", force=True)
    assert files(work) == BEFORE
    assert done.rescue is not None and files(done.rescue) == {**HALF, "mine.txt": b"mine"}


def test_an_edit_before_the_tool_that_was_killed_hides_nothing(session: Session, work: Path) -> None:
    file = work / "a.txt"
    session.user("go", uuid="q")
    step(session, writes(file, b"two"), uuid="r1")
    file.write_bytes(b"mine")
    session.assistant("is killed", uuid="r2")
    session.watch("r2").before()
    file.write_bytes(b"half")
    with pytest.raises(Refused, match="was interrupted"):
        session.undo()
    with pytest.raises(Refused, match="between two tool runs; may hold edits by a person"):
        session.undo(to="q")
    done = session.undo(to="q", force=True)
    assert done.rescue is not None and (done.rescue / "a.txt").read_bytes() == b"half"
    assert (done.rescue / "earlier" / "a.txt").read_bytes() == b"mine"


def test_a_run_with_names_in_between_hides_nothing(killed: Session, work: Path) -> None:
    (work / "other.txt").write_bytes(b"x")
    with killed.watch(killed.assistant("named", uuid="r2"), ["other.txt"]):
        (work / "other.txt").write_bytes(b"y")
    with killed.watch(killed.assistant("whole", uuid="r3")):
        (work / "last.txt").write_bytes(b"z")
    done = killed.undo(to="q", force=True)
    assert files(work) == BEFORE
    # Nothing tells who made `other.txt`, so both of its versions are kept.
    assert done.rescue is not None and (done.rescue / "other.txt").read_bytes() == b"x"
    assert (done.rescue / "earlier" / "other.txt").read_bytes() == b"y"


def test_without_a_look_from_before_nothing_is_called_new(killed: Session, work: Path) -> None:
    for cache in (killed.folder / "scans").iterdir():
        cache.unlink()
    with pytest.raises(UnknownReference, match="nothing to undo"):
        killed.undo(force=True)
    assert files(work) == HALF


def test_a_tool_that_still_runs_is_not_called_cut_off_behind_it(session: Session, work: Path) -> None:
    session.user("go", uuid="q")
    session.assistant("slow", uuid="r")
    slow = session.watch("r")
    slow.before()
    (work / "a.txt").write_bytes(b"half")
    with pytest.raises(Refused, match="was interrupted"):
        session.undo()
    (work / "a.txt").write_bytes(b"done")
    slow.after()
    session.undo()
    assert (work / "a.txt").read_bytes() == b"one\n"


def test_a_workspace_that_was_moved(session: Session, work: Path, tmp_path: Path) -> None:
    session.user("go", uuid="q")
    step(session, writes(work / "a.txt", b"two\n"), uuid="r1")
    step(session, writes(work / "a.txt", b"three\n"), "a.txt", uuid="r2")
    now = tmp_path / "elsewhere"
    work.rename(now)
    with pytest.raises(PathRefused, match="give its former path with --from"):
        session.undo(root=now)
    session.undo(root=now, moved_from=work)
    assert (now / "a.txt").read_bytes() == b"two\n"
    session.redo(root=now, moved_from=work)
    session.undo(to="q", root=now, moved_from=str(work))
    assert (now / "a.txt").read_bytes() == b"one\n"


def test_a_killed_tool_in_a_workspace_that_was_moved(killed: Session, work: Path, tmp_path: Path) -> None:
    now = tmp_path / "elsewhere"
    work.rename(now)
    os.chdir(now)
    killed.undo(root=now, moved_from=work, force=True)
    assert files(now) == BEFORE


@pytest.mark.slow
def test_the_command_shows_each_edit_and_keeps_it(
    session: Session, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLEW_DATA_DIR", str(tmp_path / "data"))
    file = work / "a.txt"
    session.user("go", uuid="q")
    step(session, writes(file, b"two\n"), uuid="r1")
    file.write_bytes(b"mine\n")
    step(session, writes(file, b"three\n"), uuid="r2")
    session.close()
    now = tmp_path / "elsewhere"
    work.rename(now)
    words = ("undo", "s", "--to", "q", "--in", str(now), "--from", str(work), "--home", str(tmp_path))
    refused = run(*words)
    assert refused.code == 6
    assert "between two tool runs" in refused.out and "-two\n+mine\n" in refused.out
    done = run(*words, "--force", "--json")
    assert done.code == 0
    told = json.loads(done.raw)
    assert "+mine" in told["files"][0]["diff"]
    assert (Path(told["rescue"]) / "a.txt").read_bytes() == b"mine\n"
    assert (now / "a.txt").read_bytes() == b"one\n"


class Mixture:
    """Tools, kills and people at work on three files, in an order of chance; every content is one of its kind."""

    NAMES = ("a", "b", "sub/c")

    def __init__(self, place: Path, seed: int) -> None:
        self.place, self.work, self.chance = place, place / "files", random.Random(seed)
        (self.work / "sub").mkdir(parents=True)
        self.session = self.opened()
        self.session.user("go", uuid="q")
        self.count = 0
        self.made: dict[str, set[bytes]] = {name: set() for name in self.NAMES}
        """What somebody made and a tool replaced, or what is there."""

    def opened(self) -> Session:
        return Store(self.place, system=Quick()).session("s")

    def put(self, name: str, who: str) -> None:
        self.count += 1
        path = self.work / name
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True) if self.chance.random() < 0.15 else path.write_text(f"{who} {self.count}")

    def now(self, name: str) -> bytes | None:
        path = self.work / name
        return path.read_bytes() if path.exists() else None

    def note(self, name: str, content: bytes | None) -> None:
        if content is not None and content.startswith(b"somebody"):
            self.made[name].add(content)

    def run_a_tool(self) -> None:
        names = list(self.NAMES) if self.chance.random() < 0.5 else self.chance.sample(self.NAMES, 2)
        watched = None if len(names) == 3 else names
        watch = self.session.watch(self.session.assistant("a tool"), watched, root=self.work)
        watch.before()
        for name in self.chance.sample(names, self.chance.randrange(1, 3)):
            before = self.now(name)
            self.put(name, "tool")
            self.note(name, before)
        if self.chance.random() < 0.3:
            self.session.close()
            self.session = self.opened()  # as behind a kill
        else:
            watch.after()

    def undo(self, to: str | None) -> set[bytes]:
        """Undo, by force where it must be; returns what was kept."""
        try:
            done = self.session.undo(to, root=self.work)
        except Refused:
            done = self.session.undo(to, root=self.work, force=True)
        kept = done.rescue.rglob("*") if done.rescue is not None else ()
        return {path.read_bytes() for path in kept if path.is_file()}


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("seed", range(25))
def test_R09_whatever_happens_nothing_that_somebody_made_is_lost(tmp_path: Path, seed: int, at_once: bool) -> None:
    world = Mixture(tmp_path, seed)
    for name in world.NAMES:
        world.put(name, "beginning")
    for _ in range(world.chance.randrange(6, 16)):
        if world.chance.random() < 0.4:
            world.put(world.chance.choice(world.NAMES), "somebody")
        else:
            world.run_a_tool()
    before = {name: world.now(name) for name in world.NAMES}
    for name, content in before.items():
        world.note(name, content)
    kept: set[bytes] = set()
    with suppress(UnknownReference):
        while world.session.head != "q":
            kept |= world.undo("q" if at_once else None)
    for name, content in before.items():
        now = world.now(name)
        assert now == content or world.made[name] <= {*kept, now}, name
