"""A demo home for all tests of the command line."""

from pathlib import Path

import pytest

from clew.demo import write_demo


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo home; no test may change it."""
    home = tmp_path_factory.mktemp("demo") / "home"
    write_demo(home)
    return home
