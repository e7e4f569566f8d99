"""Converts Sage records of the older format to the current one, and changes the parents of records."""

from __future__ import annotations

from collections.abc import Mapping

from clew.agents.sage_agent.records import message_body
from clew.model.json import JSON

_OLD_KEYS = ("role", "content", "tool_calls", "tool_results", "timestamp")
_RESULT_KEYS = {"tool_call_id": "toolCallId", "tool_name": "toolName"}

Object = dict[str, JSON]


def make_envelope(session: str, version: JSON, context: Object) -> Object:
    """Return what every record of a session repeats."""
    return {"sessionId": session, "version": version, "context": context}


def parent_of(body: Mapping[str, JSON]) -> JSON:
    """Return the parent that a record names."""
    return body.get("parentUuid")


def with_parent(record: Object, parent: str) -> Object:
    """Return a record of the current form with another parent."""
    inner = message_body(record) or {}
    body = {**inner, "parentUuid": parent}
    return body if inner is record else {**record, "payload": body}


def to_current_form(record: Object, uuid: str, parent: str | None, envelope: Object) -> Object:
    """Return a record of the older form in the current one; unknown keys stay."""
    role, results = record["role"], record.get("tool_results")
    message: Object = {"role": role, "content": record["content"]}
    if record.get("tool_calls") is not None:
        message["toolCalls"] = record["tool_calls"]
    if results is not None:
        message["toolResults"] = _current_results(results)
    return {
        "type": "tool_result" if role == "tool" else role,
        "uuid": uuid,
        "parentUuid": parent,
        "timestamp": record.get("timestamp"),
        **envelope,
        "message": message,
        "todos": [],
        "isSidechain": False,
        **{name: item for name, item in record.items() if name not in _OLD_KEYS},
    }


def _current_results(results: JSON) -> JSON:
    if not isinstance(results, list):
        return results
    return [
        {_RESULT_KEYS.get(name, name): item for name, item in result.items()} if isinstance(result, dict) else result
        for result in results
    ]
