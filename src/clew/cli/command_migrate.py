"""clew migrate: convert old Sage sessions in a folder to the current format."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from clew.cli.options import common, dry_run_option, wants_json
from clew.cli.output import print_json, print_message
from clew.cli.redaction import Redaction, redacting_output, redaction
from clew.errors import SourceUnreadable
from clew.migrate.sage import Step, apply, plan
from clew.model.json import JSON
from clew.store.layout import refuse_copy


@click.command("migrate")
@click.argument("place", type=click.Path(path_type=Path), metavar="PLACE")
@click.option("--names", is_flag=True, help="sage-emacs: rename project folders to the current naming.")
@click.option("--ids", is_flag=True, help="sage-emacs: add uuid and session_id to records.")
@click.option("--tokens", is_flag=True, help="sage-emacs: add estimated tokens to records.")
@click.option("--forms", is_flag=True, help="Sage Agent: convert records to the current format.")
@click.option("--metadata", is_flag=True, help="Both: rebuild metadata.json from the log where it is wrong.")
@dry_run_option("-n")
@redacting_output
@common
@click.pass_context
def command(
    context: click.Context,
    /,
    place: Path,
    names: bool,
    ids: bool,
    tokens: bool,
    forms: bool,
    metadata: bool,
    dry_run: bool,
    homes: tuple[str, ...],
    as_json: bool,
) -> None:
    """Convert old Sage sessions in PLACE, a home folder or the store of one program, to the current format.

    Without step options, all steps are done. Originals are kept as NAME.bak-TIME. Running it again changes nothing.
    """
    if not place.is_dir():
        raise SourceUnreadable(f"{place}: no such folder")
    refuse_copy(place)
    chosen = {"names": names, "ids": ids, "tokens": tokens, "forms": forms, "metadata": metadata}
    if not any(chosen.values()):
        chosen = dict.fromkeys(chosen, True)
    json = wants_json(context, as_json)
    masking = redaction(context, for_programs=json)
    masking.prepare()
    steps = plan(place, **chosen)
    if not dry_run:
        apply(steps, _stamp())
    if json:
        print_json(masking.value({"dry_run": dry_run, "steps": [_row(step) for step in steps]}))
    else:
        _report(steps, dry_run, masking)


def _stamp() -> str:
    from clew.host import Host

    return Host.local().now().strftime("%Y%m%d-%H%M%S")


def _row(step: Step) -> dict[str, JSON]:
    row: dict[str, JSON] = msgspec.to_builtins(step, enc_hook=str)
    return row


def _report(steps: list[Step], dry_run: bool, masking: Redaction) -> None:
    from clew.render.text_safety import visible

    for step in steps:
        target = f" -> {step.target}" if step.target is not None else ""
        changes = f", {step.changes} records" if step.changes else ""
        click.echo(visible(masking.text(f"{step.kind}  {step.path}{target}  ({step.reason}{changes})")))
    if not steps:
        print_message("nothing to do", mask=False)
    elif dry_run:
        print_message(f"{len(steps)} steps; nothing was changed")
