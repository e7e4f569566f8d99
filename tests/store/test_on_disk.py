"""Modes, locks, metadata, versions, clocks and erasing: what a store looks like on disk, whatever happens."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from clew import Host, Library
from clew.agents.sage_agent.written_records import FileBackup
from clew.errors import Busy, ClewError, PathRefused, SourceUnreadable, UnknownReference, WouldLose
from clew.io.file_lock import acquire_lock
from clew.io.filesystem import SYSTEM, System
from clew.io.safe_write import Within
from clew.store import CannotLock, Session, Store, TodoItem, TrackedFile
from clew.store.doctor import examine
from clew.store.erase import erase_record, erase_session
from clew.store.layout import Durability
from clew.store.session_metadata import rebuild
from tests import children
from tests.cli.running import run, state
from tests.store.support import Faulty, Quick, assert_whole, in_memory, lines, log_of

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes and signals are those of POSIX")


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o277, 0o777])
def test_S01_owner_only_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        store = Store(tmp_path / "home", durability="disk")
        with store.session("s") as session:
            receipt = session.user("x")
            session.snapshot(receipt.uuid, {"a": TrackedFile(state="created")})
        with store.project("/home/ada/tide") as project:
            project.append("user", "x")
            project.archive()
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "home").rglob("*")}
    assert modes["messages.jsonl"] == modes["metadata.json"] == modes["snapshots.jsonl"] == 0o600
    assert modes["config.json"] == 0o600
    assert modes["s"] == modes[".sage"] == modes["sessions"] == modes["projects"] == modes["history"] == 0o700
    assert {mode for name, mode in modes.items() if name.endswith("jsonl")} == {0o600}


def test_S01_files_are_never_open_to_others_even_for_a_moment(tmp_path: Path) -> None:
    class Watching(System):
        seen: list[int] = []

        @staticmethod
        def open(path: Path, flags: int, mode: int = 0o777) -> int:
            descriptor = os.open(path, flags, mode)
            if flags & os.O_CREAT:
                Watching.seen.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
            return descriptor

    before = os.umask(0)
    try:
        with Store(tmp_path, system=Watching()).session("s") as session:
            session.user("x")
    finally:
        os.umask(before)
    assert set(Watching.seen) == {0o600}


def test_S02_temporary_files_are_found_after_a_crash(tmp_path: Path) -> None:
    with Store(tmp_path).session("s") as session:
        session.user("x")

    class Dying(System):
        @staticmethod
        def replace(*_: object) -> None:
            raise KeyboardInterrupt

        @staticmethod
        def unlink(*_: object) -> None:
            raise OSError(errno.EIO, "died")

    dying = Session(log_of(tmp_path).parent, Store(tmp_path, system=Dying())._config)
    with pytest.raises(KeyboardInterrupt):
        dying.describe(state="failed")
    [left] = log_of(tmp_path).parent.glob(".*.tmp")
    assert stat.S_IMODE(left.stat().st_mode) == 0o600
    [finding] = examine(tmp_path)
    assert finding.problem.code == "leftover-file"
    assert finding.mend is not None
    finding.mend()
    assert list(examine(tmp_path)) == []


def test_S03_looking_changes_nothing(tmp_path: Path) -> None:
    with Store(tmp_path).session("s") as session:
        session.user("x")
        session.title("y")
    with log_of(tmp_path).open("ab") as log:
        log.write(b"torn")
    before = state(tmp_path)
    reading = Store(tmp_path).get("s")
    assert len(reading.path()) == 1
    assert reading.branches()
    assert list(reading.records())
    assert [finding.problem.code for finding in examine(tmp_path)] == ["torn-tail"]
    assert state(tmp_path) == before


HOLD = """
import sys, time
from clew.io.file_lock import locked
from clew.io.filesystem import SYSTEM
from contextlib import suppress
from pathlib import Path
with locked(SYSTEM, Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.mark.slow
def test_S08_a_live_holder_is_named_and_a_dead_one_does_not_block(tmp_path: Path) -> None:
    with Store(tmp_path).session("s") as session:
        session.user("x")
    holder = subprocess.Popen([sys.executable, "-c", HOLD, log_of(tmp_path)], stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        begun = time.monotonic()
        with pytest.raises(Busy) as caught:
            Store(tmp_path, lock_wait=0.2).session("s").user("waits")
        assert 0.2 <= time.monotonic() - begun < 5
        if Path("/proc/locks").exists():
            assert f"process {holder.pid} (" in str(caught.value)
        [finding] = examine(tmp_path)
        assert finding.problem.code == "lock-held"
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.wait(60)
        assert holder.stdout is not None
        holder.stdout.close()
    assert Store(tmp_path, lock_wait=0.2).session("s").user("goes on").seq == 2


def test_S08_a_holder_that_lets_go_is_waited_for(tmp_path: Path) -> None:
    one, two = Store(tmp_path).session("s"), Store(tmp_path).session("s")
    one.user("x")
    descriptor = os.open(log_of(tmp_path), os.O_RDWR)
    acquire_lock(SYSTEM, descriptor, log_of(tmp_path))
    threading.Timer(0.1, os.close, [descriptor]).start()
    assert two.user("y").seq == 2


class NoLocks(System):
    """A network or synced folder."""

    @staticmethod
    def lock(*_: object) -> None:
        raise OSError(errno.ENOTSUP, "no locks here")


def test_S16_a_folder_without_locks_is_refused_unless_one_is_alone(tmp_path: Path) -> None:
    with pytest.raises(CannotLock, match="no locks"):
        Store(tmp_path, system=NoLocks()).session("s").user("x")
    assert not log_of(tmp_path).exists() or log_of(tmp_path).read_bytes() == b""
    with Store(tmp_path, system=NoLocks(), alone=True).session("s") as session:
        session.user("x")
        session.user("y")
    assert_whole(tmp_path)


def test_S16_whoever_is_alone_there_can_do_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / ".sage").mkdir(mode=0o700)
    (tmp_path / ".sage" / "config.json").write_text('{"clew": {"alone": true}}')
    (tmp_path / ".sage" / "config.json").chmod(0o600)
    store = Store(tmp_path, system=NoLocks())
    with store.session("s") as session:
        reply = session.assistant("I write.")
        with session.watch(reply, ["a"], root=work):
            (work / "a").write_bytes(b"1")
        session.undo(root=work)
        assert not (work / "a").exists()
        session.redo(root=work)
        real = Within.apply

        def fails(self: Within, changes: object) -> None:
            monkeypatch.setattr(Within, "apply", real)
            raise OSError(errno.EIO, "broken")

        monkeypatch.setattr(Within, "apply", fails)
        with pytest.raises(OSError, match="broken") as failed:
            session.undo(root=work)
        assert not getattr(failed.value, "__notes__", [])
    with log_of(tmp_path).open("ab") as log:
        log.write(b"torn")
    assert [finding.problem.code for finding in examine(tmp_path, NoLocks())] == ["torn-tail"]
    for finding in list(examine(tmp_path, NoLocks())):
        assert finding.mend is not None
        finding.mend()
    assert [one.problem.code for one in examine(tmp_path, NoLocks())] == ["quarantined"]


def test_S16_the_doctor_says_where_there_are_no_locks(tmp_path: Path) -> None:
    with Store(tmp_path).session("s") as session:
        session.user("x")
    [finding] = examine(tmp_path, NoLocks())
    assert finding.problem.code == "unreadable" and "no locks" in finding.problem.message


def test_S16_another_error_of_the_lock_is_an_error(tmp_path: Path) -> None:
    class Broken(System):
        @staticmethod
        def lock(*_: object) -> None:
            raise OSError(errno.EIO, "broken")

    with pytest.raises(OSError, match="broken"):
        acquire_lock(Broken(), 0, tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a sync follows each write")
def test_S04_a_write_at_the_level_disk_waits_for_the_disk(tmp_path: Path) -> None:
    for level in ("disk", "system"):
        with Store(tmp_path, durability=level).session(level) as session:
            session.user("x")
            flags = fcntl.fcntl(session._writer._log._descriptor, fcntl.F_GETFL)
            assert (flags & os.O_DSYNC == os.O_DSYNC) == (level == "disk")


@pytest.mark.slow
def test_S09_a_reader_sees_old_or_new_metadata() -> None:
    with in_memory() as folder:
        _swap_while_read(folder)


def _swap_while_read(folder: Path) -> None:
    session = Store(folder, system=Quick()).session("s")
    session.describe(metadata={"turn": 0})
    place = log_of(folder).with_name("metadata.json")
    parent = os.getpid()

    def read() -> None:
        last = looks = 0
        while last < 9_999 and os.getppid() == parent:
            turn = json.loads(place.read_bytes())["metadata"]["turn"]
            assert turn >= last
            last, looks = turn, looks + 1
        assert looks > 100

    reader = children.begun(read)
    try:
        for turn in range(10_000):
            session.describe(metadata={"turn": turn})
    finally:
        code = children.ended(reader, 30)
    assert code == 0
    assert list(place.parent.glob(".*.tmp")) == []


def test_S09_metadata_are_synced_before_they_are_renamed_and_the_folder_behind(tmp_path: Path) -> None:
    calls: list[str] = []

    class Noting(System):
        write_through = 0

        @staticmethod
        def sync(descriptor: int) -> None:
            calls.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
            os.fsync(descriptor)

        @staticmethod
        def replace(source: Path, target: Path) -> None:
            calls.append("rename")
            source.replace(target)

    session = Store(tmp_path, system=Noting()).session("s")
    session.user("x")
    calls.clear()
    session.describe(state="completed")
    assert calls == ["file", "rename", "folder"]
    calls.clear()
    session.user("y")
    assert calls == ["file"]


@pytest.mark.seed("S1-26", "S0-35")
def test_metadata_are_true_after_closing_and_can_be_rebuilt(tmp_path: Path) -> None:
    with Store(tmp_path, version="3.2").session("s") as session:
        session.user("the first prompt " * 20)
        session.assistant("x", model="tide-2")
        session.user("the last prompt")
        session.describe(state="completed", name="tides")
    made = session.metadata
    assert made["firstPrompt"] == ("the first prompt " * 20)[:100]
    assert (made["lastPrompt"], made["model"], made["version"]) == ("the last prompt", "tide-2", "3.2")
    assert (made["messageCount"], made["state"], made["name"]) == (3, "completed", "tides")
    place = log_of(tmp_path).with_name("metadata.json")
    for wrong in (b"{", b'{"id": "x", "messageCount": 1, "name": "kept"}', None):
        place.unlink() if wrong is None else place.write_bytes(wrong)
        [finding] = examine(tmp_path)
        assert finding.problem.code.startswith("metadata-")
        assert finding.mend is not None
        finding.mend()
        assert list(examine(tmp_path)) == []
        assert_whole(tmp_path)
    assert rebuild(place.parent)["messageCount"] == 3


def test_metadata_that_cannot_be_written_lose_no_message(tmp_path: Path) -> None:
    class NoReplace(System):
        @staticmethod
        def replace(*_: object) -> None:
            raise OSError(errno.ENOSPC, "full")

    session = Session(log_of(tmp_path).parent, Store(tmp_path, system=NoReplace())._config)
    assert session.user("x").seq == 1
    assert session.user("y").seq == 2
    with pytest.raises(OSError, match="full"):
        session.close()
    assert len(lines(log_of(tmp_path))) == 2
    assert [finding.problem.code for finding in examine(tmp_path)] == ["metadata-missing"]


def test_S11_what_metadata_and_caches_know_can_be_found_anew(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a").write_bytes(b"1")
    with Store(tmp_path, system=Quick()).session("s") as session:
        session.user("go")
        for content in (b"2", b"3"):
            with session.watch(session.assistant("I write."), root=work):
                (work / "a").write_bytes(content)
    [cache] = (session.folder / "scans").iterdir()
    expected = (rebuild(session.folder), session.path())
    for wrong in (None, b"", b"\x92\x80", os.urandom(100)):
        for file in (cache, session.folder / "metadata.json"):
            file.unlink(missing_ok=True)
            if wrong is not None:
                file.write_bytes(wrong)
        again = Store(tmp_path, system=Quick()).session("s")
        made = rebuild(session.folder)
        assert ({**made, "name": None, "state": None}, again.path()) == (
            {**expected[0], "name": None, "state": None},
            expected[1],
        )
        watch = again.watch(session.path()[-1], root=work)
        watch.before()
        assert watch.after() == {}


def test_S12_a_log_that_was_changed_in_its_place_or_replaced_is_read_anew(tmp_path: Path) -> None:
    session = secret_session(tmp_path)
    session.close()
    assert len(session.path()) == 3
    erase_record(session.folder, "secret")
    assert len(session.path()) == 2
    whole = log_of(tmp_path).read_bytes()
    other = log_of(tmp_path).with_name("other")
    other.write_bytes(whole.replace(b'"behind"', b'"beyond"'))
    other.replace(log_of(tmp_path))
    assert session.path()[-1] == "beyond"
    log_of(tmp_path).write_bytes(whole.splitlines(keepends=True)[0])
    assert len(session.path()) == 1


def test_S12_whoever_follows_sees_what_takes_the_place_of_a_failed_record(tmp_path: Path) -> None:
    session = Store(tmp_path).session("s")
    session.user("one")
    log = log_of(tmp_path)
    size = log.stat().st_size
    with log.open("ab") as stream:
        stream.write(b'{"type":"user","uuid":"phantom"}\n')
    coming = session.follow(poll=0.001, patience=0.2)
    assert [next(coming).get("uuid") for _ in range(2)][1] == "phantom"
    os.truncate(log, size)
    second = session.user("two, which is longer than what failed")
    assert next(coming)["uuid"] == second.uuid
    other = log.with_name("other")
    other.write_bytes(b'{"type":"user","uuid":"new"}\n')
    other.replace(log)
    assert next(coming)["uuid"] == "new"
    assert list(coming) == []


def test_S13_order_is_that_of_the_log_when_the_clock_goes_back(tmp_path: Path) -> None:
    times = iter([1_700_000_000.5, 1_700_000_000.5, 1_600_000_000.0, 1_600_000_000.0, 1_650_000_000.25])
    last = [0.0]

    def clock() -> float:
        last[0] = next(times, last[0])
        return last[0]

    with Store(tmp_path, clock=clock).session("s") as session:
        for word in "abcde":
            session.user(word)
    records = lines(log_of(tmp_path))
    assert [record["message"]["content"] for record in records] == list("abcde")
    assert [record["metadata"]["clew"]["seq"] for record in records] == [1, 2, 3, 4, 5]
    assert [record["parentUuid"] for record in records][1:] == [record["uuid"] for record in records][:-1]
    assert session.path() == [record["uuid"] for record in records]
    [found] = Library(Host.at(tmp_path)).sources()
    assert found.header.started_at is not None and found.header.ended_at is not None
    assert found.header.started_at <= found.header.ended_at
    assert session.metadata["createdAt"] <= session.metadata["updatedAt"]
    assert found.facts.tree.graph().active_path == session.path()


def test_S15_a_newer_store_is_read_and_not_written(tmp_path: Path) -> None:
    with Store(tmp_path).session("s") as session:
        session.user("x")
    config = tmp_path / ".sage" / "config.json"
    config.write_text('{"clew": {"store": 2, "new": true}}')
    store = Store(tmp_path)
    assert len(store.get("s").path()) == 1
    before = state(tmp_path)
    with pytest.raises(WouldLose, match="newer"):
        store.get("s").user("y")
    assert state(tmp_path) == before
    assert [finding.problem.code for finding in examine(tmp_path)] == ["newer-store"]


def test_S15_a_newer_session_is_read_and_not_written(tmp_path: Path) -> None:
    with Store(tmp_path).session("s") as session:
        session.user("x")
    place = log_of(tmp_path).with_name("metadata.json")
    place.write_text(json.dumps({**json.loads(place.read_text()), "metadata": {"clew": {"store": 7}}}))
    with pytest.raises(WouldLose):
        Store(tmp_path).get("s").user("y")
    assert [finding.problem.code for finding in examine(tmp_path)] == ["newer-store"]


@pytest.mark.seed("S1-51")
def test_S15_unknown_fields_are_kept(tmp_path: Path) -> None:
    with Store(tmp_path).session("s") as session:
        session.user("x")
    place = log_of(tmp_path).with_name("metadata.json")
    place.write_text(json.dumps({**json.loads(place.read_text()), "moon": {"phase": 0.25}}))
    with log_of(tmp_path).open("ab") as log:
        log.write(
            b'{"type":"user","uuid":"n","parentUuid":null,"moon":"full","message":{"role":"user","content":"?"}}\n'
        )
    before = log_of(tmp_path).read_bytes()
    with Store(tmp_path).session("s") as session:
        session.user("y")
    assert log_of(tmp_path).read_bytes().startswith(before)
    assert session.metadata["moon"] == {"phase": 0.25}
    assert session.metadata["messageCount"] == 3


def secret_session(place: Path) -> Session:
    session = Store(place).session("s")
    session.user("a prompt")
    session.user("the word is xyzzy", uuid="secret", todos=[TodoItem(content="say xyzzy")])
    session.user("behind", uuid="behind", todos=[])
    session.backups.mkdir()
    (session.backups / "old").write_bytes(b"xyzzy in a file")
    (session.backups / "shared").write_bytes(b"plugh")
    session.snapshot(
        "secret",
        {"a.txt": TrackedFile(original_content="xyzzy before", state="modified")},
        {"a.txt": FileBackup(backup_path="backups/old"), "b.txt": FileBackup(backup_path="backups/shared")},
    )
    session.snapshot("behind", {}, {"b.txt": FileBackup(backup_path="backups/shared")})
    return session


def assert_gone(place: Path, word: bytes) -> None:
    for path in place.rglob("*"):
        assert not path.is_file() or word not in path.read_bytes(), path


def test_S17_an_erased_record_is_gone_and_the_rest_stands(tmp_path: Path) -> None:
    session = secret_session(tmp_path)
    session.close()
    before = log_of(tmp_path).read_bytes()
    done = erase_record(session.folder, "secret")
    assert (done.records, done.files, done.copies) == (2, 1, [])
    assert_gone(tmp_path, b"xyzzy")
    after = log_of(tmp_path).read_bytes()
    assert len(after) == len(before)
    assert after.splitlines()[0::2] == before.splitlines()[0::2]
    assert lines(log_of(tmp_path))[1]["was"] == "user"
    assert (session.backups / "shared").exists()
    assert session.path()[-1] == "behind"
    assert len(session.path()) == 2
    assert session.user("goes on").seq == 4
    session.close()
    assert_whole(tmp_path)
    assert session.metadata["firstPrompt"] == "a prompt"
    with pytest.raises(UnknownReference):
        erase_record(session.folder, "secret")


ERASES = """
import sys
from contextlib import suppress
from pathlib import Path
from clew.store.erase import erase_record
erase_record(Path(sys.argv[1]), sys.argv[2])
"""


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["disk", "system"])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_S17_what_was_erased_does_not_come_back_from_an_open_handle(
    tmp_path: Path, which: int, durability: Durability
) -> None:
    session = Store(tmp_path, durability=durability, system=Quick()).session("s")
    prompts = []
    for words in ("SECRETWORD in the first", "SECRETWORD in the middle", "SECRETWORD at last"):
        prompts.append(session.user(words))
        session.assistant("fine")
    session.describe()
    subprocess.run([sys.executable, "-c", ERASES, session.folder, prompts[which].uuid], check=True, timeout=60)
    erased = ("first", "middle", "last")[which]
    session.assistant("more")
    session.describe(state="completed")
    session.assistant("and more")
    session.close()
    for path in session.folder.iterdir():
        assert f"SECRETWORD {('in the', 'in the', 'at')[which]} {erased}".encode() not in path.read_bytes(), path.name
    known = session.metadata
    assert known["lastPrompt"] == ("SECRETWORD at last" if which != 2 else "SECRETWORD in the middle")
    assert known["firstPrompt"] == ("SECRETWORD in the first" if which else "SECRETWORD in the middle")
    assert known["messageCount"] == 8


@pytest.mark.slow
def test_S17_erasing_that_is_cut_off_leaves_no_words_that_are_gone_from_the_log(tmp_path: Path) -> None:
    """Wherever it stops: what the metadata say stands in the log, or the words are gone from both."""
    for at in range(1, 60):
        place = tmp_path / str(at)
        session = Store(place, system=Quick()).session("s")
        session.user("SECRETWORD", uuid="secret")
        session.assistant("fine")
        session.close()
        system = Faulty(at)
        with suppress(OSError):
            erase_record(session.folder, "secret", system)
        if not system.hit:
            break
        in_log = b"SECRETWORD" in log_of(place).read_bytes()
        assert in_log or b"SECRETWORD" not in (session.folder / "metadata.json").read_bytes(), system.hit
    assert at > 5


def test_S17_the_last_record_may_be_erased(tmp_path: Path) -> None:
    session = Store(tmp_path).session("s")
    session.user("one")
    session.user("two", uuid="x")
    erase_record(session.folder, "x")
    assert Store(tmp_path).session("s").user("three").seq == 3
    records = lines(log_of(tmp_path))
    assert records[2]["parentUuid"] == "x"
    session.close()
    assert_whole(tmp_path)


def test_S17_a_session_goes_with_all_its_files(tmp_path: Path) -> None:
    session = secret_session(tmp_path)
    session.close()
    kept = tmp_path / "kept"
    os.link(log_of(tmp_path), kept)
    (session.folder / "link").symlink_to(kept)
    handle = os.open(log_of(tmp_path).with_name("snapshots.jsonl"), os.O_RDONLY)
    open_session = Store(tmp_path).session("s")
    open_session.user("held open")
    done = erase_session(session.folder)
    assert done.records == 4
    assert len(done.copies) == 2
    assert not session.folder.exists()
    assert os.read(handle, 1000) == b""
    os.close(handle)
    with pytest.raises(SourceUnreadable, match="erased"):
        open_session.user("into nothing")


def test_S17_an_open_handle_sees_that_the_session_is_gone(tmp_path: Path) -> None:
    session = Store(tmp_path).session("s")
    session.user("x")
    erase_session(session.folder)
    with pytest.raises(SourceUnreadable, match="erased"):
        session.user("into nothing")


def test_a_link_in_place_of_the_log_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"untouched\n")
    log = log_of(tmp_path)
    log.parent.mkdir(parents=True)
    log.symlink_to(outside)
    with pytest.raises(SourceUnreadable, match="link"):
        Store(tmp_path).session("s").user("x")
    assert outside.read_bytes() == b"untouched\n"
    with Store(tmp_path).session("other") as session:
        session.user("x")
    (log_of(tmp_path, "other").parent / "metadata.json").unlink()
    assert sorted(
        finding.problem.code for finding in examine(tmp_path) if finding.problem.code != "open-to-others"
    ) == [
        "metadata-missing",
        "unreadable",
    ]


def test_a_forked_child_has_its_own_lock_and_ids(tmp_path: Path) -> None:
    session = Store(tmp_path).session("s")
    session.user("parent")
    child = children.begun(lambda: [session.user("child") for _ in range(20)])
    try:
        for _ in range(20):
            session.user("parent")
    finally:
        code = children.ended(child)
    assert code == 0
    records = lines(log_of(tmp_path))
    assert len({record["uuid"] for record in records}) == len(records) == 41
    assert [record["metadata"]["clew"]["seq"] for record in records] == list(range(1, 42))


def test_threads_share_a_handle(tmp_path: Path) -> None:
    session = Store(tmp_path, durability="system").session("s")

    def work(name: int) -> None:
        for number in range(100):
            session.user(f"{name}.{number}")

    threads = [threading.Thread(target=work, args=(name,), daemon=True) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    session.close()
    records = lines(log_of(tmp_path))
    assert [record["metadata"]["clew"]["seq"] for record in records] == list(range(1, 401))
    assert [record["parentUuid"] for record in records][1:] == [record["uuid"] for record in records][:-1]
    assert_whole(tmp_path)


def test_a_pipe_in_place_of_a_file_is_refused_or_passed_over(tmp_path: Path) -> None:
    for name in ("messages.jsonl", "snapshots.jsonl", "metadata.json"):
        folder = log_of(tmp_path, name.partition(".")[0]).parent
        folder.mkdir(parents=True)
        os.mkfifo(folder / name)
    with pytest.raises(SourceUnreadable, match="not a regular file"):
        Store(tmp_path).session("messages").user("x")
    for name in ("snapshots", "metadata", "workspace-0"):
        with Store(tmp_path).session(name) as session:
            session.user("x")
    assert len(list(Library(Host.at(tmp_path)).sources())) == 3


@pytest.mark.slow
def test_a_linked_session_folder_is_not_written_to(tmp_path: Path) -> None:
    """Readers do not follow such links, so what was written there would belong to another session."""
    store = Store(tmp_path, system=Quick())
    with store.session("real") as session:
        session.user("one")
    for name, target in (("link", session.folder), ("dangling", tmp_path / "nothing")):
        session.folder.with_name(name).symlink_to(target)
        for open_it in (store.session, store.get):
            with pytest.raises(ClewError):
                open_it(name).user("two")
        done = run("record", "--store", tmp_path, "--session", name, input=b'{"role":"user","content":"two"}\n')
        assert done.code == 4 and "link" in done.err
    assert len(lines(log_of(tmp_path, "real"))) == 1
    assert not (tmp_path / "nothing").exists()


def test_a_linked_project_folder_is_not_written_to(tmp_path: Path) -> None:
    store, outside = Store(tmp_path, system=Quick()), tmp_path / "outside"
    outside.mkdir()
    folder = store.project("/srv/tide").folder
    folder.parent.mkdir(parents=True)
    folder.symlink_to(outside)
    with pytest.raises(PathRefused, match="link"):
        store.project("/srv/tide").append("user", "x")
    assert list(outside.iterdir()) == []


def test_copies_are_neither_put_into_nor_removed_from_a_linked_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, store = tmp_path / "work", Store(tmp_path, system=Quick())
    work.mkdir()
    monkeypatch.chdir(work)
    (work / "a").write_text("before\n")
    with store.session("real") as real, real.watch(real.assistant("x"), ["a"]):
        (work / "a").write_text("after\n")
    copies = sorted(real.backups.iterdir())
    assert len(copies) == 2
    with store.session("s") as session:
        session.user("x")
        session.backups.symlink_to(real.backups)
        with session.watch(session.assistant("y"), ["a"]):
            (work / "a").write_text("later\n")
        assert session.clear() == []
    for finding in examine(tmp_path):
        if finding.mend is not None:
            finding.mend()
    assert sorted(real.backups.iterdir()) == copies
