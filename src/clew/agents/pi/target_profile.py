"""What Pi can hold of other agents' sessions, its tools, and how a session is resumed."""

from __future__ import annotations

from clew.agents.target_profile import Capacity, Compaction, TargetProfile, read_summary_message
from clew.agents.tools import EDIT, GLOB, GREP, LIST, READ, SHELL, WRITE, Arguments, Tool
from clew.model.unit import Unit


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


def _compaction(unit: Unit, before: Unit | None) -> Compaction | None:
    """The summary and the messages that pi keeps; the summary of a branch that was left replaces nothing."""
    if unit.native.get("type") != "compaction":
        return None
    compaction, first = read_summary_message(unit, before), unit.native.get("firstKeptEntryId")
    return compaction._replace(first_kept=first if isinstance(first, str) else None) if compaction else None


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
    compaction=_compaction,
)
