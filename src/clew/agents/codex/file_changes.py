"""What a rollout of Codex proves about files: patches with their outcome, and files that `cat` showed.

Notes of finished patches hold new and deleted files whole and changes as unified diffs, with the bytes that end lines.
Hidden git commits that older versions made are in the project's own repository, which is not looked into.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from clew.agents.base import SourceFile, Unit
from clew.agents.codex.items import exit_status
from clew.agents.edits import changing, parse_hunks, patched
from clew.agents.file_evidence import (
    ABSENT,
    Edit,
    Event,
    FileChange,
    WriterFinished,
    WriterStarted,
    absolute,
    as_bytes,
    as_text,
    tool_call,
    writer_started,
)
from clew.agents.patches import in_command, moved_file, patch_changes
from clew.agents.read_only_commands import is_read_only_command
from clew.agents.tools import command_text, is_shell_tool
from clew.io.codec import NOT_JSON, loads
from clew.model.json import JSON

_HARMLESS = frozenset(
    "update_plan view_image request_user_input wait wait_agent close_agent list_agents list_mcp_resources "
    "list_mcp_resource_templates read_mcp_resource web_search tool_search get_context_remaining sleep".split()
)
_SPAWNS = ("spawn_agent", "resume_agent", "send_input", "followup_task", "assign_task")
_ENDS = ("wait", "wait_agent", "close_agent")
_IN_CODE = re.compile(r"\btools\.(exec_command|apply_patch|view_image|update_plan|sleep)\s*\(")
_RUNNING = re.compile(r"Process running with session ID (\d+)")
_OUTPUT = re.compile(r"(?:^|\n)Output:\n")
_CUT = re.compile(
    r"(?:tokens|chars|characters|bytes|lines) truncated|\[\.\.\. omitted|truncated output|output truncated"
)
_MAX_OUTPUT_CHARS = 256 << 10
"""A longer output may have been cut."""


class Call(NamedTuple):
    """A call of a tool that waits for its result."""

    name: str
    input: dict[str, JSON]
    at: int
    """The index of its message."""
    folder: str | None


def file_changes(source: SourceFile, units: Iterator[Unit]) -> Iterator[Event]:
    """Everything a rollout proves about files, in its order."""
    reader = _Reader()
    for unit in units:
        yield from reader.message(unit) if unit.is_message else reader.record(unit)


class _Reader:
    def __init__(self) -> None:
        self._calls: dict[str, Call] = {}
        self._last: str | None = None
        """The call that was made last."""
        self._changes: dict[str, list[tuple[str, dict[str, JSON]]]] = {}
        """By call: what its patch did, once that is noted."""
        self._shown: dict[str, list[tuple[str, str, JSON]]] = {}
        """By call: commands that ran in it, where, and what they printed."""
        self._running: dict[str, str] = {}
        """By session of a shell that goes on: the call that began it."""
        self._spawned: dict[str, str] = {}
        """By thread of a sub-agent: the call that began it."""
        self._scripts: set[str] = set()
        """Scripts that do nothing but what is noted."""
        self._folder: str | None = None
        self._keeps_items = False

    def record(self, unit: Unit) -> Iterator[Event]:
        record, payload = unit.value, unit.native.get("payload")
        if not isinstance(payload, dict):
            return
        settings = payload.get("thread_settings")
        folder = payload.get("cwd") or (settings.get("cwd") if isinstance(settings, dict) else None)
        if isinstance(folder, str) and record.get("kind") == "state":
            self._folder = absolute(folder, self._folder)
        if payload.get("history_mode") == "paginated":
            self._keeps_items = True
        kind = payload.get("type")
        if kind == "item_completed" and isinstance(payload.get("item"), dict):
            yield from self._item(payload["item"], record["after"])
        elif kind == "patch_apply_end":
            self._patched(payload, payload.get("call_id"), payload.get("success") is not False)
        elif kind == "undo_completed":
            yield WriterStarted(f"undo {record['after']}", record["after"] - 1, "an undo")
            yield WriterFinished(f"undo {record['after']}", record["after"] + 1)

    def _item(self, item: dict[str, JSON], after: int) -> Iterator[Event]:
        key = item.get("id")
        key = key if isinstance(key, str) and key in self._calls else self._last
        if item.get("type") == "FileChange":
            self._patched(item, key, item.get("status") == "completed")
        elif item.get("type") == "CommandExecution" and key is not None:
            command, folder = item.get("command"), item.get("cwd")
            text = command_text({"command": command}).get("command")
            if isinstance(text, str):
                where = absolute(folder, None) if isinstance(folder, str) else self._folder or ""
                output = item.get("aggregated_output") if item.get("exit_code") == 0 else None
                self._shown.setdefault(key, []).append((text, where, output))
                if item.get("id") != key and not is_read_only_command(text) and key in self._calls:
                    # A script ran the command; its own call is not recorded.
                    yield writer_started(str(item.get("id")), self._calls[key].at, "", text)
                    yield WriterFinished(str(item.get("id")), after + 1)
        elif item.get("type") == "SubAgentActivity":
            thread = str(item.get("agent_thread_id"))
            if item.get("kind") in ("completed", "interrupted") and thread in self._spawned:
                yield WriterFinished(self._spawned.pop(thread), after + 1)
            elif item.get("kind") in ("started", "interacted") and key is not None:
                self._spawned.setdefault(thread, key)
        elif item.get("type") == "McpToolCall" and isinstance(item.get("id"), str) and item["id"] != key:
            yield WriterStarted(item["id"], self._calls[key].at if key in self._calls else after, "a foreign tool")
            yield WriterFinished(item["id"], after + 1)

    def _patched(self, note: dict[str, JSON], key: JSON, is_done: bool) -> None:
        changes = note.get("changes")
        if is_done and isinstance(key, str) and isinstance(changes, dict):
            found = [(path, change) for path, change in changes.items() if isinstance(change, dict)]
            self._changes.setdefault(key, []).extend(found)

    def message(self, unit: Unit) -> Iterator[Event]:
        message, metadata = unit.value, unit.native.get("metadata")
        is_inherited = isinstance(metadata, dict) and bool(metadata.get("inherited_user_message"))
        for block in message["content"]:
            if block["type"] == "tool_use":
                yield from self._called(block, message["index"], is_inherited)
            elif block["type"] == "tool_result":
                yield from self._returned(block, message["index"])
            elif block["type"] == "text" and block["text"].startswith("<user_shell_command>"):
                yield WriterStarted(f"typed {message['index']}", message["index"] - 1, "a command of the person")
                yield WriterFinished(f"typed {message['index']}", message["index"])

    def _called(self, block: dict[str, JSON], index: int, is_inherited: bool) -> Iterator[Event]:
        found = tool_call(block)
        if found is None:
            return
        key, name, given = found
        workdir = given.get("workdir", given.get("working_directory"))
        folder = absolute(workdir, self._folder) if isinstance(workdir, str) else self._folder
        self._calls[key] = call = Call(name, given, index, folder)
        self._last = key
        if name == "exec" and self._keeps_items and not is_inherited and _is_transparent(_code(call)):
            self._scripts.add(key)
            return
        command = _command(call)
        is_plain = command is not None and (is_read_only_command(command) or in_command(command) is not None)
        if name not in _HARMLESS and name != "apply_patch" and not is_plain:
            yield writer_started(key, index, name, command)
            if is_inherited:
                # It was over before this thread began.
                yield WriterFinished(key, index + 1)

    def _returned(self, block: dict[str, JSON], index: int) -> Iterator[Event]:
        key = block.get("tool_id")
        call = self._calls.get(key) if isinstance(key, str) else None
        if call is None:
            return
        assert isinstance(key, str)
        yield from self._ended(key, call, block, index)
        went = exit_status(block.get("output"))
        changes = self._changes.pop(key, None)
        if changes is not None:
            for path, change in changes:
                yield from _noted(absolute(path, call.folder), change, call.at, index)
        elif went.is_error is not True and block.get("is_error") is not True:
            yield from _said(call, index)
        yield from self._read(key, call, block, index, went.exit_code)

    def _ended(self, key: str, call: Call, block: dict[str, JSON], index: int) -> Iterator[Event]:
        """What the call began is over, unless it says that it goes on."""
        running = _RUNNING.search(_text(block)[:400])
        if running is not None:
            self._running.setdefault(running[1], key)
            return
        began = self._running.pop(str(call.input.get("session_id")), None)
        if began is not None:
            yield WriterFinished(began, index)
        if key in self._scripts and len(self._shown.get(key, ())) < _code(call).count("tools.exec_command("):
            # A command that was begun and is not over yet.
            yield WriterStarted(f"{key} goes on", call.at, "a command in the background")
        yield from self._agents(key, call, block, index)
        if key not in self._spawned.values() and call.name not in _SPAWNS:
            yield WriterFinished(key, index)

    def _agents(self, key: str, call: Call, block: dict[str, JSON], index: int) -> Iterator[Event]:
        """Sub-agents that a call began or saw the end of; one without a known name never ends."""
        text = _text(block)
        if call.name in _SPAWNS:
            agent = call.input.get("id", call.input.get("target", _named(text).get("agent_id")))
            if isinstance(agent, str):
                self._spawned.setdefault(agent, key)
        elif call.name in _ENDS:
            status = _named(text).get("status")
            over = [name for name, one in status.items() if _is_over(one)] if isinstance(status, dict) else []
            over += [str(call.input.get("id"))] if call.name == "close_agent" else []
            for name in over:
                if name in self._spawned:
                    yield WriterFinished(self._spawned.pop(name), index)

    def _read(self, key: str, call: Call, block: dict[str, JSON], index: int, code: int | None) -> Iterator[FileChange]:
        shown = self._shown.pop(key, [])
        command = _command(call)
        if not shown and command is not None and code == 0:
            shown = [(command, call.folder or "", _body(block))]
        for text, folder, output in shown:
            path = _shown_file(text)
            if path is not None:
                state = None
                if isinstance(output, str) and len(output) < _MAX_OUTPUT_CHARS and not _CUT.search(output):
                    state = as_text(output) if call.input.get("tty") else as_bytes(output)
                yield FileChange(absolute(path, folder or None), "read", call.at, index, "read", state, state)


def _noted(path: str, change: dict[str, JSON], call: int, done: int) -> Iterator[FileChange]:
    """What a finished patch did to one file, by the client's own account."""
    kind, content, target = change.get("type"), change.get("content"), change.get("move_path")
    whole = as_bytes(content)
    if kind == "add":
        yield FileChange(path, "create", call, done, "record", after=whole)
    elif kind == "delete":
        yield FileChange(path, "delete", call, done, "record", whole, ABSENT)
    elif kind == "update":
        hunks = parse_hunks(str(change.get("unified_diff", "")))
        edit: Edit | None = (lambda base: base) if change.get("unified_diff") == "" else None
        if hunks:
            edit = changing(partial(patched, hunks=hunks))
        yield from moved_file(path, absolute(target, None) if isinstance(target, str) else None, edit, call, done)


def _said(call: Call, done: int) -> Iterator[FileChange]:
    """What a patch did by its own words, where the client keeps no account of it."""
    folder, patch = call.folder, None
    if call.name == "apply_patch":
        patch = call.input.get("input", call.input.get("patch"))
    command = _command(call)
    inside = in_command(command) if command is not None else None
    if inside is not None:
        patch, below = inside
        folder = absolute(below, folder) if below else folder
    if isinstance(patch, str):
        yield from patch_changes(patch, folder, call.at, done)


def _is_transparent(code: str) -> bool:
    """True for a script that does nothing but call tools whose doings are noted one by one."""
    return len(_IN_CODE.findall(code)) == len(re.findall(r"\btools\b", code))


def _code(call: Call) -> str:
    code = call.input.get("input")
    return code if isinstance(code, str) else ""


def _command(call: Call) -> str | None:
    if not is_shell_tool(call.name):
        return None
    given = call.input.get("cmd", call.input.get("command"))
    command = given
    if isinstance(given, list):
        words = [str(word) for word in given]
        command = shlex.join(words) if words[:1] == ["apply_patch"] else command_text({"command": words})["command"]
    return command if isinstance(command, str) else None


def _shown_file(command: str) -> str | None:
    """The one file that a command prints whole."""
    if not is_read_only_command(command):
        return None
    words = shlex.split(command)
    return words[1] if len(words) == 2 and words[0] == "cat" and not words[1].startswith("-") else None


def _text(block: dict[str, JSON]) -> str:
    output = block.get("output")
    if isinstance(output, list):
        return "\n".join(str(part.get("text", "")) for part in output if isinstance(part, dict))
    return output if isinstance(output, str) else ""


def _named(text: str) -> dict[str, JSON]:
    try:
        found = loads(text.encode())
    except (UnicodeEncodeError, *NOT_JSON):
        return {}
    return found if isinstance(found, dict) else {}


def _is_over(status: JSON) -> bool:
    return isinstance(status, dict) or status in ("shutdown", "not_found", "interrupted")


def _body(block: dict[str, JSON]) -> str | None:
    """What a command printed, without what the client puts before it."""
    text = _text(block)
    if text.startswith('{"output":'):
        output = _named(text).get("output")
        return output if isinstance(output, str) else None
    head = _OUTPUT.search(text)
    return text[head.end() :] if head is not None else None
