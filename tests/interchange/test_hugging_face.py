"""clew export --format hf: a dataset of agent traces, masked unless told otherwise."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from clew.agents import registry
from tests.cli.running import BELL, LATEST, clew
from tests.interchange.test_atif import Transcript

ROLES = {"user", "assistant", "system", "tool"}


@pytest.fixture
def transcript(tmp_path: Path) -> Transcript:
    return Transcript(tmp_path)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_each_session_lies_in_the_folder_of_its_agent(synced_demo: Path, tmp_path: Path) -> None:
    out = tmp_path / "dataset"
    ran = clew("export", "--home", synced_demo, "--to", "hf", "-o", out)
    assert ran.code == 0, ran.err
    files = sorted(out.glob("sessions/*/*.jsonl"))
    sessions = clew("list", "--home", synced_demo, "--subagents", "--json", "-n", "1000").json
    assert len(files) == len(sessions)
    assert (out / f"sessions/claude-code/{LATEST}.jsonl").exists()
    card = (out / "README.md").read_text(encoding="utf-8")
    assert card.startswith("---\n") and "- format:agent-traces" in card and "profile `secrets`" in card
    for agent in {path.parent.name for path in files}:
        assert f"- config_name: {agent}\n  data_files: sessions/{agent}/*.jsonl" in card
        for path in files:
            if path.parent.name == agent and not registry.get(agent).is_shown_by_hugging_face:
                check_simple_trace(path)


def check_simple_trace(path: Path) -> None:
    """The Session Trace Simple format: a line for the session, then messages."""
    session, *messages = lines(path)
    assert session["type"] == "session" and session["harness"] == path.parent.name and session["id"]
    assert messages
    for line in messages:
        assert line["type"] == "message"
        message = line["message"]
        assert message["role"] in ROLES and isinstance(message["content"], str)
        assert isinstance(message.get("timestamp", 0), int)
        for call in message.get("toolCalls", ()):
            assert isinstance(json.loads(call["function"]["arguments"]), dict)


def test_files_that_the_hub_shows_are_those_of_the_agent(synced_demo: Path, tmp_path: Path) -> None:
    words = ("export", "--home", synced_demo, LATEST, "--to", "hf", "-o", tmp_path / "out")
    assert clew(*words, "--redact", "none").code == 0
    (original,) = synced_demo.rglob(f"{LATEST}.jsonl")
    assert (tmp_path / f"out/sessions/claude-code/{LATEST}.jsonl").read_bytes() == original.read_bytes()
    assert "Nothing was masked" in (tmp_path / "out/README.md").read_text(encoding="utf-8")


def test_other_sessions_are_simple_traces(synced_demo: Path, tmp_path: Path) -> None:
    assert clew("export", "--home", synced_demo, BELL, "--to", "hf", "-o", tmp_path / "out").code == 0
    (path,) = (tmp_path / "out").glob("sessions/*/*.jsonl")
    check_simple_trace(path)
    roles = [line["message"]["role"] for line in lines(path)[1:]]
    assert "tool" in roles and "assistant" in roles


def test_secrets_are_masked_unless_none_is_named(transcript: Transcript, tmp_path: Path) -> None:
    token = "glpat-" + sha256(b"bell").hexdigest()[:20]
    transcript.add("user", f"Use {token}").add("assistant", "Done.", id="m1")
    name = f"sessions/claude-code/{transcript.path.stem}.jsonl"
    for words, is_masked in (((), True), (("--redact", "secrets"), True), (("--redact", "none"), False)):
        out = tmp_path / f"out{len(words)}{is_masked}"
        assert clew("export", transcript.path, "--to", "hf", "-o", out, *words).code == 0
        assert (token in (out / name).read_text()) is not is_masked


def test_a_dataset_is_not_replaced_without_force(transcript: Transcript, tmp_path: Path) -> None:
    transcript.add("user", "Ring.")
    assert clew("export", transcript.path, "--to", "hf", "-o", tmp_path / "out").code == 0
    refused = clew("export", transcript.path, "--to", "hf", "-o", tmp_path / "out")
    assert refused.code == 6 and "README.md exists" in refused.err
    assert clew("export", transcript.path, "--to", "hf", "-o", tmp_path / "out", "--force").code == 0
    assert clew("export", transcript.path, "--to", "hf").code == 2


def test_a_layout_of_native_files_is_not_a_dataset(transcript: Transcript, tmp_path: Path) -> None:
    transcript.add("user", "Ring.")
    for form in ("hf", "atif", "otel"):
        refused = clew("export", transcript.path, "--to", form, "--layout", "date", "-o", tmp_path / "out")
        assert refused.code == 2 and "--layout" in refused.err
