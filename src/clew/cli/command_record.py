"""clew record: messages from any program into a session of the store."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import click

from clew.cli.options import common
from clew.cli.output import print_message
from clew.cli.redaction import redacting, redaction
from clew.errors import InvalidDocument, UsageError
from clew.io.codec import dumps
from clew.store.layout import Durability
from clew.store.message_input import parse_message
from clew.store.session import Session
from clew.store.store import Store
from clew.store.writer import Draft

_CHUNK = 1 << 16


@click.command("record")
@click.option(
    "--store",
    "place",
    required=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Keep sessions in `.sage` below this folder, or in this folder if it is called `.sage`.",
)
@click.option(
    "--session", "name", required=True, metavar="ID", help="The id of the session; created with its first message."
)
@click.option(
    "--durability",
    type=click.Choice(["disk", "system"]),
    help="When a message counts as stored: disk, it survives a power cut (default); system, it survives this process.",
)
@redacting
@common
@click.pass_context
def command(
    context: click.Context,
    /,
    place: Path,
    name: str,
    durability: Durability | None,
    homes: tuple[str, ...],
    as_json: bool,
) -> int:
    """Append messages to a session: one JSON object per line on standard input.

    `role` (user, assistant, system, tool) and `content` are required; uuid, parent, timestamp, tool_calls,
    tool_results, todos, usage, thinking, context, model and version are understood, and other keys are kept. For each
    message one line {"uuid", "seq"} is printed when it is safely stored. A uuid that the session already has is not
    written again, so a message can be sent twice. Invalid lines are reported on stderr, the others are recorded, and
    the exit code is 4. With --redact, or if the store's configuration says so, messages are masked before they are
    written. Read it with `clew --home DIR list`.

    For example:

    \b
    {"role":"user","content":"Who is here?"}
    {"role":"assistant","content":"","tool_calls":[{"id":"1","name":"who","arguments":{}}]}
    {"role":"tool","tool_call_id":"1","name":"who","content":"ada"}

    Changes of files, for `clew undo`, are recorded from Python: Session.watch, see `help(clew)`.
    """
    masking = redaction(context, for_programs=True)
    redact = masking.redactor() if masking.is_on else "none" if masking.was_asked else None
    with Store(place, durability=durability, redact=redact).session(name) as session:
        bad = sum(_record(session, lines, number) for number, lines in _batches(sys.stdin.buffer))
    return InvalidDocument.exit_code if bad else 0


def _batches(stream: BinaryIO) -> Iterator[tuple[int, list[bytes]]]:
    """The lines of a stream in batches as they arrive, each with the number of its first line."""
    number, kept = 1, b""
    read = getattr(stream, "read1", stream.read)
    while part := read(_CHUNK):
        *lines, kept = (kept + part).split(b"\n")
        if lines:
            yield number, lines
            number += len(lines)
    if kept:
        yield number, [kept]


def _record(session: Session, lines: list[bytes], first: int) -> int:
    """Record the good lines of a batch and name the others; returns how many those were."""
    good: list[tuple[int, Draft]] = []
    bad: dict[int, UsageError] = {}
    for number, line in enumerate(lines, first):
        try:
            if line.strip():
                good.append((number, parse_message(line, session.context_reader)))
        except UsageError as error:
            bad[number] = error
    _append(session, good, bad)
    for number in sorted(bad):
        # The error may quote the input, so it is masked.
        print_message(f"clew: line {number}: {bad[number]}")
    return len(bad)


def _append(session: Session, good: list[tuple[int, Draft]], bad: dict[int, UsageError]) -> None:
    """Append a batch at once; where one of it is refused, each on its own."""
    try:
        receipts = session.extend([draft for _, draft in good]) if good else []
    except UsageError as error:
        if len(good) == 1:
            bad[good[0][0]] = error
        for one in good if len(good) > 1 else ():
            _append(session, [one], bad)
        return
    for receipt in receipts:
        sys.stdout.buffer.write(dumps({"uuid": receipt.uuid, "seq": receipt.seq}) + b"\n")
    sys.stdout.flush()
