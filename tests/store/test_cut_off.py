"""Tools that were cut off: what they did can be undone, wherever the kill came, and wherever the workspace is now."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from clew.store import Session, Store, UndoResult
from clew.store.outside_edits import in_tool_order
from clew.store.snapshots import SnapshotEntry
from tests.cli.running import run
from tests.store.support import Kill, Mortal, Quick, in_memory, lines


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    monkeypatch.chdir(root)
    (root / "f").write_text("before\n")
    return root


def opened(place: Path, ignore: list[str] | None = None) -> Session:
    if ignore is not None:
        (place / ".sage").mkdir(exist_ok=True)
        (place / ".sage/config.json").write_text(json.dumps({"clew": {"ignore": ignore}}))
    return Store(place, system=Quick()).session("s")


def cut_off(session: Session, work: Path, names: list[str] | None = None, text: str = "half\n") -> None:
    """A prompt, and a tool that is killed with its agent."""
    session.user("go", uuid="go")
    session.watch(session.assistant("I do.", uuid="reply"), names, root=work).before()
    (work / "f").write_text(text)
    session.close()


def steps(done: UndoResult) -> dict[str, tuple[str, str | None]]:
    return {step.path: (step.verdict, step.reason) for step in done.steps}


@contextmanager
def killing(system: Mortal, at: int) -> Iterator[None]:
    system.left = at
    with suppress(Kill):
        yield
    if system.is_dead:
        system.bury()


def undone_behind_a_kill(at: int) -> bool:
    """The agent is killed while it looks behind its tool; True where it was over before."""
    system = Mortal()
    with in_memory() as place:
        work = place / "work"
        work.mkdir()
        (work / "f").write_text("before\n")
        session = Store(place, system=system).session("s")
        session.user("go")
        watch = session.watch(session.assistant("I do."), root=work)
        watch.before()
        (work / "f").write_text("behind\n")
        (work / "new").write_text("new\n")
        session.close()
        with killing(system, at):
            watch.after()
        again = opened(place)
        done = again.undo(root=work, force=True)
        assert {path.name: path.read_text() for path in work.iterdir()} == {"f": "before\n"}, at
        assert {step.path for step in done.steps} == {"f", "new"}
        again.redo(root=work)
        assert {path.name: path.read_text() for path in work.iterdir()} == {"f": "behind\n", "new": "new\n"}
    return not system.is_dead


@pytest.mark.slow
def test_S04_killed_at_any_call_behind_a_tool_it_can_be_undone() -> None:
    last = next(at for at in count(1) if undone_behind_a_kill(at))
    assert last > 15


@pytest.mark.parametrize(("then", "now"), [(["*.log"], []), ([], ["*.log"])])
def test_what_was_or_is_left_out_was_not_changed_by_the_tool(
    tmp_path: Path, work: Path, then: list[str], now: list[str]
) -> None:
    (work / "a.log").write_text("somebody's\n")
    cut_off(opened(tmp_path, then), work)
    again = opened(tmp_path, now)
    assert set(steps(again.undo(root=work, dry_run=True))) == {"f"}
    done = again.undo(root=work, force=True)
    assert set(steps(done)) == {"f"} and (work / "a.log").read_text() == "somebody's\n"
    assert [sorted(one["snapshot"]["trackedFiles"]) for one in lines(again.folder / "snapshots.jsonl")] == [
        [],
        ["f"],
        ["f"],
    ]


def test_a_workspace_that_was_moved_is_looked_at_late_once(tmp_path: Path, work: Path) -> None:
    cut_off(opened(tmp_path), work)
    moved = tmp_path / "moved"
    work.rename(moved)
    session = opened(tmp_path)
    session.undo(root=moved, moved_from=work, force=True)
    assert (moved / "f").read_text() == "before\n"
    assert steps(session.redo(root=moved, dry_run=True)) == {"f": ("write", None)}
    session.redo(root=moved, moved_from=work)
    assert (moved / "f").read_text() == "half\n"
    session.undo(root=moved, moved_from=work, force=True)
    late = [one for one in lines(session.folder / "snapshots.jsonl") if one["metadata"]["clew"].get("late")]
    assert [one["metadata"]["clew"]["root"] for one in late] == [str(work)]


def test_a_named_tool_of_the_same_message_does_not_end_the_other(tmp_path: Path, work: Path) -> None:
    session = opened(tmp_path)
    session.user("go")
    reply = session.assistant("Two tools.")
    session.watch(reply, root=work).before()
    with session.watch(reply, ["g"], root=work):
        (work / "g").write_text("made\n")
    (work / "f").write_text("half\n")
    session.close()
    done = opened(tmp_path).undo(root=work, force=True)
    assert {path.name: path.read_text() for path in work.iterdir()} == {"f": "before\n"}
    assert set(steps(done)) == {"f", "g"}


@pytest.mark.slow
@pytest.mark.parametrize("again", [False, True])
def test_the_diff_of_a_named_tool_begins_with_what_was_there(tmp_path: Path, work: Path, again: bool) -> None:
    session = opened(tmp_path)
    cut_off(session, work, ["f"])
    if again:
        with session.watch(session.assistant("Once more."), ["f"], root=work):
            (work / "f").write_text("again\n")
        session.close()
    told = run("undo", "s", "--to", "go", "--in", str(work), "--home", str(tmp_path))
    assert told.code == 6
    assert "-before\n+half\n" in told.out and "/dev/null" not in told.out


def test_a_file_that_a_named_tool_made_was_not_there(tmp_path: Path, work: Path) -> None:
    (work / "f").unlink()
    cut_off(opened(tmp_path), work, ["f"])
    told = run("undo", "s", "--to", "go", "--in", str(work), "--home", str(tmp_path))
    assert "--- /dev/null\n+++ b/f\n" in told.out


def taken(message: str, **about: Any) -> SnapshotEntry:
    return SnapshotEntry(message, "/work", {}, **about)


def test_what_was_recorded_late_stands_where_the_tool_was_cut_off() -> None:
    one, two = taken("1", is_open=True), taken("2", is_open=True)
    late = [taken("1", is_late=True, is_erased=bool(number)) for number in range(2)]
    strange = taken("3", is_late=True)
    assert in_tool_order([one, two, *late, strange]) == [one, *late, two, strange]
    assert in_tool_order([strange, late[0]]) == [strange, late[0]]
