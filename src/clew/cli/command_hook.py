"""clew hook: agents archive a session when it ends."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clew.cli.install_commands import (
    agent_option,
    choose_agents,
    clew_command,
    configured_home_option,
    configured_host,
    plan_and_apply_all,
)
from clew.cli.options import as_json_option, dry_run_option, target_host, wants_json
from clew.cli.output import print_message
from clew.errors import ClewError, SourceUnreadable

if TYPE_CHECKING:
    from clew.cli.redaction import Redaction
    from clew.hooks.install import HookAddition
    from clew.host import Host

SHOWN_RUNS = 5


@click.group("hook")
def command() -> None:
    """Let agents archive a session when it ends.

    `clew hook install` adds a hook to the configuration of Claude Code, Codex and Gemini CLI. At the end of a session,
    the agent then runs `clew hook run`, which archives the files of this session as `clew archive` does.
    """


@command.command("install")
@agent_option(required=False)
@dry_run_option()
@configured_home_option
@click.pass_context
def install(context: click.Context, /, name: str | None, dry_run: bool, target_home: Path | None) -> int:
    """Add the hook to agents, after printing the change.

    Other hooks and settings stay as they are. What the file held before is kept in clew's data folder: `clew hook
    uninstall` restores it byte for byte, or only removes the hook if the file was changed since.
    """
    from clew.config_file_edits import plan_install

    additions = _additions(context, name, target_home)
    return plan_and_apply_all(plan_install, additions, is_named=name is not None, dry_run=dry_run)


@command.command("uninstall")
@agent_option(required=False)
@dry_run_option()
@configured_home_option
@click.pass_context
def uninstall(context: click.Context, /, name: str | None, dry_run: bool, target_home: Path | None) -> int:
    """Remove the hook from agents, after printing the change. The archive stays."""
    from clew.config_file_edits import plan_uninstall

    additions = _additions(context, name, target_home)
    return plan_and_apply_all(plan_uninstall, additions, is_named=name is not None, dry_run=dry_run)


def _additions(context: click.Context, name: str | None, target_home: Path | None) -> list[HookAddition]:
    from clew.hooks.install import hook_addition

    host = configured_host(context, target_home)
    return choose_agents(host, name, lambda agent: hook_addition(agent, host, clew_command()), "hooks")


@command.command("status")
@configured_home_option
@as_json_option
@click.pass_context
def status(context: click.Context, /, target_home: Path | None, as_json: bool) -> int:
    """Show which agents have the hook, and what it did last.

    Exit code 1: no agent has it.
    """
    import msgspec

    from clew.cli.output import print_json
    from clew.cli.redaction import Redaction
    from clew.hooks.log import load_runs

    rows = _hook_rows(target_host(context, target_home))
    try:
        runs = [{"time": time, **msgspec.to_builtins(run)} for time, run in load_runs()]
    except SourceUnreadable as error:
        runs = None
        print_message(f"the last runs are not known: {error}")
    if wants_json(context, as_json):
        print_json({"agents": rows, "runs": runs})
    else:
        _print_status(rows, runs, Redaction())
    return 0 if any(row["installed"] for row in rows) else 1


def _hook_rows(host: Host) -> list[dict[str, Any]]:
    """Every agent that has hooks, with the file and the command of the hook in it."""
    from clew.agents import registry
    from clew.config_file_edits import read_file
    from clew.hooks.install import hook_addition

    rows: list[dict[str, Any]] = []
    for agent in registry.load_all():
        addition = hook_addition(agent, host)
        if addition is None:
            continue
        row: dict[str, Any] = {"agent": agent.id, "path": str(addition.file.path), "command": None, "problem": None}
        try:
            text = read_file(addition.file)
            row["command"] = addition.command_in(text)
            if addition.is_program_missing(text):
                row["problem"] = "its program is gone: run `clew hook install`"
        except (ClewError, OSError, ValueError) as error:
            row["problem"] = str(error)
        is_installed = row["command"] is not None
        rows.append({**row, "installed": is_installed, "note": addition.note or None if is_installed else None})
    return rows


def _print_status(rows: list[dict[str, Any]], runs: list[dict[str, Any]] | None, masking: Redaction) -> None:
    """Print the agents and the last runs; None: they are not known."""
    from clew.cli.output import print_table
    from clew.hooks.log import OUTCOMES
    from clew.host import Host
    from clew.model.time import parse_time
    from clew.render.tables import Column, ago

    states = [
        [row["agent"], row["problem"] or ("installed" if row["installed"] else "not installed"), row["path"]]
        for row in rows
    ]
    print_table([Column("agent"), Column("hook"), Column("file")], states, masking)
    for note in dict.fromkeys(row["note"] for row in rows if row["note"]):
        print_message(note)
    if not runs:
        if runs is not None:
            print_message("no hook was run yet")
        return
    now = Host.local().now()
    cells = []
    for run in runs[:SHOWN_RUNS]:
        text = OUTCOMES.get(run["outcome"], run["outcome"]) + (f" ({run['error']})" if run["error"] else "")
        cells.append([ago(parse_time(run["time"]), now), run["agent"] or "", run["session"] or "", text])
    click.echo()
    print_table([Column("run"), Column("agent"), Column("session"), Column("outcome")], cells, masking)


class _LenientCommand(click.Command):
    """A command that no option makes fail: a hook may have been installed by a later version of clew."""

    ignore_unknown_options = True
    allow_extra_args = True

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, list(args))
        except click.UsageError:
            ctx.params = {"name": None, "foreground": "--foreground" in args}
            return []


@command.command("run", cls=_LenientCommand)
@click.option("--agent", "name", metavar="ID", help="The agent that runs the hook.")
@click.option("--foreground", is_flag=True, help="Archive before the command ends, instead of in the background.")
@click.pass_context
def run(context: click.Context, /, name: str | None, foreground: bool) -> int:
    """Archive the session that ended. Agents run this.

    The agent describes the session as JSON on standard input. Only a session that clew finds itself in the folders of
    the agent is archived. The work is done in the background, and `clew hook status` shows what became of it.
    Nothing is printed, and the exit code is always 0, also with options that this version does not know.
    """
    homes = context.find_root().obj["homes"]
    try:
        if foreground:
            _archive(name, target_host(context, None))
        else:
            _start_in_background(name, homes)
    except Exception:
        # The agent must not fail because of its hook.
        return 0
    return 0


def _start_in_background(name: str | None, homes: tuple[str, ...]) -> None:
    """Start a process that outlives this one and the agent, and reads the input in place of this one."""
    from subprocess import DEVNULL, Popen

    named = [word for home in homes for word in ("--home", home)]
    options = ["--agent", name] if name is not None else []
    Popen(
        # -P: no module is loaded from the current folder, which may hold untrusted code.
        [sys.executable, "-P", "-m", "clew", *named, "hook", "run", *options, "--foreground"],
        stdin=DEVNULL if sys.stdin is None or sys.stdin.isatty() else None,
        stdout=DEVNULL,
        stderr=DEVNULL,
        start_new_session=True,
    )


def _archive(name: str | None, host: Host) -> None:
    from clew.hooks.capture import MAX_INPUT_BYTES, archive_ended_session
    from clew.hooks.log import append_run

    hook_input = b"" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.buffer.read(MAX_INPUT_BYTES + 1)
    append_run(archive_ended_session(name, hook_input, host), host.now())
