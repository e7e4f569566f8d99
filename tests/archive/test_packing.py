"""Full blocks are packed beside the writer, and nothing tells where a block was packed."""

import hashlib
import mmap
import os
import random
import signal
import time
from pathlib import Path

import pytest

from clew.archive import writing
from clew.archive.blocks import SMALL, Codec
from clew.archive.checking import verify
from clew.archive.layout import Place, Version
from clew.archive.packing import Packer, Packers
from clew.archive.reading import Reader
from clew.archive.state import load
from clew.archive.writing import Writer, writer

ROOM = 1000
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="blocks are packed in the one process there is")


def turned(body: bytes) -> bytes:
    return body[::-1]


def test_blocks_are_packed_one_after_the_other() -> None:
    packer = Packer(turned, ROOM)
    for body in (b"abc", b"", bytes(range(256))):
        assert packer.begin([body[:1], body[1:]]).result() == turned(body)
    packer.close()


@pytest.mark.parametrize("size", [1, ROOM // 2, ROOM, ROOM + 1, 2 * ROOM])
def test_what_has_no_room_is_packed_here(size: int) -> None:
    packer = Packer(lambda body: body * 2, ROOM)
    for _ in range(2):
        assert packer.begin([b"x"] * size).result() == b"x" * (2 * size)
    packer.close()


def test_a_packer_that_dies_loses_no_block() -> None:
    here = os.getpid()

    def pack(body: bytes) -> bytes:
        if os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return turned(body)

    packer = Packer(pack, ROOM)
    for body in (b"abc", b"def"):
        assert packer.begin([body]).result() == turned(body)
    packer.close()


def test_a_packer_that_fails_leaves_the_failure_to_the_writer() -> None:
    packer = Packer(lambda body: body[:0] + bytes([body.index(b"x")]), ROOM)
    job = packer.begin([b"abc"])
    with pytest.raises(ValueError, match="subsection not found"):
        job.result()
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
        assert packer.begin([b""]).result() == b"closed"
        packer.close()


def test_a_slow_block_keeps_nobody_from_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    gate = mmap.mmap(-1, 1)

    def pack(body: bytes) -> bytes:
        while body == b"slow" and not gate[0]:
            time.sleep(0.01)
        return turned(body)

    packers = Packers(pack, ROOM)
    slow = packers.begin([b"slow"])
    others = [packers.begin([body]) for body in (b"abc", b"def", b"ghi")]
    assert [job.result() for job in others] == [b"cba", b"fed", b"ihg"]
    assert not slow.is_done()
    gate[0] = 1
    assert slow.result() == b"wols"
    packers.close()


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
        assert len(archive._packers.begun) == (cores if cores > 1 else 0)
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
    processes = [packer.process for packer in kept[0]._packers.begun]
    assert processes
    for process in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def test_a_small_capture_starts_no_process(tmp_path: Path) -> None:
    with writer(tmp_path) as archive:
        archive.add(lines(1000))
        archive.commit(1)
        assert not archive._packers.begun


def version(path: bytes, content: bytes, runs: tuple[int, ...]) -> Version:
    digest = hashlib.sha256(content).digest()
    return Version(0, path, "claude-code", "s", "main", path, len(content), 0o600, 1, (1, 1), digest, runs, 1)


def test_a_checkpoint_waits_for_no_block_and_counts_what_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(writing, "FULL", SMALL)
    gate, every = mmap.mmap(-1, 1), lines(4000)

    def pack(codec: Codec, body: bytes, dictionary: int = 0) -> bytes:
        while b'"n":3500,' in body and not gate[0]:
            time.sleep(0.01)
        return packed(codec, body, dictionary)

    packed = Codec.pack_body
    monkeypatch.setattr(Codec, "pack_body", pack)
    with writer(tmp_path) as archive:
        archive.places.append(Place("local", None, "/home/ada", {}))
        for at in range(0, 4000, 500):
            chunks = every[at : at + 500]
            archive.keep(version(b"%d" % at, b"".join(chunks), archive.add(chunks)), 1)
        archive.flush()
        archive._write_waiting(2)
        archive.checkpoint(1)
        counted, problems = load(tmp_path), verify(tmp_path).problems
        gate[0] = 1
        archive.commit(2)
    assert not problems
    assert 0 < len(counted.files) < 8
    assert counted.next_chunk == counted.blocks[-1].first + counted.blocks[-1].count
    assert not verify(tmp_path).problems
    assert len(load(tmp_path).files) == 8
    assert sum(capture.raw for capture in load(tmp_path).captures) == 8
