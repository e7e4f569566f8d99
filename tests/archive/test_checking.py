"""Verify reads everything: no bit of an archive can change unseen."""

from pathlib import Path

import pytest

from clew.archive.checking import verify
from clew.archive.layout import HEALTH, manifest_path, manifests, packs
from clew.archive.pruning import Policy, plan, prune
from clew.archive.writing import writer
from clew.errors import ClewError
from tests.archive.worlds import World, lines


def small(world: World) -> list[Path]:
    world.write(1, lines(*range(3)))
    world.capture()
    world.write(2, lines(7, 8))
    world.write(1, lines(9))
    world.capture()
    return [path for path in world.archive.rglob("*") if path.is_file() and path.stat().st_size]


def finds(folder: Path) -> bool:
    try:
        return bool(verify(folder).problems)
    except ClewError:
        return True


def test_a_whole_archive_has_no_problems(world: World) -> None:
    small(world)
    proof = verify(world.archive)
    assert (proof.versions, proof.problems) == (3, [])


def test_every_flipped_byte_is_found(world: World) -> None:
    for path in small(world):
        whole = path.read_bytes()
        for at in range(len(whole)):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << at % 8)]) + whole[at + 1 :])
            assert finds(world.archive), f"{path.name}: byte {at}"
        path.write_bytes(whole)
    assert verify(world.archive).problems == []


def test_a_flipped_byte_in_a_dictionary_is_found(world: World) -> None:
    world.write(1, lines(*range(2000)))
    world.capture()
    (pack,) = packs(world.archive).values()
    whole = pack.read_bytes()
    for at in range(0, len(whole), 997):
        pack.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert finds(world.archive), at


def test_every_missing_file_is_found(world: World) -> None:
    for path in small(world):
        if path == manifest_path(world.archive, max(manifests(world.archive))) or path.name == HEALTH:
            continue  # a capture that is cut off has only the copy of its manifest, and health is found out anew
        whole = path.read_bytes()
        path.unlink()
        assert finds(world.archive), path.name
        path.write_bytes(whole)


def test_what_is_cut_off_is_found(world: World) -> None:
    for path in small(world):
        whole = path.read_bytes()
        for size in (0, 1, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:size])
            assert finds(world.archive), f"{path.name}: {size}"
        path.write_bytes(whole)


@pytest.mark.parametrize("written", [5, 20, 150])
def test_what_a_killed_capture_left_is_no_problem(world: World, written: int) -> None:
    """A part of a head or of a block, behind which nothing is put, and a manifest that was not renamed."""
    small(world)
    pack = packs(world.archive)[1]
    whole = pack.read_bytes()
    pack.write_bytes(whole + whole[:written])
    half = manifest_path(world.archive, 3).with_name(".00000003.manifest.0123456789ab.tmp")
    half.write_bytes(b"half")
    assert verify(world.archive).problems == []
    world.write(3, lines(11))
    world.capture()
    assert not half.exists()
    assert pack.read_bytes() == whole + whole[:written]
    assert verify(world.archive).problems == []
    assert world.contents()[world.session(3).name] == [lines(11)]


def test_files_that_are_not_clews_own_are_left_alone(world: World) -> None:
    small(world)
    strange = {
        world.archive / "packs" / "00000009.pack": b"not a pack",
        world.archive / "packs" / "1.pack": b"a copy that somebody made",
        world.archive / "captures" / "1.manifest": b"a copy that somebody made",
        world.archive / "captures" / "00000001.manifest.bak": b"a copy that somebody made",
        world.archive / "captures" / ".notes.tmp": b"notes",
        world.archive / "notes.tmp": b"notes",
        world.archive / "damaged" / "notes": b"notes",
    }
    (world.archive / "damaged").mkdir()
    for path, content in strange.items():
        path.write_bytes(content)
    (problem,) = verify(world.archive).problems
    assert (Path(problem.path).name, problem.harmless) == ("00000009.pack", True)
    world.write(3, lines(11))
    world.capture()
    with writer(world.archive) as open_writer:
        prune(open_writer, plan(open_writer.state, Policy(keep_versions=1), 0), repack=True)
    assert {path: path.read_bytes() for path in strange} == strange
    assert world.contents()[world.session(3).name] == [lines(11)]
