"""What a session of Continue proves about files: what its tools were given, and what they answered.

`Read` shows a file whole, `Write` writes the characters that it is given, and edits answer with a unified diff of the
text as it is, with the characters that end its lines.
"""

from __future__ import annotations

from collections.abc import Iterator

from clew.agents.base import SourceFile, Unit
from clew.agents.continue_dev.records import is_document
from clew.agents.edits import changing, parse_hunks, patched
from clew.agents.file_evidence import Event, FileChange, as_bytes, first_text
from clew.agents.tool_file_changes import ToolCall, ToolFileChanges


def file_changes(source: SourceFile, units: Iterator[Unit]) -> Iterator[Event]:
    """Everything a session proves, in its order."""
    return _ContinueFileChanges().events(units)


class _ContinueFileChanges(ToolFileChanges):
    reads, writes, edits = ("Read",), ("Write",), ("Edit", "MultiEdit")
    read_only_tools = ("List", "Search", "Fetch", "Checklist", "Skills", "Diff", "Status", "AskQuestion")
    path_arguments = ("filepath", "file_path")

    def folder_of(self, unit: Unit) -> str | None:
        is_session = not unit.is_message and is_document(unit.native)
        return first_text(unit.native, "workspaceDirectory") if is_session else None

    def read(self, call: ToolCall) -> FileChange:
        head, _, content = call.output_text.partition("\n")
        return call.read(as_bytes(content) if head.startswith("Content of ") else None)

    def change_by_edit(self, call: ToolCall) -> FileChange:
        hunks = parse_hunks(call.output_text.partition("\nDiff:\n")[2])
        edit = changing(lambda text: patched(text, hunks)) if hunks is not None else None
        return call.change("change", "edit", edit=edit)
