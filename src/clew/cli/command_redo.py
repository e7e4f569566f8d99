"""clew redo: the last undo taken back."""

from __future__ import annotations

import click

from clew.cli.options import common, wants_json
from clew.cli.own import own_session
from clew.cli.undoing import carry_out, rescue_of


@click.command("redo")
@click.argument("reference", metavar="REF")
@click.option("--in", "root", metavar="DIR", help="The workspace; default: the current folder.")
@click.option("--force", is_flag=True, help="Replace what was changed since, and keep a copy; leave what is missing.")
@click.option("--dry-run", is_flag=True, help="Only print what would be done.")
@click.option("--allow-protected", is_flag=True, help="Also files that programs trust, such as .git/hooks and .bashrc.")
@common
@click.pass_context
def command(
    context: click.Context,
    /,
    reference: str,
    root: str | None,
    force: bool,
    dry_run: bool,
    allow_protected: bool,
    homes: tuple[str, ...],
    as_json: bool,
) -> None:
    """Take the last undo back: files, task list and conversation are as they were before it.

    That works as long as nothing was said since; later, `clew undo --to` leads to the branch that was undone.
    """
    session = own_session(context, homes, reference)
    rescue = rescue_of(context, homes, session)
    with session:
        carry_out(
            lambda look: session.redo(root=root, force=force, dry_run=look, rescue=rescue),
            json=wants_json(context, as_json),
            dry_run=dry_run,
            allow_protected=allow_protected,
        )
