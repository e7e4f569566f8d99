"""The fixtures of the tests with real clients."""

from __future__ import annotations

import os

import pytest

from tests.realclients.clients import STORIES
from tests.realclients.recording import Recording, Recordings


@pytest.fixture(scope="session")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Recordings:
    """The recordings of all stories, none of them recorded yet, in a folder that all workers share."""
    folder = tmp_path_factory.getbasetemp()
    return Recordings((folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "recordings")


@pytest.fixture(params=STORIES)
def recording(request: pytest.FixtureRequest, recordings: Recordings) -> Recording:
    """Each story in turn, recorded."""
    return recordings.recording(request.param)
