"""The app over a server: a copy of what was pushed, kept in step, and the pages that are made of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from clew.catalog import database, text_index
from clew.catalog.search import Request, Searcher, unmasked
from clew.warehouse.postgres.mirror import mirror, mirror_folder
from clew.web.background import MirrorUpdate, empty_home
from clew.web.context import AppContext
from clew.web.routes import pages
from tests.catalog.worlds import append, claude_lines, spelled, write_claude
from tests.cli.running import run
from tests.demo_home import write_self_contained_demo
from tests.every_statement import every_statement
from tests.warehouse.postgres.machines import Machine, Rows, change
from tests.warehouse.postgres.server import Server
from tests.warehouse.postgres.test_merging import homes
from tests.web.served import served
from tests.web.shown import Shown, words

ONE = "aaaaaaaa-0000-4000-8000-000000000000"


def asked(folder: Path) -> dict[str, Rows]:
    db = database.open_reader(folder)
    assert db is not None
    with closing(db):
        return {name: db.execute(*statement).fetchall() for name, statement in every_statement()}


def hits(folder: Path, query: str) -> int:
    with closing(Searcher(folder, unmasked)) as searcher:
        return searcher.search(Request(query)).total


def test_a_copy_answers_as_the_machine_does(url: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    write_self_contained_demo(machine.home)
    machine.push(url)
    folder = tmp_path / "copy"
    assert mirror(url, folder) > 10
    assert mirror(url, folder) == 0
    assert asked(folder) == machine.statistics()
    for query in ("the", "-zebra", '"the tide"', "tide OR moon"):
        assert hits(folder, query) == hits(machine.data / "catalog", query), query


def test_a_copy_chooses_among_copies_as_the_server_does(url: str, tmp_path: Path) -> None:
    from tests.warehouse.postgres.machines import statistics

    for machine in homes(tmp_path):
        machine.push(url)
    mirror(url, tmp_path / "copy")
    assert asked(tmp_path / "copy") == statistics(url)


def test_a_copy_keeps_in_step(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine, folder = Machine(tmp_path), tmp_path / "copy"
    path = write_claude(machine.home, ONE, 20)
    machine.push(url)
    mirror(url, folder)
    assert (hits(folder, "shuttle0x17"), hits(folder, "shuttle0x22")) == (1, 0)
    append(path, spelled(claude_lines(ONE, 20, 5)))
    machine.push(url)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(text_index, "update", _interrupted)
        mirror(url, folder)
    assert MirrorUpdate(url, folder).run() == "fresh"
    assert (hits(folder, "shuttle0x17"), hits(folder, "shuttle0x22")) == (1, 1)
    path.write_bytes(spelled(claude_lines(ONE, 0, 5, seed=4)))
    machine.push(url)
    assert mirror(url, folder) == 2
    assert (hits(folder, "shuttle0x17"), hits(folder, "shuttle4x2")) == (0, 1)
    assert asked(folder) == machine.statistics()


def test_a_copy_that_cannot_be_used_is_made_anew(url: str, tmp_path: Path) -> None:
    machine, folder = Machine(tmp_path), tmp_path / "copy"
    write_claude(machine.home, ONE, 20)
    machine.push(url)
    mirror(url, folder)
    (folder / database.DATABASE).write_bytes(b"no database at all")
    assert mirror(url, folder) == 1
    assert hits(folder, "shuttle0x17") == 1
    assert asked(folder) == machine.statistics()


def _interrupted(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


@pytest.fixture(scope="module", params=["raw", "redacted", "metrics"])
def app(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, server: Server) -> Iterator[Shown]:
    import psycopg

    machine = Machine(tmp_path_factory.mktemp("web"))
    write_self_contained_demo(machine.home)
    with psycopg.connect(server.url(), autocommit=True) as db:
        db.execute(f"CREATE DATABASE web_{request.param}".encode())
    url = server.url(f"web_{request.param}")
    machine.push(url, request.param)
    folder = machine.data / "copy"
    mirror(url, folder)
    context = AppContext([empty_home(folder)], folder, engine="db.example/loom")
    with served(pages(context)) as running:
        found = Shown(running.port, running.tokens)
        found.context = context
        yield found
    context.close()


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/sessions",
        "/sessions?agent=codex",
        "/search",
        "/search?q=the",
        "/usage",
        "/usage?by=model",
        "/files",
        "/sources",
    ],
)
def test_every_page_is_there(app: Shown, path: str) -> None:
    page = app.page(path)
    assert "source missing" not in words(page)


def test_every_session_opens(app: Shown) -> None:
    db = database.open_reader(app.context.folder)
    assert db is not None
    with closing(db):
        known = db.execute("SELECT agent, session_id, message_count FROM sessions").fetchall()
    assert len(known) > 10
    for agent, identity, _ in known:
        shown = words(app.page(f"/session/{agent}/{identity}"))
        assert "Shown from the rows on db.example/loom." in shown
        for panel in ("usage", "files", "todos", "raw", "problems"):
            assert app.get(f"/session/{agent}/{identity}/panel/{panel}").status in (200, 404)


def test_a_server_has_no_sources_to_look_for_secrets_in(app: Shown) -> None:
    assert app.get("/secrets").status == 404
    assert "Secrets" not in words(app.page("/"))


def test_the_command_says_what_is_wrong_with_the_server(server: Server) -> None:
    done = run("web", "--engine", server.url("nowhere"), "--port", "0")
    assert (done.code, server.password in done.err) == (7, False)
    assert run("web", "--engine", "mysql://u:sesame@h/d").code == 2
    assert "sesame" not in run("web", "--engine", "mysql://u:sesame@h/d").err


def test_a_copy_has_a_folder_for_each_server(home: Path) -> None:
    one, same, other = map(mirror_folder, ("postgresql://a:b@h/d", "postgresql://x@h/d", "postgresql://a:b@h/e"))
    assert one == same != other
    assert one.is_relative_to(home)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("postgresql:///d?host=/run/a", "postgresql:///d?host=/run/b"),
        ("postgresql://h:1,i:2/d", "postgresql://j:1,k:2/d"),
        ("postgresql:///?service=loom", "postgresql:///?service=weft"),
        ("postgresql://ada@h", "postgresql://mira@h"),
    ],
)
def test_servers_whose_addresses_look_alike_have_their_own(one: str, other: str) -> None:
    """What is shown of an address may be the same for two of them; their rows must not be."""
    assert mirror_folder(one) != mirror_folder(other)


def test_a_session_that_went_with_its_month_is_not_fetched_again_and_again(url: str, tmp_path: Path) -> None:
    machine, folder = Machine(tmp_path), tmp_path / "copy"
    write_claude(machine.home, ONE, 20)
    write_claude(machine.home, "bbbbbbbb-0000-4000-8000-000000000000", 20, seed=1)
    machine.push(url)
    change(url, "DELETE FROM sessions_copies WHERE native_id LIKE 'bbbb%'")
    assert mirror(url, folder) == 1
    assert mirror(url, folder) == 0
