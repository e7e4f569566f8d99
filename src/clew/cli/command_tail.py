"""clew tail: the end of a session, and what comes."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from itertools import islice

import click

from clew.agents.source import FileStates, file_states
from clew.cli.options import Number, choosing_project, common, wants_json
from clew.cli.output import print_line, print_message
from clew.cli.redaction import redacting, redaction
from clew.cli.session_argument import session_argument
from clew.cli.sessions import find_session
from clew.errors import SourceUnreadable
from clew.model.json import JSON
from clew.render.detail import DETAILS, Detail, at_detail
from clew.stored_session import StoredSession

_PAUSE = 0.3
"""Seconds between two checks of a session that is followed."""


@click.command("tail")
@session_argument()
@click.option("-f", "--follow", is_flag=True, help="Keep running, and print new messages as they are written.")
@click.option(
    "-n",
    "--lines",
    "count",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    metavar="N",
    help="How many messages to print first.",
)
@click.option(
    "--patience",
    type=Number(min=0),
    metavar="SECONDS",
    help="With --follow: stop after this time without a new message.",
)
@click.option(
    "--detail", type=click.Choice(DETAILS), default="conversation", show_default=True, help="How much to print."
)
@redacting
@choosing_project
@common
@click.pass_context
def command(
    context: click.Context,
    /,
    reference: str,
    follow: bool,
    count: int,
    patience: float | None,
    detail: Detail,
    homes: tuple[str, ...],
    as_json: bool,
) -> None:
    """Print the last messages of a session; with -f, print new ones as they are written.

    With --json, one message per line.
    """
    as_json = wants_json(context, as_json)
    session = find_session(context, homes, reference)
    session = redaction(context, for_programs=as_json).session(session)
    state = file_states(session.source)
    messages = _messages(session)
    shown = _last(messages, count, "full" if as_json else detail, session.session_object)
    _print(session, shown, as_json, detail)
    if follow:
        model = _model(shown)
        for came in _growing(session, state, len(messages), patience):
            _print(session, came if as_json else _without(model, came), as_json, detail)
            model = _model(came) or model


def _last(
    messages: list[dict[str, JSON]], count: int, detail: Detail, header: dict[str, JSON]
) -> list[dict[str, JSON]]:
    """The end of the session with as many messages as are wanted; those that the detail hides do not count."""
    in_subagent = header.get("is_agent_session") is True
    start = len(messages)
    for at in reversed(range(len(messages))):
        if not count:
            break
        if at_detail(messages[at], detail, in_subagent=in_subagent) is not None:
            start, count = at, count - 1
    return messages[start:]


def _model(messages: list[dict[str, JSON]]) -> JSON:
    """The model that was named last."""
    named = (message.get("metadata", {}).get("model") for message in reversed(messages))
    return next((model for model in named if model), None)


def _without(model: JSON, messages: list[dict[str, JSON]]) -> list[dict[str, JSON]]:
    """The same; the model is not named again where it was before."""
    for at, message in enumerate(messages):
        metadata = message.get("metadata", {})
        if metadata.get("model"):
            if metadata["model"] != model:
                break
            unnamed = {**message, "metadata": {**metadata, "model": None}}
            messages = [*messages[:at], unnamed, *messages[at + 1 :]]
    return messages


def _messages(session: StoredSession) -> list[dict[str, JSON]]:
    return [unit.value for unit in session.units() if unit.is_message]


def _growing(
    session: StoredSession, state: FileStates, printed: int, patience: float | None
) -> Iterator[list[dict[str, JSON]]]:
    """Messages as they come, some at a time."""
    quiet = time.monotonic()
    while True:
        time.sleep(_PAUSE)
        now = file_states(session.source)
        if now == state:
            if patience is not None and time.monotonic() - quiet >= patience:
                return
            continue
        state, quiet = now, time.monotonic()
        try:
            session.forget()
            messages = _messages(session)
        except SourceUnreadable as error:
            print_message(f"clew: {error}")
            continue
        if len(messages) < printed:
            print_message("clew: the session file was rewritten; following from its end", mask=False)
        elif len(messages) > printed:
            yield messages[printed:]
        printed = len(messages)


def _print(session: StoredSession, messages: list[dict[str, JSON]], as_json: bool, detail: Detail) -> None:
    if as_json:
        for message in messages:
            print_line(message)
    else:
        from clew.render.outline import session_notes
        from clew.render.terminal import show

        header = session.session_object
        pieces = show(header, iter(messages), shutil.get_terminal_size().columns, False, detail)
        # The head was there before.
        for piece in islice(pieces, 1 + len(list(session_notes(header))), None):
            click.echo(piece, nl=False)
    sys.stdout.flush()
