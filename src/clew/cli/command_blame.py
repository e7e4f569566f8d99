"""clew blame: which session, message and prompt wrote each line of a file."""

from __future__ import annotations

import re
from pathlib import Path

import click

from clew import __version__
from clew.blame import BlamedFile, blame_file, line_row, line_text
from clew.cli.options import OptionWithOldNames, common, open_library, wants_json
from clew.cli.output import print_json, print_message
from clew.cli.redaction import Redaction, redacting, redaction
from clew.cli.sessions import suggest_moved_project
from clew.errors import UnknownReference
from clew.file_history.blame import Line
from clew.library import Library
from clew.model.json import JSON
from clew.model.time import spell_time
from clew.render.tables import counted, short_ids
from clew.sources import moved_projects

_LINE = re.compile(r":(\d{1,9})$")
_MAX_PROMPT_CHARS = 80


@click.command("blame")
@click.argument("file", metavar="FILE[:LINE]")
@click.option("--as", "recorded", metavar="PATH", help="The path of the file in the records, if it was moved since.")
@click.option("--all-sessions", is_flag=True, help="Also read sessions that name the file, but never its folder.")
@click.option(
    "--format",
    "form",
    cls=OptionWithOldNames,
    old_names=["--to"],
    metavar="FORMAT",
    type=click.Choice(["agent-trace"]),
    help="agent-trace: a record of Agent Trace, with line ranges, sessions and models, without text.",
)
@redacting
@common
@click.pass_context
def command(
    context: click.Context,
    /,
    file: str,
    recorded: str | None,
    all_sessions: bool,
    form: str | None,
    homes: tuple[str, ...],
    as_json: bool,
) -> int:
    """Show which session, message and prompt wrote each line of a file, or one line.

    Reads every session that changed the file, or has a call that names the file and its folder. A line is attributed to
    a message only if the records prove it; other lines are unknown. Exit code 1: no line is known.
    """
    path, number = _split_line_number(file)
    library = open_library(context, homes)
    blamed = blame_file(library, path, recorded, _warn, all_sessions=all_sessions)
    lines = blamed.lines
    if blamed.may_miss_origins:
        unread = counted(blamed.unread_sessions, "session")
        is_path_known = blamed.sessions or recorded is not None
        hint = "--all-sessions reads them" + ("" if is_path_known else "; --as PATH gives its recorded path")
        _warn(f"not read: {unread} that may mean another file of this name; {hint}")
    elif not blamed.sessions:
        hint = "--as PATH gives its recorded path; `clew sources map OLD` if the project was moved"
        _warn(f"no session names {path}; {hint}")
    if not any(line.origin for line in lines):
        moved, parents = moved_projects.load(), map(str, path.absolute().parents)
        suggest_moved_project(library, *(moved_projects.recorded_paths(parent, moved) for parent in parents))
    if number is not None:
        if not 0 < number <= len(lines):
            raise UnknownReference(f"{path} has {len(lines)} lines")
        lines = [lines[number - 1]]
    masking = redaction(context, for_programs=wants_json(context, as_json) and form is None)
    if masking.is_on:
        masking.learn_sessions(blamed.sessions_of(lines))
    if form is not None:
        print_json(masking.value(_trace_record(library, path, blamed, lines, masking)))
    elif wants_json(context, as_json):
        texts = masking.lines([line_text(line) for line in lines], str(path))
        rows = [{**line_row(line), "text": text} for line, text in zip(lines, texts, strict=True)]
        print_json(masking.value(rows))
    else:
        _print(lines, masking, str(path))
    return 0 if any(line.origin is not None for line in lines) else 1


def _warn(problem: str) -> None:
    print_message(f"clew: {problem}")


def _trace_record(
    library: Library, path: Path, blamed: BlamedFile, lines: list[Line], masking: Redaction
) -> dict[str, JSON]:
    from clew.interchange.agent_trace import trace_record

    models: dict[tuple[str, int], str] = {}
    for session in blamed.sessions_of(lines):
        for message in session.messages:
            if message.metadata and message.metadata.model and message.metadata.model.name:
                models[session.id, message.index] = message.metadata.model.name
    texts = [line_text(line) for line in lines]
    compared = zip(lines, texts, masking.lines(texts, str(path)), strict=True)
    return trace_record(
        path,
        blamed.lines,
        lines,
        lambda session, index: models.get((session, index)),
        masked_lines={line.number for line, text, masked in compared if masked != text} if masking.is_on else None,
        timestamp=spell_time(library.hosts[0].now()),
        clew_version=__version__,
    )


def _split_line_number(file: str) -> tuple[Path, int | None]:
    found = _LINE.search(file)
    if found is None or Path(file).exists():
        return Path(file), None
    return Path(file[: found.start()]), int(found[1])


def _print(lines: list[Line], masking: Redaction, path: str) -> None:
    from clew.render.text_safety import one_line, visible

    ids = {line.origin.session for line in lines if line.origin is not None}
    short = short_ids(ids, ids)
    names = list(map(one_line, masking.names([_name(line, short) for line in lines])))
    width = max(map(len, names), default=0)
    printed: set[str] = set()
    texts = masking.lines([line_text(line) for line in lines], path)
    for line, name, text in zip(lines, names, texts, strict=True):
        click.echo(f"{name:<{width}}  {line.number:>4}  {visible(text).rstrip()}")
    for line, name in zip(lines, names, strict=True):
        if line.origin is not None and name not in printed and line.origin.prompt is not None:
            printed.add(name)
            text = one_line(masking.value(line.origin.prompt[1]))
            print_message(f"{name}: {text if len(text) <= _MAX_PROMPT_CHARS else text[:_MAX_PROMPT_CHARS] + '…'}")


def _name(line: Line, short: dict[str, str]) -> str:
    if line.origin is None:
        return "unknown"
    mark = "?" if line.origin.certainty == "unproved" else ""
    return f"{line.origin.agent}:{short[line.origin.session]}#{line.origin.message}{mark}"
