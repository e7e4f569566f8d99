"""A home with sessions of all agents."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.demo import write_demo


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with demo sessions; tests only read it."""
    home = tmp_path_factory.mktemp("demo") / "home"
    write_demo(home)
    return home
