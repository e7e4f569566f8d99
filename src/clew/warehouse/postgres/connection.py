"""A connection to a server. Whatever goes wrong is one line that never holds a password, nor what was being sent."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from clew.errors import ClewError, RemoteFailed, TargetRefused, UsageError

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

SCHEMES = ("postgresql://", "postgres://")
"""How the address of a server begins."""
WAIT_SECONDS = 10
"""How long a server may take to answer at first; the address may say otherwise."""
_WHERE = {
    "host": "PGHOST",
    "hostaddr": "PGHOSTADDR",
    "port": "PGPORT",
    "dbname": "PGDATABASE",
    "service": "PGSERVICE",
}
"""What leads to a database, and what libpq asks where the address does not say."""
_SHAPE = "postgresql://USER@HOST:PORT/DATABASE"
_UNANSWERED = ("08", "28", "3D", "57P", "533")
"""Classes of errors after which there is no connection to go on with: lost, not let in, no such database, shut down."""
_UNKNOWN = re.compile(r"\b(invalid|bad) (\w+ )*value\b")
"""What libpq says of a setting before it looks for a server."""
_TELLING = ("25006", "42501", "53", "54")
"""Classes of errors whose words are the server's own and name no value: read-only, no right, full, too large."""


def is_server(name: str) -> bool:
    """True for the address of a server."""
    return name.lower().startswith(SCHEMES)


def shown(url: str) -> str:
    """The address without anything that lets somebody in."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "local socket", parts.port
    except ValueError:
        return "the server"
    return f"{host}{f':{port}' if port else ''}{parts.path if len(parts.path) > 1 else ''}"


def check_address(url: str) -> None:
    """Raise where this is no address of a server."""
    _options(url)


def identity(url: str) -> str:
    """Which database on which server an address means, told apart from every other, without a password."""
    options = _options(url)
    found = {name: str(options.get(name) or os.environ.get(variable, "")) for name, variable in _WHERE.items()}
    # A database without a name has that of the user.
    found["dbname"] = found["dbname"] or str(options.get("user") or os.environ.get("PGUSER", ""))
    return "\0".join(found.values())


def connect(url: str, *, reads_only: bool = False) -> Connection:
    """Open a connection; what it is told is not parsed by the server, and every transaction is begun by name."""
    import psycopg

    options = _options(url)
    settings = f"-c search_path=clew,pg_temp{' -c default_transaction_read_only=on' if reads_only else ''}"
    options["options"] = f"{options.get('options') or ''} {settings}".strip()
    with told(url):
        db: Connection = psycopg.connect(**options, autocommit=True)
    return db


def _options(url: str) -> dict[str, Any]:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    if not is_server(url):
        raise UsageError(f"the address of a server is spelled {_SHAPE}")
    if _is_cut(url.partition("://")[2]):
        raise UsageError(
            "the address of the server cannot be understood; "
            "in a name or a password, @ is spelled %40, / is %2F, ? is %3F and # is %23"
        )
    try:
        scheme, mark, rest = url.partition("://")
        options: dict[str, Any] = conninfo_to_dict(f"{scheme.lower()}{mark}{rest}")
        if not all(not port or 0 < int(port) < 65536 for port in str(options.get("port") or "").split(",")):
            raise ValueError
    except (psycopg.Error, ValueError, UnicodeError):
        # What is wrong with it would be told with the address, and so with the password.
        raise UsageError(f"the address of the server cannot be understood; it is spelled {_SHAPE}") from None
    options.setdefault("connect_timeout", WAIT_SECONDS)
    options.setdefault("application_name", "clew")
    options["client_encoding"] = "UTF8"
    # Dead lines are noticed within a minute.
    return {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, **options}


def _is_cut(rest: str) -> bool:
    """True where a password seems to hold what ends it: a part of it would be taken for a host, and told."""
    user, mark, host = rest.partition("@")
    return "@" in host or bool(mark and re.search("[/?#]", user))


@contextmanager
def told(url: str) -> Iterator[None]:
    """What the server or the line to it says, as an error of ours."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        raise error_of(error, url) from None


def error_of(error: psycopg.Error, url: str) -> ClewError:
    """One line for an error: of its words only those that can hold no value from a row."""
    import psycopg

    state, place = error.sqlstate or "", shown(url)
    if state.startswith("40"):
        return TargetRefused(f"{place}: too many push at once; try again")
    if not state and _UNKNOWN.search(_first_line(error)):
        return UsageError(f"{place}: the address asks for what there is not: {_masked(_first_line(error), url)}")
    if not state and not isinstance(error, psycopg.OperationalError):
        return TargetRefused(f"{place}: the server did not take it ({type(error).__name__})")
    if not state or state.startswith(_UNANSWERED):
        said = error.diag.message_primary or _first_line(error)
        return RemoteFailed(f"{place}: {_masked(said, url) or 'the connection was lost'}")
    if state.startswith(_TELLING):
        return TargetRefused(f"{place}: {_masked(error.diag.message_primary or '', url)}")
    return TargetRefused(f"{place}: the server did not take it ({type(error).__name__}, {state})")


def is_passing(error: Exception) -> bool:
    """True where the same may succeed in a moment, because others are at work: conflict, deadlock, lock, partition."""
    return (getattr(error, "sqlstate", None) or "").startswith(("40", "55P03", "23514"))


def _first_line(error: psycopg.Error) -> str:
    """What libpq says when there was no answer: it tries several ways and tells of each, the first one first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else ""


def _masked(text: str, url: str) -> str:
    """The text without the password, however it is spelled."""
    for secret in _secrets(url):
        text = text.replace(secret, "***")
    return " ".join(text.split())


def _secrets(url: str) -> list[str]:
    found = re.findall(r"(?<=://)[^/@]*:([^/]*)@|[?&]password=([^&]*)", url)
    spelled = [secret for pair in found for secret in pair if secret]
    return sorted({*spelled, *map(unquote, spelled)}, key=len, reverse=True)
