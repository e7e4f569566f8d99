"""What a rollout tells of the conversation in lines that are no messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from clew.agents.codex.locate import AGENT
from clew.agents.receiving import ORIGIN, Aside
from clew.model.json import JSON

_Payload = Mapping[str, JSON]
_ROLES = ("user", "assistant", "developer", "system")
_IN_CODE = "exec-"
"""How the ids of calls begin that code made which the model wrote."""


def aside(record: Mapping[str, JSON]) -> Aside | None:
    """What a line says that is part of the conversation, unless a message says it too."""
    payload = _rest(record).get("payload")
    if not isinstance(payload, dict):
        return _bare(record)
    if record.get("type") == "event_msg":
        told = _EVENTS.get(str(payload.get("type")))
        return told(payload) if told is not None else None
    if record.get("type") == "inter_agent_communication":
        return _said("a message of another agent", _text(payload, "content"), begins=True)
    return _unknown(record, payload) if record.get("kind") == "other" else None


def _rest(value: Mapping[str, JSON]) -> Mapping[str, JSON]:
    own = (value.get("extensions") or {}).get(AGENT) or {}
    rest = own.get("rest")
    return rest if isinstance(rest, dict) else {}


def _text(value: _Payload, name: str) -> str:
    text = value.get(name)
    return text if isinstance(text, str) else ""


def _said(what: str, text: str, role: str = "user", begins: bool = False) -> Aside | None:
    return Aside(what, text=text, role=role, marks=(text,), begins=begins) if text.strip() else None


def _thought(payload: _Payload) -> Aside | None:
    """What a model thought; where no item tells it, as in sessions of other agents, only the event does."""
    said = _said("thinking", _text(payload, "text"), "assistant")
    return said._replace(is_thought=True) if said is not None else None


def _unknown(record: Mapping[str, JSON], payload: _Payload) -> Aside | None:
    """Items of the time to come may be words; of other lines clew has no way to know."""
    return _item(payload.get("type")) if record.get("type") in ("response_item", "request_item") else None


def _bare(record: Mapping[str, JSON]) -> Aside | None:
    """The same for items that stand on their lines alone."""
    rest, kind = _rest(record), record.get("type")
    if record.get("kind") != "other" or "payload" in rest or kind == ORIGIN:
        return None
    if not kind and "role" in rest:
        return Aside(f"a line of the role {rest['role']!r}", "clew does not know such lines")
    return _item(kind) if kind else None


def _item(kind: JSON) -> Aside:
    return Aside(f"an item of the kind {kind!r}", "clew does not know such items")


def _plan(payload: _Payload) -> Aside | None:
    item = payload.get("item")
    if not isinstance(item, dict) or item.get("type") != "Plan":
        return None
    return _said("a proposed plan", _text(item, "text"), "assistant")


def _review(payload: _Payload) -> Aside | None:
    """What a review found, as the texts of its parts."""
    found = payload.get("review_output")
    if not isinstance(found, dict):
        return None
    findings = found.get("findings")
    listed = [each for each in findings if isinstance(each, dict)] if isinstance(findings, list) else []
    parts = [_text(found, "overall_explanation"), *map(_finding, listed)]
    text = "\n\n".join(part for part in parts if part.strip())
    marks = (_text(found, "overall_explanation"), *(_text(each, "title") for each in listed))
    return Aside("what a review found", text=text, role="assistant", marks=marks) if text else None


def _finding(finding: _Payload) -> str:
    return "\n".join(text for text in (_text(finding, "title"), _text(finding, "body"), _place(finding)) if text)


def _place(finding: _Payload) -> str:
    place = finding.get("code_location")
    if not isinstance(place, dict):
        return ""
    lines = place.get("line_range")
    at = f":{lines.get('start')}-{lines.get('end')}" if isinstance(lines, dict) else ""
    return f"{_text(place, 'absolute_file_path')}{at}"


def _search(payload: _Payload) -> Aside | None:
    return Aside("what a search of the web found", "no message holds it") if payload.get("results") else None


def _tool(payload: _Payload) -> Aside | None:
    """A call of a server's tool that no item tells of: code made it."""
    return Aside(
        "a call that only an event tells of", "no message holds it or its result", call=_text(payload, "call_id")
    )


def _in_code(payload: _Payload) -> Aside | None:
    return _tool(payload) if _text(payload, "call_id").startswith(_IN_CODE) else None


_EVENTS: dict[str, Callable[[_Payload], Aside | None]] = {
    "agent_reasoning": _thought,
    "item_completed": _plan,
    "exited_review_mode": _review,
    "web_search_end": _search,
    "mcp_tool_call_end": _tool,
    "exec_command_end": _in_code,
    "patch_apply_end": _in_code,
}


def strange(note: Mapping[str, JSON]) -> str | None:
    """The role of a message that is none of the client's."""
    rest = _rest(note)
    item = rest.get("payload", rest)
    role = item.get("role") if isinstance(item, dict) else None
    return role if isinstance(role, str) and role not in _ROLES else None


def namespace(message: Mapping[str, JSON]) -> str | None:
    """What the name of a tool begins with, where its item says so."""
    rest = _rest(message)
    item = rest.get("payload", rest)
    space = item.get("namespace") if isinstance(item, dict) else None
    return space if isinstance(space, str) and space else None
