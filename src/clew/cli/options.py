"""Options that several commands share, and the library they lead to."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from clew.cli import OPTIONS
from clew.errors import RemoteFailed, SourceUnreadable, UnknownReference
from clew.timezone import ZONE_VARIABLE, find_zone

if TYPE_CHECKING:
    # Commands that are answered from the catalog need none of it.
    from clew.filters import Filters
    from clew.host import Host
    from clew.library import Library
    from clew.stored_session import StoredSession

F = TypeVar("F", bound=Callable[..., Any])

_FILTERS = (
    click.option(
        "--agent", multiple=True, metavar="ID", help="Only sessions of this agent, such as `claude`; repeatable."
    ),
    click.option("--branch", metavar="TEXT", help="Part of the git branch."),
    click.option("--model", metavar="TEXT", help="Part of a model's name."),
    click.option("--since", metavar="TIME", help="Active since: today, monday, last week, 3d, 2026-11, 2026-11-03."),
    click.option("--until", metavar="TIME", help="Begun before."),
    click.option("--tool", metavar="TEXT", help="Part of the name of a tool that was called."),
    click.option("--file", metavar="TEXT", help="Part of the path of a file that a tool was called on."),
    click.option("--has", multiple=True, metavar="WHAT", help="error, thinking, subagent or edit; repeatable."),
    click.option("--text", metavar="TEXT", help="Words that occur in it, tool output included."),
)


class Folder(click.Path):
    """The name of a folder; an empty one would mean the current folder, and comes of a variable that is not set."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        """The same, unless it is empty."""
        if value == "":
            self.fail("it is empty, as if a variable were not set", parameter, context)
        return super().convert(value, parameter, context)


as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def common(function: F) -> F:
    """--home, --source, --refresh, --no-sync, --timezone and --json, for every command."""
    home = click.option(
        "--home",
        "homes",
        type=Folder(),
        multiple=True,
        metavar="DIR",
        help="Home folder to read agents from; repeatable.",
    )
    return home(sourcing(as_json_option(function)))


target_home_option = click.option(
    "--home",
    "target_home",
    type=Folder(path_type=Path),
    metavar="DIR",
    help="Home folder to write the session below; default: the one named before the command, else your own.",
)


def target_host(context: click.Context, target_home: Path | None) -> Host:
    """The home that a converted session is written below.

    That is the --home after the command, else the first --home before it, else the user's own home.
    """
    from clew.host import Host

    homes = context.find_root().obj["homes"]
    named = target_home or (Path(homes[0]) if homes else None)
    return Host.at(named) if named is not None else Host.local()


def find_to_convert(context: click.Context, reference: str, target: Host) -> tuple[Library, StoredSession]:
    """Find a session in the homes before the command (default: every source), else in the home that is written to."""
    library = open_library(context, ())
    try:
        return library, library.get(reference)
    except UnknownReference:
        if not target.home.is_dir():
            raise
        library = open_library(context, (str(target.home),))
        return library, library.get(reference)


def filtering(function: F) -> F:
    """The filters every command shares."""
    for option in reversed(_FILTERS):
        function = option(function)
    return choosing_project(function)


def choosing_project(function: F) -> F:
    """--project and --here. In commands without other filters they hold for `@last`, `@2` and titles."""
    project = click.option(
        "--project",
        metavar="TEXT|PATH",
        expose_value=False,
        callback=_note_project,
        help="Only sessions of this project: part of its path, or a path (., /home/ada/tide) for it and below.",
    )
    here = click.option(
        "--here",
        is_flag=True,
        expose_value=False,
        callback=_note_here,
        help="Only sessions of the current folder and below.",
    )
    return project(here(function))


def _note_project(context: click.Context, _: click.Parameter, value: str | None) -> None:
    context.meta[PROJECT] = value


def _note_here(context: click.Context, _: click.Parameter, value: bool) -> None:
    context.meta[HERE] = value


def take_filters(options: dict[str, Any], library: Library) -> Filters:
    """Take the filter options out of a command's options; `3d` counts from the library's own clock."""
    import msgspec

    from clew.filters import FILTER_NAMES, Filters

    given = {name: options.pop(name) for name in FILTER_NAMES if name in options}
    filters = Filters.of(now=library.now(), **given)
    limits = library.reference_filters
    return msgspec.structs.replace(filters, project=limits.project, folders=limits.folders)


def open_library(context: click.Context, homes: tuple[str, ...]) -> Library:
    """The library over the homes and sources that were named, before or after the command; default: every source."""
    from clew.catalog import database
    from clew.cli.output import say
    from clew.filters import Filters
    from clew.library import Library

    named = (*context.find_root().obj["homes"], *homes)
    for home in named:
        if not Path(home).is_dir():
            raise SourceUnreadable(f"{home}: no such folder")
    wanted = wanted_sources(context)

    def find_hosts() -> list[Host]:
        from clew.sources.wsl import host_at

        hosts = [host_at(Path(home)) for home in named]
        return [*hosts, *_hosts(context, wanted)] if wanted or not named else hosts

    sync, warn = not context.meta.get(NO_SYNC), lambda text: say(f"clew: {text}")
    within = Filters.of(project=context.meta.get(PROJECT), here=context.meta.get(HERE))
    if wanted or context.meta.get(REFRESH):
        # Sources are looked for now: one that is unknown is an error, and --refresh fetches.
        hosts = find_hosts()
        folder = database.folder_of(hosts) if wanted or named else database.catalog_folder()
        return Library(*hosts, reference_filters=within, catalog_folder=folder, sync=sync, warn=warn)
    folder = database.catalog_folder(named)
    return Library(reference_filters=within, catalog_folder=folder, find_hosts=find_hosts, sync=sync, warn=warn)


def _hosts(context: click.Context, names: list[str]) -> tuple[Host, ...]:
    from clew.cli.command_sources import configured_sources, refresh
    from clew.cli.output import say
    from clew.sources import registry

    others = [name for name in names if name.casefold() != "archive"]
    archived = _archived_hosts() if others != names else ()
    if names and not others:
        if not archived:
            raise UnknownReference("every session in the archive is still in its place; --source local reads them")
        return archived
    names = others
    chosen = registry.chosen(configured_sources(), names)
    if context.meta.get(REFRESH):
        refresh(context, chosen)
        chosen = registry.chosen(registry.sources(), names)
    for source in chosen:
        if source.is_damaged:
            mend = f"`clew sources fetch {source.name}` mends it"
            say(f"clew: {source.name}: what is known of its files is damaged; {mend}")
    hosts = registry.hosts(chosen)
    if not hosts:
        raise RemoteFailed(f"{', '.join(names)}: nothing was fetched yet; `clew sources fetch` does")
    return (*hosts, *archived)


def _archived_hosts() -> tuple[Host, ...]:
    """The homes of sessions that only the archive has."""
    from clew.archive.archived_home import archived_hosts
    from clew.archive.records import archive_folder
    from clew.cli.output import say

    hosts, problems = archived_hosts(archive_folder(None))
    for problem in problems:
        say(f"clew: {problem}")
    return hosts


def wants_json(context: click.Context, as_json: bool) -> bool:
    """True when JSON was asked for, before or behind the command."""
    return as_json or bool(context.find_root().obj["json"])


SOURCES = "clew.sources"
REFRESH = "clew.refresh"
NO_SYNC = "clew.no-sync"
PROJECT = "clew.project"
HERE = "clew.here"
FAILED = "clew.failed"
"""Keys of what the contexts of one run share; `FAILED`: a host that was asked for did not answer."""


def _note_sources(context: click.Context, _: click.Parameter, value: tuple[str, ...]) -> None:
    context.meta[SOURCES] = [*context.meta.get(SOURCES, ()), *value]


def _note_refresh(context: click.Context, _: click.Parameter, value: bool) -> None:
    context.meta[REFRESH] = value or context.meta.get(REFRESH, False)


def _note_no_sync(context: click.Context, _: click.Parameter, value: bool) -> None:
    context.meta[NO_SYNC] = value or context.meta.get(NO_SYNC, False)


def _set_timezone(context: click.Context, _: click.Parameter, value: str | None) -> None:
    """Name the zone in the environment, where processes that this one starts find it too, until the command ends."""
    if value is None:
        return
    find_zone(value)
    before = os.environ.get(ZONE_VARIABLE)
    os.environ[ZONE_VARIABLE] = value
    context.find_root().call_on_close(lambda: _restore_variable(ZONE_VARIABLE, before))


def _restore_variable(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def sourcing(function: F) -> F:
    """--source, --refresh, --no-sync and --timezone, before or after the command; no command needs to know of them."""
    source = click.option(
        "--source",
        multiple=True,
        metavar="NAME",
        expose_value=False,
        callback=_note_sources,
        help=OPTIONS["--source NAME"],
    )
    refresh = click.option(
        "--refresh", is_flag=True, expose_value=False, callback=_note_refresh, help=OPTIONS["--refresh"]
    )
    no_sync = click.option(
        "--no-sync", is_flag=True, expose_value=False, callback=_note_no_sync, help=OPTIONS["--no-sync"]
    )
    timezone = click.option(
        "--timezone", metavar="ZONE", expose_value=False, callback=_set_timezone, help=OPTIONS["--timezone ZONE"]
    )
    return source(refresh(no_sync(timezone(function))))


def wanted_sources(context: click.Context) -> list[str]:
    """The sources that were named."""
    names: list[str] = context.meta.get(SOURCES, [])
    return names
