"""What a session of Pi proves about files: what its tools were given, and what they answered.

`write` writes the characters that it is given, and `read` shows those of the file. `edit` works on lines that end in
"\\n" and writes them as the file had them; its result holds a patch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clew.agents.base import SourceFile, Unit
from clew.agents.edits import parse_hunks, patching
from clew.agents.file_evidence import Event, FileChange, WriterFinished, as_bytes, first_text, writer_started
from clew.agents.pi.records import HEADER
from clew.agents.read_only_commands import is_read_only_command
from clew.agents.tool_file_changes import ToolCall, ToolFileChanges
from clew.model.json import JSON, object_at

_IMAGE_NOTE = "Read image file ["
"""How the output of `read` begins for an image."""


def file_changes(source: SourceFile, units: Iterator[Unit]) -> Iterator[Event]:
    """Everything a session proves, in its order."""
    return _PiFileChanges().events(units)


class _PiFileChanges(ToolFileChanges):
    reads, writes, edits = ("read",), ("write",), ("edit",)
    read_only_tools = ("grep", "find", "ls")
    old_arguments, new_arguments = ("oldText",), ("newText",)

    def folder_of(self, unit: Unit) -> str | None:
        return first_text(unit.native, "cwd") if unit.value.get("type") == HEADER else None

    def named_path(self, arguments: dict[str, JSON]) -> str | None:
        path = super().named_path(arguments)
        return path.removeprefix("@") if path is not None else None

    def result_details(self, native: Mapping[str, JSON], call_id: str) -> Mapping[str, JSON]:
        return object_at(native, "message", "details")

    def message(self, unit: Unit) -> Iterator[Event]:
        yield from super().message(unit)
        message = object_at(unit.native, "message")
        command = first_text(message, "command") if message.get("role") == "bashExecution" else None
        if command is not None and not is_read_only_command(command):
            # The person ran it; it was over when its entry was written.
            key = f"message {self.index}"
            yield writer_started(key, self.index - 1, "bash", command)
            yield WriterFinished(key, self.index)

    def read(self, call: ToolCall) -> FileChange:
        is_cut = "truncation" in call.result_details or "offset" in call.input or "limit" in call.input
        is_image = call.output_text.startswith(_IMAGE_NOTE)
        content = as_bytes(call.output) if not is_cut and not is_image else None
        return call.read(content, None if content is not None else "what was read of it is not all, or not text")

    def change_by_edit(self, call: ToolCall) -> FileChange:
        patch = first_text(call.result_details, "patch")
        hunks = parse_hunks(patch) if patch is not None else None
        return call.change("change", "edit", edit=patching(hunks or [], self.replacements(call)))
