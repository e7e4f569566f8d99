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

    def __init__(self, *names: Any, agent: str | None = None, **attributes: Any) -> None:
        super().__init__(*names, **attributes)
        self._agent = agent

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Return the reference that was given, or that of the session that the person chose."""
        if self.value_is_missing(value) and is_interactive() and not ctx.resilient_parsing:
            from clew.cli.picker import pick_session

            _check_required_options(ctx)
            value = pick_session(ctx, ctx.params.get("homes", ()), self._agent)
        return super().process_value(ctx, value)


def _check_required_options(context: click.Context) -> None:
    """Refuse a command without a required option before the person is asked; click has read the given ones before."""
    for parameter in context.command.params:
        if isinstance(parameter, click.Option) and parameter.required and parameter.name not in context.params:
            raise click.MissingParameter(ctx=context, param=parameter)


def session_argument(metavar: str = "REF", agent: str | None = None) -> Callable[[F], F]:
    """The argument `reference`; the list has only the sessions of `agent`, if one is given."""
    return click.argument(
        "reference", cls=SessionArgument, agent=agent, metavar=metavar, shell_complete=complete_session
    )


def is_interactive() -> bool:
    """True where a person can answer: a terminal for input and for messages, and no continuous integration."""
    return sys.stdin.isatty() and sys.stderr.isatty() and not os.environ.get("CI")
