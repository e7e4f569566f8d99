"""clew import: a unified document back to an agent's own files."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from clew.cli.options import common, wants_json
from clew.cli.output import print_json, say
from clew.errors import InvalidDocument, UsageError
from clew.export.native import native_bytes, write_native
from clew.export.reading import read_documents
from clew.io.compress import open_source


@click.command("import")
@click.argument("documents", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Home folder to write below, in the agent's own layout."
)
@click.option("--stdout", is_flag=True, help="Print the session's main file instead of writing it.")
@click.option("--force", is_flag=True, help="Replace files that are there.")
@common
@click.pass_context
def command(
    context: click.Context,
    /,
    documents: tuple[Path, ...],
    output: Path | None,
    stdout: bool,
    force: bool,
    homes: tuple[str, ...],
    as_json: bool,
) -> None:
    """Write the native files of unified documents (.json, .ndjson, also .gz and .zst)."""
    if output is None and not stdout:
        raise UsageError("name a folder with -o, or use --stdout")
    written = []
    for path in documents:
        found = False
        with open_source(path) as stream:
            for document in read_documents(stream):
                found = True
                if stdout:
                    sys.stdout.buffer.writelines(native_bytes(document))
                elif output is not None:
                    files = write_native(document, output, force)
                    header = document.header
                    row = {"session_id": header.session["id"], "agent": header.agent, "files": [str(f) for f in files]}
                    written.append(row)
        if not found:
            raise InvalidDocument(f"{path}: no unified document")
    if wants_json(context, as_json):
        print_json(written)
    else:
        for row in written:
            say(f"{row['agent']}:{row['session_id']} -> {row['files'][0]}")
