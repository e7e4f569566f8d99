"""The clients record, find and resume their own sessions."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.realclients.clients import CLAUDE, LATEST
from tests.realclients.conftest import GO_ON, Studio, go_on
from tests.realclients.history import Entry, texts
from tests.realclients.script import Call, Say
from tests.realclients.stories import ERRAND, HORN, Recording, flag


def test_every_run_ended_well(recording: Recording) -> None:
    for one in recording.runs:
        one.check()


def test_a_session_is_resumed_in_full(recording: Recording, studio: Studio) -> None:
    held = studio.held(recording.story.name)
    parts = recording.story.parts(recording.project)
    steps = [step for part in parts for turn in part.turns for step in turn.steps]
    prompts = [part.prompt for part in parts]
    assert [text for text in texts(held, "user") if text in prompts] == prompts
    assert texts(held, "answer") == [step.text for step in steps if isinstance(step, Say)]
    calls = [step for step in steps if isinstance(step, Call)]
    assert [entry.name for entry in held if entry.kind == "call"] == [call.name for call in calls]
    assert len(texts(held, "result")) == len(calls)


def test_the_newest_session_is_found(recording: Recording, studio: Studio, tmp_path: Path) -> None:
    home = recording.story.client.copy(recording.home, tmp_path / "home")
    again = go_on(recording, home, LATEST).check()
    assert again.history() == [*studio.held(recording.story.name), Entry("user", GO_ON)]


def test_the_tools_really_ran(recording: Recording) -> None:
    bell = (recording.project / "bell.py").read_text(encoding="utf-8")
    assert "'dong'" not in bell
    if recording.story.name != "codex-code":
        assert (recording.project / "horn.py").read_text(encoding="utf-8") == HORN.replace("toot", "TOOT")


@pytest.mark.parametrize("name", ["claude", "codex", "gemini"])
def test_pictures_are_seen(name: str, studio: Studio) -> None:
    assert texts(studio.held(name), "image") == [hashlib.sha256(flag()).hexdigest()]


@pytest.mark.parametrize("name", ["claude", "codex-code", "gemini"])
def test_sub_agents_have_files_of_their_own(name: str, studio: Studio) -> None:
    recording = studio.recording(name)
    assert ERRAND in texts(recording.runs[0].history(ERRAND), "user")[-1]
    client = recording.story.client
    assert [path for path in recording.files if client.id_of(path) is None]


def test_checkpoints_are_kept(studio: Studio) -> None:
    recording = studio.recording("claude-checkpoints")
    backups = [path for path in (recording.home / ".claude/file-history").rglob("*@v*") if path.is_file()]
    assert backups
    (session,) = CLAUDE.files(recording.home)
    assert b'"type":"file-history-snapshot"' in session.read_bytes()
