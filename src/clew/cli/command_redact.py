"""clew redact: where secrets lie, files without them, and sessions cleaned in place."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from clew.cli.options import as_json_option, common, filtering, library, take_filters, wants_json
from clew.cli.output import opened, refuse_stores
from clew.cli.redacting import STANDARD, TEXT, redacting, redaction
from clew.cli.sessions import UNREADABLE, for_each_session
from clew.errors import ClewError, UsageError

_JSON = "--json"


class _FilesUnlessNamed(click.Group):
    """A group whose first word may be a file: then it means `files`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        first = next((word for word in args if word != _JSON), None)
        if first is not None and first not in self.commands and first not in ctx.help_option_names:
            args = ["files", *args]
        return super().parse_args(ctx, args)


@click.group("redact", cls=_FilesUnlessNamed)
@as_json_option
@click.pass_context
def command(context: click.Context, /, as_json: bool) -> None:
    """Find secrets in sessions, mask them in files, or clean sessions in place.

    `clew redact FILE...` is short for `clew redact files FILE...`.
    """
    if as_json:
        context.find_root().obj["json"] = True


@command.command("files")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="A file, or a folder for several files; - prints."
)
@click.option("--force", is_flag=True, help="Replace files that are there.")
@redacting
@common
@click.pass_context
def files_command(
    context: click.Context,
    /,
    files: tuple[Path, ...],
    output: Path | None,
    force: bool,
    homes: tuple[str, ...],
    as_json: bool,
) -> None:
    """Print files with everything masked that --redact forbids (secrets, unless you say otherwise).

    JSON and JSON lines stay what they are, with their keys in order and all ids; lines that hold nothing stay byte for
    byte. The files themselves are not touched. `-` is standard input, and after -o standard output.
    """
    output = None if output == STANDARD else output
    if len(files) > 1 and output is not None and not output.is_dir():
        raise UsageError(f"several files: {output} must be a folder that is there")
    refuse_stores(library(context, homes), output)
    masking = redaction(context, TEXT)
    for file in files:
        if output is not None and output.is_dir():
            target: Path | None = output / (file.name if file != STANDARD else "stdin")
            below: Path | None = output
        else:
            target, below = output, None
        with opened(target, force=force, below=below) as out:
            for piece in masking.pieces(file):
                out.write(piece)


@command.command("scan")
@click.argument("references", nargs=-1, metavar="[PATH|REF]...")
@click.option("--reveal", is_flag=True, help="Print the values too. Asks first, and only on a terminal.")
@redacting
@filtering
@common
@click.pass_context
def scan_command(
    context: click.Context,
    /,
    references: tuple[str, ...],
    reveal: bool,
    homes: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> int:
    """Say where secrets lie in sessions: the rule, the place, and the marker that would stand there; never the value.

    Without a reference: all that pass the filters. Equal values have equal markers. Exit code 1 where something was
    found.
    """
    from clew.cli.findings import Report

    json = wants_json(context, as_json)
    report = Report(redaction(context, TEXT), as_json=json, reveal=reveal)
    shelf = library(context, homes)
    unreadable = for_each_session(shelf, references, take_filters(options, shelf), report.add)
    report.finish(unreadable)
    return 1 if report.count else UNREADABLE if unreadable else 0


@command.command("scrub")
@click.argument("references", nargs=-1, metavar="[PATH|REF]...")
@click.option("--write", is_flag=True, help="Do it; without this, nothing is changed.")
@redacting
@filtering
@common
@click.pass_context
def scrub_command(
    context: click.Context,
    /,
    references: tuple[str, ...],
    write: bool,
    homes: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> int:
    """Mask secrets in the agents' own session files, in place. Without --write it only says what would change.

    Each file is copied first, below clew's data folder, then replaced as a whole; records keep their shape and ids, so
    that the agent goes on with the session. Close the agent before. Where else the same values lie is said, and left
    alone. A session is not changed where one of the files to replace is a symbolic link or has other hard links, as
    those would keep the values; it is named. Name sessions, or choose them with filters. Exit code 1 where nothing was
    found, or where a session was left for its links.
    """
    from clew.cli.scrubbing import Scrub

    filters = {name: value for name, value in options.items() if value}
    if not references and not filters:
        raise UsageError("name the sessions, or choose them with filters such as --agent or --since")
    shelf = library(context, homes)
    scrub = Scrub(shelf, redaction(context, TEXT), write=write)
    admitted = take_filters(options, shelf)
    finish = partial(scrub.finish, as_json=wants_json(context, as_json), catalog=shelf.catalog_folder)
    try:
        scrub.unreadable = for_each_session(shelf, references, admitted, scrub.session)
    except (ClewError, OSError):
        # Sessions before this one are changed: that is said, and the catalog must forget what they held.
        if scrub.rows:
            finish()
        raise
    if not references:
        scrub.name_links(admitted)
    finish()
    return UNREADABLE if scrub.unreadable else 0 if scrub.rows and not scrub.refused else 1
