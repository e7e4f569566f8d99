"""The sessions of an archive for who reads them elsewhere: all of them, as they were last seen, wherever that was."""

import hashlib
import shutil
from pathlib import Path

import pytest

from clew.archive.archive import open_archive
from clew.archive.packs import HEADER_BYTES
from clew.archive.sessions import sessions
from clew.errors import SourceUnreadable
from clew.sources.mirror import Mirror
from tests.archive.worlds import World, lines


def test_every_session_with_its_files(world: World) -> None:
    path = world.write(1, lines(1))
    world.capture()
    path.write_bytes(lines(2, 3))
    backup = world.home / ".claude" / "file-history" / path.stem / "0123456789abcdef@v1"
    backup.parent.mkdir(parents=True)
    backup.write_bytes(b"before\n")
    world.write(2, lines(4))
    world.capture()
    shutil.copytree(world.archive, world.archive.with_name("elsewhere"))
    shutil.rmtree(world.home)
    with open_archive(world.archive.with_name("elsewhere")) as archive:
        first, second = sorted(sessions(archive), key=lambda one: one.id)
        assert (first.agent, first.id, first.path) == ("claude-code", path.stem, str(path))
        assert (first.home.kind, first.home.path) == ("local", str(world.home))
        assert [(file.path, file.role) for file in first.files] == [(str(path), "main"), (str(backup), "copy")]
        assert [file.read() for file in first.files] == [lines(2, 3), b"before\n"]
        assert b"".join(first.files[0].pieces()) == lines(2, 3)
        assert first.files[0].digest == hashlib.sha256(lines(2, 3)).digest()
        assert first.size == len(lines(2, 3)) + 7
        assert [file.read() for file in second.files] == [lines(4)]


def test_sessions_of_other_machines_and_what_they_share(tmp_path: Path) -> None:
    mirror = Mirror(tmp_path / "mirror", "box")
    world = World(tmp_path / "world")
    chats = mirror.place("/home/ada/.gemini/tmp/tide/chats/session-2026-01-01T10-00-abc.json")
    chats.parent.mkdir(parents=True)
    chats.write_bytes(b'{"sessionId":"abc","messages":[]}')
    mirror.place("/home/ada/.gemini/projects.json").write_bytes(b"{}")
    world.host = mirror.host("/home/ada", {})
    world.capture(agents=("gemini",))
    with open_archive(world.archive) as archive:
        (session,) = sessions(archive)
        assert (session.home.kind, session.home.name, session.home.path) == ("remote", "box", "/home/ada")
        assert session.path == "/home/ada/.gemini/tmp/tide/chats/session-2026-01-01T10-00-abc.json"
        assert {file.path: file.read() for file in session.shared} == {"/home/ada/.gemini/projects.json": b"{}"}
        assert list(sessions(archive, agents=["codex"])) == []


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 50])
def test_parts_are_all_of_them_once(world: World, parts: int) -> None:
    for number in range(20):
        world.write(number, lines(*range(number)))
    world.capture()
    with open_archive(world.archive) as archive:
        every = [session.path for session in sessions(archive)]
        split = [[session.path for session in sessions(archive, part=part, parts=parts)] for part in range(parts)]
        sizes = [sum(session.size for session in sessions(archive, part=part, parts=parts)) for part in range(parts)]
    assert len(every) == 20
    assert [path for part in split for path in part] == every
    assert max(sizes) <= sum(sizes) / parts + len(lines(*range(20)))


def test_damage_is_told_by_the_file_it_touches(world: World) -> None:
    for number in (1, 2):
        world.write(number, lines(number))
        world.capture()
    pack = bytearray(world.packs()[0].read_bytes())
    pack[HEADER_BYTES + 90] ^= 4
    world.packs()[0].write_bytes(pack)
    with open_archive(world.archive) as archive:
        damaged, whole = sorted(sessions(archive), key=lambda one: one.id)
        with pytest.raises(SourceUnreadable):
            damaged.files[0].read()
        assert whole.files[0].read() == lines(2)
