"""URLs of lakes and servers, as they may be printed: without user, password and query."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

_USER_INFO = re.compile(r"(?<=://)[^/\s]*@")
"""Up to the last @: a password may hold another one."""
_QUERY = re.compile(r"(://[^\s?]*)\?\S*")


def mask_urls(text: str) -> str:
    """Remove user, password and query from every URL in a text."""
    return _QUERY.sub(r"\1", _USER_INFO.sub("", text))


def is_server(url: str) -> bool:
    """True for the URL of a PostgreSQL server."""
    return url.lower().startswith(("postgresql://", "postgres://"))


def display_server(url: str) -> str:
    """Host, port and database of a server's URL."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "local socket", parts.port
    except ValueError:
        return "the server"
    return f"{host}{f':{port}' if port else ''}{parts.path if len(parts.path) > 1 else ''}"


def has_unescaped_delimiter(rest: str, *, path_may_hold_at: bool) -> bool:
    """True if a password seems to hold an unescaped delimiter: part of it would be taken for host or path, and printed.

    `rest` is the URL behind `://`. Object names may hold `@`; names of databases are not expected to.
    """
    if not path_may_hold_at:
        user, at, host = rest.partition("@")
        return "@" in host or bool(at and re.search("[/?#]", user))
    authority, _, path = rest.partition("/")
    ends_in_port = "@" in authority and authority.rpartition(":")[2].isdigit()
    return authority.count("@") > 1 or (":" in authority and "@" in path and not ends_in_port)


def mask_password(text: str, url: str) -> str:
    """Replace the password of a URL in a text, escaped or not; white space becomes single spaces."""
    found = re.findall(r"(?<=://)[^/@]*:([^/]*)@|[?&]password=([^&]*)", url)
    passwords = [password for pair in found for password in pair if password]
    for password in sorted({*passwords, *map(unquote, passwords)}, key=len, reverse=True):
        text = text.replace(password, "***")
    return " ".join(text.split())
