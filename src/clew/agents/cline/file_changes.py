"""What a session of Cline proves about files: what its editor created, replaced and inserted, and what tools read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from clew.agents.base import SourceFile
from clew.agents.cline import locate
from clew.agents.cline.events import environment_folder, session_folder
from clew.agents.edits import plain, with_line_endings_of
from clew.agents.file_evidence import (
    ABSENT,
    Edit,
    Event,
    FileChange,
    KnownContent,
    absolute,
    as_bytes,
    as_text,
    first_text,
)
from clew.agents.tool_file_changes import ToolCall, ToolFileChanges
from clew.model.json import JSON
from clew.model.unit import Unit

_SAVED = re.compile(r"<final_file_content path=\"[^\"]*\">\n(.*)\n</final_file_content>", re.DOTALL)
"""The file as an editor saved it, which may have formatted it."""


def file_changes(source: SourceFile, units: Iterator[Unit]) -> Iterator[Event]:
    """Everything a session proves, in its order."""
    return _ClineFileChanges(session_folder(source), is_task=locate.is_task(source.path)).events(units)


class _ClineFileChanges(ToolFileChanges):
    reads = ("read_files", "read_file")
    edits = ("editor", "write_to_file", "replace_in_file", "apply_diff", "insert_content", "search_and_replace")
    read_only_tools = frozenset(
        "search_codebase fetch_web_content ask_question skills submit_and_exit list_files search_files codebase_search "
        "list_code_definition_names attempt_completion ask_followup_question plan_mode_respond update_todo_list "
        "web_fetch web_search fetch_instructions switch_mode access_mcp_resource load_mcp_documentation".split()
    )
    path_arguments = ("path", "file_path")
    old_arguments, new_arguments = ("old_text",), ("new_text",)

    def __init__(self, folder: str | None, *, is_task: bool) -> None:
        super().__init__(folder)
        self._is_task = is_task

    def folder_of(self, unit: Unit) -> str | None:
        """The first folder that an extension names to the model, where no file beside the messages names one."""
        if self.folder is not None or not self._is_task or not unit.is_message or unit.value["role"] != "user":
            return None
        texts = (block["text"] for block in unit.value["content"] if block["type"] == "text")
        return next(filter(None, map(environment_folder, texts)), None)

    def commands(self, call: ToolCall) -> list[str]:
        found = call.input.get("commands", call.input.get("command"))
        commands: list[JSON] = found if isinstance(found, list) else [found]
        return commands if all(isinstance(command, str) for command in commands) else []

    def changes(self, call: ToolCall) -> Iterator[FileChange]:
        if call.name not in self.reads:
            return super().changes(call)
        files = call.input.get("files", call.input.get("path"))
        paths = (
            first_text(file, "path", "file_path", "filePath") if isinstance(file, dict) else file
            for file in (files if isinstance(files, list) else [files])
        )
        return (call._replace(path=absolute(path, call.folder)).read(None) for path in paths if isinstance(path, str))

    def change_by_edit(self, call: ToolCall) -> FileChange:
        new = call.text("new_text")
        if call.name != "editor" or new is None:
            saved = _SAVED.search(call.output_text)
            after = as_text(saved[1]) if saved else None
            return call.change("change", "record" if after else "edit", after=after)
        line = call.input.get("insert_line")
        if isinstance(line, int):
            return call.change("change", "edit", edit=_inserting(line, new))
        if call.output_text.startswith("File created"):
            return call.change("create", "record", ABSENT, as_bytes(new))
        return super().change_by_edit(call)


def _inserting(line: int, new: str) -> Edit:
    """The edit that inserts text before a line; the first line has the number 1."""

    def edit(base: KnownContent | None) -> KnownContent | None:
        text = plain(base)
        lines = text.split("\n") if text is not None else []
        if not 1 <= line <= len(lines) + 1:
            return None
        lines[line - 1 : line - 1] = new.replace("\r\n", "\n").split("\n")
        return with_line_endings_of("\n".join(lines), base)

    return edit
