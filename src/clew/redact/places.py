"""What names the person's own machine: the user in paths, hosts, private addresses."""

from __future__ import annotations

import re
from functools import lru_cache

from clew.redact.searching import Find, Hit, finder, walk

_HOME = r"(?:/home/|/Users/|[A-Za-z]:[\\/]{1,4}Users[\\/]{1,4}|/mnt/[a-z]/Users/)[^\s/\\\"'`:<>|*?,;)]{1,64}"
_ENCODED = r"-(?:home|Users)-[A-Za-z0-9]{1,32}-"
_PRIVATE = r"\b(?:10\.[0-9]{1,3}|192\.168|172\.(?:1[6-9]|2[0-9]|3[01]))\.[0-9]{1,3}\.[0-9]{1,3}\b"
# Only how a host ends: what goes before is read backwards.
_HOST = r"[A-Za-z0-9]\.(?:local|lan|internal|corp|home|intranet)\b"
_AT = r"\b[a-z_][a-z0-9_-]{0,31}@[A-Za-z0-9][A-Za-z0-9-]{1,62}(?::[~/]|[$#%] )"
SIGNS = (_HOME, _ENCODED, _PRIVATE, _HOST, _AT)

_USER = re.compile(rb"(.*[\\/])([^\\/]+)$", re.DOTALL)
_SHARED = frozenset(
    b"shared public default all user users runner runneradmin ubuntu vscode node app git you me username name".split()
)


@lru_cache(maxsize=1)
def _find() -> Find:
    return finder(SIGNS)


def find_sign(text: bytes, start: int, end: int) -> tuple[int, int]:
    """The first place that may name somebody."""
    return _find()(text, start, end)


def place_hits(text: bytes) -> list[Hit]:
    """Every name of a user, host or private address in some bytes."""
    return walk(_find(), text, _look, wary=False)


_HOST_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-."
_LONGEST_HOST, _MOST_LABELS = 253, 5


def _start_of_host(text: bytes, end: int) -> int:
    before = text[max(0, end - _LONGEST_HOST) : end]
    name = before[len(before.rstrip(_HOST_LETTERS)) :]
    labels = name.rsplit(b"..", 1)[-1].split(b".")[-_MOST_LABELS:]
    return end - len(b".".join(labels).lstrip(b"-."))


def _look(text: bytes, start: int, end: int) -> tuple[tuple[Hit, ...], int]:
    hit = _judge(text, start, end)
    return ((hit,), end) if hit else ((), end)


def _is_file_or_call(text: bytes, start: int, end: int) -> bool:
    """`settings.local.json`, `.env.local`, `Path.home()`: names that end like a host's."""
    return (text[start - 1 : start] in (b".", b"/") and text[start - 3 : start] != b"://") or text[end : end + 1] in (
        b".",
        b"(",
    )


def _judge(text: bytes, start: int, end: int) -> Hit | None:
    value = text[start:end]
    first = value[:1]
    if first == b"-":
        begin = start + value.index(b"-", 1) + 1
        return Hit(begin, end - 1, "user_name", 0.7)
    numbers = value.split(b".")
    if len(numbers) == 4 and all(part.isdigit() for part in numbers):
        return Hit(start, end, "private_address", 0.9) if all(int(part) < 256 for part in numbers) else None
    if b"@" in value:
        return Hit(start, start + len(value.rstrip(b":~/$#% ")), "user_and_host", 0.8)
    match = _USER.match(value)
    if match is None:
        start = _start_of_host(text, end)
        return None if _is_file_or_call(text, start, end) else Hit(start, end, "host_name", 0.7)
    if match[2].lower() in _SHARED or match[2][:1] in b"$<{%.[":
        return None
    return Hit(start + match.start(2), end, "user_name", 0.9)
