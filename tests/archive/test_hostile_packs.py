"""Numbers and frames in a pack that cannot be right are damage: they take no memory and no time."""

import hashlib
import os
import struct
from pathlib import Path

import pytest
import zstandard

from clew.archive import packs
from clew.archive.packs import CHUNKS, RECORDS, PackWriter, chunk_id, encode_table
from clew.archive.records import INDEX
from clew.archive.verify import verify
from clew.io.filesystem import SYSTEM
from tests.archive.worlds import World, lines
from tests.cli.running import clew


def add_pack(world: World, kind: bytes, table: bytes, data: bytes, size: int) -> Path:
    """Add a pack with one block whose checksums are right."""
    writer = PackWriter(SYSTEM, world.archive, 9)
    writer.write_block(kind, table, data, size)
    name = writer.finish()
    return world.archive / "packs" / f"{name}.pack"


BOMB = zstandard.ZstdCompressor(level=1).compress(bytes(300 << 20))
BLOCKS = {
    "a frame that is no frame": (RECORDS, b"", b"text", 4),
    "an empty frame": (RECORDS, b"", b"", 0),
    "records that decompress to gigabytes": (RECORDS, b"", BOMB, 300 << 20),
    "records with a wrong size": (RECORDS, b"", BOMB, 10),
    "records that are no records": (RECORDS, b"", zstandard.compress(b"\x93\x01\x02\x03"), 4),
    "chunks that decompress to gigabytes": (CHUNKS, encode_table([b"x"], [chunk_id(b"x")]), BOMB, 1),
    "chunks with wrong hashes": (CHUNKS, encode_table([b"x"], [chunk_id(b"y")]), zstandard.compress(b"x"), 1),
    "chunks beyond the block": (
        CHUNKS,
        chunk_id(b"x") + struct.pack("<I", (1 << 32) - 1),
        zstandard.compress(b"x"),
        1,
    ),
    "an unknown kind": (b"?", b"", b"x", 1),
}


@pytest.mark.parametrize("name", [name for name in BLOCKS if name != "an unknown kind"])
def test_a_block_that_cannot_be_right_is_damage(world: World, tmp_path: Path, name: str) -> None:
    world.write(1, lines(1, 2))
    world.capture()
    pack = add_pack(world, *BLOCKS[name])
    assert any(problem.path == str(pack) for problem in verify(world.archive).problems)
    (world.archive / INDEX).unlink()
    for words in (("list",), ("restore", "--to", tmp_path / "out"), ("prune", "--keep-versions", "1", "--apply"), ()):
        assert clew("--home", world.home, "archive", *words, "--archive", world.archive).code in (0, 1, 3), words
    assert world.contents() == {world.session(1).name: [lines(1, 2)]}


def test_a_block_of_another_pack_is_not_read(world: World) -> None:
    world.write(1, lines(1, 2))
    world.capture()
    (pack,) = world.packs()
    other = pack.with_name(f"00000002-{os.urandom(8).hex()}.pack")
    other.write_bytes(pack.read_bytes())
    assert [problem.path for problem in verify(world.archive).problems] == [str(other)]


def test_a_captured_file_that_looks_like_a_block_is_not_read_as_one(world: World) -> None:
    """Bytes that do not compress lie in the pack as they are; a damaged header makes the reader search for the next."""
    world.write(1, lines(1))
    world.capture()
    forged = world.packs()[0].read_bytes()
    noise = os.urandom(2000)
    world.write(2, noise + forged + noise)
    world.capture()
    pack = world.packs()[1]
    content = bytearray(pack.read_bytes())
    content[20] ^= 1
    pack.write_bytes(content)
    found = packs.read_pack(world.archive, pack.stem)
    assert not any(block.kind == CHUNKS for block in found.blocks)
    assert len(found.gaps) == 1


def test_a_pack_of_a_newer_clew_is_left_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.write(1, lines(1))
    with monkeypatch.context() as patch:
        patch.setattr(packs, "FORMAT", 99)
        pack = add_pack_in_new_archive(world)
    before = hashlib.sha256(pack.read_bytes()).digest()
    for words in (("list",), ("verify",), (), ("prune", "--repack", "--apply")):
        ran = clew("--home", world.home, "archive", *words, "--archive", world.archive)
        assert (ran.code, "another clew" in ran.err) == (4, True)
    assert hashlib.sha256(pack.read_bytes()).digest() == before


def add_pack_in_new_archive(world: World) -> Path:
    (world.archive / "packs").mkdir(parents=True)
    return add_pack(world, *BLOCKS["an unknown kind"])
