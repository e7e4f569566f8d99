"""Whatever call to the file system or the database fails, nothing archived is lost, and the next run goes on."""

import errno
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from clew.archive.prune import Policy, plan, prune
from clew.archive.records import INDEX, Damage
from clew.archive.verify import verify
from clew.archive.writer import open_writer
from clew.errors import SourceUnreadable
from clew.io.filesystem import System
from scripts import archive_soak
from tests.archive.worlds import World, lines

ROOT = Path(__file__).resolve().parents[2]


class Failing(System):
    """A file system whose n-th call fails."""

    def __init__(self, left: int, code: int) -> None:
        for name in ("open", "write", "sync", "replace", "truncate", "unlink", "mkdir", "fstat"):
            setattr(self, name, self._counted(getattr(System, name)))
        self.left, self._code = left, code

    def _counted(self, call: Callable[..., object]) -> Callable[..., object]:
        def counted(*arguments: object) -> object:
            self.left -= 1
            if self.left == -1:
                raise OSError(self._code, os.strerror(self._code))
            return call(*arguments)

        return counted


class FailingDatabase(sqlite3.Connection):
    """A database whose n-th statement fails."""

    left = -1

    def execute(self, *arguments: object) -> sqlite3.Cursor:
        FailingDatabase.left -= 1
        if FailingDatabase.left == -1:
            raise sqlite3.OperationalError("disk I/O error")
        return super().execute(*arguments)  # type: ignore[arg-type]


def harmful(world: World) -> list[Damage]:
    """Return the problems that verify finds, except for an index that has to be rebuilt."""
    return [problem for problem in verify(world.archive).problems if not problem.harmless]


@pytest.mark.slow
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_S05_a_capture_that_fails_at_any_call_leaves_an_intact_archive(tmp_path: Path, code: int) -> None:
    number = 0
    while True:
        world = World(tmp_path / str(number))
        world.write(1, lines(1, 2))
        world.capture()
        world.write(1, lines(9))
        world.write(2, lines(3))
        system = Failing(number, code)
        try:
            world.capture(system)
        except OSError as error:
            assert error.errno == code
        assert harmful(world) == []
        assert world.contents()[world.session(1).name][0] == lines(1, 2)
        world.capture()
        assert world.contents()[world.session(1).name] == [lines(1, 2), lines(9)]
        assert world.contents()[world.session(2).name] == [lines(3)]
        assert verify(world.archive).problems == []
        if system.left >= 0:
            break
        number += 1
    assert number > 8


@pytest.mark.slow
@pytest.mark.parametrize("is_prune", [False, True])
def test_S05_a_statement_that_fails_leaves_an_intact_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_prune: bool
) -> None:
    def connect(*arguments: object, **options: object) -> sqlite3.Connection:
        return original(*arguments, **options, factory=FailingDatabase)  # type: ignore[call-overload,no-any-return]

    original = sqlite3.connect
    number = 0
    while True:
        world = World(tmp_path / f"{is_prune}{number}")
        world.write(1, lines(1, 2))
        world.capture()
        world.write(1, lines(9))
        if is_prune:
            world.capture()
        with monkeypatch.context() as patch:
            patch.setattr("clew.archive.index.sqlite3.connect", connect)
            FailingDatabase.left = number
            try:
                pruned(world, System()) if is_prune else world.capture()
            except (SourceUnreadable, sqlite3.OperationalError) as error:
                assert "disk I/O error" in str(error)
            has_failed = FailingDatabase.left < 0
            FailingDatabase.left = -1
        assert harmful(world) == []
        pruned(world, System()) if is_prune else world.capture()
        assert world.contents()[world.session(1).name] == ([lines(9)] if is_prune else [lines(1, 2), lines(9)])
        assert verify(world.archive).problems == []
        if not has_failed:
            break
        number += 1
    assert number > 10


def pruned(world: World, system: System) -> None:
    with open_writer(world.archive, system) as writer:
        prune(writer, plan(writer, Policy(keep_versions=1), 0))


@pytest.mark.slow
def test_S05_a_prune_that_fails_at_any_call_keeps_what_it_should(tmp_path: Path) -> None:
    number = 0
    while True:
        world = World(tmp_path / str(number))
        for at in range(3):
            world.write(at, lines(at))
            world.capture()
        world.write(0, lines(7))
        world.capture()
        system = Failing(number, errno.ENOSPC)
        try:
            pruned(world, system)
        except OSError as error:
            assert error.errno == errno.ENOSPC
        assert harmful(world) == []
        kept = {world.session(0).name: lines(7), world.session(1).name: lines(1), world.session(2).name: lines(2)}
        assert {name: found[-1] for name, found in world.contents().items()} == kept
        pruned(world, System())
        assert world.contents() == {name: [content] for name, content in kept.items()}
        assert verify(world.archive).problems == []
        if system.left >= 0:
            break
        number += 1
    assert number > 6


@pytest.mark.slow
def test_S05_a_rebuild_of_the_index_that_fails_at_any_call_is_done_by_the_next_run(tmp_path: Path) -> None:
    number = 0
    while True:
        world = World(tmp_path / str(number))
        world.write(1, lines(1, 2))
        world.capture()
        world.session(1).unlink()
        (world.archive / INDEX).write_bytes(b"garbage")
        system = Failing(number, errno.EIO)
        try:
            world.capture(system)
        except OSError as error:
            assert error.errno == errno.EIO
        assert world.contents() == {world.session(1).name: [lines(1, 2)]}
        world.capture()
        assert world.contents() == {world.session(1).name: [lines(1, 2)]}
        assert verify(world.archive).problems == []
        if system.left >= 0:
            break
        number += 1
    assert number > 6


def test_S05_a_full_disk_is_one_clear_line(world: World) -> None:
    world.write(1, lines(1))

    def full(descriptor: int, content: bytes) -> int:
        if content.startswith(b"SQLite"):
            return os.write(descriptor, content)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    system = System()
    world.capture()
    world.write(1, lines(2))
    system.write = full
    with pytest.raises(OSError, match="No space left") as caught:
        world.capture(system)
    assert str(caught.value.filename).endswith(".pack")
    assert len(world.packs()) == 1


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_S04_kills_lose_and_double_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert archive_soak.main(["--kills", "25", "--seed", "7"]) == 0
    assert "0 lost, 0 duplicate, 0 damaged" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs resource limits")
def test_S05_a_file_size_limit_ends_in_one_line(world: World) -> None:
    world.write(1, os.urandom(300_000).hex().encode())
    script = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000));"
        "from clew.cli.main import main; main(sys.argv[1:])"
    )
    command = [sys.executable, "-c", script, "--home", str(world.home), "archive", "--archive", str(world.archive)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1].startswith("clew: ")
    assert "Traceback" not in done.stderr
    assert not world.packs()
    assert world.capture().new == 1
    assert verify(world.archive).problems == []
