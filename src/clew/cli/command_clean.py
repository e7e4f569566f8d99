"""clew clean: archive old sessions, then remove them from the folders of their agents."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from clew.archive.clean import Cleaned, Kept, OldSession, can_check_open_files, clean, find_old
from clew.archive.records import archive_folder
from clew.catalog.access import OpenCatalog
from clew.catalog.change_detection import unread_paths
from clew.catalog.queries import last_messages, subagent_paths
from clew.catalog.sync_level import SyncLevel
from clew.cli.archive_holds import known_sessions
from clew.cli.options import NO_SYNC, common, filtering, open_library, take_filters, wants_json, yes_option
from clew.cli.output import print_json, print_message, print_table
from clew.cli.redaction import redacting_output, redaction
from clew.errors import Busy, SourceUnreadable, UsageError
from clew.filters import point_in_time
from clew.io.paths import is_own_home
from clew.model.json import JSON
from clew.model.time import spell_time
from clew.render.shell import shell_line
from clew.render.tables import Column, ago, count, counted, size


@click.command("clean")
@click.option("--older-than", required=True, metavar="TIME", help="Sessions not used since: 90d, 6mo, 2026-06-01.")
@yes_option()
@click.option("--archive", metavar="DIR", help="Folder of the archive (default: in clew's data folder).")
@redacting_output
@filtering
@common
@click.pass_context
def command(
    context: click.Context,
    /,
    older_than: str,
    yes: bool,
    archive: str | None,
    homes: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> int:
    """Archive old sessions, then remove them from the folders of their agents.

    Without --yes it only shows what would be removed. With it, the files of each session are archived, the archived
    bytes are read back and compared, and only then removed, with the copies of files that the agent keeps for that
    session. A session whose files changed meanwhile, are links or are open in a program is kept; open files can be
    checked on Linux alone. Sessions of other machines and of clew's own store are skipped. `clew list` does not show
    a removed session; `show`, `search` and `stats` do. `clew archive restore REF --in-place` brings it back.

    Exit code 1: there is nothing to remove, or a session was kept.
    """
    library = open_library(context, homes)
    now = library.now()
    filters = take_filters(options, library)
    if yes and context.meta.get(NO_SYNC):
        raise UsageError("clean --yes needs a sync; leave out --no-sync")
    with library.catalog(SyncLevel.MESSAGES if yes else SyncLevel.SESSIONS, filters) as catalog:
        if yes:
            _refuse_incomplete_catalog(catalog)
        last, unread = last_messages(catalog.db), unread_paths(catalog.db)
        subagents = subagent_paths(catalog.db)
    passing = {session.path for session in library.sessions(filters)}
    wanted = {path: time for path, time in last.items() if path in passing}
    sessions = find_old(library.hosts, wanted, point_in_time(older_than, now), now)
    masking = redaction(context, for_programs=wants_json(context, as_json))
    masking.prepare()
    if yes and sessions and not can_check_open_files():
        print_message("clew: this system does not tell which files are open; only the age was checked", mask=False)
    folder = archive_folder(archive)
    done = _clean(folder, sessions, unread, library.now) if yes else Cleaned([], [])
    if wants_json(context, as_json):
        print_json(masking.value(_report(sessions, done, folder, yes, subagents)))
    else:
        shown = done.removed if yes else sessions
        columns = [
            Column("id"),
            Column("agent"),
            Column("last"),
            *(Column(name, right=True) for name in ("files", "size")),
        ]
        cells = [
            [one.id, one.agent, ago(one.last_activity, now), count(len(one.files)), size(one.bytes)] for one in shown
        ]
        if cells:
            print_table(
                [*columns, Column("file", is_path=True, flexible=True)],
                [[*row, str(one.path)] for row, one in zip(cells, shown, strict=True)],
                masking,
            )
        _print_result(sessions, done, yes, archive, subagents)
    return 1 if done.kept or not sessions else 0


def _refuse_incomplete_catalog(catalog: OpenCatalog) -> None:
    """What is removed can still be shown and searched, because the catalog keeps its messages: it must have them."""
    if catalog.is_temporary:
        raise SourceUnreadable("nothing was removed: the folder of the catalog cannot be written")
    if catalog.report is None:
        raise Busy("nothing was removed: another sync is running; try again when it is done")


def _clean(folder: Path, sessions: list[OldSession], unread: Collection[Path], now: Callable[[], datetime]) -> Cleaned:
    """Clean the sessions whose messages are in the catalog; the others are kept."""
    ready = [session for session in sessions if session.path not in unread]
    done = clean(folder, ready, now, known=known_sessions()) if ready else Cleaned([], [])
    done.kept.extend(
        Kept(session, "its messages are not in the catalog yet") for session in sessions if session.path in unread
    )
    return done


def _report(
    sessions: list[OldSession], done: Cleaned, folder: Path, yes: bool, subagents: Collection[Path]
) -> dict[str, JSON]:
    reasons = {one.session.path: one.reason for one in done.kept}
    removed_files = {one.path: len(one.files) for one in done.removed}
    removed_files |= {one.session.path: one.removed_files for one in done.kept}
    rows: list[JSON] = [
        {
            "id": one.id,
            "agent": one.agent,
            "path": str(one.path),
            "is_subagent": one.path in subagents,
            "files": len(one.files),
            "bytes": one.bytes,
            "last_activity": spell_time(one.last_activity),
            "removed": one in done.removed,
            "removed_files": removed_files.get(one.path, 0),
            "reason": reasons.get(one.path),
        }
        for one in sessions
    ]
    return {"applied": yes, "archive": str(folder), "sessions": rows}


def _counted(sessions: list[OldSession], subagents: Collection[Path]) -> str:
    """How many sessions and sub-agents there are, as `clew` and `clew list` count them."""
    agents = sum(one.path in subagents for one in sessions)
    parts = [(len(sessions) - agents, "session"), (agents, "sub-agent")]
    return " and ".join(counted(number, name) for number, name in parts if number)


def _print_result(
    sessions: list[OldSession], done: Cleaned, yes: bool, archive: str | None, subagents: Collection[Path]
) -> None:
    if not sessions:
        print_message("nothing was removed: every chosen session has a message or changed file since then", mask=False)
        return
    if not yes:
        total = sum(one.bytes for one in sessions)
        print_message(
            f"{_counted(sessions, subagents)}, {size(total)}: nothing was removed; --yes archives and removes them",
            mask=False,
        )
        return
    for session, reason, removed_files in done.kept:
        name = f"{session.agent}:{session.id}"
        if removed_files:
            files = f"{removed_files} of {len(session.files)} files are only in the archive"
            print_message(f"clew: partly removed {name}: {files}; {reason}")
        else:
            print_message(f"clew: kept {name}: {reason}")
    if done.removed:
        first = done.removed[0]
        words = ["clew", "archive", "restore", f"{first.agent}:{first.id}", "--in-place"]
        home = first.files[0].host.home
        words += [] if is_own_home(home) else ["--home", str(home)]
        words += ["--archive", archive] if archive else []
        freed = size(sum(one.bytes for one in done.removed))
        removed = _counted(done.removed, subagents)
        print_message(
            f"{removed} archived and removed, {freed}; `clew list` no longer shows them, `show`, `search` and `stats`"
            f" do; to bring one back: {shell_line(words)}"
        )
