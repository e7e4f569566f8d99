"""Conversions with clew between the homes of real clients, and which of them the tests try."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clew.agents import registry
from clew.convert.conversation import FAILED_MARK
from tests.cli.running import clew
from tests.realclients.client import Client, Story
from tests.realclients.clients import CLIENTS, STORIES
from tests.realclients.comparison import differences, with_thoughts_as_answers, without_thinking
from tests.realclients.history import Entry
from tests.realclients.lab import Run, require, run_command
from tests.realclients.recording import RESUME_PROMPT, Recording, resume

FULL_MATRIX = ("claude", "codex", "gemini")
"""The clients of which every story is converted to every other. The others are tried against the first two alone."""
PARTNERS = FULL_MATRIX[:2]


def is_readable(client: Client) -> bool:
    """Whether clew reads the sessions of the client."""
    return client.agent in registry.names()


def is_target(client: Client) -> bool:
    """Whether clew converts sessions to the client."""
    return is_readable(client) and registry.get(client.agent).target_profile() is not None


TARGETS = {name: client for name, client in CLIENTS.items() if is_target(client)}


def pairs() -> list[tuple[Story, Client]]:
    """The stories and the clients they are converted to."""
    return [
        (story, target)
        for story in STORIES.values()
        for target in TARGETS.values()
        if is_readable(story.client) and _is_tried(story, target)
    ]


def _is_tried(story: Story, target: Client) -> bool:
    source = story.client
    if source is target or (source.name in FULL_MATRIX and target.name in FULL_MATRIX):
        return True
    return story.name in PARTNERS or (target.name in PARTNERS and source.name not in FULL_MATRIX)


def convert(reference: str, source: Path, target: Client, target_home: Path, *options: str) -> dict[str, Any]:
    """Convert a session from one home to another. Skip the test where the target client cannot be run."""
    require(target)
    homes = ("--home", source, "convert", reference, "--to", target.agent, "--home", target_home)
    done = clew(*homes, "--allow-loss", "--json", *options)
    assert done.code == 0, done.out + done.err
    outcome: dict[str, Any] = done.json
    if outcome["imports"]:
        rows = clew("--home", target_home, "list", "--json").json
        (folder,) = {row["workspace"] for row in rows if row["id"] == outcome["session_id"]}
        for _, *arguments in outcome["imports"]:
            run_command(target, target_home, Path(folder), arguments)
    return outcome


def resume_converted(client: Client, home: Path, recording: Recording, session: str) -> Run:
    """Resume a converted session; in the client that recorded it, with the options it was recorded with."""
    options = recording.story.options if recording.client is client else ()
    return resume(client, home, recording.project, session, options)


def assert_loaded(resumed: Run, expected: list[Entry], losses: list[dict[str, Any]]) -> None:
    """The client loaded everything, except for the losses that the conversion reported."""
    images = resumed.client.sends_images and not any("picture" in loss["what"] for loss in losses)
    if resumed.client.sends_thoughts_as_answers:
        expected = with_thoughts_as_answers(expected)
    history = [entry._replace(text=entry.text.removeprefix(f"{FAILED_MARK}\n")) for entry in resumed.check().history()]
    found = without_thinking(history, images=images)
    report = differences(found, [*without_thinking(expected, images=images), Entry("user", RESUME_PROMPT)])
    assert not report, "\n".join(report)
