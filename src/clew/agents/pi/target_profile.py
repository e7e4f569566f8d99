"""What Pi can hold of other agents' sessions, its tools, and how a session is resumed."""

from __future__ import annotations

from clew.agents.target_profile import Capacity, TargetProfile
from clew.agents.tools import EDIT, GLOB, GREP, LIST, READ, SHELL, WRITE, Arguments, Tool


def _read_edit(arguments: Arguments) -> Arguments:
    """The arguments of an edit; a call that makes several keeps its list."""
    edits = arguments.get("edits")
    edit = edits[0] if type(edits) is list and len(edits) == 1 else None
    if type(edit) is not dict or edit.keys() != {"oldText", "newText"}:
        return arguments
    others = {name: value for name, value in arguments.items() if name != "edits"}
    return {**others, "old": edit["oldText"], "new": edit["newText"]}


def _write_edit(arguments: Arguments) -> Arguments:
    if not {"old", "new"} <= arguments.keys():
        return arguments
    others = {name: value for name, value in arguments.items() if name not in ("old", "new")}
    return {**others, "edits": [{"oldText": arguments["old"], "newText": arguments["new"]}]}


TOOLS = (
    Tool(SHELL, "bash"),
    Tool(READ, "read"),
    Tool(WRITE, "write"),
    Tool(EDIT, "edit", read=_read_edit, write=_write_edit),
    Tool(GREP, "grep"),
    Tool(GLOB, "find"),
    Tool(LIST, "ls"),
)

TARGET_PROFILE = TargetProfile(
    Capacity(
        images=True,
        images_in_results=True,
        image_types=("image/png", "image/jpeg", "image/gif", "image/webp"),
        failures=True,
        titles=True,
    ),
    TOOLS,
    ("id",),
    lambda session: ["pi", "--session", str(session["id"])],
)
