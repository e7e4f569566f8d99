"""Verify reads everything: no bit of a pack can change unseen."""

import os
import shutil
from contextlib import closing, suppress
from pathlib import Path

import pytest

from clew.archive.archive import Archive, open_archive
from clew.archive.index import Index
from clew.archive.packs import HEADER_BYTES, read_pack
from clew.archive.prune import Policy, plan, prune
from clew.archive.records import INDEX
from clew.archive.verify import check, verify
from clew.archive.writer import open_writer
from clew.errors import SourceUnreadable
from tests.archive.worlds import World, lines


def small(world: World) -> list[Path]:
    world.write(1, lines(*range(3)))
    world.capture()
    world.write(2, lines(7, 8))
    world.write(1, lines(9))
    world.capture()
    return world.packs()


def damage_found(world: World, scratch: Path) -> bool:
    """Verify a copy, because verify notes what it finds."""
    shutil.rmtree(scratch, ignore_errors=True)
    shutil.copytree(world.archive, scratch)
    return bool(verify(scratch).problems)


def test_an_intact_archive_has_no_problems(world: World) -> None:
    small(world)
    proof = verify(world.archive)
    assert (proof.versions, proof.problems) == (3, [])


@pytest.mark.slow
@pytest.mark.parametrize("index", ["stored", "rebuilt"])
def test_a_flipped_bit_at_every_byte_is_named_and_everything_else_is_restored(world: World, index: str) -> None:
    pack = small(world)[0]
    truth = world.contents()
    first, second = world.session(1).name, world.session(2).name
    assert {name: len(versions) for name, versions in truth.items()} == {first: 2, second: 1}
    whole = pack.read_bytes()
    blocks = read_pack(world.archive, pack.stem).blocks
    chunks = [range(block.offset, block.offset + block.size) for block in blocks if block.table]
    with open_archive(world.archive) as intact:
        for at in range(len(whole)):
            pack.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << at % 8)]) + whole[at + 1 :])
            used = intact.index.copy() if index == "stored" else Index.in_memory()
            if index == "rebuilt":
                used.sync(world.archive)
            with closing(Archive(world.archive, used)) as archive:
                problems, contents = check(archive).problems, readable(archive)
            assert str(pack) in {one.path for one in problems}, f"byte {at}"
            lost = {Path(name).name for one in problems for name in one.files}
            assert lost == ({first} if any(at in block for block in chunks) else set()), f"byte {at}"
            # The damaged pack has the older version of the first session.
            assert contents == {**truth, first: truth[first][bool(lost) :]}, f"byte {at}"
    pack.write_bytes(whole)
    world.capture()
    assert verify(world.archive).problems == []


def readable(archive: Archive) -> dict[str, list[bytes]]:
    """Return the versions of each archived file that can be read."""
    found: dict[str, list[bytes]] = {}
    for version in archive.versions():
        contents = found.setdefault(Path(os.fsdecode(version.path)).name, [])
        with suppress(SourceUnreadable):
            contents.append(archive.content(version))
    return found


def test_a_missing_or_truncated_pack_is_found(world: World, tmp_path: Path) -> None:
    for path in small(world):
        whole = path.read_bytes()
        path.unlink()
        assert damage_found(world, tmp_path / "copy")
        for size in (0, 1, HEADER_BYTES, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:size])
            assert damage_found(world, tmp_path / "copy"), f"{path.name}: {size}"
        path.write_bytes(whole)


def test_a_truncated_or_missing_index_is_reported_and_loses_nothing(world: World) -> None:
    small(world)
    before = world.contents()
    whole = (world.archive / INDEX).read_bytes()
    for content in (None, b"", whole[:1000], whole[:-1], whole + b"more", bytes(len(whole)), b"garbage"):
        (world.archive / INDEX).unlink(missing_ok=True)
        if content is not None:
            (world.archive / INDEX).write_bytes(content)
        (problem,) = verify(world.archive).problems
        assert (problem.path, problem.harmless) == (str(world.archive / INDEX), True)
        assert world.contents() == before
    world.capture()
    assert verify(world.archive).problems == []
    assert world.contents() == before


@pytest.mark.parametrize("seed", range(3))
def test_a_flipped_bit_in_the_index_changes_nothing(world: World, seed: int) -> None:
    small(world)
    before = world.contents()
    path = world.archive / INDEX
    whole = path.read_bytes()
    for at in range(seed * 97, len(whole), 1511):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << at % 8)]) + whole[at + 1 :])
        assert world.contents() == before
    world.capture()
    assert verify(world.archive).problems == []
    assert world.contents() == before


def test_temporary_files_of_a_killed_capture_are_no_problem_and_are_removed(world: World) -> None:
    pack = small(world)[0]
    leftovers = [
        world.archive / "packs" / ".00000003-0123456789abcdef.tmp",
        world.archive / ".index.sqlite.0123456789ab.tmp",
        world.archive / ".index.sha256.0123456789ab.tmp",
    ]
    for path in leftovers:
        path.write_bytes(pack.read_bytes()[:100])
    assert verify(world.archive).problems == []
    world.capture()
    assert not any(path.exists() for path in leftovers)


def test_files_that_are_not_clews_own_are_left_alone(world: World) -> None:
    small(world)
    strange = {
        world.archive / "packs" / "00000009-0123456789abcdef.pack": b"not a pack",
        world.archive / "packs" / "1.pack": b"a copy that a user made",
        world.archive / "packs" / "00000009-0123456789abcdef.pack.bak": b"a copy that a user made",
        world.archive / "packs" / ".notes.tmp": b"notes",
        world.archive / "notes.tmp": b"notes",
    }
    for path, content in strange.items():
        path.write_bytes(content)
    (world.archive / "packs" / "00000007-0123456789abcdef.pack" / "inside").mkdir(parents=True)
    (problem,) = verify(world.archive).problems
    assert (Path(problem.path).name, problem.harmless) == ("00000009-0123456789abcdef.pack", True)
    world.write(3, lines(11))
    world.capture()
    with open_writer(world.archive) as writer:
        prune(writer, plan(writer, Policy(keep_versions=1), 0), repack=True)
    assert {path: path.read_bytes() for path in strange} == strange
    assert world.contents()[world.session(3).name] == [lines(11)]
