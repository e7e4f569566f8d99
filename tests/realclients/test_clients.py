"""The clients record, find and resume their own sessions."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.realclients.client import LATEST, SUBAGENT_TASK
from tests.realclients.clients import STORIES
from tests.realclients.history import Entry, texts
from tests.realclients.project import HORN, flag_png
from tests.realclients.recording import RESUME_PROMPT, Recording, Recordings, resume_recording
from tests.realclients.script import Call, Say


def test_every_run_succeeds(recording: Recording) -> None:
    for finished in recording.runs:
        finished.check()


def test_a_session_is_resumed_with_all_of_its_history(recording: Recording, recordings: Recordings) -> None:
    history = recordings.history(recording.story.name)
    parts = recording.story.parts(recording.project)
    steps = [step for part in parts for turn in part.turns for step in turn.steps]
    prompts = [part.prompt for part in parts]
    assert [text for text in texts(history, "user") if text in prompts] == prompts
    assert texts(history, "answer") == [step.text for step in steps if isinstance(step, Say)]
    calls = [step for step in steps if isinstance(step, Call)]
    assert [entry.name for entry in history if entry.kind == "call"] == [call.name for call in calls]
    assert len(texts(history, "result")) == len(calls)


def test_the_latest_session_is_found(recording: Recording, recordings: Recordings, tmp_path: Path) -> None:
    if not recording.client.resumes_latest:
        pytest.skip(f"{recording.client.name} cannot resume its latest session")
    home = recording.client.copy_home(recording.home, tmp_path / "home")
    resumed = resume_recording(recording, home, LATEST).check()
    assert resumed.history() == [*recordings.history(recording.story.name), Entry("user", RESUME_PROMPT)]


def test_the_tools_changed_the_files(recording: Recording) -> None:
    bell = (recording.project / "bell.py").read_text(encoding="utf-8")
    assert "'dong'" not in bell
    if recording.story.writes_horn:
        assert (recording.project / "horn.py").read_text(encoding="utf-8") == HORN.replace("toot", "TOOT")


@pytest.mark.parametrize("name", [story.name for story in STORIES.values() if story.shows_image])
def test_images_are_sent_to_the_model(name: str, recordings: Recordings) -> None:
    assert texts(recordings.history(name), "image") == [hashlib.sha256(flag_png()).hexdigest()]


@pytest.mark.parametrize("name", [story.name for story in STORIES.values() if story.has_subagent_file])
def test_sub_agents_have_files_of_their_own(name: str, recordings: Recordings) -> None:
    recording = recordings.recording(name)
    assert SUBAGENT_TASK in texts(recording.runs[0].history(SUBAGENT_TASK), "user")[-1]
    if recording.client.list_sessions is None:
        assert [path for path in recording.files if recording.client.id_of(path) is None]


def test_claude_code_keeps_checkpoints(recordings: Recordings) -> None:
    recording = recordings.recording("claude-checkpoints")
    backups = [path for path in (recording.home / ".claude/file-history").rglob("*@v*") if path.is_file()]
    assert backups
    (session,) = recording.files
    assert b'"type":"file-history-snapshot"' in session.read_bytes()
