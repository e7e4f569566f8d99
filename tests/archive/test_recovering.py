"""Manifests that are missing, damaged or older than the packs cost names of files at most: no record is lost."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from clew.archive.checking import verify
from clew.archive.layout import COPIES, manifests, packs
from clew.archive.pruning import Policy, plan, prune
from clew.archive.reading import Reader
from clew.archive.recovering import recovered
from clew.archive.state import load
from clew.archive.writing import writer
from clew.errors import SourceUnreadable
from clew.migrate.scrub import is_archived
from tests.archive.worlds import World, line, lines
from tests.cli.running import clew


def several(world: World) -> dict[str, bytes]:
    """Several captures with a dictionary and a version that no source has any more; returns the newest content."""
    world.write(1, lines(*range(900)))
    world.write(2, os.urandom(4000).hex().encode() + b"\n" + lines(5))
    world.capture()
    for number in range(3, 6):
        world.write(number, lines(number * 1000, number * 1000 + 1))
        world.capture()
    world.write(3, lines(70))
    world.capture()
    return {path.name: path.read_bytes() for path in world.project.iterdir()}


def manifest_files(world: World) -> list[Path]:
    return [path for place in ("captures", "packs") for path in manifests(world.archive, place).values()]


def records(folder: Path) -> set[bytes]:
    """All lines of all files below a folder."""
    return {one for path in folder.rglob("*") if path.is_file() for one in path.read_bytes().splitlines()}


def all_records() -> set[bytes]:
    """What `several` has ever written, without the line that is random."""
    numbers = {*range(900), 5, *(number * 1000 + more for number in range(3, 6) for more in (0, 1)), 70}
    return {line(number, "The tide rises twice a day. " * 20).rstrip(b"\n") for number in numbers}


def pack_bytes(world: World) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in packs(world.archive).values()}


def archive(world: World, *words: str | Path) -> tuple[int, str]:
    ran = clew("--home", world.home, "archive", "--archive", world.archive, *words)
    return ran.code, ran.err


def held(world: World) -> set[bytes]:
    """The lines of all versions of all files that the archive has; none of them is damaged."""
    return {one for versions in world.contents().values() for body in versions for one in body.splitlines()}


def check_restorable(world: World, target: Path) -> None:
    """Everything can be restored, now and after the next capture, and no pack loses a byte."""
    before = pack_bytes(world)
    assert archive(world, "list")[0] in (0, 1)
    assert archive(world, "restore", "--to", target / "first")[0] == 0
    assert records(target / "first") <= held(world)
    assert all_records() <= held(world)
    assert pack_bytes(world) == before
    code, said = archive(world)
    assert code in (0, 3), said
    for name, content in before.items():
        assert pack_bytes(world)[name].startswith(content)
    assert archive(world, "verify") == (0, archive(world, "verify")[1])
    assert archive(world, "restore", "--to", target / "second")[0] == 0
    assert all_records() <= held(world)
    assert len(held(world) - records(target / "second")) <= 2, "only what an older version had"
    assert archive(world, "restore", "--to", target / "second")[0] == 0, "what is there is the same"


def test_no_manifest_is_left(world: World, tmp_path: Path) -> None:
    several(world)
    for path in manifest_files(world):
        path.unlink()
    for number in (1, 4):
        world.session(number).unlink()
    code, said = archive(world, "verify")
    assert (code, "all manifests are missing" in said, "makes one" in said) == (1, True, False)
    code, said = archive(world, "restore", "--to", tmp_path / "early")
    assert code == 0 and "all manifests are missing" in said
    check_restorable(world, tmp_path)
    assert "recovered/" in archive(world, "list")[1]
    known = {path.name for path in (tmp_path / "second").rglob("*.jsonl")}
    assert known == {world.session(number).name for number in (2, 3, 5)}, "files that have a source have their names"


def test_no_manifest_is_left_and_all_sources_are_there(world: World, tmp_path: Path) -> None:
    truth = several(world)
    for path in manifest_files(world):
        path.unlink()
    check_restorable(world, tmp_path)
    assert {path.name: path.read_bytes() for path in (tmp_path / "second").rglob("*.jsonl")} == truth
    (left,) = (tmp_path / "second" / "recovered").iterdir()
    assert left.read_bytes() == lines(3000, 3001), "only the version that no source has any more"


@pytest.mark.parametrize("damage", ["remove", "truncate", "empty"])
@pytest.mark.parametrize("chosen", ["first", "middle", "newest", "newest two", "all but the first", "all but the last"])
def test_some_manifests_are_lost(world: World, tmp_path: Path, chosen: str, damage: str) -> None:
    """Those that are left tell less than the packs hold, as after a backup was restored."""
    several(world)
    numbers = sorted(manifests(world.archive))
    lost = {
        "first": numbers[:1],
        "middle": numbers[2:3],
        "newest": numbers[-1:],
        "newest two": numbers[-2:],
        "all but the first": numbers[1:],
        "all but the last": numbers[:-1],
    }[chosen]
    for path in manifest_files(world):
        if int(path.stem) in lost:
            if damage == "remove":
                path.unlink()
            else:
                path.write_bytes(path.read_bytes()[: -3 if damage == "truncate" else 0])
    for number in (1, 3, 4):
        world.session(number).unlink()
    check_restorable(world, tmp_path)


def test_a_pack_whose_manifests_are_missing_beside_others(world: World, tmp_path: Path) -> None:
    """The second pack is named by the newest manifest alone."""
    several(world)
    world.write(6, lines(6000))
    before = set(packs(world.archive))
    capture_into_new_pack(world)
    (fresh,) = set(packs(world.archive)) - before
    for path in manifest_files(world):
        if int(path.stem) == max(manifests(world.archive)):
            path.unlink()
    world.session(6).unlink()
    content = packs(world.archive)[fresh].read_bytes()
    check_restorable(world, tmp_path)
    assert packs(world.archive)[fresh].read_bytes().startswith(content)
    assert lines(6000).strip() in records(tmp_path / "second")


def capture_into_new_pack(world: World) -> None:
    from clew.archive import writing

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "PACK_BYTES", 1)
        world.capture()


def every_file(world: World) -> list[Path]:
    return sorted(path for path in world.archive.rglob("*") if path.is_file() and path.stat().st_size)


@pytest.mark.parametrize("change", ["remove", "empty", "half", "one byte less"])
def test_each_file_in_turn(tmp_path: Path, change: str) -> None:
    """Whichever file is damaged: what no damage touches can be restored, and no other pack is touched."""
    world = World(tmp_path / "world")
    several(world)
    capture_into_new_pack_of(world, 6)
    for number in (1, 4, 6):
        world.session(number).unlink()
    shutil.copytree(world.archive, tmp_path / "whole")
    for at, path in enumerate(every_file(world)):
        shutil.rmtree(world.archive)
        shutil.copytree(tmp_path / "whole", world.archive)
        size = path.stat().st_size
        if change == "remove":
            path.unlink()
        else:
            os.truncate(path, {"empty": 0, "half": size // 2, "one byte less": size - 1}[change])
        others = {name: body for name, body in pack_bytes(world).items() if name != path.name}
        before = readable(world)
        archive(world)
        for name, body in others.items():
            assert pack_bytes(world)[name].startswith(body) or path.suffix == ".pack", path
        assert before <= readable(world), path
        if path.suffix != ".pack":
            assert archive(world, "verify")[0] == 0, path
            assert all_records() <= before
            assert archive(world, "restore", "--to", tmp_path / f"out{at}")[0] == 0


def capture_into_new_pack_of(world: World, number: int) -> None:
    world.write(number, lines(number * 1000))
    capture_into_new_pack(world)


def readable(world: World) -> set[bytes]:
    """The lines of all versions that are whole."""
    found: set[bytes] = set()
    reader = Reader(world.archive)
    for version in reader.state.versions():
        with suppress(SourceUnreadable, FileNotFoundError):
            found.update(reader.content(version).splitlines())
    reader.close()
    return found


def test_packs_that_hold_nothing_readable_stay(world: World) -> None:
    several(world)
    for path in manifest_files(world):
        path.unlink()
    (pack,) = packs(world.archive).values()
    body = bytes(byte ^ 0x55 for byte in pack.read_bytes())
    pack.write_bytes(body)
    assert archive(world, "verify")[0] == 1
    archive(world)
    assert pack.read_bytes() == body
    code, said = archive(world, "verify")
    assert code == 1 and "00000001.pack: no manifest names this pack" in said
    assert len(world.contents()) == 5


def test_a_pack_of_another_archive_is_not_taken_in(world: World, tmp_path: Path) -> None:
    other = World(tmp_path / "other")
    other.write(1, lines(1, 2, 3))
    other.capture()
    world.write(2, lines(4))
    world.capture()
    body = packs(other.archive)[1].read_bytes()
    (world.archive / "packs" / "00000002.pack").write_bytes(body)
    assert "00000002.pack" in archive(world, "verify")[1]
    world.write(3, lines(5))
    world.capture()
    assert packs(world.archive)[2].read_bytes() == body
    assert sorted(world.contents()) == [world.session(2).name, world.session(3).name]


def manifests_from_another_archive(world: World, other: World) -> bytes:
    """Put the manifests of another archive in the place of this one's; returns the bytes of the first pack."""
    for path in manifest_files(world):
        path.unlink()
    for path in manifest_files(other):
        shutil.copy(path, world.archive / path.parent.name)
    return packs(world.archive)[1].read_bytes()


@pytest.mark.parametrize("sources", ["there", "gone"])
def test_a_pack_with_another_key_is_never_given_up(world: World, tmp_path: Path, sources: str) -> None:
    """Neither by a capture nor by any prune, although the manifests name the pack and its parts look damaged."""
    truth = several(world)
    own = {place: [path.read_bytes() for path in manifests(world.archive, place).values()] for place in COPIES}
    other = World(tmp_path / "other")
    shutil.copytree(world.home, other.home, dirs_exist_ok=True)
    other.capture()
    body = manifests_from_another_archive(world, other)
    if sources == "gone":
        shutil.rmtree(world.project)
    for words in (("verify",), (), ("prune", "--keep-versions", "1", "--apply"), ("prune", "--repack", "--apply")):
        archive(world, *words)
        assert packs(world.archive)[1].read_bytes() == body, words
    archive(world, "prune", "--keep-days", "0.000001", "--repack", "--apply")
    assert packs(world.archive)[1].read_bytes() == body
    code, said = archive(world, "verify")
    assert code == 1 and "00000001.pack: it holds parts of another archive" in said
    assert "moves it to damaged/" not in said
    for path in manifest_files(world):
        path.unlink()
    for place, bodies in own.items():
        for number, content in enumerate(bodies, 1):
            (world.archive / place / f"{number:08}.manifest").write_bytes(content)
    assert {name: versions[-1] for name, versions in world.contents().items()} == truth


def test_a_pack_with_another_key_stays_where_the_manifest_says_that_it_was_given_up(
    world: World, tmp_path: Path
) -> None:
    several(world)
    other = World(tmp_path / "other")
    several(other)
    with writer(other.archive) as open_writer:
        prune(open_writer, plan(open_writer.state, Policy(), 0), repack=True)
    body = manifests_from_another_archive(world, other)
    shutil.copy(packs(other.archive)[2], world.archive / "packs")
    code, said = archive(world, "verify")
    assert code == 1 and "00000001.pack" in said
    archive(world)
    assert packs(world.archive)[1].read_bytes() == body


def test_a_pack_that_holds_nothing_readable_is_not_given_up(world: World) -> None:
    several(world)
    (pack,) = packs(world.archive).values()
    body = bytes(byte ^ 0x55 for byte in pack.read_bytes())
    pack.write_bytes(body)
    shutil.rmtree(world.project)
    archive(world)
    archive(world, "prune", "--keep-versions", "1", "--repack", "--apply")
    assert pack.read_bytes() == body
    code, said = archive(world, "verify")
    assert code == 1 and "00000001.pack: it holds parts of another archive, or none that can be read" in said


def test_what_a_prune_dropped_does_not_come_back(world: World) -> None:
    """Also where the process was killed before it could remove the pack."""
    several(world)
    old = packs(world.archive)[1].read_bytes()
    with writer(world.archive) as open_writer:
        prune(open_writer, plan(open_writer.state, Policy(keep_versions=1), 0))
    (world.archive / "packs" / "00000001.pack").write_bytes(old)
    assert verify(world.archive).problems == []
    assert not recovered(load(world.archive))
    world.capture()
    assert list(packs(world.archive)) == [2]
    assert not recovered(load(world.archive))


def test_a_prune_that_was_killed_leaves_nothing_behind(world: World) -> None:
    """Its packs hold nothing of their own, whole or cut short, so the next capture removes them."""
    truth = several(world)
    shutil.copytree(world.archive, world.archive.parent / "whole")
    with writer(world.archive) as open_writer:
        prune(open_writer, plan(open_writer.state, Policy(), 0), repack=True)
    (new,) = packs(world.archive).values()
    body = new.read_bytes()
    for size in (len(body), len(body) - 1, len(body) // 2, 30, 0):
        shutil.rmtree(world.archive)
        shutil.copytree(world.archive.parent / "whole", world.archive)
        (world.archive / "packs" / new.name).write_bytes(body[:size])
        assert verify(world.archive).problems == []
        world.capture()
        assert list(packs(world.archive)) == [1], size
        assert {name: found[-1] for name, found in world.contents().items()} == truth


@pytest.mark.parametrize("old_pack", ["gone", "damaged", "cut short"])
def test_manifests_from_before_a_prune_find_what_it_moved(world: World, tmp_path: Path, old_pack: str) -> None:
    """As where the manifests come from an older backup than the packs."""
    truth = several(world)
    shutil.copytree(world.archive, tmp_path / "older")
    with writer(world.archive) as open_writer:
        prune(open_writer, plan(open_writer.state, Policy(), 0), repack=True)
    for path in manifest_files(world):
        path.unlink()
    for place in ("captures", "packs"):
        for path in manifests(tmp_path / "older", place).values():
            shutil.copy(path, world.archive / place)
    old = packs(tmp_path / "older")[1].read_bytes()
    if old_pack == "damaged":
        (world.archive / "packs" / "00000001.pack").write_bytes(bytes(len(old)))
    elif old_pack == "cut short":
        (world.archive / "packs" / "00000001.pack").write_bytes(old[:100])
    moved = packs(world.archive)[2].read_bytes()
    for path in world.project.iterdir():
        path.unlink()
    for _ in range(2):
        found = world.contents()
        assert {name: versions[-1] for name, versions in found.items()} == truth
        assert found[world.session(3).name][0] == lines(3000, 3001)
        world.capture()
    assert packs(world.archive)[2].read_bytes() == moved


def test_a_folder_with_the_name_of_a_pack_is_left_alone(world: World) -> None:
    several(world)
    (world.archive / "packs" / "00000007.pack" / "inside").mkdir(parents=True)
    (world.archive / "captures" / "00000000.manifest" / "inside").mkdir(parents=True)
    assert verify(world.archive).problems == []
    world.capture()
    assert (world.archive / "packs" / "00000007.pack" / "inside").is_dir()
    assert (world.archive / "captures" / "00000000.manifest" / "inside").is_dir()


def test_a_redundant_pack_stays_while_the_other_copy_is_damaged(world: World) -> None:
    several(world)
    old = packs(world.archive)[1].read_bytes()
    with writer(world.archive) as open_writer:
        prune(open_writer, plan(open_writer.state, Policy(), 0), repack=True)
        open_writer.state.retired.clear()
    (pack,) = packs(world.archive).values()
    block = load(world.archive).blocks[0]
    body = bytearray(pack.read_bytes())
    body[block.offset + block.size - 5] ^= 1
    pack.write_bytes(body)
    copy = world.archive / "packs" / "00000009.pack"
    copy.write_bytes(old)
    assert archive(world)[0] in (0, 3)
    assert copy.read_bytes() == old


def test_recovered_records_survive_damage_elsewhere_and_a_repack(world: World, tmp_path: Path) -> None:
    several(world)
    for path in manifest_files(world):
        path.unlink()
    for number in (1, 3, 4):
        world.session(number).unlink()
    archive(world)
    # Damage makes the next capture write the packs anew.
    (pack,) = packs(world.archive).values()
    block = next(one for one in load(world.archive).blocks if one.first)
    with pack.open("r+b") as stream:
        stream.seek(block.offset + 20)
        stream.write(b"?")
    archive(world)
    with writer(world.archive) as open_writer:
        prune(open_writer, plan(open_writer.state, Policy(keep_versions=1, keep_days=10), 0), repack=True)
    assert archive(world, "verify")[0] == 0
    assert archive(world, "restore", "--to", tmp_path / "out")[0] == 0
    assert all_records() <= records(tmp_path / "out")


def test_bytes_that_belong_to_nothing_are_kept_when_packs_are_written_anew(world: World) -> None:
    several(world)
    (pack,) = packs(world.archive).values()
    with pack.open("ab") as stream:
        stream.write(b"somebody may want this")
    (problem,) = verify(world.archive).problems
    assert problem.harmless and "belongs to nothing" in problem.what
    with writer(world.archive) as open_writer:
        prune(open_writer, plan(open_writer.state, Policy(), 0), repack=True)
    (kept,) = (world.archive / "damaged").iterdir()
    assert kept.read_bytes() == b"somebody may want this"
    assert verify(world.archive).problems == []


def test_an_archive_that_lost_manifests_may_hold_any_session(world: World) -> None:
    several(world)
    assert not is_archived(world.archive, [("codex", "x")])
    for path in manifest_files(world):
        path.unlink()
    assert is_archived(world.archive, [("codex", "x")])
    world.session(1).unlink()
    archive(world)
    assert is_archived(world.archive, [("codex", "x")])


def test_the_sessions_of_an_archive_are_read_while_records_are_recovered(world: World) -> None:
    several(world)
    for path in manifest_files(world):
        path.unlink()
    world.session(1).unlink()
    archive(world)
    world.session(2).unlink()
    from clew.archive.cached import archived_hosts
    from clew.archive.sessions import opened, sessions

    hosts, problems = archived_hosts(world.archive)
    assert (len(hosts), problems) == (1, [])
    with opened(world.archive) as reader:
        assert {one.agent for one in sessions(reader)} == {"claude-code"}
