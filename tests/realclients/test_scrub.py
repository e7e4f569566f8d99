"""A session from which clew removed a secret in place is resumed by its own client, with everything but the secret."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from clew.redact.masks import MARKER
from tests.cli.running import clew
from tests.realclients.comparison import differences, without_thinking
from tests.realclients.conversion import FULL_MATRIX
from tests.realclients.history import Entry
from tests.realclients.recording import RESUME_PROMPT, Recording, Recordings, resume_recording
from tests.redact.planted import Planter

SECRET = Planter("real").github()


def plant(recording: Recording, home: Path, word: str) -> list[Path]:
    """Put the secret in the place of a word, in a copy of the session's files; returns those that had it."""
    own = [home / path.relative_to(recording.home) for path in recording.files]
    holders = [path for path in own if word.encode() in path.read_bytes()]
    for path in holders:
        path.write_bytes(path.read_bytes().replace(word.encode(), SECRET.encode()))
    return holders


def a_word(entries: list[Entry], recording: Recording) -> str:
    """A word of the first prompt that is no key and no name in the session's files."""
    content = b"".join(path.read_bytes() for path in recording.files)
    prompt = next(entry.text for entry in entries if entry.kind == "user")
    words: list[str] = re.findall(r"[A-Za-z]{4,}", prompt)
    return next(word for word in words if f'"{word}"'.encode() not in content and f"{word}." not in content.decode())


@pytest.mark.parametrize("name", FULL_MATRIX)
def test_RD08_a_scrubbed_session_is_resumed(name: str, recordings: Recordings, tmp_path: Path) -> None:
    recording, history = recordings.recording(name), recordings.history(name)
    word = a_word(history, recording)
    home = recording.client.copy_home(recording.home, tmp_path / "dirty")
    assert plant(recording, home, word)

    done = clew("--home", home, "redact", "scrub", recording.session, "--write", "--json")
    assert done.code == 0, done.err
    cleaned = [Path(file["path"]) for file in done.json["sessions"][0]["files"]]
    content = "".join(path.read_text() for path in cleaned)
    assert SECRET not in content
    (marker,) = {match.group() for match in MARKER.finditer(content)}

    resumed = resume_recording(recording, home, recording.session)
    expected = [*(masked(entry, word, marker) for entry in without_thinking(history)), Entry("user", RESUME_PROMPT)]
    report = differences(without_thinking(resumed.check().history()), expected)
    assert not report, "\n".join(report)


def masked(entry: Entry, word: str, marker: str) -> Entry:
    given = json.loads(json.dumps(entry.input).replace(word, marker))
    return entry._replace(text=entry.text.replace(word, marker), input=given)
