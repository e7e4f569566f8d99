"""What a session of Goose proves about files: what its tools were given, and what they answered.

`write` writes the characters that it is given, and says whether the file is new. `edit` replaces one text that occurs
once. Until 2026 one tool, `text_editor`, did both and showed files. Names of tools had the extension before them.
"""

from __future__ import annotations

from collections.abc import Iterator

from clew.agents.base import SourceFile
from clew.agents.edits import writing
from clew.agents.file_evidence import ABSENT, Edit, Event, KnownContent, first_text
from clew.agents.tool_file_changes import ToolCall, ToolFileChanges
from clew.model.json import JSON, object_at
from clew.model.unit import Unit


def file_changes(source: SourceFile, units: Iterator[Unit]) -> Iterator[Event]:
    """Everything a session proves, in its order."""
    return _GooseFileChanges().events(units)


class _GooseFileChanges(ToolFileChanges):
    reads = ("text_editor view",)
    writes = ("write", "text_editor write")
    edits = ("edit", "text_editor")
    read_only_tools = frozenset("tree read_image load load_skill analyze todo_write todo__todo_write".split())
    content_arguments = ("content", "file_text")
    old_arguments, new_arguments = ("before", "old_str"), ("after", "new_str")

    def folder_of(self, unit: Unit) -> str | None:
        is_session = unit.value.get("type") == "sessions"
        return first_text(object_at(unit.native, "row"), "working_dir") if is_session else None

    def tool_name(self, name: str, arguments: dict[str, JSON]) -> str:
        name, command = name.removeprefix("developer__"), arguments.get("command")
        return f"{name} {command}" if name == "text_editor" and command in ("view", "write") else name

    def edit_by_writing(self, call: ToolCall, content: str) -> Edit:
        return writing(content, verbatim=call.name == "write")

    def content_before(self, call: ToolCall) -> KnownContent | None:
        return ABSENT if call.output_text.startswith("Created ") else None
