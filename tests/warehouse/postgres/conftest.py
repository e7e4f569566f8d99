"""One server for all tests here, and a database for each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from tests.warehouse.postgres.server import Server, missing, running

_NUMBERS = count(1)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A server that notes every statement it is given. It need not survive a loss of power."""
    why = missing()
    if why is not None:
        pytest.skip(why)
    with running("fsync=off", "log_statement=all", "max_connections=40", "shared_buffers=64MB") as found:
        yield found


@pytest.fixture
def database(server: Server) -> str:
    """The name of an empty database."""
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
    name = f"weave{next(_NUMBERS)}"
    with psycopg.connect(server.url(), autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}".encode())
    return name


@pytest.fixture
def url(server: Server, database: str) -> str:
    """The address of an empty database, with the password in it."""
    return server.url(database)


@pytest.fixture
def server_url(server: Server, database: str) -> str:
    """The address of another one."""
    import psycopg

    with psycopg.connect(server.url(), autocommit=True) as db:
        db.execute(f"CREATE DATABASE {database}_other".encode())
    return server.url(f"{database}_other")
