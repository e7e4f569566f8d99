"""clew reads the homes that real clients wrote: byte for byte, without unknown records, with the right numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Ran, clew
from tests.realclients.clients import STORIES
from tests.realclients.conversion import is_readable
from tests.realclients.recording import Recording, Recordings
from tests.realclients.script import Turn, Usage


@pytest.fixture(params=[story.name for story in STORIES.values() if is_readable(story.client)])
def recording(request: pytest.FixtureRequest, recordings: Recordings) -> Recording:
    """Each story of an agent that clew reads."""
    return recordings.recording(request.param)


def on(recording: Recording, *words: str | Path) -> Ran:
    return clew(*words, "--home", recording.home)


def listed(recording: Recording) -> dict[str, Any]:
    """The main session, as `clew list` has it."""
    rows = [row for row in on(recording, "list", "--json").json if row["id"] == recording.session]
    assert len(rows) == 1, rows
    row: dict[str, Any] = rows[0]
    return row


def turns(recording: Recording) -> list[Turn]:
    """The turns in the session's own file: a sub-agent may have one of its own."""
    found: list[Turn] = []
    for part in recording.story.parts(recording.project):
        found += part.turns if recording.story.has_subagent_file else (*part.turns, *part.subagent_turns)
    return found


def test_every_byte_comes_back(recording: Recording) -> None:
    assert len(recording.files) >= 1
    for path in recording.files:
        done = clew("verify", path, "--json")
        assert (done.code, done.json["different"]) == (0, []), done.err
        if recording.client.list_sessions is None:
            assert done.json["bytes"] >= path.stat().st_size
    whole = on(recording, "verify", "--json")
    assert (whole.code, whole.json["different"]) == (0, []), whole.err
    assert whole.json["identical"] >= len(recording.files)


def test_nothing_is_unknown(recording: Recording) -> None:
    summary = on(recording, "verify", "--json").json
    assert (summary["unknown_types"], summary["unknown_keys"]) == ({}, {})


def test_nothing_is_wrong(recording: Recording) -> None:
    done = on(recording, "validate", "--level", "note")
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("no problems found in ")


def test_the_session_is_listed(recording: Recording) -> None:
    row = listed(recording)
    assert row["agent"] == recording.client.agent
    assert row["workspace"] == str(recording.project)
    assert row["title"] == ("done" if recording.client.asks_for_titles else "Make the bell ring twice.")


def test_tokens_are_counted_once(recording: Recording) -> None:
    one = Usage()
    calls = len(turns(recording))
    tokens = listed(recording)["tokens"]
    assert tokens["input_tokens"] == calls * one.input
    assert tokens["cache_read_tokens"] == calls * one.cached
    assert tokens["output_tokens"] == calls * one.output


def test_the_conversation_is_shown(recording: Recording) -> None:
    shown = on(recording, "show", recording.session, "--detail", "full").out
    for part in recording.story.parts(recording.project):
        assert part.prompt in shown
    assert "dong dong" in shown
