"""Any agent to any agent: a session of one is converted, and the real client of another goes on with all of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import clew
from tests.demo_home import write_small_demo
from tests.realclients.clients import CLIENTS, LATEST, Client
from tests.realclients.comparing import differences, said
from tests.realclients.conftest import GO_ON, Studio
from tests.realclients.history import Entry, image
from tests.realclients.lab import Run, run
from tests.realclients.script import Script
from tests.realclients.stories import STORIES, Story

SAGES = ("sage-agent", "sage-emacs")
EVERY = [pytest.param(name, target, id=f"{name}-to-{target.name}") for name in STORIES for target in CLIENTS.values()]
FOREIGN = [
    pytest.param(name, target, id=f"{name}-to-{target.name}")
    for name, story in STORIES.items()
    for target in CLIENTS.values()
    if target is not story.client
]
DEMO_PROJECTS = "/home/ada/src"


def convert(reference: str, source: Path, agent: str, target: Path) -> dict[str, Any]:
    """Convert a session from one home to another."""
    done = clew("--home", source, "convert", reference, "--to", agent, "--home", target, "--allow-loss", "--json")
    assert done.code == 0, done.out + done.err
    outcome: dict[str, Any] = done.json
    return outcome


def resume(client: Client, home: Path, project: Path, session: str, story: Story | None = None) -> Run:
    """Go on with a session; in the client that recorded it, with the options it was recorded with."""
    options = story.options if story is not None and story.client is client else ()
    return run(client, home, project, GO_ON, Script(answers_on=True), session=session, options=options)


def assert_loaded(again: Run, expected: list[Entry], losses: list[dict[str, Any]]) -> None:
    """The client went on with everything, but for what the conversion said would be lost."""
    pictures = not any("picture" in loss["what"] for loss in losses)
    found = said(again.check().history(), pictures=pictures)
    report = differences(found, [*said(expected, pictures=pictures), Entry("user", GO_ON)])
    assert not report, "\n".join(report)


def below(home: Path, files: list[Path]) -> dict[str, bytes]:
    return {str(path.relative_to(home)): path.read_bytes() for path in files}


@pytest.mark.parametrize(("name", "target"), EVERY)
def test_a_recorded_session_goes_on_in_another_client(
    name: str, target: Client, studio: Studio, tmp_path: Path
) -> None:
    recording = studio.recording(name)
    outcome = convert(recording.session, recording.home, target.agent, tmp_path)
    again = resume(target, tmp_path, recording.project, outcome["session_id"], recording.story)
    assert_loaded(again, studio.held(name), outcome["losses"])


@pytest.mark.parametrize("target", CLIENTS.values(), ids=[f"to-{name}" for name in CLIENTS])
def test_a_converted_session_is_found_as_the_newest(target: Client, studio: Studio, tmp_path: Path) -> None:
    recording = studio.recording("claude")
    outcome = convert(recording.session, recording.home, target.agent, tmp_path)
    again = resume(target, tmp_path, recording.project, LATEST)
    assert_loaded(again, studio.held("claude"), outcome["losses"])


@pytest.mark.parametrize(("name", "target"), FOREIGN)
def test_converting_back_gives_the_bytes(name: str, target: Client, studio: Studio, tmp_path: Path) -> None:
    own = STORIES[name].client
    recording = studio.recording(name)
    there, back = tmp_path / "there", tmp_path / "back"
    outcome = convert(recording.session, recording.home, target.agent, there)
    returned = convert(outcome["session_id"], there, own.agent, back)
    assert returned["session_id"] == recording.session
    whole = below(recording.home, [path for path in recording.files if own.id_of(path) == recording.session])
    assert below(back, [Path(path) for path in returned["files"]]).items() >= whole.items()


@pytest.mark.parametrize(("name", "target"), FOREIGN)
def test_what_was_said_elsewhere_comes_back_too(name: str, target: Client, studio: Studio, tmp_path: Path) -> None:
    own = STORIES[name].client
    recording = studio.recording(name)
    there, back = tmp_path / "there", tmp_path / "back"
    outcome = convert(recording.session, recording.home, target.agent, there)
    resume(target, there, recording.project, outcome["session_id"]).check()
    returned = convert(outcome["session_id"], there, own.agent, back)
    again = resume(own, back, recording.project, returned["session_id"], recording.story)
    expected = [*studio.held(name), Entry("user", GO_ON), Entry("answer", "done")]
    assert_loaded(again, expected, outcome["losses"] + returned["losses"])


@pytest.fixture(scope="session")
def moved_demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo home, with its projects where clients can be started in them."""
    folder = tmp_path_factory.mktemp("demo")
    home, projects = folder / "home", folder / "src"
    for path in write_small_demo(home):
        path.write_bytes(path.read_bytes().replace(DEMO_PROJECTS.encode(), str(projects).encode()))
    return home


def sage_sessions(home: Path, agent: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = clew("list", "--agent", agent, "--home", home, "--json").json
    return rows


def document_history(home: Path, session: str) -> list[Entry]:
    """What the active path of a session says, read from its unified document."""
    document = json.loads(clew("export", session, "--home", home).raw)
    active = set(document["graph"]["active_path"])
    spoken = [each for each in document["messages"] if each["uuid"] in active and each["role"] != "system"]
    return [entry for message in spoken for block in message["content"] for entry in _entries(message["role"], block)]


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


@pytest.mark.usefixtures("lab")
@pytest.mark.parametrize("target", CLIENTS.values(), ids=[f"to-{name}" for name in CLIENTS])
@pytest.mark.parametrize("agent", SAGES)
def test_sage_sessions_go_on_in_every_client(agent: str, target: Client, moved_demo: Path, tmp_path: Path) -> None:
    rows = sage_sessions(moved_demo, agent)
    assert rows
    for row in rows:
        home, project = tmp_path / row["id"].replace("/", "-"), Path(row["workspace"])
        project.mkdir(parents=True, exist_ok=True)
        reference = f"{agent}:{row['id']}"
        outcome = convert(reference, moved_demo, target.agent, home)
        again = resume(target, home, project, outcome["session_id"])
        assert_loaded(again, document_history(moved_demo, reference), outcome["losses"])
