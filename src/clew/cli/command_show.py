"""clew show: one session, readable."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import IO, NamedTuple

import click

from clew.agents.base import Unit, joined_pieces
from clew.cli.cataloguing import find
from clew.cli.options import common, library, wants_json
from clew.cli.output import print_line, say
from clew.cli.redacting import DATA, TEXT, Redaction, redacting, redaction
from clew.errors import UnknownReference
from clew.io.compress import open_source
from clew.io.records import MAX_RECORD_BYTES, TOO_LONG
from clew.library import StoredSession
from clew.model.json import JSON
from clew.references import branch_of, message_of
from clew.render.detail import DETAILS, Detail, is_remark

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
@redacting
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
    """Print a session, one message of it (REF#12), or what leads to a branch (REF@NAME). JSON prints one a line.

    The text is masked (secrets) unless --redact none; JSON, --raw and --file are whole unless --redact asks for it.

    With --file, print a file as it was when the message was written; how that is known is said on stderr. Exit code 1
    where it is not known, or did not exist.
    """
    if path is not None:
        from clew.cli.file_shown import show_file

        show_file(context, homes, reference, path, unproved, as_json)
        return
    session = find(context, homes, library(context, homes), reference, branches=True)
    wanted = Wanted.by(session, reference)
    if raw:
        _print_raw(session, wanted, redaction(context, DATA))
        return
    session = redaction(context, DATA if wants_json(context, as_json) else TEXT).session(session)
    if wants_json(context, as_json):
        for message in _messages(session, wanted):
            if is_remark(message):
                say(f"clew: {message['content'][0]['text']}")
            else:
                print_line(message)
    else:
        _print(session, wanted, detail if wanted.message is None else DETAILS[-1])


class Wanted(NamedTuple):
    """The part of a session that is asked for."""

    message: int | None
    """One message; None: all of them."""
    path: frozenset[str] | None
    """Those that lead to a branch, by uuid; None: of all branches."""

    @classmethod
    def by(cls, session: StoredSession, reference: str) -> Wanted:
        """What a reference to the session asks for."""
        branch = branch_of(reference)
        if branch is None:
            return cls(message_of(reference), None)
        from clew.cli.own import branch_path

        return cls(message_of(reference), frozenset(branch_path(session, branch)))

    def admits(self, unit: Unit) -> bool:
        """True for a message that is asked for."""
        if not unit.is_message or self.message not in (None, unit.value["index"]):
            return False
        return self.path is None or unit.value["uuid"] in self.path


def _messages(session: StoredSession, wanted: Wanted) -> Iterator[dict[str, JSON]]:
    """The messages that are asked for; where all are, also a remark in the place of each record that is too long."""
    found = False
    for unit in joined_pieces(session.units()):
        if TOO_LONG in unit.findings and wanted == (None, None):
            yield _unread(unit)
        if wanted.admits(unit):
            found = True
            yield unit.value
            if wanted.message is not None:
                return
    _require(session, wanted, found)


def _unread(unit: Unit) -> dict[str, JSON]:
    from clew.render.tables import size

    what = f"line {unit.line}: a record of {size(unit.stop - unit.start)} is not shown"
    text = f"{what}: none of more than {size(MAX_RECORD_BYTES)} is read (CLEW_MAX_LINE)"
    return {"index": 0, "role": "system", "content": [{"type": "text", "text": text}]}


def _require(session: StoredSession, wanted: Wanted, found: bool) -> None:
    if not found and wanted.message is not None:
        where = "" if wanted.path is None else " on that branch"
        raise UnknownReference(f"session {session.id} has no message {wanted.message}{where}")


def _print_raw(session: StoredSession, wanted: Wanted, masking: Redaction) -> None:
    mask = masking.records(session)
    folder, printed = session.path.parent, False
    files = [session.path, *(folder / name for name in session.source.parts)]
    with ExitStack() as stack:
        streams = [stack.enter_context(open_source(path)) for path in files]
        ends = [0] * len(files)
        start = stop = 0
        unread: tuple[int, int] | None = None
        for unit in session.units():
            # A message without bytes of its own stands in the record before, which is printed once.
            shares = unit.is_message and unit.start == unit.stop
            start, stop = (start, stop) if shares else (unit.start, unit.stop)
            if shares if wanted == (None, None) else not wanted.admits(unit):
                continue
            if start < ends[unit.part]:
                # Messages need not come in the order of their lines.
                streams[unit.part].seek(0)
                ends[unit.part] = 0
            _skip(streams[unit.part], start - ends[unit.part])
            raw, place = streams[unit.part].read(stop - start), (unit.part, unit.line)
            is_piece = TOO_LONG in unit.findings
            if unread is not None and not (is_piece and place == unread):
                sys.stdout.buffer.write(b"\n")
            if not is_piece:
                sys.stdout.buffer.write(mask(raw) + b"\n")
            elif not masking.is_on:
                sys.stdout.buffer.write(raw)
            elif place != unread:
                sys.stdout.buffer.write(f'"{masking.redactor().unread()}"'.encode())
            unread = place if is_piece else None
            ends[unit.part], printed = stop, True
        if unread is not None:
            sys.stdout.buffer.write(b"\n")
    _require(session, wanted, printed)


def _skip(stream: IO[bytes], size: int) -> None:
    while size > 0 and (piece := stream.read(min(size, _PIECE))):
        size -= len(piece)


def _print(session: StoredSession, wanted: Wanted, detail: Detail) -> None:
    from clew.render.branching import Forks
    from clew.render.terminal import show

    # Of one message, or one branch, the forks say nothing.
    forks = Forks.of_tree(session.facts.tree) if wanted == (None, None) else None
    is_terminal = sys.stdout.isatty()
    color = is_terminal and "NO_COLOR" not in os.environ
    width = shutil.get_terminal_size().columns
    messages = _messages(session, wanted)
    if wanted.message is not None:
        # A message that is not there is reported before anything is printed.
        messages = iter(list(messages))
    pieces = show(session.session_object, messages, width, color, detail, forks=forks)
    if is_terminal:
        # Whether the pager shows colours is found out there: less must be told so.
        click.echo_via_pager(pieces)
    else:
        for piece in pieces:
            click.echo(piece, nl=False)
