"""Sessions that the clients record, and resume."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.realclients.client import Client, Story
from tests.realclients.clients import STORIES
from tests.realclients.history import Entry
from tests.realclients.lab import Run, require, run
from tests.realclients.project import build_project
from tests.realclients.script import Script

RESUME_PROMPT = "Go on."


@dataclass(frozen=True)
class Recording:
    """A session that a client wrote."""

    story: Story
    home: Path
    project: Path
    session: str
    runs: tuple[Run, ...]

    @property
    def client(self) -> Client:
        return self.story.client

    @property
    def files(self) -> list[Path]:
        return self.client.files(self.home)


class Recordings:
    """Records each story once, when a test needs it first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._recordings: dict[str, Recording] = {}
        self._failures: dict[str, str] = {}
        self._resumed: dict[str, Run] = {}

    def recording(self, name: str) -> Recording:
        """The recording; tests must not change its home."""
        if name in self._failures:
            raise AssertionError(f"recording {name} failed before: {self._failures[name]}")
        if name not in self._recordings:
            try:
                self._recordings[name] = record(STORIES[name], self._folder / name)
            except Exception as error:
                self._failures[name] = str(error)
                raise
        return self._recordings[name]

    def resumed(self, name: str) -> Run:
        """The client that recorded the story, resuming a copy of it."""
        if name not in self._resumed:
            recording = self.recording(name)
            home = recording.client.copy_home(recording.home, self._folder / f"{name}-resumed")
            self._resumed[name] = resume_recording(recording, home, recording.session)
        return self._resumed[name]

    def history(self, name: str) -> list[Entry]:
        """The history that its own client sends to the model when it resumes the session."""
        *history, last = self.resumed(name).check().history()
        assert last == Entry("user", RESUME_PROMPT)
        return history


def record(story: Story, folder: Path) -> Recording:
    """Let the client record the story, in a home and a project below the folder."""
    require(story.client)
    home, project = folder / "home", folder / "harbour"
    build_project(project)
    runs: list[Run] = []
    session: str | None = None
    for part in story.parts(project):
        environment = {**story.environment, **part.environment}
        finished = run(
            story.client,
            home,
            project,
            part.prompt,
            part.script,
            session=session,
            environment=environment,
            options=story.options,
        )
        runs.append(finished.check())
        (session,) = story.client.session_ids(home)
    assert session is not None
    return Recording(story, home, project, session, tuple(runs))


def resume_recording(recording: Recording, home: Path, session: str) -> Run:
    """Resume a session with the client, the options and the environment that recorded it."""
    story = recording.story
    return resume(story.client, home, recording.project, session, story.options, story.environment)


def resume(
    client: Client,
    home: Path,
    project: Path,
    session: str,
    options: tuple[str, ...] = (),
    environment: Mapping[str, str] | None = None,
) -> Run:
    """Resume a session with one more prompt, which the model answers with `DONE`."""
    script = Script(answers_forever=True)
    return run(client, home, project, RESUME_PROMPT, script, session=session, environment=environment, options=options)
