"""A search in a catalog that is up to date, answered before click is loaded. Everything else is left to the command."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.catalog.search import Found

_FLAGS = {
    "--json": "json",
    "--newest": "newest",
    "--regex": "regex",
    "--substring": "substring",
    "--no-sync": "no_sync",
}
_NUMBERS = {"--limit": "limit", "-n": "limit", "--offset": "offset"}
_WORDS = {"--in": "in"}
_DIGITS = 6


def answered(words: list[str]) -> int | None:
    """The exit code of a search that was answered; None where it takes more than this."""
    options = _options(words)
    if options is None:
        return None
    from clew.errors import UsageError

    try:
        return _answer(options)
    except UsageError:
        # The command says it as all commands do.
        return None


def _options(words: list[str]) -> dict[str, Any] | None:
    """The options of a search; None where one of them is not known here, or is not spelled plainly."""
    found: dict[str, Any] = {"homes": [], "query": []}
    rest = iter(words)
    for word in rest:
        if word in _FLAGS:
            found[_FLAGS[word]] = True
        elif word in _NUMBERS:
            number = next(rest, "")
            if not (
                number.isdecimal()
                and number.isascii()
                and len(number) <= _DIGITS
                and int(number) >= (word != "--offset")
            ):
                return None
            found[_NUMBERS[word]] = int(number)
        elif word in _WORDS:
            value = next(rest, "")
            if not value:
                return None
            found[_WORDS[word]] = value
        elif word == "--home":
            found["homes"].append(next(rest, ""))
        elif word.startswith("-"):
            return None
        else:
            found["query"].append(word)
    if found["query"][:1] != ["search"] or len(found["query"]) < 2 or ("regex" in found and "substring" in found):
        return None
    del found["query"][0]
    return found


def _answer(options: dict[str, Any]) -> int | None:
    homes = options["homes"]
    if not all(map(os.path.isdir, homes)):
        return None
    freshness = _asked(homes) if "no_sync" not in options else lambda: _FRESH
    found = state = None
    try:
        found = _found(options)
    finally:
        state = freshness()
    if state == _GREW:
        found = _found(options)
    return _print(found, options) if state != _STALE and found is not None else None


_FRESH, _GREW, _STALE = 0, 3, 4


def _asked(homes: list[str]) -> Callable[[], int]:
    """Whether the catalog is up to date: another process looks while this one searches, and is waited for."""
    if not hasattr(os, "fork"):
        state = _freshness(homes)
        return lambda: state
    child = os.fork()
    if child == 0:
        state = _STALE
        try:
            state = _freshness(homes)
        finally:
            os._exit(state)
    return lambda: os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _freshness(homes: list[str]) -> int:
    from clew.catalog.quick import quick_sync

    done = quick_sync(homes)
    return _STALE if done is None else _GREW if done["files"] else _FRESH


def _found(options: dict[str, Any]) -> Found | None:
    import sqlite3

    from clew.catalog import place
    from clew.catalog.search import LIMIT, Request, Searcher, secrets_masked

    mode: Any = "regex" if "regex" in options else "substring" if "substring" in options else "words"
    places = tuple(filter(None, options.get("in", "").split(",")))
    limit, offset = options.get("limit", LIMIT), options.get("offset", 0)
    request = Request(" ".join(options["query"]), mode, places, "newest" in options, limit, offset)
    try:
        searcher = Searcher(place.catalog_path(options["homes"]), str if "json" in options else secrets_masked)
        return searcher.search(request).read()
    except (sqlite3.Error, ValueError, OSError):
        return None


def _print(found: Found, options: dict[str, Any]) -> int:
    from clew.cli import hits_shown

    terminal = sys.stdout.isatty()
    if "json" in options:
        text = hits_shown.as_json(found, terminal)
    else:
        text = "".join(hits_shown.as_text(found, terminal and "NO_COLOR" not in os.environ))
    try:
        write_all(text.encode("utf-8", "replace"))
    except OSError as error:
        return unheard(error)
    more = None if "json" in options else hits_shown.remainder(found, options.get("offset", 0))
    if more:
        sys.stderr.write(more + "\n")
    return 0 if found.hits else 1


def write_all(text: bytes) -> None:
    """Write all of it: where Python does not hold output back, a pipe may take a part and leave the rest."""
    rest = memoryview(text)
    while rest:
        rest = rest[sys.stdout.buffer.write(rest) :]
    sys.stdout.flush()


def unheard(error: OSError) -> int:
    """What all commands do where nobody takes their output: say why, unless the reader has gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return 141
    sys.stderr.write(f"clew: {error.strerror or error}\n")
    return 3
