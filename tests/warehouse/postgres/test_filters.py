"""Every filter chooses the same sessions on a server as in the catalog: in stats, search, and the app over a copy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from clew.warehouse.postgres.mirror import mirror
from clew.web.background import empty_home
from clew.web.context import AppContext
from tests.catalog.filter_worlds import FILTERS, HOMES, World, as_options, make_home, name_of, paged
from tests.cli.running import clew
from tests.warehouse.postgres.server import Server
from tests.web.shown import Shown, shown_context


class Asked(NamedTuple):
    """A home, a server with its sessions, and the web app over a copy of the server."""

    world: World
    url: str
    app: Shown


@pytest.fixture(scope="module", params=HOMES)
def asked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, server: Server) -> Iterator[Asked]:
    import psycopg

    folder = tmp_path_factory.mktemp("filters")
    home, name = folder / "home", f"filters_{request.param}"
    make_home(request.param, home, request)
    with psycopg.connect(server.url(), autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}".encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLEW_DATA_DIR", str(folder / "data"))
        assert clew("--home", home, "sync").code in (0, 1)
        assert clew("--home", home, "push", server.url(name), "--level", "raw").code in (0, 3)
        mirror(server.url(name), folder / "copy")
        context = AppContext([empty_home(folder / "copy")], folder / "copy", engine="db.example")
        with shown_context(context) as app:
            yield Asked(World(home), server.url(name), app)


@pytest.mark.parametrize("filters", FILTERS, ids=name_of)
def test_a_server_chooses_the_sessions_of_the_catalog(asked: Asked, filters: dict[str, Any]) -> None:
    world, options = asked.world, as_options(filters)
    expected = world.of_library(filters)
    hits = clew("search", "--regex", ".", "-n", "99999", "--json", "--engine", asked.url, *options).json["hits"]
    assert {f"{hit['agent']}:{hit['session']}" for hit in hits} == expected & world.with_text
    assert paged(asked.app, filters) == expected
    if "text" in filters:
        assert clew("stats", "--engine", asked.url, *options).code == 2
    else:
        assert world.counted(filters, asked.url) == expected
