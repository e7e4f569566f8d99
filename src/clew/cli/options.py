"""Options that several commands share, and the library they lead to."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from clew.cli import OPTIONS
from clew.cli.completion import complete_filter, complete_has, complete_label
from clew.errors import RemoteFailed, SourceUnreadable, UnknownReference, UsageError
from clew.timezone import ZONE_VARIABLE, find_zone

if TYPE_CHECKING:
    # Commands that are answered from the catalog need none of it.
    from clew.filters import Filters
    from clew.host import Host
    from clew.library import Library
    from clew.stored_session import StoredSession

F = TypeVar("F", bound=Callable[..., Any])

_AGENT = click.option(
    "--agent",
    multiple=True,
    metavar="ID",
    shell_complete=complete_filter("agent"),
    help="Only sessions of this agent, such as `claude`; repeatable.",
)
_TIMES = (
    click.option(
        "--since",
        metavar="TIME",
        help="Only sessions with activity since TIME: today, monday, last week, 3d, 6mo, october, 2026-11-03. Usage"
        " is counted within it.",
    ),
    click.option(
        "--until", metavar="TIME", help="Only sessions with activity before TIME. Usage is counted within it."
    ),
)
_FILTERS = (
    _AGENT,
    click.option("--branch", metavar="TEXT", help="Only git branches whose name contains TEXT."),
    click.option(
        "--model", metavar="TEXT", shell_complete=complete_filter("model"), help="Only models whose name contains TEXT."
    ),
    *_TIMES,
    click.option("--tool", metavar="TEXT", help="Only sessions that called a tool whose name contains TEXT."),
    click.option("--file", metavar="TEXT", help="Only sessions that used a file whose path contains TEXT."),
    click.option(
        "--has",
        multiple=True,
        metavar="WHAT",
        shell_complete=complete_has,
        help="With error, thinking, subagent or edit; repeatable.",
    ),
    click.option("--text", metavar="WORDS", help="Only sessions that contain all these words, tool output included."),
    click.option(
        "--label",
        multiple=True,
        metavar="NAME",
        shell_complete=complete_label,
        help="Only sessions with this label, on the session or a message (`clew annotate`); repeatable.",
    ),
    click.option("--starred", is_flag=True, help="Only sessions with a star, on the session or a message."),
    click.option(
        "--min-prompts",
        type=click.IntRange(min=1),
        metavar="N",
        help="Only sessions with at least N prompts of a person; 2 leaves out single questions and sub-agents.",
    ),
    click.option(
        "--commits",
        metavar="RANGE",
        help="Only sessions that certainly or likely made commits of RANGE, such as main..HEAD (`clew commits`).",
    ),
)


class Folder(click.Path):
    """The path of a folder. An empty one is refused: it usually comes from a shell variable that is not set."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        """The path, unless it is empty."""
        if value == "":
            self.fail("the path is empty; is a shell variable not set?", parameter, context)
        return super().convert(value, parameter, context)


class Number(click.FloatRange):
    """A number in a range. NaN and infinity are refused: every comparison with a limit lets NaN pass."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        """The number, if it is finite."""
        number = super().convert(value, parameter, context)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", parameter, context)
        return number


class OptionWithOldNames(click.Option):
    """An option that also accepts the names it had in earlier versions. Help and completion leave them out."""

    def __init__(self, *args: Any, old_names: Sequence[str], **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.old_names = list(old_names)

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Add the old names for the parser alone: help, completion and errors show what is in `opts`."""
        names = self.opts
        self.opts = [*names, *self.old_names]
        try:
            super().add_to_parser(parser, ctx)
        finally:
            self.opts = names


def yes_option(*old_names: str) -> Callable[[F], F]:
    """--yes, for commands that only print what they would do without it."""
    return click.option("--yes", cls=OptionWithOldNames, old_names=old_names, is_flag=True, help=OPTIONS["--yes"])


def dry_run_option(*old_names: str) -> Callable[[F], F]:
    """--dry-run, for commands that act without --yes."""
    help_text = OPTIONS["--dry-run"]
    return click.option("--dry-run", cls=OptionWithOldNames, old_names=old_names, is_flag=True, help=help_text)


def into_option(*old_names: str) -> Callable[[F], F]:
    """--into, for commands that restore files below a folder."""
    return click.option(
        "--into",
        cls=OptionWithOldNames,
        old_names=old_names,
        type=Folder(path_type=Path),
        metavar="DIR",
        help=OPTIONS["--into DIR"],
    )


force_option = click.option("--force", is_flag=True, help=OPTIONS["--force"])
as_json_option = click.option("--json", "as_json", is_flag=True, help=OPTIONS["--json"])


def home_option(function: F) -> F:
    """--home, for commands that read the sessions of a home folder."""
    option = click.option("--home", "homes", type=Folder(), multiple=True, metavar="DIR", help=OPTIONS["--home DIR"])
    return option(function)


def common(function: F) -> F:
    """--home, --source, --refresh, --no-sync, --timezone and --json, for every command that reads sessions."""
    return common_without_json(as_json_option(function))


def common_without_json(function: F) -> F:
    """The options of `common` except --json."""
    return home_option(sourcing(function))


def named_homes(context: click.Context, homes: tuple[str, ...]) -> tuple[str, ...]:
    """The home folders named before and after the command; one that does not exist is an error."""
    named = (*context.find_root().obj["homes"], *homes)
    for home in named:
        if not Path(home).is_dir():
            raise SourceUnreadable(f"{home} is not a folder" if Path(home).exists() else f"{home}: no such folder")
    return named


def source_arguments(context: click.Context, homes: tuple[str, ...] = ()) -> list[str]:
    """The options that make another command read the homes and sources that this one reads."""
    homes = (*context.find_root().obj["homes"], *homes)
    named = [word for home in homes for word in ("--home", str(Path(home).absolute()))]
    return [*named, *(word for name in wanted_sources(context) for word in ("--source", name))]


def target_home_option(what: str) -> Callable[[F], F]:
    """--home, for commands that write below one home folder; `what` says what is or comes there."""
    help_text = f"Home folder {what}; default: the one named before the command, else your own."
    return click.option("--home", "target_home", type=Folder(path_type=Path), metavar="DIR", help=help_text)


full_history_option = click.option(
    "--full-history", is_flag=True, help="Send the messages before a compaction to the model too, not only its summary."
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


def choosing_kept(function: F) -> F:
    """--agent, --since, --until, --project and --here: what is known of a session that only the archive has."""
    for option in reversed((_AGENT, *_TIMES)):
        function = option(function)
    return choosing_project(function)


def choosing_project(function: F) -> F:
    """--project and --here. In commands without other filters they hold for `@last`, `@2` and titles."""
    project = click.option(
        "--project",
        metavar="TEXT|PATH",
        expose_value=False,
        callback=_note_project,
        shell_complete=complete_filter("project"),
        help="Only projects whose path contains TEXT; or a PATH (., /home/ada/tide) for it and below.",
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
    _refuse_empty("project", value)
    context.meta[PROJECT] = value


def _note_here(context: click.Context, _: click.Parameter, value: bool) -> None:
    context.meta[HERE] = value


def _refuse_empty(name: str, value: str | tuple[str, ...] | None) -> None:
    """An empty filter would choose everything, such as all sessions for an export."""
    if value == "" or (isinstance(value, tuple) and "" in value):
        raise UsageError(f"--{name.replace('_', '-')}: the value is empty; is a shell variable not set?")


def take_filters(options: dict[str, Any], library: Library) -> Filters:
    """Take the filter options out of a command's options; `3d` counts from the library's own clock."""
    import msgspec

    from clew.filters import FILTER_NAMES, Filters

    given = {name: options.pop(name) for name in FILTER_NAMES if name in options}
    for name, value in given.items():
        _refuse_empty(name, value)
    filters = Filters.of(now=library.now(), **given)
    limits = library.reference_filters
    return msgspec.structs.replace(filters, project=limits.project, folders=limits.folders)


def given_filters(context: click.Context) -> str:
    """The filters of a command as they were typed, such as `--agent codex --since 3d`; empty without any."""
    from shlex import quote

    from clew.filters import FILTER_NAMES

    values = {name: context.params.get(name) for name in FILTER_NAMES} | {"project": context.meta.get(PROJECT)}
    flags = {"--here": context.meta.get(HERE), "--starred": values.pop("starred")}
    given = [name for name, is_given in flags.items() if is_given]
    for name, value in values.items():
        several = value if isinstance(value, tuple) else (value,) if value is not None else ()
        given += [f"--{name.replace('_', '-')} {quote(str(one))}" for one in several]
    return " ".join(given)


def print_no_sessions(context: click.Context, subject: str = "sessions") -> None:
    """Say why there is no result: the filters, or that no agent has sessions in the folders that are read.

    `subject` names the sessions that would count, if there are others.
    """
    from clew.cli.output import print_message

    if filters := given_filters(context):
        hint = "; if the project was moved: `clew sources map OLD`" if filters == "--here" else ""
        if (until := context.params.get("until")) and until == context.params.get("since"):
            hint = f"; --until {until} ends where {until} begins"
        print_message(f"no {subject} match {filters}{hint}")
    elif subject != "sessions":
        print_message(f"no {subject} found", mask=False)
    else:
        print_message("no sessions found; `clew agents` lists the folders that are read", mask=False)


def open_library(context: click.Context, homes: tuple[str, ...]) -> Library:
    """The library over the homes and sources that were named, before or after the command; default: every source."""
    from clew.catalog import database
    from clew.cli.output import print_message
    from clew.cli.progress import progress_bars
    from clew.filters import Filters
    from clew.library import Library

    named = named_homes(context, homes)
    wanted = wanted_sources(context)

    def find_hosts() -> list[Host]:
        from clew.sources.wsl import host_at

        # With `--source archive` alone, the homes' own sessions are not wanted.
        is_archive_only = bool(wanted) and all(name.casefold() == "archive" for name in wanted)
        hosts = [] if is_archive_only else [host_at(Path(home)) for home in named]
        return [*hosts, *_hosts(context, wanted)] if wanted or not named else hosts

    def open_with(*hosts: Host, folder: Path, find_hosts: Callable[[], Sequence[Host]] | None = None) -> Library:
        return Library(
            *hosts,
            reference_filters=Filters.of(project=context.meta.get(PROJECT), here=context.meta.get(HERE)),
            catalog_folder=folder,
            find_hosts=find_hosts,
            sync=not context.meta.get(NO_SYNC),
            show_progress=progress_bars,
            warn=lambda text: print_message(f"clew: {text}"),
        )

    if wanted or context.meta.get(REFRESH):
        # Sources are looked for now: one that is unknown is an error, and --refresh fetches.
        hosts = find_hosts()
        folder = database.folder_of(hosts) if wanted or named else database.catalog_folder()
        return open_with(*hosts, folder=folder)
    return open_with(folder=database.catalog_folder(named), find_hosts=find_hosts)


def _hosts(context: click.Context, names: list[str]) -> tuple[Host, ...]:
    from clew.cli.command_sources import configured_sources, refresh
    from clew.cli.output import print_message
    from clew.sources import registry

    others = [name for name in names if name.casefold() != "archive"]
    archived = _archived_hosts() if others != names else ()
    if names and not others:
        if not archived:
            raise UnknownReference("every archived session still exists; --source local reads them")
        return archived
    names = others
    chosen = registry.chosen(configured_sources(), names)
    if context.meta.get(REFRESH):
        refresh(context, chosen)
        chosen = registry.chosen(registry.sources(), names)
    for source in chosen:
        if source.is_damaged:
            repair = f"run `clew sources fetch {source.name}` to repair it"
            print_message(f"clew: {source.name}: the record of its fetched files is damaged; {repair}")
    hosts = registry.hosts(chosen)
    if not hosts:
        raise RemoteFailed(f"{', '.join(names)}: not fetched yet; run `clew sources fetch`")
    return (*hosts, *archived)


def _archived_hosts() -> tuple[Host, ...]:
    """The homes of sessions that only the archive has."""
    from clew.archive.archived_home import archived_hosts
    from clew.archive.records import archive_folder
    from clew.cli.output import print_message

    hosts, problems = archived_hosts(archive_folder(None))
    for problem in problems:
        print_message(f"clew: {problem}")
    return hosts


def wants_json(context: click.Context, as_json: bool) -> bool:
    """Whether --json is given, before or after the command."""
    return as_json or bool(context.find_root().obj["json"])


def refuse_json(context: click.Context) -> None:
    """For commands without JSON output: --json before the command is an error, as it is after the command."""
    if wants_json(context, False):
        raise UsageError(f"`{context.command_path}` has no JSON output; leave out --json")


SOURCES = "clew.sources"
REFRESH = "clew.refresh"
NO_SYNC = "clew.no-sync"
PROJECT = "clew.project"
HERE = "clew.here"
FAILED = "clew.failed"
"""Keys of `context.meta`, which all contexts of one run share; `FAILED`: a remote host did not answer."""


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
