"""Damage takes what it touches and nothing else: it is found, never given out, and made good where a source is left."""

import os
import random
import shutil
from pathlib import Path

import pytest

from clew.archive import restoring
from clew.archive.checking import Proof, verify
from clew.archive.layout import COPIES, HEALTH, Damage, manifest_path, manifests, packs
from clew.archive.parts import HEAD, scan
from clew.archive.reading import Reader
from clew.archive.state import load
from tests.archive.worlds import World, lines


def flip(path: Path, at: int, bit: int = 1) -> None:
    """One bit changes, and the file looks as it did."""
    was = path.stat()
    content = bytearray(path.read_bytes())
    content[at] ^= bit
    path.write_bytes(content)
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


def files(world: World) -> list[Path]:
    """All that an archive has on the disk."""
    return sorted(path for path in world.archive.rglob("*") if path.is_file() and path.stat().st_size)


def rich(world: World) -> dict[str, bytes]:
    """Several captures with several versions, and a dictionary."""
    world.write(1, lines(*range(900)))
    world.write(2, os.urandom(4000).hex().encode() + b"\n" + lines(5))
    world.capture()
    for number in range(3, 7):
        world.write(number, lines(number * 1000, number * 1000 + 1))
        world.capture()
    world.write(3, lines(70))
    world.capture()
    return {world.session(number).name: world.session(number).read_bytes() for number in range(1, 7)}


def given_out(world: World, target: Path) -> tuple[dict[str, bytes], list[Damage]]:
    """What a restore writes, and what it could not."""
    reader = Reader(world.archive)
    try:
        steps = restoring.plan(reader.state, list(reader.state.newest()))
        told = restoring.restore(reader, steps, target).damaged
    finally:
        reader.close()
    return {path.name: path.read_bytes() for path in target.rglob("*.jsonl")}, told


def harmful(proof: Proof) -> list[Damage]:
    return [one for one in proof.problems if not one.harmless]


@pytest.mark.parametrize("seed", range(5))
def test_a_flipped_bit_anywhere_is_found_and_never_given_out(world: World, tmp_path: Path, seed: int) -> None:
    """Thirty places in every run, over all files; a restore gives the right bytes or says that it cannot."""
    truth = rich(world)
    chance = random.Random(seed)
    for number in range(30):
        path = chance.choice(files(world))
        whole = path.read_bytes()
        flip(path, chance.randrange(len(whole)), 1 << chance.randrange(8))
        proof = verify(world.archive)
        assert proof.problems, path
        assert len({(one.path, one.offset, one.what) for one in proof.problems}) == len(proof.problems)
        got, told = given_out(world, tmp_path / f"out{number}")
        assert all(truth[name] == content for name, content in got.items())
        assert set(truth) - set(got) == {Path(one.path).name for one in told}
        assert {Path(one.path).name for one in told} <= {
            Path(name).name for one in proof.problems for name in one.files
        }
        path.write_bytes(whole)
        (world.archive / HEALTH).unlink(missing_ok=True)
        shutil.rmtree(tmp_path / f"out{number}")
    world.capture()
    assert verify(world.archive).problems == []


@pytest.mark.parametrize("place", COPIES)
@pytest.mark.parametrize("change", ["flip", "remove", "empty"])
def test_a_manifest_is_there_twice(world: World, tmp_path: Path, place: str, change: str) -> None:
    truth = rich(world)
    for number in sorted(manifests(world.archive))[:-1]:
        path = manifest_path(world.archive, number, place)
        whole = path.read_bytes()
        path.unlink() if change == "remove" else path.write_bytes(b"" if change == "empty" else whole[:-1] + b"?")
        (problem,) = verify(world.archive).problems
        assert (problem.path, problem.harmless) == (str(path), True)
        assert given_out(world, tmp_path / f"out{number}") == (truth, [])
        path.write_bytes(whole)
    path.unlink()
    world.capture()
    assert verify(world.archive).problems == []
    assert world.contents()[world.session(3).name] == [lines(3000, 3001), lines(70)]


@pytest.mark.parametrize("number", [1, 3, 6])
def test_a_manifest_lost_in_both_places_takes_only_what_it_alone_told(
    world: World, tmp_path: Path, number: int
) -> None:
    truth = rich(world)
    before = world.contents()
    for place in COPIES:
        flip(manifest_path(world.archive, number, place), 40)
    assert len(harmful(verify(world.archive))) == 2
    got, told = given_out(world, tmp_path / "out")
    assert not told
    lost = {1: {1, 2}, 3: {4}, 6: set()}[number]
    assert set(got) == set(truth) - {world.session(one).name for one in lost}
    stored = world.stored()
    world.capture()
    assert verify(world.archive).problems == []
    assert world.stored() < stored * 1.05 + 1000, "what lies in the packs is known again"
    after = world.contents()
    assert {name: found[-1] for name, found in after.items()} == {name: found[-1] for name, found in before.items()}
    assert len(list((world.archive / "damaged").iterdir())) == 2
    assert world.capture().read == 0


def test_without_any_manifest_the_packs_tell_what_they_hold(world: World) -> None:
    truth = rich(world)
    blocks = load(world.archive).blocks
    for place in COPIES:
        for path in manifests(world.archive, place).values():
            path.write_bytes(b"gone")
    state = load(world.archive)
    assert state.blocks == blocks
    assert {one.role for one in state.versions()} == {"shared"}, "no session is known, only records"
    stored = world.stored()
    assert world.capture().new == len(truth)
    assert world.stored() < stored + 4000, "only the dictionary is learned anew"
    assert verify(world.archive).problems == []


def test_a_damaged_head_hides_only_its_own_block(world: World) -> None:
    rich(world)
    (pack,) = packs(world.archive).values()
    every = [part for part, _ in scan(pack, 1)]
    flip(pack, every[3].offset + HEAD // 2)
    assert [part for part, _ in scan(pack, 1)] == [*every[:3], *every[4:]]
    (problem,) = verify(world.archive).problems
    assert (problem.offset, problem.harmless, problem.files) == (every[3].offset, True, ())
    world.capture()
    assert verify(world.archive).problems == []


def test_the_next_capture_keeps_anew_what_a_source_still_has(world: World, tmp_path: Path) -> None:
    """Whichever block it is, and without a verify before it: a file that was written to looks so."""
    truth = rich(world)
    shutil.copytree(world.archive, tmp_path / "whole")
    for number, block in enumerate(load(world.archive).blocks):
        shutil.rmtree(world.archive)
        shutil.copytree(tmp_path / "whole", world.archive)
        flip(packs(world.archive)[block.pack], block.offset + block.size - 5)
        before = given_out(world, tmp_path / f"before{number}")[1]
        outcome = world.capture()
        assert bool(outcome.mended) == bool(before)
        assert given_out(world, tmp_path / f"after{number}") == (truth, [])


def test_damage_that_left_no_trace_on_the_file_is_noted_by_verify(world: World, tmp_path: Path) -> None:
    truth = rich(world)
    (pack,) = packs(world.archive).values()
    flip(pack, load(world.archive).blocks[0].offset + 500)
    assert harmful(verify(world.archive))
    outcome = world.capture()
    assert outcome.mended >= 2
    assert outcome.read > outcome.stored > 0, "what was stored again took room, whatever went for it"
    assert verify(world.archive).problems == []
    assert given_out(world, tmp_path / "out") == (truth, [])


def test_older_versions_are_made_good_with_what_other_files_have(world: World) -> None:
    world.write(1, lines(1, 2, 3))
    world.capture()
    world.write(1, lines(9))
    world.write(2, lines(1, 2, 3))
    world.capture()
    flip(packs(world.archive)[1], load(world.archive).blocks[0].offset + HEAD + 120)
    assert world.capture().problems == []
    assert world.contents()[world.session(1).name] == [lines(1, 2, 3), lines(9)]
    assert verify(world.archive).problems == []


def test_what_no_source_has_stays_told_and_costs_nothing_again(world: World) -> None:
    world.write(1, lines(1))
    world.capture()
    world.write(2, lines(2))
    world.capture()
    world.session(1).unlink()
    flip(packs(world.archive)[1], load(world.archive).blocks[0].offset + HEAD + 100)
    for _ in range(3):
        outcome = world.capture()
        (problem,) = outcome.problems
        assert world.session(1).name in problem
        before = [(path, path.stat().st_mtime_ns) for path in files(world)]
    world.capture()
    assert [(path, path.stat().st_mtime_ns) for path in files(world)] == before
    world.write(1, lines(1))
    assert world.capture().problems == []
    assert verify(world.archive).problems == []


def test_a_grown_file_whose_beginning_is_damaged_stays_one_version(world: World) -> None:
    path = world.write(1, lines(1, 2))
    world.capture()
    flip(packs(world.archive)[1], load(world.archive).blocks[0].offset + HEAD + 100)
    with path.open("ab") as out:
        out.write(lines(3))
    world.capture()
    assert world.contents()[path.name] == [lines(1, 2, 3)]
    assert verify(world.archive).problems == []


@pytest.mark.parametrize("copies", [1, 2])
def test_a_dictionary_is_there_twice(world: World, tmp_path: Path, copies: int) -> None:
    truth = rich(world)
    (pack,) = packs(world.archive).values()
    for entry in load(world.archive).dictionaries[:copies]:
        flip(pack, entry.offset + HEAD + 50)
    got, told = given_out(world, tmp_path / "out")
    assert (got == truth) == (copies == 1)
    assert bool(told) == (copies == 2)
    assert len(verify(world.archive).problems) == copies
    world.capture()
    touched = {Path(name).name for one in verify(world.archive).problems for name in one.files}
    assert touched == ({world.session(3).name} if copies == 2 else set()), "only a version that no source has"
    assert given_out(world, tmp_path / "again") == (truth, [])


def test_a_pack_that_is_gone_is_one_problem(world: World, tmp_path: Path) -> None:
    truth = rich(world)
    packs(world.archive)[1].unlink()
    (problem,) = verify(world.archive).problems
    assert "gone" in problem.what
    assert {Path(name).name for name in problem.files} == set(truth)
    world.capture()
    got, told = given_out(world, tmp_path / "out")
    assert (got, told) == (truth, [])


def test_a_prune_carries_damage_along_and_loses_nothing_for_it(world: World) -> None:
    from clew.archive.pruning import Policy, plan, prune
    from clew.archive.writing import writer

    for number in range(4):
        world.write(number, lines(number))
        world.capture()
    world.write(0, lines(50))
    world.capture()
    flip(packs(world.archive)[1], load(world.archive).blocks[1].offset + HEAD + 100)
    with writer(world.archive) as open_writer:
        prune(open_writer, plan(open_writer.state, Policy(keep_versions=1), 0), repack=True)
    (problem,) = verify(world.archive).problems
    assert [Path(name).name for name in problem.files] == [world.session(1).name]
    assert world.capture().mended == 1
    assert verify(world.archive).problems == []
    assert sorted(world.contents()) == [world.session(number).name for number in range(4)]
