"""Filters from plain words, and points in time as people say them."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.catalog.memory import filter_sessions
from clew.errors import UsageError
from clew.filters import Filters, point_in_time
from clew.host import Host
from clew.library import Library
from clew.sources import moved_projects
from tests.unit.samples import SESSION, Record, claude_line, write_lines

NOW = datetime(2026, 11, 15, 12, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("2026-11-01", datetime(2026, 11, 1, tzinfo=UTC)),
        ("2026-11-01T10:00", datetime(2026, 11, 1, 10, tzinfo=UTC)),
        ("2026-11-01 10:00:30", datetime(2026, 11, 1, 10, 0, 30, tzinfo=UTC)),
        ("2026-11-01T10:00:00Z", datetime(2026, 11, 1, 10, tzinfo=UTC)),
        ("2026-11-01t10:00:00z", datetime(2026, 11, 1, 10, tzinfo=UTC)),
        ("2026-11-01T10:00:00+02:00", datetime(2026, 11, 1, 8, tzinfo=UTC)),
        ("  2026-11-01 ", datetime(2026, 11, 1, tzinfo=UTC)),
        ("today", datetime(2026, 11, 15, tzinfo=UTC)),
        ("Yesterday", datetime(2026, 11, 14, tzinfo=UTC)),
        ("3d", NOW - timedelta(days=3)),
        ("3 d ago", NOW - timedelta(days=3)),
        ("12h", NOW - timedelta(hours=12)),
        ("90min", NOW - timedelta(minutes=90)),
        ("90m", NOW - timedelta(minutes=90)),
        ("2w", NOW - timedelta(weeks=2)),
        ("0d", NOW),
        (date(2026, 11, 1), datetime(2026, 11, 1, tzinfo=UTC)),
        (NOW, NOW),
        (datetime(2026, 11, 1, 10), datetime(2026, 11, 1, 10, tzinfo=UTC)),
    ],
)
def test_points_in_time(words: Any, expected: datetime) -> None:
    found = point_in_time(words, NOW)
    assert found == expected
    assert found.tzinfo is not None


@pytest.mark.parametrize(
    ("zone", "now", "words", "expected"),
    [
        ("Europe/Berlin", "2026-11-15T23:30Z", "today", "2026-11-15T23:00Z"),
        ("Europe/Berlin", "2026-11-15T23:30Z", "yesterday", "2026-11-14T23:00Z"),
        ("Asia/Kathmandu", "2026-11-15T18:20Z", "today", "2026-11-15T18:15Z"),
        ("America/New_York", "2026-11-16T04:30Z", "today", "2026-11-15T05:00Z"),
        ("Australia/Lord_Howe", "2026-11-15T12:00Z", "today", "2026-11-14T13:00Z"),
        # The days on which clocks change have 23 and 25 hours.
        ("Europe/Berlin", "2026-03-29T20:00Z", "today", "2026-03-28T23:00Z"),
        ("Europe/Berlin", "2026-03-30T10:00Z", "today", "2026-03-29T22:00Z"),
        ("Europe/Berlin", "2026-10-25T22:30Z", "today", "2026-10-24T22:00Z"),
        ("Europe/Berlin", "2026-10-25T23:30Z", "today", "2026-10-25T23:00Z"),
        # Havana skips midnight in March and has it twice in November.
        ("America/Havana", "2026-03-08T12:00Z", "today", "2026-03-08T05:00Z"),
        ("America/Havana", "2026-11-01T12:00Z", "today", "2026-11-01T04:00Z"),
        ("Europe/Berlin", "2026-11-15T12:00Z", "2026-11-03", "2026-11-02T23:00Z"),
        ("Europe/Berlin", "2026-11-15T12:00Z", "2026-07-03", "2026-07-02T22:00Z"),
        ("Europe/Berlin", "2026-11-15T12:00Z", "2026-11", "2026-10-31T23:00Z"),
        ("Europe/Berlin", "2026-11-15T12:00Z", "2026", "2025-12-31T23:00Z"),
        ("Europe/Berlin", "2026-11-15T12:00Z", "2026-07-03 10:00", "2026-07-03T08:00Z"),
        ("Europe/Berlin", "2026-11-15T12:00Z", "2026-07-03T10:00:00.5Z", "2026-07-03T10:00:00.5Z"),
        ("Europe/Berlin", "2026-11-15T12:00Z", "2026-07-03T10:00-05:00", "2026-07-03T15:00Z"),
        # The 15th of November 2026 is a Sunday.
        ("Europe/Berlin", "2026-11-15T12:00Z", "sunday", "2026-11-14T23:00Z"),
        ("Europe/Berlin", "2026-11-15T12:00Z", "Mon", "2026-11-08T23:00Z"),
        ("Europe/Berlin", "2026-11-15T12:00Z", "this week", "2026-11-08T23:00Z"),
        ("Europe/Berlin", "2026-11-15T12:00Z", "last  week", "2026-11-01T23:00Z"),
        ("Europe/Berlin", "2026-11-15T12:00Z", "this month", "2026-10-31T23:00Z"),
        ("Europe/Berlin", "2026-11-15T12:00Z", "Last month", "2026-09-30T22:00Z"),
        ("Europe/Berlin", "2026-11-15T12:00Z", "last year", "2024-12-31T23:00Z"),
        ("Europe/Berlin", "2026-11-15T12:00Z", "3d", "2026-11-12T12:00Z"),
        ("Europe/Berlin", "2026-11-15T12:00Z", "3 days ago", "2026-11-12T12:00Z"),
        ("Europe/Berlin", "2026-11-15T12:00Z", "1 week", "2026-11-08T12:00Z"),
        ("Europe/Berlin", "2026-11-15T12:00Z", "90 minutes ago", "2026-11-15T10:30Z"),
        ("Europe/Berlin", "2026-11-15T12:00Z", "6mo", "2026-05-15T12:00Z"),
        ("Europe/Berlin", "2026-11-15T12:00Z", "11 months ago", "2025-12-15T12:00Z"),
        ("Europe/Berlin", "2026-03-31T12:00Z", "1 month", "2026-02-28T12:00Z"),
        ("Europe/Berlin", "2028-02-29T12:00Z", "1y", "2027-02-28T12:00Z"),
        ("Europe/Berlin", "2026-11-15T12:00Z", "october", "2026-09-30T22:00Z"),
        ("Europe/Berlin", "2026-11-15T12:00Z", "Nov", "2026-10-31T23:00Z"),
        ("Europe/Berlin", "2026-11-15T12:00Z", "december", "2025-11-30T23:00Z"),
        ("Europe/Berlin", "2026-11-15T12:00Z", "2026/11/03", "2026-11-02T23:00Z"),
        ("Asia/Kathmandu", "2026-11-15T12:44:31.5Z", "3d", "2026-11-12T12:30Z"),
        ("Asia/Kathmandu", "2026-11-15T12:44:31.5Z", "1mo", "2026-10-15T12:30Z"),
        ("Asia/Kathmandu", "2026-11-15T12:44:31.5Z", "12h", "2026-11-15T00:44:31.5Z"),
    ],
)
def test_words_mean_times_in_the_zone_of_the_user(
    monkeypatch: pytest.MonkeyPatch, zone: str, now: str, words: str, expected: str
) -> None:
    monkeypatch.setenv("CLEW_TIMEZONE", zone)
    assert point_in_time(words, datetime.fromisoformat(now)) == datetime.fromisoformat(expected)


@pytest.mark.parametrize(
    "words",
    [
        *"3d",
        "",
        "soon",
        "9999y",
        "2026/11-03",
        "-3d",
        "0000",
        "2026-13",
        "2026-13-01",
        "last",
        "last day",
        "9" * 15 + "d",
        "9" * 5000 + "d",
    ],
)
def test_what_is_no_time(words: str) -> None:
    with pytest.raises(UsageError, match=r"unknown time .*; try today, .*, 3d, .*, 2026-11-03"):
        point_in_time(words, NOW)


@given(st.text(max_size=30) | st.from_regex(r"\d{0,25} ?(min|m|h|d|w|mo|y|months)( ago)?", fullmatch=True))
def test_P13_any_words_are_a_time_or_refused(words: str) -> None:
    with suppress(UsageError):
        assert point_in_time(words, NOW).tzinfo is not None


def test_filters_of_plain_words() -> None:
    made = Filters.of(agent="claude-code", has=["error", "edit"], since="3d", text="moon", now=NOW)
    assert (made.agent, made.has, made.text) == (("claude-code",), ("error", "edit"), "moon")
    assert made.since == NOW - timedelta(days=3)
    assert Filters.of(has="thinking").has == ("thinking",)


def test_nothing_is_no_filter() -> None:
    empty = Filters.of(agent=(), project=None, branch="", model=None, since=None, until="", has=(), text="")
    assert empty == Filters()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"colour": "red"}, "unknown filter 'colour'; known: agent, branch, commits, file, has"),
        ({"has": "nothing"}, "unknown value 'nothing' for `has`; choose from error, thinking, subagent, edit"),
        ({"has": ["error", "x"]}, "unknown value 'x'"),
        ({"since": "soon"}, "unknown time 'soon'"),
        ({"until": "never"}, "unknown time 'never'"),
    ],
)
def test_filters_that_make_no_sense(words: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Filters.of(**words)


def passes(tmp_path: Path, *lines: Record, **words: Any) -> bool:
    folder = tmp_path / ".claude" / "projects" / "-home-ada-src-tide"
    folder.mkdir(parents=True, exist_ok=True)
    write_lines(folder, *lines)
    library, filters = Library(Host.at(tmp_path)), Filters.of(now=NOW, **words)
    (session,) = library.sources()
    found = [each.path for each in library.sessions(filters)]
    # A file that is named by its path passes the same filters without a catalog.
    assert [each.path for each in filter_sessions([session], filters)] == found
    return found == [session.path]


CALL = {"type": "tool_use", "id": "t1", "name": "Edit", "input": {"file_path": "/home/ada/src/Tide.py"}}
ANSWER = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "Überall Ebbe"}]}
LINES = [
    claude_line("user", "u1", None, "When?", cwd="/home/ada/src/tide", gitBranch="feature/Ebb"),
    claude_line("assistant", "a1", "u1", [CALL]),
    claude_line("user", "r1", "a1", [ANSWER], timestamp="2026-01-03T10:00:00.000Z"),
]
LINES[1]["message"]["model"] = "claude-opus-4-6"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ({}, True),
        ({"agent": "claude-code"}, True),
        ({"agent": "sage-agent"}, False),
        ({"agent": ["sage-agent", "claude-code"]}, True),
        ({"project": "SRC/tide"}, True),
        ({"project": "home-ada-src"}, True),
        ({"project": "moon"}, False),
        ({"project": "/home/ada/src/tide"}, True),
        ({"project": "/home/ada/src/tide/"}, True),
        ({"project": "/home/ada"}, True),
        ({"project": "/"}, True),
        ({"project": "/home/ada/src/tide/../tide"}, True),
        ({"project": "/home/ada/src/ti"}, False),
        ({"project": "/home/ada/src/TIDE"}, False),
        ({"project": "/home/ada/src/tide/below"}, False),
        ({"project": "/src/tide"}, False),
        ({"agent": "claude"}, True),
        ({"agent": "codex"}, False),
        ({"branch": "ebb"}, True),
        ({"branch": "flow"}, False),
        ({"model": "Opus"}, True),
        ({"model": "haiku"}, False),
        ({"tool": "edit"}, True),
        ({"tool": "bash"}, False),
        ({"file": "tide.PY"}, True),
        ({"file": "moon.py"}, False),
        ({"text": "überall ebbe"}, True),
        ({"text": "WHEN"}, True),
        ({"text": "Flut"}, False),
        ({"has": "edit"}, True),
        ({"has": "error"}, False),
        ({"has": ["edit", "thinking"]}, False),
        ({"since": "2026-01-03"}, True),
        ({"since": "2026-01-04"}, False),
        ({"until": "2026-01-02"}, True),
        ({"until": "2026-01-01"}, False),
        ({"since": datetime(2026, 1, 2), "until": datetime(2026, 1, 2)}, True),
        ({"project": "tide", "text": "when", "file": "tide", "tool": "Edit"}, True),
        ({"project": "tide", "text": "when", "file": "tide", "tool": "Bash"}, False),
    ],
)
def test_all_filters_must_hold(tmp_path: Path, words: dict[str, Any], expected: bool) -> None:
    assert passes(tmp_path, *LINES, **words) is expected


def with_cwd(cwd: str) -> Record:
    return claude_line("user", "u1", None, "When?", cwd=cwd)


@pytest.mark.parametrize(
    ("cwd", "expected"), [("{}", True), ("{}/below", True), ("{}-2", False), ("/elsewhere", False)]
)
def test_the_current_folder_and_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cwd: str, expected: bool
) -> None:
    folder = tmp_path / "tide"
    folder.mkdir()
    monkeypatch.chdir(folder)
    line = with_cwd(cwd.format(folder))
    assert passes(tmp_path, line, here=True) is expected
    assert passes(tmp_path, line, project=".") is expected
    assert passes(tmp_path, line, project="../tide") is expected


def test_a_link_leads_to_the_folder_that_sessions_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert passes(tmp_path, with_cwd(str(tmp_path / "real")), project=str(tmp_path / "link"))
    monkeypatch.chdir(tmp_path / "link")
    assert passes(tmp_path, with_cwd(str(tmp_path / "real")), here=True)


def test_paths_of_windows_ignore_case_and_slashes(tmp_path: Path) -> None:
    line = with_cwd("C:\\Users\\Ada\\tide")
    assert passes(tmp_path, line, project="c:\\users\\ada")
    assert passes(tmp_path, line, project="C:/Users/Ada/tide")
    assert not passes(tmp_path, line, project="C:\\Users\\A")


def test_here_is_also_the_same_folder_of_other_worktrees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    main, other = tmp_path / "tide", tmp_path / "tide-fix"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(main)]
    main.mkdir()
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"], ["worktree", "add", "-q", str(other)]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    for place in (main, other):
        (place / "src").mkdir()
    line = with_cwd(f"{main}/src")
    for place, expected in ((other, True), (other / "src", True), (main / "src", True), (tmp_path, True)):
        monkeypatch.chdir(place)
        assert passes(tmp_path, line, here=True) is expected
    monkeypatch.chdir(main)
    assert passes(tmp_path, with_cwd(f"{other}/src"), here=True)
    assert not passes(tmp_path, with_cwd(f"{other}-2"), here=True)
    (main / ".git/worktrees/tide-fix/gitdir").write_text("../../../../tide-fix/.git\n")
    assert passes(tmp_path, with_cwd(f"{other}/src"), here=True)


def test_a_moved_project_is_found_by_its_new_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new = tmp_path / "new"
    (new / "sub").mkdir(parents=True)
    moved_projects.add("/gone/tide", str(new))
    line = with_cwd("/gone/tide/sub")
    for place, expected in ((new, True), (new / "sub", True), (tmp_path, True)):
        monkeypatch.chdir(place)
        assert passes(tmp_path, line, here=True) is expected
    assert passes(tmp_path, line, project=str(new))
    assert passes(tmp_path, line, project="/gone")
    assert not passes(tmp_path, with_cwd("/gone/tide-2"), project=str(new))


def test_here_and_another_folder_exclude_each_other() -> None:
    with pytest.raises(UsageError, match="--here and a path as --project exclude each other"):
        Filters.of(here=True, project="/p")
    assert Filters.of(here=True, project="tide").project == "tide"


def test_a_session_without_times_passes_no_filter_of_time(tmp_path: Path) -> None:
    line = claude_line("user", "u1", None, timestamp=None)
    assert passes(tmp_path, line)
    assert not passes(tmp_path, line, since="2020-01-01")
    assert not passes(tmp_path, line, until="2030-01-01")


def test_a_session_that_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "projects" / "-p"
    folder.mkdir(parents=True)
    os.mkfifo(folder / f"{SESSION}.jsonl")
    library = Library(Host.at(tmp_path))
    assert list(library.sessions(Filters.of(text="x"))) == []
    assert len(list(library.sessions())) == 1
