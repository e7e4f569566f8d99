"""Logs of Sage Agent in the older form: each record gets the form the program writes today."""

from __future__ import annotations

from clew.agents.base import SourceFile
from clew.agents.sage_agent import SageAgent, locate
from clew.agents.sage_agent.encode import platform_of
from clew.agents.sage_agent.metadata import VERSION
from clew.agents.sage_agent.records import OLD_ROLES, message_body
from clew.agents.sage_format import read_metadata
from clew.io.records import RawRecord
from clew.migrate.records import Change, Record
from clew.model.json import JSON

_TYPES = {"tool": "tool_result"}
_MOVED = ("role", "content", "tool_calls", "tool_results", "timestamp")
_RESULT_KEYS = {"tool_call_id": "toolCallId", "tool_name": "toolName"}


def is_old(value: Record | None) -> bool:
    """True for a record of the older form that has what the new one needs."""
    if value is None or "type" in value:
        return False
    return value.get("role") in OLD_ROLES and isinstance(value.get("content"), str)


def modernising(source: SourceFile) -> Change:
    """Gives old records the new form, and what follows them its parent."""
    uuids, parents = _derived(source)
    fixed = _envelope(source)

    def change(record: RawRecord) -> Record | None:
        value = record.value
        if value is not None and is_old(value):
            links = {"uuid": uuids[record.start], "parentUuid": parents.get(record.start)}
            return _modern(value, links, fixed)
        if value is not None and record.start in parents and record.start not in uuids:
            return {**value, "parentUuid": parents[record.start]}
        return None

    return change


def _derived(source: SourceFile) -> tuple[dict[int, str], dict[int, str]]:
    """The ids and parents that were derived, by the place of the record in the log."""
    agent = SageAgent()
    uuids: dict[int, str] = {}
    parents: dict[int, str] = {}
    for unit in agent.units(source):
        if unit.is_message and not unit.part:
            body, parent = message_body(unit.native) or {}, unit.value.get("parent_uuid")
            if body.get("uuid") != unit.value["uuid"]:
                uuids[unit.start] = unit.value["uuid"]
            if parent is not None and body.get("parentUuid") != parent:
                parents[unit.start] = parent
    return uuids, parents


def _envelope(source: SourceFile) -> Record:
    agent = SageAgent()
    facts = agent.facts(source)
    known = read_metadata(source.path.parent) or {}
    cwd = agent.session(source, facts)["workspace"]
    branch = known.get("gitBranch") or facts.git_branch
    context: Record = {"cwd": cwd, "gitBranch": branch, "platform": platform_of(cwd)}
    return {
        "sessionId": locate.session_id(source),
        "version": known.get("version") or facts.version or VERSION,
        "context": {name: item for name, item in context.items() if item is not None},
    }


def _modern(value: Record, links: Record, fixed: Record) -> Record:
    role = value["role"]
    message: Record = {"role": role, "content": value["content"]}
    if value.get("tool_calls") is not None:
        message["toolCalls"] = value["tool_calls"]
    if value.get("tool_results") is not None:
        message["toolResults"] = _results(value["tool_results"])
    return {
        "type": _TYPES.get(role, role),
        **links,
        "timestamp": value.get("timestamp"),
        **fixed,
        "message": message,
        "todos": [],
        "isSidechain": False,
        **{name: item for name, item in value.items() if name not in _MOVED},
    }


def _results(results: JSON) -> JSON:
    if not isinstance(results, list):
        return results
    return [
        {_RESULT_KEYS.get(name, name): item for name, item in result.items()} if isinstance(result, dict) else result
        for result in results
    ]
