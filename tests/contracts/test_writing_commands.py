"""SECURITY.md names every command that writes outside of clew's data folder; the others write nothing there."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from clew.cli.main import main
from clew.errors import UsageError
from clew.host import data_dir
from tests.cli.running import BELL, FORKED, LATEST, clew

PAGE = Path(__file__).resolve().parents[2] / "SECURITY.md"

READING_COMMANDS: dict[str, list[str] | None] = {
    "list": [],
    "show": [LATEST],
    "tail": [LATEST],
    "watch": ["--once"],
    "graph": [FORKED],
    "todos": [LATEST],
    "annotate set": [LATEST, "--star"],
    "annotate show": [LATEST],
    "annotate list": [],
    "annotate import": None,
    "web": None,
    "search": ["tide"],
    "stats": [],
    "statusline": None,
    "mcp": None,
    "sql": ["SELECT 1"],
    "files": [LATEST],
    "diff": [f"{LATEST}#1..9"],
    "blame": ["tide.py"],
    "commits": [],
    "redact scan": [],
    "bundle verify": None,
    "branches": [BELL],
    "archive list": [],
    "hook status": [],
    "skill show": [],
    "archive hold list": [],
    "verify": [],
    "validate": [],
    "lake spark-job": [],
    "sync": [],
    "sources": [],
    "sources add": None,
    "sources check": [],
    "sources fetch": [],
    "sources list": [],
    "sources map": ["/old", "."],
    "sources remove": None,
    "sources unmap": ["/old"],
    "sources name": ["moon", "Month"],
    "sources unname": ["moon"],
    "agents": [],
    "schema": [],
    "completion": ["bash"],
}
"""The commands that write nothing outside of clew's data folder, each with arguments to run it.

None: not run here. It runs on after the test, or needs another machine or a file."""


def runnable_commands(group: click.Group, parents: tuple[str, ...] = ()) -> Iterator[str]:
    """The names of all commands, such as `archive list`, and of groups that do something themselves."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield " ".join((*parents, name))
        if isinstance(command, click.Group):
            yield from runnable_commands(command, (*parents, name))


def documented_commands() -> set[str]:
    """The commands in the first column of the table below "What writes"."""
    section = PAGE.read_text(encoding="utf-8").partition("## What writes")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])}


def files_below(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Modification time and content of each file."""
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.rglob("*") if path.is_file()}


def test_every_command_is_known_to_write_or_to_read() -> None:
    commands = set(runnable_commands(main))
    assert documented_commands() | set(READING_COMMANDS) == commands
    assert not documented_commands() & set(READING_COMMANDS)


@pytest.mark.parametrize("name", [name for name, arguments in READING_COMMANDS.items() if arguments is not None])
def test_reading_command_writes_only_to_the_data_folder(
    name: str, home: Path, synced_demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tide.py").write_text("print()\n")
    monkeypatch.chdir(tmp_path)
    before = files_below(synced_demo), files_below(tmp_path)
    done = clew("--home", synced_demo, *name.split(), *(READING_COMMANDS[name] or []))
    assert done.code != UsageError.exit_code, done.err
    assert (files_below(synced_demo), files_below(tmp_path)) == before
    assert not [path for path in files_below(home) if not Path(path).is_relative_to(data_dir())]
