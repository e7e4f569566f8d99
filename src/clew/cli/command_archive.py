"""clew archive: the raw files of every session, kept before an agent deletes or rewrites them."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from click.core import ParameterSource

from clew.cli.archive_holds import archive_folder_of, archive_option, hold_command, known_sessions, print_unknown
from clew.cli.options import (
    Number,
    as_json_option,
    common,
    filtering,
    home_option,
    into_option,
    open_library,
    take_filters,
    wants_json,
    yes_option,
)
from clew.cli.output import print_json, print_message, print_table
from clew.cli.progress import progress_bar
from clew.cli.redaction import Redaction, redacting_output, redaction
from clew.errors import Busy, SourceUnreadable, UsageError
from clew.filters import Filters, point_in_time
from clew.library import Library
from clew.model.json import JSON

if TYPE_CHECKING:
    from clew.archive.archive import Archive
    from clew.archive.capture import FileToCapture, Outcome
    from clew.archive.holds import Held
    from clew.archive.prune import Plan
    from clew.archive.records import FileKey, Version
    from clew.archive.restore import Restored

_UNREADABLE = 3


@click.group("archive", invoke_without_command=True)
@click.option("--watch", is_flag=True, help="Keep running, and archive changes as they are written.")
@click.option("--every", type=Number(min=0.1), default=2.0, metavar="SECONDS", help="Seconds between two captures.")
@click.option("--level", type=click.IntRange(1, 19), default=6, metavar="N", help="zstd compression level, 1 to 19.")
@archive_option
@filtering
@common
@click.pass_context
def command(
    context: click.Context,
    /,
    watch: bool,
    every: float,
    level: int,
    chosen: str | None,
    homes: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Archive the files of every session, before an agent deletes or rewrites them.

    Copies new and changed files: main files, their parts and side files. Records that several files share are stored
    once. A rewritten file becomes a new version; old versions are kept. The copies are not masked. `--source archive`
    reads sessions that exist only in the archive.
    """
    context.meta["clew.archive"] = chosen
    if context.invoked_subcommand is not None:
        context.find_root().obj["homes"] += homes
    if as_json:
        context.find_root().obj["json"] = True
    if context.invoked_subcommand is not None:
        return
    if not watch and context.get_parameter_source("every") is not ParameterSource.DEFAULT:
        raise UsageError("--every needs --watch")
    library = open_library(context, homes)
    filters = take_filters(options, library)
    if watch:
        _watch(context, library, filters, every, level)
    outcome = _capture(context, library, filters, level, set())
    if wants_json(context, as_json):
        print_json(msgspec.to_builtins(outcome))
    else:
        print_message(_summary(outcome))
    context.exit(_UNREADABLE if outcome.problems else 0)


def _capture(context: click.Context, library: Library, filters: Filters, level: int, reported: set[str]) -> Outcome:
    """Run one capture, and print the problems that were not reported before."""
    from clew.archive.capture import capture
    from clew.archive.writer import open_writer

    unreadable: list[str] = []
    with (
        open_writer(archive_folder_of(context, None), level=level) as writer,
        progress_bar("archiving", is_quiet=wants_json(context, False)) as on_progress,
    ):
        outcome = capture(writer, _files(library, filters, unreadable), library.hosts[0].now, on_progress)
    outcome.problems += unreadable
    for problem in outcome.problems:
        if problem not in reported:
            reported.add(problem)
            print_message(f"clew: {problem}")
    return outcome


def _files(library: Library, filters: Filters, unreadable: list[str]) -> Iterator[FileToCapture]:
    """Yield the files of all sessions that pass the filters, and those that agents keep for all sessions."""
    from clew.agents import registry
    from clew.archive.capture import companions_of, files_of
    from clew.sources.local import in_homes

    agents = filters.agent or None
    passing = None
    if filters.without("agent") != type(filters)():
        passing = {session.path for session in library.sessions(filters, on_unreadable=unreadable.append)}
    for host in library.hosts:
        for found in in_homes([host], agents):
            if passing is not None and found.source.path not in passing:
                continue
            try:
                yield from files_of(host, found.agent, found.source)
            except SourceUnreadable as error:
                unreadable.append(str(error))
        yield from companions_of(host, [registry.get(name) for name in agents] if agents else registry.load_all())


def _summary(outcome: Outcome) -> str:
    from clew.render.tables import count, size

    if not outcome.files:
        return "no sessions were found, and nothing was archived"
    kinds = {"new": outcome.new, "grown": outcome.grown, "rewritten": outcome.rewritten}
    changes = ", ".join(f"{count(number)} {kind}" for kind, number in kinds.items() if number) or "nothing new"
    tail = f"; {size(outcome.read)} read, {size(outcome.stored)} stored" if outcome.read else ""
    tail += f"; {count(outcome.mended)} damaged versions repaired" if outcome.mended else ""
    return f"{count(outcome.files)} files: {changes}{tail}"


def _watch(context: click.Context, library: Library, filters: Filters, every: float, level: int) -> None:
    """Capture again and again until interrupted; skip a turn while another process writes."""
    as_json = wants_json(context, False)
    reported: set[str] = set()
    while True:
        with suppress(Busy):
            outcome = _capture(context, library, filters, level, reported)
            if outcome.read and as_json:
                print_json(msgspec.to_builtins(outcome))
                sys.stdout.flush()
            elif outcome.read:
                print_message(_summary(outcome))
        time.sleep(every)


@command.command("list")
@click.option("--captures", is_flag=True, help="List the captures instead.")
@archive_option
@redacting_output
@home_option
@as_json_option
@click.pass_context
def list_command(
    context: click.Context, /, captures: bool, chosen: str | None, homes: tuple[str, ...], as_json: bool
) -> int:
    """List the archived sessions, the most recently used first. With --home: those of these home folders.

    The time of the last use comes from the catalog, or else from the times of the files.
    """
    from clew.archive.archive import open_archive

    with open_archive(archive_folder_of(context, chosen)) as archive:
        for damage in archive.problems:
            print_message(f"clew: {damage}")
        rows = _captures(archive) if captures else _sessions(archive)
    homes = (*context.find_root().obj["homes"], *homes)
    if homes and not captures:
        folders = [os.path.realpath(home) for home in homes]
        rows = [row for row in rows if any(Path(row["path"]).is_relative_to(folder) for folder in folders)]
    json = wants_json(context, as_json)
    masking = redaction(context, for_programs=json)
    if json:
        print_json(masking.value(rows))
    elif not rows:
        whose = f" from {', '.join(homes)}" if homes and not captures else ""
        print_message(f"nothing is archived{whose}; `clew archive` copies the files of your sessions")
    elif captures:
        _print_captures(rows)
    else:
        _print_sessions(rows, masking)
    return 0 if rows else 1


def _captures(archive: Archive) -> list[dict[str, JSON]]:
    return [
        {"number": one.number, "taken_at": _time(one.taken_us)}
        | {"files": one.files, "bytes": one.raw, "stored": one.stored}
        for one in reversed(archive.captures)
    ]


def _time(micros: int) -> str:
    from clew.model.time import spell_time

    return spell_time(datetime.fromtimestamp(micros / 1e6, UTC))


def _sessions(archive: Archive) -> list[dict[str, JSON]]:
    from clew.archive.archived_home import catalog_path, is_gone
    from clew.archive.holds import CatalogFacts
    from clew.model.time import spell_time

    groups: dict[FileKey, list[list[Version]]] = {}
    for versions in archive.files.values():
        if versions[-1].role != "shared":
            groups.setdefault(versions[-1].session_key, []).append(versions)
    rows = []
    known = known_sessions()
    for key, files in groups.items():
        modified_at = _time(max(versions[-1].mtime_ns for versions in files) // 1000)
        last_message = known.get(catalog_path(key, known), CatalogFacts()).last_message
        main = key[1]
        own = next((versions for versions in files if versions[-1].path == main), files[0])
        rows.append(
            {
                "id": own[-1].session,
                "agent": own[-1].agent,
                "path": os.fsdecode(main),
                "files": len(files),
                "versions": len(own),
                "bytes": sum(versions[-1].size for versions in files),
                "last_activity": modified_at if last_message is None else spell_time(last_message),
                "modified_at": modified_at,
                "archived_at": _time(max(versions[-1].taken_us for versions in files)),
                "gone": is_gone(own[-1]),
            }
        )
    return sorted(rows, key=lambda row: (row["last_activity"], row["path"]), reverse=True)


def _print_sessions(rows: list[dict[str, JSON]], masking: Redaction) -> None:
    from clew.host import Host
    from clew.model.time import parse_time
    from clew.render.tables import Column, ago, count, short_ids, size

    ids = [row["id"] for row in rows]
    names = short_ids(ids, ids)
    now = Host.local().now()
    cells = [
        [
            names[row["id"]],
            row["agent"],
            ago(parse_time(row["last_activity"]), now),
            count(row["files"]),
            count(row["versions"]),
            size(row["bytes"]),
            "gone" if row["gone"] else "",
        ]
        for row in rows
    ]
    right = [Column(name, right=True) for name in ("files", "versions", "size")]
    print_table([Column("id"), Column("agent"), Column("last"), *right, Column("")], cells, masking)


def _print_captures(rows: list[dict[str, JSON]]) -> None:
    from clew.host import Host
    from clew.model.time import parse_time
    from clew.render.tables import Column, ago, count, size

    now = Host.local().now()
    cells = []
    for row in rows:
        taken = ago(parse_time(row["taken_at"]), now)
        cells.append([str(row["number"]), taken, count(row["files"]), size(row["bytes"]), size(row["stored"])])
    names = ("number", "taken", "files", "size", "stored")
    print_table([Column(name, right=name != "taken") for name in names], cells, None)


@command.command("verify")
@archive_option
@redacting_output
@as_json_option
@click.pass_context
def verify_command(context: click.Context, /, chosen: str | None, as_json: bool) -> int:
    """Read everything in the archive and check its checksums. Exit code 1 if something is damaged."""
    from clew.archive.verify import verify
    from clew.render.tables import count, size

    proof = verify(archive_folder_of(context, chosen))
    if wants_json(context, as_json):
        found = proof._asdict() | {"problems": msgspec.to_builtins(proof.problems)}
        print_json(redaction(context, for_programs=True).value(found))
        return 1 if proof.problems else 0
    for problem in proof.problems:
        print_message(f"clew: {problem}")
    if not proof.problems:
        totals = f"{count(proof.versions)} versions of files in {count(proof.blocks)} blocks, {size(proof.stored)}"
        print_message(f"{totals}: no damage")
    return 1 if proof.problems else 0


@command.command("restore")
@click.argument("references", nargs=-1, metavar="[REF]...")
@into_option("--to")
@click.option("--in-place", is_flag=True, help="Restore each file of the named sessions to where it was.")
@click.option("--at", metavar="TIME", help="Restore the versions archived at a time: 2026-11-01, 3d, yesterday.")
@click.option("--force", is_flag=True, help="Replace files that exist and differ.")
@archive_option
@redacting_output
@home_option
@as_json_option
@click.pass_context
def restore_command(
    context: click.Context,
    /,
    references: tuple[str, ...],
    into: Path | None,
    in_place: bool,
    at: str | None,
    force: bool,
    chosen: str | None,
    homes: tuple[str, ...],
    as_json: bool,
) -> int:
    """Restore all archived files, or those of some sessions.

    With --into, each file gets its path relative to its home; nothing outside the folder is changed. With --in-place,
    the files of the named sessions go to the paths they were archived from. With --home, only files of these home
    folders are restored. Links are not followed.
    """
    from clew.archive import restore
    from clew.archive.archive import open_archive
    from clew.host import Host

    if (into is None) != in_place:
        raise UsageError("give a target: --into DIR, or --in-place for where the files were")
    if in_place and not references:
        raise UsageError("--in-place needs the sessions to restore")
    at_us = round(point_in_time(at, Host.local().now()).timestamp() * 1e6) if at else None
    folders = {os.path.realpath(home) for home in (*context.find_root().obj["homes"], *homes)}
    with open_archive(archive_folder_of(context, chosen)) as archive:
        versions = [
            version
            for version in restore.choose(archive, references, at_us)
            if not folders or os.path.realpath(version.home.path) in folders
        ]
        targets = {into: restore.plan(versions)} if into is not None else restore.plan_in_place(versions)
        restored = restore.restore(archive, targets, force)
    steps = [step for below in targets.values() for step in below]
    for damage in (*archive.problems, *restored.damaged):
        print_message(f"clew: {damage}")
    if wants_json(context, as_json):
        files = [os.fsdecode(step.version.path) if in_place else step.path for step in steps]
        found = {**msgspec.to_builtins(restored._asdict()), "files": files}
        print_json(redaction(context, for_programs=True).value(found))
    else:
        print_message(_restore_summary(restored))
    if restored.damaged:
        return _UNREADABLE
    return 0 if steps else 1


def _restore_summary(restored: Restored) -> str:
    from clew.render.tables import count

    summary = f"{count(restored.written)} {'file' if restored.written == 1 else 'files'} written"
    summary += f", {count(restored.same)} were there" if restored.same else ""
    return summary + (f", {count(len(restored.damaged))} could not be read" if restored.damaged else "")


@command.command("prune")
@click.option("--keep-days", type=Number(min=0), metavar="N", help="Keep sessions active in the last N days.")
@click.option("--keep-versions", type=click.IntRange(min=1), metavar="N", help="Keep N versions of each file.")
@click.option(
    "--max-size", metavar="SIZE", help="Remove the oldest sessions until the archive is smaller than this: 500MB, 20GB."
)
@click.option("--repack", is_flag=True, help="Compress everything that is kept again.")
@click.option("--level", type=click.IntRange(1, 19), default=6, metavar="N", help="zstd compression level, 1 to 19.")
@yes_option("--apply")
@click.option("--allow-loss", is_flag=True, help="Also remove sessions that exist only in the archive.")
@click.option("--skip-held", is_flag=True, help="Leave sessions alone that `clew archive hold` forbids to remove.")
@archive_option
@redacting_output
@as_json_option
@click.pass_context
def prune_command(
    context: click.Context,
    /,
    keep_days: float | None,
    keep_versions: int | None,
    max_size: str | None,
    repack: bool,
    level: int,
    yes: bool,
    allow_loss: bool,
    skip_held: bool,
    chosen: str | None,
    as_json: bool,
) -> int:
    """Remove archived versions by a policy. Without --yes it only shows what would be removed.

    All limits apply together. A record that a kept version needs stays. If a file exists only in the archive, such as
    after `clew clean`, nothing is removed without --allow-loss. If a session is held (`clew archive hold`), nothing is
    removed; --skip-held removes the others.
    """
    from clew.archive import prune
    from clew.archive.archive import open_archive
    from clew.archive.archived_home import clear_cache
    from clew.archive.writer import open_writer
    from clew.host import Host

    # Redaction rules that cannot be used are an error before anything is removed.
    redaction(context, for_programs=wants_json(context, as_json)).prepare()
    policy = prune.Policy(keep_days, keep_versions, _parse_size(max_size) if max_size else None)
    if policy == prune.Policy() and not repack:
        raise UsageError("give a policy: --keep-days, --keep-versions, --max-size, or --repack")
    folder, now_us = archive_folder_of(context, chosen), round(Host.local().now().timestamp() * 1e6)
    choices = {"skip_held": skip_held, "allow_loss": allow_loss}
    if not yes:
        with open_archive(folder) as archive:
            decided = prune.plan(archive, policy, now_us, known_sessions(), **choices)
        _print_plan(context, decided, False, as_json)
        return 0
    if not folder.is_dir():
        raise SourceUnreadable(f"{folder}: there is no archive")
    with open_writer(folder, level=level) as writer:
        decided = prune.plan(writer, policy, now_us, known_sessions(), **choices)
        if decided.refusal:
            print_unknown(_hold_of_each_session(decided))
        if decided.dropped or decided.refusal or repack:
            prune.prune(writer, decided, repack)
            clear_cache()
        decided = decided._replace(left=writer.stored)
        damaged = [name for name, row in writer.index.packs().items() if row.damage]
    for name in damaged:
        print_message(f"clew: {name}.pack: damaged, so it was not rewritten; it may still contain removed data")
    _print_plan(context, decided, True, as_json)
    return 0


def _print_plan(context: click.Context, decided: Plan, done: bool, as_json: bool) -> None:
    """Print what was removed, or would be; if nothing would be, the files that prevent it."""
    from clew.archive.prune import count_sessions
    from clew.render.tables import counted, size
    from clew.render.text_safety import visible

    if wants_json(context, as_json):
        print_json(redaction(context, for_programs=True).value(_plan_report(decided, done)))
        return
    shown = decided.dropped or list(dict.fromkeys((*decided.held, *decided.only_copies)))
    paths = redaction(context, for_programs=False).value([os.fsdecode(version.path) for version in shown])
    for path, version in zip(paths, shown, strict=True):
        reason = f"  (held: {decided.held[version].hold})" if version in decided.held else ""
        click.echo(visible(path) + ("  (only copy)" if version in decided.only_copies else "") + reason)
    print_unknown(_hold_of_each_session(decided))
    if decided.refusal:
        print_message(f"nothing would be removed: {decided.refusal}")
        return
    if decided.held:
        holds = "; ".join(sorted({held.hold for held in decided.held.values()}))
        stay = "stay" if done else "would stay"
        versions = counted(len(decided.held), "file version")
        print_message(f"{versions} of {count_sessions(decided.held)} {stay}: {holds}")
    versions, left, before = counted(len(decided.dropped), "file version"), size(decided.left), size(decided.size)
    if done:
        print_message(f"{versions} removed; the archive has {left} now ({before} before)")
    else:
        print_message(f"{versions} would be removed; the archive would have {left} ({before} now)")
        print_message("nothing was changed; use --yes to remove", mask=False)


def _plan_report(decided: Plan, done: bool) -> dict[str, JSON]:
    def paths(versions: Iterable[Version]) -> list[JSON]:
        return [os.fsdecode(version.path) for version in versions]

    return {
        "applied": done,
        "refusal": decided.refusal or None,
        "dropped": paths(decided.dropped),
        "only_copies": paths(decided.only_copies),
        "held": [{"path": os.fsdecode(version.path), **held._asdict()} for version, held in decided.held.items()],
        "kept": len(decided.kept),
        "size": decided.size,
        "left": decided.left,
    }


def _hold_of_each_session(decided: Plan) -> Iterable[Held]:
    """The holds on the sessions that the policy would remove, one for each session."""
    return {version.session_key: held for version, held in decided.held.items() if version.role != "shared"}.values()


def _parse_size(text: str) -> int:
    """Return the bytes of a size such as 500MB."""
    units = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
    number = text.strip().lower().rstrip("kmgtb")
    unit = text.strip().lower()[len(number) :].strip()
    try:
        return int(float(number) * units[unit])
    except (ValueError, KeyError, OverflowError):
        raise UsageError(f"{text!r}: not a size; try 500MB or 20GB") from None


command.add_command(hold_command)
