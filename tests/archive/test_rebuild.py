"""The index is rebuilt from the packs, whatever happened to it; packs are never taken for nothing."""

import os
import shutil
from pathlib import Path

import pytest

from clew.archive.archive import open_archive
from clew.archive.packs import read_pack
from clew.archive.prune import Policy, plan, prune
from clew.archive.records import CHECKSUM, INDEX, Version
from clew.archive.verify import verify
from clew.archive.writer import open_writer
from clew.migrate.scrub import is_archived
from tests.archive.worlds import World, lines
from tests.cli.running import clew


def several(world: World) -> dict[str, list[bytes]]:
    """Archive several captures and a version that no source has any more; returns all versions."""
    world.write(1, lines(*range(300)))
    world.write(2, os.urandom(4000).hex().encode() + b"\n" + lines(5))
    world.capture()
    for number in range(3, 6):
        world.write(number, lines(number * 1000, number * 1000 + 1))
        world.capture()
    world.write(3, lines(70))
    with world.session(1).open("ab") as out:
        out.write(lines(900))
    world.capture()
    return world.contents()


def rows(world: World) -> list[Version]:
    with open_archive(world.archive) as archive:
        return [version for _, version in archive.index.version_rows()]


@pytest.mark.parametrize("change", ["remove", "empty", "garbage", "half", "no checksum", "everything but the packs"])
def test_the_index_is_rebuilt_by_the_next_capture(world: World, change: str) -> None:
    before = several(world)
    known = rows(world)
    shutil.rmtree(world.project)
    index = world.archive / INDEX
    if change == "remove":
        index.unlink()
    elif change == "no checksum":
        (world.archive / CHECKSUM).unlink()
    elif change == "everything but the packs":
        for path in world.archive.iterdir():
            if path.is_file():
                path.unlink()
    else:
        content = index.read_bytes()
        index.write_bytes({"empty": b"", "garbage": b"x" * 5000, "half": content[: len(content) // 2]}[change])
    assert world.contents() == before
    assert clew("archive", "list", "--archive", world.archive).code == 0
    world.capture()
    assert world.contents() == before
    assert rows(world) == known
    assert verify(world.archive).problems == []


@pytest.mark.slow
def test_an_archive_without_an_index_is_not_taken_for_none(world: World, tmp_path: Path) -> None:
    before = several(world)
    for name in (INDEX, CHECKSUM):
        (world.archive / name).unlink()
    ran = clew("archive", "verify", "--archive", world.archive)
    assert (ran.code, "there is no archive" in ran.err) == (1, False)
    assert clew("archive", "restore", "--to", tmp_path / "out", "--archive", world.archive).code == 0
    restored = {path.name: path.read_bytes() for path in (tmp_path / "out").rglob("*.jsonl")}
    assert restored == {name: versions[-1] for name, versions in before.items()}
    shutil.rmtree(world.project)
    packs = {path: path.read_bytes() for path in world.packs()}
    assert clew("--home", world.home, "archive", "--archive", world.archive).code == 0
    assert {path: path.read_bytes() for path in world.packs()} == packs


def test_an_index_older_than_the_packs_is_brought_up_to_date(world: World, tmp_path: Path) -> None:
    """As after an index was restored from a backup, or after a kill between the pack and the index."""
    several(world)
    for name in (INDEX, CHECKSUM):
        shutil.copy(world.archive / name, tmp_path / name)
    world.write(8, lines(80))
    world.capture()
    before = world.contents()
    for name in (INDEX, CHECKSUM):
        shutil.copy(tmp_path / name, world.archive / name)
    assert world.contents() == before
    assert verify(world.archive).problems == []
    world.session(8).unlink()
    world.capture()
    assert world.contents() == before
    assert verify(world.archive).problems == []


def test_an_index_from_before_a_prune_is_brought_up_to_date(world: World, tmp_path: Path) -> None:
    several(world)
    for name in (INDEX, CHECKSUM):
        shutil.copy(world.archive / name, tmp_path / name)
    pruned(world)
    before = world.contents()
    for name in (INDEX, CHECKSUM):
        shutil.copy(tmp_path / name, world.archive / name)
    assert world.contents() == before
    world.capture()
    assert world.contents() == before
    assert verify(world.archive).problems == []


def pruned(world: World) -> None:
    with open_writer(world.archive) as writer:
        prune(writer, plan(writer, Policy(keep_versions=1), 0), repack=True)


@pytest.mark.parametrize("index", ["there", "gone"])
def test_what_a_prune_removed_does_not_come_back(world: World, index: str) -> None:
    """Also where the process was killed before it could remove the old packs."""
    several(world)
    old = {path: path.read_bytes() for path in world.packs()}
    pruned(world)
    before = world.contents()
    for path, content in old.items():
        path.write_bytes(content)
    if index == "gone":
        (world.archive / INDEX).unlink()
    assert world.contents() == before
    world.capture()
    assert world.contents() == before
    assert not any(path.exists() for path in old)
    assert verify(world.archive).problems == []


def test_a_prune_that_was_killed_before_its_pack_was_in_the_index_is_finished(world: World, tmp_path: Path) -> None:
    several(world)
    shutil.copytree(world.archive, tmp_path / "before")
    pruned(world)
    (new,) = world.packs()
    expected, content = world.contents(), new.read_bytes()
    shutil.rmtree(world.archive)
    shutil.copytree(tmp_path / "before", world.archive)
    new.write_bytes(content)
    assert verify(world.archive).problems == []
    world.capture()
    assert world.packs() == [new]
    assert world.contents() == expected


@pytest.mark.slow
def test_a_damaged_pack_replaces_no_other(world: World) -> None:
    before = several(world)
    old = {path: path.read_bytes() for path in world.packs()}
    pruned(world)
    (new,) = world.packs()
    damaged = bytearray(new.read_bytes())
    damaged[len(damaged) // 3] ^= 1
    new.write_bytes(damaged)
    for path, content in old.items():
        path.write_bytes(content)
    (world.archive / INDEX).unlink()
    found = world.contents()
    assert {name: versions[-1] for name, versions in found.items()} == {
        name: versions[-1] for name, versions in before.items()
    }
    world.capture()
    assert all(path.read_bytes() == content for path, content in old.items())


def test_packs_of_another_archive_are_added(world: World, tmp_path: Path) -> None:
    other = World(tmp_path / "other")
    other.write(1, lines(1, 2, 3))
    other.capture()
    world.write(2, lines(4))
    world.capture()
    for path in other.packs():
        shutil.copy(path, world.archive / "packs")
    expected = {world.session(1).name: [lines(1, 2, 3)], world.session(2).name: [lines(4)]}
    assert world.contents() == expected
    world.capture()
    assert world.contents() == expected
    assert verify(world.archive).problems == []


@pytest.mark.slow
def test_a_pack_that_cannot_be_read_is_never_removed(world: World) -> None:
    several(world)
    pack = world.packs()[0]
    body = bytes(byte ^ 0x55 for byte in pack.read_bytes())
    pack.write_bytes(body)
    (world.archive / INDEX).unlink()
    shutil.rmtree(world.project)
    for words in ((), ("prune", "--keep-versions", "1", "--apply"), ("prune", "--repack", "--apply"), ("verify",)):
        code = clew("--home", world.home, "archive", *words, "--archive", world.archive).code
        assert pack.read_bytes() == body, words
    assert code == 1


def test_the_records_of_a_pack_are_there_twice(world: World) -> None:
    before = several(world)
    pack = world.packs()[0]
    whole = pack.read_bytes()
    copies = [block for block in read_pack(world.archive, pack.stem).blocks if block.records is not None]
    assert len(copies) == 2
    for block in copies:
        at = block.offset + block.size - 5
        pack.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        (world.archive / INDEX).unlink(missing_ok=True)
        assert world.contents() == before


def test_an_archive_with_an_unreadable_pack_may_hold_any_session(world: World) -> None:
    several(world)
    assert not is_archived(world.archive, [("codex", "x")])
    assert is_archived(world.archive, [("claude-code", world.session(1).stem)])
    (world.archive / INDEX).unlink()
    assert not is_archived(world.archive, [("codex", "x")])
    world.packs()[0].write_bytes(b"damaged")
    assert is_archived(world.archive, [("codex", "x")])


def test_an_archive_of_an_older_format_is_refused_and_left_alone(world: World) -> None:
    (world.archive / "captures").mkdir(parents=True)
    (world.archive / "packs").mkdir()
    (world.archive / "captures" / "00000001.manifest").write_bytes(b"manifest")
    (world.archive / "packs" / "00000001.pack").write_bytes(b"pack")
    world.write(1, lines(1))
    before = sorted(world.archive.rglob("*"))
    for words in ((), ("list",), ("verify",), ("restore", "--to", "x"), ("prune", "--repack", "--apply")):
        ran = clew("--home", world.home, "archive", *words, "--archive", world.archive)
        assert (ran.code, len(ran.err.splitlines())) == (4, 1)
        assert "older clew" in ran.err
    assert sorted(world.archive.rglob("*")) == before
    assert is_archived(world.archive, [("codex", "x")])
