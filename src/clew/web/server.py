"""The server: binds a socket, updates the catalog in the background and runs the application with uvicorn."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from clew.catalog import queries
from clew.catalog.change_detection import Hosts
from clew.errors import ClewError, UsageError
from clew.host import Host
from clew.web.app import make_app
from clew.web.auth import SessionTokens, local_hosts
from clew.web.background import CatalogUpdater
from clew.web.context import AppContext
from clew.web.routes import pages
from clew.web.templates import compile_templates
from clew.web.transcript import SubagentLinks, full_transcript

LOOPBACK_HOSTS = ("127.0.0.1", "::1", "localhost")
WILDCARD_HOSTS = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}
"""Hosts that mean all addresses of the machine, with the loopback address that the link uses."""
LISTEN_BACKLOG = 128
MAX_CONNECTIONS = 256
KEEP_ALIVE_SECONDS = 30
MAX_HEADER_BYTES = 32 * 1024


def bind(host: str, port: int, *, allow_remote: bool = False) -> socket.socket:
    """Listen on an address. One that other machines can reach must be allowed."""
    if host not in LOOPBACK_HOSTS and not allow_remote:
        raise UsageError(f"{host}: other machines can reach this address; use --allow-remote to allow it")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(LISTEN_BACKLOG)
    except OSError as error:
        listening.close()
        raise UsageError(f"{host}:{port}: {error.strerror or error}") from error
    return listening


def bind_preferred(host: str, port: int | None, default_port: int, allow_remote: bool) -> socket.socket:
    """Listen on the given port; without one on the default port, or on a free one where that is taken."""
    if port is not None:
        return bind(host, port, allow_remote=allow_remote)
    try:
        return bind(host, default_port, allow_remote=allow_remote)
    except UsageError:
        return bind(host, 0, allow_remote=allow_remote)


class WebServer:
    """One run of the web app."""

    def __init__(
        self,
        hosts: Hosts,
        folder: Path,
        listening: socket.socket,
        host: str,
        *,
        profile: str = "none",
        engine: str = "",
        updater: CatalogUpdater | None = None,
        target_host: Host | None = None,
    ) -> None:
        self._listening, self._host = listening, host
        self._port: int = listening.getsockname()[1]
        self._tokens = SessionTokens(self._port)
        self._updater = updater or CatalogUpdater()
        self._context = AppContext(
            hosts, folder, profile=profile, updater=self._updater, engine=engine, target_host=target_host
        )

    def link(self) -> str:
        """The link that signs a browser in, once. Browsers do not send the part behind the #."""
        name = WILDCARD_HOSTS.get(self._host, self._host)
        return f"http://{_url_host(name)}:{self._port}/enter#token={self._tokens.link_token}"

    def run(self, on_login: Callable[[], None]) -> None:
        """Serve until interrupted. `on_login` is called after a link was used."""
        self._updater.start()
        self._context.run_in_background(warm_up)
        any_address = self._host in WILDCARD_HOSTS
        allowed_hosts = local_hosts(self._port, () if any_address else (_url_host(self._host),))
        app = make_app(pages(self._context), self._tokens, allowed_hosts, on_login, any_address=any_address)
        try:
            with contextlib.suppress(KeyboardInterrupt):
                uvicorn.Server(uvicorn_config(app)).run(sockets=[self._listening])
        finally:
            self._updater.stop()
            self._context.close()
            self._listening.close()


def _url_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def uvicorn_config(app: ASGIApp) -> uvicorn.Config:
    """Run the application quietly and with limits."""
    return uvicorn.Config(
        app,
        access_log=False,
        log_level="critical",
        server_header=False,
        date_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=1,
        limit_concurrency=MAX_CONNECTIONS,
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
        http="h11",
        ws="none",
        lifespan="on",
    )


def warm_up(context: AppContext) -> None:
    """Compile the templates and render one short session of each agent, so that the first page need not wait."""
    compile_templates(context.profile)
    with contextlib.suppress(ClewError):
        for entry in queries.smallest(context.db):
            # An unreadable session is reported by the page that shows it.
            with contextlib.suppress(ClewError, OSError):
                full_transcript(context.session(entry, context.profile)).window(0, SubagentLinks())
