"""clew schema: the JSON Schema of the unified document."""

from __future__ import annotations

import click

from clew.cli.options import common
from clew.cli.output import print_json
from clew.model.schema import json_schema


@click.command("schema")
@common
def command(homes: tuple[str, ...], as_json: bool) -> None:
    """Print the JSON Schema that every export validates against."""
    print_json(json_schema())
