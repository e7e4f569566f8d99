"""What a chat of VS Code proves about files: the calls of GitHub Copilot's tools.

The editor keeps the line ends of a file, and may format what it writes, so that only characters are known.
"""

from __future__ import annotations

from collections.abc import Iterator

from clew.agents.base import SourceFile
from clew.agents.file_evidence import Event, FileChange, absolute, as_text
from clew.agents.tool_file_changes import ToolCall, ToolFileChanges
from clew.agents.vscode_chat import workspace_of
from clew.model.unit import Unit

_SEVERAL = "multi_replace_string_in_file"
_PARTIAL = "insert_edit_into_file"


def file_changes(source: SourceFile, units: Iterator[Unit]) -> Iterator[Event]:
    """Everything a chat proves, in its order."""
    return _ChatFileChanges(workspace_of(source.path) or None).events(units)


class _ChatFileChanges(ToolFileChanges):
    reads, writes, edits = ("read_file",), ("create_file",), ("replace_string_in_file", _SEVERAL, _PARTIAL)
    read_only_tools = frozenset(
        "list_dir file_search grep_search semantic_search get_errors fetch_webpage manage_todo_list view_image "
        "get_changed_files get_terminal_output terminal_last_command terminal_selection list_code_usages github_repo "
        "test_search test_failure get_search_view_results get_vscode_api think ask_questions".split()
    )
    path_arguments = ("filePath",)
    old_arguments, new_arguments = ("oldString",), ("newString",)

    def keeps_running(self, call: ToolCall) -> bool:
        return call.input.get("isBackground") is True

    def changes(self, call: ToolCall) -> Iterator[FileChange]:
        replacements = call.input.get("replacements") if call.name == _SEVERAL else [call.input]
        for given in replacements if isinstance(replacements, list) else ():
            path = self.named_path(given) if isinstance(given, dict) else None
            if path is not None:
                yield from super().changes(call._replace(input=given, path=absolute(path, call.folder)))

    def change_by_write(self, call: ToolCall) -> FileChange:
        return call.change("create", "record", after=as_text(call.input.get("content")))

    def change_by_edit(self, call: ToolCall) -> FileChange:
        if call.name == _PARTIAL:
            return call.change("change", "edit", note="the call shows only a part of the file")
        return super().change_by_edit(call)
