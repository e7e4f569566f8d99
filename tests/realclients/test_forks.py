"""Sessions that are made of others: threads of Codex that refer to one, branches of Qwen Code that copy one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.running import clew
from tests.realclients.clients import CLIENTS
from tests.realclients.conversion import FULL_MATRIX, assert_loaded, convert, resume_converted
from tests.realclients.recording import Recordings, resume, resume_recording
from tests.realclients.script import Usage
from tests.realclients.test_damage import main_file

BASE = "019fffff-0000-7000-8000-00000000000b"


def split_thread(path: Path) -> None:
    """Move the first half of a rollout into a file of its own, and refer to it as a fork does."""
    lines = path.read_bytes().splitlines(keepends=True)
    cut = next(at for at, line in enumerate(lines) if b'"role":"assistant"' in line) + 1
    head = json.loads(lines[0])
    before = b"".join(lines[:cut]).replace(head["payload"]["id"].encode(), BASE.encode())
    path.with_name(path.name.replace(head["payload"]["id"], BASE)).write_bytes(before)
    base = {"thread_id": BASE, "end_ordinal_exclusive": cut, "end_byte_offset": len(before)}
    head["payload"] |= {"history_base": base, "forked_from_id": BASE}
    own = [json.dumps(head | {"ordinal": cut}, separators=(",", ":")).encode() + b"\n", *lines[cut:]]
    path.write_bytes(b"".join(with_ordinal(line, cut + at) for at, line in enumerate(own)))


def with_ordinal(line: bytes, number: int) -> bytes:
    return re.sub(rb'\A(\{"timestamp":"[^"]*","ordinal":)\d+', rb"\g<1>%d" % number, line)


@pytest.fixture(scope="module")
def forked(recordings: Recordings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which the recorded thread builds upon another."""
    recording = recordings.recording("codex")
    home = recording.client.copy_home(recording.home, tmp_path_factory.mktemp("forked") / "home")
    split_thread(main_file(recording, home))
    return home


def test_codex_resumes_the_forked_thread(forked: Path, recordings: Recordings, tmp_path: Path) -> None:
    recording = recordings.recording("codex")
    resumed = resume_recording(recording, recording.client.copy_home(forked, tmp_path / "home"), recording.session)
    assert_loaded(resumed, recordings.history("codex"), [])


@pytest.mark.parametrize("name", FULL_MATRIX)
def test_a_forked_thread_is_converted_with_its_history(
    name: str, forked: Path, recordings: Recordings, tmp_path: Path
) -> None:
    recording = recordings.recording("codex")
    target = CLIENTS[name]
    outcome = convert(recording.session, forked, target, tmp_path)
    assert not [loss for loss in outcome["losses"] if "history" in loss["what"]]
    resumed = resume_converted(target, tmp_path, recording, outcome["session_id"])
    assert_loaded(resumed, recordings.history("codex"), outcome["losses"])


def test_a_branch_of_qwen_repeats_no_usage(recordings: Recordings, tmp_path: Path) -> None:
    recording = recordings.recording("qwen")
    home = recording.client.copy_home(recording.home, tmp_path / "home")
    before = clew("stats", "--json", "--home", home).json["totals"]
    resume(recording.client, home, recording.project, recording.session, ("--fork-session",)).check()
    (branch,) = set(recording.client.session_ids(home)) - {recording.session}
    after = clew("stats", "--json", "--home", home).json["totals"]
    assert after["output_tokens"] - before["output_tokens"] == Usage().output
    document = json.loads(clew("export", branch, "--home", home).raw)
    assert document["session"]["extensions"]["qwen-code"] == {"forked_from": recording.session}
