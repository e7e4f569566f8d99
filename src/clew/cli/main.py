"""The command line: starts, loads a command's module when it is run, and turns errors into exit codes."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from clew.cli import ABOUT, COMMAND_GROUPS, COMMANDS, INTERRUPTED, OPTIONS, OTHER_NAMES, OTHER_OPTIONS
from clew.cli.ascii_output import use_ascii_symbols
from clew.cli.completion import COMPLETE_VARIABLE
from clew.cli.options import FAILED, common
from clew.datadir import environment_problem
from clew.errors import ClewError, RemoteFailed, SourceUnreadable, UsageError
from clew.io.paths import escape_controls
from clew.io.signals import exit_on_signal

BROKEN_PIPE = 141


class _OutputClosed(Exception):
    """The output is a pipe whose reader has closed it."""


class LazyGroup(click.Group):
    """`list` lives in clew.cli.command_list, and so on."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"clew.cli.command_{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or suggest commands with a similar name."""
        name = args[0]
        if name == "help":
            if len(args) == 1:
                click.echo(ctx.get_help(), color=ctx.color)
                ctx.exit()
            return self.resolve_command(ctx, [*args[1:], "--help"])
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            from difflib import get_close_matches

            names = [OTHER_NAMES[name]] if name in OTHER_NAMES else get_close_matches(name, COMMANDS)
            similar = " or ".join(f"'{one}'" for one in names)
            ctx.fail(f"No such command '{name}'." + (f" Did you mean {similar}?" if similar else ""))
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete commands, from the table, and options."""
        commands = [CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in groups, from the table: no command is imported for it."""
        width = max(map(len, COMMANDS))
        for title, commands in COMMAND_GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in commands.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. click would turn a broken pipe into exit code 1, so it becomes another exception."""
        try:
            return _exit_code(ctx, super().invoke(ctx))
        except click.exceptions.Exit as leaving:
            raise click.exceptions.Exit(_exit_code(ctx, leaving.exit_code)) from None
        except BrokenPipeError:
            raise _OutputClosed from None
        except (ClewError, OSError) as error:
            # Printed here, because the context knows what has to be masked.
            raise click.exceptions.Exit(report_error(error)) from None

    def main(self, args: Sequence[str] | None = None, *rest: Any, **kwargs: Any) -> Any:
        """Run the command line; an error becomes one line on stderr and an exit code."""
        kwargs["standalone_mode"] = False
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                use_ascii_symbols(stream)
        try:
            code = super().main(args, *rest, **kwargs)
            sys.stdout.flush()
        except (Exception, KeyboardInterrupt) as error:
            code = report_error(error)
        sys.exit(code if isinstance(code, int) else 0)


def report_error(error: BaseException) -> int:
    """Print an error, and return its exit code."""
    try:
        raise error
    except click.ClickException as complaint:
        shown = _suggest_option(complaint) if isinstance(complaint, click.NoSuchOption) else complaint
        shown.show()
        return complaint.exit_code
    except ClewError as complaint:
        _print_error(f"{complaint}")
        return complaint.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("clew: interrupted", err=True)
        return INTERRUPTED
    except (_OutputClosed, BrokenPipeError):
        # Python flushes stdout once more at exit, which must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as failure:
        place = f"{escape_controls(str(failure.filename))}: " if failure.filename else ""
        _print_error(f"{place}{failure.strerror or failure}")
        return SourceUnreadable.exit_code
    except Exception as unexpected:
        if os.environ.get("CLEW_DEBUG"):
            raise
        _print_internal_error(unexpected)
        return 1


def _suggest_option(error: click.NoSuchOption) -> click.UsageError:
    """Suggest the option that has another name here, instead of those with a similar name."""
    option = OTHER_OPTIONS.get(error.option_name)
    if option and error.ctx is not None and any(option in parameter.opts for parameter in error.ctx.command.params):
        return click.UsageError(f"{error.message} Did you mean {option!r}?", error.ctx)
    return error


def _exit_code(context: click.Context, code: Any) -> Any:
    """The exit code. A host that did not answer counts more than success, or than nothing found."""
    return RemoteFailed.exit_code if context.meta.get(FAILED) and code in (None, 0, 1) else code


def _print_error(text: str) -> None:
    """Print one line to stderr, masked and without control characters."""
    from clew.cli.redaction import masked_for_people
    from clew.render.text_safety import one_line

    try:
        text = masked_for_people(text, counted=False)
    except ClewError as failure:
        # The user's own rules cannot be read. The text cannot be masked by them, so print that instead.
        from clew.redact.scanner import redact

        text = redact(str(failure))
    click.echo(one_line(f"clew: {text}"), err=True)


def _print_internal_error(error: Exception) -> None:
    """Print where an unexpected error was raised, without its message, which may quote a session."""
    from traceback import StackSummary, walk_tb

    lines = StackSummary.extract(walk_tb(error.__traceback__)).format()
    click.echo(f"clew: internal error ({type(error).__name__}). This is a bug, please report it:", err=True)
    click.echo("".join(lines), err=True, nl=False)
    click.echo("Set CLEW_DEBUG=1 for the full traceback.", err=True)


@click.group(
    cls=LazyGroup,
    help="\n\n".join(ABOUT),
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@common
@click.option("--version", is_flag=True, help=OPTIONS["--version"])
@click.pass_context
def main(context: click.Context, homes: tuple[str, ...], as_json: bool, version: bool) -> None:
    context.obj = {"homes": homes, "json": as_json}
    if version:
        from clew import __version__

        click.echo(f"clew {__version__}")
        return
    problem = environment_problem()
    # An agent must not notice that its hook has no folder to write to.
    if problem is not None and context.invoked_subcommand != "hook":
        raise UsageError(problem)
    if context.invoked_subcommand is None:
        from clew.cli.overview import overview

        overview(context)


def run() -> None:
    """Run the command line; an interrupt while modules are loading ends it without a traceback."""
    try:
        with exit_on_signal():
            main(prog_name="clew", complete_var=COMPLETE_VARIABLE)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
