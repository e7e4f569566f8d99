"""A session that its own client cuts short is written anew by clew, and the client goes on with all of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.realclients.comparing import differences, said
from tests.realclients.conftest import GO_ON, Studio, go_on
from tests.realclients.history import Entry
from tests.realclients.stories import Recording
from tests.realclients.test_resume_matrix import convert

TORN = b'{"timestamp":"2026-11-15T05:00:00.000Z","type":"assis'


def main_file(recording: Recording, home: Path) -> Path:
    """The largest file of the session itself, in a copy of its home."""
    client = recording.story.client
    own = [path for path in recording.files if client.id_of(path) == recording.session]
    largest = max(own, key=lambda path: path.stat().st_size)
    return home / largest.relative_to(recording.home)


def spoken(lines: list[bytes]) -> list[int]:
    """The lines that hold a reply of the model, in any of the formats."""
    marks = (b'"type":"assistant"', b'"type":"gemini"', b'"role":"assistant"')
    return [at for at, line in enumerate(lines) if any(mark in line for mark in marks)]


def glue(path: Path, at: int) -> None:
    """Two records on one line, and a last one that stops in the middle."""
    lines = path.read_bytes().splitlines(keepends=True)
    lines[spoken(lines)[at]] = lines[spoken(lines)[at]].rstrip(b"\n")
    path.write_bytes(b"".join(lines) + TORN)


def glue_the_first_reply(path: Path) -> None:
    glue(path, 0)


def glue_the_last_reply(path: Path) -> None:
    glue(path, -1)


def lose_a_parent(path: Path) -> None:
    """A prompt that names a parent which is nowhere."""
    lines = path.read_bytes().splitlines(keepends=True)
    records = [json.loads(line) for line in lines]
    prompts = [at for at, each in enumerate(records) if isinstance((each.get("message") or {}).get("content"), str)]
    record = {**records[prompts[-1]], "parentUuid": "00000000-0000-4000-8000-000000000000"}
    lines[prompts[-1]] = json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
    path.write_bytes(b"".join(lines))


CASES = [
    ("claude", glue_the_first_reply),
    ("claude", lose_a_parent),
    ("codex", glue_the_first_reply),
    ("gemini", glue_the_last_reply),
]


@pytest.mark.parametrize(("name", "damage"), CASES, ids=lambda case: getattr(case, "__name__", case))
def test_a_damaged_session_goes_on_whole(
    name: str, damage: Callable[[Path], None], studio: Studio, tmp_path: Path
) -> None:
    recording = studio.recording(name)
    client = recording.story.client
    broken, cut, mended = tmp_path / "broken", tmp_path / "cut", tmp_path / "mended"
    client.copy(recording.home, broken)
    damage(main_file(recording, broken))
    expected = [*said(studio.held(name)), Entry("user", GO_ON)]

    if damage is not lose_a_parent:  # which this version of the client mends by itself
        short = go_on(recording, client.copy(broken, cut), recording.session)
        assert short.outcome.code != 0 or short.outcome.misfits or differences(said(short.history()), expected)

    outcome = convert(recording.session, broken, client.agent, mended)
    again = go_on(recording, mended, outcome["session_id"])
    report = differences(said(again.check().history()), expected)
    assert not report, "\n".join(report)
