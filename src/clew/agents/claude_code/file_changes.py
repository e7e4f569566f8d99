"""What a transcript of Claude Code proves about files: its tools' results, and the copies in `file-history`.

Results keep text: lines end in "\\n" whatever the file's do, and a byte order mark may be gone. Copies keep bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from clew.agents.base import SourceFile, Unit
from clew.agents.claude_code.background_writers import BackgroundWriters
from clew.agents.claude_code.checkpoints import Checkpoints
from clew.agents.edits import Hunk, Replacement, make_hunk, patching, writing
from clew.agents.file_evidence import (
    ABSENT,
    Event,
    FileChange,
    KnownContent,
    absolute,
    as_bytes,
    as_text,
    tool_call,
)
from clew.analysis.messages import metadata_of
from clew.model.json import JSON

_VERBATIM = (2, 1, 325)
"""From this version on at the latest, Write writes what it is given, over whatever was there."""


class Call(NamedTuple):
    """A call of a tool that waits for its result."""

    name: str
    input: dict[str, JSON]
    at: int
    """The index of its message."""
    folder: str | None
    version: str
    reply: str | None


def file_changes(source: SourceFile, units: Iterator[Unit]) -> Iterator[Event]:
    """Everything a transcript proves, in its order."""
    reader = _Reader(source)
    for unit in units:
        if unit.is_message:
            yield from reader.message(unit.value, unit.native)
        else:
            yield from reader.record(unit.value, unit.native)
    yield from reader.interrupted(reader.index + 1)


class _Reader:
    def __init__(self, source: SourceFile) -> None:
        self.index = 0
        self._calls: dict[str, Call] = {}
        self._watch = BackgroundWriters()
        self._checkpoints = Checkpoints(source.path)
        self._version, self._folder = "", None

    def record(self, record: dict[str, JSON], native: Mapping[str, JSON]) -> Iterator[Event]:
        if record.get("kind") == "snapshot":
            yield from self._checkpoints.take(record.get("message_uuid"), native)
        elif record.get("kind") == "progress":
            yield from self._watch.progress(native, self.index, self._begun)

    def message(self, message: dict[str, JSON], native: Mapping[str, JSON]) -> Iterator[Event]:
        self.index = message["index"]
        metadata = metadata_of(message)
        self._folder = metadata.get("cwd") or self._folder
        self._version = metadata.get("agent_version") or self._version
        yield from self._checkpoints.see(message, self._folder, native)
        if self._is_new_turn(message, metadata):
            yield from self.interrupted(self.index)
        yield from self._watch.message(message, native, self._begun)
        results = [block for block in message["content"] if block["type"] == "tool_result"]
        for block in message["content"]:
            if block["type"] == "tool_use":
                yield from self._called(block, metadata.get("message_id"))
            elif block["type"] == "tool_result":
                yield from self._returned(block, native.get("toolUseResult") if len(results) == 1 else None)
        yield from self._attached(native.get("attachment"))

    def _is_new_turn(self, message: dict[str, JSON], metadata: dict[str, JSON]) -> bool:
        """True where every call before must have its result by now, unless it was interrupted."""
        if message["role"] == "assistant":
            reply = metadata.get("message_id")
            return reply is not None and any(call.reply not in (None, reply) for call in self._calls.values())
        if message["role"] != "user" or metadata.get("is_meta") or not message["content"]:
            return False
        return all(block["type"] == "text" for block in message["content"])

    def interrupted(self, index: int) -> Iterator[Event]:
        """Calls without a result: what they did is not known, and is over."""
        for key, call in self._calls.items():
            path = _path(call)
            if call.name in _CHANGES and path is not None:
                yield FileChange(
                    path, "change", call.at, index, "edit", note="the call that changed it was interrupted"
                )
            yield from self._watch.ended(key, index)
        self._calls.clear()

    def _begun(self, key: JSON) -> int | None:
        call = self._calls.get(key) if isinstance(key, str) else None
        return call.at if call is not None else None

    def _called(self, block: dict[str, JSON], reply: str | None) -> Iterator[Event]:
        call = tool_call(block)
        if call is None:
            return
        key, name, given = call
        self._calls[key] = Call(name, given, self.index, self._folder, self._version, reply)
        if name not in _CHANGES:
            yield from self._watch.called(key, name, given, self.index)

    def _returned(self, block: dict[str, JSON], result: JSON) -> Iterator[Event]:
        key = block.get("tool_id")
        call = self._calls.pop(key, None) if isinstance(key, str) else None
        if call is None:
            return
        assert isinstance(key, str)
        yield from self._watch.returned(key, call.name, call.input, result, self.index)
        path = _path(call)
        if path is None or block.get("is_error") is True or isinstance(result, str):
            return
        details = result if isinstance(result, dict) else {}
        if call.name == "Read":
            yield from _read(path, call.at, self.index, details)
        elif call.name in _CHANGES:
            yield _CHANGES[call.name](path, call, self.index, details)

    def _attached(self, attachment: JSON) -> Iterator[Event]:
        """Files that the person named, or changed; the client put them into the conversation."""
        if not isinstance(attachment, dict):
            return
        name, content = attachment.get("filename"), attachment.get("content")
        if not isinstance(name, str):
            return
        path = absolute(name, self._folder)
        if attachment.get("type") == "file" and isinstance(content, dict):
            yield from _read(path, self.index, self.index, content)
        elif attachment.get("type") == "edited_text_file":
            note = "it was changed from outside"
            yield FileChange(path, "change", self._watch.last_reply, self.index, "record", note=note)


def _path(call: Call) -> str | None:
    path = call.input.get("notebook_path" if call.name.startswith("Notebook") else "file_path")
    return absolute(path, call.folder) if isinstance(path, str) else None


def _read(path: str, call: int, done: int, details: dict[str, JSON]) -> Iterator[FileChange]:
    """What a reading shows: all of the file only where it says so."""
    file = details.get("file")
    state: KnownContent | None = None
    if details.get("type") == "text" and isinstance(file, dict) and isinstance(file.get("content"), str):
        is_whole = file.get("startLine") == 1 and file.get("numLines") == file.get("totalLines")
        if is_whole and not file.get("truncatedByTokenCap"):
            state = as_text(file["content"])
    note = None if state is not None else "what was read of it is not all, or not text"
    yield FileChange(path, "read", call, done, "read", state, state, note=note)


def _edit(path: str, call: Call, done: int, details: dict[str, JSON]) -> FileChange:
    old = _text(details.get("oldString"), call.input.get("old_string"))
    new = _text(details.get("newString"), call.input.get("new_string"))
    every = details.get("replaceAll") is True or call.input.get("replace_all") is True
    original = details.get("originalFile")
    if old == "" and new is not None and original in (None, ""):
        return FileChange(path, "create", call.at, done, "record", after=as_bytes(new))
    replacements = [Replacement(old, new, every)] if old and new is not None else []
    return _changed(path, call, done, details, original, replacements)


def _multi_edit(path: str, call: Call, done: int, details: dict[str, JSON]) -> FileChange:
    edits = details.get("edits") or call.input.get("edits")
    replacements = [
        Replacement(str(one.get("old_string", "")), str(one.get("new_string", "")), one.get("replace_all") is True)
        for one in (edits if isinstance(edits, list) else ())
        if isinstance(one, dict)
    ]
    original = details.get("originalFileContents", details.get("originalFile"))
    return _changed(path, call, done, details, original, replacements)


def _changed(
    path: str, call: Call, done: int, details: dict[str, JSON], original: JSON, replacements: list[Replacement]
) -> FileChange:
    # The client's own account of the change comes first; of what the person altered, the call knows nothing.
    edit = patching(_hunks(details.get("structuredPatch")), [] if details.get("userModified") is True else replacements)
    return FileChange(path, "change", call.at, done, "edit", as_text(original), edit=edit)


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


def _write(path: str, call: Call, done: int, details: dict[str, JSON]) -> FileChange:
    content = _text(details.get("content"), call.input.get("content"))
    if content is None or details.get("userModified") is True:
        return FileChange(path, "change", call.at, done, "record")
    if details.get("type") == "create":
        return FileChange(path, "create", call.at, done, "record", ABSENT, as_bytes(content))
    parts = call.version.split(".")
    version = tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else ()
    edit = writing(content, verbatim=version >= _VERBATIM)
    return FileChange(path, "change", call.at, done, "record", as_text(details.get("originalFile")), edit=edit)


def _notebook(path: str, call: Call, done: int, details: dict[str, JSON]) -> FileChange:
    before, after = as_text(details.get("original_file")), as_text(details.get("updated_file"))
    return FileChange(path, "change", call.at, done, "record", before, after)


_CHANGES: dict[str, Callable[[str, Call, int, dict[str, JSON]], FileChange]] = {
    "Edit": _edit,
    "MultiEdit": _multi_edit,
    "Write": _write,
    "NotebookEdit": _notebook,
}


def _text(first: JSON, second: JSON) -> str | None:
    return first if isinstance(first, str) else second if isinstance(second, str) else None
