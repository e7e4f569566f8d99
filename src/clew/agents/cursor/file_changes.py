"""What a chat of Cursor proves about files: what its tools were given. No result holds the content of a file.

A person may reject an edit later, which no record tells.
"""

from __future__ import annotations

from collections.abc import Iterator

from clew.agents.base import SourceFile
from clew.agents.cursor.events import read_events
from clew.agents.edits import writing
from clew.agents.file_evidence import Edit, Event, FileChange
from clew.agents.tool_file_changes import ToolCall, ToolFileChanges
from clew.analysis.facts import collect_facts
from clew.model.unit import Unit


def file_changes(source: SourceFile, units: Iterator[Unit]) -> Iterator[Event]:
    """Everything a chat proves, in its order."""
    return _CursorFileChanges(collect_facts(read_events(source)).cwd).events(units)


class _CursorFileChanges(ToolFileChanges):
    reads, writes, deletes = ("read_file",), ("write",), ("delete_file",)
    edits = ("search_replace", "edit_file", "apply_patch")
    read_only_tools = frozenset(
        "grep grep_search glob_file_search file_search list_dir codebase_search read_lints todo_write web_search "
        "fetch_rules fetch_pull_request".split()
    )
    path_arguments = ("file_path", "target_file", "path")
    content_arguments = ("contents", "content")

    def edit_by_writing(self, call: ToolCall, content: str) -> Edit:
        return writing(content)

    def change_by_edit(self, call: ToolCall) -> FileChange:
        if call.name == "search_replace":
            return super().change_by_edit(call)
        return call.change("change", "record", note="the call does not hold the content")
