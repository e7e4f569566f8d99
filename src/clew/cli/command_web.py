"""clew web: the local app."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli.options import common, library
from clew.cli.output import say
from clew.cli.redacting import DATA, TEXT, Redaction, redacting_on_demand, redaction
from clew.cli.sourcing import NO_SYNC, wanted_sources
from clew.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from socket import socket

    from clew.host import Host
    from clew.web.running import App

PORT = 7411


@click.command("web")
@click.option("--open", "opens", is_flag=True, help="Open it in your browser.")
@click.option("--port", type=click.IntRange(0, 65535), help=f"Port to listen on [default: {PORT}, or a free one].")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDR", help="Address to listen on.")
@click.option("--allow-remote", is_flag=True, help="Let --host be an address that other machines can reach.")
@click.option("--engine", metavar="NAME", help="Show what was pushed to a server: postgresql://...")
@redacting_on_demand
@common
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
    as_json: bool,
) -> None:
    """Look at everything in a browser: activity, sessions, search, usage, files, secrets.

    Only this machine can reach it, and only with the link that is printed, which is good once; when it was used, a
    fresh one is printed to stderr. Sources are only read. --redact masks what is shown; by default nothing is. Ctrl-C
    ends it.

    With --engine, what is new on the server is copied to this machine first, and every minute from then on; without
    text where only metrics were pushed.
    """
    from clew.web.masking import Manner, mask_by
    from clew.web.running import ALL_ADDRESSES, App, listen

    masking = redaction(context, DATA)
    # Rules that cannot be used are reported now, and not on every page. Each page has a switch that hides secrets, so
    # they are needed whatever the profile is.
    Redaction(TEXT, plain=masking.plain, rules=masking.rules_file).prepare()
    masking.prepare()
    mask_by(Manner(masking.plain, masking.rules_file))
    profile = masking.profile
    if engine is not None and engine != "sqlite":
        app = _over_server(engine, lambda: listen(host, port, PORT, allow_remote), host, profile)
    else:
        shelf = library(context, homes)
        folder = shelf.catalog_folder
        app = App(shelf.hosts, folder, listen(host, port, PORT, allow_remote), host, profile=profile)
        if not context.meta.get(NO_SYNC):
            app.keep_fresh(_options(context, homes), _roots(shelf.hosts))
    if host not in ("127.0.0.1", "::1", "localhost"):
        say(f"clew: other machines can reach {host}; whoever has the link reads everything, and so may the network")
    if host in ALL_ADDRESSES:
        say("clew: on another machine, put an address of this one into the link")
    click.echo(app.link())
    if opens:
        _open(app.link())
    app.run(lambda: say(f"clew: that link was used; a fresh one: {app.link()}", own=True))


def _over_server(engine: str, listening: Callable[[], socket], host: str, profile: str) -> App:
    """The app over what was pushed to a server."""
    from clew.warehouse.engines import need_server

    need_server(engine, "--engine: the app shows sqlite, or what was pushed to a server:")
    from clew.warehouse.postgres.connection import check_address, shown
    from clew.warehouse.postgres.mirror import mirror, mirror_folder
    from clew.web.mirroring import Mirroring, no_home
    from clew.web.running import App

    check_address(engine)
    folder = mirror_folder(engine)
    # Before anything is shown: a server that is down is told at once.
    mirror(engine, folder)
    app = App([no_home(folder)], folder, listening(), host, profile=profile, engine=shown(engine))
    app.follow(Mirroring(engine, folder))
    return app


def _open(link: str) -> None:
    import webbrowser

    if not webbrowser.open(link):
        raise UsageError("no browser could be started; open the link yourself")


def _options(context: click.Context, homes: tuple[str, ...]) -> list[str]:
    """What makes other commands look at the same sources."""
    named = (*context.find_root().obj["homes"], *homes)
    options = [word for home in named for word in ("--home", home)]
    return [*options, *(word for name in wanted_sources(context) for word in ("--source", name))]


def _roots(hosts: tuple[Host, ...]) -> list[Path]:
    """The folders in which something may change."""
    from clew.agents import registry

    return [root for host in hosts for agent in registry.load_all() for root in agent.roots(host)]
