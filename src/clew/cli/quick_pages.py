"""A site of pages, written before click is loaded. Every request that is not spelled plainly is left to the command."""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.host import Host

Given = dict[str, list[str]]
"""What options were given, by their names."""


def answered(words: list[str]) -> int | None:
    """The exit code of a request that failed; None where it is left to the command. One that is met ends here."""
    given = _given(words)
    if given is None:
        return None
    # Nothing here makes circles, and looking for them costs a tenth of the time.
    gc.disable()
    _load_msgspec()
    hosts = _hosts(given)
    if hosts is None:
        gc.enable()
        return None
    try:
        code = _write(given, hosts)
        sys.stdout.flush()
        sys.stderr.flush()
    except (Exception, KeyboardInterrupt) as error:
        from clew.cli.lazy import leave

        return leave(error)
    # Freeing what the pages were made from would take longer than writing the last of them.
    os._exit(code)


def _given(words: list[str]) -> Given | None:
    """The options; None where a word is not known here, or may mean something else."""
    rest = iter(words)
    given: Given = {"--home": []}
    for word in rest:
        if word in given:
            given[word].append(next(rest, ""))
        elif word == "export" and "--site" not in given:
            given |= {"--site": [], "--agent": [], "--redact": [], "--to": []}
        elif word == "--force":
            given[word] = []
        else:
            return None
    if any(not value or value.startswith("-") for values in given.values() for value in values):
        return None
    is_plain = len(given.get("--site", ())) == 1 and len(given["--redact"]) < 2 and set(given["--to"]) <= {"html"}
    return given if is_plain else None


def _load_msgspec() -> None:
    """Load it without `typing_extensions`: it takes that before `typing`, which has the same, and twice as long."""
    if "typing_extensions" not in sys.modules:
        sys.modules["typing_extensions"] = None  # type: ignore[assignment]
        try:
            import msgspec  # noqa: F401
        finally:
            del sys.modules["typing_extensions"]


def _hosts(given: Given) -> list[Host] | None:
    """The homes that are read; None where there is something to say about what was given."""
    from pathlib import Path

    from clew.agents import registry
    from clew.cli.redacting import NAMES
    from clew.sources.wsl import host_at

    homes = given["--home"]
    if not (
        all(map(os.path.isdir, homes))
        and all(map(registry.is_known, given["--agent"]))
        and set(given["--redact"]) <= set(NAMES)
    ):
        return None
    return [host_at(Path(home)) for home in homes] if homes else _every_host()


def _every_host() -> list[Host] | None:
    from clew.sources import config, registry

    chosen = registry.chosen(registry.sources(), ())
    if config.load().problems or any(source.is_damaged for source in chosen):
        return None
    return list(registry.hosts(chosen)) or None


def _write(given: Given, hosts: list[Host]) -> int:
    from pathlib import Path

    from clew.cli.output import refuse_stores
    from clew.cli.pages import Pages, Style
    from clew.cli.redacting import TEXT, Redaction
    from clew.errors import UnknownReference
    from clew.library import Library
    from clew.model.time import spell_time

    shelf, folder = Library(*hosts), Path(given["--site"][0])
    refuse_stores(shelf, folder)
    found = list(shelf.sources_of(given["--agent"]))
    if not found:
        raise UnknownReference("no session to export")
    masking = Redaction(TEXT, next(iter(given["--redact"]), None))
    pages = Pages(shelf, masking, Style("full", False, spell_time(shelf.hosts[0].now())))
    try:
        return pages.fill(found, folder, "--force" in given, with_index=True)
    finally:
        masking.report()
