"""clew todos: the task list of a session, as it changed, or as it stood at a message."""

from __future__ import annotations

from collections import Counter

import click
from msgspec import UNSET

from clew.analysis.todos import TodoChange, TodoState
from clew.cli.options import choosing_project, common, open_library, wants_json
from clew.cli.output import print_json, print_message
from clew.cli.redaction import redacting, redaction
from clew.cli.session_argument import session_argument
from clew.cli.sessions import branch_path
from clew.model import Todo
from clew.references import branch_of, message_of
from clew.render.text_safety import one_line
from clew.todo_history import todo_history

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
    masking = redaction(context, for_programs=wants_json(context, as_json))
    session = open_library(context, homes).get(reference, branches=True)
    branch = branch_of(reference)
    path = branch_path(session, branch) if branch is not None else None
    session = masking.session(session)
    wanted = message_of(reference)
    history = todo_history(session, wanted, path)
    states, levels = history
    if wants_json(context, as_json):
        print_json(history.row_at(wanted) if wanted is not None else history.rows())
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
