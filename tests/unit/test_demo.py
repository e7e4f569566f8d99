"""The demo home: a year of sessions of every agent, the same for the same day."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import cycle
from pathlib import Path

import pytest

from clew.agents import registry
from clew.demo import write_demo
from clew.demo.sessions import Change, Session, build_sessions
from clew.host import Host
from clew.library import Library
from tests.cli.running import clew
from tests.web.shown import shown

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
AGENTS = (
    "claude-code",
    "cline",
    "codex",
    "continue",
    "copilot-cli",
    "gemini",
    "kimi-code",
    "mistral-vibe",
    "pi",
    "qwen-code",
    "sage-agent",
    "sage-emacs",
)


@pytest.fixture(scope="module")
def sessions() -> list[Session]:
    return build_sessions(NOW)


@pytest.fixture(scope="module")
def whole_demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("demo") / "home"
    write_demo(home, NOW)
    return home


def test_the_same_day_gives_the_same_files(whole_demo: Path, tmp_path: Path) -> None:
    again = write_demo(tmp_path / "again", NOW)
    assert {path.relative_to(tmp_path / "again"): path.read_bytes() for path in again} == {
        path.relative_to(whole_demo): path.read_bytes() for path in whole_demo.rglob("*") if path.is_file()
    }


@pytest.mark.parametrize("later_days", [0, 3, 200])
def test_sessions_fill_the_year_before_the_day(later_days: int) -> None:
    now = NOW + timedelta(days=later_days)
    sessions = build_sessions(now)
    assert Counter(session.agent for session in sessions).keys() == set(AGENTS)
    assert all(now - timedelta(days=366) < session.started <= session.ended < now for session in sessions)
    weeks = {session.started.isocalendar()[:2] for session in sessions}
    assert len(sessions) > 90 and 35 < len(weeks) < 52


def test_one_session_is_running(sessions: list[Session]) -> None:
    running = [session for session in sessions if session.turns[-1].answer is None]
    assert [NOW - session.ended < timedelta(minutes=5) for session in running] == [True]


def test_each_edit_replaces_text_that_the_file_has_once(sessions: list[Session]) -> None:
    works = [step.work for session in sessions for turn in session.turns for step in turn.steps]
    edits = [work for work in works if isinstance(work, Change) and work.old is not None]
    assert len(edits) > 20
    assert [edit for edit in edits if edit.before is None or edit.before.count(edit.old or "") != 1] == []


def test_only_the_damaged_and_the_running_session_have_problems(whole_demo: Path) -> None:
    found = clew("validate", "--home", whole_demo).out
    assert Counter(line.partition("[")[2].partition("]")[0] for line in found.splitlines()) == {
        "glued-records": 2,
        "torn-tail": 1,
        "unanswered-call": 1,
    }


def test_every_session_is_restored_byte_for_byte_and_found(whole_demo: Path) -> None:
    assert clew("--home", whole_demo, "verify").code == 0
    found = clew("--home", whole_demo, "--json").json["agents"]
    assert {name: facts["sessions"] > 0 for name, facts in found.items()} == dict.fromkeys(AGENTS, True)
    files = [path for path in (whole_demo / ".vibe").rglob("*") if path.is_file()]
    assert found["mistral-vibe"]["bytes"] == sum(path.stat().st_size for path in files)


@pytest.mark.slow
def test_every_session_is_converted_and_exported(whole_demo: Path, tmp_path: Path) -> None:
    targets = [name for name in AGENTS if registry.get(name).target_profile() is not None]
    for session, target in zip(Library(Host.at(whole_demo)).sessions(), cycle(targets), strict=False):
        reference = f"{session.agent.id}:{session.id}"
        ran = clew(
            "--home", whole_demo, "convert", reference, "--to", target, "--home", tmp_path / session.id, "--allow-loss"
        )
        assert ran.code == 0, f"{reference} to {target}: {ran.err}"
    assert clew("--home", whole_demo, "export", "--site", tmp_path / "site").code == 0


@pytest.mark.slow
def test_every_session_opens_in_the_web_app(whole_demo: Path, tmp_path: Path) -> None:
    with shown(whole_demo, tmp_path / "catalog") as app:
        for session in Library(Host.at(whole_demo)).sessions():
            app.page(f"/session/{session.agent.id}/{session.id}")
