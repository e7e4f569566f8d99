"""clew pick: choose a session from a list, then show, resume or export it."""

from __future__ import annotations

import click

from clew.cli.options import common, wanted_sources
from clew.cli.session_argument import is_interactive
from clew.errors import UsageError


@click.command("pick")
@common
@click.pass_context
def command(context: click.Context, /, homes: tuple[str, ...], as_json: bool) -> None:
    """Choose a session from a list that is filtered while you type, with a preview.

    Enter shows the session, Ctrl-R resumes it in its agent, Ctrl-E exports it to a Markdown file in the current
    folder, Esc quits. Commands that need a session open the same list when it is missing. Needs a terminal.
    """
    if not is_interactive():
        raise UsageError("`clew pick` needs a terminal; `clew list --json` prints the sessions for scripts")
    from clew.cli.picker import ACTIONS, pick

    action, session = pick(context, homes, ACTIONS)
    root = context.find_root()
    words = [word for home in (*root.obj["homes"], *homes) for word in ("--home", home)]
    words += [word for name in wanted_sources(context) for word in ("--source", name)]
    more = ["-o", f"{session}.md"] if action == "export" else []
    root.command.main([*words, action, session, *more], prog_name="clew")
