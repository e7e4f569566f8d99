"""clew show: print a session."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from typing import NamedTuple, TypeVar

import click

from clew.agents.base import Unit, long_records
from clew.agents.file_evidence import FileContent
from clew.agents.source import open_file
from clew.analysis.session import title_of
from clew.cli.options import choosing_project, common, wants_json
from clew.cli.output import print_json, print_line, print_message, use_color
from clew.cli.redaction import Redaction, redacting, redaction
from clew.cli.session_argument import session_argument
from clew.cli.sessions import find_session, user_titles
from clew.errors import UnknownReference
from clew.io.compress import seekable
from clew.io.records import MAX_RECORD_BYTES, TOO_LONG
from clew.model.json import JSON
from clew.references import branch_of, message_of
from clew.render.detail import DETAILS, Detail, at_detail, is_remark
from clew.render.shell import shell_word
from clew.stored_session import StoredSession

_PIECE = 1 << 20
T = TypeVar("T")


@click.command("show")
@session_argument()
@click.option(
    "--detail",
    type=click.Choice(DETAILS),
    help="How much to print: prompts, conversation (with answers), actions (with tool calls), full (with thinking and"
    " tool output). Default: conversation, with --json full.",
)
@click.option("--raw", is_flag=True, help="Print the agent's own records, unchanged.")
@click.option(
    "--file",
    "path",
    metavar="PATH",
    help="Print this file at message REF#12, before the results of its own calls.",
)
@click.option("--unproved", is_flag=True, help="With --file: print the content even if it is only inferred.")
@redacting
@choosing_project
@common
@click.pass_context
def command(
    context: click.Context,
    /,
    reference: str,
    detail: Detail | None,
    raw: bool,
    path: str | None,
    unproved: bool,
    homes: tuple[str, ...],
    as_json: bool,
) -> None:
    """Print a session, one message of it (REF#12), or the messages of a branch (REF@NAME).

    With --json, one message per line. Secrets in text are masked unless --redact none is given; --json, --raw and
    --file are not masked unless --redact is given.

    With --file, print a file as it was after that message; stderr says how its content is known. Exit code 1: the
    content is not known, or the file did not exist.
    """
    if path is not None:
        show_file(context, homes, reference, path, unproved, as_json)
        return
    session = find_session(context, homes, reference)
    wanted = Wanted.by(session, reference)
    if raw:
        _print_raw(session, wanted, redaction(context, for_programs=True))
        return
    masking = redaction(context, for_programs=wants_json(context, as_json))
    title = "" if wants_json(context, as_json) else user_titles().get((session.agent.id, session.id), "")
    # Masking learns the whole session first, so not without need.
    title = masking.texts(session)(title, None) if title else ""
    session = masking.session(session)
    if wants_json(context, as_json):
        _print_json(session, wanted, detail or "full")
    else:
        _print(session, title, reference, wanted, (detail or "conversation") if wanted.message is None else "full")


class Counted(Iterator[T]):
    """An iterator with the number of values it has given."""

    def __init__(self, values: Iterator[T]) -> None:
        self._values, self.count = values, 0

    def __next__(self) -> T:
        value = next(self._values)
        self.count += 1
        return value


class Wanted(NamedTuple):
    """The requested part of a session."""

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
        from clew.cli.sessions import branch_path

        return cls(message_of(reference), frozenset(branch_path(session, branch)))

    def admits(self, unit: Unit) -> bool:
        """True for a message in the requested part."""
        if not unit.is_message or self.message not in (None, unit.value["index"]):
            return False
        return self.path is None or unit.value["uuid"] in self.path


def _messages(session: StoredSession, wanted: Wanted) -> Iterator[dict[str, JSON]]:
    """The requested messages; if those are all, also a remark in place of each record that is too long."""
    found = False
    # Masked files have a marker in the place of such a record, and no longer its size.
    too_long = long_records(session.agent, session.source) if wanted == (None, None) else {}
    for unit in session.units():
        if (unit.part, unit.line) in too_long and not unit.is_message:
            yield _unread(unit.line, too_long[unit.part, unit.line])
        if wanted.admits(unit):
            found = True
            yield unit.value
            if wanted.message is not None:
                return
    _require(session, wanted, found)


def _unread(line: int, size_bytes: int) -> dict[str, JSON]:
    from clew.render.tables import size

    what = f"line {line}: a record of {size(size_bytes)} is not shown"
    text = f"{what}: none of more than {size(MAX_RECORD_BYTES)} is read (CLEW_MAX_LINE)"
    return {"index": 0, "role": "system", "content": [{"type": "text", "text": text}]}


def _require(session: StoredSession, wanted: Wanted, found: bool) -> None:
    if not found and wanted.message is not None:
        where = "" if wanted.path is None else " on that branch"
        raise UnknownReference(f"session {session.id} has no message {wanted.message}{where}")


def _print_raw(session: StoredSession, wanted: Wanted, masking: Redaction) -> None:
    mask, out, printed = masking.records(session), sys.stdout.buffer, False
    files = ("", *session.source.parts)
    start = stop = 0
    with ExitStack() as stack:
        streams = [stack.enter_context(seekable(open_file(session.source, name))) for name in files]
        for unit in session.units():
            # A message without its own bytes is part of the record before it, which is printed once.
            shares = unit.is_message and unit.start == unit.stop
            start, stop = (start, stop) if shares else (unit.start, unit.stop)
            if shares if wanted == (None, None) else not wanted.admits(unit):
                continue
            stream = streams[unit.part]
            stream.seek(start)
            if TOO_LONG not in unit.findings:
                out.write(mask(stream.read(stop - start)))
            elif masking.is_on:
                out.write(f'"{masking.redactor().mask_unscanned()}"'.encode())
            else:
                for at in range(start, stop, _PIECE):
                    out.write(stream.read(min(_PIECE, stop - at)))
            out.write(b"\n")
            printed = True
    _require(session, wanted, printed)


def _print_json(session: StoredSession, wanted: Wanted, detail: Detail) -> None:
    in_subagent = detail != "full" and session.session_object.get("is_agent_session") is True
    for message in _messages(session, wanted):
        shown = at_detail(message, detail, in_subagent=in_subagent)
        if is_remark(message):
            print_message(f"clew: {message['content'][0]['text']}")
        elif shown is not None:
            print_line(shown)


def _print(session: StoredSession, title: str, reference: str, wanted: Wanted, detail: Detail) -> None:
    from clew.render.branching import Forks
    from clew.render.terminal import show_header, show_messages

    # Of one message, or one branch, the forks say nothing.
    forks = Forks.of_tree(session.facts.tree) if wanted == (None, None) else None
    width = shutil.get_terminal_size().columns
    messages = Counted(_messages(session, wanted))
    if wanted.message is not None:
        # A message that does not exist is reported before anything is printed.
        messages = Counted(iter(list(messages)))
    own_title = title_of(session.session_object, session.facts)
    summary = _summary(session) if wanted.message is None else []
    if title and own_title and wanted.message is None:
        summary.append(f"title from the agent: {own_title}")
    titled = {**session.session_object, "title": title or own_title}
    header = show_header(titled, width, use_color(), summary)
    shown = Counted(show_messages(session.session_object, messages, width, use_color(), detail, forks=forks))
    pieces = chain(header, shown)
    if sys.stdout.isatty():
        # less: quit if it fits on one screen, keep colours, leave the text on the screen.
        os.environ.setdefault("LESS", "-FRX")
        # The pager gets only what the terminal can show.
        encoding, errors = sys.stdout.encoding, sys.stdout.errors or "strict"
        click.echo_via_pager(piece.encode(encoding, errors).decode(encoding) for piece in pieces)
    else:
        for piece in pieces:
            click.echo(piece, nl=False)
    if not shown.count:
        print_message(f"clew: {_why_nothing_is_shown(reference, wanted, messages.count)}")


def _why_nothing_is_shown(reference: str, wanted: Wanted, messages: int) -> str:
    """The hint where only the title of a session was printed."""
    if wanted.message is not None:
        return f"message {wanted.message} has no text; --raw prints its record"
    if messages:
        return "no message has text at this level of detail; --detail full prints all"
    return f"the session has no messages; `clew validate {shell_word(reference)}` reports damaged records"


def _summary(session: StoredSession) -> list[str]:
    """The facts of a session for the lines below its title: agent, project, id, models, cost."""
    from clew.analysis.pricing import NANO_DOLLARS, prices
    from clew.render.tables import dollars

    facts = session.facts
    table = prices()
    costs = [table.cost_of_call(model, counts) for _, model, counts, _ in facts.ledger.each()]
    known = [cost for cost in costs if cost is not None]
    cost = f"{'≥ ' if len(known) < len(costs) else ''}{dollars(sum(known) / NANO_DOLLARS)}" if known else "?"
    return [
        session.agent.id,
        *filter(None, [session.session_object.get("workspace")]),
        session.session_object["id"],
        *[model for model in facts.models if model],
        *([f"cost {cost}"] if costs else []),
    ]


def show_file(
    context: click.Context, homes: tuple[str, ...], reference: str, path: str, unproved: bool, as_json: bool
) -> None:
    """Print the content, byte for byte; how it is known goes to stderr."""
    # Loading the file history takes 10 ms, which the other forms of `show` do not need.
    from clew.cli.file_history import message_in, open_file_history
    from clew.file_history.rows import answer_row, content_row, describe_certainty, describe_later_result
    from clew.io.paths import escape_invalid_utf8

    message = message_in(reference)
    session, history = open_file_history(context, homes, reference)
    answer = history.at(message, history.resolve_path(path))
    wanted = answer.certainty in ("exact", "text") or (unproved and answer.certainty == "unproved")
    (state,) = history.contents([answer]) if wanted else [None]
    masking = redaction(context, for_programs=True)
    if masking.is_on and isinstance(state, FileContent):
        state = state._replace(body=masking.file(session, state.body, answer.path))
    if wants_json(context, as_json):
        print_json(masking.value({**answer_row(answer), **content_row(state)}))
    hint = "; --unproved prints what was known last" if answer.certainty == "unproved" else ""
    if changed := describe_later_result(history, reference.rpartition("#")[0], message, answer.path):
        hint += f"; {changed}"
    if isinstance(state, FileContent) and not wants_json(context, as_json):
        print_message(f"{escape_invalid_utf8(answer.path)}: {describe_certainty(answer)}{hint}")
        sys.stdout.buffer.write(state.body)
        sys.stdout.flush()
    if not isinstance(state, FileContent):
        raise UnknownReference(
            f"{escape_invalid_utf8(answer.path)} at message {message}: {describe_certainty(answer)}{hint}"
        )
