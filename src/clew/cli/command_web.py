"""clew web: the local app."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli.options import NO_SYNC, common_without_json, open_library, refuse_json, wanted_sources
from clew.cli.output import print_message
from clew.cli.redaction import Redaction, redacting_on_demand, redaction
from clew.datadir import ANNOTATIONS_FILE
from clew.errors import UsageError
from clew.host import Host, data_dir

if TYPE_CHECKING:
    from collections.abc import Callable
    from socket import socket

    from clew.catalog.change_detection import Hosts
    from clew.library import Library
    from clew.web.background import CatalogUpdater
    from clew.web.server import WebServer

PORT = 7411


@click.command("web")
@click.option("--open", "opens", is_flag=True, help="Open the link in your browser.")
@click.option("--port", type=click.IntRange(0, 65535), help=f"Port to listen on [default: {PORT}, or a free one].")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDR", help="Address to listen on.")
@click.option("--allow-remote", is_flag=True, help="Allow a --host address that other machines can reach.")
@click.option("--engine", metavar="NAME", help="Browse a server, see `clew push`: postgresql://...")
@redacting_on_demand
@common_without_json
@click.pass_context
def command(
    context: click.Context,
    /,
    opens: bool,
    port: int | None,
    host: str,
    allow_remote: bool,
    engine: str | None,
    homes: tuple[str, ...],
) -> None:
    """Browse all sessions in a local web app: activity, sessions, search, usage, files, secrets.

    Starts a web server on 127.0.0.1. Open the printed link; it contains a one-time token. After it is used, a new link
    is printed to stderr. Sessions are only read, unless you continue one in another agent. Nothing is masked unless
    --redact or the settings of the app say so. Ctrl-C stops the server.

    With --engine, new data on the server is copied to this machine first, and then every minute; sessions pushed as
    metrics have no text.
    """
    from clew.web.context import MaskingOptions, set_masking_options
    from clew.web.server import LOOPBACK_HOSTS, WILDCARD_HOSTS, WebServer, bind_preferred

    refuse_json(context)
    masking = redaction(context, for_programs=True)
    # Rules that cannot be used are reported now, and not on every page. Each page has a switch that hides secrets, so
    # they are needed whatever the profile is.
    Redaction(plain=masking.plain, rules=masking.rules_file).prepare()
    masking.prepare()
    set_masking_options(MaskingOptions(masking.plain, masking.rules_file))
    profile = masking.profile
    if engine is not None and engine != "sqlite":
        server = _server_for_engine(engine, lambda: bind_preferred(host, port, PORT, allow_remote), host, profile)
    else:
        hosts, updater = _hosts_and_updater(context, library := open_library(context, homes), homes)
        listening = bind_preferred(host, port, PORT, allow_remote)
        named = bool(homes or context.find_root().obj["homes"])
        server = WebServer(
            hosts,
            library.catalog_folder,
            listening,
            host,
            profile=profile,
            updater=updater,
            target_host=library.hosts[0] if named else Host.local(),
        )
    if host not in LOOPBACK_HOSTS:
        print_message(
            f"clew: other machines can reach {host}; anyone with the link can read everything and change stars, labels,"
            " notes and settings; use a trusted network"
        )
    if host in WILDCARD_HOSTS:
        print_message(
            "clew: on another machine, replace the host in the link by an address of this machine", mask=False
        )
    click.echo(server.link())
    if opens:
        _open(server.link())
    server.run(lambda: print_message(f"clew: the link was used; a new link: {server.link()}", mask=False))


def _hosts_and_updater(
    context: click.Context, library: Library, homes: tuple[str, ...]
) -> tuple[Hosts, CatalogUpdater | None]:
    """The homes that were named, or a function that finds those of every source, and what keeps the catalog fresh."""
    from clew import project_names
    from clew.catalog.sync_process import SyncUpdate
    from clew.library import every_host
    from clew.sources.config import FILE
    from clew.web.background import CatalogUpdater

    # Problems with sources are reported here, and not again whenever homes are found.
    hosts: Hosts = library.hosts
    watched_files = [project_names.names_path(), data_dir() / ANNOTATIONS_FILE]
    if not (homes or context.find_root().obj["homes"] or wanted_sources(context)):
        hosts = every_host
        watched_files.append(data_dir() / FILE)
    if context.meta.get(NO_SYNC):
        return hosts, None
    return hosts, CatalogUpdater(SyncUpdate(hosts, library.catalog_folder), lambda: _roots(hosts), watched_files)


def _server_for_engine(engine: str, listening: Callable[[], socket], host: str, profile: str) -> WebServer:
    """A web server over rows that were pushed to a database server."""
    from clew.warehouse.engines import require_server

    require_server(engine, "--engine: the app shows sqlite, or what was pushed to a server:")
    from clew.warehouse.postgres.connection import check_url
    from clew.warehouse.postgres.mirror import mirror, mirror_folder
    from clew.warehouse.urls import display_server
    from clew.web.background import CatalogUpdater, MirrorUpdate, empty_home
    from clew.web.server import WebServer

    check_url(engine)
    folder = mirror_folder(engine)
    # Copied before the server starts, so that a database that is down is reported at once.
    mirror(engine, folder)
    updater = CatalogUpdater(MirrorUpdate(engine, folder))
    return WebServer(
        [empty_home(folder)], folder, listening(), host, profile=profile, engine=display_server(engine), updater=updater
    )


def _open(link: str) -> None:
    import webbrowser

    if not webbrowser.open(link):
        raise UsageError("no browser could be started; open the link yourself")


def _roots(hosts: Hosts) -> list[Path]:
    """The folders in which something may change."""
    from clew.agents import registry
    from clew.catalog.change_detection import find_hosts

    return [root for host in find_hosts(hosts) for agent in registry.load_all() for root in agent.roots(host)]
