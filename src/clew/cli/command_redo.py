"""clew redo: the last undo taken back."""

from __future__ import annotations

from typing import Any

import click

from clew.cli.completion import complete_session
from clew.cli.options import choosing_project, common
from clew.cli.redaction import redacting_output
from clew.cli.undo_common import carry_out, going_back
from clew.store.session import Session


@click.command("redo")
@click.argument("reference", metavar="REF", shell_complete=complete_session)
@going_back
@redacting_output
@choosing_project
@common
@click.pass_context
def command(context: click.Context, /, reference: str, **options: Any) -> None:
    """Take back the last undo: files, task list and conversation are as they were before it.

    Works until a new message is added; after that, `clew undo --message` leads to the undone branch.
    """
    carry_out(context, reference, Session.redo, **options)
