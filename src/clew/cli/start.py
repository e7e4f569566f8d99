"""Where the installed command starts. Its own help is printed without what only commands need."""

from __future__ import annotations

import os
import sys

from clew.cli import ABOUT, COMMANDS, OPTIONS
from clew.datadir import environment_problem

_WIDTH = 80
"""On a terminal this wide no line of the help is broken."""


def run() -> None:
    """Run the command line."""
    try:
        _run()
    except KeyboardInterrupt:
        # Whoever stops it before anything is loaded wants no word of what was loading.
        sys.exit(130)


def _run() -> None:
    if sys.argv[1:] in (["--help"], ["-h"]) and _width() >= _WIDTH and _print(help_text(sys.argv[0])):
        return
    # The group of all commands reports a problem; the quick answers below run outside its error handling.
    if environment_problem() is None and _is_answered(sys.argv[1:]):
        return
    from clew.cli.group import main

    main()


def _is_answered(words: list[str]) -> bool:
    """Answer a plain request for `stats` or pages before click is loaded; False where it takes more."""
    code = None
    if "stats" in words:
        from clew.cli.quick_stats import answered

        code = answered(words)
    if code is None and "--site" in words:
        from clew.cli.quick_pages import answered as pages_answered

        code = pages_answered(words)
    if code is not None:
        sys.exit(code)
    return False


def help_text(program: str) -> str:
    """The help of the whole command, as the group of all commands would print it."""
    about = [f"  {text}\n" for text in ABOUT]
    parts = [f"Usage: {program.rpartition(os.sep)[2]} [OPTIONS] [COMMAND] [ARGS]...\n", *about]
    return "\n".join([*parts, _listed("Options", OPTIONS), _listed("Commands", COMMANDS)])


def _listed(title: str, entries: dict[str, str]) -> str:
    width = max(map(len, entries))
    return "".join([f"{title}:\n", *(f"  {name:{width}}  {text}\n" for name, text in entries.items())])


def _width() -> int:
    try:
        return int(os.environ.get("COLUMNS") or 0) or os.get_terminal_size(sys.__stdout__.fileno()).columns  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return _WIDTH


def _print(text: str) -> bool:
    """False where that is not possible; the group knows what to say then."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError:
        return False
    return True
