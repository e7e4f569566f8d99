"""One server over the demo home answers most tests of `clew mcp`."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from clew.catalog.database import catalog_folder
from tests.conftest import environment_of

if TYPE_CHECKING:
    from tests.mcp.client import Client


@pytest.fixture(scope="session")
def client(demo: Path, demo_catalog: Path, isolated_home: Path) -> Iterator["Client"]:
    """A client of a server over the demo home."""
    from tests.mcp.client import connect

    home = isolated_home / "mcp"
    with ExitStack() as stack:
        with environment_of(home):
            shutil.copytree(demo_catalog, catalog_folder([demo]))
            connected = stack.enter_context(connect(demo, cwd=home))
        yield connected
