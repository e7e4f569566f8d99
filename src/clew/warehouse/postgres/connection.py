"""Connections to a PostgreSQL server. Errors become one line without a password and without the data that was sent."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from clew.errors import ClewError, RemoteFailed, TargetRefused, UsageError
from clew.warehouse.urls import display_server, has_unescaped_delimiter, is_server, mask_password

Connection = psycopg.Connection[tuple[Any, ...]]

CONNECT_TIMEOUT_SECONDS = 10
"""Default; the URL may have another."""
_ENVIRONMENT = {
    "host": "PGHOST",
    "hostaddr": "PGHOSTADDR",
    "port": "PGPORT",
    "dbname": "PGDATABASE",
    "service": "PGSERVICE",
}
"""Parameters that select a database, and the variables that libpq reads if the URL does not have them."""
_URL_FORM = "postgresql://USER@HOST:PORT/DATABASE"
_CONNECTION_LOST = ("08", "28", "3D", "57P", "533")
"""Error classes after which there is no connection: lost, login refused, no such database, server shut down."""
_INVALID_OPTION = re.compile(r"\b(invalid|bad) (\w+ )*value\b")
"""In messages of libpq about a parameter, before it connects."""
_SAFE_TO_PRINT = ("25006", "42501", "53", "54")
"""Error classes whose messages hold no values of rows: read-only, no permission, out of resources, too large."""


def check_url(url: str) -> None:
    """Raise UsageError if this is not the URL of a server."""
    _parameters(url)


def database_identity(url: str) -> str:
    """A string that is equal for URLs of the same database, and holds no password."""
    options = _parameters(url)
    found = {name: str(options.get(name) or os.environ.get(variable, "")) for name, variable in _ENVIRONMENT.items()}
    # The default name of the database is that of the user.
    found["dbname"] = found["dbname"] or str(options.get("user") or os.environ.get("PGUSER", ""))
    return "\0".join(found.values())


def connect(url: str, *, read_only: bool = False) -> Connection:
    """Open a connection in autocommit mode: transactions are always explicit."""
    with translate_errors(url):
        db: Connection = psycopg.connect(**_parameters(url), autocommit=True)
        try:
            # Statements name tables without a schema. Settings of a connection string may be dropped by a pool.
            db.execute("SET search_path = clew, pg_temp")
            if read_only:
                db.execute("SET default_transaction_read_only = on")
        except BaseException:
            db.close()
            raise
    return db


def _parameters(url: str) -> dict[str, Any]:
    if not is_server(url):
        raise UsageError(f"the URL of a server has the form {_URL_FORM}")
    if has_unescaped_delimiter(url.partition("://")[2], path_may_hold_at=False):
        raise UsageError(
            "invalid server URL; in a user name or password write @ as %40, / as %2F, ? as %3F and # as %23"
        )
    try:
        scheme, mark, rest = url.partition("://")
        options: dict[str, Any] = conninfo_to_dict(f"{scheme.lower()}{mark}{rest}")
        if not all(not port or 0 < int(port) < 65536 for port in str(options.get("port") or "").split(",")):
            raise ValueError
    except (psycopg.Error, ValueError, UnicodeError):
        # The original message would repeat the URL, with its password.
        raise UsageError(f"invalid server URL; it has the form {_URL_FORM}") from None
    options.setdefault("connect_timeout", CONNECT_TIMEOUT_SECONDS)
    options.setdefault("application_name", "clew")
    options["client_encoding"] = "UTF8"
    # A dead connection is noticed within a minute.
    return {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, **options}


@contextmanager
def translate_errors(url: str) -> Iterator[None]:
    """Turn errors of the server or the connection into ours."""
    try:
        yield
    except psycopg.Error as error:
        raise translated(error, url) from None


def translated(error: psycopg.Error, url: str) -> ClewError:
    """The error of ours for an error of psycopg. Its message is only repeated if it cannot hold a value of a row."""
    state, server = error.sqlstate or "", display_server(url)
    if state.startswith("40"):
        return TargetRefused(f"{server}: conflict with concurrent pushes; please retry")
    if not state and _INVALID_OPTION.search(_first_line(error)):
        return UsageError(f"{server}: invalid connection option: {mask_password(_first_line(error), url)}")
    if not state and not isinstance(error, psycopg.OperationalError):
        return TargetRefused(f"{server}: the server refused the data ({type(error).__name__})")
    if not state or state.startswith(_CONNECTION_LOST):
        message = error.diag.message_primary or _first_line(error)
        return RemoteFailed(f"{server}: {mask_password(message, url) or 'the connection was lost'}")
    if state.startswith(_SAFE_TO_PRINT):
        return TargetRefused(f"{server}: {mask_password(error.diag.message_primary or '', url)}")
    return TargetRefused(f"{server}: the server refused the data ({type(error).__name__}, {state})")


def is_transient(error: Exception) -> bool:
    """True if a retry may succeed, because of concurrent pushes: conflict, deadlock, lock, missing partition."""
    return (getattr(error, "sqlstate", None) or "").startswith(("40", "55P03", "23514"))


def _first_line(error: psycopg.Error) -> str:
    """The first line of a message of libpq, which lists all attempts to connect."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else ""
