"""The fixtures of the tests with real clients."""

from __future__ import annotations

import pytest

from tests.realclients.clients import STORIES
from tests.realclients.recording import Recording, Recordings


@pytest.fixture(scope="session")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Recordings:
    """The recordings of all stories, none of them recorded yet."""
    return Recordings(tmp_path_factory.mktemp("recordings"))


@pytest.fixture(params=STORIES)
def recording(request: pytest.FixtureRequest, recordings: Recordings) -> Recording:
    """Each story in turn, recorded."""
    return recordings.recording(request.param)
