"""Where the installed command starts."""

from __future__ import annotations

import sys


def run() -> None:
    """Run the command line; an interrupt while modules are loading ends it without a traceback."""
    try:
        from clew.cli.group import main

        main()
    except KeyboardInterrupt:
        sys.exit(130)
