"""What runs during a session of Claude Code and can change any file: commands, sub-agents, hooks, foreign tools."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from clew.agents.file_evidence import Event, WriterFinished, WriterStarted, writer_started
from clew.agents.read_only_commands import is_read_only_command
from clew.analysis.titles import short_command
from clew.model.json import JSON

_HARMLESS = frozenset(
    "Read Glob Grep LS NotebookRead TodoRead TodoWrite TaskCreate TaskUpdate TaskGet TaskList TaskOutput TaskStop "
    "BashOutput KillShell KillBash WebFetch WebSearch ToolSearch AskUserQuestion ExitPlanMode EnterPlanMode "
    "exit_plan_mode SendMessage ListMcpResourcesTool ReadMcpResourceTool LSP ReportFindings "
    "ScheduleWakeup".split()
)
"""Tools that change no file of a project themselves. The plan that ExitPlanMode writes is the client's own."""
_SHELLS = ("Bash", "PowerShell")
_AGENTS = ("Task", "Agent")
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
FINISHED_STATUSES = ("completed", "failed", "killed", "stopped")

MessageIndexOfCall = Callable[[JSON], int | None]
"""The message of the call that an id stands for."""


class BackgroundWriters:
    """Tells when something begins that can change files, and when it is over."""

    def __init__(self) -> None:
        self.last_reply = 0
        self._running: set[str] = set()
        self._names: dict[str, str] = {}
        """Of what runs in the background: the call that began it, by the name it was given."""
        self._typed: str | None = None

    def called(self, key: str, name: str, given: dict[str, JSON], index: int) -> Iterator[Event]:
        command = given.get("command")
        if name in _HARMLESS or (name in _SHELLS and isinstance(command, str) and is_read_only_command(command)):
            return
        self._running.add(key)
        yield writer_started(key, index, name, command)

    def returned(self, key: str, name: str, given: dict[str, JSON], result: JSON, index: int) -> Iterator[Event]:
        details = result if isinstance(result, dict) else {}
        if key in self._running:
            names = [details.get(word) for word in ("backgroundTaskId", "agentId", "taskId", "shellId")]
            if self._still_running(name, given, details):
                self._names.update({one: key for one in names if isinstance(one, str)})
            else:
                yield from self.ended(key, index)
        yield from self._finish_background_tasks(name, given, details, index)

    def ended(self, key: str, index: int) -> Iterator[Event]:
        """What a call began is over."""
        if key in self._running:
            self._running.remove(key)
            yield WriterFinished(key, index)

    def message(
        self, message: dict[str, JSON], native: Mapping[str, JSON], begun: MessageIndexOfCall
    ) -> Iterator[Event]:
        """What a message itself tells: a notice of the client, a command of the person, a hook."""
        index = message["index"]
        if message["role"] == "assistant":
            self.last_reply = index
        if self._typed is not None:
            yield WriterFinished(self._typed, index)
            self._typed = None
        attachment = native.get("attachment")
        for text in _texts(message, attachment):
            yield from self._notice(text, index)
        if isinstance(attachment, dict) and str(attachment.get("type")).startswith("hook_"):
            yield from self._hook(attachment, "toolUseID", index, begun)
        if native.get("subtype") == "stop_hook_summary":
            yield from self._hook(native, "", index, begun)

    def progress(self, native: Mapping[str, JSON], index: int, begun: MessageIndexOfCall) -> Iterator[Event]:
        """A hook that an older client tells of while it runs."""
        data = native.get("data")
        if isinstance(data, dict) and data.get("type") == "hook_progress":
            yield from self._hook(native, "parentToolUseID", index + 1, begun)

    def _hook(self, details: Mapping[str, JSON], name: str, index: int, begun: MessageIndexOfCall) -> Iterator[Event]:
        call = begun(details.get(name))
        key = f"hook {index}"
        yield WriterStarted(key, call if call is not None else min(self.last_reply, index - 1), "a hook")
        yield WriterFinished(key, index)

    def _notice(self, text: str, index: int) -> Iterator[Event]:
        if "<task-notification>" in text:
            for found in _NOTIFIED.finditer(text):
                yield from self.ended(found[1], index)
        typed, slash = _TYPED.match(text.lstrip()), _SLASH.match(text)
        if typed is not None and not is_read_only_command(typed[1]):
            yield from self._type(f"`{short_command(typed[1])}`", index)
        elif slash is not None and slash[1].strip() not in _OWN_COMMANDS:
            yield from self._type(f"/{short_command(slash[1])}", index)

    def _type(self, what: str, index: int) -> Iterator[Event]:
        """A command that the person typed: it runs about now, and is over at the next message."""
        self._typed = f"typed {index}"
        yield WriterStarted(self._typed, index - 1, what)

    def _still_running(self, name: str, given: dict[str, JSON], details: dict[str, JSON]) -> bool:
        if name in _AGENTS:
            return details.get("isAsync") is True or details.get("status") not in (None, "completed")
        return given.get("run_in_background") is True or isinstance(details.get("backgroundTaskId"), str)

    def _finish_background_tasks(
        self, name: str, given: dict[str, JSON], details: dict[str, JSON], index: int
    ) -> Iterator[Event]:
        """The person or the model looked after what runs, or stopped it."""
        task = details.get("task")
        task = task if isinstance(task, dict) else details
        stopped = name in ("KillShell", "KillBash", "TaskStop")
        if not stopped and task.get("status") not in FINISHED_STATUSES:
            return
        for holder in (details, task, given):
            for word in ("shellId", "shell_id", "bash_id", "task_id", "taskId"):
                key = self._names.get(str(holder.get(word)))
                if key is not None:
                    yield from self.ended(key, index)


def _texts(message: dict[str, JSON], attachment: JSON) -> Iterator[str]:
    for block in message["content"]:
        if block["type"] == "text":
            yield block["text"]
    if isinstance(attachment, dict) and attachment.get("type") != "queued_command":
        prompt = attachment.get("prompt")
        if isinstance(prompt, str):
            yield prompt
