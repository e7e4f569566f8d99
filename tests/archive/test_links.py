"""An archive may lie in a repository: links, pipes and devices inside it are never followed, for reading or writing."""

import os
import shutil
from pathlib import Path

import pytest

from clew.archive.records import CHECKSUM, INDEX, LOCK, PACKS
from clew.errors import PathRefused
from tests.archive.worlds import World, lines
from tests.cli.running import Ran, clew

SECRET = b"the only copy of something private"


@pytest.fixture
def hostile(world: World, tmp_path: Path) -> Path:
    """An empty folder beside a private archive with one session."""
    world.write(1, lines(1, 2, text=SECRET.decode()))
    world.capture()
    folder = tmp_path / "repository" / "archive"
    folder.mkdir(parents=True)
    return folder


def archive(world: World, folder: Path, *words: str | Path) -> Ran:
    return clew("--home", world.home, "archive", *words, "--archive", folder)


def tree(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() and not path.is_symlink() else None
        for path in folder.rglob("*")
    }


def link_everything(private: Path, folder: Path, kind: str) -> None:
    """Fill an archive with links: its folders, every file, or the pack alone."""
    if kind == "folders":
        (folder / PACKS).symlink_to(private / PACKS)
        return
    (folder / PACKS).mkdir()
    for path in sorted((private / PACKS).iterdir()):
        (folder / PACKS / path.name).symlink_to(path)
    if kind == "files":
        for name in (INDEX, CHECKSUM):
            (folder / name).symlink_to(private / name)


@pytest.mark.parametrize("kind", ["folders", "files", "pack"])
@pytest.mark.parametrize(
    "words",
    [
        ("restore", "--to", "out"),
        ("list",),
        ("verify",),
        ("prune", "--repack", "--apply"),
        (),
    ],
    ids=lambda words: words[0] if words else "capture",
)
def test_links_to_another_archive_are_refused(
    world: World, hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, words: tuple[str, ...]
) -> None:
    link_everything(world.archive, hostile, kind)
    monkeypatch.chdir(tmp_path)
    before = tree(tmp_path)
    done = archive(world, hostile, *words)
    assert done.code == PathRefused.exit_code, done
    assert tree(tmp_path) == before


@pytest.mark.parametrize("name", [INDEX, CHECKSUM, LOCK, f"{INDEX}-journal", f"{PACKS}/00000009-0123456789abcdef.pack"])
def test_a_link_to_any_file_is_not_read_or_written(world: World, tmp_path: Path, name: str) -> None:
    (tmp_path / "secret").write_bytes(SECRET)
    world.write(1, lines(1))
    world.capture()
    (world.archive / name).unlink(missing_ok=True)
    (world.archive / name).symlink_to(tmp_path / "secret")
    for words in ((), ("verify",), ("list",), ("prune", "--repack", "--apply")):
        assert archive(world, world.archive, *words).code == PathRefused.exit_code
    assert (tmp_path / "secret").read_bytes() == SECRET
    assert not any(SECRET in (content or b"") for content in tree(world.archive).values())


def test_scrubbing_does_not_take_an_archive_of_links_for_an_empty_one(world: World, hostile: Path) -> None:
    from clew.migrate.scrub import is_archived

    link_everything(world.archive, hostile, "files")
    assert is_archived(hostile, [("claude-code", "x")])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
@pytest.mark.parametrize("name", [LOCK, INDEX, CHECKSUM, f"{INDEX}-journal", PACKS])
@pytest.mark.parametrize("kind", ["pipe", "device", "large"])
def test_what_is_no_regular_file_does_not_block(
    world: World, hostile: Path, tmp_path: Path, name: str, kind: str
) -> None:
    shutil.copytree(world.archive, hostile, dirs_exist_ok=True)
    path = next((hostile / PACKS).iterdir()) if name == PACKS else hostile / name
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.touch()
        os.truncate(path, 1 << 40)
        if name == PACKS:
            pytest.skip("a pack may be large")
    for words in (("list",), ("verify",), (), ("restore", "--to", tmp_path / "out")):
        done = archive(world, hostile, *words)
        assert "internal error" not in done.err, done
        assert kind != "device" or done.code == PathRefused.exit_code, done
