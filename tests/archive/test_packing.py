"""Full blocks are packed beside the writer, and nothing tells where a block was packed."""

import os
import random
import signal
from pathlib import Path

import pytest

from clew.archive import writing
from clew.archive.blocks import SMALL
from clew.archive.checking import verify
from clew.archive.packing import Packer
from clew.archive.reading import Reader
from clew.archive.writing import Writer, writer

ROOM = 1000
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="blocks are packed in the one process there is")


def turned(body: bytes) -> bytes:
    return body[::-1]


def test_blocks_are_packed_one_after_the_other() -> None:
    packer = Packer(turned, ROOM)
    for body in (b"abc", b"", bytes(range(256))):
        packer.begin(body)
        assert packer.result() == turned(body)
    packer.close()


@pytest.mark.parametrize("size", [1, ROOM // 2, ROOM, ROOM + 1, 2 * ROOM])
def test_what_has_no_room_is_packed_here(size: int) -> None:
    packer = Packer(lambda body: body * 2, ROOM)
    for _ in range(2):
        packer.begin(b"x" * size)
        assert packer.result() == b"x" * (2 * size)
    packer.close()


def test_a_packer_that_dies_loses_no_block() -> None:
    here = os.getpid()

    def pack(body: bytes) -> bytes:
        if os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return turned(body)

    packer = Packer(pack, ROOM)
    for body in (b"abc", b"def"):
        packer.begin(body)
        assert packer.result() == turned(body)
    packer.close()


def test_a_packer_that_fails_leaves_the_failure_to_the_writer() -> None:
    packer = Packer(lambda body: body[:0] + bytes([body.index(b"x")]), ROOM)
    packer.begin(b"abc")
    with pytest.raises(ValueError, match="subsection not found"):
        packer.result()
    packer.close()


def test_a_packer_holds_nothing_open_of_the_writer(tmp_path: Path) -> None:
    """A lock that it held would outlive a writer that is killed."""
    with (tmp_path / "lock").open("wb") as lock:

        def is_open(_: bytes) -> bytes:
            try:
                os.fstat(lock.fileno())
            except OSError:
                return b"closed"
            return b"open"

        packer = Packer(is_open, ROOM)
        packer.begin(b"")
        assert packer.result() == b"closed"
        packer.close()


def lines(count: int) -> list[bytes]:
    chance = random.Random(count)
    return [b'{"n":%d,"text":"%s"}\n' % (at, chance.randbytes(500).hex().encode()) for at in range(count)]


@pytest.mark.parametrize("cores", [1, 2, 3])
def test_what_comes_back_is_the_same_on_any_number_of_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cores: int
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    monkeypatch.setattr(writing, "FULL", SMALL)
    chunks = lines(4000)
    with writer(tmp_path) as archive:
        archive.add(chunks)
        assert len(archive._packers) == (cores if cores > 1 else 0)
        archive.commit(1)
        assert [block.first for block in archive.state.blocks] == sorted(block.first for block in archive.state.blocks)
        assert len(archive.state.blocks) > cores
    assert not verify(tmp_path).problems
    reader = Reader(tmp_path)
    unpacked = [reader.unpack(block) for block in reader.state.blocks]
    assert [block.chunk(at) for block in unpacked for at in range(len(block.offsets) - 1)] == chunks
    reader.close()


def test_a_writer_that_stops_leaves_no_process_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(writing, "FULL", SMALL)
    kept: list[Writer] = []
    with pytest.raises(KeyError), writer(tmp_path) as archive:
        archive.add(lines(1000))
        kept.append(archive)
        raise KeyError
    processes = [packer._process for packer in kept[0]._packers]
    assert processes
    for process in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def test_a_small_capture_starts_no_process(tmp_path: Path) -> None:
    with writer(tmp_path) as archive:
        archive.add(lines(1000))
        archive.commit(1)
        assert not archive._packers
