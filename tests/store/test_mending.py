"""A damaged copy is mended as soon as its content is at hand, so that no undo destroys the last of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.io.blobs import digest_of, name_of, pack
from clew.store import Store
from clew.store.blobs import Blobs
from tests.store.support import Quick

TEXT = b"the tide rises twice a day, and twice a day it falls\n" * 40


@pytest.mark.parametrize("damaged", [b"", b"junk", pack(b"other content"), pack(TEXT)[:-3]])
@pytest.mark.parametrize("same_process", [True, False])
def test_R08_a_damaged_copy_is_replaced_by_its_content(tmp_path: Path, damaged: bytes, same_process: bool) -> None:
    blobs = Blobs(tmp_path, Quick())
    [digest] = blobs.put([TEXT])
    (tmp_path / name_of(digest)).write_bytes(damaged)
    if not same_process:
        blobs = Blobs(tmp_path, Quick())
    assert blobs.put([TEXT]) == [digest]
    assert Blobs(tmp_path).get(digest) == TEXT


def test_a_sound_copy_is_left_as_it_is(tmp_path: Path) -> None:
    [digest] = Blobs(tmp_path, Quick()).put([TEXT])
    before = (tmp_path / name_of(digest)).stat().st_mtime_ns, (tmp_path / name_of(digest)).stat().st_ino
    Blobs(tmp_path, Quick()).put([TEXT])
    assert ((tmp_path / name_of(digest)).stat().st_mtime_ns, (tmp_path / name_of(digest)).stat().st_ino) == before


def test_R08_an_undo_keeps_what_it_replaces_although_its_copy_was_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    (work / "a").write_text("zero\n")
    session = Store(tmp_path, system=Quick()).session("s")
    with session.watch(session.assistant("I write."), ["a"]):
        (work / "a").write_text("long hours of work\n")
    session.close()
    (session.backups / name_of(digest_of(b"long hours of work\n"))).write_bytes(b"")
    again = Store(tmp_path, system=Quick()).session("s")
    again.undo()
    assert (work / "a").read_text() == "zero\n"
    again.redo()
    assert (work / "a").read_text() == "long hours of work\n"
