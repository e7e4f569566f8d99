"""A file as it was at a message, for `clew show --file`."""

from __future__ import annotations

import sys

import click

from clew.agents.file_evidence import FileContent
from clew.cli.filing import content, in_words, message_in, opened, row, spelled
from clew.cli.options import wants_json
from clew.cli.output import print_json, say
from clew.cli.redacting import DATA, redaction
from clew.errors import UnknownReference


def show_file(
    context: click.Context, homes: tuple[str, ...], reference: str, path: str, unproved: bool, as_json: bool
) -> None:
    """Print the content, byte for byte; how it is known goes to stderr."""
    message = message_in(reference)
    session, history = opened(context, homes, reference)
    answer = history.at(message, history.resolve_path(path))
    wanted = answer.certainty in ("exact", "text") or (unproved and answer.certainty == "unproved")
    (state,) = history.contents([answer]) if wanted else [None]
    masking = redaction(context, DATA)
    if masking.is_on and isinstance(state, FileContent):
        state = state._replace(body=masking.file(session, state.body, answer.path))
    if wants_json(context, as_json):
        print_json(masking.value({**row(answer), **content(state)}))
    elif isinstance(state, FileContent):
        say(f"{spelled(answer.path)}: {in_words(answer)}")
        sys.stdout.buffer.write(state.body)
        sys.stdout.flush()
    if not isinstance(state, FileContent):
        hint = "; --unproved prints what was known last" if answer.certainty == "unproved" else ""
        raise UnknownReference(f"{spelled(answer.path)} at message {message}: {in_words(answer)}{hint}")
