"""The records of sage-emacs, key by key, in every version of its schema."""

from __future__ import annotations

from clew.agents.calls import Inverse, Listed, Spelled
from clew.agents.folding import own_extension
from clew.agents.jsonl import Form
from clew.agents.mapping import (
    COUNT,
    OPTIONAL_TEXT,
    TEXT,
    Blocks,
    Field,
    Fixed,
    Kind,
    Leaf,
    Nest,
    Shared,
    Table,
    Time,
)
from clew.agents.sage_emacs.locate import AGENT
from clew.model.json import JSON

_SOMETHING = frozenset({str, int, float, bool, dict, list})
_NUMBER = frozenset({int, float})

ROLES = ("user", "assistant", "system")
CALLS, DURATION = "calls", "duration"
"""Slots between table and fold; a document never shows them."""
MODEL = "model"
"""Noted as derived on a reply whose model only the session names."""

# One object holds a call and its result; the fold takes them apart.
_CALL = Kind(
    "tool_use",
    Table(
        "call",
        Leaf("id", "tool_id", TEXT),
        Leaf("name", "tool_name", TEXT),
        Leaf("args", "input", _SOMETHING),
        Spelled("result", "output"),
        Leaf("duration_ms", DURATION, _NUMBER),
        Inverse("success", "is_error"),
    ),
)

_BLOCKS = {"text": Kind("text", Table("text", Fixed("type", "text"), Leaf("text", "text", TEXT)), ("text",))}

_USAGE = Table(
    "usage",
    Leaf("input_tokens", "usage.input_tokens", COUNT),
    Leaf("output_tokens", "usage.output_tokens", COUNT),
    Leaf("cache_read_tokens", "usage.cache_read_tokens", COUNT),
    known=["estimated_cost_usd"],
)

_COMMON: tuple[Field, ...] = (
    Time("timestamp", "timestamp"),
    Leaf("uuid", "uuid", TEXT),
    Leaf("parentUuid", "parent_uuid", OPTIONAL_TEXT),
    Shared("session_id", "session_id"),
    Shared("sessionId", "sessionId"),
    Leaf("cwd", "metadata.cwd", OPTIONAL_TEXT),
    Leaf("gitBranch", "metadata.git_branch", OPTIONAL_TEXT),
    Leaf("version", "metadata.agent_version", OPTIONAL_TEXT),
    Leaf("model", "model.name", OPTIONAL_TEXT),
)

MESSAGE = Form(
    Table(
        "message",
        Shared("role", "role"),
        Blocks("content", _BLOCKS),
        *_COMMON,
        Listed("tool_calls", CALLS, _CALL, fill=("tool_id", "tool_name", "input")),
        Nest("tokens", Table("tokens", Leaf("estimated", "metadata.estimated_tokens", COUNT))),
        Nest("usage", _USAGE),
    )
)
TOOL = Form(
    Table(
        "tool",
        Shared("role", "role"),
        Leaf("tool_call_id", "tool_id", TEXT),
        Leaf("name", "tool_name", TEXT),
        Spelled("content", "output"),
        Inverse("success", "is_error"),
        *_COMMON,
    ),
    "user",
)
SAVED = Form(
    Table(
        "saved",
        Leaf("name", "text", TEXT),
        Time("updated_at", "timestamp"),
        # An estimate of all tokens is no count of any reply, so it has no place.
        known=["model", "provider", "messages", "created_at", "message_count", "total_tokens", "workspace"],
    ),
    kind="state",
)
"""What stands around the messages of a saved session."""
UNKNOWN = Form(Table("unknown", Leaf("content", "text", TEXT), Time("timestamp", "timestamp")), kind="unknown")

_FORMS = {role: MESSAGE._replace(role=role) for role in ROLES} | {"tool": TOOL}


def choose(record: dict[str, JSON]) -> Form:
    """The form of a native record."""
    role = record.get("role")
    return _FORMS.get(role, UNKNOWN) if type(role) is str else UNKNOWN


def chosen(is_message: bool, value: dict[str, JSON]) -> Form:
    """The same choice from the unified side."""
    if not is_message:
        return SAVED if "document" in own_extension(value, AGENT) else UNKNOWN
    return TOOL if is_tool(value) else MESSAGE


def is_tool(message: dict[str, JSON]) -> bool:
    """True for a message whose record has the role `tool`, which the model does not know."""
    rest = own_extension(message, AGENT).get("rest") or {}
    return rest.get("role") == "tool"
