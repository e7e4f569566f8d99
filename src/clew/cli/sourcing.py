"""The options that choose sources; light, because the help of the whole command needs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from clew.cli import OPTIONS

F = TypeVar("F", bound=Callable[..., Any])

SOURCES = "clew.sources"
REFRESH = "clew.refresh"
NO_SYNC = "clew.no-sync"
FAILED = "clew.failed"
"""Keys of what the contexts of one run share; `FAILED`: a host that was asked for did not answer."""


class Folder(click.Path):
    """The name of a folder; an empty one would mean the current folder, and comes of a variable that is not set."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        """The same, unless it is empty."""
        if value == "":
            self.fail("it is empty, as if a variable were not set", parameter, context)
        return super().convert(value, parameter, context)


def _note_sources(context: click.Context, _: click.Parameter, value: tuple[str, ...]) -> None:
    context.meta[SOURCES] = [*context.meta.get(SOURCES, ()), *value]


def _note_refresh(context: click.Context, _: click.Parameter, value: bool) -> None:
    context.meta[REFRESH] = value or context.meta.get(REFRESH, False)


def _note_no_sync(context: click.Context, _: click.Parameter, value: bool) -> None:
    context.meta[NO_SYNC] = value or context.meta.get(NO_SYNC, False)


def sourcing(function: F) -> F:
    """--source, --refresh and --no-sync, before or after the command; no command needs to know of them."""
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
    return source(refresh(no_sync(function)))


def wanted_sources(context: click.Context) -> list[str]:
    """The sources that were named."""
    names: list[str] = context.meta.get(SOURCES, [])
    return names
