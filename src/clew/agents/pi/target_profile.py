"""What Pi can hold of other agents' sessions, its tools, and how a session is resumed."""

from __future__ import annotations

from clew.agents.target_profile import Capacity, Compaction, TargetProfile, read_summary_message
from clew.agents.tools import Arguments, Tool, without
from clew.model.unit import Unit


def _read_edit(arguments: Arguments) -> Arguments:
    """The arguments of an edit; a call that makes several keeps its list."""
    edits = arguments.get("edits")
    edit = edits[0] if type(edits) is list and len(edits) == 1 else None
    if type(edit) is not dict or edit.keys() != {"oldText", "newText"}:
        return arguments
    return {**without(arguments, "edits"), "old": edit["oldText"], "new": edit["newText"]}


def _write_edit(arguments: Arguments) -> Arguments:
    if not {"old", "new"} <= arguments.keys():
        return arguments
    edit = {"oldText": arguments["old"], "newText": arguments["new"]}
    return {**without(arguments, "old", "new"), "edits": [edit]}


TOOLS = (
    Tool("shell", "bash"),
    Tool("read", "read"),
    Tool("write", "write"),
    Tool("edit", "edit", read=_read_edit, write=_write_edit),
    Tool("grep", "grep"),
    Tool("glob", "find"),
    Tool("list", "ls"),
)


def _compaction(unit: Unit, before: Unit | None) -> Compaction | None:
    """The summary and the messages that pi keeps; the summary of a branch that was left replaces nothing."""
    if unit.native.get("type") != "compaction":
        return None
    compaction, first = read_summary_message(unit, before), unit.native.get("firstKeptEntryId")
    return compaction._replace(first_kept=first if isinstance(first, str) else None) if compaction else None


TARGET_PROFILE = TargetProfile(
    capacity=Capacity(
        images=True,
        images_in_results=True,
        failures=True,
        titles=True,
    ),
    tools=TOOLS,
    id_keys=("id",),
    resume=lambda session: ["pi", "--session", str(session["id"])],
    compaction=_compaction,
)
