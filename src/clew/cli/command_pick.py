"""clew pick: choose a session from a list, then show, resume or export it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from clew.cli.options import NO_SYNC, common_without_json, refuse_json, source_arguments
from clew.cli.redaction import redaction
from clew.cli.session_argument import is_interactive
from clew.errors import UsageError
from clew.io.paths import file_name

if TYPE_CHECKING:
    from clew.cli.picker import Choice


@click.command("pick")
@common_without_json
@click.pass_context
def command(context: click.Context, /, homes: tuple[str, ...]) -> None:
    """Choose a session from a list that is filtered while you type, with a preview.

    Enter shows the session, Ctrl-R resumes it in its agent, Ctrl-E exports it to a Markdown file in the current
    folder, Esc quits. Commands that read a session open the same list when it is missing. Needs a terminal.
    """
    refuse_json(context)
    if not is_interactive():
        raise UsageError("`clew pick` needs a terminal; `clew list --json` prints the sessions for scripts")
    from clew.cli.picker import ACTIONS, pick

    action, choice = pick(context, homes, ACTIONS)
    words = source_arguments(context, homes)
    words += ["--no-sync"] if context.meta.get(NO_SYNC) else []
    more = ["-o", _export_name(context, choice)] if action == "export" else []
    context.find_root().command.main([*words, action, *more, "--", choice.reference], prog_name="clew")


def _export_name(context: click.Context, choice: Choice) -> str:
    """A file in the current folder: an id may hold a secret, or lead elsewhere."""
    return file_name(redaction(context, for_programs=False).text(f"{choice.agent}-{choice.id}")) + ".md"
