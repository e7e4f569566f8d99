"""An archive may lie in a repository: links, pipes and devices inside it are never followed, for reading or writing."""

import os
import shutil
from pathlib import Path

import pytest

from clew.archive.blocks import digest_of, pack_plain
from clew.archive.layout import (
    CAPTURES,
    COPIES,
    FORMAT,
    HEALTH,
    KEY_BYTES,
    LOCK,
    PACKS,
    Capture,
    Dictionary,
    Manifest,
    manifest_path,
    pack_path,
    spell_manifest,
)
from clew.archive.parts import HEAD, spell_head
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
        for inner in COPIES:
            (folder / inner).symlink_to(private / inner)
        return
    for inner in COPIES:
        (folder / inner).mkdir()
        for path in sorted((private / inner).iterdir()):
            if kind == "files" or path.suffix == ".pack":
                (folder / inner / path.name).symlink_to(path)


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


def test_a_link_in_the_place_of_a_pack_brings_no_file_into_the_archive(world: World, tmp_path: Path) -> None:
    folder, key = tmp_path / "repository" / "archive", bytes(KEY_BYTES)
    for inner in COPIES:
        (folder / inner).mkdir(parents=True)
    stored = pack_plain(b"hello" * 50)
    empty = Dictionary(1, "x", 1, 0, HEAD, digest_of(b""), 100)
    sound = Dictionary(2, "y", 5, 0, HEAD + len(stored), digest_of(stored), 100)
    pack_path(folder, 5).write_bytes(spell_head(sound, key) + stored)
    manifest = Manifest(
        format=FORMAT,
        number=1,
        whole=True,
        before=b"",
        key=key,
        next_chunk=0,
        captures=(Capture(1, 1, 0, 0, 0),),
        dictionaries=(empty, sound),
    )
    for inner in COPIES:
        manifest_path(folder, 1, inner).write_bytes(spell_manifest(manifest))
    (tmp_path / "secret").write_bytes(SECRET)
    pack_path(folder, 1).symlink_to(tmp_path / "secret")
    assert archive(world, folder).code == PathRefused.exit_code
    assert not any(SECRET in (content or b"") for content in tree(folder).values())


def test_scrubbing_does_not_take_an_archive_of_links_for_an_empty_one(world: World, hostile: Path) -> None:
    from clew.migrate.scrub import is_archived

    link_everything(world.archive, hostile, "files")
    assert is_archived(hostile, [("claude-code", "x")])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
@pytest.mark.parametrize("name", [LOCK, HEALTH, f"{PACKS}/00000001.pack", f"{CAPTURES}/00000001.manifest"])
@pytest.mark.parametrize("kind", ["pipe", "device", "large"])
def test_what_is_no_regular_file_does_not_block(
    world: World, hostile: Path, tmp_path: Path, name: str, kind: str
) -> None:
    shutil.copytree(world.archive, hostile, dirs_exist_ok=True)
    path = hostile / name
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.touch()
        os.truncate(path, 1 << 40)
        if name.endswith(".pack"):
            pytest.skip("a pack may be large")
    for words in (("list",), ("verify",), (), ("restore", "--to", tmp_path / "out")):
        done = archive(world, hostile, *words)
        assert "internal error" not in done.err, done
        assert kind != "device" or done.code == PathRefused.exit_code, done
