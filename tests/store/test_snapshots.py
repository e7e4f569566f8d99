"""Snapshots: what a tool did to files is recorded as Sage Agent records it, with copies that hold any bytes."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clew import Host, Library
from clew.agents.file_evidence import FileContent
from clew.errors import PathRefused
from clew.file_history.history import FileHistory
from clew.io.blobs import digest_of
from clew.io.filesystem import System
from clew.store import Session, Store, ToolCall, ToolResult
from clew.store.blobs import Blobs
from clew.store.file_state import FileState
from clew.store.snapshots import parse_snapshot
from clew.store.undo_plan import Refused
from tests.files.test_within import SPELLINGS
from tests.store.support import Quick, assert_whole, lines, log_of

BYTES = bytes(range(256)) * 4


@pytest.fixture
def work(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    (root / "page.html").write_bytes(b"<p>one\r\n")
    (root / "old.bin").write_bytes(BYTES)
    (root / "run.sh").write_bytes(b"#!/bin/sh\n")
    (root / "same").write_bytes(b"")
    return root


@pytest.fixture
def session(tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.chdir(work)
    return Store(tmp_path, system=Quick()).session("s")


NAMES = ["page.html", "old.bin", "run.sh", "same", "new/index.html"]


def tool(session: Session, work: Path) -> str:
    """A message whose tool changes one file of each kind."""
    session.user("go")
    message = session.assistant("I change files.", calls=[ToolCall(id="c", name="bash", arguments={})]).uuid
    with session.watch(message, NAMES):
        (work / "page.html").write_bytes(b"<p>two\r\n")
        (work / "old.bin").unlink()
        (work / "run.sh").chmod(0o755)
        (work / "new").mkdir()
        (work / "new" / "index.html").write_bytes(BYTES)
    session.results(ToolResult(tool_call_id="c", tool_name="bash", content=""))
    return message


def records(session: Session) -> list[dict[str, object]]:
    return lines(session.folder / "snapshots.jsonl")


@pytest.mark.seed("S1-3", "S1-13", "S1-14", "S1-15", "S1-16", "S1-25", "S1-40", "S1-58")
def test_the_record_has_the_shape_of_the_seed(session: Session, work: Path) -> None:
    message = tool(session, work)
    first, last = records(session)
    assert list(last)[:5] == ["type", "messageId", "timestamp", "isSnapshotUpdate", "snapshot"]
    assert (last["type"], last["messageId"]) == ("file_history_snapshot", message)
    assert (first["isSnapshotUpdate"], last["isSnapshotUpdate"]) == (False, True)
    maps = last["snapshot"]
    assert isinstance(maps, dict) and list(maps) == ["trackedFiles", "fileBackups"]
    tracked, backups = maps["trackedFiles"], maps["fileBackups"]
    states = {path: file["state"] for path, file in tracked.items()}
    assert states == dict(zip(NAMES, ["modified", "deleted", "modified", "unchanged", "created"], strict=True))
    assert tracked["page.html"] == {"contentHash": digest_of(b"<p>two\r\n"), "size": 8, "state": "modified"}
    # Null means that there was no file, and only that.
    assert tracked["new/index.html"]["originalContent"] is None
    assert tracked["old.bin"] == {"contentHash": None, "size": 0, "state": "deleted"}
    assert backups["old.bin"] == {"backupPath": f"backups/{digest_of(BYTES)}.zst", "originalHash": digest_of(BYTES)}
    assert "new/index.html" not in backups
    own = last["metadata"]["clew"]  # type: ignore[index]
    assert own["root"] == str(work)
    assert own["files"]["run.sh"] == {"existed": True, "modeBefore": 0o644, "mode": 0o755}


@pytest.mark.seed("S1-58", "S1-42")
def test_the_readers_take_it_for_what_it_is(session: Session, work: Path, tmp_path: Path) -> None:
    message = tool(session, work)
    session.undo()
    session.close()
    assert_whole(tmp_path)
    [found] = Library(Host.at(tmp_path)).sources()
    units = [unit.value for unit in found.agent.units(found.source) if unit.value.get("kind") == "snapshot"]
    snapshots = [unit["snapshot"] for unit in units if unit["message_uuid"] == message]
    before, after = (snapshot["files"] for snapshot in snapshots)
    assert {path: file["state"] for path, file in after.items()} == dict(
        zip(NAMES, ["modified", "deleted", "modified", "unchanged", "created"], strict=True)
    )
    assert before["page.html"]["original_hash"] == digest_of(b"<p>one\r\n")


@pytest.mark.seed("S1-41")
def test_the_time_machine_knows_every_byte(session: Session, work: Path, tmp_path: Path) -> None:
    tool(session, work)
    session.undo()
    session.user("another way")
    session.close()
    [found] = Library(Host.at(tmp_path)).sources()
    history = FileHistory(found.agent, found.source)

    def at(message: int) -> dict[str, bytes | None]:
        answers = [answer for answer in history.all_at(message) if message < 4 or not answer.path.endswith("/same")]
        assert {answer.certainty for answer in answers} == {"exact"}
        states = history.contents(answers)
        names = [os.path.relpath(answer.path, work) for answer in answers]
        return {
            name: one.body if isinstance(one, FileContent) else None for name, one in zip(names, states, strict=True)
        }

    before = {
        "page.html": b"<p>one\r\n",
        "old.bin": BYTES,
        "run.sh": b"#!/bin/sh\n",
        "same": b"",
        "new/index.html": None,
    }
    after = {**before, "page.html": b"<p>two\r\n", "old.bin": None, "new/index.html": BYTES}
    assert at(1) == before
    assert at(3) == after
    # The message behind the undo stands on another branch; only of what went back is anything known there.
    assert at(4) == {name: body for name, body in before.items() if name != "same"}


@pytest.mark.seed("S1-38")
@pytest.mark.parametrize("path", [path for path in SPELLINGS if path not in ("./x", "a/./b", "a//b", "a/")], ids=repr)
def test_R01_R02_R03_only_files_of_the_workspace_are_watched(session: Session, path: str) -> None:
    with pytest.raises(PathRefused):
        session.watch("m", [path])


def test_R04_a_link_is_not_followed(session: Session, work: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("mine")
    (work / "link").symlink_to(tmp_path / "secret")
    (work / "folder").symlink_to(tmp_path)
    with session.watch(session.assistant("x"), ["link", "folder/secret"]):
        pass
    assert session._snapshots.blobs.all() == set()
    assert all(change.before.missing for one in session._snapshots.entries() for change in one.files.values())


def test_absolute_paths_below_the_workspace_are_fine(session: Session, work: Path) -> None:
    with session.watch(session.assistant("x"), [work / "page.html"]):
        (work / "page.html").unlink()
    assert [list(one.files) for one in session._snapshots.entries()] == [["page.html"]] * 2


def test_a_tool_that_fails_is_recorded_too(session: Session, work: Path) -> None:
    with pytest.raises(RuntimeError), session.watch(session.assistant("x"), ["page.html"]):
        (work / "page.html").write_bytes(b"half")
        raise RuntimeError("the tool broke")
    session.undo()
    assert (work / "page.html").read_bytes() == b"<p>one\r\n"


def test_two_tools_of_one_message(session: Session, work: Path) -> None:
    message = session.assistant("two tools").uuid
    for content in (b"first", b"second"):
        with session.watch(message, ["page.html", "new.txt"]):
            (work / "page.html").write_bytes(content)
            (work / "new.txt").write_bytes(content)
    session.undo()
    assert (work / "page.html").read_bytes() == b"<p>one\r\n" and not (work / "new.txt").exists()
    session.redo()
    assert (work / "page.html").read_bytes() == (work / "new.txt").read_bytes() == b"second"


class FullFor(System):
    """A disk with room for messages, but not for copies."""

    def __init__(self, limit: int) -> None:
        def write(descriptor: int, content: bytes) -> int:
            if len(content) > limit:
                raise OSError(errno.ENOSPC, "No space left on device")
            return os.write(descriptor, content)

        self.write = write
        self.sync = lambda _: None


def test_S14_a_full_disk_loses_the_snapshot_and_not_the_message(
    tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(work)
    (work / "large").write_bytes(large := os.urandom(50_000))
    session = Store(tmp_path, system=FullFor(5000)).session("s")
    session.user("go")
    message = session.assistant("I write").uuid
    with session.watch(message, ["large", "page.html"]):
        (work / "large").write_bytes(b"changed")
        (work / "page.html").write_bytes(b"changed")
    session.assistant("done")
    assert len(lines(log_of(tmp_path))) == 3
    [change, _] = list(session._snapshots.entries())[-1].files.values()
    assert change.before.missing == "no copy could be made: No space left on device"
    with pytest.raises(Refused, match="'large' cannot be restored: no copy could be made: No space"):
        session.undo()
    assert (work / "page.html").read_bytes() == b"changed" and session.head != message
    done = session.undo(force=True)
    assert {step.path: step.verdict for step in done.steps} == {"large": "missing", "page.html": "write"}
    assert (work / "large").read_bytes() == b"changed" and (work / "page.html").read_bytes() == b"<p>one\r\n"
    session.close()
    assert_whole(tmp_path)
    assert large


def test_S14_the_same_where_everything_is_watched(tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(work)
    (work / "large").write_bytes(os.urandom(50_000))
    for number in range(80):
        (work / f"file-{number}-{os.urandom(40).hex()}").write_bytes(b"x")
    session = Store(tmp_path, system=FullFor(3000)).session("s")
    session.user("go")
    with session.watch(session.assistant("I write")):
        (work / "large").write_bytes(b"changed")
        (work / "page.html").write_bytes(b"changed")
    assert Blobs(session.folder / "scans").all() == set()
    with pytest.raises(Refused, match="'large' cannot be restored: no copy could be made: No space"):
        session.undo()
    session.undo(file="page.html")
    assert (work / "page.html").read_bytes() == b"<p>one\r\n"


@pytest.mark.slow
def test_S14_on_a_real_small_file_system(tmp_path: Path) -> None:
    program = """
import os, sys
from clew.store import Store
from clew.store.undo_plan import Refused
work = sys.argv[2]
os.chdir(work)
open("large", "wb").write(os.urandom(300_000))
session = Store(sys.argv[1]).session("s")
session.user("go")
message = session.assistant("I write").uuid
with session.watch(message, ["large"]):
    open("large", "wb").write(b"changed")
session.assistant("done")
try:
    session.undo()
except Refused as refused:
    print(refused)
session.close()
"""
    small, work = tmp_path / "small", tmp_path / "work"
    small.mkdir()
    work.mkdir()
    script = f'mount -t tmpfs -o size=128k tmpfs {small} && exec {sys.executable} -c "$PROGRAM" {small} {work}'
    try:
        done = subprocess.run(
            ["unshare", "-rm", "sh", "-c", script],
            capture_output=True,
            text=True,
            env={**os.environ, "PROGRAM": program},
            timeout=120,
        )
    except FileNotFoundError:
        pytest.skip("there is no unshare here")
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip(f"no small file system can be made here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    assert "no copy could be made: No space left on device" in done.stdout


def test_S10_a_copy_is_durable_before_the_record_that_names_it(tmp_path: Path, work: Path) -> None:
    named: list[bool] = []

    class Noting(System):
        @staticmethod
        def write(descriptor: int, content: bytes) -> int:
            found = parse_snapshot(content.rstrip()) if content.startswith(b'{"type":"file_history') else None
            if found is not None:
                blobs = noted._snapshots.blobs
                states = [state for change in found.files.values() for state in change if state.digest]
                named.extend(bool(blobs.get(state.digest or "")) for state in states)
            return os.write(descriptor, content)

    noted = Store(tmp_path, system=Noting()).session("s")
    with noted.watch(noted.assistant("x"), ["page.html", "old.bin"], root=work):
        (work / "page.html").write_bytes(b"changed")
    assert named == [True] * 8


KILLED = """
import os, sys
from clew.store import Store
session = Store(sys.argv[1]).session("s")
print("ready", flush=True)
for number in range(100000):
    with session.watch(session.assistant("x"), ["a", "b"], root=sys.argv[2]):
        for name in ("a", "b"):
            with open(os.path.join(sys.argv[2], name), "ab") as out:
                out.write(os.urandom(700))
"""


@pytest.mark.slow
def test_S10_kills_leave_no_record_without_its_copy(tmp_path: Path, work: Path) -> None:
    states: list[FileState] = []
    for kill in range(100):
        # On a busy machine a child may be killed before it has done anything.
        if kill >= 12 and len(states) > 40:
            break
        child = subprocess.Popen([sys.executable, "-c", KILLED, tmp_path, work], stdout=subprocess.PIPE)
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.02 + 0.017 * (kill % 12))
        child.send_signal(signal.SIGKILL)
        child.wait(60)
        child.stdout.close()
        session = Store(tmp_path).session("s")
        session.clear()
        states = [s for one in session._snapshots.entries() for change in one.files.values() for s in change]
        assert all(digest_of(session._snapshots.blobs.get(s.digest)) == s.digest for s in states if s.digest)
    session.describe()
    session.close()
    assert len(states) > 40
    assert_whole(tmp_path)


@pytest.mark.slow
def test_S10_clearing_while_others_write_removes_nothing_named(tmp_path: Path, work: Path) -> None:
    children = [
        subprocess.Popen([sys.executable, "-c", KILLED, tmp_path, work], stdout=subprocess.PIPE) for _ in range(2)
    ]
    session = Store(tmp_path).session("s")
    try:
        for child in children:
            assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        deadline = time.monotonic() + 20
        while sum(1 for _ in session._snapshots.entries()) < 60 and time.monotonic() < deadline:
            session.clear()
    finally:
        for child in children:
            child.kill()
            child.wait(60)
            assert child.stdout is not None
            child.stdout.close()
    states = [s for one in session._snapshots.entries() for change in one.files.values() for s in change]
    assert len(states) > 20
    assert all(session._snapshots.blobs.get(s.digest) for s in states if s.digest)
