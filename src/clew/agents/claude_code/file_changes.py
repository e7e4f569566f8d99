"""What a transcript of Claude Code proves about files: its tools' results, and the copies in `file-history`.

Results keep text: lines end in "\\n" whatever the file's do, and a byte order mark may be gone. Copies keep bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clew.agents.base import SourceFile, Unit
from clew.agents.claude_code.background_writers import BackgroundWriters
from clew.agents.claude_code.checkpoints import Checkpoints
from clew.agents.edits import Hunk, make_hunk, patching, writing
from clew.agents.file_evidence import (
    ABSENT,
    Edit,
    Event,
    FileChange,
    KnownContent,
    WriterFinished,
    absolute,
    as_bytes,
    as_text,
)
from clew.agents.tool_file_changes import ToolCall
from clew.analysis.messages import metadata_of
from clew.model.json import JSON, object_at

_VERBATIM = (2, 1, 325)
"""From this version on at the latest, Write writes what it is given, over whatever was there."""
_NOT_SHOWN = "what was read of it is not all, or not text"


def file_changes(source: SourceFile, units: Iterator[Unit]) -> Iterator[Event]:
    """Everything a transcript proves, in its order."""
    return _ClaudeFileChanges(Checkpoints(source.path)).events(units)


class _ClaudeFileChanges(BackgroundWriters):
    reads, writes, edits = ("Read",), ("Write",), ("Edit", "MultiEdit", "NotebookEdit")
    path_arguments = ("file_path", "notebook_path")
    old_arguments, new_arguments = ("oldString", "old_string"), ("newString", "new_string")
    replace_all_arguments = ("replaceAll", "replace_all")

    def __init__(self, checkpoints: Checkpoints) -> None:
        super().__init__()
        self._checkpoints = checkpoints
        self._version = ""
        self._reply: JSON = None
        """The reply of the model that the calls without a result belong to."""
        self._has_one_result = False

    def record(self, unit: Unit) -> Iterator[Event]:
        if unit.value.get("kind") == "snapshot":
            return self._checkpoints.take(unit.value.get("message_uuid"), unit.native)
        return super().record(unit)

    def message(self, unit: Unit) -> Iterator[Event]:
        message, metadata = unit.value, metadata_of(unit.value)
        self._version = metadata.get("agent_version") or self._version
        yield from self._checkpoints.see(message, self.folder, unit.native)
        types = [block["type"] for block in message["content"]]
        self._has_one_result = types.count("tool_result") == 1
        yield from super().message(unit)
        self._reply = metadata.get("message_id") if "tool_use" in types else self._reply
        yield from self._attached(object_at(unit.native, "attachment"))

    def is_new_turn(self, message: dict[str, JSON]) -> bool:
        """True also for another reply of the model."""
        reply = metadata_of(message).get("message_id")
        return super().is_new_turn(message) or (None not in (reply, self._reply) and reply != self._reply)

    def unanswered_changes(self, index: int) -> Iterator[Event]:
        yield from [WriterFinished(call_id, index) for call_id in self.calls]
        yield from super().unanswered_changes(index)
        self.calls.clear()

    def on_result(self, block: dict[str, JSON], native: Mapping[str, JSON]) -> Iterator[Event]:
        is_refused = self._has_one_result and isinstance(native.get("toolUseResult"), str)
        return super().on_result({**block, "is_error": True} if is_refused else block, native)

    def result_details(self, native: Mapping[str, JSON], call_id: str) -> Mapping[str, JSON]:
        return object_at(native, "toolUseResult") if self._has_one_result else {}

    def changes(self, call: ToolCall) -> Iterator[FileChange]:
        # What the result tells goes before what was asked for.
        return super().changes(call._replace(input={**call.input, **call.result_details}))

    def read(self, call: ToolCall) -> FileChange:
        content = _shown(call.result_details)
        return call.read(content, None if content is not None else _NOT_SHOWN)

    def _attached(self, attachment: Mapping[str, JSON]) -> Iterator[Event]:
        """Files that the person named, or changed; the client put them into the conversation."""
        name, content = attachment.get("filename"), attachment.get("content")
        if not isinstance(name, str):
            return
        path = absolute(name, self.folder)
        if attachment.get("type") == "file" and isinstance(content, dict):
            state = _shown(content)
            note = None if state is not None else _NOT_SHOWN
            yield FileChange(path, "read", self.index, self.index, "read", state, state, note=note)
        elif attachment.get("type") == "edited_text_file":
            note = "it was changed from outside"
            yield FileChange(path, "change", self.last_reply, self.index, "record", note=note)

    def change_by_write(self, call: ToolCall) -> FileChange:
        is_altered = call.result_details.get("userModified") is True
        return call.change("change", "record") if is_altered else super().change_by_write(call)

    def edit_by_writing(self, call: ToolCall, content: str) -> Edit:
        parts = self._version.split(".")
        is_new = all(part.isdecimal() and len(part) < 10 for part in parts) and tuple(map(int, parts)) >= _VERBATIM
        return writing(content, verbatim=is_new)

    def content_before(self, call: ToolCall) -> KnownContent | None:
        if call.name == "Write" and call.result_details.get("type") == "create":
            return ABSENT
        return as_text(call.result_details.get("originalFileContents", call.result_details.get("originalFile")))

    def change_by_edit(self, call: ToolCall) -> FileChange:
        if call.name == "NotebookEdit":
            before, after = (
                as_text(call.result_details.get("original_file")),
                as_text(call.result_details.get("updated_file")),
            )
            return call.change("change", "record", before, after)
        old, new = call.text(*self.old_arguments), call.text(*self.new_arguments)
        if old == "" and new is not None and call.result_details.get("originalFile") in (None, ""):
            return call.change("create", "record", after=as_bytes(new))
        # The client's own account of the change comes first; of what the person altered, the call knows nothing.
        is_altered = call.result_details.get("userModified") is True
        replacements = [] if is_altered else self.replacements(call)
        edit = patching(_hunks(call.result_details.get("structuredPatch")), replacements)
        return call.change("change", "edit", self.content_before(call), edit=edit)


def _shown(details: Mapping[str, JSON]) -> KnownContent | None:
    """What a reading shows, where it says that this is all of the file."""
    file = object_at(details, "file")
    is_whole = file.get("startLine") == 1 and file.get("numLines") == file.get("totalLines")
    if details.get("type") != "text" or not is_whole or file.get("truncatedByTokenCap"):
        return None
    return as_text(file.get("content"))


def _hunks(patch: JSON) -> list[Hunk]:
    hunks = []
    for one in patch if isinstance(patch, list) else ():
        lines = one.get("lines") if isinstance(one, dict) else None
        if not isinstance(lines, list) or type(one.get("oldStart")) is not int:
            return []
        hunk = make_hunk(one["oldStart"], [str(line) for line in lines])
        if hunk is None:
            return []
        hunks.append(hunk if hunk.old else hunk._replace(start=max(hunk.start - 1, 0)))
    return hunks
