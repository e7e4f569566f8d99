"""clew verify: native bytes -> unified JSON text -> parsed again -> native bytes, compared."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from clew.cli.completion import complete_session
from clew.cli.options import common, filtering, open_library, take_filters, wants_json
from clew.cli.output import print_json, print_message
from clew.cli.redaction import Redaction, redacting, redaction
from clew.cli.sessions import for_each_session
from clew.errors import SourceUnreadable, UnknownReference
from clew.export.verify import Proof, verify


@click.command("verify")
@click.argument("references", nargs=-1, metavar="[PATH|REF]...", shell_complete=complete_session)
@redacting
@filtering
@common
@click.pass_context
def command(
    context: click.Context, /, references: tuple[str, ...], homes: tuple[str, ...], as_json: bool, **options: Any
) -> int:
    """Export each session, restore it, and compare every byte with the agent's files.

    Without an argument: all sessions. Exit code 0 only if every byte is the same.
    """
    library = open_library(context, homes)
    proof = Proof()
    unreadable = for_each_session(
        library,
        references,
        take_filters(options, library),
        lambda session: proof.add(verify(session.agent, session.source)),
    )
    if not proof.files and not unreadable:
        raise UnknownReference("no session to verify; `clew agents` lists the folders that are read")
    if not proof.files:
        return SourceUnreadable.exit_code
    json = wants_json(context, as_json)
    masking = redaction(context, for_programs=json)
    if json:
        print_json(masking.value(msgspec.to_builtins(proof)))
    else:
        _report(proof, masking)
    return 1 if not proof.holds else SourceUnreadable.exit_code if unreadable else 0


def _report(proof: Proof, masking: Redaction) -> None:
    from clew.render.text_safety import one_line

    for difference in proof.different:
        print_message(f"{difference.file}:{difference.line}: {difference.why}")
    ratio = proof.document_bytes / proof.bytes if proof.bytes else 1.0
    restored = f"{proof.identical} of {proof.files} files restored byte for byte"
    click.echo(f"{restored}: {proof.bytes:,} bytes, {proof.records:,} records")
    raw = "1 record" if proof.carried_raw == 1 else f"{proof.carried_raw:,} records"
    click.echo(f"{raw} kept as raw text; the documents are {ratio:.2f} times the size of their sources")
    for name, counts in (("types", proof.unknown_types), ("keys", proof.unknown_keys)):
        if counts:
            names = zip(masking.value(sorted(counts)), sorted(counts), strict=True)
            listed = ", ".join(f"{name or '(none)'} ({counts[key]})" for name, key in names)
            click.echo(one_line(f"unknown {name}, kept: {listed}"))
