"""A tool call's input as code: commands, changes and files as what they are, everything else as JSON.

The shape of the input decides, not the tool's name, so that every agent's tools are covered.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import PurePosixPath

import msgspec

from clew.model.json import JSON


class Code(msgspec.Struct, frozen=True):
    """Text that is shown exactly as it is. `title` is the file or thing it belongs to."""

    text: str
    language: str = ""
    title: str | None = None


_LANGUAGES = {
    "bash": "sh", "c": "c", "cc": "cpp", "cpp": "cpp", "cs": "csharp", "css": "css", "el": "elisp", "go": "go",
    "h": "c", "html": "html", "java": "java", "js": "javascript", "json": "json", "jsx": "jsx", "kt": "kotlin",
    "lua": "lua", "md": "markdown", "php": "php", "py": "python", "rb": "ruby", "rs": "rust", "sh": "sh",
    "sql": "sql", "swift": "swift", "toml": "toml", "ts": "typescript", "tsx": "tsx", "xml": "xml",
    "yaml": "yaml", "yml": "yaml",
}  # fmt: skip
_PATHS = ("file_path", "path", "filePath", "notebook_path", "filename")


def call_code(name: str, arguments: JSON) -> Iterator[Code]:
    """The input of a call."""
    if isinstance(arguments, str):
        yield Code(arguments, "diff" if name == "apply_patch" else "")
        return
    if not isinstance(arguments, dict):
        yield json_code(arguments)
        return
    rest = {key: value for key, value in arguments.items() if key != "description" or not isinstance(value, str)}
    for shown in (_command(rest), _edits(rest), _content(rest), _patch(rest)):
        yield from shown
    # Switches that are off say nothing.
    rest = {key: value for key, value in rest.items() if value is not None and value is not False}
    if rest:
        yield json_code(rest)


def json_code(value: JSON) -> Code:
    """A value as indented JSON."""
    return Code(json.dumps(value, indent=2, ensure_ascii=False, default=str), "json")


def language_of(path: str | None) -> str:
    """The language of a file, by its name."""
    return _LANGUAGES.get(PurePosixPath(path or "").suffix.removeprefix(".").lower(), "")


def diff(old: str, new: str) -> str:
    """Old and new text line by line: what both begin and end with as context, the rest as removed and added.

    Linear in time, where the shortest difference is not.
    """
    before, after = _lines(old), _lines(new)
    shorter = min(len(before), len(after))
    head = next((at for at in range(shorter) if before[at] != after[at]), shorter)
    tail = next((at for at in range(shorter - head) if before[-1 - at] != after[-1 - at]), shorter - head)
    lines = [f" {line}" for line in before[:head]]
    lines += [f"-{line}" for line in before[head : len(before) - tail]]
    lines += [f"+{line}" for line in after[head : len(after) - tail]]
    lines += [f" {line}" for line in before[len(before) - tail :]]
    return "\n".join(lines)


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _command(rest: dict[str, JSON]) -> Iterator[Code]:
    command = rest.get("command")
    if any(key in rest for key in _PATHS):
        # An editor's command is one word about a file, not a line for a shell.
        return
    if isinstance(command, list) and command and all(isinstance(word, str) for word in command):
        # ["bash", "-lc", script] is a script; anything else is a program and its arguments.
        is_script = len(command) == 3 and command[1] in ("-c", "-lc")
        command = command[2] if is_script else " ".join(command)
    if isinstance(command, str):
        del rest["command"]
        yield Code(command, "sh")


def _edits(rest: dict[str, JSON]) -> Iterator[Code]:
    edits = rest.get("edits")
    if isinstance(edits, list) and edits and all(_is_edit(edit) for edit in edits):
        path = _path(rest)
        del rest["edits"]
        for edit in edits:
            yield Code(diff(edit["old_string"], edit["new_string"]), "diff", path)
    elif _is_edit(rest):
        yield Code(diff(rest.pop("old_string"), rest.pop("new_string")), "diff", _path(rest))


def _is_edit(value: JSON) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(key), str) for key in ("old_string", "new_string"))


def _content(rest: dict[str, JSON]) -> Iterator[Code]:
    if isinstance(rest.get("content"), str) and any(isinstance(rest.get(key), str) for key in _PATHS):
        path = _path(rest)
        yield Code(rest.pop("content"), language_of(path), path)


def _patch(rest: dict[str, JSON]) -> Iterator[Code]:
    for key in ("input", "patch"):
        if isinstance(rest.get(key), str) and rest[key].startswith("*** Begin Patch"):
            yield Code(rest.pop(key), "diff")


def _path(rest: dict[str, JSON]) -> str | None:
    """The file a call speaks of, taken out of its input."""
    for key in _PATHS:
        if isinstance(rest.get(key), str):
            path: str = rest.pop(key)
            return path
    return None
