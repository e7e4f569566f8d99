"""clew redo: the last undo taken back."""

from __future__ import annotations

import click

from clew.cli.completion import complete_session
from clew.cli.options import choosing_project, common, wants_json
from clew.cli.redaction import DATA, TEXT, redacting_output, redaction
from clew.cli.sessions import own_session
from clew.cli.undo_common import carry_out, going_back, rescue_of


@click.command("redo")
@click.argument("reference", metavar="REF", shell_complete=complete_session)
@going_back
@redacting_output
@choosing_project
@common
@click.pass_context
def command(
    context: click.Context,
    /,
    reference: str,
    root: str | None,
    moved_from: str | None,
    force: bool,
    dry_run: bool,
    allow_protected: bool,
    homes: tuple[str, ...],
    as_json: bool,
) -> None:
    """Take back the last undo: files, task list and conversation are as they were before it.

    Works until a new message is added; after that, `clew undo --message` leads to the undone branch.
    """
    session = own_session(context, homes, reference)
    rescue = rescue_of(context, homes, session)
    json = wants_json(context, as_json)
    masking = redaction(context, DATA if json else TEXT)
    masking.prepare()
    with session:
        carry_out(
            session,
            lambda look: session.redo(
                root=root,
                force=force,
                dry_run=look,
                allow_protected=allow_protected,
                rescue=rescue,
                moved_from=moved_from,
            ),
            json=json,
            dry_run=dry_run,
            masking=masking,
        )
