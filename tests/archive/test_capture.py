"""What a capture takes in: everything once, and what was there stays."""

import os
import stat
import sys
from pathlib import Path

import pytest

from clew.archive import capture, writer
from clew.archive.capture import source_home
from clew.archive.records import SourceHome
from clew.archive.verify import verify
from clew.archive.writer import open_writer
from clew.errors import Busy
from clew.host import Host
from tests.archive.worlds import World, lines


def names(world: World) -> list[str]:
    return sorted({Path(os.fsdecode(version.path)).name for version in world.versions()})


def test_every_file_of_a_session_is_taken(world: World) -> None:
    path = world.write(1, lines(1, 2))
    agent = world.project / path.stem / "subagents" / "agent-1.jsonl"
    agent.parent.mkdir(parents=True)
    agent.write_bytes(lines(3))
    agent.with_name("agent-1.meta.json").write_bytes(b"{}")
    backup = world.home / ".claude" / "file-history" / path.stem / "0123456789abcdef@v1"
    output = world.project / path.stem / "tool-results" / "long.txt"
    for place, content in ((backup, b"before\n"), (output, b"x" * 10)):
        place.parent.mkdir(parents=True)
        place.write_bytes(content)
    outcome = world.capture()
    assert (outcome.files, outcome.new, outcome.problems) == (5, 5, [])
    assert names(world) == sorted([path.name, "agent-1.jsonl", "agent-1.meta.json", "0123456789abcdef@v1", "long.txt"])
    assert world.contents()["0123456789abcdef@v1"] == [b"before\n"]


def test_copies_and_companions_of_other_agents_are_taken(world: World) -> None:
    sage = world.home / ".sage" / "sessions" / "s1"
    (sage / "backups").mkdir(parents=True)
    for name in ("messages.jsonl", "snapshots.jsonl", "metadata.json", "backups/b1"):
        (sage / name).write_bytes(b"{}\n")
    gemini = world.home / ".gemini" / "tmp" / "tide"
    (gemini / "chats").mkdir(parents=True)
    (gemini / "checkpoints").mkdir()
    (gemini / "chats" / "session-2026-01-01T10-00-abc.json").write_bytes(b'{"sessionId":"abc","messages":[]}')
    for place in (
        gemini / "checkpoints" / "c.json",
        gemini / ".project_root",
        world.home / ".gemini" / "projects.json",
    ):
        place.write_bytes(b"{}")
    world.capture(agents=("sage-agent", "gemini"))
    assert {"b1", "metadata.json", "snapshots.jsonl", "c.json", ".project_root", "projects.json"} <= set(names(world))


def test_an_unchanged_file_is_not_opened(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.write(1, lines(1, 2))
    world.capture()
    before = {path: path.read_bytes() for path in world.archive.rglob("*") if path.is_file()}
    monkeypatch.setattr("clew.archive.capture._open", lambda path: pytest.fail(f"{path} was opened"))
    outcome = world.capture()
    assert (outcome.unchanged, outcome.read, outcome.stored) == (1, 0, 0)
    assert {path: path.read_bytes() for path in world.archive.rglob("*") if path.is_file()} == before


def test_agents_are_asked_for_their_variables_once_per_home(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        world.write(number, lines(number))
    asked: list[Host] = []

    def counting(host: Host) -> SourceHome:
        asked.append(host)
        return source_home(host)

    monkeypatch.setattr("clew.archive.capture.source_home", counting)
    assert world.capture().new == 5
    assert len(asked) == 1


def test_a_grown_file_costs_its_new_bytes_and_stays_one_version(world: World) -> None:
    path = world.write(1, lines(*range(50)))
    world.capture()
    for _ in range(10):
        with path.open("ab") as out:
            out.write(os.urandom(500).hex().encode() + b"\n")
        outcome = world.capture()
        assert outcome.grown == 1
        assert outcome.stored < 3500
    assert world.contents()[path.name] == [path.read_bytes()]
    (version,) = world.versions()
    assert version.size == path.stat().st_size


def test_a_torn_line_that_is_completed_later(world: World) -> None:
    whole = lines(1, 2)
    path = world.write(1, whole[:-20])
    world.capture()
    with path.open("ab") as out:
        out.write(whole[-20:])
    assert world.capture().grown == 1
    assert world.contents()[path.name] == [whole]


@pytest.mark.parametrize("longer", [False, True])
def test_a_rewritten_file_is_a_new_version_and_the_old_one_stays(world: World, longer: bool) -> None:
    path = world.write(1, lines(1, 2, 3))
    world.capture()
    rewritten = lines(1, 9, 3) + (lines(4) if longer else b"")
    path.write_bytes(rewritten)
    assert world.capture().rewritten == 1
    assert world.contents()[path.name] == [lines(1, 2, 3), rewritten]


def test_S12_other_content_of_the_same_size_and_time_is_seen(world: World) -> None:
    path = world.write(1, lines(1))
    world.capture()
    was = path.stat()
    path.write_bytes(lines(2))
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert path.stat().st_size == was.st_size
    assert world.capture().rewritten == 1
    assert world.contents()[path.name] == [lines(1), lines(2)]


def test_a_deleted_file_stays_in_the_archive(world: World) -> None:
    path = world.write(1, lines(1))
    world.capture()
    path.unlink()
    world.capture()
    assert world.contents()[path.name] == [lines(1)]


def test_what_is_only_touched_is_no_new_version(world: World) -> None:
    path = world.write(1, lines(1))
    world.capture()
    os.utime(path, ns=(1, 1_000_000_000))
    assert world.capture().unchanged == 1
    (version,) = world.versions()
    assert version.mtime_ns == 1_000_000_000
    assert world.capture().read == 0


def test_resumed_copies_and_replayed_prefixes_cost_once(world: World) -> None:
    noise = [os.urandom(700).hex().encode() + b"\n" for _ in range(1000)]
    world.write(1, b"".join(noise))
    world.capture()
    before = world.stored()
    world.write(2, b"".join(noise))
    world.capture()
    assert world.stored() - before < 7000
    world.write(3, b"".join(noise[:600]) + lines(1) + b"".join(noise[600:]))
    world.capture()
    assert world.stored() - before < 50_000, "a few groups of records around the new one"
    assert verify(world.archive).problems == []


def test_what_was_added_and_not_committed_is_not_known_to_the_next_capture(world: World) -> None:
    world.write(1, lines(1))
    world.capture()
    with pytest.raises(KeyError), open_writer(world.archive) as opened:
        opened.add([lines(3)])
        raise KeyError
    world.write(2, lines(3))
    world.capture()
    assert verify(world.archive).problems == []
    assert world.contents()[world.session(2).name] == [lines(3)]


def test_an_image_that_many_records_show_costs_once(world: World) -> None:
    image = os.urandom(20_000).hex().encode()
    shown = [b'{"uuid":"%d","data":"%s","at":%d}\n' % (number, image, number) for number in range(12)]
    world.write(1, b"".join(shown[:6]))
    world.write(2, b"".join(shown[6:]))
    world.capture()
    assert world.stored() < 25_000


@pytest.mark.skipif(os.name == "nt", reason="modes are POSIX")
@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_S01_what_is_written_is_its_owners_alone(world: World, mask: int) -> None:
    world.write(1, lines(1))
    was = os.umask(mask)
    try:
        world.capture()
    finally:
        os.umask(was)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (world.archive, *world.archive.rglob("*")) if path.is_dir()}
    assert modes == {0o700}
    assert {stat.S_IMODE(path.stat().st_mode) for path in world.archive.rglob("*") if path.is_file()} == {0o600}


def test_S03_the_sources_are_left_alone(world: World) -> None:
    world.write(1, lines(1, 2))
    before = {path: (path.stat().st_mtime_ns, path.stat().st_mode) for path in world.home.rglob("*")}
    world.capture()
    assert {path: (path.stat().st_mtime_ns, path.stat().st_mode) for path in world.home.rglob("*")} == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_P11_a_pipe_or_a_closed_file_is_told_and_stops_nothing(world: World) -> None:
    os.mkfifo(world.session(1))
    world.write(2, lines(1))
    outcome = world.capture()
    assert len(outcome.problems) == 1
    assert "not a regular file" in outcome.problems[0]
    assert names(world) == [world.session(2).name]


def test_a_file_that_goes_while_it_is_read_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    path = world.write(1, lines(1))
    world.write(2, lines(2))
    opened = capture._open

    def gone(name: Path) -> object:
        if name == path:
            raise FileNotFoundError(2, "No such file or directory", str(name))
        return opened(name)

    monkeypatch.setattr(capture, "_open", gone)
    outcome = world.capture()
    assert outcome.problems == [f"{path}: No such file or directory"]
    assert names(world) == [world.session(2).name]


def test_a_large_capture_makes_several_packs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "PACK_BYTES", 2000)
    monkeypatch.setattr(writer, "BLOCK_BYTES", 1000)
    for number in range(40):
        world.write(number, os.urandom(1500).hex().encode())
    world.capture()
    assert len(world.packs()) > 5
    assert len(world.contents()) == 40
    assert verify(world.archive).problems == []


def test_who_writes_holds_the_lock(world: World) -> None:
    world.write(1, lines(1))
    with open_writer(world.archive), pytest.raises(Busy):
        world.capture()
    assert world.capture().new == 1


@pytest.mark.skipif(sys.platform == "win32", reason="names are text there")
def test_R12_names_that_are_no_text_are_kept(world: World) -> None:
    folder = os.fsencode(world.project) + b"/odd\xff\n"
    Path(os.fsdecode(folder)).mkdir()
    with open(folder + b"/1.jsonl", "wb") as out:
        out.write(lines(1))
    world.capture()
    assert any(b"odd\xff\n" in version.path for version in world.versions())
