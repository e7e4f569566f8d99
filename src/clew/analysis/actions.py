"""What a tool call does, in words of no agent: a command, changes to files, a file written, a list of tasks.

The shape of the input decides, not the tool's name, so that every agent's tools are covered; what has no shape that is
known stays as it is, argument by argument.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from clew.analysis.questions import Asked, as_questions
from clew.analysis.todos import as_todos
from clew.model import Todo
from clew.model.json import JSON

PATHS = ("file_path", "filePath", "filepath", "notebook_path", "absolute_path", "target_file", "path", "filename")
"""Arguments that name a file, in the tools of all agents."""
_ANY_PATH = frozenset(PATHS)
_COMMANDS = ("command", "cmd", "commands")
_FOLDERS = ("cwd", "workdir", "working_directory", "dir_path", "directory")
OLD_AND_NEW_TEXTS = (
    ("old_string", "new_string"),
    ("old_str", "new_str"),
    ("oldString", "newString"),
    ("oldText", "newText"),
    ("old_text", "new_text"),
    ("old", "new"),
)
"""Arguments with the old and the new text of an edit."""
_CONTENT = ("content", "contents", "file_text", "new_text")
_PATCHES = ("input", "patch")
_TODOS = ("todos", "plan")
_ANY_COMMAND, _ANY_FOLDER = frozenset(_COMMANDS), frozenset(_FOLDERS)
_ANY_CHANGE = frozenset({"edits", *_PATCHES, *(name for pair in OLD_AND_NEW_TEXTS for name in pair)})
_ANY_CONTENT, _ANY_TODO = frozenset(_CONTENT), frozenset(_TODOS)
# One set operation finds that none of the names occurs; most calls have one or two arguments.
PATCH_START = "*** Begin Patch"
_PATCH_END = "*** End Patch"
_PATCHED_FILE = re.compile(
    r"^\*\*\* (Add|Update|Delete) File: (.+)$(?:\n\*\*\* Move to: (.+)$)?|^\*\*\* End Patch", re.MULTILINE
)
_EXIT = re.compile(r"(?:Process exited with code|Exit [Cc]ode:?) (-?\d{1,10})\b")
_EXIT_HEAD, _EXIT_TAIL = 400, 200
_WRAPPED = '{"output":'
_STATUS_LINES = re.compile(
    r"(?:(?:Chunk ID: \S{1,64}|Exit code: -?\d{1,9}|Wall time: [\d.]{1,20} seconds?|Process exited with code -?\d{1,9}"
    r"|Process running with session ID \d{1,19}|Original token count: \d{1,19}|Total output lines: \d{1,19})\n)+"
    r"Output:(?:\n|\Z)"
)
"""What some agents put before the output of a command."""
_SECONDS = re.compile(r"^Wall time: (\d{1,12}(?:\.\d{0,9})?) ", re.MULTILINE)
_RUNNING = re.compile(r"^Process running with session ID (\d+)$", re.MULTILINE)
# Some agents change files by a command of theirs, with the patch behind it or on its standard input.
_PATCHING = re.compile(
    r"\s*apply_?patch\s+(?:<<-?\s*(?P<quote>['\"]?)(?P<end>\w+)(?P=quote)\s*\n)?(?P<patch>\*\*\* Begin Patch\n.*)",
    re.DOTALL,
)


class Change(NamedTuple):
    """A change to a file as signed lines: " " for what stays, "-" for what went, "+" for what came."""

    path: str | None
    lines: str


class Action(msgspec.Struct, frozen=True, gc=False):
    """What a call asks for; `rest` are the arguments that the other fields do not tell."""

    command: str | None = None
    folder: str | None = None
    changes: tuple[Change, ...] = ()
    path: str | None = None
    content: str | None = None
    todos: list[Todo] | None = None
    note: str | None = None
    rest: dict[str, JSON] = {}
    other: JSON = None
    """The input of a call whose arguments are no object."""
    questions: tuple[Asked, ...] = ()


def action(arguments: JSON) -> Action:
    """What a call with this input asks for."""
    if isinstance(arguments, str):
        changes = tuple(patched(arguments)) if arguments.lstrip().startswith(PATCH_START) else ()
        return Action(changes=changes, other=None if changes else arguments)
    if not isinstance(arguments, dict):
        return Action(other=arguments)
    # Switches that are off say nothing.
    rest = {key: value for key, value in arguments.items() if value is not None and value is not False}
    note = rest.pop("description") if type(rest.get("description")) is str else None
    has_path = not _ANY_PATH.isdisjoint(rest)
    # An editor's command is one word about a file, not a line for a shell.
    command, folder = _command(rest) if not has_path else (None, None)
    todos = _todos(rest) if not _ANY_TODO.isdisjoint(rest) else None
    if command is not None:
        patches = _patches(command)
        if patches and folder is not None:
            rest["folder"] = folder
        if patches:
            return Action(None, None, patches, None, None, todos, note, rest)
        return Action(command, folder, (), None, None, todos, note, rest)
    if "questions" in rest and (questions := as_questions(rest["questions"])):
        del rest["questions"]
        return Action(todos=todos, note=note, rest=rest, questions=questions)
    changes = tuple(_changes(rest)) if not _ANY_CHANGE.isdisjoint(rest) else ()
    if changes or not has_path:
        return Action(None, None, changes, None, None, todos, note, rest)
    content = _content(rest) if not _ANY_CONTENT.isdisjoint(rest) else None
    return Action(None, None, changes, _take(rest, PATHS), content, todos, note, rest)


class Printed(NamedTuple):
    """What a command printed, without the JSON or the status lines that the agent put around it."""

    text: str
    exit_code: int | None
    seconds: float | None
    running: str | None = None
    """The id of the process, where it had not ended yet."""


def printed(output: str) -> Printed | None:
    """The output of a command out of its wrapping; None for what has none that is known."""
    if not output.startswith(_WRAPPED):
        status = _STATUS_LINES.match(output)
        return _after_status(output, status[0]) if status is not None else None
    try:
        value = msgspec.json.decode(output, type=_Wrapped)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None
    return Printed(value.output, value.metadata.exit_code, value.metadata.duration_seconds)


def _after_status(output: str, status: str) -> Printed:
    seconds, running = _SECONDS.search(status), _RUNNING.search(status)
    return Printed(
        output[len(status) :],
        exit_code(status),
        float(seconds[1]) if seconds is not None else None,
        running[1] if running is not None else None,
    )


class _Besides(msgspec.Struct, forbid_unknown_fields=True):
    exit_code: int | None = None
    duration_seconds: float | None = None


class _Wrapped(msgspec.Struct, forbid_unknown_fields=True):
    output: str
    metadata: _Besides


def exit_code(output: JSON) -> int | None:
    """The exit code in the output of a command, at its beginning or its end."""
    if type(output) is not str:
        output = output[0].get("text") if isinstance(output, list) and output and isinstance(output[0], dict) else None
        if not isinstance(output, str):
            return None
    # Most outputs have no exit code; this check needs no copy.
    if output.find("xit", 0, _EXIT_HEAD) < 0 and output.find("xit", -_EXIT_TAIL) < 0:
        return None
    found = _EXIT.search(output, 0, _EXIT_HEAD) or _EXIT.search(output, max(0, len(output) - _EXIT_TAIL))
    return int(found[1]) if found is not None else None


def difference(old: str, new: str) -> str:
    """Old and new text line by line: what both begin and end with as context, the rest as removed and added.

    Linear in time, where the shortest difference is not.
    """
    before, after = _lines(old), _lines(new)
    head, tail = common_ends(before, after)
    signed = (
        (" ", before[:head]),
        ("-", before[head : len(before) - tail]),
        ("+", after[head : len(after) - tail]),
        (" ", before[len(before) - tail :]),
    )
    return "\n".join([sign + f"\n{sign}".join(lines) for sign, lines in signed if lines])


def common_ends(before: list[str], after: list[str]) -> tuple[int, int]:
    """How many lines both begin with, and how many of the others both end with."""
    head = _alike(before, after)
    return head, _alike(before[head:][::-1], after[head:][::-1])


def _alike(one: list[str], other: list[str]) -> int:
    """How many lines both begin with."""
    count = 0
    for line, same in zip(one, other, strict=False):
        if line != same:
            break
        count += 1
    return count


class PatchedFile(NamedTuple):
    """What a patch in the format of `apply_patch` does to one file."""

    op: str
    """Add, Update or Delete"""
    path: str
    target: str | None
    """Where the file is moved."""
    lines: str
    """Signed lines; none for a file that is deleted."""


def patched_files(patch: str) -> Iterator[PatchedFile]:
    """The files of a patch, also of a damaged one or of one that other text surrounds."""
    heads = list(_PATCHED_FILE.finditer(patch))
    ends = [*(head.start() for head in heads[1:]), len(patch)]
    for head, end in zip(heads, ends, strict=False):
        op, path, target = head.groups()
        if op is not None:
            yield PatchedFile(op, path.strip(), target.strip() if target else None, patch[head.end() : end].strip("\n"))


def patched(patch: str) -> Iterator[Change]:
    """The changes of a patch, file by file."""
    files = list(patched_files(patch))
    if not files:
        yield Change(None, patch)
    for file in files:
        moved = f"*** Move to: {file.target}\n" if file.target else ""
        yield Change(file.path, moved + file.lines)


def _patches(command: str) -> tuple[Change, ...]:
    """The changes of a command that does nothing but patch files."""
    found = _PATCHING.fullmatch(command) if PATCH_START in command else None
    if found is None:
        return ()
    patch = found["patch"].rstrip()
    if found["end"] is not None and not patch.endswith(f"\n{found['end']}"):
        return ()
    patch = patch.removesuffix(found["end"] or "").rstrip()
    return tuple(patched(patch)) if patch.endswith(_PATCH_END) else ()


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _command(rest: dict[str, JSON]) -> tuple[str | None, str | None]:
    if _ANY_COMMAND.isdisjoint(rest):
        return None, None
    for key in _COMMANDS:
        command = rest.get(key)
        if isinstance(command, list) and command and all(isinstance(word, str) for word in command):
            # ["bash", "-lc", script] is a script; anything else is a program and its arguments, or a list of scripts.
            is_script = len(command) == 3 and command[1] in ("-c", "-lc")
            separator = "\n" if key == "commands" else " "
            command = command[2] if is_script else separator.join(command)
        if isinstance(command, str):
            del rest[key]
            return command, _take(rest, _FOLDERS) if not _ANY_FOLDER.isdisjoint(rest) else None
    return None, None


def _changes(rest: dict[str, JSON]) -> Iterator[Change]:
    edits = rest.get("edits")
    pairs = [_pair(edit) for edit in edits] if isinstance(edits, list) else []
    if isinstance(edits, list) and pairs and None not in pairs:
        del rest["edits"]
        path = _take(rest, PATHS)
        for edit, (old, new) in zip(edits, filter(None, pairs), strict=True):
            yield Change(path, difference(edit[old], edit[new]))
        return
    pair = _pair(rest)
    if pair is not None:
        old, new = pair
        yield Change(_take(rest, PATHS), difference(rest.pop(old), rest.pop(new)))
        return
    for key in _PATCHES:
        text = rest.get(key)
        if isinstance(text, str) and text.startswith(PATCH_START):
            yield from patched(rest.pop(key))


def _pair(value: JSON) -> tuple[str, str] | None:
    """The names under which an input gives the old text and the new one; None where it gives none."""
    if isinstance(value, dict):
        for old, new in OLD_AND_NEW_TEXTS:
            if isinstance(value.get(old), str) and isinstance(value.get(new), str):
                return old, new
    return None


def _content(rest: dict[str, JSON]) -> str | None:
    if not any(isinstance(rest.get(key), str) for key in PATHS):
        return None
    return _take(rest, _CONTENT)


def _todos(rest: dict[str, JSON]) -> list[Todo] | None:
    for key in _TODOS:
        if isinstance(rest.get(key), list) and all(isinstance(item, dict) for item in rest[key]):
            return as_todos(rest.pop(key))
    return None


def _take(rest: dict[str, JSON], names: tuple[str, ...]) -> str | None:
    for name in names:
        if type(rest.get(name)) is str:
            value: str = rest.pop(name)
            return value
    return None
