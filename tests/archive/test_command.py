"""`clew archive` and what it keeps, on the command line; sessions that are gone are read like any other."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clew.archive.archive import open_archive
from clew.archive.archived_home import archived_hosts, is_gone
from clew.archive.records import SourceHome, Version, pack_names, pack_path
from clew.archive.writer import open_writer
from clew.host import Host
from clew.sources.local import in_homes
from clew.sources.mirror import Mirror
from tests.archive.worlds import World, lines
from tests.cli.running import LATEST, clew
from tests.demo_home import write_small_demo

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A demo home that may be changed, and a folder of clew's own for it."""
    monkeypatch.setenv("CLEW_DATA_DIR", str(tmp_path / "own"))
    monkeypatch.delenv("CLEW_ARCHIVE_DIR", raising=False)
    write_small_demo(tmp_path / "home")
    return tmp_path / "home"


def rows(*words: str | Path) -> list[dict[str, Any]]:
    """What `clew list` says, without the place of the files."""
    listed = [{**row, "path": None} for row in clew(*words, "list", "--json").json]
    return sorted(listed, key=lambda row: row["id"])


def test_a_list_without_sessions_says_what_to_do(home: Path, tmp_path: Path) -> None:
    assert "`clew archive` creates one" in clew("archive", "list").err
    assert clew("archive", "--home", home).code == 0
    (tmp_path / "other").mkdir()
    listed = clew("archive", "list", "--home", tmp_path / "other")
    assert (listed.code, listed.out) == (1, "")
    assert f"nothing is archived from {tmp_path / 'other'}; `clew archive` copies" in listed.err


def test_a_home_is_archived_listed_verified_and_restored(home: Path, tmp_path: Path) -> None:
    taken = clew("--home", home, "archive", "--json")
    assert (taken.code, taken.json["new"], taken.json["problems"]) == (0, taken.json["files"], [])
    assert clew("--home", home, "archive").err.endswith("files: nothing new\n")
    listed = clew("archive", "list", "--json").json
    assert len(listed) == len(rows("--home", home))
    assert not any(row["gone"] for row in listed)
    assert clew("archive", "list").out.splitlines()[0].split() == ["id", "agent", "last", "files", "versions", "size"]
    assert clew("archive", "list", "--captures", "--json").json[0]["files"] == taken.json["files"]
    assert clew("archive", "verify").code == 0
    assert clew("archive", "restore", "--to", tmp_path / "out").code == 0
    restored = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert len(restored) == taken.json["files"]
    for path in restored:
        was = home / path.relative_to(tmp_path / "out")
        assert path.read_bytes() == was.read_bytes()
        assert path.stat().st_mtime_ns == was.stat().st_mtime_ns


def test_a_home_may_be_named_by_way_of_the_folder_above(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home.parent / "beside").mkdir()
    monkeypatch.chdir(home.parent / "beside")
    assert clew("--home", "../home", "archive").code == 0
    with open_archive(home.parent / "own" / "archive") as kept:
        assert kept.files
        assert not any(b".." in path for _, path in kept.files)
    monkeypatch.chdir(home)
    assert clew("--home", home, "archive").err.endswith("files: nothing new\n")


def test_where_nothing_is_found_that_is_said_and_nobody_is_sent_in_a_circle(home: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    taken = clew("--home", tmp_path / "empty", "archive")
    assert (taken.code, taken.err) == (0, "no sessions were found, and nothing was archived\n")
    for words in (("archive", "list"), ("archive", "verify")):
        told = clew(*words)
        assert told.code != 0
        assert "there is no archive; `clew archive` creates one" in told.err


@pytest.mark.slow
def test_sessions_that_are_gone_are_read_from_the_archive(home: Path) -> None:
    before = rows("--home", home)
    shown = clew("--home", home, "show", LATEST).out
    document = clew("--home", home, "export", LATEST).json
    clew("--home", home, "archive")
    assert clew("--source", "archive", "list").code == 1
    shutil.rmtree(home)
    assert rows("--source", "archive") == before
    assert clew("--source", "archive", "show", LATEST).out == shown
    exported = clew("--source", "archive", "export", LATEST).json
    assert exported["session"]["source"]["path"] == document["session"]["source"]["path"]
    assert exported["messages"] == document["messages"]
    assert clew("--source", "archive", "verify").code == 0
    assert all(row["gone"] for row in clew("archive", "list", "--json").json)


@pytest.mark.slow
def test_search_statistics_and_the_catalog_know_sessions_that_are_gone(home: Path) -> None:
    asked = [("search", "moon", "--json"), ("stats", "--engine", "sqlite", "--json")]
    before = [clew("--home", home, *words).raw for words in asked]
    clew("--home", home, "archive")
    shutil.rmtree(home)
    assert clew("--source", "archive", "sync").code == 0
    assert [clew("--source", "archive", *words).raw for words in asked] == before


def test_a_live_session_is_not_read_twice(home: Path) -> None:
    clew("--home", home, "archive")
    before = rows("--home", home)
    next(home.rglob(f"{LATEST}.jsonl")).unlink()
    assert [row["id"] for row in rows("--source", "archive")] == [LATEST]
    assert rows("--home", home, "--source", "local", "--source", "archive") == before
    clew("archive", "restore", LATEST, "--to", home)
    assert clew("--source", "archive", "list").code == 1
    assert not list((home.parent / "own").rglob(f"{LATEST}.jsonl")), "what came back is no longer in the cache"


def test_files_at_a_message_come_from_archived_copies(home: Path) -> None:
    before = clew("--home", home, "files", LATEST, "--json").raw
    clew("--home", home, "archive")
    shutil.rmtree(home)
    assert clew("--source", "archive", "files", LATEST, "--json").raw == before


def test_filters_choose_what_is_archived(home: Path) -> None:
    taken = clew("--home", home, "archive", "--agent", "codex", "--json").json
    assert taken["files"]
    assert {row["agent"] for row in clew("archive", "list", "--json").json} == {"codex"}
    clew("--home", home, "archive", "--project", "moon")
    assert {row["agent"] for row in clew("archive", "list", "--json").json} == {"codex", "claude-code"}


def test_an_archive_may_be_elsewhere(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clew("--home", home, "archive", "--archive", tmp_path / "disk")
    assert clew("archive", "verify", "--archive", tmp_path / "disk").code == 0
    assert clew("archive", "--archive", tmp_path / "disk", "list").code == 0
    assert clew("archive", "list").code == 3
    monkeypatch.setenv("CLEW_ARCHIVE_DIR", str(tmp_path / "disk"))
    assert clew("archive", "list").code == 0


def test_prune_names_the_damaged_packs_that_it_leaves(home: Path, tmp_path: Path) -> None:
    world = World(tmp_path / "world")
    world.write(1, lines(1, 2, 3))
    world.capture()
    world.write(1, lines(9))
    world.capture()
    damaged = world.packs()[0]
    content = damaged.read_bytes()
    damaged.write_bytes(content[:150] + bytes([content[150] ^ 1]) + content[151:])
    done = clew("archive", "prune", "--keep-versions", "2", "--repack", "--apply", "--archive", world.archive)
    assert done.code == 0
    assert f"{damaged.name}: damaged, so it was not rewritten" in done.err
    assert damaged.exists()


def test_prune_shows_before_it_does(home: Path) -> None:
    clew("--home", home, "archive")
    assert clew("archive", "prune").code == 2
    assert clew("archive", "prune", "--max-size", "lots").code == 2
    shown = clew("archive", "prune", "--max-size", "10kB", "--json").json
    assert shown["applied"] is False
    assert shown["dropped"]
    assert len(clew("archive", "list", "--json").json) == len(rows("--home", home))
    done = clew("archive", "prune", "--max-size", "10kB", "--apply", "--json").json
    assert (done["applied"], done["dropped"]) == (True, shown["dropped"])
    assert done["left"] < 11_000
    assert clew("archive", "verify").code == 0


@pytest.mark.slow
def test_busy_is_exit_code_5(home: Path, tmp_path: Path) -> None:
    with open_writer(tmp_path / "own" / "archive"):
        ran = clew("--home", home, "archive")
    assert ran.code == 5
    assert "holds the lock" in ran.err


def test_damage_is_told_once_and_stops_nothing_but_what_it_touches(home: Path, tmp_path: Path) -> None:
    archive = tmp_path / "own" / "archive"
    clew("--home", home, "archive", "--agent", "codex")
    clew("--home", home, "archive")
    pack = pack_path(archive, pack_names(archive)[0])
    whole = bytearray(pack.read_bytes())
    whole[500] ^= 1
    pack.write_bytes(whole)
    ran = clew("archive", "verify")
    assert (ran.code, len(ran.err.splitlines())) == (1, 1)
    (problem,) = clew("archive", "verify", "--json").json["problems"]
    assert (problem["path"], problem["offset"]) == (str(pack), 0)
    assert problem["files"]
    restored = clew("archive", "restore", "--to", tmp_path / "out", "--json")
    assert restored.code == 3
    assert sorted(one["path"] for one in restored.json["damaged"]) == problem["files"]
    written = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert len(written) == restored.json["written"] > len(problem["files"])
    assert all(path.read_bytes() == (home / path.relative_to(tmp_path / "out")).read_bytes() for path in written)
    assert clew("archive", "list").code == 0
    assert "damaged versions repaired" in clew("--home", home, "archive").err
    assert clew("archive", "verify").code == 0
    assert clew("archive", "restore", "--to", tmp_path / "out").code == 0


def test_no_archive_is_one_line(home: Path) -> None:
    for words in (["list"], ["verify"], ["restore", "--to", "x"], ["prune", "--repack", "--apply"]):
        ran = clew("archive", *words)
        assert (ran.code, len(ran.err.splitlines())) == (3, 1)


def test_sessions_of_another_machine_keep_their_origin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEW_DATA_DIR", str(tmp_path / "own"))
    mirror = Mirror(tmp_path / "mirror", "box")
    world = World(tmp_path / "world")
    write_small_demo(mirror.place("/home/ada"))
    world.host = mirror.host("/home/ada", {"CODEX_HOME": "/home/ada/.codex"})
    world.capture(agents=("claude-code", "codex"))
    shutil.rmtree(mirror.folder)
    (host,), problems = archived_hosts(world.archive)
    assert problems == []
    assert (host.kind, host.name) == ("remote", "box")
    assert host.origin(host.home).path == "/home/ada"
    assert host.env["CODEX_HOME"] == str(host.home / ".codex")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_watch_keeps_what_comes(world: World) -> None:
    path = world.write(1, lines(1))
    command = [sys.executable, "-c", "from clew.cli.main import main; main()", "--home", str(world.home), "archive"]
    command += ["--watch", "--every", "0.1", "--archive", str(world.archive)]
    watching = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    assert watching.stderr is not None
    try:
        assert "1 new" in watching.stderr.readline()
        with path.open("ab") as out:
            out.write(lines(2))
        assert "1 grown" in watching.stderr.readline()
        path.unlink()
        second = world.write(2, lines(3))
        assert "1 new" in watching.stderr.readline()
    finally:
        watching.send_signal(signal.SIGINT)
        messages = watching.communicate(timeout=60)[1]
    assert watching.returncode == 130
    assert "Traceback" not in messages
    archived = world.contents()
    assert archived.keys() == {path.name, second.name}
    assert archived[path.name] == [lines(1, 2)]


def test_the_home_of_this_user_is_read_with_its_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path)
    configured = tmp_path / "elsewhere"
    (configured / "projects" / "-p").mkdir(parents=True)
    (configured / "projects" / "-p" / world.session(5).name).write_bytes(lines(5))
    world.host = Host(world.home, {"CLAUDE_CONFIG_DIR": str(configured)})
    world.capture()
    shutil.rmtree(configured)
    monkeypatch.setenv("CLEW_DATA_DIR", str(tmp_path / "own"))
    monkeypatch.setenv("CLEW_ARCHIVE_DIR", str(world.archive))
    (row,) = clew("--source", "archive", "list", "--json").json
    assert row["id"] == world.session(5).stem
    assert row["source"]["path"] == os.fspath(configured / "projects" / "-p" / world.session(5).name)


def test_S01_every_folder_of_the_cache_is_for_its_owner_alone(home: Path, tmp_path: Path) -> None:
    clew("--home", home, "archive")
    shutil.rmtree(home)
    assert rows("--source", "archive")
    folders = [tmp_path / "own", *(path for path in (tmp_path / "own").rglob("*") if path.is_dir())]
    assert {str(path): oct(path.stat().st_mode & 0o777) for path in folders if path.stat().st_mode & 0o077} == {}


def test_a_path_that_cannot_be_looked_at_is_gone() -> None:
    """As below the home of somebody else, which raises where a missing file does not."""
    path = os.fsencode(f"/home/{'x' * 300}/.claude/projects/-a/s.jsonl")
    for base in ("", "/nowhere"):
        home = SourceHome("local", None, "/home/x", (), base)
        version = Version(home, path, "claude-code", "s", "main", path, 1, 0o600, 1, 1, 1, b"", b"", 1, 1, 1)
        assert is_gone(version)


def test_a_variable_that_is_set_to_its_default_gives_no_session_twice(world: World) -> None:
    for env in ({}, {"CLAUDE_CONFIG_DIR": str(world.home / ".claude")}, {}):
        world.host = Host(world.home, env)
        world.write(1, lines(1, 2))
        world.capture()
    assert len([one for one in world.versions() if one.role == "main"]) == 1
    assert world.contents() == {world.session(1).name: [lines(1, 2)]}


def test_sessions_of_each_variable_are_read_when_they_are_gone(world: World, tmp_path: Path) -> None:
    """Nothing is lost to sight because an agent keeps its sessions elsewhere now."""
    elsewhere = tmp_path / "elsewhere"
    world.write(1, lines(1))
    world.capture()
    world.host = Host(world.home, {"CLAUDE_CONFIG_DIR": f"{world.home}/.claude,{elsewhere}"})
    world.write(2, lines(2))
    (elsewhere / "projects" / "-a").mkdir(parents=True)
    shutil.copy(world.session(1), elsewhere / "projects" / "-a" / "0000000a-0000-4000-8000-000000000000.jsonl")
    world.capture()
    shutil.rmtree(world.home)
    shutil.rmtree(elsewhere)
    hosts, problems = archived_hosts(world.archive)
    assert problems == []
    found = [one.source.path.stem[:8] for one in in_homes(hosts, ["claude-code"])]
    assert sorted(found) == ["00000001", "00000002", "0000000a"]


def test_a_home_named_with_the_archive_adds_none_of_its_sessions(home: Path) -> None:
    assert clew("--home", home, "archive").code == 0
    (gone,) = home.rglob(f"{LATEST}.jsonl")
    gone.unlink()
    assert [row["id"] for row in rows("--home", home, "--source", "archive")] == [LATEST]


def test_an_interval_needs_watch(home: Path) -> None:
    done = clew("--home", home, "archive", "--every", "5")
    assert done.code == 2 and "--every needs --watch" in done.err
