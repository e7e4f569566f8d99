"""clew todos: the task list of a session, as it changed, or as it stood at a message."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator

import click
import msgspec
from msgspec import UNSET

from clew.analysis.todos import TodoChange, TodoState, progression
from clew.cli.options import choosing_project, common, open_library, wants_json
from clew.cli.output import print_json, print_message
from clew.cli.redaction import DATA, TEXT, redacting, redaction
from clew.cli.session_argument import session_argument
from clew.cli.sessions import branch_path
from clew.errors import UnknownReference
from clew.model import Todo
from clew.model.json import JSON
from clew.references import branch_of, message_of
from clew.render.text_safety import one_line
from clew.stored_session import StoredSession

_MARKS = {"completed": "[x]", "in_progress": "[>]", "pending": "[ ]"}
_WIDEST = 20


@click.command("todos")
@session_argument()
@redacting
@choosing_project
@common
@click.pass_context
def command(context: click.Context, /, reference: str, homes: tuple[str, ...], as_json: bool) -> int:
    """Print the task list of a session and how each message changed it, or as it was at one message (REF#12).

    Only the messages of one branch count. Where the thinking level was set, it is printed beside the message. Exit code
    1: the session never had a task list.
    """
    masking = redaction(context, DATA if wants_json(context, as_json) else TEXT)
    session = open_library(context, homes).get(reference, branches=True)
    branch = branch_of(reference)
    path = branch_path(session, branch) if branch is not None else None
    session = masking.session(session)
    wanted = message_of(reference)
    messages = list(_path(session, wanted, path))
    if wanted is not None and (not messages or messages[-1]["index"] != wanted):
        raise UnknownReference(f"session {session.id} has no message {wanted}")
    states = progression(messages)
    levels = dict(_levels(messages))
    if wants_json(context, as_json):
        print_json(_at(states, levels, wanted) if wanted is not None else [_row(one, levels) for one in states])
    elif wanted is not None:
        _print_list(states[-1].todos if states else [], levels.get(wanted))
    else:
        for state in states:
            _print_change(state, levels.get(state.index))
    if not states and not wants_json(context, as_json):
        print_message(
            "clew: this session never had a task list" if wanted is None else "clew: there was no task list yet",
            mask=False,
        )
    return 0 if states else 1


def _path(session: StoredSession, wanted: int | None, branch: list[str] | None) -> Iterator[dict[str, JSON]]:
    """The messages that led to the one wanted, to the end of a branch, or to where the conversation stands."""
    if branch is not None:
        on_branch = set(branch)
        for unit in session.units():
            if unit.is_message and unit.value["uuid"] in on_branch and unit.value["index"] <= (wanted or sys.maxsize):
                yield unit.value
        return
    tree = session.facts.tree
    indexes = tree.links.messages
    node = tree.leaf if wanted is None else next((n for n, index in enumerate(indexes) if index == wanted), -1)
    on_path = {indexes[step] for step in tree.links.ancestors(node) if indexes[step]}
    if wanted is None:
        on_path.update(indexes[step] for step in tree.path)
    for unit in session.units():
        if unit.is_message and unit.value["index"] in on_path:
            yield unit.value


def _levels(messages: list[dict[str, JSON]]) -> Iterator[tuple[int, str]]:
    """For each message the thinking level that held when it was written."""
    level: str | None = None
    for message in messages:
        thinking = (message.get("metadata") or {}).get("thinking") or {}
        if thinking.get("disabled") is True:
            level = "off"
        elif thinking.get("level"):
            level = str(thinking["level"])
        if level is not None:
            yield message["index"], level


def _row(state: TodoState, levels: dict[int, str]) -> dict[str, JSON]:
    row: dict[str, JSON] = msgspec.to_builtins(state)
    return {**row, "thinking": levels.get(state.index)}


def _at(states: list[TodoState], levels: dict[int, str], index: int) -> dict[str, JSON]:
    todos = states[-1].todos if states else []
    return {"index": index, "todos": msgspec.to_builtins(todos), "thinking": levels.get(index)}


def _print_list(todos: list[Todo], level: str | None) -> None:
    if level is not None:
        click.echo(f"thinking: {one_line(level)}")
    for todo in todos:
        click.echo(_line(todo))


def _print_change(state: TodoState, level: str | None) -> None:
    done = sum(todo.status == "completed" for todo in state.todos)
    thinking = f", thinking {one_line(level)}" if level is not None else ""
    click.echo(f"message {state.index}: {_drawn(state.todos)} {done} of {len(state.todos)} done{thinking}")
    for change in state.changes:
        click.echo(f"  {_changed(change)}")


def _drawn(todos: list[Todo]) -> str:
    """The progress of the list: a sign for each item, limited to the available width."""
    counts = Counter(todo.status for todo in todos)
    signs = "#" * counts["completed"] + ">" * counts["in_progress"]
    signs = signs.ljust(len(todos), ".")
    width = min(len(signs), _WIDEST)
    return "[" + "".join(signs[at * len(signs) // width] for at in range(width)) + "]"


def _changed(change: TodoChange) -> str:
    if change.after is not None:
        return _line(change.after)
    assert change.before is not None
    return f"removed: {_line(change.before)[4:]}"


def _line(todo: Todo) -> str:
    status = todo.status if todo.status is not UNSET else ""
    doing = todo.active_form if status == "in_progress" and isinstance(todo.active_form, str) else None
    words = todo.content if todo.content is not UNSET else doing or ""
    return one_line(f"{_MARKS.get(status, f'[{status}]')} {words}")
