"""What Continue can hold of other agents' sessions, its tools, and how it is made to list a session."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from clew.agents.continue_dev import INDEX, list_entry
from clew.agents.continue_dev.checklist import format_checklist, parse_checklist
from clew.agents.continue_dev.records import UNTITLED
from clew.agents.target_profile import Capacity, Header, ReadFile, TargetProfile
from clew.agents.tools import EDIT_ARGUMENTS, Arguments, Tool
from clew.errors import UsageError
from clew.io.codec import NOT_JSON, dumps, loads
from clew.model.time import milliseconds


def _read_checklist(arguments: Arguments) -> Arguments:
    text = arguments.get("todos")
    return {**arguments, "todos": parse_checklist(text)} if isinstance(text, str) else arguments


def _write_checklist(arguments: Arguments) -> Arguments:
    todos = arguments.get("todos")
    return {**arguments, "todos": format_checklist(todos)} if isinstance(todos, list) else arguments


_PATH = {"path": "filepath"}
TOOLS = (
    Tool("shell", "Bash"),
    Tool("read", "Read", _PATH),
    Tool("write", "Write", _PATH),
    Tool("edit", "Edit", {"path": "file_path", **EDIT_ARGUMENTS}),
    Tool("grep", "Search", {"glob": "file_pattern"}),
    Tool("list", "List", {"path": "dirpath"}),
    Tool("fetch", "Fetch"),
    Tool("todos", "Checklist", {"todos": "checklist"}, read=_read_checklist, write=_write_checklist),
)


def _register(header: Header, read: ReadFile) -> Iterator[tuple[str, bytes]]:
    """The list of sessions with the new one: the client resumes the first of its folder that the list names."""
    name, session = f".continue/sessions/{INDEX}", header.session
    try:
        entries = loads(read(name) or b"[]")
    except NOT_JSON:
        entries = None
    if not isinstance(entries, list):
        raise UsageError(f"{name} is not a list: Continue could not read it either")
    before, started = session.get("list_entry") or {}, milliseconds(session.get("started_at"))
    known = {
        "sessionId": session["id"],
        "title": session.get("title") or before.get("title") or UNTITLED,
        "workspaceDirectory": session["workspace"],
    }
    entry = {**known, "dateCreated": str(started or 0), **before, **known}
    others = [each for each in entries if not isinstance(each, dict) or each.get("sessionId") != session["id"]]
    yield name, msgspec.json.format(dumps([*others, entry]), indent=2)


TARGET_PROFILE = TargetProfile(
    capacity=Capacity(
        images=True,
        failures=True,
        titles=True,
    ),
    tools=TOOLS,
    id_keys=("sessionId",),
    resume=lambda session: ["cn", "--fork", str(session["id"])],
    register=_register,
    list_entry=list_entry,
)
