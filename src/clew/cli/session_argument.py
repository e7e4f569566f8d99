"""The argument REF of a command: completed by the shell, and chosen from a list if it is missing on a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from clew.cli.completion import complete_session

F = TypeVar("F", bound=Callable[..., Any])


class SessionArgument(click.Argument):
    """A reference to a session. Without one, a person at a terminal chooses from a list; a script gets an error."""

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Return the reference that was given, or the session that the person chose."""
        if self.value_is_missing(value) and is_interactive() and not ctx.resilient_parsing:
            from clew.cli.picker import pick_session

            value = pick_session(ctx, ctx.params.get("homes", ()))
        return super().process_value(ctx, value)


def session_argument(metavar: str = "REF") -> Callable[[F], F]:
    """The argument `reference`."""
    return click.argument("reference", cls=SessionArgument, metavar=metavar, shell_complete=complete_session)


def is_interactive() -> bool:
    """True where a person can answer: a terminal for input and for messages, and no continuous integration."""
    return sys.stdin.isatty() and sys.stderr.isatty() and not os.environ.get("CI")
