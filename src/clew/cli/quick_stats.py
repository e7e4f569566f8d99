"""Statistics as JSON, answered before click is loaded. Everything but the plainest request is left to the command."""

from __future__ import annotations

import gc
import json
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.host import Host


def answered(words: list[str]) -> int | None:
    """The exit code of a request that was answered; None where it takes more than this."""
    options = _options(words)
    if options is None or sys.stdout.isatty():
        return None
    homes, by = options
    # The process ends with its answer, and makes much until then.
    gc.disable()
    from clew.catalog.answer import fresh_stats
    from clew.catalog.database import catalog_folder
    from clew.catalog.stats import BY, Choice, report

    if by not in BY or not all(map(os.path.isdir, homes)):
        return None
    stats = fresh_stats(catalog_folder(homes), Choice())
    if stats is None:
        if not homes or by == "tool":
            return None
        from clew.catalog.answer import counted_stats
        from clew.sources.local import in_homes

        keep_memory()
        stats, unreadable = counted_stats(in_homes(_hosts(homes)), Choice(), by=by)
        if unreadable:
            return None
    found = report(stats, by)
    return _say(json.dumps(found) + "\n", 0 if found["rows"] else 1)


_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3
_KEPT = ((_M_TRIM_THRESHOLD, 128 << 20), (_M_TOP_PAD, 16 << 20), (_M_MMAP_THRESHOLD, 32 << 20))


def keep_memory() -> None:
    """Have the C library, where it can, keep what is freed: files are read one after another, and memory that was given
    back comes again page by page, which takes as long as half of the reading."""
    import ctypes

    try:
        tune = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    for what, size in _KEPT:
        tune(what, size)


def _say(text: str, code: int) -> int:
    """Print the answer and leave; freeing what it was made from would take longer than printing it."""
    try:
        _write_all(text.encode())
    except OSError as error:
        return _unheard(error)
    os._exit(code)


def _write_all(text: bytes) -> None:
    """Write all of it: where Python does not hold output back, a pipe may take a part and leave the rest."""
    rest = memoryview(text)
    while rest:
        rest = rest[sys.stdout.buffer.write(rest) :]
    sys.stdout.flush()


def _unheard(error: OSError) -> int:
    """What all commands do where nobody takes their output: say why, unless the reader has gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return 141
    sys.stderr.write(f"clew: {error.strerror or error}\n")
    return 3


def _hosts(homes: list[str]) -> list[Host]:
    from pathlib import Path

    from clew.sources.wsl import host_at

    return [host_at(Path(home)) for home in homes]


def _options(words: list[str]) -> tuple[list[str], str] | None:
    """The homes and what rows stand for; None where a word is not known here, or is not spelled plainly."""
    homes: list[str] = []
    by, plain, rest = "day", [], iter(words)
    for word in rest:
        if word == "--home":
            homes.append(next(rest, ""))
        elif word == "--by":
            by = next(rest, "")
        else:
            plain.append(word)
    return (homes, by) if sorted(plain) == ["--json", "stats"] else None
