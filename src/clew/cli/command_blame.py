"""clew blame: which session, message and prompt wrote each line of a file."""

from __future__ import annotations

import re
from pathlib import Path

import click

from clew.agents.file_evidence import absolute
from clew.agents.registry import load_all
from clew.cli.options import common, open_library, wants_json
from clew.cli.output import print_json, print_message
from clew.cli.redaction import DATA, TEXT, Redaction, redacting, redaction
from clew.cli.sessions import print_unreadable, suggest_moved_project
from clew.errors import SourceUnreadable, UnknownReference
from clew.file_history.blame import Line, Version, blame, mentions, plain_part, spellings, versions
from clew.file_history.history import FileHistory
from clew.io.compress import open_regular
from clew.io.paths import escape_invalid_utf8
from clew.library import Library
from clew.model.json import JSON
from clew.sources import moved_projects
from clew.stored_session import StoredSession

_LINE = re.compile(r":(\d{1,9})$")
_SHOWN = 40
_CALL_TEXT = frozenset({"input", "file"})
"""The kinds of text that are arguments of calls."""


@click.command("blame")
@click.argument("file", metavar="FILE[:LINE]")
@click.option("--as", "recorded", metavar="PATH", help="The path of the file in the records, if it was moved since.")
@redacting
@common
@click.pass_context
def command(context: click.Context, /, file: str, recorded: str | None, homes: tuple[str, ...], as_json: bool) -> int:
    """Show which session, message and prompt wrote each line of a file, or one line.

    Reads every session that mentions the file. A line is attributed to a message only if the records prove it; other
    lines are unknown. Exit code 1: no line is known.
    """
    path, number = _taken_apart(file)
    try:
        opened, _ = open_regular(path)
        with opened:
            now = opened.readall()
    except OSError as error:
        raise SourceUnreadable(f"{path}: {error.strerror}") from None
    names = spellings(path) if recorded is None else {absolute(recorded, None)}
    moved = moved_projects.load()
    names = {known for name in names for known in moved_projects.recorded_paths(name, moved)}
    library = open_library(context, homes)
    lines, sessions = _blamed(library, names, now)
    if not sessions:
        hint = "--as PATH gives its recorded path; `clew sources map OLD` if the project was moved"
        print_message(f"clew: no session names {path}; {hint}")
    if not any(line.origin for line in lines):
        parents = map(str, path.absolute().parents)
        suggest_moved_project(library, *(moved_projects.recorded_paths(parent, moved) for parent in parents))
    if number is not None:
        if not 0 < number <= len(lines):
            raise UnknownReference(f"{path} has {len(lines)} lines")
        lines = [lines[number - 1]]
    masking = redaction(context, DATA if wants_json(context, as_json) else TEXT)
    if masking.is_on:
        shown = {line.origin.session for line in lines if line.origin is not None}
        masking.learn_sessions(session for session in sessions if session.id in shown)
    if wants_json(context, as_json):
        texts = masking.lines([_text(line) for line in lines], str(path))
        rows = [{**_row(line), "text": text} for line, text in zip(lines, texts, strict=True)]
        print_json(masking.value(rows))
    else:
        _print(lines, masking, str(path))
    return 0 if any(line.origin is not None for line in lines) else 1


def _taken_apart(file: str) -> tuple[Path, int | None]:
    found = _LINE.search(file)
    if found is None or Path(file).exists():
        return Path(file), None
    return Path(file[: found.start()]), int(found[1])


def _blamed(library: Library, names: set[str], now: bytes) -> tuple[list[Line], list[StoredSession]]:
    """Return the lines of a file with their origins, and the sessions that may name it; none if nothing is known."""
    sessions = _sessions_naming(library, names)
    found: list[tuple[str, Version]] = []
    for session in sessions:
        try:
            found += versions(FileHistory(session.agent, session.source), session.id, names)
        except SourceUnreadable as error:
            print_message(f"clew: {error}")
    found.sort(key=lambda pair: pair[0])
    return blame(now, [version for _, version in found]), sessions if found else []


def _sessions_naming(library: Library, names: set[str]) -> list[StoredSession]:
    """The sessions that may have changed a file: their calls name it, or their agent records changes elsewhere too.

    The catalog finds the calls. What an agent records elsewhere is not in the catalog, so the files of its other
    sessions are searched for the name. The caller reads each session: only its records prove who wrote which line.
    """
    from clew.catalog.queries import sources_of_agents
    from clew.catalog.sessions import open_sessions
    from clew.catalog.sync_level import SyncLevel

    agents = [agent for agent in load_all() if agent.has_file_changes]
    parts = {plain_part(name) for name in names}
    # A name that JSON may spell in several ways is not searched for.
    unsure = [agent.id for agent in agents if agent.file_changes_outside_calls or "" in parts]
    with library.catalog(SyncLevel.TEXT) as catalog:
        naming = set[int]().union(*(catalog.sources_with_text(part, _CALL_TEXT) for part in parts if part))
        found = open_sessions(catalog.db, naming, library.hosts[0])
        others = open_sessions(catalog.db, sources_of_agents(catalog.db, unsure) - naming, library.hosts[0])
        print_unreadable(catalog.db)
    found = [session for session in found if session.agent in agents]
    found += [session for session in others if any(mentions(session.source, name) for name in names)]
    return sorted(found, key=lambda session: (session.agent.id, session.path))


def _row(line: Line) -> dict[str, JSON]:
    row: dict[str, JSON] = {"line": line.number, "text": _text(line), "session": None}
    if line.origin is not None:
        prompt = line.origin.prompt
        row |= {
            "session": line.origin.session,
            "agent": line.origin.agent,
            "message": line.origin.message,
            "time": line.origin.time,
            "prompt": {"message": prompt[0], "text": prompt[1]} if prompt is not None else None,
            "certainty": line.origin.certainty,
            "how": line.origin.how,
        }
    return row


def _text(line: Line) -> str:
    return escape_invalid_utf8(line.text.rstrip("\r\n"))


def _print(lines: list[Line], masking: Redaction, path: str) -> None:
    from clew.cli.command_list import short_ids
    from clew.render.text_safety import one_line, visible

    ids = {line.origin.session for line in lines if line.origin is not None}
    short = short_ids(ids, ids)
    names = list(map(one_line, masking.names([_name(line, short) for line in lines])))
    width = max(map(len, names), default=0)
    said: set[str] = set()
    texts = masking.lines([_text(line) for line in lines], path)
    for line, name, text in zip(lines, names, texts, strict=True):
        click.echo(f"{name:<{width}}  {line.number:>4}  {visible(text).rstrip()}")
    for line, name in zip(lines, names, strict=True):
        if line.origin is not None and name not in said and line.origin.prompt is not None:
            said.add(name)
            text = one_line(masking.value(line.origin.prompt[1]))
            print_message(f"{name}: {text if len(text) <= _SHOWN * 2 else text[: _SHOWN * 2] + '…'}")


def _name(line: Line, short: dict[str, str]) -> str:
    if line.origin is None:
        return "unknown"
    mark = "?" if line.origin.certainty == "unproved" else ""
    return f"{line.origin.agent}:{short[line.origin.session]}#{line.origin.message}{mark}"
