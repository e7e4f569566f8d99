"""clew demo: a home folder to try everything on."""

from __future__ import annotations

from pathlib import Path

import click

from clew.cli.options import common, wants_json
from clew.cli.output import print_json, print_message
from clew.demo import write_demo


@click.command("demo")
@click.argument("folder", type=click.Path(path_type=Path), default=Path("clew-demo"), metavar="[DIR]")
@common
@click.pass_context
def command(context: click.Context, /, folder: Path, homes: tuple[str, ...], as_json: bool) -> None:
    """Write example sessions of every agent below DIR (default: ./clew-demo)."""
    files = write_demo(folder)
    if wants_json(context, as_json):
        print_json({"home": str(folder), "files": [str(path) for path in files]})
        return
    print_message(f"{len(files)} files below {folder}. Try:")
    for words in ("list", "show @last", "graph f005", "verify", "validate"):
        print_message(f"  clew --home {folder} {words}")
