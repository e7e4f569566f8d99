"""clew annotate: stars, labels and notes on sessions and messages."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from clew.annotations import MAX_IMPORT_BYTES, Annotation, Annotations, Target, masked_export, read_export
from clew.catalog.sessions import MessagesNotRead
from clew.cli import OPTIONS
from clew.cli.completion import complete_label, complete_session
from clew.cli.options import (
    as_json_option,
    choosing_project,
    common,
    dry_run_option,
    filtering,
    force_option,
    given_filters,
    open_library,
    take_filters,
    wants_json,
)
from clew.cli.output import open_output, print_json, print_message, print_table
from clew.cli.redaction import STANDARD, Redaction, mask_by_session, redacting, redacting_output, redaction
from clew.errors import UnknownReference, UsageError
from clew.filters import Filters
from clew.io.codec import dumps
from clew.model.json import JSON
from clew.references import Reference, ambiguous, message_of, named_path
from clew.render.text_safety import one_line, visible

if TYPE_CHECKING:
    from clew.catalog.annotated import AnnotatedItem
    from clew.library import Library

STAR = "★"


@click.group("annotate")
@as_json_option
@click.pass_context
def command(context: click.Context, /, as_json: bool) -> None:
    """Add stars, labels and notes to sessions and messages, and titles to sessions.

    They are kept in clew's data folder, apart from agents' files and from the catalog. They stay when a session is
    renamed, moved, archived or deleted. `--label` and `--starred` choose sessions in every command with filters.
    """
    if as_json:
        context.find_root().obj["json"] = True


@command.command("set")
@click.argument("reference", metavar="REF", shell_complete=complete_session)
@click.option("--star/--no-star", "starred", default=None, help="Add or remove the star.")
@click.option(
    "--label",
    "add_labels",
    multiple=True,
    metavar="NAME",
    shell_complete=complete_label,
    help="Add a label; repeatable.",
)
@click.option(
    "--remove-label",
    "remove_labels",
    multiple=True,
    metavar="NAME",
    shell_complete=complete_label,
    help="Remove a label; repeatable.",
)
@click.option("--note", metavar="TEXT", help='Set the note; "" removes it, - reads it from standard input.')
@click.option("--title", metavar="TEXT", help="Rename the session, in clew alone.")
@click.option("--no-title", is_flag=True, help="Remove that title, so that the one from the agent is shown again.")
@redacting_output
@choosing_project
@common
@click.pass_context
def set_command(
    context: click.Context,
    /,
    reference: str,
    starred: bool | None,
    add_labels: tuple[str, ...],
    remove_labels: tuple[str, ...],
    note: str | None,
    title: str | None,
    no_title: bool,
    homes: tuple[str, ...],
    as_json: bool,
) -> None:
    """Set the star, labels, note or title of a session or message.

    Only a session has a title. REF#12 is message 12 of the session. What is not named stays as it is. A label has up
    to 60 characters; its case does not matter. A note has up to 10,000 characters, a title up to 200. Every list shows
    that title; the agent's own files and exports keep theirs.
    """
    if title is not None and no_title:
        raise UsageError("--title and --no-title exclude each other")
    title = "" if no_title else title
    if starred is None and not add_labels and not remove_labels and note is None and title is None:
        raise UsageError("nothing to set; use --star, --label, --note or --title, or --no-star and the like to remove")
    if note == str(STANDARD):
        note = sys.stdin.buffer.read(MAX_IMPORT_BYTES).decode("utf-8", "surrogateescape")
    library = open_library(context, homes)
    target = _target(context, library, reference)
    annotation = Annotations().change(
        target,
        starred=starred,
        add_labels=add_labels,
        remove_labels=remove_labels,
        note=note,
        title=title,
        now=library.now(),
    )
    is_json = wants_json(context, as_json)
    masking = redaction(context, for_programs=is_json)
    if is_json:
        print_json(masking.value(_row(annotation)))
    else:
        _print(annotation, masking)


@command.command("show")
@click.argument("reference", metavar="REF", shell_complete=complete_session)
@redacting
@choosing_project
@common
@click.pass_context
def show_command(context: click.Context, /, reference: str, homes: tuple[str, ...], as_json: bool) -> int:
    """Print the star, labels and note of a session.

    Those of its messages are printed too; REF#12 prints only those of message 12. Exit code 1: there are none.
    """
    target = _target(context, open_library(context, homes), reference)
    found = Annotations().of_session(target.agent, target.session)
    if target.message is not None:
        found = [annotation for annotation in found if annotation.target.key == target.key]
    is_json = wants_json(context, as_json)
    masking = redaction(context, for_programs=is_json)
    if is_json:
        print_json(masking.value([_row(annotation) for annotation in found]))
    else:
        for annotation in found:
            _print(annotation, masking)
        if not found:
            print_message("no star, label or note", mask=False)
    return 0 if found else 1


@command.command("list")
@redacting
@filtering
@common
@click.pass_context
def list_command(context: click.Context, /, homes: tuple[str, ...], as_json: bool, **options: Any) -> int:
    """List sessions and messages with a star, label or note.

    The latest session comes first. --label and --starred choose among these; the other filters choose their sessions.
    Without other filters, sessions that the catalog does not have are listed too. Exit code 1: nothing was found.
    """
    library = open_library(context, homes)
    items = _items(library, take_filters(options, library))
    is_json = wants_json(context, as_json)
    masking = redaction(context, for_programs=is_json)
    if is_json:
        print_json(masking.value([_listed_row(item) for item in items]))
    elif items:
        _print_list(items, masking)
    elif filters := given_filters(context):
        print_message(f"no stars, labels or notes match {filters}")
    else:
        print_message("no stars, labels or notes yet; `clew annotate set REF --star` adds one", mask=False)
    return 0 if items else 1


@command.command("export")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="PATH", help=OPTIONS["-o, --output PATH"])
@force_option
@redacting
@as_json_option
@click.pass_context
def export_command(context: click.Context, /, output: Path | None, force: bool, as_json: bool) -> None:
    """Write all stars, labels and notes as JSON.

    `clew annotate import` reads it, on this machine or another one, unless --redact has masked something in it.
    """
    masking = redaction(context, for_programs=True)
    exported = Annotations().export()
    exported = masked_export(exported, masking.value(exported), masking.profile)
    with open_output(output, force=force) as out:
        out.write(msgspec.json.format(dumps(exported), indent=2) + b"\n")
    if output is not None:
        count = len(exported["annotations"])
        if wants_json(context, as_json):
            print_json({"path": str(output), "annotations": count})
        else:
            print_message(f"{count} written to {output}")


@command.command("import")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True), metavar="FILE")
@dry_run_option()
@as_json_option
@click.pass_context
def import_command(context: click.Context, /, file: Path, dry_run: bool, as_json: bool) -> None:
    """Add the stars, labels and notes of an export.

    FILE was written by `clew annotate export`; - reads standard input. Nothing is removed. A session or message gets
    the star if either side has it, and the labels of both sides. If both sides have a note, the note of the side that
    was changed last is kept. To import a file again changes nothing.
    """
    with nullcontext(sys.stdin.buffer) if file == STANDARD else file.open("rb") as source:
        content = source.read(MAX_IMPORT_BYTES + 1)
    done = Annotations().merge(read_export(content, str(file)), dry_run=dry_run)
    if wants_json(context, as_json):
        print_json({**done._asdict(), "dry_run": dry_run})
    else:
        print_message(f"{done.added} added, {done.changed} changed, {done.unchanged} unchanged", mask=False)


def _target(context: click.Context, library: Library, reference: str) -> Target:
    """The session or message that a reference names; also one of which only annotations are left.

    What the command prints is masked with the secrets of the session.
    """
    message = message_of(reference)
    try:
        session = library.get(reference, missing=True)
    except (UnknownReference, MessagesNotRead):
        target = _annotated_target(reference)
        if target is None:
            raise
        return target
    mask_by_session(context, session)
    return Target.of(session, message)


def _annotated_target(reference: str) -> Target | None:
    """The session or message that a reference names among those with annotations."""
    if named_path(reference) is not None:
        return None
    wanted = Reference.parse(reference)
    found = [
        annotation
        for annotation in Annotations().all()
        if annotation.session.startswith(wanted.id) and wanted.agent in (None, annotation.agent)
    ]
    sessions = {(annotation.agent, annotation.session) for annotation in found}
    if len(sessions) > 1:
        raise ambiguous(wanted, [(agent, session, "") for agent, session in sorted(sessions)])
    if not sessions or wanted.message is None:
        return Target(*sessions.pop()) if sessions else None
    return next((annotation.target for annotation in found if annotation.message == wanted.message), None)


def _items(library: Library, filters: Filters) -> list[AnnotatedItem]:
    from clew.catalog.annotated import annotated_items
    from clew.catalog.filters import catalog_condition

    annotations = Annotations().all(labels=filters.label, starred=filters.starred)
    if filters.agent:
        annotations = [annotation for annotation in annotations if annotation.agent in filters.agent]
    of_sessions = filters.without("label", "starred", "agent")
    with library.catalog(filters=of_sessions) as catalog:
        is_limited = of_sessions != Filters()
        condition = catalog_condition(catalog.db, of_sessions, catalog.sources_with_text) if is_limited else None
        return annotated_items(catalog.db, annotations, condition)


def _row(annotation: Annotation) -> dict[str, JSON]:
    return {"reference": annotation.target.reference, **msgspec.to_builtins(annotation)}


def _listed_row(item: AnnotatedItem) -> dict[str, JSON]:
    return {
        **_row(item.annotation),
        "reference": item.reference,
        "message": item.message,
        "title": item.title or None,
        "project": item.project or None,
        "in_catalog": item.number is not None,
    }


def _print(annotation: Annotation, masking: Redaction) -> None:
    texts = [annotation.target.reference, annotation.note, annotation.title, *annotation.labels]
    name, note, title, *labels = masking.names(texts)
    star = f"{STAR} " if annotation.starred else ""
    click.echo(one_line(f"{star}{name}" + (f": {', '.join(labels)}" if labels else "")))
    if title:
        click.echo(one_line(f"  title: {title}"))
    for line in visible(note).splitlines():
        click.echo(f"  {line}")


def _print_list(items: list[AnnotatedItem], masking: Redaction) -> None:
    from clew.render.tables import Column, short_ids, short_project

    known = {item.annotation.session for item in items}
    short = short_ids(known, known)
    columns = [
        Column(""),
        Column("session"),
        Column("agent", drop_rank=2),
        Column("labels", flexible=True, least=12),
        Column("note", flexible=True, least=20),
        Column("project", is_path=True, flexible=True, drop_rank=3),
        Column("title", flexible=True, least=16, drop_rank=1),
    ]
    cells = [
        [
            STAR if item.annotation.starred else "",
            short[item.annotation.session] + (f"#{item.message}" if item.message is not None else ""),
            item.annotation.agent,
            ", ".join(item.annotation.labels),
            item.annotation.note,
            short_project(item.project),
            item.title if item.number is not None else "(not in the catalog)",
        ]
        for item in items
    ]
    print_table(columns, cells, masking)
