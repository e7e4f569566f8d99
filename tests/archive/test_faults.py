"""Whatever call to the file system fails, the archive is whole, and the next capture completes it."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from clew.archive.checking import verify
from clew.archive.layout import manifests
from clew.archive.pruning import Policy, plan, prune
from clew.archive.state import load
from clew.archive.writing import writer
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


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_S05_a_capture_that_fails_at_any_call_leaves_a_whole_archive(tmp_path: Path, code: int) -> None:
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
        assert verify(world.archive).problems == []
        world.capture()
        assert world.contents()[world.session(1).name] == [lines(1, 2), lines(9)]
        assert world.contents()[world.session(2).name] == [lines(3)]
        if system.left >= 0:
            break
        number += 1
    assert number > 8


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
            with writer(world.archive, system) as open_writer:
                prune(open_writer, plan(open_writer.state, Policy(keep_versions=1), 0))
        except OSError as error:
            assert error.errno == errno.ENOSPC
        assert verify(world.archive).problems == []
        assert {name: found[-1] for name, found in world.contents().items()} == {
            world.session(0).name: lines(7),
            world.session(1).name: lines(1),
            world.session(2).name: lines(2),
        }
        if system.left >= 0:
            break
        number += 1
    assert number > 6


def test_S05_a_full_disk_is_one_clear_line(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.write(1, lines(1))

    def full(descriptor: int, content: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    system = System()
    system.write = full
    with pytest.raises(OSError, match="No space left") as caught:
        world.capture(system)
    assert str(caught.value.filename).endswith("00000001.pack")
    assert not manifests(world.archive)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_S04_kills_lose_and_double_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert archive_soak.main(["--kills", "25", "--seed", "7"]) == 0
    assert "0 lost, 0 doubled, 0 damaged" in capsys.readouterr().out


@pytest.mark.skipif(sys.platform == "win32", reason="needs resource limits")
def test_S05_a_file_size_limit_ends_in_one_line(world: World) -> None:
    world.write(1, os.urandom(300_000).hex().encode())
    script = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000));"
        "from clew.cli import main; main(sys.argv[1:])"
    )
    command = [sys.executable, "-c", script, "--home", str(world.home), "archive", "--archive", str(world.archive)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1].startswith("clew: ")
    assert "Traceback" not in done.stderr
    assert not manifests(world.archive)
    assert world.capture().new == 1
    assert load(world.archive).number == 1
