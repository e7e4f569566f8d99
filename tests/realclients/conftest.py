"""The fixtures of the tests with real clients, and the order in which workers run them."""

from __future__ import annotations

import pytest

from tests.realclients.client import Client, FileChanges, Story
from tests.realclients.clients import CLIENTS, STORIES
from tests.realclients.conversion import FULL_MATRIX
from tests.realclients.recording import Recording, Recordings


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let one worker run all tests of a client, so that its sessions are recorded once."""
    for item in items:
        if isinstance(item, pytest.Function) and item.path.is_relative_to(__file__.rpartition("/")[0]):
            values = item.callspec.params.values() if hasattr(item, "callspec") else ()
            names = [client.name for client in map(_client_of, values) if client is not None]
            # Most tests of another client also have one of these three.
            others = [name for name in names if name not in FULL_MATRIX]
            item.add_marker(pytest.mark.xdist_group([item.path.stem, *names, *others][-1]))


def _client_of(parameter: object) -> Client | None:
    if isinstance(parameter, str):
        parameter = STORIES.get(parameter) or CLIENTS.get(parameter)
    return (
        parameter.client
        if isinstance(parameter, Story | FileChanges)
        else parameter
        if isinstance(parameter, Client)
        else None
    )


@pytest.fixture(scope="session")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Recordings:
    """The recordings of all stories, none of them recorded yet."""
    return Recordings(tmp_path_factory.mktemp("recordings"))


@pytest.fixture(params=STORIES)
def recording(request: pytest.FixtureRequest, recordings: Recordings) -> Recording:
    """Each story in turn, recorded."""
    return recordings.recording(request.param)
