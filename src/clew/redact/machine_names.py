"""Rules for names of the user's own machine: users in paths, host names, private addresses."""

from __future__ import annotations

from functools import lru_cache

from clew.redact.lazy_pattern import lazy_compile
from clew.redact.matcher import Find, Match, compile_finder, compile_plain_finder, find_matches

# The folder of homes: of Windows, seen from there or from a Unix beside it, and of others. In JSON text a backslash is
# written twice, and more often in JSON within JSON.
_WINDOWS = r"[\\/]{1,4}Users[\\/]{1,4}"
_WINDOWS_ANY_CASE = r"[\\/]{1,4}(?i:users)[\\/]{1,4}"
_OTHERS = r"/(?:home|Users)/|[Ww][Ss][Ll](?:\$|(?i:\.localhost))[\\/]{1,4}[A-Za-z0-9_.-]+[\\/]{1,4}home[\\/]{1,4}"
_LETTER = r"[^\s/\\\"'`:<>|*?,;)]"
# Windows ignores case; behind a drive letter, `users` can be nothing else.
_HOME = rf"(?:(?:[A-Za-z]:|/[a-z]){_WINDOWS}|\b[A-Za-z]:{_WINDOWS_ANY_CASE}|{_OTHERS}){_LETTER}"
_ENCODED = r"-(?:home|Users)-[A-Za-z0-9]{1,32}-"
_PRIVATE = r"\b(?:10\.[0-9]{1,3}|192\.168|172\.(?:1[6-9]|2[0-9]|3[01]))\.[0-9]{1,3}\.[0-9]{1,3}\b"
# Only the end of a host name: the check reads backwards from there.
_HOST = r"[A-Za-z0-9]\.(?:local|lan|internal|corp|home|intranet)\b"
# The check reads backwards from `@`, too.
AT = r"@[A-Za-z0-9][A-Za-z0-9-]{1,62}(?::[~/]|[$#%] )"
_OTHER_SIGNS = (_ENCODED, _PRIVATE, _HOST)
SIGNS = (_HOME, *_OTHER_SIGNS)
_DEEPER = "{1,16}"
_WORD = rb"[A-Za-z\x80-\xff](?:[\w.\x80-\xff-]|'(?=\w)){0,40}"
_CAPITALISED = rb"[A-Z\x80-\xff](?:[\w.\x80-\xff-]|'(?=\w)){0,40}"
# The user in a home path. A name may have spaces where a path goes on behind it; elsewhere a space ends it, but for
# words in capitals at the end of a path of Windows.
_HOMES = lazy_compile(
    rb"((?P<windows>(?:(?<=[A-Za-z]:)|(?<=/[a-z]))%b)|%b)((?:%b){1,64}"
    rb"(?(windows)(?:(?: %b){1,3}(?=[\\/])|(?: %b){1,3}(?=[\"'\r\n]|\Z))?|(?:(?: %b){1,3}(?=[\\/]))?))"
    % (*(each.replace("{1,4}", _DEEPER).encode() for each in (_WINDOWS_ANY_CASE, _OTHERS)), _LETTER.encode(), _WORD,
       _CAPITALISED, _CAPITALISED)
)  # fmt: skip
# An encoded path begins a word with `-`, or is joined to another with one: `-home-ada-x`, `C--Users-ada-x`.
_BEFORE_ENCODED = lazy_compile(rb"(?:(?<![\w-])(?:-[\w-]{0,64})?|-)\Z")
_MAX_ENCODED_PREFIX_BYTES = 72
_LOGIN = lazy_compile(rb"\b[a-z_][a-z0-9_-]{0,31}\Z")
_MAX_LOGIN_BYTES, _MAX_USER_BYTES = 32, 256
_SHARED = frozenset(
    b"shared public default all user users runner runneradmin ubuntu vscode node app git you me username name".split()
)

_SHARED_WINDOWS = frozenset({b"all users", b"default user"})


@lru_cache(maxsize=1)
def _finders() -> tuple[Find, Find]:
    return compile_finder(SIGNS), compile_plain_finder(AT)


@lru_cache(maxsize=1)
def _host_finders() -> tuple[Find, Find]:
    return compile_finder(_OTHER_SIGNS), compile_plain_finder(AT)


def find_all(text: bytes) -> list[Match]:
    """Find every name of a user or host, and every private address, in some bytes."""
    return [hit for find in _finders() for hit in find_matches(find, text, _check)]


def find_hosts(text: bytes) -> list[Match]:
    """Find what `find_all` does, but for users in home paths."""
    return [hit for find in _host_finders() for hit in find_matches(find, text, _check)]


def _is_nobody(user: bytes) -> bool:
    """Tell whether a folder of homes belongs to no person, or is a placeholder."""
    return user.lower() in _SHARED or user.lower() in _SHARED_WINDOWS or user[:1] in b"$<{%.["


def _check(text: bytes, start: int, end: int) -> tuple[tuple[Match, ...], int]:
    hit = _judge(text, start, end)
    return ((hit,), max(end, hit.end)) if hit else ((), end)


_HOST_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-."
_MAX_HOST_BYTES, _MAX_LABELS = 253, 5


def _start_of_host(text: bytes, end: int) -> int:
    before = text[max(0, end - _MAX_HOST_BYTES) : end]
    name = before[len(before.rstrip(_HOST_LETTERS)) :]
    labels = name.rsplit(b"..", 1)[-1].split(b".")[-_MAX_LABELS:]
    return end - len(b".".join(labels).lstrip(b"-."))


def _is_file_or_call(text: bytes, start: int, end: int) -> bool:
    """`settings.local.json`, `.env.local`, `Path.home()`: names that end like a host's."""
    return (text[start - 1 : start] in (b".", b"/") and text[start - 3 : start] != b"://") or text[end : end + 1] in (
        b".",
        b"(",
    )


def _judge(text: bytes, start: int, end: int) -> Match | None:
    value = text[start:end]
    first = value[:1]
    if first == b"-":
        begin = start + value.index(b"-", 1) + 1
        is_path = _BEFORE_ENCODED.search(text, max(0, start - _MAX_ENCODED_PREFIX_BYTES), start) is not None
        return Match(begin, end - 1, "user_name", 0.7) if is_path and not _is_nobody(text[begin : end - 1]) else None
    numbers = value.split(b".")
    if len(numbers) == 4 and all(part.isdigit() for part in numbers):
        return Match(start, end, "private_address", 0.9) if all(int(part) < 256 for part in numbers) else None
    if first == b"@":
        login = _LOGIN.search(text, max(0, start - _MAX_LOGIN_BYTES), start)
        return Match(login.start(), start + len(value.rstrip(b":~/$#% ")), "user_and_host", 0.8) if login else None
    home = _HOMES.search(text, start, end + _MAX_USER_BYTES) if text[end - 2] in b"/\\" else None
    if home is None:
        start = _start_of_host(text, end)
        return None if _is_file_or_call(text, start, end) else Match(start, end, "host_name", 0.7)
    return None if _is_nobody(home[3]) else Match(home.start(3), home.end(3), "user_name", 0.9)
