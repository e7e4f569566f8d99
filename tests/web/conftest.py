"""The app over the demo home, once for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.demo_home import write_small_demo
from tests.web.shown import Shown, shown


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    folder = tmp_path_factory.mktemp("web")
    write_small_demo(folder / "home")
    with shown(folder / "home", folder / "catalog") as app:
        yield app
