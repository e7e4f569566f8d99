"""clew sources: where sessions come from, beside your own home."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import click
import msgspec

from clew import project_names
from clew.cli.options import FAILED, REFRESH, as_json_option, common, named_homes, wanted_sources, wants_json
from clew.cli.output import print_json, print_message, print_table
from clew.cli.progress import OnProgress, progress_bars
from clew.errors import RemoteFailed, SourceUnreadable, UsageError
from clew.host import Host
from clew.io.paths import path_for_display
from clew.model.json import JSON
from clew.sources import config, moved_projects, registry
from clew.sources.fetch import FetchResult, fetch, fetch_dry_run
from clew.sources.local import in_homes
from clew.sources.registry import Source, sources


@click.group("sources", invoke_without_command=True)
@common
@click.pass_context
def command(context: click.Context, /, homes: tuple[str, ...], as_json: bool) -> None:
    """Manage the home folders and hosts that sessions are read from, moved projects, and names of projects.

    Your own home is always a source. Home folders of Windows users seen from WSL, and of WSL distributions seen from
    Windows, are found automatically. Other machines are read over ssh, with your ssh configuration, and only by
    `clew sources fetch` and --refresh; the fetched files are kept.
    """
    context.find_root().obj["homes"] += homes
    if as_json:
        context.find_root().obj["json"] = True
    if context.invoked_subcommand is None:
        context.exit(_list(context, (), False))


@command.command("list")
@common
@click.pass_context
def list_command(context: click.Context, /, homes: tuple[str, ...], as_json: bool) -> int:
    """List the sources, without connecting to other machines. With --home: those home folders instead."""
    return _list(context, homes, as_json)


def _sources_to_list(context: click.Context, homes: tuple[str, ...]) -> list[Source]:
    """The homes that were named, and the sources that were named; if none were, all sources."""
    from clew.sources.wsl import host_at

    named, wanted = named_homes(context, homes), wanted_sources(context)
    found = [Source(Path(home).name, "home", home, host_at(Path(home))) for home in named]
    if named and not wanted:
        return found
    chosen = registry.chosen(configured_sources(), wanted) if wanted else configured_sources()
    if context.meta.get(REFRESH):
        refresh(context, chosen)
    return [*found, *chosen]


def _list(context: click.Context, homes: tuple[str, ...], as_json: bool) -> int:
    rows = [_row(source) for source in _sources_to_list(context, homes)]
    if wants_json(context, as_json):
        print_json(rows)
        return 0
    from clew.host import Host
    from clew.model.time import parse_time
    from clew.render.tables import Column, ago, count, size

    now = Host.local().now()
    hosts = any(row["kind"] == "ssh" for row in rows)
    lines = []
    for row in rows:
        copied = row["files"] is not None
        note = "" if row["enabled"] else "disabled"
        if row["kind"] == "ssh":
            note = f"fetched {ago(parse_time(row['fetched_at']), now)}" if row["fetched_at"] else "not fetched yet"
        if row["gone"]:
            note += f", {row['gone']} deleted there"
        if row["kept"]:
            note += f", {row['kept']} earlier copies kept"
        figures = [count(row["files"]), size(row["bytes"])] if copied else ["", ""]
        lines.append([row["name"], row["kind"], row["where"], *(figures if hosts else []), note])
    columns = [Column("name"), Column("kind"), Column("where", flexible=True, least=20)]
    columns += [Column("files", right=True), Column("size", right=True)] if hosts else []
    print_table([*columns, Column("")], lines, None)
    for shown, pairs in ((MAPPING, moved_projects.load()), (NAMING, _displayed_names())):
        if pairs:
            click.echo()
            _print_pairs(shown, pairs)
    return 0


def _row(source: Source) -> dict[str, JSON]:
    state = source.mirror.state() if source.mirror is not None else None
    files, size = source.mirror.extent() if source.mirror is not None else (None, None)
    return {
        "name": source.name,
        "kind": source.kind,
        "where": source.where,
        "type": source.type,
        "host": source.host_name,
        "enabled": source.enabled,
        "fetched_at": state.fetched_at if state is not None else None,
        "files": files,
        "bytes": size,
        "gone": len(state.gone) if state is not None else None,
        "kept": source.mirror.kept_files() if source.mirror is not None else None,
    }


@command.command("add")
@click.argument("where", metavar="HOST|DIR|NAME")
@click.option("--name", metavar="NAME", help="Name of the source; default: made from the host or folder.")
@click.option("--no-fetch", is_flag=True, help="Do not connect to the host now.")
@as_json_option
@click.pass_context
def add_command(context: click.Context, /, where: str, name: str | None, no_fetch: bool, as_json: bool) -> None:
    """Add a host or a home folder.

    A host is an ssh address: box, ada@box, ssh://ada@box:2222. Its sessions are fetched at once; it is not added if it
    does not answer. A folder is written with a slash: ./backup. The NAME of a home folder that was found automatically
    and then removed enables it again.
    """
    source = _switched_on(where) or _added(where, name)
    result = _first_visit(source) if source.mirror is not None and not no_fetch else None
    if wants_json(context, as_json):
        print_json(_row(source) | {"visit": _plain(result) if result is not None else None})
    else:
        print_message(_fetched(source, result) if result is not None else f"{source.name}: added")


def _first_visit(source: Source) -> FetchResult:
    """Fetch from a host that was just added; where that fails, the host is not added.

    A mirror of this name may be there already, because the file with the sources was lost or damaged. It stays.
    """
    assert source.mirror is not None
    mirror_was_there = source.mirror.folder.exists()
    try:
        return fetch_one(source)
    except BaseException as error:
        config.remove(source.name)
        if not mirror_was_there:
            shutil.rmtree(source.mirror.folder, ignore_errors=True)
        if isinstance(error, RemoteFailed):
            raise RemoteFailed(f"{error} Nothing was added; use --no-fetch to add it anyway.") from None
        raise


def _switched_on(where: str) -> Source | None:
    for source in configured_sources():
        if source.name.casefold() == where.casefold() and not source.enabled:
            config.remove(source.name)
            return registry.chosen(registry.sources(), [source.name])[0]
    return None


def _added(where: str, name: str | None) -> Source:
    entry = registry.entry_for(where, name)
    if entry.kind == "home" and not Path(entry.where).is_dir():
        raise SourceUnreadable(f"{entry.where}: no such folder")
    registry.add(entry)
    return registry.chosen(registry.sources(), [entry.name])[0]


@command.command("fetch")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@as_json_option
@click.pass_context
def fetch_command(context: click.Context, /, names: tuple[str, ...], as_json: bool) -> int:
    """Fetch new sessions from all hosts, or from some.

    Files that were deleted on a host are kept here. Exit code 7: a host did not answer.
    """
    chosen = registry.chosen(configured_sources(), names)
    if names and any(source.mirror is None for source in chosen):
        raise UsageError("only remote hosts are fetched; home folders on this machine are read directly")
    results = visit(context, chosen, fetch_one)
    if wants_json(context, as_json):
        print_json([{"name": source.name, **_plain(result)} for source, result in results])
        return 0
    for source, result in results:
        if not isinstance(result, RemoteFailed):
            print_message(_fetched(source, result))
    if not results:
        print_message("no remote hosts are configured; add one with `clew sources add HOST`", mask=False)
    return 0


def _plain(result: FetchResult | RemoteFailed) -> dict[str, JSON]:
    if isinstance(result, RemoteFailed):
        return {"reached": False, "error": str(result)}
    values: dict[str, JSON] = msgspec.to_builtins(result)
    return {"reached": True, "error": None, **values}


def _fetched(source: Source, result: FetchResult | RemoteFailed) -> str:
    from clew.render.tables import count, size

    assert isinstance(result, FetchResult)
    lines = [f"{source.name}: {count(result.files)} files, {size(result.received)} fetched"]
    if result.kept:
        lines.append(f"  {kept_copies(source, result)}")
    return "\n".join([*lines, *(f"  {problem}" for problem in result.problems)])


@command.command("remove")
@click.argument("name", metavar="NAME")
@click.option("--allow-loss", is_flag=True, help="Delete the fetched copies even if they are the only ones.")
@as_json_option
@click.pass_context
def remove_command(context: click.Context, /, name: str, allow_loss: bool, as_json: bool) -> int:
    """Remove a source and the files fetched from it. A home folder that was found automatically is disabled.

    A host is contacted first. Exit code 6: it does not answer, or no longer has all files that were fetched.
    """
    (source,) = registry.chosen(configured_sources(), [name])
    registry.remove(source, visit=None if allow_loss else fetch_one)
    if wants_json(context, as_json):
        print_json({"name": source.name, "removed": True})
    return 0


@command.command("check")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@as_json_option
@click.pass_context
def check_command(context: click.Context, /, names: tuple[str, ...], as_json: bool) -> int:
    """Check that sources can be read, and count their sessions. Hosts are contacted, but nothing is fetched.

    Exit code 7: a host did not answer; 3: a folder cannot be read.
    """
    chosen = registry.chosen(configured_sources(), names)
    visits = {source.name: result for source, result in visit(context, chosen, look_at_one)}
    rows = [_checked(source, visits.get(source.name)) for source in chosen]
    if wants_json(context, as_json):
        print_json(rows)
    else:
        _print_checks(rows)
    return SourceUnreadable.exit_code if any(not row["reached"] and row["kind"] != "ssh" for row in rows) else 0


def _checked(source: Source, result: FetchResult | RemoteFailed | None) -> dict[str, JSON]:
    found = Counter(found.agent.id for found in in_homes([source.host])) if source.host is not None else Counter()
    row = _row(source)
    row |= {"sessions": sum(found.values()), "agents": dict(sorted(found.items()))}
    if result is None:
        reached = os.access(source.where, os.R_OK | os.X_OK)
        row |= {"reached": reached, "error": None if reached else f"{source.where}: cannot be read"}
        return row | {"waiting": None, "waiting_bytes": None, "problems": []}
    plain = _plain(result)
    kept = ("reached", "error", "waiting", "waiting_bytes", "problems")
    return row | {name: plain.get(name, [] if name == "problems" else None) for name in kept}


def _print_checks(rows: list[dict[str, JSON]]) -> None:
    from clew.render.tables import Column, count, size

    lines = []
    for row in rows:
        agents = ", ".join(f"{agent} {count(number)}" for agent, number in row["agents"].items())
        state = "ok" if row["reached"] else "no answer" if row["kind"] == "ssh" else "cannot be read"
        if row["waiting"]:
            state = f"{count(row['waiting'])} files to fetch, {size(row['waiting_bytes'])}"
        lines.append([row["name"], row["kind"], count(row["sessions"]), agents, state])
    columns = [Column("name"), Column("kind"), Column("sessions", right=True), Column("agents", flexible=True)]
    print_table([*columns, Column("")], lines, None)
    for row in rows:
        for problem in row["problems"]:
            print_message(f"clew: {row['name']}: {problem}")


@command.command("map")
@click.argument("old", required=False)
@click.argument("new", default=".")
@as_json_option
@click.pass_context
def map_command(context: click.Context, /, old: str | None, new: str, as_json: bool) -> int:
    """Find the sessions of a moved project in its new folder.

    Sessions that name the folder OLD then belong to NEW, by default the current folder:
    `--here`, `--project PATH`, `clew blame`, `files`, `diff`, `restore --in-place` and `resume` find them in NEW.
    No session is changed. Without OLD, all mappings are printed.
    """
    if old is None:
        return _list_pairs(context, as_json, MAPPING, moved_projects.load())
    old, new = moved_projects.add(old, new)
    if wants_json(context, as_json):
        print_json({"old": old, "new": new})
    else:
        print_message(f"{old}: now {new}")
    return 0


@command.command("unmap")
@click.argument("old", metavar="OLD")
@as_json_option
@click.pass_context
def unmap_command(context: click.Context, /, old: str, as_json: bool) -> int:
    """Forget that a project was moved."""
    new = moved_projects.remove(old)
    if wants_json(context, as_json):
        print_json({"old": old, "new": new, "removed": True})
    return 0


@command.command("name")
@click.argument("project", required=False)
@click.argument("name", required=False)
@click.option("--below", is_flag=True, help="Name all folders below PROJECT, such as worktrees, and not PROJECT.")
@as_json_option
@click.pass_context
def name_project_command(
    context: click.Context, /, project: str | None, name: str | None, below: bool, as_json: bool
) -> int:
    """Give a project a name.

    Lists, statistics, search, filters and the web app then show it. PROJECT is a folder, or the name that a project has
    now: a folder name, or the hash that an agent stores in its place. Projects with the same NAME become one.
    `--project` finds them by the name and by the folder. No session is changed. Without PROJECT, all names are printed.
    """
    if project is None:
        return _list_pairs(context, as_json, NAMING, _displayed_names())
    if name is None:
        raise UsageError("NAME is missing: `clew sources name PROJECT NAME`")
    given = project_names.add(dict.fromkeys(project_names.project_keys(project, below=below), name))
    (name,) = set(given.values())
    if wants_json(context, as_json):
        print_json({"projects": list(map(path_for_display, given)), "name": name})
    else:
        print_message("\n".join(f"{path_for_display(key)}: now {name}" for key in given))
    return 0


@command.command("unname")
@click.argument("project", metavar="PROJECT")
@click.option("--below", is_flag=True, help="The name of all folders below PROJECT.")
@as_json_option
@click.pass_context
def unname_project_command(context: click.Context, /, project: str, below: bool, as_json: bool) -> int:
    """Forget the name of a project."""
    removed = project_names.remove([project, *project_names.project_keys(project, below=below)])
    if wants_json(context, as_json):
        print_json({"projects": list(map(path_for_display, removed)), "removed": True})
    return 0


class PairColumns(NamedTuple):
    """The two columns of a list that `map` or `name` prints, and what is printed in place of an empty list."""

    key: str
    value: str
    is_value_path: bool
    if_empty: str


MAPPING = PairColumns("moved project", "now", True, "no project is mapped; `clew sources map OLD NEW` adds one")
NAMING = PairColumns("project", "name", False, "no project is named; `clew sources name PROJECT NAME` adds one")


def _displayed_names() -> dict[str, str]:
    return {path_for_display(key): name for key, name in project_names.load().items()}


def _list_pairs(context: click.Context, as_json: bool, columns: PairColumns, pairs: dict[str, str]) -> int:
    if wants_json(context, as_json):
        print_json(pairs)
    elif pairs:
        _print_pairs(columns, pairs)
    else:
        print_message(columns.if_empty, mask=False)
    return 0 if pairs else 1


def _print_pairs(columns: PairColumns, pairs: dict[str, str]) -> None:
    from clew.render.tables import Column

    key = Column(columns.key, is_path=True, flexible=True, least=20)
    value = Column(columns.value, is_path=columns.is_value_path, flexible=True, least=20)
    print_table([key, value], [list(pair) for pair in sorted(pairs.items())], None)


AT_ONCE = 8


def configured_sources() -> list[Source]:
    """Every source; problems of the configuration file are printed."""
    for problem in config.load().problems:
        print_message(f"clew: {problem}")
    return sources()


def fetch_one(source: Source, on_progress: OnProgress | None = None) -> FetchResult:
    """Bring what is new on a host."""
    assert source.mirror is not None
    progress = partial(on_progress, source.name) if on_progress is not None else None
    return fetch(source.target, source.mirror, Host.local().now(), progress)


def look_at_one(source: Source, _: OnProgress | None = None) -> FetchResult:
    """See what is new on a host."""
    assert source.mirror is not None
    return fetch_dry_run(source.target, source.mirror)


def refresh(context: click.Context, chosen: Sequence[Source]) -> None:
    """Fetch what is new on the hosts among the sources."""
    for source, result in visit(context, chosen, fetch_one):
        if isinstance(result, RemoteFailed):
            continue
        if result.kept:
            print_message(f"clew: {source.name}: {kept_copies(source, result)}")
        for problem in result.problems:
            print_message(f"clew: {problem}")


def kept_copies(source: Source, result: FetchResult) -> str:
    """Say how many earlier copies a visit set aside, and where."""
    assert source.mirror is not None
    return f"{result.kept} files became shorter on the host; the earlier copies are in {source.mirror.kept}"


def visit(
    context: click.Context, chosen: Sequence[Source], work: Callable[[Source, OnProgress | None], FetchResult]
) -> list[tuple[Source, FetchResult | RemoteFailed]]:
    """Do the work for every host among the sources; a failure is printed and sets the exit code."""

    def attempt(source: Source) -> FetchResult | RemoteFailed:
        try:
            return work(source, on_progress)
        except RemoteFailed as error:
            return error

    remote = [source for source in chosen if source.mirror is not None]
    with progress_bars(is_quiet=wants_json(context, False), in_bytes=False) as on_progress:
        if len(remote) < 2:
            # Without threads an interrupt ends it at once.
            results = [attempt(source) for source in remote]
        else:
            with ThreadPoolExecutor(AT_ONCE) as pool:
                results = list(pool.map(attempt, remote))
    for result in results:
        if isinstance(result, RemoteFailed):
            context.meta[FAILED] = True
            print_message(f"clew: {result}")
    return list(zip(remote, results, strict=True))
