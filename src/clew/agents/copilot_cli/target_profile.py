"""What GitHub Copilot CLI can hold of other agents' sessions, and how a session is resumed."""

from __future__ import annotations

from clew.agents.copilot_cli import locate
from clew.agents.encoding import NO_RESULT
from clew.agents.target_profile import Capacity, TargetProfile
from clew.agents.tools import Arguments, Tool, without

INJECTED = ("<system_notification>", "<system_reminder>", "<current_datetime>")
"""How texts begin that the client writes for its model."""


def _read_range(arguments: Arguments) -> Arguments:
    """A range of lines as its first line and their number."""
    lines = arguments.get("view_range")
    if type(lines) is not list or len(lines) != 2 or any(type(line) is not int for line in lines):
        return arguments
    first, last = lines
    limit = {"limit": last - first + 1} if last >= first else {}
    return {**without(arguments, "view_range"), "offset": first, **limit}


def _write_range(arguments: Arguments) -> Arguments:
    first, count = arguments.get("offset"), arguments.get("limit")
    if type(first) is not int and type(count) is not int:
        return arguments
    first = first if type(first) is int else 1
    last = first + count - 1 if type(count) is int else -1
    return {**without(arguments, "offset", "limit"), "view_range": [first, last]}


TOOLS = (
    Tool("shell", "bash"),
    Tool("read", "view", read=_read_range, write=_write_range),
    Tool("write", "create", {"content": "file_text"}),
    Tool("edit", "edit", {"old": "old_str", "new": "new_str"}),
    Tool("glob", "glob", {"path": "paths"}),
    Tool("grep", "grep", {"path": "paths"}),
    Tool("fetch", "web_fetch"),
)

TARGET_PROFILE = TargetProfile(
    capacity=Capacity(
        images=True,
        images_in_results=True,
        thinking=True,
        failures=True,
        titles=True,
        compactions=True,
    ),
    tools=TOOLS,
    id_keys=("sessionId", "sourceSessionId"),
    resume=lambda session: ["copilot", f"--resume={session['id']}"],
    resumes_file=lambda path, _parts: locate.is_in_own_folder(path),
    injected_prefixes=INJECTED,
    no_result_text=NO_RESULT,
    can_find_by_id=lambda path, identity: path.parent.name == identity and path.name == locate.EVENTS_FILE,
)
