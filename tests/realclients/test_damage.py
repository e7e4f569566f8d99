"""clew repairs a damaged session of which its own client would load a part only, and the client loads all of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.realclients.comparison import differences, without_thinking
from tests.realclients.conversion import convert
from tests.realclients.history import Entry
from tests.realclients.recording import RESUME_PROMPT, Recording, Recordings, resume_recording

TORN = b'{"timestamp":"2026-11-15T05:00:00.000Z","type":"assis'


def main_file(recording: Recording, home: Path) -> Path:
    """The largest file of the session itself, in a copy of its home."""
    client = recording.client
    own = [path for path in recording.files if client.id_of(path) == recording.session]
    largest = max(own, key=lambda path: path.stat().st_size)
    return home / largest.relative_to(recording.home)


def reply_lines(lines: list[bytes]) -> list[int]:
    """The lines that hold a reply of the model, in any of the formats."""
    marks = (b'"type":"assistant"', b'"type":"gemini"', b'"role":"assistant"')
    return [at for at, line in enumerate(lines) if any(mark in line for mark in marks)]


def join_lines(path: Path, at: int) -> None:
    """Two records on one line, and a last one that stops in the middle."""
    lines = path.read_bytes().splitlines(keepends=True)
    lines[reply_lines(lines)[at]] = lines[reply_lines(lines)[at]].rstrip(b"\n")
    path.write_bytes(b"".join(lines) + TORN)


def join_the_first_reply(path: Path) -> None:
    join_lines(path, 0)


def join_the_last_reply(path: Path) -> None:
    join_lines(path, -1)


def lose_a_parent(path: Path) -> None:
    """A prompt that names a parent which is nowhere."""
    lines = path.read_bytes().splitlines(keepends=True)
    records = [json.loads(line) for line in lines]
    prompts = [at for at, each in enumerate(records) if isinstance((each.get("message") or {}).get("content"), str)]
    record = {**records[prompts[-1]], "parentUuid": "00000000-0000-4000-8000-000000000000"}
    lines[prompts[-1]] = json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
    path.write_bytes(b"".join(lines))


CASES = [
    ("claude", join_the_first_reply),
    ("claude", lose_a_parent),
    ("codex", join_the_first_reply),
    ("gemini", join_the_last_reply),
]


@pytest.mark.parametrize(("name", "damage"), CASES, ids=lambda case: getattr(case, "__name__", case))
def test_a_repaired_session_is_resumed_with_all_of_its_history(
    name: str, damage: Callable[[Path], None], recordings: Recordings, tmp_path: Path
) -> None:
    recording = recordings.recording(name)
    client = recording.client
    broken, unrepaired, repaired = tmp_path / "broken", tmp_path / "unrepaired", tmp_path / "repaired"
    client.copy_home(recording.home, broken)
    damage(main_file(recording, broken))
    expected = [*without_thinking(recordings.history(name)), Entry("user", RESUME_PROMPT)]

    if damage is not lose_a_parent:  # which this version of the client repairs by itself
        unrepaired_run = resume_recording(recording, client.copy_home(broken, unrepaired), recording.session)
        assert (
            unrepaired_run.outcome.code != 0
            or unrepaired_run.outcome.errors
            or differences(without_thinking(unrepaired_run.history()), expected)
        )

    outcome = convert(recording.session, broken, client, repaired)
    resumed = resume_recording(recording, repaired, outcome["session_id"])
    report = differences(without_thinking(resumed.check().history()), expected)
    assert not report, "\n".join(report)
