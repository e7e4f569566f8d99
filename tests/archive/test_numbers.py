"""Numbers of a manifest or a head that cannot be right are damage: they take no memory and no time."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from clew.archive.checking import verify
from clew.archive.layout import (
    CAPTURES,
    COPIES,
    PACKS,
    Manifest,
    manifest_path,
    pack_path,
    read_manifest,
    spell_manifest,
)
from clew.archive.parts import scan, spell_head
from clew.archive.state import load
from tests.archive.worlds import World, lines
from tests.cli.running import clew

LARGE = 1 << 40
replace = msgspec.structs.replace


def version_with(**fields: object) -> Callable[[Manifest], Manifest]:
    return lambda one: replace(one, versions=tuple(replace(version, **fields) for version in one.versions))


def block_with(**fields: object) -> Callable[[Manifest], Manifest]:
    return lambda one: replace(one, blocks=tuple(replace(block, **fields) for block in one.blocks))


CHANGES: dict[str, Callable[[Manifest], Manifest]] = {
    "runs": version_with(runs=(0, LARGE)),
    "odd runs": version_with(runs=(0,)),
    "negative run": version_with(runs=(-1, 2)),
    "place": version_with(place=9),
    "next chunk": lambda one: replace(one, next_chunk=LARGE),
    "count": block_with(count=LARGE),
    "count and next chunk": lambda one: replace(block_with(count=1 << 29)(one), next_chunk=1 << 30),
    "live": block_with(live=0),
    "first": block_with(first=LARGE),
    "size": block_with(size=LARGE),
    "offset": block_with(offset=-5),
    "pack": block_with(pack=-1),
}


@pytest.mark.parametrize("name", CHANGES)
def test_impossible_numbers_in_a_manifest_are_damage(world: World, tmp_path: Path, name: str) -> None:
    world.write(1, lines(1, 2))
    world.capture()
    changed = CHANGES[name](read_manifest(manifest_path(world.archive, 1))[0])
    for place in COPIES:
        manifest_path(world.archive, 1, place).write_bytes(spell_manifest(changed))
    assert [problem for problem in verify(world.archive).problems if not problem.harmless]
    for words in (("list",), ("restore", "--to", tmp_path / "out"), ("prune", "--keep-versions", "1", "--apply"), ()):
        assert clew("--home", world.home, "archive", *words, "--archive", world.archive).code in (0, 1, 3), words
    assert verify(world.archive).problems == []
    assert lines(1, 2) in [content for versions in world.contents().values() for content in versions]


def test_a_block_with_fewer_chunks_than_the_manifest_says_is_damage(world: World) -> None:
    world.write(1, lines(1, 2))
    world.capture()
    manifest = read_manifest(manifest_path(world.archive, 1))[0]
    changed = replace(block_with(count=3, live=3)(manifest), next_chunk=3)
    for place in COPIES:
        manifest_path(world.archive, 1, place).write_bytes(spell_manifest(changed))
    assert any("number of chunks" in problem.what for problem in verify(world.archive).problems)
    assert clew("archive", "prune", "--repack", "--apply", "--archive", world.archive).code == 3


def test_impossible_numbers_in_a_head_are_no_head(world: World) -> None:
    world.write(1, lines(1, 2))
    world.capture()
    key, pack = load(world.archive).key, pack_path(world.archive, 1)
    (block,) = load(world.archive).blocks
    for changed in (replace(block, first=1 << 62), replace(block, count=(1 << 32) - 1), replace(block, live=0)):
        raw = pack.read_bytes()
        pack.write_bytes(
            raw[: block.offset] + spell_head(changed, key) + raw[block.offset + len(spell_head(block, key)) :]
        )
        assert [one for one, _ in scan(pack, 1) if one.offset == block.offset] == []
    for place in COPIES:
        manifest_path(world.archive, 1, place).unlink()
    assert load(world.archive).next_chunk < 10


@pytest.mark.parametrize("number", ["9999999999", "9" * 60])
def test_a_manifest_with_a_huge_number_takes_no_time(world: World, number: str) -> None:
    world.write(1, lines(1, 2))
    world.capture()
    (world.archive / CAPTURES / f"{number}.manifest").write_bytes(b"nothing")
    problems = verify(world.archive).problems
    assert len(problems) < 4
    assert clew("archive", "list", "--archive", world.archive).code in (0, 3)
    assert clew("--home", world.home, "archive", "--archive", world.archive).code in (0, 3)
    assert world.contents()[world.session(1).name] == [lines(1, 2)]


def test_a_manifest_that_unpacks_to_gigabytes_is_damage(world: World) -> None:
    import hashlib

    import zstandard

    world.write(1, lines(1, 2))
    world.capture()
    body = zstandard.ZstdCompressor(level=1).compress(bytes(256 << 20))
    assert len(body) < 1 << 20
    for place in COPIES:
        manifest_path(world.archive, 1, place).write_bytes(hashlib.sha256(body).digest() + body)
    assert any("larger than any" in problem.what for problem in verify(world.archive).problems)


@pytest.mark.parametrize("body", [b"\x28\xb5\x2f\xfd", b"", b"text"])
def test_a_manifest_that_is_none_is_damage(world: World, body: bytes) -> None:
    import hashlib

    world.write(1, lines(1, 2))
    world.capture()
    for place in COPIES:
        manifest_path(world.archive, 1, place).write_bytes(hashlib.sha256(body).digest() + body)
    assert verify(world.archive).problems
    assert list((world.archive / PACKS).iterdir())
