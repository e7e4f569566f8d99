"""What a session of Continue proves about files: what its tools were given, and what they answered.

`Read` shows a file whole, `Write` writes the characters that it is given, and edits answer with a unified diff of the
text as it is, with the characters that end its lines.
"""

from __future__ import annotations

from collections.abc import Iterator

from clew.agents.base import SourceFile, Unit
from clew.agents.continue_dev.records import is_document
from clew.agents.edits import changing, parse_hunks, patched, writing
from clew.agents.file_evidence import (
    Event,
    FileChange,
    WriterFinished,
    absolute,
    as_bytes,
    first_text,
    tool_call,
    writer_started,
)
from clew.agents.read_only_commands import is_read_only_command
from clew.model.json import JSON

_EDITS = ("Edit", "MultiEdit")
_WITHOUT_CHANGES = frozenset("Read List Search Fetch Checklist Skills Diff Status AskQuestion".split())
_DIFF = "\nDiff:\n"
_READ = "Content of "


def file_changes(_source: SourceFile, units: Iterator[Unit]) -> Iterator[Event]:
    """Everything a session proves, in its order."""
    calls: dict[str, tuple[str, dict[str, JSON], int]] = {}
    folder: str | None = None
    for unit in units:
        if not unit.is_message:
            workspace = unit.native.get("workspaceDirectory") if is_document(unit.native) else None
            folder = workspace if isinstance(workspace, str) else folder
            continue
        index = unit.value["index"]
        for block in unit.value["content"]:
            if block["type"] == "tool_use" and (call := tool_call(block)) is not None:
                key, name, given = call
                calls[key] = name, given, index
                if _can_change_any_file(name, given):
                    yield writer_started(key, index, name, given.get("command"))
            elif block["type"] == "tool_result" and block["tool_id"] in calls:
                name, given, at = calls.pop(block["tool_id"])
                if _can_change_any_file(name, given):
                    yield WriterFinished(block["tool_id"], index)
                path = first_text(given, "filepath", "file_path")
                if path is not None and block.get("is_error") is not True:
                    yield from _change(name, given, absolute(path, folder), at, index, str(block.get("output") or ""))


def _can_change_any_file(name: str, given: dict[str, JSON]) -> bool:
    command = given.get("command")
    if name == "Bash" and isinstance(command, str):
        return not is_read_only_command(command)
    return name not in (*_EDITS, "Write") and name not in _WITHOUT_CHANGES


def _change(name: str, given: dict[str, JSON], path: str, at: int, done: int, output: str) -> Iterator[FileChange]:
    if name == "Read":
        content = as_bytes(output.partition("\n")[2]) if output.startswith(_READ) else None
        yield FileChange(path, "read", at, done, "read", content, content)
    elif name == "Write":
        content = given.get("content")
        edit = writing(content, verbatim=True) if isinstance(content, str) else None
        yield FileChange(path, "change", at, done, "record", edit=edit)
    elif name in _EDITS:
        hunks = parse_hunks(output.partition(_DIFF)[2])
        edit = changing(lambda text: patched(text, hunks)) if hunks is not None else None
        yield FileChange(path, "change", at, done, "edit", edit=edit)
