"""File changes from calls of tools: the walk over a session that agents share.

An agent's subclass of `ToolFileChanges` names its tools and their arguments, and overrides what is special about it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import ClassVar, NamedTuple

from clew.agents.edits import Replacement, replacing, writing
from clew.agents.file_evidence import (
    ABSENT,
    Action,
    Edit,
    Event,
    FileChange,
    How,
    KnownContent,
    WriterFinished,
    absolute,
    as_bytes,
    first_text,
    tool_call,
    writer_started,
)
from clew.agents.read_only_commands import is_read_only_command
from clew.agents.tools import FILE_DELETE_TOOLS, is_shell_tool
from clew.analysis.messages import metadata_of
from clew.model.json import JSON
from clew.model.unit import Unit


class ToolCall(NamedTuple):
    """A call of a tool, and what its result contains once there is one."""

    id: str
    name: str
    input: dict[str, JSON]
    folder: str | None
    """Where the session worked: paths are relative to it."""
    path: str
    """The file that the arguments name; empty where they name none."""
    call_index: int
    """The index of the message with the call."""
    result_index: int = 0
    """The index of the message with the result, or of the prompt that came instead; 0 before."""
    output: JSON = None
    """The result: a text, or a list of blocks."""
    result_details: Mapping[str, JSON] = MappingProxyType({})
    """What the record with the result contains apart from the output."""

    def text(self, *names: str) -> str | None:
        """The first of the named arguments that is a text."""
        return first_text(self.input, *names)

    @property
    def output_text(self) -> str:
        """The result where it is a text, else an empty one."""
        return self.output if isinstance(self.output, str) else ""

    def change(
        self,
        action: Action,
        how: How,
        before: KnownContent | None = None,
        after: KnownContent | None = None,
        edit: Edit | None = None,
        note: str | None = None,
    ) -> FileChange:
        """What the call did to its file."""
        return FileChange(self.path, action, self.call_index, self.result_index, how, before, after, edit, note=note)

    def read(self, content: KnownContent | None, note: str | None = None) -> FileChange:
        """What the call read of its file; None where it does not show all of it."""
        return self.change("read", "read", content, content, note=note)


class ToolFileChanges:
    """Reads what the tools of a session did to files, in its order.

    A tool that is not named here can have changed any file while it ran. Shells are known by name in all agents.
    """

    reads: ClassVar[Collection[str]] = ()
    writes: ClassVar[Collection[str]] = ()
    edits: ClassVar[Collection[str]] = ()
    deletes: ClassVar[Collection[str]] = ()
    """Tools that read, replace, edit or delete the file that they name, and touch no other."""
    read_only_tools: ClassVar[Collection[str]] = ()
    """Tools that change no file."""
    path_arguments: ClassVar[tuple[str, ...]] = ("path",)
    content_arguments: ClassVar[tuple[str, ...]] = ("content",)
    old_arguments: ClassVar[tuple[str, ...]] = ("old_string",)
    new_arguments: ClassVar[tuple[str, ...]] = ("new_string",)
    replace_all_arguments: ClassVar[tuple[str, ...]] = ("replace_all",)

    def __init__(self, folder: str | None = None) -> None:
        self.folder = folder
        """Where the session works now."""
        self.index = 0
        """The last message."""
        self.calls: dict[str, ToolCall] = {}
        """By id: calls that wait for their results."""

    def events(self, units: Iterator[Unit]) -> Iterator[Event]:
        """Everything that a session proves."""
        for unit in units:
            self.folder = self.folder_of(unit) or self.folder
            yield from self.message(unit) if unit.is_message else self.record(unit)
        yield from self.on_end()

    def folder_of(self, unit: Unit) -> str | None:
        """The folder that the session works in from here on; None where the record names none."""
        return metadata_of(unit.value).get("cwd") if unit.is_message else None

    def message(self, unit: Unit) -> Iterator[Event]:
        """The calls and results of a message."""
        self.index = unit.value["index"]
        if self.is_new_turn(unit.value):
            yield from self.unanswered_changes(self.index)
        for block in unit.value["content"]:
            if block["type"] == "tool_use":
                yield from self.on_call(block)
            elif block["type"] == "tool_result":
                yield from self.on_result(block, unit.native)

    def record(self, unit: Unit) -> Iterator[Event]:
        """What a record proves that is no message, such as the name of a copy."""
        return iter(())

    def on_end(self) -> Iterator[Event]:
        """What is known at the end of the session."""
        return self.unanswered_changes(self.index + 1)

    def is_new_turn(self, message: dict[str, JSON]) -> bool:
        """True for a prompt: every call has its result by then, unless it was interrupted."""
        types = [block["type"] for block in message["content"]]
        is_by_person = message["role"] == "user" and metadata_of(message).get("is_meta") is not True
        return is_by_person and bool(types) and "tool_result" not in types

    def on_call(self, block: dict[str, JSON]) -> Iterator[Event]:
        """A tool was called."""
        found = tool_call(block)
        if found is None:
            return
        key, name, arguments = found
        named = self.named_path(arguments)
        path = absolute(named, self.folder) if named else ""
        call = ToolCall(key, self.tool_name(name, arguments), arguments, self.folder, path, self.index)
        self.calls[key] = call
        if self.can_change_any_file(call):
            yield writer_started(key, self.index, call.name, " && ".join(self.commands(call)) or None)

    def on_result(self, block: dict[str, JSON], native: Mapping[str, JSON]) -> Iterator[Event]:
        """The result of a call came in a native record."""
        key = block.get("tool_id")
        call = self.calls.pop(key, None) if isinstance(key, str) else None
        if call is None:
            return
        call = call._replace(
            result_index=self.index, output=block.get("output"), result_details=self.result_details(native, call.id)
        )
        yield from self.ended_writers(call)
        if block.get("is_error") is not True:
            yield from self.changes(call)

    def unanswered_changes(self, index: int) -> Iterator[Event]:
        """Calls that have no result by message `index`: what they did to their files is not known."""
        for call in list(self.calls.values()):
            is_change = call.name in self.writes or call.name in self.edits or call.name in self.deletes
            if is_change and call.path and not call.result_index:
                self.calls[call.id] = call = call._replace(result_index=index)
                yield call.change("change", "edit", note="the call that changed it has no result")

    def tool_name(self, name: str, arguments: dict[str, JSON]) -> str:
        """The name that the tables of this class have for a tool."""
        return name

    def named_path(self, arguments: dict[str, JSON]) -> str | None:
        """The file that the arguments of a call name."""
        return first_text(arguments, *self.path_arguments)

    def commands(self, call: ToolCall) -> list[str]:
        """The shell commands of a call; none where they are not plain text."""
        command = call.text("command")
        return [command] if command is not None else []

    def result_details(self, native: Mapping[str, JSON], call_id: str) -> Mapping[str, JSON]:
        """What a native record contains of the result of a call apart from its output."""
        return {}

    def can_change_any_file(self, call: ToolCall) -> bool:
        """True for a call that can have changed any file until it was over."""
        if is_shell_tool(call.name):
            commands = self.commands(call)
            return not commands or not all(map(is_read_only_command, commands))
        known = (self.read_only_tools, self.reads, self.writes, self.edits, self.deletes)
        return not any(call.name in names for names in known)

    def ended_writers(self, call: ToolCall) -> Iterator[Event]:
        """The writers that are over when a call returned."""
        if self.can_change_any_file(call) and not self.keeps_running(call):
            yield WriterFinished(call.id, self.index)

    def keeps_running(self, call: ToolCall) -> bool:
        """True if what the call began continues after its result."""
        return False

    def changes(self, call: ToolCall) -> Iterator[FileChange]:
        """What a call did to files, by its result."""
        if not call.path:
            return
        if call.name in self.reads:
            yield self.read(call)
        elif call.name in self.writes:
            yield self.change_by_write(call)
        elif call.name in self.edits:
            yield self.change_by_edit(call)
        elif call.name in self.deletes:
            yield call.change("delete", "record", after=ABSENT)

    def read(self, call: ToolCall) -> FileChange:
        """What a tool read of a file."""
        return call.read(None)

    def change_by_write(self, call: ToolCall) -> FileChange:
        """What a tool wrote to a file."""
        content, before = call.text(*self.content_arguments), self.content_before(call)
        if before is ABSENT:
            return call.change("create", "record", before, as_bytes(content))
        edit = self.edit_by_writing(call, content) if content is not None else None
        return call.change("change", "record", before, edit=edit)

    def edit_by_writing(self, call: ToolCall, content: str) -> Edit:
        """The edit that a call makes which writes a file."""
        return writing(content, verbatim=True)

    def content_before(self, call: ToolCall) -> KnownContent | None:
        """What the file was before, if the result contains it."""
        return None

    def change_by_edit(self, call: ToolCall) -> FileChange:
        """What a tool changed in a file."""
        replacements = self.replacements(call)
        edit = replacing(replacements) if replacements else None
        return call.change("change", "edit", self.content_before(call), edit=edit)

    def replacements(self, call: ToolCall) -> list[Replacement]:
        """The texts that an edit replaces; none where one of them is not known."""
        edits = call.input.get("edits")
        found = []
        for edit in edits if isinstance(edits, list) else [call.input]:
            old = first_text(edit, *self.old_arguments) if isinstance(edit, dict) else None
            new = first_text(edit, *self.new_arguments) if isinstance(edit, dict) else None
            if not old or new is None:
                return []
            found.append(Replacement(old, new, any(edit.get(name) is True for name in self.replace_all_arguments)))
        return found


class CommonToolFileChanges(ToolFileChanges):
    """Tools under the names that small agents give them, in whatever case."""

    reads = ("read", "read_file", "view", "view_file")
    writes = ("write", "write_file", "create_file")
    edits = ("edit", "edit_file", "str_replace", "replace")
    deletes = FILE_DELETE_TOOLS
    read_only_tools = frozenset(
        "glob grep ls list list_files list_directory search search_files code_search find_files todo_write todowrite "
        "todo_read web_fetch web_search webfetch websearch git_status git_log git_diff git_branch git_blame "
        "sequential_thinking sequentialthinking task_done ask_user askuserquestion lsp todo".split()
    )
    path_arguments = ("file_path", "path", "filename", "file")
    content_arguments = ("content", "file_text", "text")
    old_arguments = ("old_string", "old_str", "old")
    new_arguments = ("new_string", "new_str", "new")

    _commands_of_editor: ClassVar = {"create": "write", "str_replace": "edit", "view": "read"}

    def tool_name(self, name: str, arguments: dict[str, JSON]) -> str:
        name = name.lower()
        if name == "str_replace_based_edit_tool":
            return self._commands_of_editor.get(str(arguments.get("command")), name)
        return name

    def commands(self, call: ToolCall) -> list[str]:
        command = call.text("command", "cmd")
        return [command] if command is not None else []
