"""What GitHub Copilot CLI can hold of other agents' sessions, and how a session is resumed."""

from __future__ import annotations

from clew.agents.copilot_cli import locate
from clew.agents.copilot_cli.encode import UNANSWERED
from clew.agents.target_profile import Capacity, TargetProfile
from clew.agents.tools import EDIT, FETCH, GLOB, GREP, READ, SHELL, WRITE, Arguments, Tool

INJECTED = ("<system_notification>", "<system_reminder>", "<current_datetime>")
"""How texts begin that the client writes for its model."""


def _read_range(arguments: Arguments) -> Arguments:
    """A range of lines as its first line and their number."""
    lines = arguments.get("view_range")
    if type(lines) is not list or len(lines) != 2 or any(type(line) is not int for line in lines):
        return arguments
    first, last = lines
    others = {name: value for name, value in arguments.items() if name != "view_range"}
    return {**others, "offset": first, **({"limit": last - first + 1} if last >= first else {})}


def _write_range(arguments: Arguments) -> Arguments:
    first, count = arguments.get("offset"), arguments.get("limit")
    if type(first) is not int and type(count) is not int:
        return arguments
    first = first if type(first) is int else 1
    last = first + count - 1 if type(count) is int else -1
    others = {name: value for name, value in arguments.items() if name not in ("offset", "limit")}
    return {**others, "view_range": [first, last]}


TOOLS = (
    Tool(SHELL, "bash"),
    Tool(READ, "view", read=_read_range, write=_write_range),
    Tool(WRITE, "create", {"content": "file_text"}),
    Tool(EDIT, "edit", {"old": "old_str", "new": "new_str"}),
    Tool(GLOB, "glob", {"path": "paths"}),
    Tool(GREP, "grep", {"path": "paths"}),
    Tool(FETCH, "web_fetch"),
)

TARGET_PROFILE = TargetProfile(
    Capacity(
        images=True,
        images_in_results=True,
        image_types=("image/png", "image/jpeg", "image/gif", "image/webp"),
        thinking=True,
        failures=True,
        titles=True,
        compactions=True,
    ),
    TOOLS,
    ("sessionId", "sourceSessionId"),
    lambda session: ["copilot", f"--resume={session['id']}"],
    lambda path, _parts: locate.is_in_own_folder(path),
    INJECTED,
    no_result_text=UNANSWERED,
    can_find_by_id=lambda path, identity: path.parent.name == identity and path.name == locate.EVENTS_FILE,
)
