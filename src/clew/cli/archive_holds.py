"""clew archive hold: which sessions must not be removed; and the check before a command removes some."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clew.cli.completion import complete_session
from clew.cli.options import Number, as_json_option, choosing_kept, common, open_library, take_filters, wants_json
from clew.cli.output import print_json, print_message, print_table
from clew.cli.redaction import redacting_output, redaction
from clew.errors import Busy, SourceUnreadable, UnknownReference, UsageError
from clew.filters import Filters
from clew.host import Host
from clew.library import Library

if TYPE_CHECKING:
    from clew.archive.holds import Held, Hold, Holds, KnownSessions

_NEVER = datetime.min.replace(tzinfo=UTC)
archive_option = click.option(
    "--archive", "chosen", metavar="DIR", help="Folder of the archive (default: in clew's data folder)."
)


def archive_folder_of(context: click.Context, chosen: str | None) -> Path:
    """The folder of the archive that was named after the command or after `clew archive`."""
    from clew.archive.records import archive_folder

    return archive_folder(chosen or context.meta.get("clew.archive"))


def known_sessions() -> KnownSessions:
    """What the catalogs of this user know of sessions, as they are; of two catalogs, the one with the later message."""
    from clew.archive.holds import CatalogFacts, absolute_path
    from clew.catalog.database import open_all_readers
    from clew.catalog.queries import workspaces_and_times

    found: dict[Path, CatalogFacts] = {}
    for db in open_all_readers():
        for path, values in workspaces_and_times(db).items():
            one, other = CatalogFacts(*values), found.get(absolute_path(path), CatalogFacts())
            found[absolute_path(path)] = max(one, other, key=lambda about: about.last_message or _NEVER)
    return found


def user_holds() -> Holds:
    """The holds of the user's own archive."""
    from clew.archive.holds import Holds
    from clew.archive.records import archive_folder

    return Holds(archive_folder(None), known_sessions())


def print_unknown(held: Iterable[Held]) -> None:
    """Say how many sessions are held because something is not known of them. `held` has one hold for each session."""
    for (hold, unknown), number in Counter(one for one in held if one.unknown).items():
        sessions = "1 archived session" if number == 1 else f"{number} archived sessions"
        print_message(
            f"clew: {hold}: covers {sessions} of which no catalog knows the {unknown}; "
            "`clew sync` reads it, `clew sync --source archive` for sessions that only the archive has"
        )


MAX_AGE_DAYS = 36_525
"""A hundred years."""


@click.group("hold")
def hold_command() -> None:
    """Forbid the removal of sessions.

    For a legal hold, or until sessions have a minimum age. `archive prune`, `clean`, `erase` and `redact scrub` obey.
    """


@hold_command.command("add")
@click.argument("references", nargs=-1, metavar="[REF]...", shell_complete=complete_session)
@click.option("--reason", required=True, metavar="TEXT", help="Why; printed when a removal is refused.")
@click.option(
    "--min-age",
    type=Number(min=0, min_open=True, max=MAX_AGE_DAYS),
    metavar="DAYS",
    help="Hold each session until its last activity is this many days ago.",
)
@click.option("--all", "everything", is_flag=True, help="Hold all sessions, present and future.")
@archive_option
@redacting_output
@choosing_kept
@common
@click.pass_context
def add_command(
    context: click.Context,
    /,
    references: tuple[str, ...],
    reason: str,
    min_age: float | None,
    everything: bool,
    chosen: str | None,
    homes: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Hold sessions that are named or chosen.

    Options also choose sessions that do not exist yet. `archive prune` and `erase` then refuse to remove them, `clean`
    and `redact scrub` leave them alone. Without --min-age a hold lasts until `clew archive hold remove`.
    """
    from clew.archive.archive import open_archive
    from clew.archive.holds import Hold, add_hold
    from clew.archive.prune import held_sessions
    from clew.model.time import spell_time

    if not reason.strip():
        raise UsageError("--reason is empty; is a shell variable not set?")
    library = open_library(context, homes)
    filters, folder = take_filters(options, library), archive_folder_of(context, chosen)
    has_choice = bool(references) or filters != Filters()
    if everything and has_choice:
        raise UsageError("--all holds every session; leave it out to hold those that are named or chosen")
    if not (everything or has_choice or min_age is not None):
        raise UsageError("name sessions, choose them with options such as --project, or hold them with --all")
    hold = Hold(
        reason=reason,
        added_at=spell_time(library.now()),
        sessions=tuple(_session_name(library, reference, folder) for reference in references),
        agents=filters.agent,
        project=filters.project,
        folders=filters.folders,
        since=spell_time(filters.since) if filters.since is not None else None,
        until=spell_time(filters.until) if filters.until is not None else None,
        min_age_days=min_age,
    )
    number = add_hold(folder, hold)
    if wants_json(context, as_json):
        print_json(redaction(context, for_programs=True).value(_row(number, hold)))
    else:
        print_message(f"hold {number}: {_covered(hold)}")
    with suppress(SourceUnreadable, Busy), open_archive(folder) as archive:
        held = held_sessions(archive, round(library.now().timestamp() * 1e6), known_sessions())
        print_unknown(one for one in held.values() if one.hold == f"hold {number}: {reason}")


def _session_name(library: Library, reference: str, folder: Path) -> str:
    """The session that a reference names, as `agent:id`: one that exists, or one that only the archive has."""
    from clew.archive.archive import open_archive
    from clew.archive.restore import choose

    try:
        session = library.get(reference, missing=True)
    except UnknownReference:
        with open_archive(folder) as archive:
            version = choose(archive, [reference])[0]
        return f"{version.agent}:{version.session}"
    return f"{session.agent.id}:{session.id}"


@hold_command.command("remove")
@click.argument("number", metavar="NUMBER")
@click.option("--reason", required=True, metavar="TEXT", help="Why; it stays in the list of removed holds.")
@archive_option
@redacting_output
@as_json_option
@click.pass_context
def remove_command(context: click.Context, /, number: str, reason: str, chosen: str | None, as_json: bool) -> None:
    """Remove a hold. `clew archive hold list --removed` still shows it, with the time and the reason."""
    from clew.archive.holds import remove_hold

    hold = remove_hold(archive_folder_of(context, chosen), number, reason, Host.local().now())
    if wants_json(context, as_json):
        print_json(redaction(context, for_programs=True).value(_row(number, hold)))
    else:
        print_message(f"hold {number} was removed: {_covered(hold)}")


@hold_command.command("list")
@click.option("--removed", is_flag=True, help="Also list holds that were removed.")
@archive_option
@redacting_output
@as_json_option
@click.pass_context
def list_command(context: click.Context, /, removed: bool, chosen: str | None, as_json: bool) -> int:
    """List the holds."""
    from clew.archive.holds import load_holds
    from clew.render.tables import Column

    found = load_holds(archive_folder_of(context, chosen))
    shown = {number: hold for number, hold in found.items() if removed or hold.removed_at is None}
    if wants_json(context, as_json):
        print_json(redaction(context, for_programs=True).value([_row(number, hold) for number, hold in shown.items()]))
    elif not shown:
        print_message("there are no holds", mask=False)
    else:
        cells = []
        for number, hold in shown.items():
            end = f"removed {hold.removed_at[:10]}: {hold.removal_reason}" if hold.removed_at else ""
            cells.append([number, hold.added_at[:10], _covered(hold), hold.reason, end])
        columns = [Column("hold", right=True), Column("added"), Column("covers", flexible=True), Column("reason")]
        print_table([*columns, Column("")], cells, redaction(context, for_programs=False))
    return 0 if shown else 1


def _row(number: str, hold: Hold) -> dict[str, Any]:
    return {"hold": number, **{name: getattr(hold, name) for name in hold.__struct_fields__}}


def _covered(hold: Hold) -> str:
    """What a hold covers, in words."""
    parts = [
        ", ".join(hold.sessions) or "all sessions",
        f"of {', '.join(hold.agents)}" if hold.agents else "",
        f"in {hold.project}" if hold.project else "",
        f"in {', '.join(hold.folders)}" if hold.folders else "",
        f"since {hold.since[:10]}" if hold.since else "",
        f"until {hold.until[:10]}" if hold.until else "",
        f"until they are {hold.min_age_days:g} days old" if hold.min_age_days is not None else "",
    ]
    return " ".join(part for part in parts if part)
