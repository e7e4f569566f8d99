"""What the tests with real clients share: the lab, and sessions recorded once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.realclients.history import Entry
from tests.realclients.lab import Run, run, why_not
from tests.realclients.script import Script
from tests.realclients.stories import STORIES, Recording, record

GO_ON = "Go on."


class Studio:
    """Records each story once, when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._recordings: dict[str, Recording] = {}
        self._resumed: dict[str, Run] = {}

    def recording(self, name: str) -> Recording:
        """The recording; its home must not be changed."""
        if name not in self._recordings:
            self._recordings[name] = record(STORIES[name], self._folder / name)
        return self._recordings[name]

    def resumed(self, name: str) -> Run:
        """Its own client, resuming a copy of it."""
        if name not in self._resumed:
            recording = self.recording(name)
            home = recording.story.client.copy(recording.home, self._folder / f"{name}-again")
            self._resumed[name] = go_on(recording, home, recording.session)
        return self._resumed[name]

    def held(self, name: str) -> list[Entry]:
        """What the session holds, as its own client understands it."""
        *held, asked = self.resumed(name).check().history()
        assert asked == Entry("user", GO_ON)
        return held


def go_on(recording: Recording, home: Path, session: str) -> Run:
    """Resume with the client that recorded."""
    story = recording.story
    script = Script(answers_on=True)
    return run(
        story.client,
        home,
        recording.project,
        GO_ON,
        script,
        session=session,
        environment=story.environment,
        options=story.options,
    )


@pytest.fixture(scope="session")
def lab() -> None:
    """The clients can be run; where not, every test that needs them is skipped."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def studio(lab: None, tmp_path_factory: pytest.TempPathFactory) -> Studio:
    """The studio, with nothing recorded yet."""
    return Studio(tmp_path_factory.mktemp("studio"))


@pytest.fixture(params=STORIES)
def recording(request: pytest.FixtureRequest, studio: Studio) -> Recording:
    """Each story in turn, recorded."""
    return studio.recording(request.param)
