"""What a chat of VS Code proves about files: the calls of GitHub Copilot's tools.

The editor keeps the line ends of a file, and may format what it writes, so that only characters are known.
"""

from __future__ import annotations

from collections.abc import Iterator

from clew.agents.base import SourceFile
from clew.agents.edits import Replacement, replacing
from clew.agents.file_evidence import (
    Event,
    FileChange,
    WriterFinished,
    absolute,
    as_text,
    first_text,
    tool_call,
    writer_started,
)
from clew.agents.read_only_commands import is_read_only_command
from clew.agents.vscode_chat import workspace_of
from clew.model.json import JSON
from clew.model.unit import Unit

_SHELL = "run_in_terminal"
_HARMLESS = frozenset(
    "read_file list_dir file_search grep_search semantic_search get_errors fetch_webpage manage_todo_list view_image "
    "get_changed_files get_terminal_output terminal_last_command terminal_selection list_code_usages github_repo "
    "test_search test_failure get_search_view_results get_vscode_api think ask_questions".split()
)
_CHANGES = ("create_file", "replace_string_in_file", "multi_replace_string_in_file", "insert_edit_into_file")


def file_changes(source: SourceFile, units: Iterator[Unit]) -> Iterator[Event]:
    """Everything a chat proves, in its order."""
    folder = workspace_of(source.path)
    calls: dict[str, tuple[str, dict[str, JSON], int]] = {}
    for unit in units:
        if not unit.is_message:
            continue
        index = unit.value["index"]
        for block in unit.value["content"]:
            if block["type"] == "tool_use" and (call := tool_call(block)) is not None:
                key, name, given = call
                calls[key] = name, given, index
                if _can_change_anything(name, given):
                    yield writer_started(key, index, name, given.get("command"))
            elif block["type"] == "tool_result" and block.get("tool_id") in calls:
                name, given, at = calls.pop(block["tool_id"])
                if _can_change_anything(name, given) and given.get("isBackground") is not True:
                    yield WriterFinished(block["tool_id"], index)
                if block.get("is_error") is not True:
                    yield from _changes(name, given, at, index, folder)


def _can_change_anything(name: str, given: dict[str, JSON]) -> bool:
    command = given.get("command")
    if name == _SHELL and isinstance(command, str) and is_read_only_command(command):
        return False
    return name not in _HARMLESS and name not in _CHANGES


def _changes(name: str, given: dict[str, JSON], at: int, done: int, folder: str) -> Iterator[FileChange]:
    edits = given.get("replacements") if name == "multi_replace_string_in_file" else [given]
    for edit in edits if isinstance(edits, list) else ():
        path = first_text(edit, "filePath") if isinstance(edit, dict) else None
        if path is None:
            continue
        path = absolute(path, folder or None)
        if name == "read_file":
            yield FileChange(path, "read", at, done, "read")
        elif name == "create_file":
            yield FileChange(path, "create", at, done, "record", after=as_text(edit.get("content")))
        elif name == "insert_edit_into_file":
            yield FileChange(path, "change", at, done, "edit", note="the call shows only a part of the file")
        elif name in _CHANGES:
            old, new = first_text(edit, "oldString"), first_text(edit, "newString")
            replaced = replacing([Replacement(old, new or "")]) if old else None
            yield FileChange(path, "change", at, done, "edit", edit=replaced)
