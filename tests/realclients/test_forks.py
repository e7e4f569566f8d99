"""A thread of Codex that only refers to the history before it goes over with that history."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.realclients.clients import CLIENTS, Client
from tests.realclients.conftest import Studio, go_on
from tests.realclients.test_damage import main_file
from tests.realclients.test_resume_matrix import assert_loaded, convert, resume

BASE = "019fffff-0000-7000-8000-00000000000b"


def refer(path: Path) -> None:
    """Move the first half of a rollout into one of its own, which it then refers to as a fork does."""
    lines = path.read_bytes().splitlines(keepends=True)
    cut = next(at for at, line in enumerate(lines) if b'"role":"assistant"' in line) + 1
    head = json.loads(lines[0])
    before = b"".join(lines[:cut]).replace(head["payload"]["id"].encode(), BASE.encode())
    path.with_name(path.name.replace(head["payload"]["id"], BASE)).write_bytes(before)
    base = {"thread_id": BASE, "end_ordinal_exclusive": cut, "end_byte_offset": len(before)}
    head["payload"] |= {"history_base": base, "forked_from_id": BASE}
    own = [json.dumps(head | {"ordinal": cut}, separators=(",", ":")).encode() + b"\n", *lines[cut:]]
    path.write_bytes(b"".join(numbered(line, cut + at) for at, line in enumerate(own)))


def numbered(line: bytes, number: int) -> bytes:
    return re.sub(rb'\A(\{"timestamp":"[^"]*","ordinal":)\d+', rb"\g<1>%d" % number, line)


@pytest.fixture(scope="module")
def forked(studio: Studio, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which the recorded thread builds upon another."""
    recording = studio.recording("codex")
    home = recording.story.client.copy(recording.home, tmp_path_factory.mktemp("forked") / "home")
    refer(main_file(recording, home))
    return home


def test_it_is_what_the_client_takes_for_one(forked: Path, studio: Studio, tmp_path: Path) -> None:
    recording = studio.recording("codex")
    again = go_on(recording, recording.story.client.copy(forked, tmp_path / "home"), recording.session)
    assert_loaded(again, studio.held("codex"), [])


@pytest.mark.parametrize("target", CLIENTS.values(), ids=[f"to-{name}" for name in CLIENTS])
def test_it_goes_on_whole(target: Client, forked: Path, studio: Studio, tmp_path: Path) -> None:
    recording = studio.recording("codex")
    outcome = convert(recording.session, forked, target.agent, tmp_path)
    assert not [loss for loss in outcome["losses"] if "history" in loss["what"]]
    again = resume(target, tmp_path, recording.project, outcome["session_id"], recording.story)
    assert_loaded(again, studio.held("codex"), outcome["losses"])
