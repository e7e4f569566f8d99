"""Fixtures of the archive's tests."""

from pathlib import Path

import pytest

from tests.archive.worlds import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A home and an archive."""
    return World(tmp_path)
