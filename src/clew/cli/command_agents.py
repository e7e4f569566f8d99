"""clew agents: which agents clew reads, where, and which versions of them wrote sessions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

import click
import msgspec

from clew.agents import registry
from clew.agents.base import Agent
from clew.cli.options import common, open_library, wants_json
from clew.cli.output import print_json, print_message, print_table, terminal_width
from clew.host import Host
from clew.io.paths import escape_invalid_utf8, folder_error
from clew.render.tables import Column, count
from clew.sources.local import is_folder, unreadable_folders

_COLUMNS = (
    Column("agent"),
    Column("name", drop_rank=3),
    Column("sessions", right=True),
    Column("versions", flexible=True, least=16, drop_rank=1),
    Column("tested", drop_rank=2),
    Column("folder", is_path=True, flexible=True, least=25),
    Column(""),
)


class _Folder(msgspec.Struct, frozen=True):
    """A folder that is read: whether it exists, which is unknown where it cannot be read, and the reason."""

    path: str
    exists: bool | None
    error: str | None


class _Row(msgspec.Struct, frozen=True):
    id: str
    title: str
    homepage: str
    sessions: int
    oldest_version: str | None
    newest_version: str | None
    newest_tested_version: str | None
    roots: list[_Folder]

    @property
    def folders(self) -> list[_Folder]:
        """Those that exist or cannot be read; one of another program counts only where the agent has sessions."""
        agent = registry.get(self.id)
        found = [folder for folder in self.roots if folder.exists is not False]
        return [folder for folder in found if self.sessions or not agent.shares(Path(folder.path))]

    @property
    def is_found(self) -> bool:
        return bool(self.sessions or self.folders)


@click.command("agents")
@common
@click.pass_context
def command(context: click.Context, /, homes: tuple[str, ...], as_json: bool) -> None:
    """List the agents that were found: sessions, versions that wrote them, newest tested version, and folders.

    A version newer than the tested one may write records that this version of clew does not know.
    """
    from clew.catalog.queries import agent_summaries, agent_versions
    from clew.cli.redaction import redaction

    library = open_library(context, homes)
    for folder in unreadable_folders(library.hosts):
        print_message(f"clew: {folder}")
    with library.catalog() as catalog:
        summaries, versions = agent_summaries(catalog.db), agent_versions(catalog.db)
    # There is no --redact here, so versions, which come from sessions, are masked whatever is printed.
    mask = redaction(context, for_programs=False).text
    rows = [
        _row(
            agent,
            library.hosts,
            summaries[agent.id]["sessions"] if agent.id in summaries else 0,
            [mask(version) for version in versions.get(agent.id, ())],
        )
        for agent in registry.load_all()
    ]
    if wants_json(context, as_json):
        print_json(msgspec.to_builtins(rows))
    else:
        _print(rows)


def _row(agent: Agent, hosts: Sequence[Host], sessions: int, versions: Sequence[str]) -> _Row:
    return _Row(
        agent.id,
        agent.title,
        agent.homepage,
        sessions,
        versions[0] if versions else None,
        versions[-1] if versions else None,
        agent.newest_tested_version or None,
        [_folder(root) for host in hosts for root in agent.roots(host)],
    )


def _folder(root: Path) -> _Folder:
    error = folder_error(str(root)) or None
    return _Folder(escape_invalid_utf8(str(root)), None if error else is_folder(root), error)


def _print(rows: Sequence[_Row]) -> None:
    """A line for each agent that was found, with its further folders below it; the other agents in one sentence."""
    lines: list[list[str]] = []
    for row in (each for each in rows if each.is_found):
        folders = [[folder.path, folder.error or ""] for folder in row.folders] or [["", ""]]
        cells = [row.id, row.title, count(row.sessions), _versions(row), row.newest_tested_version or ""]
        lines.append([*cells, *folders[0]])
        lines += [[""] * len(cells) + folder for folder in folders[1:]]
    if lines:
        print_table(_COLUMNS, lines, None)
    if absent := [row.id for row in rows if not row.is_found]:
        click.echo("")
        sentence = "Not found: " + ", ".join(absent)
        click.echo(fill(sentence, terminal_width() or 100, subsequent_indent="  ", break_on_hyphens=False))


def _versions(row: _Row) -> str:
    met = [row.oldest_version or "", row.newest_version or ""]
    return " to ".join(dict.fromkeys(met))
