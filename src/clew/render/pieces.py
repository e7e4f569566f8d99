"""Converts the arguments of a tool call into parts: commands, diffs, questions, task lists, fields."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from clew.analysis.actions import Action, action
from clew.analysis.questions import Asked, answers, chosen
from clew.analysis.todos import compare_todos
from clew.model import Todo
from clew.model.json import JSON
from clew.render.detail import FULL
from clew.render.parts import Code, Command, Diff, Fields, Option, Piece, Question, Task, Tasks

SHORT = 200
"""An argument of one line up to this length is a field; any other is a block."""

_LANGUAGES = {
    "bash": "sh", "c": "c", "cc": "cpp", "cpp": "cpp", "cs": "csharp", "css": "css", "el": "elisp", "go": "go",
    "h": "c", "html": "html", "java": "java", "js": "javascript", "json": "json", "jsx": "jsx", "kt": "kotlin",
    "lua": "lua", "md": "markdown", "php": "php", "py": "python", "rb": "ruby", "rs": "rust", "sh": "sh",
    "sql": "sql", "swift": "swift", "toml": "toml", "ts": "typescript", "tsx": "tsx", "xml": "xml",
    "yaml": "yaml", "yml": "yaml",
}  # fmt: skip
_DONE = "completed"


def call_pieces(
    arguments: JSON, before: list[Todo], result: JSON = None
) -> tuple[str | None, tuple[Piece, ...], list[Todo] | None]:
    """What a call says of itself, its pieces, and its task list, if it has one.

    `before` is the list before the call, `result` what the call returned.
    """
    asked = action(arguments)
    pieces: list[Piece] = []
    if asked.command is not None:
        pieces.append(Command(asked.command, asked.folder))
    elif asked.changes or asked.content is not None:
        pieces += _written(asked)
    if asked.todos is not None:
        pieces.append(tasks(before, asked.todos))
    if asked.questions:
        pieces += _questions(asked, result)
    path = asked.path if asked.content is None else None
    if asked.rest or path is not None:
        pieces += _arguments(path, asked.rest)
    if asked.other is not None:
        pieces.append(Code(asked.other) if isinstance(asked.other, str) else json_code(asked.other))
    return asked.note, tuple(pieces), asked.todos


def _written(asked: Action) -> Iterator[Piece]:
    """Changes to files, or a whole file."""
    for change in asked.changes:
        yield Diff(change.lines, change.path)
    if asked.content is not None:
        yield Code(asked.content, language_of(asked.path), asked.path)


def _questions(asked: Action, result: JSON) -> Iterator[Piece]:
    """Questions with their options and answers; answers may stand with the questions, too."""
    given = asked.rest.pop("answers") if isinstance(asked.rest.get("answers"), dict) else None
    known = {"answers": given} if given else result
    for question, said in zip(asked.questions, answers(asked.questions, known), strict=True):
        yield _question(question, *chosen(question, said))
        for option in question.options:
            if option.preview:
                yield Code(option.preview, title=option.label)


def _question(asked: Asked, labels: frozenset[str], answer: str | None) -> Question:
    words = [word for word in (asked.header, "several answers" if asked.is_many else None) if word]
    options = tuple(Option(one.label, one.description, one.label in labels) for one in asked.options)
    return Question(asked.question, ", ".join(words) or None, options, answer)


def _arguments(path: str | None, rest: dict[str, JSON]) -> list[Piece]:
    pairs: list[tuple[str, str]] = [("file", path)] if path is not None else []
    larger: list[Piece] = []
    for key, value in rest.items():
        if isinstance(value, str):
            if len(value) <= SHORT and "\n" not in value:
                pairs.append((key, value))
            else:
                larger.append(Code(value, title=key))
        elif isinstance(value, (bool, int, float)):
            pairs.append((key, str(value).lower() if isinstance(value, bool) else str(value)))
        else:
            larger.append(json_code(value, title=key))
    return [Fields(tuple(pairs)), *larger] if pairs else larger


def tasks(before: list[Todo], after: list[Todo]) -> Tasks:
    """A task list with the change of each item; removed items are at the end."""
    changes = compare_todos(before, after)
    became = {id(change.after): change for change in changes if change.after is not None}
    shown = []
    for todo in after:
        change = became.get(id(todo))
        shown.append(Task(_text(todo), _status(todo), change.kind if change is not None else None))
    gone = [Task(_text(one.before), _status(one.before), one.kind) for one in changes if one.before and not one.after]
    done = sum(task.status == _DONE for task in shown)
    return Tasks((*shown, *gone), done, len(shown))


def changed_tasks(before: list[Todo], after: list[Todo]) -> Tasks:
    """The progress of a task list, with changed items only."""
    whole = tasks(before, after)
    return Tasks(tuple(task for task in whole.tasks if task.change), whole.done, whole.total)


def _text(todo: Todo) -> str:
    return todo.content if isinstance(todo.content, str) else "(no words)"


def _status(todo: Todo) -> str:
    return todo.status if isinstance(todo.status, str) else "pending"


def json_code(value: JSON, level: int = FULL, title: str | None = None) -> Code:
    """A value as indented JSON."""
    import json  # few pages hold any

    return Code(json.dumps(value, indent=2, ensure_ascii=False, default=str), "json", title, level)


def language_of(path: str | None) -> str:
    """The language of a file, by its name."""
    return _LANGUAGES.get(PurePosixPath(path or "").suffix.removeprefix(".").lower(), "")
