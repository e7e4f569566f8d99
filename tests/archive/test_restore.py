"""Restored files have their bytes, modes and times, and nothing outside the folder is touched."""

import os
import stat
from pathlib import Path

import msgspec
import pytest

from clew.archive.archive import open_archive
from clew.archive.prune import rewrite_packs
from clew.archive.restore import choose, plan, restore
from clew.archive.writer import open_writer
from clew.errors import AmbiguousReference, ClewError, PathRefused, UnknownReference, WouldLose
from tests.archive.worlds import PROJECT, World, lines


def restored(world: World, target: Path, *references: str, force: bool = False, at_us: int | None = None) -> int:
    with open_archive(world.archive) as archive:
        return restore(archive, {target: plan(choose(archive, references, at_us))}, force).written


def named(world: World, target: Path, path: str) -> None:
    """Restore with one file under another name, as a hostile archive might have it."""
    with open_archive(world.archive) as archive:
        (version,) = archive.newest()
        is_absolute = path.startswith(("/", "\\")) or path[1:2] == ":"
        hostile = os.fsencode(path if is_absolute else f"{version.home.path}/{path}")
        restore(archive, {target: plan([msgspec.structs.replace(version, path=hostile)])})


@pytest.mark.skipif(os.name == "nt", reason="modes are POSIX")
def test_bytes_modes_and_times_come_back(world: World, tmp_path: Path) -> None:
    for number, mode in enumerate((0o600, 0o644, 0o755, 0o400)):
        path = world.write(number, lines(number))
        os.utime(path, ns=(1, 1_700_000_000_123_456_789 + number))
        path.chmod(mode)
    world.capture()
    assert restored(world, tmp_path / "out") == 4
    for number in range(4):
        was, now = world.session(number), tmp_path / "out" / PROJECT / world.session(number).name
        assert now.read_bytes() == was.read_bytes()
        assert stat.S_IMODE(now.stat().st_mode) == stat.S_IMODE(was.stat().st_mode)
        assert now.stat().st_mtime_ns == was.stat().st_mtime_ns


@pytest.mark.skipif(os.name == "nt", reason="modes are POSIX")
def test_R11_a_mode_is_never_wider_than_is_good(world: World, tmp_path: Path) -> None:
    world.write(1, lines(1)).chmod(0o4777)
    world.capture()
    restored(world, tmp_path / "out")
    mode = stat.S_IMODE((tmp_path / "out" / PROJECT / world.session(1).name).stat().st_mode)
    assert mode == 0o755


def test_some_sessions_by_their_id(world: World, tmp_path: Path) -> None:
    for number in (0x10, 0x11, 0x20000000):
        world.write(number, lines(number))
    world.capture()
    assert restored(world, tmp_path / "out", "2000") == 1
    assert restored(world, tmp_path / "out", "claude-code:00000010-") == 1
    assert restored(world, tmp_path / "short", "claude:00000010-") == 1
    with pytest.raises(AmbiguousReference):
        restored(world, tmp_path / "out", "0000001")
    for unknown in ("ffff", "codex:2000"):
        with pytest.raises(UnknownReference):
            restored(world, tmp_path / "out", unknown)


def test_an_earlier_version_by_its_time(world: World, tmp_path: Path) -> None:
    path = world.write(1, lines(1))
    world.capture()
    first = max(version.taken_us for version in world.versions())
    path.write_bytes(lines(2))
    world.capture()
    restored(world, tmp_path / "then", at_us=first)
    restored(world, tmp_path / "now")
    assert (tmp_path / "then" / PROJECT / path.name).read_bytes() == lines(1)
    assert (tmp_path / "now" / PROJECT / path.name).read_bytes() == lines(2)
    assert restored(world, tmp_path / "never", at_us=first - 10**9) == 0


def test_an_earlier_state_of_a_file_that_has_grown(world: World, tmp_path: Path) -> None:
    path = world.write(1, lines(1))
    times, contents, modified = [], [], []
    for number in (1, 2, 3):
        path.write_bytes(lines(*range(1, number + 1)))
        assert not world.capture().rewritten
        (version,) = world.versions()
        times.append(version.taken_us)
        contents.append(path.read_bytes())
        modified.append(path.stat().st_mtime_ns)
    with open_writer(world.archive) as writer:
        rewrite_packs(writer, writer.index.packs().keys(), list(writer.versions()))
    for number, (time_us, content, mtime_ns) in enumerate(zip(times, contents, modified, strict=True)):
        for references in ((), ("00000001",)):
            target = tmp_path / f"{number}-{len(references)}"
            assert restored(world, target, *references, at_us=time_us) == 1
            assert restored(world, target, *references, at_us=time_us) == 0
            assert (target / PROJECT / path.name).read_bytes() == content
            assert (target / PROJECT / path.name).stat().st_mtime_ns == mtime_ns
    with pytest.raises(UnknownReference, match="at that time"):
        restored(world, tmp_path / "never", "00000001", at_us=times[0] - 1)


def test_an_earlier_state_before_a_touch_and_before_a_truncation(world: World, tmp_path: Path) -> None:
    path = world.write(1, lines(1, 2))
    times: list[int] = []
    for content in (lines(1, 2), lines(1, 2), lines(1), lines(1, 2)):
        path.write_bytes(content)
        os.utime(path, ns=(len(times) * 10**9, len(times) * 10**9))
        world.capture()
        times.append(max(version.taken_us for version in world.versions()))
    for number, content in enumerate((lines(1, 2), lines(1, 2), lines(1), lines(1, 2))):
        assert restored(world, tmp_path / str(number), at_us=times[number]) == 1
        found = tmp_path / str(number) / PROJECT / path.name
        assert (found.read_bytes(), found.stat().st_mtime_ns) == (content, number * 10**9)


def test_the_number_of_earlier_states_is_limited(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.archive.records.MAX_EARLIER_STATES", 4)
    for number in range(1, 12):
        world.write(1, lines(*range(number)))
        world.capture()
    (version,) = world.versions()
    assert 2 <= len(version.earlier) <= 4
    assert [state.size for state in version.earlier] == sorted({state.size for state in version.earlier})


def test_R09_what_is_there_and_differs_is_only_replaced_by_force(world: World, tmp_path: Path) -> None:
    for number in (1, 2):
        world.write(number, lines(number))
    world.capture()
    place = tmp_path / "out" / PROJECT / world.session(2).name
    place.parent.mkdir(parents=True)
    place.write_bytes(b"mine")
    with pytest.raises(WouldLose):
        restored(world, tmp_path / "out")
    assert place.read_bytes() == b"mine"
    assert not (place.parent / world.session(1).name).exists()
    assert restored(world, tmp_path / "out", force=True) == 2
    assert restored(world, tmp_path / "out") == 0


def test_R08_damaged_content_is_not_written(world: World, tmp_path: Path) -> None:
    world.write(1, lines(1))
    world.capture()
    (pack,) = world.packs()
    content = bytearray(pack.read_bytes())
    content[150] ^= 1
    pack.write_bytes(content)
    assert restored(world, tmp_path / "out") == 0
    assert not list((tmp_path / "out").rglob("*.jsonl"))


HOSTILE = """../../.bashrc a/../../x a/b/../../../x ./x a//b a/./b ~/x $HOME/x %APPDATA%/x NUL CON.txt a/aux.json COM1
a:stream a\\b ..\\x a. a/b./c LPT9.log C:\\x C:x \\\\host\\share\\x \\\\?\\C:\\x""".split()


@pytest.mark.parametrize("path", HOSTILE)
def test_R01_R02_R03_a_name_that_could_lead_elsewhere_is_refused(world: World, tmp_path: Path, path: str) -> None:
    world.write(1, lines(1))
    world.capture()
    target = tmp_path / "deep" / "out"
    target.mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))
    try:
        named(world, target, path)
    except ClewError:
        assert sorted(tmp_path.rglob("*")) == before
    else:
        # Spellings that the path library itself makes plain may be written, but only inside.
        assert all(new.is_relative_to(target) for new in set(tmp_path.rglob("*")) - set(before))
        assert path in ("./x", "a//b", "a/./b")


def test_R02_files_outside_the_home_go_to_a_folder_of_their_own(world: World, tmp_path: Path) -> None:
    world.write(1, lines(1))
    world.capture()
    named(world, tmp_path / "out", "/etc/cron.d/x")
    assert (tmp_path / "out" / "outside-home" / "etc" / "cron.d" / "x").read_bytes() == lines(1)


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
@pytest.mark.parametrize("part", ["", "/projects", f"/projects/{Path(PROJECT).name}"])
def test_R04_a_link_on_the_way_is_not_followed(world: World, tmp_path: Path, part: str) -> None:
    world.write(1, lines(1))
    world.capture()
    outside, link = tmp_path / "outside", tmp_path / "out" / f".claude{part}"
    outside.mkdir()
    link.parent.mkdir(parents=True)
    link.symlink_to(outside)
    with pytest.raises(PathRefused):
        restored(world, tmp_path / "out")
    assert not list(outside.iterdir())


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_R04_R06_a_link_or_a_pipe_in_the_place_is_refused(world: World, tmp_path: Path) -> None:
    world.write(1, lines(1))
    world.capture()
    place, outside = tmp_path / "out" / PROJECT / world.session(1).name, tmp_path / "outside"
    outside.write_bytes(b"mine")
    place.parent.mkdir(parents=True)
    for kind in ("link", "pipe"):
        if kind == "link":
            place.symlink_to(outside)
        else:
            os.mkfifo(place)
        with pytest.raises(PathRefused):
            restored(world, tmp_path / "out", force=True)
        place.unlink()
    assert outside.read_bytes() == b"mine"


def test_R06_a_hard_link_is_replaced_and_not_written_through(world: World, tmp_path: Path) -> None:
    world.write(1, lines(1))
    world.capture()
    place, outside = tmp_path / "out" / PROJECT / world.session(1).name, tmp_path / "outside"
    outside.write_bytes(b"mine")
    place.parent.mkdir(parents=True)
    os.link(outside, place)
    restored(world, tmp_path / "out", force=True)
    assert (outside.read_bytes(), place.read_bytes()) == (b"mine", lines(1))


@pytest.mark.skipif(os.name == "nt", reason="they are the same file there")
@pytest.mark.parametrize(("one", "other"), [("A", "a"), ("\u00e9", "e\u0301")])
def test_R07_names_that_are_the_same_elsewhere_are_refused(world: World, tmp_path: Path, one: str, other: str) -> None:
    for name in (one, other):
        (world.project / f"{name}.jsonl").write_bytes(lines(1))
    world.capture()
    with pytest.raises(PathRefused):
        restored(world, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_homes_are_kept_apart(tmp_path: Path) -> None:
    for name in ("one", "two"):
        world = World(tmp_path / name)
        world.archive = tmp_path / "archive"
        world.write(1, lines(1))
        world.capture()
    assert restored(world, tmp_path / "out") == 2
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["home", "home-1"]
