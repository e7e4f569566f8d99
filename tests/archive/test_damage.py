"""Damage affects what it touches and nothing else: it is found, never restored, and repaired where a source is left."""

import os
import random
import shutil
from pathlib import Path

import pytest

from clew.archive.archive import open_archive
from clew.archive.packs import HEADER_BYTES, read_pack
from clew.archive.prune import Policy, plan, prune
from clew.archive.records import INDEX, Damage
from clew.archive.restore import plan as plan_restore
from clew.archive.restore import restore
from clew.archive.verify import verify
from clew.archive.writer import open_writer
from tests.archive.worlds import World, lines


def flip(path: Path, at: int, bit: int = 1) -> None:
    """Change one bit, and keep size and modification time."""
    was = path.stat()
    content = bytearray(path.read_bytes())
    content[at] ^= bit
    path.write_bytes(content)
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


def rich(world: World) -> dict[str, bytes]:
    """Archive several captures with several versions; returns the newest content of each file."""
    world.write(1, lines(*range(300)))
    world.write(2, os.urandom(4000).hex().encode() + b"\n" + lines(5))
    world.capture()
    for number in range(3, 7):
        world.write(number, lines(number * 1000, number * 1000 + 1))
        world.capture()
    world.write(3, lines(70))
    world.capture()
    return {world.session(number).name: world.session(number).read_bytes() for number in range(1, 7)}


def restored(world: World, target: Path) -> tuple[dict[str, bytes], list[Damage]]:
    """Return what a restore writes, and what it could not restore."""
    shutil.rmtree(target, ignore_errors=True)
    with open_archive(world.archive) as archive:
        damaged = restore(archive, {target: plan_restore(list(archive.newest()))}).damaged
    return {path.name: path.read_bytes() for path in target.rglob("*.jsonl")}, damaged


@pytest.mark.slow
@pytest.mark.parametrize("index", ["there", "gone"])
@pytest.mark.parametrize("seed", range(3))
def test_a_flipped_bit_anywhere_is_found_and_everything_else_is_restored(
    world: World, tmp_path: Path, seed: int, index: str
) -> None:
    truth = rich(world)
    shutil.copytree(world.archive, tmp_path / "whole")
    chance = random.Random(seed)
    for _ in range(25):
        shutil.rmtree(world.archive)
        shutil.copytree(tmp_path / "whole", world.archive)
        path = chance.choice(world.packs())
        flip(path, chance.randrange(path.stat().st_size), 1 << chance.randrange(8))
        if index == "gone":
            (world.archive / INDEX).unlink()
        got, damaged = restored(world, tmp_path / "out")
        assert all(truth[name] == content for name, content in got.items())
        lost = {Path(one.path).name for one in damaged}
        assert set(truth) - set(got) == lost
        content = read_pack(world.archive, path.stem)
        affected = {session_name(version.path) for records in content.records() for version in records.versions}
        assert lost <= affected, "only files of the damaged pack"
        proof = verify(world.archive)
        assert [one for one in proof.problems if one.path == str(path)]
        assert len({(one.path, one.offset, one.what) for one in proof.problems}) == len(proof.problems)
        assert lost <= {Path(name).name for one in proof.problems for name in one.files}
        world.capture()
        assert restored(world, tmp_path / "out") == (truth, [])
        left = verify(world.archive).problems
        assert {Path(name).name for one in left for name in one.files} <= {world.session(3).name}
        assert not left or path.stem.startswith("00000002-"), "only that pack has something that no source has"


def session_name(path: bytes) -> str:
    return Path(os.fsdecode(path)).name


@pytest.mark.slow
def test_the_next_capture_stores_again_what_a_source_still_has(world: World, tmp_path: Path) -> None:
    """Whichever pack it is, and without a verify before it: the modification time of the pack shows it."""
    truth = rich(world)
    shutil.copytree(world.archive, tmp_path / "whole")
    for number in range(len(world.packs())):
        shutil.rmtree(world.archive)
        shutil.copytree(tmp_path / "whole", world.archive)
        pack = world.packs()[number]
        content = bytearray(pack.read_bytes())
        content[HEADER_BYTES + 30] ^= 1
        pack.write_bytes(content)
        before = restored(world, tmp_path / "out")[1]
        outcome = world.capture()
        assert bool(outcome.mended) == bool(before)
        assert restored(world, tmp_path / "out") == (truth, [])
        if number != 1:
            assert verify(world.archive).problems == []


def test_damage_that_left_no_trace_on_the_pack_is_noted_by_verify(world: World, tmp_path: Path) -> None:
    truth = rich(world)
    flip(world.packs()[0], 500)
    assert any(one.files for one in verify(world.archive).problems)
    outcome = world.capture()
    assert outcome.mended >= 2
    assert outcome.read > outcome.stored > 0
    assert verify(world.archive).problems == []
    assert restored(world, tmp_path / "out") == (truth, [])


def test_older_versions_are_repaired_with_the_records_of_other_files(world: World) -> None:
    world.write(1, lines(1, 2, 3))
    world.capture()
    world.write(1, lines(9))
    world.capture()
    flip(world.packs()[0], HEADER_BYTES + 120)
    verify(world.archive)
    world.write(2, lines(1, 2, 3))
    world.capture()
    assert world.contents()[world.session(1).name] == [lines(1, 2, 3), lines(9)]
    assert verify(world.archive).problems == []


def test_what_no_source_has_stays_reported_and_costs_nothing_again(world: World) -> None:
    world.write(1, lines(1))
    world.capture()
    world.write(2, lines(2))
    world.capture()
    world.session(1).unlink()
    damaged = world.packs()[0]
    content = damaged.read_bytes()
    damaged.write_bytes(content[:150] + b"?" + content[151:])
    for _ in range(3):
        outcome = world.capture()
        (problem,) = outcome.problems
        assert world.session(1).name in problem
        before = {path: path.read_bytes() for path in world.archive.rglob("*") if path.is_file()}
    world.capture()
    assert {path: path.read_bytes() for path in world.archive.rglob("*") if path.is_file()} == before
    damaged.write_bytes(content)
    assert world.capture().problems == [], "a pack that was restored from a backup is used again"
    assert world.contents()[world.session(1).name] == [lines(1)]
    assert verify(world.archive).problems == []


def test_a_grown_file_whose_beginning_is_damaged_stays_one_version(world: World) -> None:
    path = world.write(1, lines(1, 2))
    world.capture()
    world.packs()[0].write_bytes(world.packs()[0].read_bytes().replace(b"tide", b"tyde"))
    flip(world.packs()[0], HEADER_BYTES + 100)
    verify(world.archive)
    with path.open("ab") as out:
        out.write(lines(3))
    world.capture()
    assert world.contents()[path.name] == [lines(1, 2, 3)]
    assert verify(world.archive).problems == []


def test_a_missing_pack_is_one_problem(world: World, tmp_path: Path) -> None:
    truth = rich(world)
    world.packs()[0].unlink()
    (problem,) = verify(world.archive).problems
    assert problem.what == "the pack is missing"
    assert {Path(name).name for name in problem.files} == {world.session(1).name, world.session(2).name}
    world.capture()
    assert restored(world, tmp_path / "out") == (truth, [])
    assert verify(world.archive).problems == []


def test_a_prune_leaves_a_damaged_pack_as_it_is_while_something_in_it_is_needed(world: World) -> None:
    for number in range(4):
        world.write(number, lines(number))
        world.capture()
    world.write(0, lines(50))
    world.capture()
    damaged = world.packs()[1]
    flip(damaged, HEADER_BYTES + 100)
    verify(world.archive)
    content = damaged.read_bytes()
    with open_writer(world.archive) as writer:
        prune(writer, plan(writer, Policy(keep_versions=1), 0), repack=True)
    assert damaged.read_bytes() == content
    (problem,) = verify(world.archive).problems
    assert [Path(name).name for name in problem.files] == [world.session(1).name]
    assert world.capture().mended == 1
    assert verify(world.archive).problems == []
    assert sorted(world.contents()) == [world.session(number).name for number in range(4)]
