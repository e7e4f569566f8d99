"""clew show: one session, readable."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import IO

import click

from clew.cli.options import common, library, wants_json
from clew.cli.output import print_line
from clew.errors import UnknownReference
from clew.io.compress import open_source
from clew.library import StoredSession
from clew.model.json import JSON
from clew.references import message_of
from clew.render.detail import DETAILS, Detail

_PIECE = 1 << 20


@click.command("show")
@click.argument("reference", metavar="REF")
@click.option(
    "--detail",
    type=click.Choice(DETAILS),
    default="conversation",
    show_default=True,
    help="How much of it.",
)
@click.option("--raw", is_flag=True, help="Print the native records as they are.")
@click.option("--file", "path", metavar="PATH", help="Print this file as it was at the message (REF#12).")
@click.option("--unproved", is_flag=True, help="With --file: also content that nothing proves.")
@common
@click.pass_context
def command(
    context: click.Context,
    /,
    reference: str,
    detail: Detail,
    raw: bool,
    path: str | None,
    unproved: bool,
    homes: tuple[str, ...],
    as_json: bool,
) -> None:
    """Print a session, or one message of it (REF#12). JSON prints one message a line.

    With --file, print a file as it was when the message was written; how that is known is said on stderr. Exit code 1
    where it is not known, or did not exist.
    """
    if path is not None:
        from clew.cli.file_shown import show_file

        show_file(context, homes, reference, path, unproved, as_json)
        return
    session = library(context, homes).get(reference)
    wanted = message_of(reference)
    if raw:
        _print_raw(session, wanted)
    elif wants_json(context, as_json):
        for message in _messages(session, wanted):
            print_line(message)
    else:
        _print(session, wanted, detail if wanted is None else DETAILS[-1])


def _messages(session: StoredSession, wanted: int | None) -> Iterator[dict[str, JSON]]:
    found = False
    for unit in session.units():
        if unit.is_message and wanted in (None, unit.value["index"]):
            found = True
            yield unit.value
            if wanted is not None:
                return
    if not found and wanted is not None:
        raise UnknownReference(f"session {session.id} has no message {wanted}")


def _print_raw(session: StoredSession, wanted: int | None) -> None:
    folder, printed = session.path.parent, False
    files = [session.path, *(folder / name for name in session.source.parts)]
    with ExitStack() as stack:
        streams = [stack.enter_context(open_source(path)) for path in files]
        ends = [0] * len(files)
        start = stop = 0
        for unit in session.units():
            # A message without bytes of its own stands in the record before, which is printed once.
            shares = unit.is_message and unit.start == unit.stop
            start, stop = (start, stop) if shares else (unit.start, unit.stop)
            if shares if wanted is None else not (unit.is_message and unit.value["index"] == wanted):
                continue
            if start < ends[unit.part]:
                # Messages need not come in the order of their lines.
                streams[unit.part].seek(0)
                ends[unit.part] = 0
            _skip(streams[unit.part], start - ends[unit.part])
            sys.stdout.buffer.write(streams[unit.part].read(stop - start) + b"\n")
            ends[unit.part], printed = stop, True
    if wanted is not None and not printed:
        raise UnknownReference(f"session {session.id} has no message {wanted}")


def _skip(stream: IO[bytes], size: int) -> None:
    while size > 0 and (piece := stream.read(min(size, _PIECE))):
        size -= len(piece)


def _print(session: StoredSession, wanted: int | None, detail: Detail) -> None:
    from clew.render.terminal import show

    color = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    width = shutil.get_terminal_size().columns
    pieces = show(session.session_object, _messages(session, wanted), width, color, detail)
    if color:
        click.echo_via_pager(pieces, color=True)
    else:
        for piece in pieces:
            click.echo(piece, nl=False)
