"""clew verify: native bytes -> unified JSON text -> parsed again -> native bytes, compared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
import msgspec

from clew.cli.options import common, filtering, library, take_filters, wants_json
from clew.cli.output import print_json, say
from clew.errors import UnknownReference
from clew.export.verify import Proof, verify
from clew.library import Library, StoredSession


@click.command("verify")
@click.argument("references", nargs=-1, metavar="[PATH|REF]...")
@filtering
@common
@click.pass_context
def command(
    context: click.Context, /, references: tuple[str, ...], homes: tuple[str, ...], as_json: bool, **options: Any
) -> int:
    """Take each session through the unified document and back, and compare every byte.

    Without an argument: all sessions. Exit code 0 only if every byte came back.
    """
    filters = take_filters(options)
    proof = Proof()
    for session in _chosen(library(context, homes), references):
        if filters.admits(session):
            proof.add(verify(session.agent, session.source))
    if not proof.files:
        raise UnknownReference("no session to verify; `clew agents` shows where they are looked for")
    if wants_json(context, as_json):
        print_json(msgspec.to_builtins(proof))
    else:
        _report(proof)
    return 0 if proof.holds else 1


def _chosen(shelf: Library, references: tuple[str, ...]) -> Iterator[StoredSession]:
    if not references:
        yield from shelf.sessions()
    for reference in references:
        yield from shelf.find(reference)


def _report(proof: Proof) -> None:
    from clew.render.safe import one_line

    for difference in proof.different:
        say(f"{difference.file}:{difference.line}: {difference.why}")
    ratio = proof.document_bytes / proof.bytes if proof.bytes else 1.0
    came_back = f"{proof.identical} of {proof.files} files came back identical"
    click.echo(f"{came_back}: {proof.bytes:,} bytes, {proof.records:,} records")
    click.echo(
        f"{proof.carried_raw:,} records carried raw; the documents are {ratio:.2f} times the size of their sources"
    )
    for name, counts in (("types", proof.unknown_types), ("keys", proof.unknown_keys)):
        if counts:
            listed = ", ".join(f"{key or '(none)'} ({count})" for key, count in sorted(counts.items()))
            click.echo(one_line(f"unknown {name}, kept: {listed}"))
