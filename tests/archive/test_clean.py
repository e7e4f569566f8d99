"""clew clean: old sessions are archived, verified and then removed, and nothing is ever lost."""

from __future__ import annotations

import errno
import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from clew.archive import clean as cleaning
from clew.archive.capture import Outcome
from clew.archive.records import archive_folder
from clew.catalog.change_detection import Hosts
from clew.catalog.database import CatalogNotWritable
from clew.catalog.sync import sync
from clew.catalog.sync_report import SyncReport
from clew.errors import Busy
from clew.host import data_dir
from clew.io.filesystem import SYSTEM
from tests.cli.running import clew
from tests.counting.homes import claude
from tests.killing import killed_at

NOW = datetime.now(UTC)
OLD, NEW = "01d01d01-0000-4000-8000-000000000000", "0e30e30e-0000-4000-8000-000000000000"


def session(home: Path, name: str, days: int) -> Path:
    """A session that was used last some days ago, with a copy of a file that its agent keeps."""
    time = NOW - timedelta(days=days)
    said = {"type": "user", "uuid": f"u-{name}", "sessionId": name, "cwd": "/home/dev/app"}
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z")
    path = claude(home, {**said, "timestamp": stamp, "message": {"role": "user", "content": name}}, session=name)
    copy = home / ".claude" / "file-history" / name / "0123456789abcdef@v1"
    copy.parent.mkdir(parents=True)
    copy.write_text(f"a file of {name}")
    for file in (path, copy):
        os.utime(file, (time.timestamp(), time.timestamp()))
    return path


def content(home: Path) -> dict[str, bytes]:
    return {str(path.relative_to(home)): path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file()}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLEW_DATA_DIR", str(tmp_path / "data"))
    session(tmp_path / "home", OLD, 100)
    session(tmp_path / "home", NEW, 2)
    return tmp_path / "home"


def test_without_yes_nothing_is_changed(home: Path) -> None:
    before = content(home)
    done = clew("--home", home, "clean", "--older-than", "90d")
    assert done.code == 0 and OLD in done.out and NEW not in done.out
    assert "--yes" in done.err
    assert content(home) == before and not archive_folder(None).exists()


def test_old_sessions_are_archived_and_removed_and_come_back(home: Path) -> None:
    before = content(home)
    done = clew("--home", home, "clean", "--older-than", "90d", "--yes")
    assert done.code == 0, done.err
    assert content(home) == {name: bytes_ for name, bytes_ in before.items() if OLD not in name}
    assert f"clew archive restore claude-code:{OLD} --in-place --home {home}" in done.err
    assert clew("archive", "restore", f"claude-code:{OLD}", "--in-place", "--home", home).code == 0
    assert content(home) == before


def test_what_was_removed_can_still_be_shown_and_searched(home: Path) -> None:
    assert clew("--home", home, "clean", "--older-than", "90d", "--yes").code == 0
    assert OLD in clew("--home", home, "show", OLD).out
    assert clew("--home", home, "search", OLD.partition("-")[0]).code == 0


def test_the_hint_says_which_commands_still_know_a_removed_session(home: Path) -> None:
    done = clew("--home", home, "clean", "--older-than", "90d", "--yes")
    assert done.err.count("`clew list` no longer shows them, `show`, `search` and `stats` do") == 1
    assert [row["id"] for row in clew("--home", home, "list", "--json").json] == [NEW]
    assert clew("--home", home, "stats", "--json").json["totals"]["sessions"] == 2


def test_subagents_are_counted_apart_from_sessions(home: Path) -> None:
    path = next(home.rglob(f"{OLD}.jsonl"))
    agent = path.parent / OLD / "subagents" / "agent-a1b2c3.jsonl"
    agent.parent.mkdir(parents=True)
    text = path.read_text().replace('"uuid"', '"isSidechain": true, "agentId": "a1b2c3", "uuid"')
    agent.write_text(text)
    os.utime(agent, (1, 1))
    assert "1 session and 1 sub-agent, " in clew("--home", home, "clean", "--older-than", "90d").err
    found = clew("--home", home, "clean", "--older-than", "90d", "--json").json
    assert sorted(row["is_subagent"] for row in found["sessions"]) == [False, True]
    assert "1 session and 1 sub-agent archived" in clew("--home", home, "clean", "--older-than", "90d", "--yes").err
    assert not (path.parent / OLD).exists() and path.parent.exists()


def test_folders_that_became_empty_are_removed_up_to_the_folder_of_the_agent(home: Path) -> None:
    path = next(home.rglob(f"{OLD}.jsonl"))
    other = home / ".claude" / "projects" / "-other" / path.name
    other.parent.mkdir()
    path.rename(other)
    assert clew("--home", home, "clean", "--older-than", "90d", "--yes").code == 0
    assert not other.parent.exists() and not (home / ".claude" / "file-history" / OLD).exists()
    next(home.rglob(f"{NEW}.jsonl")).unlink()
    session(home, "0dd0dd0d-0000-4000-8000-000000000000", 100)
    assert clew("--home", home, "clean", "--older-than", "90d", "--yes").code == 0
    assert list((home / ".claude" / "projects").iterdir()) == [] and (home / ".claude" / "file-history").exists()


def test_where_open_files_cannot_be_checked_it_is_said(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "which files are open" not in clew("--home", home, "clean", "--older-than", "400d", "--yes").err
    monkeypatch.setattr(cleaning, "PROCESSES", tmp_path / "no such folder")
    done = clew("--home", home, "clean", "--older-than", "90d", "--yes")
    assert done.code == 0 and done.err.count("this system does not tell which files are open") == 1


def test_json_names_what_was_removed(home: Path) -> None:
    found = clew("--home", home, "clean", "--older-than", "90d", "--yes", "--json").json
    assert [(row["id"], row["removed"], row["files"]) for row in found["sessions"]] == [(OLD, True, 2)]


@pytest.mark.parametrize("words", [["--older-than", "400d"], ["--older-than", "90d", "--agent", "codex"]])
def test_what_is_not_chosen_stays(home: Path, words: list[str]) -> None:
    before = content(home)
    done = clew("--home", home, "clean", *words, "--yes")
    assert done.code == 1 and content(home) == before


def test_sessions_of_the_last_day_are_never_chosen(home: Path) -> None:
    assert clew("--home", home, "clean", "--older-than", "2h", "--yes").code == 2


def test_a_session_with_a_recent_file_or_message_is_not_old(home: Path) -> None:
    before = content(home)
    os.utime(home / ".claude" / "file-history" / OLD / "0123456789abcdef@v1")
    done = clew("--home", home, "clean", "--older-than", "90d", "--yes")
    assert done.code == 1 and "every chosen session has a message or changed file since then" in done.err
    recent = next(home.rglob(f"{NEW}.jsonl"))
    for path in home.rglob("*"):
        os.utime(path, (1, 1))
    done = clew("--home", home, "clean", "--older-than", "90d", "--yes")
    assert done.code == 0 and recent.exists() and len(content(home)) == len(before) - 2


def test_a_file_that_changes_after_it_was_archived_is_kept(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = next(home.rglob(f"{OLD}.jsonl"))
    real = cleaning._remove

    def removed(file: Path, signature: object) -> None:
        if file == path:
            with path.open("a") as stream:
                stream.write("more\n")
        real(file, signature)  # type: ignore[arg-type]

    monkeypatch.setattr(cleaning, "_remove", removed)
    done = clew("--home", home, "clean", "--older-than", "90d", "--yes")
    assert done.code == 1 and "changed after it was archived" in done.err
    assert path.read_text().endswith("more\n")


def test_a_file_that_a_program_has_open_is_kept(home: Path) -> None:
    path = next(home.rglob(f"{OLD}.jsonl"))
    with path.open("rb"):
        done = clew("--home", home, "clean", "--older-than", "90d", "--yes")
    assert done.code == 1 and "has it open" in done.err and path.exists()


@pytest.mark.parametrize("is_folder", [False, True])
def test_links_are_not_followed(home: Path, tmp_path: Path, is_folder: bool) -> None:
    path = next(home.rglob(f"{OLD}.jsonl"))
    linked = path.parent if is_folder else path
    elsewhere = tmp_path / "elsewhere"
    shutil.move(linked, elsewhere)
    linked.symlink_to(elsewhere)
    before = content(tmp_path / "elsewhere") if is_folder else elsewhere.read_bytes()
    clew("--home", home, "clean", "--older-than", "90d", "--yes")
    assert (content(tmp_path / "elsewhere") if is_folder else elsewhere.read_bytes()) == before
    assert linked.is_symlink()


def test_damage_in_the_archive_keeps_the_session(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert clew("--home", home, "archive").code == 0
    before = content(home)
    for pack in (archive_folder(None) / "packs").glob("*.pack"):
        raw = bytearray(pack.read_bytes())
        for at in range(100, len(raw) // 2):
            raw[at] ^= 0xFF
        pack.write_bytes(raw)
    monkeypatch.setattr(cleaning, "capture", lambda *_: Outcome())
    done = clew("--home", home, "clean", "--older-than", "90d", "--yes")
    assert done.code == 1 and content(home) == before


def test_a_full_disk_removes_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = content(home)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    clew("--home", home, "sync")
    monkeypatch.setattr(SYSTEM, "write", full, raising=False)
    done = clew("--home", home, "clean", "--older-than", "90d", "--yes")
    assert done.code == 3 and content(home) == before


@pytest.mark.slow
def test_killed_at_any_point_nothing_is_lost(home: Path, tmp_path: Path) -> None:
    before = content(home)
    clew("--home", home, "sync")
    calls = [(SYSTEM, name) for name in ("open", "write", "sync", "replace", "unlink")]
    for at in range(1, 200):
        place, data = tmp_path / f"home-{at}", tmp_path / f"data-{at}"
        shutil.copytree(home, place)

        def work(place: Path = place, data: Path = data) -> None:
            os.environ["CLEW_DATA_DIR"] = str(data)
            assert clew("--home", place, "clean", "--older-than", "90d", "--yes").code == 0

        was_killed = killed_at(at, work, calls)
        os.environ["CLEW_DATA_DIR"] = str(data)
        if content(place) != before:
            assert clew("archive", "restore", "--to", place).code == 0
        assert content(place) == before, at
        if not was_killed:
            return
    raise AssertionError("never completed")


@pytest.mark.parametrize("words", [["export", OLD], ["resume", OLD[:8]], ["convert", OLD, "--to", "codex"]])
def test_a_session_that_is_only_archived_is_said_to_be_there(home: Path, words: list[str]) -> None:
    assert clew("--home", home, "clean", "--older-than", "90d", "--yes").code == 0
    done = clew("--home", home, *words)
    assert done.code == 1
    assert f"clew show claude-code:{OLD} --source archive" in done.err
    assert f"clew archive restore claude-code:{OLD} --in-place" in done.err


def test_a_session_that_is_gone_is_shown_and_the_archive_named(home: Path) -> None:
    assert clew("--home", home, "clean", "--older-than", "90d", "--yes").code == 0
    done = clew("--home", home, "show", OLD)
    assert done.code == 0 and OLD in done.out and "is only in the archive: `clew show" in done.err
    assert clew("show", f"claude-code:{OLD}", "--source", "archive").code == 0


def test_the_list_of_the_archive_shows_when_a_session_was_used(home: Path) -> None:
    for path in home.rglob("*"):
        os.utime(path)
    assert clew("--home", home, "sync").code == 0 and clew("--home", home, "archive").code == 0
    rows = {row["id"]: row for row in clew("archive", "list", "--json").json}
    age = NOW - datetime.fromisoformat(rows[OLD]["last_activity"])
    assert 99 < age.days + 1 < 102
    assert rows[OLD]["modified_at"] > rows[OLD]["last_activity"]
    assert list(rows) == [NEW, OLD]


def test_what_only_the_archive_has_is_not_pruned_without_allow_loss(home: Path) -> None:
    assert clew("--home", home, "clean", "--older-than", "90d", "--yes").code == 0
    prune = ("archive", "prune", "--keep-days", "50")
    shown = clew(*prune)
    assert shown.code == 0 and all(line.endswith("  (only copy)") for line in shown.out.splitlines())
    assert len(clew(*prune, "--json").json["only_copies"]) == 2
    refused = clew(*prune, "--apply")
    assert refused.code == 6 and "files of 1 session exist only in the archive" in refused.err
    assert [row["id"] for row in clew("archive", "list", "--json").json] == [OLD]
    done = clew(*prune, "--apply", "--allow-loss")
    assert done.code == 0 and "2 file versions removed; the archive has" in done.err
    assert clew("archive", "list").code == 1


def test_a_prune_of_what_is_still_in_its_place_loses_nothing(home: Path) -> None:
    assert clew("--home", home, "archive").code == 0
    done = clew("archive", "prune", "--keep-days", "50", "--apply")
    assert done.code == 0 and "only copy" not in done.out


def test_sessions_are_not_removed_without_a_sync(home: Path) -> None:
    before = content(home)
    assert clew("--home", home, "list").code == 0
    for words in (["--no-sync", "clean"], ["clean", "--no-sync"]):
        done = clew("--home", home, *words, "--older-than", "90d", "--yes")
        assert done.code == 2 and "leave out --no-sync" in done.err
    assert clew("--home", home, "--no-sync", "clean", "--older-than", "90d").code == 0
    assert content(home) == before


def test_sessions_are_not_removed_while_another_sync_runs(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = content(home)
    assert clew("--home", home, "list").code == 0

    def refuse(*_: object, **__: object) -> None:
        raise Busy("another process holds the lock")

    monkeypatch.setattr("clew.catalog.access.sync", refuse)
    done = clew("--home", home, "clean", "--older-than", "90d", "--yes")
    assert done.code == 5 and "another sync is running" in done.err
    assert content(home) == before


def test_sessions_are_not_removed_with_a_temporary_catalog(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = content(home)

    def refuse(hosts: Hosts, folder: Path, *_: Any, **options: Any) -> SyncReport:
        if folder.is_relative_to(data_dir()):
            raise CatalogNotWritable("read-only")
        return sync(hosts, folder, *_, **options)

    monkeypatch.setattr("clew.catalog.access.sync", refuse)
    done = clew("--home", home, "clean", "--older-than", "90d", "--yes")
    assert done.code == 3 and "cannot be written" in done.err
    assert content(home) == before


def test_a_session_whose_messages_were_not_read_is_kept(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = content(home)
    path = next(home.rglob(f"{OLD}.jsonl"))
    monkeypatch.setattr("clew.cli.command_clean.unread_paths", lambda _: {path})
    done = clew("--home", home, "clean", "--older-than", "90d", "--yes")
    assert done.code == 1 and "its messages are not in the catalog yet" in done.err
    assert content(home) == before


def test_a_session_that_was_removed_in_part_is_reported_so(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = next(home.rglob(f"{OLD}.jsonl"))
    unlink = SYSTEM.unlink

    def refuse(file: Path) -> None:
        if file == path:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(file))
        unlink(file)

    monkeypatch.setattr(SYSTEM, "unlink", refuse, raising=False)
    done = clew("--home", home, "clean", "--older-than", "90d", "--yes")
    assert done.code == 1
    assert f"partly removed claude-code:{OLD}: 1 of 2 files are only in the archive; {path}: Permission" in done.err


def test_a_home_that_is_named_twice_is_cleaned_once(home: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(home)
    for other in (f"{home}/./", f"{home}/../home", tmp_path / "link"):
        found = clew("--home", home, "--home", other, "clean", "--older-than", "90d", "--json").json
        assert [row["id"] for row in found["sessions"]] == [OLD]


def test_why_a_file_could_not_be_archived_is_said(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = next(home.rglob(f"{OLD}.jsonl"))
    assert clew("--home", home, "archive").code == 0
    monkeypatch.setattr(cleaning, "capture", lambda *_: Outcome(problems=[f"{path}: Input/output error"]))
    done = clew("--home", home, "clean", "--older-than", "90d", "--yes")
    assert done.code == 1 and f"kept claude-code:{OLD}: {path}: Input/output error" in done.err


def test_a_session_of_a_folder_outside_the_home_comes_back_to_it(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside"
    shutil.move(home / ".claude", outside)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(outside))
    before = content(outside)
    done = clew("clean", "--older-than", "90d", "--yes")
    assert done.code == 0 and f"clew archive restore claude-code:{OLD} --in-place\n" in done.err
    assert len(content(outside)) == 2
    assert clew("archive", "restore", f"claude-code:{OLD}", "--in-place").code == 0
    assert content(outside) == before and not content(home)


def test_a_session_that_two_homes_have_comes_back_to_its_own(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(home, other)
    before = content(home)
    for one in (home, other):
        assert clew("--home", one, "clean", "--older-than", "90d", "--yes").code == 0
    cleaned = content(other)
    assert clew("archive", "restore", OLD, "--in-place", "--home", home).code == 0
    assert content(home) == before and content(other) == cleaned


def test_a_restore_in_place_replaces_nothing_and_follows_no_link(home: Path, tmp_path: Path) -> None:
    path = next(home.rglob(f"{OLD}.jsonl"))
    assert clew("--home", home, "clean", "--older-than", "90d", "--yes").code == 0
    path.write_text("other")
    done = clew("archive", "restore", OLD, "--in-place")
    assert done.code == 6 and path.read_text() == "other" and len(content(home)) == 3
    path.unlink()
    shutil.move(path.parent, tmp_path / "elsewhere")
    path.parent.symlink_to(tmp_path / "elsewhere")
    assert clew("archive", "restore", OLD, "--in-place").code == 4
    assert not (tmp_path / "elsewhere" / path.name).exists()


@pytest.mark.parametrize("words", [[], [OLD], ["--in-place"], [OLD, "--in-place", "--to", "x"]])
def test_a_restore_needs_one_target(home: Path, words: list[str]) -> None:
    assert clew("archive", "restore", *words).code == 2
