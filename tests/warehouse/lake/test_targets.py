"""Where a lake may lie: what is mistyped is refused before anything is written, and nothing of it is printed."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from clew.errors import RemoteFailed, TargetRefused
from clew.warehouse.lake.store import FolderStore, absolute_target, open_store
from tests.cli.running import clew
from tests.warehouse.lake.worlds import NAMES, Machine, say, write

WORD = "sesame" + "-4711"


@pytest.mark.parametrize(
    "target",
    [
        f"s3:/mira:{WORD}@bucket/x",
        f"s3:/{WORD}",
        f"memory://{WORD}",
        f"s3://AK:IA/{WORD}@history/x",
        f"s3://AK:IA@{WORD}@history/x",
        f"sftp://mira:a/b@{WORD}@loom/lake",
    ],
)
@pytest.mark.parametrize("words", [("lake", "write"), ("lake", "compact"), ("stats", "--engine")])
def test_a_mistyped_target_is_refused_and_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], target: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home").mkdir()
    engine = "duckdb:" if words[0] == "stats" else ""
    home = ("--home", tmp_path / "home") if words != ("lake", "compact") else ()
    done = clew(*words, f"{engine}{target}", *home)
    assert done.code == 2, done.err
    assert WORD not in done.err
    assert done.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


@pytest.mark.parametrize("name", ["lake", "C:/lake", "a@b/c@d", "10:30"])
def test_names_of_folders_are_taken_as_they_are(name: str) -> None:
    assert isinstance(open_store(name), FolderStore)


def test_a_place_is_the_same_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute_target("srv/lake") == absolute_target("file://srv/lake") == str(tmp_path / "srv/lake")
    assert absolute_target("/srv/lake") == "/srv/lake"
    assert absolute_target("s3://history/lake") == "s3://history/lake"


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS])
def test_a_folder_that_may_not_be_written_to_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    machine, store = Machine(tmp_path, "one"), FolderStore(tmp_path / "lake")
    say(machine, NAMES[0], 10)

    def forbidden(*_: object, **__: object) -> None:
        raise OSError(code, "not for you")

    monkeypatch.setattr(Path, "write_bytes", forbidden)
    with pytest.raises(TargetRefused, match=r"cannot be written to \(not for you\)"):
        write(machine, store)


def test_a_folder_that_may_not_be_read_is_out_of_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> bytes:
        raise OSError(errno.EACCES, "not for you")

    monkeypatch.setattr(Path, "read_bytes", forbidden)
    with pytest.raises(RemoteFailed):
        FolderStore(tmp_path).read("x")
