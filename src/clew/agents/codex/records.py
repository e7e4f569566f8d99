"""Codex CLI's rollout format as typed records.

Since v0.32 (September 2025) a line is an envelope `{timestamp, type, payload}`; before that the items stood on their
lines without one, behind a first line with the session's id. The TypeScript client (until August 2025) wrote one JSON
document with a list of the same items. An item (`response_item`) is conversation; events (`event_msg`) repeat it for
user interfaces and report token usage; all other lines are settings. Only this module, `item_content.py` and
`events.py` know the key names.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from clew.agents.base import SourceFile
from clew.io.typed_records import RecordDecoder
from clew.model.json import JSON

ITEM_KINDS = (
    "message",
    "reasoning",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "local_shell_call",
    "web_search_call",
    "tool_search_call",
    "tool_search_output",
    "image_generation_call",
    "agent_message",
)
"""The types of items that are conversation."""
RESULT_KINDS = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output"})
ITEM_LINES = ("response_item", "request_item")
"""Types of lines whose payload is an item; `request_item` is known from other writers only."""
EVENT_LINE = "event_msg"
DOCUMENT_ITEMS, DOCUMENT_SESSION = "items", "session"
"""The members of a session that is one JSON document."""

_KINDS = {
    "cost": "token_count token_usage_record",
    "progress": "task_started turn_started task_complete turn_complete turn_aborted item_completed item_started "
    "user_message agent_message agent_reasoning agent_reasoning_raw_content patch_apply_end mcp_tool_call_end "
    "web_search_end image_generation_end exec_command_end view_image_tool_call error warning guardian_assessment "
    "collab_agent_spawn_end collab_agent_interaction_end collab_close_end collab_resume_end collab_waiting_end "
    "dynamic_tool_call_request dynamic_tool_call_response sub_agent_activity undo_completed stream_error "
    "inter_agent_communication inter_agent_communication_metadata plan_update background_event",
    "state": "session_meta turn_context world_state thread_settings_applied thread_goal_updated thread_rolled_back "
    "entered_review_mode exited_review_mode context_compacted security_risk_score compaction compaction_summary "
    "context_compaction compaction_trigger additional_tools",
    "snapshot": "ghost_snapshot",
    "summary": "compacted",
    "title": "thread_name_updated",
}
RECORD_KINDS = {name: kind for kind, names in _KINDS.items() for name in names.split()}
"""The types of lines and events that are no messages, each with the kind it has in the document."""

_Count = Annotated[int, Meta(ge=0, le=2**53)] | None
"""A count below zero or beyond this is no count."""


class TokenCounts(
    Struct,
    omit_defaults=True,
    gc=False,
    rename={
        "input": "input_tokens",
        "cached": "cached_input_tokens",
        "written": "cache_write_input_tokens",
        "output": "output_tokens",
        "reasoning": "reasoning_output_tokens",
        "total": "total_tokens",
    },
):
    """Token counts. `input` includes what was read from a cache or written to it; `output` includes reasoning."""

    input: _Count = None
    cached: _Count = None
    written: _Count = None
    output: _Count = None
    reasoning: _Count = None
    total: _Count = None


NO_TOKENS = TokenCounts()


class TokenInfo(Struct, gc=False):
    """The running total of the thread, and what the last request used."""

    total_token_usage: TokenCounts | None = None
    last_token_usage: TokenCounts | None = None


class ItemMetadata(Struct, gc=False):
    """Since v0.142; `content_item_kinds` (v0.152) says for each block whether a person wrote it ("user.text")."""

    turn_id: str | None = None
    content_item_kinds: list[str | None] | None = None


class Git(Struct, gc=False):
    branch: str | None = None


class UsagePayload(Struct, gc=False):
    """What token usage needs of an item, an event or a setting."""

    type: str | None = None
    id: str | None = None
    role: str | None = None
    content: Any = UNSET
    call_id: str | None = None
    internal_chat_message_metadata_passthrough: ItemMetadata | None = None
    # Events
    message: Any = UNSET
    info: TokenInfo | None = None
    turn_id: str | None = None
    num_turns: int | None = None
    # turn_context
    model: str | None = None
    effort: str | None = None
    cwd: str | None = None
    # session_meta
    timestamp: Any = UNSET
    session_id: str | None = None
    originator: str | None = None
    cli_version: str | None = None
    source: Any = None
    thread_source: Any = None
    parent_thread_id: str | None = None
    forked_from_id: str | None = None
    agent_path: str | None = None
    agent_nickname: str | None = None
    history_mode: str | None = None
    history_base: Any = None
    subagent_history_start_ordinal: int | None = None
    git: Git | None = None


class Payload(UsagePayload, gc=False):
    """An item, an event or a setting."""

    name: str | None = None
    arguments: Any = UNSET
    input: Any = UNSET
    output: Any = UNSET
    phase: str | None = None
    summary: Any = None
    encrypted_content: str | UnsetType = UNSET
    action: Any = None
    tools: Any = None
    revised_prompt: Any = None
    result: Any = None
    # Events
    new_thread_id: str | None = None
    new_agent_nickname: str | None = None
    event_id: str | None = None
    agent_thread_id: str | None = None
    thread_name: str | None = None


_NotAnObject = str | bool | int | float | list[Any] | None


class UsageRecord(UsagePayload, gc=False):
    """What token usage needs of a line: an envelope, or an item that stands on its line without one."""

    ordinal: int | None = None
    payload: UsagePayload | _NotAnObject | UnsetType = UNSET
    record_type: Any = UNSET


class RolloutRecord(Payload, gc=False):
    """One line: an envelope, or an item that stands on its line without one."""

    ordinal: int | None = None
    payload: Payload | _NotAnObject | UnsetType = UNSET
    record_type: Any = UNSET


ROLLOUT = RecordDecoder(RolloutRecord)
USAGE = RecordDecoder(UsageRecord)

AnyRecord = RolloutRecord | UsageRecord


def item_of(record: AnyRecord) -> tuple[str | None, UsagePayload | None]:
    """The kind of item that a line holds, None where it holds none, and the payload."""
    item: UsagePayload
    if record.payload is UNSET:
        item = record
    elif not isinstance(record.payload, UsagePayload):
        return None, None
    elif record.type not in ITEM_LINES:
        return None, record.payload
    else:
        item = record.payload
    kind = item.type
    if kind is None:
        return ("message" if item.role is not None and item.content is not UNSET else None), item
    return (kind if kind in ITEM_KINDS else None), item


def meta_of(record: AnyRecord) -> UsagePayload | None:
    """What a line says about the session, where it is such a line."""
    payload = record.payload
    if record.type == "session_meta":
        return payload if isinstance(payload, UsagePayload) else None
    if payload is UNSET and record.type is None and record.id and record.timestamp and record.record_type is UNSET:
        return record
    return None


def is_document(source: SourceFile) -> bool:
    """True for a session that is one JSON document."""
    return is_document_name(source.path.name)


def is_document_name(name: str) -> bool:
    """True for the file of such a session."""
    return name.removesuffix(".gz").removesuffix(".zst").endswith(".json")


def document_session(record: dict[str, JSON]) -> dict[str, JSON] | None:
    """What a document says of its session; None for any other record."""
    session = record.get(DOCUMENT_SESSION)
    return session if isinstance(session, dict) and isinstance(record.get(DOCUMENT_ITEMS), list) else None
