"""Every filter chooses the same sessions in list, search, stats, export, the web app, the Python library and a lake."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from clew.catalog.database import catalog_folder
from clew.filters import Filters
from clew.host import Host
from clew.library import Library
from tests.catalog.filter_worlds import FILTERS, HOMES, World, as_options, make_home, name_of, paged
from tests.catalog.worlds import write_claude
from tests.cli.running import clew
from tests.web.shown import Shown, shown


class Asked(NamedTuple):
    """A home, the web app over it, and a lake with its sessions."""

    world: World
    app: Shown
    lake: str


@pytest.fixture(scope="module", params=HOMES)
def asked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    folder = tmp_path_factory.mktemp("filters")
    home: Path = folder / "home"
    make_home(request.param, home, request)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLEW_DATA_DIR", str(folder / "data"))
        with shown(home, catalog_folder([home])) as app:
            assert clew("--home", home, "lake", "write", folder / "lake", "--level", "raw").code in (0, 3)
            yield Asked(World(home), app, f"duckdb:{folder / 'lake'}")


@pytest.mark.parametrize("filters", FILTERS, ids=name_of)
def test_every_interface_chooses_the_same_sessions(asked: Asked, filters: dict[str, Any]) -> None:
    world = asked.world
    listed = world.listed(filters)
    assert world.of_library(filters) == listed
    assert world.searched(filters) == listed & world.with_text
    assert world.counted(filters) == listed
    assert paged(asked.app, filters) == listed
    assert world.exported(filters) == listed
    if "text" in filters:
        assert clew("stats", "--engine", asked.lake, *as_options(filters)).code == 2
    else:
        assert world.counted(filters, asked.lake) == listed


@pytest.mark.parametrize("tool", ["Edit", "str_replace", "create_file", "delete_file", "apply_patch"])
def test_sessions_whose_tools_change_files_have_an_edit(tmp_path: Path, tool: str) -> None:
    """The filter and the recorded file changes know the same tools."""
    path = write_claude(tmp_path, "0a0a0a0a-1111-4111-8111-111111111111", 10)
    path.write_bytes(path.read_bytes().replace(b'"name":"Edit"', f'"name":"{tool}"'.encode()))
    found = Library(Host.at(tmp_path)).sessions(Filters.of(has="edit", tool=tool))
    assert [session.path for session in found] == [path]


def test_the_filters_choose_something_and_not_everything(asked: Asked) -> None:
    sizes = [len(asked.world.of_library(filters)) for filters in FILTERS]
    assert sizes[-1] == 0
    assert sum(0 < size < sizes[0] for size in sizes) > len(FILTERS) / 3
