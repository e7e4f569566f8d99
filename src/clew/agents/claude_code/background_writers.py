"""What runs during a session of Claude Code and can change any file: commands, sub-agents, hooks, foreign tools."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from clew.agents.file_evidence import Event, WriterFinished, WriterStarted
from clew.agents.read_only_commands import is_read_only_command
from clew.agents.tool_file_changes import ToolCall, ToolFileChanges
from clew.analysis.titles import short_command
from clew.model.json import JSON, object_at
from clew.model.unit import Unit

_NOTIFIED = re.compile(r"<tool-use-id>([^<]+)</tool-use-id>.*?<status>(?:completed|failed|killed|stopped)", re.DOTALL)
_TYPED = re.compile(r"<bash-input>(.*)</bash-input>", re.DOTALL)
_SLASH = re.compile(
    r"\s*(?:<command-message>.*?</command-message>\s*)?<command-name>/?([^<]*)</command-name>", re.DOTALL
)
_OWN_COMMANDS = frozenset(
    "add-dir agents bug clear compact config context copy cost doctor effort exit export fast feedback help hooks ide "
    "login logout mcp memory model output-style permissions plan plugin privacy-settings quit release-notes rename "
    "resume rewind sandbox stats status statusline tasks terminal-setup theme todos upgrade usage vim".split()
)
"""Slash commands of the client itself; others may run commands."""
_FINISHED_STATUSES = ("completed", "failed", "killed", "stopped")


class BackgroundWriters(ToolFileChanges):
    """Tells when something begins that can change any file, and when it is over."""

    read_only_tools = frozenset(
        "Glob Grep LS NotebookRead TodoRead TodoWrite TaskCreate TaskUpdate TaskGet TaskList TaskOutput TaskStop "
        "BashOutput KillShell KillBash WebFetch WebSearch ToolSearch AskUserQuestion ExitPlanMode EnterPlanMode "
        "exit_plan_mode SendMessage ListMcpResourcesTool ReadMcpResourceTool LSP ReportFindings "
        "ScheduleWakeup".split()
    )
    """The plan that ExitPlanMode writes is the client's own."""

    def __init__(self) -> None:
        super().__init__()
        self.last_reply = 0
        """The last message of the model."""
        self._names: dict[str, str] = {}
        """Of what runs in the background: the call that began it, by the name it was given."""
        self._typed: str | None = None
        """The command that the person typed last, until it is over."""

    def message(self, unit: Unit) -> Iterator[Event]:
        """Events of a notice of the client, a command of the person or a hook; then those of calls and results."""
        index = unit.value["index"]
        if unit.value["role"] == "assistant":
            self.last_reply = index
        if self._typed is not None:
            yield WriterFinished(self._typed, index)
            self._typed = None
        attachment = object_at(unit.native, "attachment")
        for text in _texts(unit.value, attachment):
            yield from self._notice(text, index)
        if str(attachment.get("type")).startswith("hook_"):
            yield from self._hook(attachment.get("toolUseID"), index)
        if unit.native.get("subtype") == "stop_hook_summary":
            yield from self._hook(None, index)
        yield from super().message(unit)

    def record(self, unit: Unit) -> Iterator[Event]:
        # An older client records a hook while it runs.
        is_hook = object_at(unit.native, "data").get("type") == "hook_progress"
        if unit.value.get("kind") == "progress" and is_hook:
            yield from self._hook(unit.native.get("parentToolUseID"), self.index + 1)

    def _hook(self, call_id: JSON, index: int) -> Iterator[Event]:
        call = self.calls.get(call_id) if isinstance(call_id, str) else None
        key = f"hook {index}"
        yield WriterStarted(key, call.call_index if call is not None else min(self.last_reply, index - 1), "a hook")
        yield WriterFinished(key, index)

    def _notice(self, text: str, index: int) -> Iterator[Event]:
        if "<task-notification>" in text:
            for found in _NOTIFIED.finditer(text):
                yield WriterFinished(found[1], index)
        typed, slash = _TYPED.match(text.lstrip()), _SLASH.match(text)
        if typed is not None and not is_read_only_command(typed[1]):
            yield from self._type(f"`{short_command(typed[1])}`", index)
        elif slash is not None and slash[1].strip() not in _OWN_COMMANDS:
            yield from self._type(f"/{short_command(slash[1])}", index)

    def _type(self, what: str, index: int) -> Iterator[Event]:
        """A command that the person typed: it runs about now, and is over at the next message."""
        self._typed = f"typed {index}"
        yield WriterStarted(self._typed, index - 1, what)

    def ended_writers(self, call: ToolCall) -> Iterator[Event]:
        if self.can_change_any_file(call) and self.keeps_running(call):
            names = [call.result_details.get(word) for word in ("backgroundTaskId", "agentId", "taskId", "shellId")]
            self._names.update({name: call.id for name in names if isinstance(name, str)})
        yield from super().ended_writers(call)
        yield from self._finish_background_tasks(call)

    def keeps_running(self, call: ToolCall) -> bool:
        if call.name in ("Task", "Agent"):
            return call.result_details.get("isAsync") is True or call.result_details.get("status") not in (
                None,
                "completed",
            )
        return call.input.get("run_in_background") is True or isinstance(
            call.result_details.get("backgroundTaskId"), str
        )

    def _finish_background_tasks(self, call: ToolCall) -> Iterator[Event]:
        """The person or the model looked after what runs, or stopped it."""
        task = object_at(call.result_details, "task") or call.result_details
        stopped = call.name in ("KillShell", "KillBash", "TaskStop")
        if not stopped and task.get("status") not in _FINISHED_STATUSES:
            return
        for holder in (call.result_details, task, call.input):
            for word in ("shellId", "shell_id", "bash_id", "task_id", "taskId"):
                key = self._names.get(str(holder.get(word)))
                if key is not None:
                    yield WriterFinished(key, call.result_index)


def _texts(message: dict[str, JSON], attachment: Mapping[str, JSON]) -> Iterator[str]:
    for block in message["content"]:
        if block["type"] == "text":
            yield block["text"]
    prompt = attachment.get("prompt")
    if isinstance(prompt, str) and attachment.get("type") != "queued_command":
        yield prompt
