"""Blobs: each content is kept once, complete or not at all, and is never removed while a record names it."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.errors import LimitExceeded, SourceUnreadable
from clew.io.blobs import digest_in, digest_of, name_of, pack, read_blob
from clew.io.filesystem import System
from clew.store import Store
from clew.store.blobs import Blobs
from clew.store.doctor import examine
from clew.store.erase import erase_record
from tests.store.support import Faulty, Quick, log_of

TEXT = b"the tide rises twice a day, and twice a day it falls\n" * 40


def blobs_in(folder: Path) -> Blobs:
    return Blobs(folder / "backups", Quick())


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=3000), min_size=1, max_size=8))
def test_any_bytes_come_back(tmp_path_factory: pytest.TempPathFactory, bodies: list[bytes]) -> None:
    blobs = blobs_in(tmp_path_factory.mktemp("blobs"))
    for body in bodies:
        assert blobs.put([body]) == [digest_of(body)]
    fresh = Blobs(blobs.folder)
    assert [fresh.get(digest_of(body)) for body in bodies] == bodies
    assert fresh.all() == {digest_of(body) for body in bodies}


@pytest.mark.seed("S1-42")
def test_the_same_content_is_kept_once(tmp_path: Path) -> None:
    blobs = blobs_in(tmp_path)
    one, two = blobs.put([bytes(range(256)) * 9, bytes(range(256)) * 9])
    blobs.put([bytes(range(256)) * 9])
    assert one == two and [path.name for path in blobs.folder.iterdir()] == [name_of(one)]
    assert stat.S_IMODE((blobs.folder / name_of(one)).stat().st_mode) == 0o600


@pytest.mark.seed("S1-43")
@pytest.mark.parametrize("at", [0, 5, 40, 60, -1])
def test_R08_one_wrong_byte_is_found(tmp_path: Path, at: int) -> None:
    blobs = blobs_in(tmp_path)
    [digest] = blobs.put([os.urandom(2000)])
    path = blobs.folder / name_of(digest)
    raw = bytearray(path.read_bytes())
    raw[at] ^= 1
    path.write_bytes(raw)
    with pytest.raises(SourceUnreadable):
        read_blob(blobs.folder, digest)
    path.unlink()
    with pytest.raises(SourceUnreadable, match="missing"):
        read_blob(blobs.folder, digest)


def test_P_blobs_that_are_links_pipes_or_too_large(tmp_path: Path) -> None:
    (tmp_path / name_of("3" * 64)).symlink_to("/etc/passwd")
    with pytest.raises(SourceUnreadable):
        read_blob(tmp_path, "3" * 64)
    os.mkfifo(tmp_path / name_of("4" * 64))
    with pytest.raises(SourceUnreadable):
        read_blob(tmp_path, "4" * 64)
    bomb = pack(b"\0" * (65 << 20))
    (tmp_path / name_of("5" * 64)).write_bytes(bomb)
    with pytest.raises(LimitExceeded):
        read_blob(tmp_path, "5" * 64)


@pytest.mark.parametrize("name", ["x.zst", "../" + "1" * 64 + ".zst", "1" * 64, "1" * 63 + "G.zst", ""])
def test_R01_only_a_digest_is_a_name(name: str) -> None:
    assert digest_in(name) is None


@pytest.mark.parametrize(("kind", "error"), [("before", errno.EIO), ("torn", errno.ENOSPC), ("short", errno.EIO)])
def test_S10_a_fault_at_every_call_leaves_whole_copies(tmp_path: Path, kind: str, error: int) -> None:
    bodies = [TEXT, TEXT + b"more", os.urandom(600)]
    at = 0
    while True:
        at += 1
        system = Faulty(at, error, kind=kind)
        blobs = Blobs(tmp_path / str(at) / "backups", system)
        try:
            blobs.put(bodies)
            failed = False
        except OSError:
            failed = True
        there = Blobs(blobs.folder)
        for digest in there.all():
            assert there.get(digest) in bodies
        assert failed or there.all() == {digest_of(body) for body in bodies}
        if not system.hit:
            break
    assert at > 15


def test_S10_copies_are_synced_before_they_have_their_name(tmp_path: Path) -> None:
    calls: list[str] = []

    class Noting(System):
        @staticmethod
        def sync(descriptor: int) -> None:
            calls.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")

        @staticmethod
        def replace(source: Path, target: Path) -> None:
            calls.append("rename")
            source.replace(target)

    blobs = Blobs(tmp_path, Noting())
    blobs.put([b"one", b"two"])
    assert calls == ["file", "file", "rename", "rename", "folder"]


def test_S10_what_is_named_stays_and_what_is_not_goes(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    session = Store(tmp_path, system=Quick()).session("s")
    message = session.assistant("x").uuid
    blobs = session._snapshots.blobs
    (work / "a").write_bytes(TEXT)
    with session.watch(message, ["a"], root=work):
        (work / "a").write_bytes(TEXT + b"more")
    with session.watch(message, root=work):
        (work / "b").write_bytes(b"seen by the look at everything")
    named = blobs.all()
    blobs.put([b"nobody names me", TEXT + b"nor me"])
    (blobs.folder / "another.backup").write_bytes(b"of another program")
    assert {one.problem.code for one in examine(tmp_path)} >= {"backup-unused"}
    assert len(session.clear()) == 2
    assert blobs.all() == named and (blobs.folder / "another.backup").exists()
    assert session.clear() == []


def test_S17_erasing_a_message_keeps_what_others_need(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    session = Store(tmp_path, system=Quick()).session("s")
    secret = os.urandom(3000)
    (work / "a").write_bytes(secret)
    first = session.assistant("writes").uuid
    with session.watch(first, ["a"], root=work):
        (work / "a").write_bytes(secret[:-1])
    second = session.assistant("writes on").uuid
    with session.watch(second, ["a"], root=work):
        (work / "a").write_bytes(secret[:-2])
    session.close()
    blobs = Blobs(session.backups)
    assert digest_of(secret) in blobs.all()
    erase_record(log_of(tmp_path).parent, first)
    assert blobs.all() == {digest_of(secret[:-1]), digest_of(secret[:-2])}
    assert [blobs.get(digest) for digest in (digest_of(secret[:-1]), digest_of(secret[:-2]))] == [
        secret[:-1],
        secret[:-2],
    ]


def test_S02_copies_that_were_not_finished_are_found(tmp_path: Path) -> None:
    session = Store(tmp_path, system=Quick()).session("s")
    (tmp_path / "a").write_bytes(TEXT)
    with session.watch(session.assistant("x"), ["a"], root=tmp_path):
        pass
    session.close()
    (session.backups / ".abc.123.tmp").write_bytes(b"half")
    (session.backups / ".abc.123.tmp").chmod(0o600)
    [finding] = examine(tmp_path)
    assert finding.problem.code == "leftover-file" and finding.mend is not None
    finding.mend()
    assert list(examine(tmp_path)) == []
    path = session.backups / name_of(digest_of(TEXT))
    path.write_bytes(b"x" + path.read_bytes())
    [finding] = examine(tmp_path)
    assert finding.problem.code == "backup-damaged"
