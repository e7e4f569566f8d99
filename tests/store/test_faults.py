"""Every call to the file system fails once: nothing that was acknowledged is lost, and the log stays whole."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from clew.errors import ClewError
from clew.io.filesystem import System
from clew.store import FileBackup, Session, Store
from clew.store.doctor import examine
from clew.store.erase import erase_record
from clew.store.log import Log
from tests.store.support import Faulty, Kill, Mortal, Quick, assert_whole, lines, log_of, said

KINDS = [
    ("before", errno.EIO),
    ("before", errno.ENOSPC),
    ("before", errno.EINTR),
    ("torn", errno.ENOSPC),
    ("short", errno.EIO),
]


def every_fault(kind: str, error: int, work: Callable[[System, int], None]) -> int:
    """Do the work again and again, each time with the next call failing, until none is left to fail."""
    at = 0
    while True:
        at += 1
        system = Faulty(at, error, kind=kind)
        work(system, at)
        if not system.hit:
            return at - 1


@pytest.mark.slow
@pytest.mark.seed("S1-31")
@pytest.mark.parametrize(("kind", "error"), KINDS)
def test_S05_faults_at_every_call_of_append(tmp_path: Path, kind: str, error: int) -> None:
    def work(system: System, at: int) -> None:
        place = tmp_path / str(at)
        acknowledged = []
        session = Session(log_of(place).parent, Store(place, system=system)._config)
        for number in range(4):
            try:
                session.user(f"{at}.{number}")
                acknowledged.append(f"{at}.{number}")
            except (OSError, ClewError):
                session = Session(log_of(place).parent, Store(place, system=system)._config)
        _check_whole(place, acknowledged)

    assert every_fault(kind, error, work) > 20


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "error"), KINDS)
def test_S05_the_same_handle_goes_on(tmp_path: Path, kind: str, error: int) -> None:
    def work(system: System, at: int) -> None:
        place = tmp_path / str(at)
        acknowledged = []
        session = Session(log_of(place).parent, Store(place, system=system)._config)
        for number in range(4):
            try:
                session.user(f"{at}.{number}")
                acknowledged.append(f"{at}.{number}")
            except (OSError, ClewError):
                continue
        assert len(acknowledged) >= 3
        _check_whole(place, acknowledged)

    every_fault(kind, error, work)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "error"), KINDS)
@pytest.mark.parametrize("cut", [1, 30])
def test_S05_faults_at_every_call_of_repair(tmp_path: Path, kind: str, error: int, cut: int) -> None:
    def work(system: System, at: int) -> None:
        place = tmp_path / f"{at}"
        with Store(place, system=Quick()).session("s") as session:
            for number in range(3):
                session.user(f"{number}")
        log = log_of(place)
        whole = log.read_bytes()
        log.write_bytes(whole[:-cut])
        kept = ["0", "1"] if cut > 1 else ["0", "1", "2"]
        failing = Session(log.parent, Store(place, system=system)._config)
        try:
            failing.user("behind")
            kept.append("behind")
        except (OSError, ClewError):
            pass
        _check_whole(place, kept)

    assert every_fault(kind, error, work) > 8


def _check_whole(place: Path, acknowledged: list[str]) -> None:
    """A healthy handle appends, and then everything is as it should be."""
    with Store(place, system=Quick()).session("s") as session:
        session.user("afterwards")
    words = said(log_of(place))
    assert words[-1] == "afterwards"
    assert len(set(words)) == len(words)
    assert [word for word in words if word in acknowledged] == acknowledged
    numbers = [record["metadata"]["clew"]["seq"] for record in lines(log_of(place))]
    assert numbers == list(range(1, len(numbers) + 1))
    assert_whole(place)


def test_S05_a_failed_sync_takes_the_record_back(tmp_path: Path) -> None:
    with Store(tmp_path).session("s") as session:
        session.user("before")
    system = Faulty(1, only="sync")
    failing = Session(log_of(tmp_path).parent, Store(tmp_path, system=system)._config)
    with pytest.raises(OSError, match="injected"):
        failing.user("not safe")
    assert said(log_of(tmp_path)) == ["before"]


def test_S05_short_writes_are_finished(tmp_path: Path) -> None:
    class Stingy(System):
        write = staticmethod(lambda descriptor, content: os.write(descriptor, content[:7]))

    with Store(tmp_path, system=Stingy()).session("s") as session:
        session.user("a message in many small pieces")
        session.user("and another")
    assert_whole(tmp_path)
    assert len(lines(log_of(tmp_path))) == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_S05_a_full_device_is_seen(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb", buffering=0) as device:

        class Full(System):
            write = staticmethod(lambda _, content: os.write(device.fileno(), content))

        log = Log(tmp_path / "log.jsonl", system=Full())
        with log.locked(), pytest.raises(OSError) as caught:
            log.append(b"{}\n")
    assert caught.value.errno == errno.ENOSPC


def test_S05_a_limit_on_the_size_of_files(tmp_path: Path) -> None:
    """The limit is hit in the middle of a record; what was acknowledged before is whole."""
    program = """
import resource, signal, sys
from clew.store import Store
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
session = Store(sys.argv[1]).session("s")
session.user("first")
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
count = 1
try:
    while True:
        session.user("x" * 700)
        count += 1
except OSError as error:
    print(count, error.errno)
"""
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    count, number = map(int, done.stdout.split())
    assert number == errno.EFBIG
    assert count == len(lines(log_of(tmp_path))) > 5
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    with Store(tmp_path).session("s") as session:
        assert session.user("there is room again").seq == count + 1
    assert_whole(tmp_path)


def test_S05_a_file_system_of_64_kilobytes(tmp_path: Path) -> None:
    """A small file system fills up in the middle of a session; room is made, and it goes on."""
    program = """
import os, sys
from clew.store import Store
session = Store(sys.argv[1]).session("s")
count = 0
try:
    while True:
        session.user("y" * 900)
        count += 1
except OSError as error:
    assert error.errno == 28, error
log = os.path.join(sys.argv[1], ".sage/sessions/s/messages.jsonl")
raw = open(log, "rb").read()
assert raw.endswith(b"\\n") and raw.count(b"\\n") == count > 10, (count, raw.count(b"\\n"))
os.unlink(os.path.join(sys.argv[1], "ballast"))
assert session.user("there is room again").seq == count + 1
session.close()
print(count)
"""
    small = tmp_path / "small"
    small.mkdir()
    script = (
        f"mount -t tmpfs -o size=64k tmpfs {small} && head -c 16384 /dev/zero > {small}/ballast && "
        f'exec {sys.executable} -c "$PROGRAM" {small}'
    )
    command = ["unshare", "-rm", "sh", "-c", script]
    try:
        environment = {**os.environ, "PROGRAM": program}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    except FileNotFoundError:
        pytest.skip("there is no unshare here")
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip(f"no small file system can be made here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10


@pytest.mark.slow
@pytest.mark.skipif(not System.write_through, reason="a sync follows each write on this system")
@pytest.mark.parametrize(("kind", "error"), KINDS)
def test_S05_faults_where_each_write_waits_for_the_disk(tmp_path: Path, kind: str, error: int) -> None:
    def work(system: System, at: int) -> None:
        place = tmp_path / str(at)
        system.write_through = System.write_through
        acknowledged = []
        session = Session(log_of(place).parent, Store(place, system=system)._config)
        for number in range(3):
            with suppress(OSError, ClewError):
                session.user(f"{at}.{number}")
                acknowledged.append(f"{at}.{number}")
        _check_whole(place, acknowledged)

    assert every_fault(kind, error, work) > 10


def _session_to_erase(place: Path) -> Session:
    """Three messages, of which the second has a snapshot and a backup."""
    with Store(place, system=Quick()).session("s") as session:
        session.user("before", uuid="before")
        session.user("SECRETWORD", uuid="secret")
        session.user("after", uuid="after")
        session.backups.mkdir()
        (session.backups / "copy").write_bytes(b"SECRETWORD")
        session.snapshot("secret", {}, {"a": FileBackup(backup_path="copy")})
    return session


def _check_erased(place: Path, session: Session) -> None:
    """The log is the old or the new one; a second erase finishes the first, and appending goes on."""
    texts = said(log_of(place))
    assert texts in (["before", "SECRETWORD", "after"], ["before", "after"])
    assert len(lines(log_of(place))) == 3
    if "SECRETWORD" in texts:
        erase_record(session.folder, "secret", Quick())
    with Store(place, system=Quick()).session("s") as again:
        assert again.user("afterwards").seq == 4
    assert said(log_of(place)) == ["before", "after", "afterwards"]
    assert lines(log_of(place))[2]["parentUuid"] == "secret"
    for path in session.folder.rglob("*"):
        assert path.name.endswith(".tmp") or not path.is_file() or b"SECRETWORD" not in path.read_bytes(), path
    for finding in examine(place):
        if finding.problem.code == "leftover-file" and finding.mend is not None:
            finding.mend()
    assert list(session.folder.rglob("*.tmp")) == []
    assert_whole(place)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "error"), KINDS)
def test_S05_faults_at_every_call_of_erase(tmp_path: Path, kind: str, error: int) -> None:
    def work(system: System, at: int) -> None:
        place = tmp_path / str(at)
        session = _session_to_erase(place)
        with suppress(OSError, ClewError):
            erase_record(session.folder, "secret", system)
        _check_erased(place, session)

    assert every_fault(kind, error, work) > 20


@pytest.mark.slow
def test_S04_a_kill_at_every_call_of_erase(tmp_path: Path) -> None:
    at = 0
    while True:
        at += 1
        place, system = tmp_path / str(at), Mortal()
        session = _session_to_erase(place)
        system.left = at
        with suppress(Kill):
            erase_record(session.folder, "secret", system)
        system.bury()
        _check_erased(place, session)
        if not system.is_dead:
            break
    assert at > 20


@pytest.mark.slow
@pytest.mark.parametrize("names", [["a", "b", "new"], None], ids=["named", "everything"])
@pytest.mark.parametrize(("kind", "error"), KINDS)
def test_S05_faults_at_every_call_of_snapshot(tmp_path: Path, kind: str, error: int, names: list[str] | None) -> None:
    """What an undo puts back is what was there, or it is refused; the message is there in any case."""

    def work(system: System, at: int) -> None:
        place, files = tmp_path / str(at), tmp_path / f"{at}.files"
        files.mkdir()
        for name in ("a", "b"):
            (files / name).write_bytes(name.encode() * 2000)
        with Store(place, system=Quick()).session("s") as session:
            session.user("go")
            message = session.assistant("I write.")
        failing = Session(log_of(place).parent, Store(place, system=system)._config)
        with suppress(OSError, ClewError), failing.watch(message, names, root=files):
            for name in ("a", "b", "new"):
                (files / name).write_bytes(b"changed")
        _check_snapshots(place, files)

    assert every_fault(kind, error, work) > 20


def _check_snapshots(place: Path, files: Path) -> None:
    changed = (files / "new").exists()
    with Store(place, system=Quick()).session("s") as session:
        with session._snapshots.writing():
            pass  # a torn end is mended by whoever comes next
        assert lines(session.folder / "snapshots.jsonl") is not None
        assert len(lines(log_of(place))) == 2
        assert "backup-damaged" not in {finding.problem.code for finding in examine(place)}
        try:
            session.undo(root=files)
        except ClewError:
            assert (files / "new").exists() == changed
            return
    assert (files / "a").read_bytes() == b"a" * 2000 and (files / "b").read_bytes() == b"b" * 2000
    assert not (files / "new").exists()
