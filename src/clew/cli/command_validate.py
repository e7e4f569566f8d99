"""clew validate: everything that is wrong with sessions, as text or as data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any

import click
import msgspec

from clew.agents.checking import check_source
from clew.catalog.sync_level import SyncLevel
from clew.cli.completion import complete_session
from clew.cli.options import common, filtering, open_library, take_filters, wants_json
from clew.cli.output import print_json, print_message
from clew.cli.redaction import Redaction, redacting, redaction
from clew.cli.sessions import for_each_session
from clew.errors import SourceUnreadable, UnknownReference
from clew.io.paths import escape_controls
from clew.library import Library
from clew.model import Problem
from clew.stored_session import StoredSession

_SEVERITIES = ("error", "warning", "note")


@click.command("validate")
@click.argument("references", nargs=-1, metavar="[PATH|REF]...", shell_complete=complete_session)
@click.option(
    "--level",
    type=click.Choice(_SEVERITIES),
    default="warning",
    show_default=True,
    help="Report problems of at least this severity.",
)
@click.option("--fail-fast", is_flag=True, help="Stop at the first problem of a session.")
@redacting
@filtering
@common
@click.pass_context
def command(
    context: click.Context,
    /,
    references: tuple[str, ...],
    level: str,
    fail_fast: bool,
    homes: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> int:
    """Report damaged or inconsistent records in sessions. Exit code 1: a problem was reported.

    With --level note, messages that other sessions have too are reported, unless only paths are given.
    """
    library = open_library(context, homes)
    shown = _SEVERITIES[: _SEVERITIES.index(level) + 1]
    problems: list[Problem] = []
    checked: list[str] = []
    with _shared_messages(library, references, shown) as shared_messages:

        def check(session: StoredSession) -> None:
            checked.append(session.source.agent)
            found = chain(check_source(session.agent, session.source), shared_messages(session))
            kept = (problem for problem in found if problem.severity in shown)
            problems.extend(islice(kept, 1) if fail_fast else kept)

        unreadable = for_each_session(library, references, take_filters(options, library), check)
    if not checked and not unreadable:
        raise UnknownReference("no session to check; `clew agents` lists the folders that are read")
    json = wants_json(context, as_json)
    masking = redaction(context, for_programs=json)
    if json:
        print_json(masking.value([msgspec.to_builtins(problem) for problem in problems]))
    else:
        for problem in problems:
            click.echo(line(problem, masking))
        if not problems:
            print_message(f"no problems found in {len(checked)} session{'' if len(checked) == 1 else 's'}", mask=False)
    return 1 if problems else SourceUnreadable.exit_code if unreadable else 0


@contextmanager
def _shared_messages(
    library: Library, references: tuple[str, ...], severities: Sequence[str]
) -> Iterator[Callable[[StoredSession], list[Problem]]]:
    """The function that finds messages of a session in other files; it finds none where only paths are given."""
    from clew.catalog.queries import shared_messages

    if "note" not in severities or (references and all(Path(name).exists() for name in references)):
        yield lambda _: []
    else:
        with library.catalog(SyncLevel.MESSAGES) as catalog:
            yield lambda session: shared_messages(catalog.db, session.path)


def line(problem: Problem, masking: Redaction) -> str:
    """A problem on one line, its place first, as compilers do it."""
    from clew.render.text_safety import one_line, visible

    problem = msgspec.convert(masking.value(msgspec.to_builtins(problem)), Problem)
    place = ":".join(str(part) for part in (problem.file, problem.line) if part is not None)
    offset = f" (byte {problem.start})" if problem.start is not None else ""
    message = f" (message {problem.index})" if problem.index is not None else ""
    hint = f" {problem.hint}" if problem.hint else ""
    text = one_line(f"{problem.severity}: {problem.message}{message}{offset} [{problem.code}]{hint}")
    return f"{visible(escape_controls(place))}: {text}"
