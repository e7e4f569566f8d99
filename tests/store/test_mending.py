"""A damaged copy is mended as soon as its content is at hand, so that no undo destroys the last of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.io.blobs import digest_of, name_of, pack
from clew.store import Store
from clew.store.blobs import Blobs, Fresh
from tests.store.support import Quick

TEXT = b"the tide rises twice a day, and twice a day it falls\n" * 40


@pytest.mark.parametrize("damaged", [b"", b"junk", pack(b"other content"), pack(TEXT)[:-3]])
@pytest.mark.parametrize("same_process", [True, False])
def test_R08_a_damaged_copy_is_replaced_by_its_content(tmp_path: Path, damaged: bytes, same_process: bool) -> None:
    blobs = Blobs(tmp_path, Quick())
    [digest] = blobs.put([Fresh(TEXT)])
    (tmp_path / name_of(digest)).write_bytes(damaged)
    if not same_process:
        blobs = Blobs(tmp_path, Quick())
    assert blobs.put([Fresh(TEXT)]) == [digest]
    assert Blobs(tmp_path).get(digest) == TEXT


def test_R08_a_copy_is_not_told_by_one_that_is_told_by_it(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path, Quick())
    [one] = blobs.put([Fresh(TEXT)])
    [two] = blobs.put([Fresh(TEXT + b"more\n", one)])
    (tmp_path / name_of(one)).write_bytes(b"")
    blobs.put([Fresh(TEXT, two)])
    fresh = Blobs(tmp_path)
    assert (fresh.get(one), fresh.get(two)) == (TEXT, TEXT + b"more\n")


def test_R08_a_copy_whose_base_is_gone_is_written_whole(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path, Quick())
    [one] = blobs.put([Fresh(TEXT)])
    blobs.put([Fresh(TEXT + b"more\n", one)])
    (tmp_path / name_of(one)).unlink()
    fresh = Blobs(tmp_path, Quick())
    [two] = fresh.put([Fresh(TEXT + b"more\n", one)])
    assert Blobs(tmp_path).get(two) == TEXT + b"more\n"


def test_a_sound_copy_is_left_as_it_is(tmp_path: Path) -> None:
    [digest] = Blobs(tmp_path, Quick()).put([Fresh(TEXT)])
    before = (tmp_path / name_of(digest)).stat().st_mtime_ns, (tmp_path / name_of(digest)).stat().st_ino
    Blobs(tmp_path, Quick()).put([Fresh(TEXT)])
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
