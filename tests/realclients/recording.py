"""Sessions that the clients record, and resume."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tests.realclients.client import Client, Story
from tests.realclients.clients import STORIES
from tests.realclients.history import Entry
from tests.realclients.install import locked
from tests.realclients.lab import Run, require, run
from tests.realclients.namespace import Outcome
from tests.realclients.project import build_project
from tests.realclients.script import Script

RESUME_PROMPT = "Go on."
PROJECT = "harbour"
"""The name of the folder that clients work in."""


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


class StoredRuns(msgspec.Struct):
    """The runs of a recording as all workers read them, or why it failed."""

    session: str = ""
    outcomes: list[Outcome] = []
    failure: str = ""


class Recordings:
    """Records each story once, when a test needs it first. Workers that run tests in parallel share the folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._recordings: dict[str, Recording] = {}
        self._resumed: dict[str, Run] = {}

    def recording(self, name: str) -> Recording:
        """The recording; tests must not change its home."""
        if name not in self._recordings:
            story, folder = STORIES[name], self._folder / name
            stored = self._stored(name, lambda: _stored_runs(record(story, folder)))
            runs = tuple(Run(story.client, outcome) for outcome in stored.outcomes)
            self._recordings[name] = Recording(story, folder / "home", folder / PROJECT, stored.session, runs)
        return self._recordings[name]

    def resumed(self, name: str) -> Run:
        """The client that recorded the story, resuming a copy of it."""
        if name not in self._resumed:
            stored = self._stored(f"{name}-resumed", lambda: self._resume(name))
            self._resumed[name] = Run(STORIES[name].client, stored.outcomes[0])
        return self._resumed[name]

    def _resume(self, name: str) -> StoredRuns:
        recording = self.recording(name)
        home = recording.client.copy_home(recording.home, self._folder / f"{name}-resumed")
        return StoredRuns(outcomes=[resume_recording(recording, home, recording.session).outcome])

    def _stored(self, name: str, make: Callable[[], StoredRuns]) -> StoredRuns:
        path = self._folder / f"{name}.json"
        with locked(path.with_suffix(".lock")):
            if not path.exists():
                try:
                    stored = make()
                except Exception as error:
                    stored = StoredRuns(failure=repr(error))
                path.write_bytes(msgspec.json.encode(stored))
        stored = msgspec.json.decode(path.read_bytes(), type=StoredRuns)
        assert not stored.failure, f"{name} failed: {stored.failure}"
        return stored

    def history(self, name: str) -> list[Entry]:
        """The history that its own client sends to the model when it resumes the session."""
        *history, last = self.resumed(name).check().history()
        assert last == Entry("user", RESUME_PROMPT)
        return history


def _stored_runs(recording: Recording) -> StoredRuns:
    return StoredRuns(recording.session, [each.outcome for each in recording.runs])


def record(story: Story, folder: Path) -> Recording:
    """Let the client record the story, in a home and a project below the folder."""
    require(story.client)
    home, project = folder / "home", folder / PROJECT
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
