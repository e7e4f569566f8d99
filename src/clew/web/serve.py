"""The server: a socket on this machine only, and the loop that runs the app on it."""

from __future__ import annotations

import contextlib
import socket

import uvicorn
from starlette.types import ASGIApp

from clew.errors import UsageError

LOOPBACK = ("127.0.0.1", "::1", "localhost")
_BACKLOG = 128
MAX_CONNECTIONS = 256
"""More at a time are told to come back."""
IDLE_SECONDS = 30
MAX_HEAD = 32 * 1024
"""Bytes of a request's head."""


def bind(host: str, port: int, *, is_allowed: bool = False) -> socket.socket:
    """A socket that listens; an address that others can reach must be asked for."""
    if host not in LOOPBACK and not is_allowed:
        raise UsageError(f"{host}: others could reach this address; --allow-remote says that they may")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise UsageError(f"{host}:{port}: {error.strerror or error}") from error
    return listening


def configured(app: ASGIApp) -> uvicorn.Config:
    """How the server runs the app: quiet, and with limits."""
    return uvicorn.Config(
        app,
        access_log=False,
        log_level="critical",
        server_header=False,
        date_header=False,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=1,
        limit_concurrency=MAX_CONNECTIONS,
        h11_max_incomplete_event_size=MAX_HEAD,
        http="h11",
        ws="none",
        lifespan="on",
    )


def run(app: ASGIApp, listening: socket.socket) -> None:
    """Serve until somebody stops it."""
    with contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(configured(app)).run(sockets=[listening])
