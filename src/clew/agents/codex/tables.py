"""The lines of a rollout, key by key. Keys listed as known stay in the rest; all others are reported as unknown.

A line is an envelope with a payload, or (until v0.31) a bare item. Items that are conversation become messages.
The tables of calls and results put their values beside the content; `shape.py` makes blocks of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from clew.agents.codex.parts import Arguments, DataAddress, FreeText, Opaque, SpokenType, Summary
from clew.agents.codex.records import (
    DOCUMENT_ITEMS,
    DOCUMENT_SESSION,
    EVENT_LINE,
    ITEM_KINDS,
    ITEM_LINES,
    RECORD_KINDS,
    document_session,
)
from clew.agents.jsonl import Form
from clew.agents.mapping import TEXT, Blocks, Field, Fixed, Kind, Leaf, Nest, Shared, Table, Time
from clew.model.json import JSON

AGENT = "codex"
BARE = "bare"
"""Noted on a message whose item stood on its line without an envelope."""
OBJECT = frozenset({dict})

_TEXT = Kind(
    "text",
    Table("text", SpokenType(), Leaf("text", "text", TEXT), known=["annotations", "text_elements", "logprobs"]),
    ("text",),
)
_OPAQUE = Opaque("unknown", Table("opaque"))
BLOCKS: dict[str, Kind] = {
    **dict.fromkeys(("input_text", "output_text", "text"), _TEXT),
    "input_image": Kind(
        "image",
        Table("image", Fixed("type", "input_image"), DataAddress("image_url", "image"), known=["detail", "file_id"]),
    ),
    "input_audio": Kind("document", Table("audio", Fixed("type", "input_audio"), DataAddress("audio_url", "document"))),
    "encrypted_content": _OPAQUE,
}

_COMMON = ["status", "internal_chat_message_metadata_passthrough", "metadata", "timestamp"]
_ID = Leaf("id", "uuid", TEXT)
_CALL = Leaf("call_id", "tool_id", TEXT)
_NAME = Leaf("name", "tool_name", TEXT)
_OUTPUT = Blocks("output", BLOCKS, slot="output", wrap=False)

_ITEMS: dict[str, tuple[list[Field], list[str]]] = {
    "message": (
        [Fixed("type", "message"), _ID, Shared("role", "role"), Blocks("content", BLOCKS)],
        ["phase", "end_turn", "name", "model"],
    ),
    "reasoning": (
        [Fixed("type", "reasoning"), _ID, Summary(), Leaf("encrypted_content", "signature", TEXT)],
        ["content"],
    ),
    "function_call": (
        [Fixed("type", "function_call"), _ID, _NAME, Arguments(), _CALL],
        ["namespace", "encrypted_function_args", "parameters"],
    ),
    "function_call_output": (
        [Fixed("type", "function_call_output"), _ID, _CALL, _OUTPUT],
        ["name", "namespace", "success"],
    ),
    # From here on the type is kept with the item, as nothing else tells it.
    "custom_tool_call": ([_ID, _CALL, _NAME, FreeText()], ["type", "namespace"]),
    "custom_tool_call_output": ([_ID, _CALL, _OUTPUT], ["type", "name", "namespace"]),
    "local_shell_call": ([_ID, _CALL, Leaf("action", "input", OBJECT)], ["type"]),
    "web_search_call": ([_ID, Leaf("action", "input", OBJECT)], ["type"]),
    "tool_search_call": ([_ID, _CALL, Leaf("arguments", "input", OBJECT)], ["type", "execution"]),
    "tool_search_output": ([_ID, _CALL], ["type", "execution", "tools"]),
    "image_generation_call": ([_ID, Leaf("result", "image", TEXT)], ["type", "revised_prompt"]),
    "agent_message": ([_ID, Blocks("content", BLOCKS)], ["type", "author", "recipient", "trigger_turn"]),
}

_LINE_KEYS = ["ordinal", "metadata"]


def _wrapped(kind: str, fields: Iterable[Field], known: Iterable[str]) -> Table:
    payload = Nest("payload", Table(kind, *fields, known=[*known, *_COMMON]))
    return Table(
        f"line.{kind}", Time("timestamp", "timestamp"), Fixed("type", "response_item"), payload, known=_LINE_KEYS
    )


ITEMS = {kind: _wrapped(kind, *_ITEMS[kind]) for kind in ITEM_KINDS}
BARE_ITEMS = {
    kind: Table(f"bare.{kind}", *fields, known=[*known, *_COMMON, "record_type", "created_at"])
    for kind, (fields, known) in _ITEMS.items()
}

EVENTS = {
    name: Table(
        f"event.{name}",
        Time("timestamp", "timestamp"),
        Nest(
            "payload",
            Table(
                f"payload.{name}",
                Blocks("message", {}),
                known="type images local_images image_details audio local_audio text_elements client_id kind phase "
                "memory_citation delivery".split(),
            ),
        ),
        known=[*_LINE_KEYS, "type"],
    )
    for name in ("user_message", "agent_message")
}
"""Words that only an event tells, as the item they belong to was never written."""


def _record(name: str, *fields: Field, known: str) -> Table:
    payload = Nest("payload", Table(f"{name}.payload", *fields, known=known.split()))
    return Table(name, Time("timestamp", "timestamp"), Leaf("type", "type", TEXT), payload, known=_LINE_KEYS)


_HEAD = (
    "id session_id timestamp cwd originator cli_version source thread_source parent_thread_id forked_from_id "
    "agent_nickname agent_role agent_type agent_path model_provider instructions base_instructions dynamic_tools "
    "selected_capability_roots memory_mode history_mode history_base subagent_history_start_ordinal "
    "multi_agent_version context_window git runtime_workspace_roots"
)
META = _record("session_meta", known=_HEAD)
_TURN = (
    "turn_id root_turn_id disabled_plugin_ids cwd workspace_roots current_date timezone model effort summary "
    "personality approval_policy approvals_reviewer sandbox_policy permission_profile "
    "active_permission_profile file_system_sandbox_policy network comp_hash collaboration_mode "
    "multi_agent_version multi_agent_mode realtime_active user_instructions developer_instructions "
    "final_output_json_schema truncation_policy base_instructions model_provider trace_id"
)
CONTEXT = _record("turn_context", known=_TURN)
COMPACTED = _record(
    "compacted",
    Leaf("message", "text", TEXT),
    known="replacement_history replacement_history_metadata window_number first_window_id previous_window_id "
    "window_id mcp_resource_origins",
)
NAMED = _record("thread_name_updated", Leaf("thread_name", "text", TEXT), known="type thread_id")
LINE = Table(
    "line",
    Time("timestamp", "timestamp"),
    Leaf("type", "type", TEXT),
    known=[*_LINE_KEYS, "payload", "record_type", "id", "instructions", "git", DOCUMENT_SESSION, DOCUMENT_ITEMS],
)

_FORMS = {name: Form(LINE, kind=kind) for name, kind in RECORD_KINDS.items()} | {
    "session_meta": Form(META, kind="state"),
    "turn_context": Form(CONTEXT, kind="state"),
    "compacted": Form(COMPACTED, kind="summary"),
    "thread_name_updated": Form(NAMED, kind="title"),
}
UNKNOWN = Form(LINE, kind="other")
STATE = Form(LINE, kind="state")
_WITH_TYPE = (EVENT_LINE, *ITEM_LINES)
"""Lines whose payload says what they are."""


def item_kind(line_type: JSON, item: dict[str, JSON] | None) -> str | None:
    """The kind of item a line holds that is conversation; None for any other line."""
    if item is None or line_type not in (*ITEM_LINES, BARE):
        return None
    kind = item.get("type")
    if kind is None and type(item.get("role")) is str and "content" in item:
        return "message"
    return kind if type(kind) is str and kind in ITEMS else None


def record_form(record: dict[str, JSON]) -> Form | None:
    """The form of a line that is no message; None where nobody knows it."""
    payload = record.get("payload")
    if type(payload) is not dict:
        return STATE if is_old(record) else None
    name = record.get("type")
    if name in _WITH_TYPE:
        name = payload.get("type")
    return _FORMS.get(name) if type(name) is str else None


def is_old(record: dict[str, JSON]) -> bool:
    """True for the first line and the state lines of bare rollouts, and for what stands around listed items."""
    if "payload" in record:
        return False
    return "record_type" in record or ("id" in record and "timestamp" in record) or document_session(record) is not None


def type_name(record: dict[str, JSON]) -> str:
    """What an unknown line calls itself."""
    payload = record.get("payload")
    inner = payload.get("type") if type(payload) is dict and record.get("type") in _WITH_TYPE else None
    return ".".join(str(name) for name in (record.get("type", ""), inner) if name is not None)


def chosen(is_message: bool, value: dict[str, JSON]) -> Form:
    """The form of a message or record of a document."""
    own = (value.get("extensions") or {}).get(AGENT) or {}
    rest = own.get("rest") or {}
    if not is_message:
        return _chosen_record(value, rest)
    if rest.get("type") == "event_msg":
        return Form(EVENTS["user_message" if value["role"] == "user" else "agent_message"], value["role"])
    bare = BARE in own
    item = rest if bare else rest.get("payload") or {}
    kind = item.get("type") if isinstance(item, dict) else None
    tables = BARE_ITEMS if bare else ITEMS
    return Form(tables.get(kind if isinstance(kind, str) else "") or tables[_usual_kind(value)], value["role"])


def _usual_kind(message: dict[str, JSON]) -> str:
    first = message["content"][0]["type"] if message["content"] else ""
    usual = {"thinking": "reasoning", "tool_use": "function_call", "tool_result": "function_call_output"}
    return usual.get(first, "message")


def _chosen_record(value: dict[str, JSON], rest: dict[str, JSON]) -> Form:
    """A line was taken apart further only where its payload is an object."""
    if value.get("text") is None and not isinstance(rest.get("payload"), dict):
        return UNKNOWN
    name = value.get("type")
    if name in _WITH_TYPE:
        name = "thread_name_updated" if value.get("kind") == "title" else None
    return _FORMS.get(name, UNKNOWN) if isinstance(name, str) else UNKNOWN
