"""clew export --format hf: a dataset of agent traces, masked unless told otherwise."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from clew.agents import registry
from tests.cli.running import BELL, LATEST, WITH_AGENTS, clew
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


def test_the_subagents_of_a_session_are_files_too(synced_demo: Path, tmp_path: Path) -> None:
    ran = clew("export", "--home", synced_demo, WITH_AGENTS, "--to", "hf", "-o", tmp_path / "out")
    assert ran.code == 0 and "3 files in " in ran.err and "lost:" not in ran.err
    files = (tmp_path / "out/sessions/claude-code").iterdir()
    agents = [path.name for path in files if path.name != f"{WITH_AGENTS}.jsonl"]
    assert len(agents) == 2 and all(name.startswith("agent-") for name in agents)
    assert "| claude-code | 3 |" in (tmp_path / "out/README.md").read_text(encoding="utf-8")


def test_subagents_in_the_file_of_a_session_are_traces(synced_demo: Path, tmp_path: Path) -> None:
    trajectory = tmp_path / "trajectory.json"
    assert clew("export", "--home", synced_demo, WITH_AGENTS, "--to", "atif", "-o", trajectory).code == 0
    assert clew("export", trajectory, "--to", "hf", "-o", tmp_path / "out").code == 0
    files = sorted((tmp_path / "out/sessions/harbor").iterdir())
    assert len(files) == 3 and len({lines(path)[0]["id"] for path in files}) == 3
    for path in files:
        check_simple_trace(path)


def test_secrets_of_a_session_are_masked_in_its_subagents(transcript: Transcript, tmp_path: Path) -> None:
    secret = sha256(b"bell tower").hexdigest()[:24]
    call = {"type": "tool_use", "id": "a", "name": "Agent", "input": {"prompt": "Look."}}
    transcript.add("user", f"password={secret}").add("assistant", [call], id="m1")
    answer = [{"type": "tool_result", "tool_use_id": "a", "content": "None."}]
    transcript.add("user", answer, toolUseResult={"agentId": "abc1234"})
    subagent = Transcript(transcript.path.with_suffix("") / "subagents")
    subagent.path = subagent.path.with_name("agent-abc1234.jsonl")
    subagent.path.parent.mkdir(parents=True)
    head = {"sessionId": transcript.path.stem, "isSidechain": True, "agentId": "abc1234"}
    subagent.add("user", f"Look for {secret} here.", **head).add("assistant", "None.", id="s1", **head)
    assert clew("export", transcript.path, "--to", "hf", "-o", tmp_path / "out").code == 0
    files = list((tmp_path / "out/sessions/claude-code").iterdir())
    assert len(files) == 2 and not [path for path in files if secret in path.read_text()]


def test_losses_are_listed(synced_demo: Path, tmp_path: Path) -> None:
    ran = clew("export", "--home", synced_demo, BELL, "--to", "hf", "-o", tmp_path / "out")
    assert "  lost: #8: 2 messages on other branches: the format has one line of messages\n" in ran.err
    assert "  note: the tokens of 5 calls of a model: the format has no place for them\n" in ran.err
    ran = clew("export", "--home", synced_demo, "--to", "hf", "-o", tmp_path / "all")
    assert re.search(r"  lost: \d+ x a message on another branch, in \d+ sessions?: the format has one line", ran.err)
    assert re.search(r"  note: \d+ x the tokens of a call of a model, in \d+ sessions: ", ran.err)


def test_a_folder_with_a_suffix_is_refused(synced_demo: Path, tmp_path: Path) -> None:
    for reference in ([BELL], []):
        refused = clew("export", "--home", synced_demo, *reference, "--to", "hf", "-o", tmp_path / "d.hf")
        assert refused.code == 2 and "d.hf: a dataset is a folder; name one without a suffix" in refused.err


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
