"""`clew hook run` archives the session that ended, and nothing else, whatever the agent sends."""

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from clew.archive.records import archive_folder
from clew.archive.writer import open_writer
from clew.cli.main import main
from clew.hooks.log import MAX_RUNS, OUTCOMES, load_runs, log_path
from clew.host import data_dir
from tests.cli.running import LATEST, WITH_AGENTS, clew, run

SECRET = "ghp_" + "a1B2" * 9
WAIT_SECONDS = 60.0


@pytest.fixture
def sessions(demo: Path, home: Path) -> Path:
    """The sessions of the demo, in the home of the test."""
    for name in (".claude", ".codex", ".gemini"):
        shutil.copytree(demo / name, home / name, symlinks=True)
    return home


def path_of(agent: str, session: str = "") -> str:
    rows: list[dict[str, Any]] = clew("list", "--agent", agent, "--json").json
    return str(next(row["path"] for row in rows if row["id"].startswith(session)))


def end(agent: str, sent: bytes | str) -> str:
    """Run the hook with this input; returns the outcome that was logged."""
    before = len(load_runs())
    done = CliRunner().invoke(main, ["hook", "run", "--agent", agent, "--foreground"], input=sent)
    assert (done.exit_code, done.output) == (0, "")
    assert len(load_runs()) == before + 1
    return load_runs()[0][1].outcome


def payload(path: str | Path | None, **more: object) -> str:
    return json.dumps({"session_id": "x", "transcript_path": None if path is None else str(path), **more})


def archived() -> set[str]:
    done = clew("archive", "list", "--json")
    return {row["path"] for row in done.json} if done.code == 0 else set()


@pytest.mark.parametrize("agent", ["claude-code", "codex", "gemini"])
def test_the_ended_session_is_archived_and_no_other(agent: str, sessions: Path) -> None:
    path = path_of(agent)
    assert end(agent, payload(path)) == "archived"
    newest = load_runs()[0][1]
    assert newest.session is not None
    assert {one for one in archived() if f"/{newest.session}/" not in one} == {path}
    assert end(agent, payload(path)) == "unchanged"
    Path(path).unlink()
    assert clew("archive", "restore", newest.session, "--in-place").code == 0
    assert Path(path).is_file()


def test_sub_agents_are_archived_with_their_session(sessions: Path) -> None:
    path = path_of("claude-code", WITH_AGENTS)
    assert end("claude-code", payload(path)) == "archived"
    below = {str(one) for one in Path(path).with_suffix("").rglob("agent-*.jsonl")}
    assert below and archived() == {path, *below}


def test_a_session_that_grew_is_archived_again(sessions: Path) -> None:
    path = Path(path_of("claude-code", LATEST))
    end("claude-code", payload(path))
    with path.open("ab") as stream:
        stream.write(b'{"type":"summary","summary":"more","leafUuid":"x"}\n')
    assert end("claude-code", payload(path)) == "archived"


def test_a_home_behind_a_link_is_the_same_home(sessions: Path, tmp_path: Path) -> None:
    path = Path(path_of("claude-code", LATEST))
    link = tmp_path / "link"
    link.symlink_to(sessions)
    assert end("claude-code", payload(link / path.relative_to(sessions))) == "archived"
    assert archived() == {str(path)}


@pytest.mark.parametrize(
    ("sent", "outcome"),
    [
        (b"", "no-input"),
        (b"  \n", "no-input"),
        (b"not json " + SECRET.encode(), "not-json"),
        (b"\xff\xfe\x00", "not-json"),
        (b"[" * 60_000, "not-json"),
        (b"[]", "not-json"),
        (b'{"transcript_path": "' + b"a" * 70_000 + b'"}', "too-large"),
        (b"{}", "no-transcript"),
        (b'{"transcript_path": null}', "no-transcript"),
        (b'{"transcript_path": ""}', "no-transcript"),
        (b'{"transcript_path": 5}', "not-a-session"),
        (b'{"transcript_path": ["/etc/passwd"]}', "not-a-session"),
        (b'{"transcript_path": "/etc/passwd"}', "not-a-session"),
        (b'{"transcript_path": "a\\u0000b"}', "not-a-session"),
        (b'{"transcript_path": "\\ud800"}', "not-a-session"),
        (b'{"transcript_path": "/a\\ud800/b.jsonl"}', "not-a-session"),
        (b'{"transcript_path": "/%s.jsonl"}' % SECRET.encode(), "not-a-session"),
    ],
)
def test_other_input_is_refused_and_logged(sent: bytes, outcome: str, sessions: Path) -> None:
    assert end("claude-code", sent) == outcome
    assert not archived()
    assert SECRET not in log_path().read_text()
    assert OUTCOMES[outcome] in clew("hook", "status").out


def test_files_that_clew_would_not_read_itself_are_refused(sessions: Path, tmp_path: Path) -> None:
    session = Path(path_of("claude-code", LATEST))
    outside = tmp_path / session.name
    shutil.copy(session, outside)
    settings = sessions / ".claude" / "settings.json"
    settings.write_text("{}")
    link = session.with_name("0aa6d7a5-8812-47d5-b5c8-4fd6bf0739b3.jsonl")
    link.symlink_to(outside)
    linked_folder = session.parent.parent / "-linked"
    linked_folder.symlink_to(tmp_path)
    other_agent = path_of("codex")
    for path in (
        *(outside, settings, link, linked_folder / session.name, other_agent, session.parent),
        session.parent / "gone.jsonl",
        session.parent / ".." / ".." / ".." / ".." / ".." / "etc" / "passwd",
    ):
        assert end("claude-code", payload(path)) == "not-a-session", path
    assert not archived()


def test_a_pipe_is_not_opened(sessions: Path) -> None:
    pipe = Path(path_of("claude-code", LATEST)).with_name("1aa6d7a5-8812-47d5-b5c8-4fd6bf0739b3.jsonl")
    os.mkfifo(pipe)
    assert end("claude-code", payload(pipe)) in ("not-a-session", "unreadable", "failed")


def test_an_unknown_agent_is_an_outcome(sessions: Path) -> None:
    assert end("no-such-agent", payload("/x")) == "failed"


def test_nothing_of_a_session_gets_into_the_log(sessions: Path) -> None:
    path = Path(path_of("claude-code", LATEST)).with_name(f"{SECRET}.jsonl")
    path.write_text(json.dumps({"type": "user", "uuid": "1", "message": {"role": "user", "content": "swordfish"}}))
    assert end("claude-code", payload(path, last_assistant_message="swordfish")) == "archived"
    assert "swordfish" not in log_path().read_text()
    assert SECRET not in log_path().read_text()
    assert SECRET not in clew("hook", "status").out


def test_a_damaged_archive_is_an_outcome(sessions: Path) -> None:
    path = path_of("claude-code", LATEST)
    (data_dir() / "archive").write_text("not a folder")
    assert end("claude-code", payload(path)) == "failed"
    assert "run `clew archive`" in clew("hook", "status").out


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff", b'{"x": 5}'])
def test_a_damaged_list_of_runs_is_set_aside(content: bytes, sessions: Path) -> None:
    clew("hook", "install", "--agent", "claude-code")
    path = path_of("claude-code", LATEST)
    log_path().write_bytes(content)
    shown = clew("hook", "status")
    assert shown.code == 0
    assert "installed" in shown.out
    assert str(log_path()) in shown.err and "no hook was run" not in shown.err
    assert clew("hook", "status", "--json").json["runs"] is None
    done = CliRunner().invoke(main, ["hook", "run", "--agent", "claude-code", "--foreground"], input=payload(path))
    assert (done.exit_code, done.output) == (0, "")
    assert [run.outcome for _, run in load_runs()] == ["archived"]
    assert log_path().with_name("hooks.json.damaged").read_bytes() == content


def test_the_list_of_runs_stays_short(sessions: Path) -> None:
    for _ in range(MAX_RUNS + 5):
        end_once = CliRunner().invoke(main, ["hook", "run", "--agent", "claude-code", "--foreground"], input=b"")
        assert end_once.exit_code == 0
    assert len(load_runs()) == MAX_RUNS


@pytest.mark.parametrize(
    ("words", "outcome"),
    [
        (("--agent", "claude-code", "--later", "--wait", "5", "-x"), "archived"),
        (("--later=1", "--agent", "claude-code", "word"), "archived"),
        (("--agent", "claude-code", "--json"), "archived"),
        ((), "no-agent"),
        (("--agent",), "no-agent"),
        (("--foreground=1",), "no-agent"),
    ],
)
def test_no_option_makes_the_hook_fail(words: tuple[str, ...], outcome: str, sessions: Path) -> None:
    sent = payload(path_of("claude-code", LATEST))
    for options in (("--json",), ()):
        line = [*options, "hook", "run", "--foreground", *words]
        done = CliRunner().invoke(main, line, input=sent)
        assert (done.exit_code, done.output) == (0, "")
    assert load_runs()[-1][1].outcome == outcome
    assert OUTCOMES[outcome] in clew("hook", "status").out


def test_a_hook_without_an_agent_is_recorded_in_the_background(home: Path) -> None:
    done = run("hook", "run", "--later", input=b"{}")
    assert (done.code, done.out, done.err) == (0, "", "")
    wait_for_runs(1)
    assert load_runs()[0][1].outcome == "no-agent"


def test_a_data_folder_that_cannot_be_used_does_not_fail_the_agent(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("relative", str(home / "file")):
        (home / "file").write_text("")
        monkeypatch.setenv("CLEW_DATA_DIR", folder)
        done = CliRunner().invoke(main, ["hook", "run", "--agent", "claude-code", "--foreground"], input="{}")
        assert (done.exit_code, done.output) == (0, "")


def test_the_work_is_done_in_the_background(sessions: Path) -> None:
    path = path_of("claude-code", LATEST)
    done = run("hook", "run", "--agent", "claude-code", input=payload(path).encode())
    assert (done.code, done.out, done.err) == (0, "", "")
    wait_for_runs(1)
    assert load_runs()[0][1].outcome == "archived"
    assert archived() == {path}


def wait_for_runs(count: int) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while len(load_runs()) < count and time.monotonic() < deadline:
        time.sleep(0.1)


@pytest.mark.slow
def test_sessions_that_end_at_once_are_all_archived(sessions: Path) -> None:
    rows = clew("list", "--agent", "claude-code", "--json").json
    paths = {row["path"] for row in rows if "/subagents/" not in row["path"]}
    assert len(paths) > 3
    for path in paths:
        assert run("hook", "run", "--agent", "claude-code", input=payload(path).encode()).code == 0
    wait_for_runs(len(paths))
    assert {one.outcome for _, one in load_runs()} == {"archived"}
    assert paths <= archived()


def test_an_archive_in_use_is_an_outcome(sessions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = path_of("claude-code", LATEST)
    monkeypatch.setattr("clew.hooks.capture.ARCHIVE_LOCK_WAIT_SECONDS", 0.1)
    with open_writer(archive_folder(None)):
        assert end("claude-code", payload(path)) == "busy"
    assert end("claude-code", payload(path)) == "archived"
