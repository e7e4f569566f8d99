"""clew mcp: the history of all agents as tools for agents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli.install_commands import (
    agent_option,
    choose_agents,
    clew_command,
    configured_home_option,
    configured_host,
    print_and_apply,
)
from clew.cli.options import (
    NO_SYNC,
    Folder,
    common_without_json,
    dry_run_option,
    open_library,
    refuse_json,
    source_arguments,
)
from clew.cli.output import print_message
from clew.cli.redaction import NAMES, redacting_answers, redaction
from clew.extras import install_command, missing_modules, require_extra

if TYPE_CHECKING:
    from clew.agents.extension_points import McpConfig
    from clew.mcp.tools import Tools

_project_option = click.option(
    "--project",
    type=Folder(path_type=Path),
    metavar="DIR",
    help="Change the configuration of this project, which others may share, instead of your own.",
)


@click.group("mcp", invoke_without_command=True)
@redacting_answers
@common_without_json
@click.pass_context
def command(context: click.Context, /, homes: tuple[str, ...]) -> None:
    """Serve the sessions of all agents to an agent, over the Model Context Protocol.

    Agents start it themselves, with standard input and output as the connection; `clew mcp install` adds it to their
    configuration. The tools only read: search, list_sessions, show, files, file_at, blame, todos, stats and
    resume_command. Sessions are resources too. Answers are short, can be read on with a cursor, and cite
    agent:session#message. Secrets are masked unless --redact none is given. Needs the extra `mcp`.
    """
    if context.invoked_subcommand is not None:
        return
    refuse_json(context)
    require_extra("mcp")
    import anyio

    from clew.mcp.server import serve

    anyio.run(serve, _tools(context, homes))


def _tools(context: click.Context, homes: tuple[str, ...]) -> Tools:
    from clew.host import Host
    from clew.library import Library
    from clew.mcp.freshness import Freshness
    from clew.mcp.masking import Masking
    from clew.mcp.tools import Tools

    masking = redaction(context, for_programs=False)
    # Rules that cannot be used are reported now, and not in every answer.
    masking.prepare()
    opened = open_library(context, homes)
    named = (*context.find_root().obj["homes"], *homes)
    options = source_arguments(context, homes)

    def hosts() -> tuple[Host, ...]:
        return opened.hosts

    library = Library(
        find_hosts=hosts,
        catalog_folder=opened.catalog_folder,
        sync=False,
        warn=lambda text: tools.note(text),
    )
    tools = Tools(
        library,
        Masking(masking.settings if masking.is_on else None),
        Freshness(hosts, opened.catalog_folder, is_on=not context.meta.get(NO_SYNC)),
        target_host=opened.hosts[0] if named else None,
        source_options=options,
    )
    return tools


@command.command("install")
@agent_option(required=True)
@_project_option
@click.option("--redact", type=click.Choice(NAMES), help="What the server masks. Default: secrets.")
@dry_run_option()
@configured_home_option
@click.pass_context
def install(
    context: click.Context,
    /,
    name: str,
    project: Path | None,
    redact: str | None,
    dry_run: bool,
    target_home: Path | None,
) -> None:
    """Add `clew mcp` to the configuration of an agent, after printing the change.

    The rest of the file stays as it is. What it held before is kept in clew's data folder: `clew mcp uninstall`
    restores it byte for byte, or only removes the server if the file was changed since. Close the agent before: it may
    write the file too.
    """
    from clew.config_file_edits import plan_install
    from clew.mcp.install import server_addition

    config = _config(context, name, project, target_home)
    options = ["--redact", redact] if redact is not None else []
    addition = server_addition(config, [*clew_command(is_shared=project is not None), "mcp", *options])
    print_and_apply(plan_install(addition), dry_run)
    if missing := missing_modules("mcp"):
        print_message(f"clew: the server will not start: it needs {', '.join(missing)}: {install_command('mcp')}")


@command.command("uninstall")
@agent_option(required=True)
@_project_option
@dry_run_option()
@configured_home_option
@click.pass_context
def uninstall(
    context: click.Context, /, name: str, project: Path | None, dry_run: bool, target_home: Path | None
) -> None:
    """Remove `clew mcp` from the configuration of an agent, after printing the change."""
    from clew.config_file_edits import plan_uninstall
    from clew.mcp.install import server_addition

    config = _config(context, name, project, target_home)
    print_and_apply(plan_uninstall(server_addition(config)), dry_run)


def _config(context: click.Context, name: str, project: Path | None, target_home: Path | None) -> McpConfig:
    """The file that is changed."""
    folder = project.absolute() if project is not None else None
    what = f"the configuration{' of a project' if project is not None else ''}"
    host = configured_host(context, target_home)
    (config,) = choose_agents(host, name, lambda agent: agent.mcp_config(host, folder), what)
    return config
