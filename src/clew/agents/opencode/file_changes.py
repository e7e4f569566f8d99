"""What a session of OpenCode proves about files: what its tools were given, and what they answered.

`write` says whether there was a file before. `edit` holds the patch that it made, in lines that end in "\\n"; the
client may format a file after a tool wrote it, and the patch shows it formatted. `read` does not show whether a file
ends with a line feed, so that it proves no content. `apply_patch` names the files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clew.agents.base import SourceFile
from clew.agents.edits import parse_hunks, patching
from clew.agents.file_evidence import ABSENT, Event, FileChange, KnownContent, absolute, first_text
from clew.agents.opencode.records import data_of
from clew.agents.tool_file_changes import ToolCall, ToolFileChanges
from clew.model.json import JSON, object_at
from clew.model.unit import Unit

_PATCHES = ("apply_patch", "patch")


def file_changes(source: SourceFile, units: Iterator[Unit]) -> Iterator[Event]:
    """Everything a session proves, in its order."""
    return _OpenCodeFileChanges().events(units)


class _OpenCodeFileChanges(ToolFileChanges):
    shells = ("bash",)
    reads, writes, edits = ("read",), ("write",), ("edit", "multiedit", *_PATCHES)
    harmless = frozenset(
        "glob grep list webfetch websearch codesearch todowrite todoread skill question lsp invalid".split()
    )
    path_arguments = ("filePath", "path")
    old_arguments, new_arguments, every_arguments = ("oldString",), ("newString",), ("replaceAll",)

    def folder_of(self, unit: Unit) -> str | None:
        is_session = unit.value.get("type") in ("session", "session_v2")
        return first_text(object_at(unit.native, "row"), "directory") if is_session else None

    def details(self, native: Mapping[str, JSON], call_id: str) -> Mapping[str, JSON]:
        """What a tool tells of a call apart from its output: in a part, in the log of events, or in a message."""
        data = data_of(native)
        parts = data.get("content")
        for part in (data, data.get("part"), *(parts if isinstance(parts, list) else ())):
            if isinstance(part, dict) and call_id in (part.get("callID"), part.get("id")):
                state = object_at(part, "state")
                return object_at(state, "metadata" if "metadata" in state else "structured")
        return {}

    def changes(self, call: ToolCall) -> Iterator[FileChange]:
        if call.name not in _PATCHES:
            yield from super().changes(call)
            return
        files = call.details.get("files")
        for file in files if isinstance(files, list) else ():
            named = first_text(file, "movePath", "filePath") if isinstance(file, dict) else None
            if named is None:
                continue
            of_file = call._replace(path=absolute(named, call.folder))
            match file.get("type"):
                case "add":
                    yield of_file.change("create", "record")
                case "delete":
                    yield of_file.change("delete", "record", after=ABSENT)
                case _:
                    yield of_file.change("change", "record")

    def content_before(self, call: ToolCall) -> KnownContent | None:
        return ABSENT if call.details.get("exists") is False else None

    def edited(self, call: ToolCall) -> FileChange:
        diff = first_text(call.details, "diff")
        hunks = parse_hunks(diff) if diff is not None else None
        return call.change("change", "edit", edit=patching(hunks or [], self.replacements(call)))
