"""What a session of OpenCode proves about files: what its tools were given, and what they answered.

`write` says whether there was a file before. Since April 2026 it keeps a byte order mark that it finds.

`edit` holds the patch that it made, in lines that end in "\\n"; where the client is told to format files, it shows the
file formatted. Until April 2026 it held the whole text before and after. `apply_patch` holds a patch for each file.
Spaces that begin every line of a patch are cut off.

`read` of version 1 shows the lines of a file, but not whether the last one ends: a later patch may show that. In
version 2 it shows the text of a small file. Neither shows a byte order mark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clew.agents.base import SourceFile
from clew.agents.edits import Hunk, changing, parse_hunks, patched, patching, writing_behind_mark
from clew.agents.file_evidence import (
    ABSENT,
    Edit,
    Event,
    FileChange,
    FileContent,
    KnownContent,
    WriterFinished,
    WriterStarted,
    absolute,
    as_bytes,
    as_text,
    first_text,
)
from clew.agents.opencode.records import data_of
from clew.agents.patches import moved_file, parse
from clew.agents.tool_file_changes import ToolCall, ToolFileChanges
from clew.model.json import JSON, object_at
from clew.model.unit import Unit

_PATCHES = ("apply_patch", "patch")
_MAX_LINE_UNITS = 2000
"""The client cuts lines of more units of UTF-16 when it shows a file."""


def file_changes(source: SourceFile, units: Iterator[Unit]) -> Iterator[Event]:
    """Everything a session proves, in its order."""
    return _OpenCodeFileChanges().events(units)


class _OpenCodeFileChanges(ToolFileChanges):
    reads, writes, edits = ("read",), ("write",), ("edit", "multiedit", *_PATCHES)
    read_only_tools = frozenset(
        "glob grep list webfetch websearch codesearch todowrite todoread skill question lsp invalid".split()
    )
    path_arguments = ("filePath", "path")
    old_arguments, new_arguments, replace_all_arguments = ("oldString",), ("newString",), ("replaceAll",)

    def __init__(self) -> None:
        super().__init__()
        self._shown: dict[str, str] = {}
        """By path: all lines of a file, without what ends the last one. Forgotten when any file may have changed."""

    def message(self, unit: Unit) -> Iterator[Event]:
        for event in super().message(unit):
            if isinstance(event, WriterStarted | WriterFinished):
                self._shown.clear()
            yield event

    def folder_of(self, unit: Unit) -> str | None:
        is_session = unit.value.get("type") in ("session", "session_v2")
        return first_text(object_at(unit.native, "row"), "directory") if is_session else None

    def result_details(self, native: Mapping[str, JSON], call_id: str) -> Mapping[str, JSON]:
        """What a tool records about a call apart from its output: in a part, in the log of events, or in a message."""
        data = data_of(native)
        parts = data.get("content")
        for part in (data, data.get("part"), *(parts if isinstance(parts, list) else ())):
            if isinstance(part, dict) and call_id in (part.get("callID"), part.get("id")):
                state = object_at(part, "state")
                return object_at(state, "metadata" if "metadata" in state else "structured")
        return {}

    def read(self, call: ToolCall) -> FileChange:
        if call.result_details.get("encoding") == "utf8" and not {"offset", "limit"} & call.input.keys():
            return call.read(as_text(call.result_details.get("content")))
        display = object_at(call.result_details, "display")
        text = first_text(display, "text")
        is_whole = display.get("lineStart") == 1 and display.get("lineEnd") == display.get("totalLines")
        if text is not None and is_whole and not _has_long_line(text):
            self._shown[call.path] = text
        return call.read(None)

    def change_by_write(self, call: ToolCall) -> FileChange:
        self._shown.pop(call.path, None)
        return super().change_by_write(call)

    def content_before(self, call: ToolCall) -> KnownContent | None:
        return ABSENT if False in (call.result_details.get("exists"), call.result_details.get("existed")) else None

    def edit_by_writing(self, call: ToolCall, content: str) -> Edit:
        return writing_behind_mark(content)

    def change_by_edit(self, call: ToolCall) -> FileChange:
        before, after = (object_at(call.result_details, "filediff").get(name) for name in ("before", "after"))
        if isinstance(before, str) and isinstance(after, str):
            self._shown.pop(call.path, None)
            # An edit of no text wrote the whole file, whatever was there.
            found = as_text(before) if call.text("oldString") else None
            return call.change("change", "edit", found, edit=writing_behind_mark(after))
        hunks = _hunks(first_text(call.result_details, "diff"))
        edit = patching(hunks, self.replacements(call))
        return call.change("change", "edit", self._text_before(call.path, hunks), edit=edit)

    def _text_before(self, path: str, hunks: list[Hunk]) -> FileContent | None:
        """The text that an edit found: what was shown of it, with the end that its patch fits to."""
        shown = self._shown.pop(path, None)
        if shown is None or not hunks:
            return None
        results = [(text, patched(text, hunks)) for text in (shown, f"{shown}\n")]
        fitting = [(text, result) for text, result in results if result is not None]
        if len(fitting) == 2:
            # The patch does not reach the end of the file.
            self._shown[path] = fitting[0][1]
        return as_text(fitting[0][0]) if len(fitting) == 1 else None

    def changes(self, call: ToolCall) -> Iterator[FileChange]:
        if call.name not in _PATCHES:
            yield from super().changes(call)
            return
        sections = {section.path: section.content for section in parse(call.text("patchText") or "") or ()}
        added = {absolute(path, call.folder): content for path, content in sections.items()}
        files = call.result_details.get("files")
        for file in files if isinstance(files, list) else ():
            named = first_text(file, "filePath", "file") if isinstance(file, dict) else None
            if named is not None:
                path, target = absolute(named, call.folder), first_text(file, "movePath")
                self._shown.pop(path, None)
                of_file = call._replace(path=path)
                yield from _patched(of_file, file, absolute(target, call.folder) if target else None, added.get(path))


def _patched(call: ToolCall, file: dict[str, JSON], target: str | None, asked: str | None) -> Iterator[FileChange]:
    """What a patch did to one file; `asked` is the content that it was to have, if it is new."""
    patch = first_text(file, "patch", "diff")
    match first_text(file, "type", "status"):
        case "add" | "added":
            lines = "".join(line for hunk in parse_hunks(patch or "") or () for line in hunk.new)
            is_uncut = asked is not None and lines.rstrip("\n") == asked.rstrip("\n")
            yield call.change("create", "record", after=as_bytes(lines) if is_uncut else None)
        case "delete" | "deleted":
            yield call.change("delete", "record", after=ABSENT)
        case _:
            hunks = _hunks(patch)
            edit = changing(lambda text: patched(text, hunks)) if hunks else None
            yield from moved_file(call.path, target, edit, call.call_index, call.result_index)


def _hunks(patch: str | None) -> list[Hunk]:
    """The hunks of a patch; none where no line of the file would show that the patch was cut."""
    hunks = parse_hunks(patch or "") or []
    return hunks if any(line.strip() for hunk in hunks for line in hunk.old) else []


def _has_long_line(text: str) -> bool:
    return any(len(line.encode("utf-16-le", "surrogatepass")) > 2 * _MAX_LINE_UNITS for line in text.split("\n"))
