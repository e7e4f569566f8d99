"""Commands on a full disk: one line that names what could not be written, and nothing half done."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from clew.store import Store
from clew.store.erase import erase_record, erase_session
from tests.cli.running import run
from tests.demo_home import write_small_demo
from tests.store.support import Faulty


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MB, which only root can mount."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    words = [mount or "mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)]
    if sys.platform != "linux" or mount is None or subprocess.run(words, check=False, capture_output=True).returncode:
        pytest.skip("only root can mount a small file system, on Linux")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def fill(disk: Path) -> None:
    """Write to the disk until it is full."""
    descriptor = os.open(disk / "filler", os.O_WRONLY | os.O_CREAT)
    try:
        while True:
            os.write(descriptor, b"x" * 4096)
    except OSError as error:
        assert error.errno == errno.ENOSPC
    finally:
        os.close(descriptor)


@pytest.mark.parametrize(
    ("before", "words"),
    [([], ["sync"]), (["list"], ["sync"]), (["sync"], ["sync", "--forget-gone"])],
    ids=["the rows", "the text index", "what is gone"],
)
@pytest.mark.slow
def test_a_sync_on_a_full_disk_names_the_catalog(
    small_disk: Path, tmp_path: Path, before: list[str], words: list[str]
) -> None:
    home, environment = tmp_path / "home", {**os.environ, "CLEW_DATA_DIR": str(small_disk / "data")}
    write_small_demo(home)
    for word in before:
        assert run("--home", home, word, env=environment).code == 0
    shutil.rmtree(home / ".gemini")
    fill(small_disk)
    done = run("--home", home, *words, env=environment)
    assert "Traceback" not in done.err and "internal error" not in done.err
    assert (done.code, len(done.err.splitlines())) == (3, 1), done.err
    assert str(small_disk / "data") in done.err and "cannot be written" in done.err
    (small_disk / "filler").unlink()
    assert run("--home", home, *words, env=environment).code == 0


def test_an_erasure_on_a_full_disk_names_the_file(tmp_path: Path) -> None:
    with Store(tmp_path).session("s") as session:
        folder = session.folder
        session.user("a prompt", uuid="first")
        session.assistant("an answer", uuid="second")
    for call in range(1, 20):
        system = Faulty(call, errno.ENOSPC, only="write")
        try:
            erase_record(folder, "second", system)
        except OSError as error:
            assert str(error.filename).startswith(str(folder)), call
        else:
            break
    else:
        raise AssertionError
    with pytest.raises(OSError, match="injected") as caught:
        erase_session(folder, Faulty(1, errno.ENOSPC, only="write"))
    assert str(caught.value.filename).startswith(str(folder))
