"""clew undo: back to a message of a session in clew's own store, with the files."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from clew.cli.completion import complete_session
from clew.cli.options import OptionWithOldNames, choosing_project, common
from clew.cli.redaction import redacting_output
from clew.cli.undo_common import carry_out, going_back
from clew.store.session import Session


@click.command("undo")
@click.argument("reference", metavar="REF", shell_complete=complete_session)
@click.option(
    "--message",
    cls=OptionWithOldNames,
    old_names=["--to"],
    metavar="MESSAGE",
    help="Go to this message: its number, uuid or branch.",
)
@click.option("--file", metavar="PATH", help="Restore only this file; the conversation is not changed.")
@going_back
@redacting_output
@choosing_project
@common
@click.pass_context
def command(context: click.Context, /, reference: str, message: str | None, file: str | None, **options: Any) -> None:
    """Go back before the last message whose tools changed files: files, task list and conversation.

    Either all files are restored or none. What was undone is kept as a branch; `clew redo` takes the undo back. If a
    file was changed outside of the session's tools, the difference is shown, and nothing is done without --force.
    Changes by a tool that was killed count as outside changes, because the two cannot be distinguished.

    Only for sessions in clew's own store whose agent records its changes of files; for a store in this folder: `clew
    undo @last --home .`. For sessions of other agents, see `clew restore`.
    """
    carry_out(context, reference, partial(Session.undo, to=message, file=file), **options)
