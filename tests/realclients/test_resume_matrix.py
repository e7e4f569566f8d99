"""A session of one agent is converted to another, whose real client resumes it with all of its history."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import clew
from tests.demo_home import write_small_demo
from tests.realclients.client import LATEST, Client, Story
from tests.realclients.clients import CLIENTS
from tests.realclients.conversion import (
    FULL_MATRIX,
    TARGETS,
    assert_loaded,
    convert,
    pairs,
    resume_converted,
)
from tests.realclients.history import Entry, image
from tests.realclients.recording import RESUME_PROMPT, Recordings, resume

SAGE_AGENTS = ("sage-agent", "sage-emacs")
DEMO_PROJECTS = "/home/ada/src"


def named(tried: list[tuple[Story, Client]]) -> list[Any]:
    return [pytest.param(story, target, id=f"{story.name}-to-{target.name}") for story, target in tried]


PAIRS = pairs()
FOREIGN = [(story, target) for story, target in PAIRS if story.client is not target]
RETURNS = [
    (story, target)
    for story, target in FOREIGN
    if story.name == "claude" or {story.client.name, target.name} <= set(FULL_MATRIX)
]
"""The pairs for which the session goes on in the target and is converted back."""


def below(home: Path, files: list[Path]) -> dict[str, bytes]:
    return {str(path.relative_to(home)): path.read_bytes() for path in files}


@pytest.mark.parametrize(("story", "target"), named(PAIRS))
def test_a_converted_session_is_resumed(story: Story, target: Client, recordings: Recordings, tmp_path: Path) -> None:
    recording = recordings.recording(story.name)
    outcome = convert(recording.session, recording.home, target, tmp_path)
    resumed = resume_converted(target, tmp_path, recording, outcome["session_id"])
    assert_loaded(resumed, recordings.history(story.name), outcome["losses"])


@pytest.mark.parametrize("target", TARGETS.values(), ids=[f"to-{name}" for name in TARGETS])
def test_a_converted_session_is_found_as_the_latest(target: Client, recordings: Recordings, tmp_path: Path) -> None:
    if not target.resumes_latest:
        pytest.skip(f"{target.name} cannot resume its latest session")
    recording = recordings.recording("claude")
    outcome = convert(recording.session, recording.home, target, tmp_path)
    resumed = resume_converted(target, tmp_path, recording, LATEST)
    assert_loaded(resumed, recordings.history("claude"), outcome["losses"])


@pytest.mark.parametrize(("story", "target"), named(FOREIGN))
def test_converting_back_gives_the_bytes(story: Story, target: Client, recordings: Recordings, tmp_path: Path) -> None:
    recording = recordings.recording(story.name)
    there, back = tmp_path / "there", tmp_path / "back"
    outcome = convert(recording.session, recording.home, target, there)
    returned = convert(outcome["session_id"], there, recording.client, back)
    assert returned["session_id"] == recording.session
    own = [path for path in recording.files if recording.client.id_of(path) == recording.session]
    returned_files = below(back, [Path(path) for path in returned["files"]])
    assert returned_files.items() >= below(recording.home, own).items()


@pytest.mark.parametrize(("story", "target"), named(RETURNS))
def test_a_prompt_added_by_the_target_comes_back(
    story: Story, target: Client, recordings: Recordings, tmp_path: Path
) -> None:
    recording = recordings.recording(story.name)
    there, back = tmp_path / "there", tmp_path / "back"
    outcome = convert(recording.session, recording.home, target, there)
    resume(target, there, recording.project, outcome["session_id"]).check()
    returned = convert(outcome["session_id"], there, recording.client, back)
    resumed = resume_converted(recording.client, back, recording, returned["session_id"])
    expected = [*recordings.history(story.name), Entry("user", RESUME_PROMPT), Entry("answer", "done")]
    assert_loaded(resumed, expected, outcome["losses"] + returned["losses"])


@pytest.fixture(scope="session")
def moved_demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo home, with its projects in folders that exist."""
    folder = tmp_path_factory.mktemp("demo")
    home, projects = folder / "home", folder / "src"
    for path in write_small_demo(home):
        path.write_bytes(path.read_bytes().replace(DEMO_PROJECTS.encode(), str(projects).encode()))
    return home


def sage_sessions(home: Path, agent: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = clew("list", "--agent", agent, "--home", home, "--json").json
    return rows


def document_history(home: Path, session: str) -> list[Entry]:
    """The history on the active path of a session, read from its unified document."""
    document = json.loads(clew("export", session, "--home", home).raw)
    active = set(document["graph"]["active_path"])
    messages = [each for each in document["messages"] if each["uuid"] in active and each["role"] != "system"]
    return [entry for message in messages for block in message["content"] for entry in _entries(message["role"], block)]


def _entries(role: str, block: dict[str, Any]) -> list[Entry]:
    match block["type"]:
        case "text":
            return [Entry("user" if role == "user" else "answer", block["text"])] if block["text"] else []
        case "tool_use":
            return [Entry("call", name=block["tool_name"], input=block["input"])]
        case "tool_result":
            output = block.get("output", "")
            return [Entry("result", output if isinstance(output, str) else json.dumps(output))]
        case "image":
            return [image(block["image"])]
    return []


@pytest.mark.parametrize("target", FULL_MATRIX)
@pytest.mark.parametrize("agent", SAGE_AGENTS)
def test_a_converted_session_of_sage_is_resumed(agent: str, target: str, moved_demo: Path, tmp_path: Path) -> None:
    client = CLIENTS[target]
    rows = sage_sessions(moved_demo, agent)
    assert rows
    for row in rows:
        home, project = tmp_path / row["id"].replace("/", "-"), Path(row["workspace"])
        project.mkdir(parents=True, exist_ok=True)
        reference = f"{agent}:{row['id']}"
        outcome = convert(reference, moved_demo, client, home)
        resumed = resume(client, home, project, outcome["session_id"])
        assert_loaded(resumed, document_history(moved_demo, reference), outcome["losses"])
