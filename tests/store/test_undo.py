"""Undo and redo: files, task list and conversation go together, whole or not at all, and nothing is ever lost."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import stat
import threading
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from clew import Host, Library
from clew.agents.sage_agent.written_records import FileBackup
from clew.errors import Busy, ClewError, PathRefused, SourceUnreadable, UnknownReference, UsageError
from clew.io.blobs import digest_of, name_of
from clew.io.safe_write import Within
from clew.store import Session, Store, TodoItem, TrackedFile
from clew.store.change_journal import undo_journals
from clew.store.doctor import examine
from clew.store.undo_plan import Refused, UndoResult
from tests import children
from tests.files.test_within import SPELLINGS
from tests.store.support import Faulty, Quick, assert_whole, lines, log_of

Tree = dict[str, tuple[bytes, int]]


def tree(root: Path) -> Tree:
    """Every file with its bytes and mode; what only lies aside while others are put back does not count."""
    return {
        os.path.relpath(path, root): (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.is_symlink() and not path.name.startswith(".clew-")
    }


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    monkeypatch.chdir(root)
    (root / "a.txt").write_bytes(b"one\n")
    (root / "old").mkdir()
    (root / "old/b.bin").write_bytes(bytes(range(256)))
    (root / "run.sh").write_bytes(b"#!/bin/sh\n")
    return root


@pytest.fixture
def session(tmp_path: Path, work: Path) -> Session:
    return Store(tmp_path, system=Quick()).session("s")


def step(session: Session, words: str, change: Callable[[], object], *paths: str, **more: Any) -> str:
    """A reply whose tool changes files."""
    message = session.assistant(words, **more).uuid
    with session.watch(message, list(paths) or None):
        change()
    return message


def write(name: str, content: bytes) -> Callable[[], object]:
    def change() -> None:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    return change


def two_steps(session: Session, work: Path) -> list[Tree]:
    """The files before, between and behind."""
    session.user("go", uuid="q", todos=[TodoItem(content="write")])
    trees = [tree(work)]

    def first() -> None:
        (work / "a.txt").write_bytes(b"two\n")
        (work / "old/b.bin").unlink()
        (work / "old").rmdir()
        (work / "run.sh").chmod(0o755)
        (work / "new").mkdir()
        (work / "new" / "c.txt").write_bytes(b"c")

    doing = [TodoItem(content="write", status="in_progress")]
    step(session, "first", first, "a.txt", "old/b.bin", "run.sh", "new/c.txt", uuid="r1", todos=doing)
    trees.append(tree(work))
    done = [TodoItem(content="write", status="completed")]
    step(session, "second", write("a.txt", b"three\n"), uuid="r2", todos=done)
    trees.append(tree(work))
    return trees


def verdicts(done: UndoResult) -> dict[str, str]:
    return {one.path: one.verdict for one in done.steps}


@pytest.mark.seed("S1-3", "S1-44", "S1-59", "S1-40")
def test_one_step_back_undoes_the_last_change(session: Session, work: Path) -> None:
    before, between, _ = two_steps(session, work)
    session.assistant("only words")
    done = session.undo()
    assert tree(work) == between
    assert (done.action, done.head, session.head) == ("undo", "r1", "r1")
    assert verdicts(session.undo()) == {
        "a.txt": "write",
        "old/b.bin": "write",
        "run.sh": "write",
        "new/c.txt": "remove",
    }
    assert tree(work) == before and session.head == "q"
    with pytest.raises(UnknownReference, match="nothing to undo"):
        session.undo()


@pytest.mark.seed("S1-45", "S1-59")
def test_redo_gives_the_same_bytes(session: Session, work: Path, tmp_path: Path) -> None:
    before, between, behind = two_steps(session, work)
    head = session.head
    session.undo()
    session.undo()
    again = Store(tmp_path, system=Quick()).session("s")
    again.redo()
    assert tree(work) == between
    again.redo()
    assert tree(work) == behind and again.head == head
    with pytest.raises(UnknownReference, match="nothing to redo"):
        again.redo()
    again.undo(to="q")
    assert tree(work) == before
    again.redo()
    assert tree(work) == behind
    for handle in (session, again):
        handle.close()
    assert_whole(tmp_path)


@pytest.mark.seed("S1-34", "S1-47")
def test_to_a_message_the_task_list_goes_back_too(session: Session, work: Path, tmp_path: Path) -> None:
    before, *_ = two_steps(session, work)
    session.undo(to="#1")
    assert tree(work) == before and session.path() == ["q"]
    session.user("so far", uuid="q2")
    assert next(r for r in session.records() if r.get("uuid") == "q2")["todos"] == [
        {"content": "write", "status": "pending"}
    ]
    session.undo(to="r1")
    other = Store(tmp_path, system=Quick()).session("s")
    other.user("from another handle", uuid="q3")
    last = next(r for r in session.records() if r.get("uuid") == "q3")
    assert last["parentUuid"] == "r1" and last["todos"][0]["status"] == "in_progress"


@pytest.mark.seed("S1-45")
def test_a_new_message_keeps_the_undone_branch(session: Session, work: Path, tmp_path: Path) -> None:
    before, _, behind = two_steps(session, work)
    session.undo(to="q")
    session.user("another way", uuid="q2")
    with pytest.raises(UnknownReference, match="nothing to redo"):
        session.redo()
    assert session.path() == ["q", "q2"] and session.path("main") == ["q", "r1", "r2"]
    step(session, "there", write("a.txt", b"there\n"), "a.txt", uuid="r3")
    there = tree(work)
    # Over to the branch that was undone, and back.
    session.undo(to="main")
    assert tree(work) == behind and session.path() == ["q", "r1", "r2"]
    session.undo(to="r3")
    assert tree(work) == there
    session.undo(to="q2")
    assert tree(work) == before
    session.user("the last word")
    session.close()
    assert_whole(tmp_path)
    [found] = Library(Host.at(tmp_path)).sources()
    assert found.facts.tree.graph().active_path == session.path()


@pytest.mark.seed("S1-41")
def test_one_file_alone(session: Session, work: Path) -> None:
    _, between, behind = two_steps(session, work)
    session.undo(file="a.txt")
    assert tree(work)["a.txt"] == between["a.txt"] and session.head == "r2"
    with pytest.raises(UnknownReference, match="nothing to undo"):
        session.undo(file="a.txt")
    session.redo()
    assert tree(work) == behind
    session.undo(to="q", file=str(work / "old/b.bin"))
    assert tree(work) == {**behind, "old/b.bin": (bytes(range(256)), 0o644)}
    with pytest.raises(UnknownReference):
        session.undo(file="run.txt")
    session.undo(to="q")
    session.redo()
    assert tree(work) == {**behind, "old/b.bin": (bytes(range(256)), 0o644)}


def test_each_is_a_record_and_nothing_is_changed(session: Session, work: Path, tmp_path: Path) -> None:
    two_steps(session, work)
    log, snapshots = log_of(tmp_path), session.folder / "snapshots.jsonl"
    before = log.read_bytes(), snapshots.read_bytes()
    session.undo()
    session.redo()
    assert log.read_bytes().startswith(before[0]) and snapshots.read_bytes().startswith(before[1])
    undo, redo = lines(log)[-2:]
    assert (undo["type"], undo["action"], undo["messageId"], undo["fromId"]) == ("branch", "undo", "r1", "r2")
    assert (redo["action"], redo["messageId"], redo["todos"][0]["status"]) == ("redo", "r2", "completed")
    assert [record["messageId"] for record in lines(snapshots)[-2:]] == [undo["uuid"], redo["uuid"]]


def test_before_the_first_message(session: Session, work: Path, tmp_path: Path) -> None:
    before = tree(work)
    step(session, "at once", write("a.txt", b"x"), "a.txt", uuid="r")
    assert session.undo().head is None
    assert tree(work) == before and session.path() == []
    Store(tmp_path, system=Quick()).session("s").user("a new beginning", uuid="q")
    assert session.path() == ["q"] and len(session.branches()) == 2


def test_looking_changes_nothing(session: Session, work: Path, tmp_path: Path) -> None:
    _, _, behind = two_steps(session, work)
    log = log_of(tmp_path).read_bytes()
    done = session.undo(to="q", dry_run=True)
    assert verdicts(done) == {"a.txt": "write", "old/b.bin": "write", "run.sh": "write", "new/c.txt": "remove"}
    assert (done.start, done.head, done.receipt) == ("r2", "q", None)
    assert tree(work) == behind and log_of(tmp_path).read_bytes() == log


def test_what_a_person_did_between_messages_comes_back(session: Session, work: Path) -> None:
    two_steps(session, work)
    (work / "a.txt").write_bytes(b"by hand\n")
    step(session, "third", write("a.txt", b"four\n"), "a.txt")
    session.undo()
    assert (work / "a.txt").read_bytes() == b"by hand\n"


@pytest.mark.seed("S1-43")
def test_R09_what_somebody_changed_since_is_refused_with_what_it_is(session: Session, work: Path) -> None:
    _, between, behind = two_steps(session, work)
    (work / "a.txt").write_bytes(b"mine\n")
    with pytest.raises(Refused, match="was changed since") as caught:
        session.undo()
    [conflict] = [one for one in caught.value.steps if one.verdict == "conflict"]
    assert (conflict.recorded, conflict.current, conflict.content) == (b"three\n", b"mine\n", b"two\n")
    assert tree(work) == {**behind, "a.txt": (b"mine\n", 0o644)} and session.head == "r2"
    done = session.undo(force=True)
    assert tree(work) == between
    assert done.rescue is not None and (done.rescue / "a.txt").read_bytes() == b"mine\n"
    assert stat.S_IMODE(done.rescue.stat().st_mode) == 0o700
    # And the undo itself can be taken back, with what was there.
    session.redo()
    assert (work / "a.txt").read_bytes() == b"mine\n"


def test_R09_a_mode_that_somebody_changed_is_a_change(session: Session, work: Path) -> None:
    two_steps(session, work)
    (work / "a.txt").chmod(0o755)
    with pytest.raises(Refused):
        session.undo()


def test_R09_what_is_already_so_or_gone_is_no_conflict(session: Session, work: Path) -> None:
    two_steps(session, work)
    (work / "a.txt").write_bytes(b"two\n")
    assert verdicts(session.undo()) == {"a.txt": "same"}
    session.redo()
    (work / "a.txt").unlink()
    session.undo(to="q")
    assert (work / "a.txt").read_bytes() == b"one\n"


def test_R09_what_a_tool_left_that_was_cut_off_needs_a_word(session: Session, work: Path) -> None:
    session.user("go")
    session.watch(session.assistant("is killed"), ["a.txt"]).before()
    (work / "a.txt").write_bytes(b"half")
    with pytest.raises(Refused, match="was interrupted"):
        session.undo()
    session.undo(force=True)
    assert (work / "a.txt").read_bytes() == b"one\n"


def hostile(session: Session, path: str, root: Path) -> None:
    """A snapshot from elsewhere: says that a file was made at this path."""
    body = b"bad"
    session.backups.mkdir(parents=True, exist_ok=True)
    (session.backups / "x.backup").write_bytes(body)
    message = session.assistant("from elsewhere").uuid
    backup = FileBackup(backup_path="backups/x.backup", original_hash=digest_of(body))
    good = FileBackup(backup_path="../../../x.backup", original_hash=digest_of(body))
    files = {path: TrackedFile(state="modified"), "good.txt": TrackedFile(state="modified")}
    session.snapshot(message, files, {path: backup, "good.txt": good})


@pytest.mark.seed("S1-38")
@pytest.mark.parametrize("path", SPELLINGS, ids=repr)
def test_R01_R02_R03_paths_that_lead_elsewhere_stop_the_whole(
    session: Session, work: Path, tmp_path: Path, path: str
) -> None:
    session.user("go")
    hostile(session, path, work)
    before = {name: found for name, found in tree(tmp_path).items() if not name.startswith(".sage")}
    for force in (False, True):
        with pytest.raises(PathRefused, match="nothing was changed"):
            session.undo(force=force)
    assert {name: found for name, found in tree(tmp_path).items() if not name.startswith(".sage")} == before


def test_R02_another_folder_than_the_one_that_was_named(session: Session, work: Path, tmp_path: Path) -> None:
    two_steps(session, work)
    (tmp_path / "other").mkdir()
    with pytest.raises(PathRefused, match="not below"):
        session.undo(root=tmp_path / "other")
    # A folder above it is fine.
    session.undo(root=tmp_path)
    assert (work / "a.txt").read_bytes() == b"two\n"


def test_R04_links_are_not_followed(session: Session, work: Path, tmp_path: Path) -> None:
    two_steps(session, work)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "c.txt").write_bytes(b"c")
    (outside / "a.txt").write_bytes(b"three\n")
    (work / "a.txt").unlink()
    (work / "a.txt").symlink_to(outside / "a.txt")
    with pytest.raises(PathRefused):
        session.undo(force=True)
    (work / "a.txt").unlink()
    (work / "a.txt").write_bytes(b"three\n")
    (work / "new" / "c.txt").unlink()
    (work / "new").rmdir()
    (work / "new").symlink_to(outside)
    with pytest.raises(PathRefused):
        session.undo(to="q", force=True)
    assert tree(outside) == {"a.txt": (b"three\n", 0o644), "c.txt": (b"c", 0o644)}


@pytest.mark.slow
def test_R05_a_folder_that_turns_into_a_link_meanwhile(session: Session, work: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (work / "sub").mkdir()
    (work / "sub" / "x").write_bytes(b"old")
    session.user("go")
    step(session, "x", write("sub/x", b"new"), "sub/x")
    stop = threading.Event()

    def flip() -> None:
        changes = (
            lambda: (work / "sub").rename(work / "aside"),
            lambda: (work / "sub").symlink_to(outside),
            lambda: (work / "sub").unlink(),
            lambda: (work / "aside").rename(work / "sub"),
        )
        while not stop.is_set():
            for change in changes:
                with suppress(OSError):
                    change()

    flipping = threading.Thread(target=flip, daemon=True)
    flipping.start()
    try:
        for _ in range(40):
            for go in (session.undo, session.redo):
                try:
                    go(force=True)
                except (OSError, ClewError):
                    continue
    finally:
        stop.set()
        flipping.join(60)
    assert list(outside.iterdir()) == []


def test_R06_only_files_are_replaced_and_other_names_of_them_stay(session: Session, work: Path) -> None:
    two_steps(session, work)
    os.link(work / "a.txt", work / "other name")
    session.undo()
    assert (work / "a.txt").read_bytes() == b"two\n" and (work / "other name").read_bytes() == b"three\n"
    session.redo()
    (work / "a.txt").unlink()
    os.mkfifo(work / "a.txt")
    with pytest.raises(PathRefused):
        session.undo(force=True)


@pytest.mark.parametrize(
    ("one", "two"), [("A.txt", "a.txt"), ("é.txt", unicodedata.normalize("NFD", "é.txt")), ("d/x", "D/y")]
)
def test_R07_twins_are_refused(session: Session, work: Path, one: str, two: str) -> None:
    session.user("go")
    (work / "a.txt").unlink()
    step(session, "both", lambda: (write(one, b"1")(), write(two, b"2")()), one, two)
    with pytest.raises(PathRefused, match="same file"):
        session.undo()
    assert (work / one).exists() and (work / two).exists()


@pytest.mark.seed("S1-43")
def test_R08_a_damaged_copy_is_refused_and_named(session: Session, work: Path) -> None:
    _, _, behind = two_steps(session, work)
    path = session.backups / name_of(digest_of(b"one\n"))
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(Refused, match=r"'a.txt' cannot be restored: the copy \w+ is damaged"):
        session.undo(to="q")
    assert tree(work) == behind
    path.unlink()
    with pytest.raises(Refused, match="is missing"):
        session.undo(to="q")
    session.undo(to="q", force=True)
    assert (work / "a.txt").read_bytes() == b"three\n" and not (work / "new" / "c.txt").exists()


def test_R08_never_delete_what_may_have_been_there(session: Session, work: Path) -> None:
    """Sage Agent itself calls a changed file that is no text `created`, and has no copy of it."""
    session.user("go")
    message = session.assistant("x").uuid
    session.snapshot(
        message, {"old/b.bin": TrackedFile(content_hash=digest_of((work / "old/b.bin").read_bytes()), state="created")}
    )
    with pytest.raises(Refused, match="no content from before is recorded"):
        session.undo()
    session.undo(force=True)
    assert (work / "old/b.bin").exists()


def test_records_of_sage_agent_itself_are_undone(session: Session, work: Path) -> None:
    session.user("go")
    message = session.assistant("x").uuid
    (session.folder / "backups").mkdir()
    (session.folder / "backups" / "b.backup").write_bytes(b"before")
    files = {
        "a.txt": TrackedFile(original_content="before\n", content_hash=digest_of(b"one\n"), state="modified"),
        "old/b.bin": TrackedFile(content_hash=digest_of(bytes(range(256))), state="modified"),
    }
    session.snapshot(message, files, {"old/b.bin": FileBackup(backup_path="/x/.sage/backups/b.backup")})
    session.undo()
    assert tree(work)["a.txt"] == (b"before\n", 0o644) and tree(work)["old/b.bin"] == (b"before", 0o644)
    session.redo()
    assert tree(work)["old/b.bin"] == (bytes(range(256)), 0o644)


STEPS = ("open", "link", "rename", "unlink", "fsync", "mkdir", "write", "fchmod")


@pytest.mark.parametrize("call", STEPS)
def test_R10_a_fault_at_every_call_takes_everything_back(
    session: Session, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    before, _, behind = two_steps(session, work)
    real = getattr(os, call)
    failures = 0
    for at in range(1, 400):
        count = 0

        def failing(*words: Any, at: int = at, **more: Any) -> Any:
            nonlocal count
            count += 1
            if count == at:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(*words, **more)

        handle = Store(tmp_path).session("s")
        with monkeypatch.context() as patch:
            patch.setattr(os, call, failing)
            patch.setattr(os, "supports_dir_fd", {*os.supports_dir_fd, failing})
            if hasattr(type(handle._config.system), call):
                patch.setattr(type(handle._config.system), call, staticmethod(failing))
            try:
                handle.undo(to="q")
                failed = False
            except (OSError, ClewError):
                failed = True
        again = Store(tmp_path, system=Quick()).session("s")
        if not failed:
            if count < at:
                break
            # What failed was of no weight.
            assert tree(work) == before
        elif again.head == "q":
            # Recorded and done; only a look behind it failed.
            assert tree(work) == before
        else:
            failures += 1
            assert again.head == "r2" and tree(work) == behind, f"{call} failed at call {at}"
            continue
        again.redo()
        assert tree(work) == behind
    assert failures >= 1
    assert tree(work) == before and not undo_journals(session.folder)
    leftovers = [path.name for path in work.rglob(".clew-*")]
    assert leftovers == [] or call == "unlink"


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "error"), [("before", errno.EIO), ("torn", errno.ENOSPC)])
def test_R10_a_fault_at_every_call_of_the_store(
    session: Session, work: Path, tmp_path: Path, kind: str, error: int
) -> None:
    before, _, behind = two_steps(session, work)
    at = 0
    while True:
        at += 1
        system = Faulty(at, error, kind=kind)
        failing = Session(session.folder, Store(tmp_path, system=system)._config)
        with suppress(OSError, ClewError):
            failing.undo(to="q")
        again = Store(tmp_path, system=Quick()).session("s")
        # A fault in taking it back leaves that to the next one.
        again.describe()
        for finding in examine(tmp_path):
            if finding.problem.code == "undo-unfinished" and finding.mend is not None:
                finding.mend()
        if again.head == "q":
            assert tree(work) == before
            again.redo()
        assert tree(work) == behind and again.head == "r2", f"{system.hit} failed at call {at}"
        if not system.hit:
            break
    assert at > 30
    again.close()
    assert all(one.problem.code != "backup-damaged" for one in examine(tmp_path))


@pytest.mark.slow
def test_R10_five_hundred_files_or_none(session: Session, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session.user("go")
    step(session, "many", lambda: [write(f"f{number}", b"%d" % number)() for number in range(500)])
    behind = tree(work)
    real, count = os.unlink, 0

    def failing(*words: Any, **more: Any) -> None:
        nonlocal count
        count += 1
        if count == 250:
            raise OSError(errno.EACCES, "Permission denied")
        real(*words, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", failing)
        with pytest.raises(OSError, match="Permission"):
            session.undo()
    assert tree(work) == behind
    session.undo()
    assert len(tree(work)) == 3


def dying(place: Path, at: int) -> None:
    """An undo in a process that ends at one of its calls."""
    count = 0

    def deadly(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*words: Any, **more: Any) -> Any:
            nonlocal count
            count += 1
            if count == at:
                os._exit(9)
            return real(*words, **more)

        return call

    os.rename, os.unlink, os.link = deadly(os.rename), deadly(os.unlink), deadly(os.link)
    Store(place).session("s").undo(to="q")


@pytest.mark.parametrize("at", range(1, 16))
def test_R10_a_crash_half_way_is_taken_back_by_the_next(
    session: Session, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """As after a kill: nothing of what would clean up has run."""
    before, _, behind = two_steps(session, work)
    session.close()
    assert children.done(lambda: dying(tmp_path, at)) in (0, 9)
    again = Store(tmp_path, system=Quick()).session("s")
    if again.head == "q":
        again.redo()
    elif undo_journals(session.folder):
        [finding] = [one for one in examine(tmp_path) if one.problem.code == "undo-unfinished"]
        assert finding.mend is not None
        if at % 2:
            finding.mend()
        else:
            assert again.clear() == []
            again.undo()
            again.redo()
    assert tree(work) == behind and again.head == "r2"
    assert again.undo(to="q") and tree(work) == before
    assert list(work.rglob(".clew-*")) == []


def test_R10_what_was_cut_off_waits_for_a_workspace_that_is_away(
    session: Session, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, behind = two_steps(session, work)
    session.close()

    def die() -> None:
        real = os.rename
        os.rename = lambda *words, **more: (real(*words, **more), os._exit(9))  # type: ignore[assignment]
        Store(tmp_path).session("s").undo(to="q")

    assert children.done(die) == 9
    work.rename(tmp_path / "away")
    [finding] = [one for one in examine(tmp_path) if one.problem.code == "undo-unfinished"]
    assert finding.mend is not None
    with pytest.raises(SourceUnreadable, match="is not there"):
        finding.mend()
    (tmp_path / "away").rename(work)
    finding.mend()
    assert tree(work) == behind
    assert list(work.rglob(".clew-*")) == []


@pytest.mark.parametrize("is_link", [True, False])
def test_R10_another_folder_in_the_place_of_the_workspace_is_left_alone(
    session: Session, work: Path, tmp_path: Path, is_link: bool
) -> None:
    _, _, behind = two_steps(session, work)
    session.close()

    def die() -> None:
        real = os.rename
        os.rename = lambda *words, **more: (real(*words, **more), os._exit(9))  # type: ignore[assignment]
        Store(tmp_path).session("s").undo(to="q")

    assert children.done(die) == 9
    victim = tmp_path / "victim"
    shutil.copytree(work, victim)
    work.rename(tmp_path / "away")
    work.symlink_to(victim) if is_link else victim.rename(work)
    half = tree(work)
    [finding] = [one for one in examine(tmp_path) if one.problem.code == "undo-unfinished"]
    assert finding.mend is not None
    again = Store(tmp_path).session("s")
    again.user("more")
    for refused in (finding.mend, again.roll_back_interrupted_undo, lambda: again.watch("q", ["x"], root=tmp_path)):
        with pytest.raises(SourceUnreadable, match="was replaced by another folder; remove"):
            refused()
    assert tree(work) == half
    work.unlink() if is_link else shutil.rmtree(work)
    (tmp_path / "away").rename(work)
    finding.mend()
    assert tree(work) == behind


def test_R10_an_undo_that_waits_in_vain_takes_nobody_elses_back(session: Session, work: Path, tmp_path: Path) -> None:
    """Whoever cannot get the lock must not take what its holder is doing for something that was cut off."""
    before, _, behind = two_steps(session, work)
    other = Store(tmp_path, lock_wait=0.05, system=Quick()).session("s")
    real = Within.apply
    seen: list[Tree] = []

    def slow(self: Within, changes: Any) -> None:
        real(self, changes)
        if not seen:
            seen.append(tree(work))
            with pytest.raises(Busy):
                other.undo(to="q")
            seen.append(tree(work))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Within, "apply", slow)
        session.undo(to="q")
    assert seen == [before, before] and tree(work) == before
    other.redo()
    assert tree(work) == behind


@pytest.mark.parametrize(("recorded", "expected"), [(0o4755, 0o755), (0o2700, 0o700), (0o777, 0o755), (0o600, 0o600)])
def test_R11_modes_are_never_wider(session: Session, work: Path, recorded: int, expected: int) -> None:
    session.user("go")
    (work / "a.txt").chmod(recorded)
    step(session, "x", lambda: (work / "a.txt").unlink(), "a.txt")
    session.undo()
    assert stat.S_IMODE((work / "a.txt").stat().st_mode) == expected


@pytest.mark.parametrize(
    "name", ["line\nbreak", "tab\tx", "rtl\u202etxt", os.fsdecode(b"caf\xe9"), "x" * 255, "\x1b[31m"]
)
def test_R12_odd_names_come_back_exactly(session: Session, work: Path, tmp_path: Path, name: str) -> None:
    session.user("go")
    (work / name).write_bytes(b"before")
    step(session, "x", lambda: (work / name).write_bytes(b"behind"), name)
    session.undo()
    assert (work / name).read_bytes() == b"before"
    session.redo()
    assert (work / name).read_bytes() == b"behind"
    session.close()
    assert_whole(tmp_path)


def test_folders_that_are_empty_now_go_and_others_stay(session: Session, work: Path) -> None:
    session.user("go")
    (work / "kept").mkdir()
    step(session, "deep", lambda: (write("x/y/z", b"z")(), write("old/new", b"n")()))
    session.undo()
    assert not (work / "x").exists() and (work / "old").is_dir() and (work / "kept").is_dir()
    session.redo()
    assert (work / "x/y/z").read_bytes() == b"z"
    (work / "x/y/mine").write_bytes(b"m")
    session.undo()
    assert [path.name for path in (work / "x/y").iterdir()] == ["mine"]


@pytest.mark.slow
def test_R10_more_folders_than_can_be_open(session: Session, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session.user("go")
    step(session, "many", lambda: [write(f"d{number}/e/f", b"%d" % number)() for number in range(700)])
    behind = tree(work)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/dev/fd").iterdir())) + 150, hard))
    try:
        real, count = os.unlink, 0

        def failing(*words: Any, **more: Any) -> None:
            nonlocal count
            count += 1
            if count == 600:
                raise OSError(errno.EACCES, "Permission denied")
            real(*words, **more)

        with monkeypatch.context() as patch:
            patch.setattr(os, "unlink", failing)
            with pytest.raises(OSError, match="Permission"):
                session.undo()
        assert tree(work) == behind and not undo_journals(session.folder)
        session.undo()
        assert len(tree(work)) == 3 and not (work / "d5").exists()
        session.redo()
        assert tree(work) == behind
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_parallel_tools_of_one_message(session: Session, work: Path) -> None:
    """Results that stand beside each other belong to the same reply."""
    from clew.store import ToolCall, ToolResult

    session.user("go", uuid="q")
    calls = [ToolCall(id=str(number), name="t", arguments={}) for number in range(3)]
    session.assistant("three at once", calls=calls, uuid="r")
    for number in range(3):
        result = ToolResult(tool_call_id=str(number), tool_name="t", content="")
        receipt = session.results(result, parent="r")
        with session.watch(receipt, [f"f{number}"]):
            (work / f"f{number}").write_bytes(b"x")
    session.assistant("done")
    session.undo()
    assert session.head == "q" and not list(work.glob("f?"))


def test_a_move_behind_an_undo_is_the_last_that_happened(session: Session, work: Path) -> None:
    two_steps(session, work)
    session.undo()
    session.title("a title is no move")
    assert session.redo(dry_run=True).head == "r2"
    session.switch("r1")
    with pytest.raises(UnknownReference):
        session.redo()


def test_what_a_tool_did_not_change_is_left_alone(session: Session, work: Path) -> None:
    session.user("go")
    step(session, "only a", write("a.txt", b"x"), "a.txt", "run.sh")
    (work / "run.sh").write_bytes(b"mine")
    session.undo()
    assert (work / "run.sh").read_bytes() == b"mine"


@pytest.mark.parametrize("name", [".git/hooks/pre-commit", ".bashrc", ".ssh/config", ".claude/settings.json"])
def test_R13_what_programs_trust_needs_an_extra_word(session: Session, work: Path, name: str) -> None:
    (work / name).parent.mkdir(parents=True, exist_ok=True)
    session.user("go")
    step(session, "x", write(name, b"#!/bin/sh\n"), name)
    with pytest.raises(PathRefused, match="run this file automatically"):
        session.undo(force=True)
    assert (work / name).exists()
    session.undo(allow_protected=True)
    assert not (work / name).exists()
    with pytest.raises(PathRefused, match="run this file automatically"):
        session.redo()
    session.redo(allow_protected=True)
    assert (work / name).read_bytes() == b"#!/bin/sh\n"


def test_where_files_cannot_be_put_back_safely_that_is_said(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows, which has nothing to open a folder's file by."""
    monkeypatch.setattr(os, "supports_dir_fd", set())
    reply = session.assistant("I write.")
    with pytest.raises(UsageError, match="cannot be restored safely on this system"):
        session.watch(reply, ["x"]).before()
