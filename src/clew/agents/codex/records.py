"""Codex CLI's rollout format as typed records.

Since v0.32 (September 2025) a line is an envelope `{timestamp, type, payload}`; before that the items stood on their
lines without one, behind a first line with the session's id. The TypeScript client (until August 2025) wrote one JSON
document with a list of the same items. An item (`response_item`) is conversation; events (`event_msg`) repeat it for
user interfaces and report token usage; all other lines are settings. The modules of this package know
the key names, and no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from clew.agents.base import SourceFile
from clew.agents.model_context import ModelContext, model_context
from clew.io.compress import plain_name
from clew.io.typed_records import RecordDecoder, TokenCount, unknown_in
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
TEXT_TYPES = ("input_text", "output_text", "text")
"""Types of the parts of a message that are text."""
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

ENVELOPE_KEYS = frozenset({"timestamp", "ordinal", "type", "payload", "metadata"})
UNUSED_ITEM_KEYS = frozenset(
    "status metadata end_turn namespace encrypted_function_args parameters success execution author recipient "
    "trigger_turn".split()
)
"""Keys of items that clew knows and does not decode."""
BARE_SETTING_KEYS = frozenset({"timestamp", "ordinal", "type", "metadata", "record_type", "id", "instructions", "git"})
"""Keys of lines without an envelope that are no items."""
_UNUSED_KEYS = {
    "session_meta": "agent_role agent_type model_provider instructions base_instructions dynamic_tools "
    "selected_capability_roots memory_mode multi_agent_version context_window runtime_workspace_roots",
    "turn_context": "root_turn_id disabled_plugin_ids workspace_roots current_date timezone personality "
    "approval_policy approvals_reviewer sandbox_policy permission_profile active_permission_profile "
    "file_system_sandbox_policy network comp_hash collaboration_mode multi_agent_version multi_agent_mode "
    "realtime_active user_instructions developer_instructions final_output_json_schema truncation_policy "
    "base_instructions model_provider trace_id",
    "compacted": "replacement_history replacement_history_metadata window_number first_window_id previous_window_id "
    "window_id mcp_resource_origins",
    "thread_name_updated": "thread_id",
}
UNUSED_SETTING_KEYS = {name: frozenset(keys.split()) for name, keys in _UNUSED_KEYS.items()}
"""Such keys of other payloads, by the type of the line or the event."""
_TEXT_KEYS = frozenset({"type", "text", "annotations", "text_elements", "logprobs"})
PART_KEYS = {
    **dict.fromkeys(TEXT_TYPES, ("text", _TEXT_KEYS)),
    "input_image": ("image", frozenset({"type", "image_url", "detail", "file_id"})),
    "input_audio": ("audio", frozenset({"type", "audio_url"})),
}
"""The known parts of a message or a result by their type: a name, and the known keys."""

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

    input: TokenCount | None = None
    cached: TokenCount | None = None
    written: TokenCount | None = None
    output: TokenCount | None = None
    reasoning: TokenCount | None = None
    total: TokenCount | None = None


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
    return plain_name(name).endswith(".json")


def document_session(record: Mapping[str, JSON]) -> dict[str, JSON] | None:
    """What a document says of its session; None for any other record."""
    session = record.get(DOCUMENT_SESSION)
    return session if isinstance(session, dict) and isinstance(record.get(DOCUMENT_ITEMS), list) else None


def find_unknown_keys(record: Mapping[str, JSON]) -> Iterator[str]:
    """The keys of a record that clew does not know, each behind the name of the object it stands in."""
    payload = record.get("payload")
    if "payload" not in record:
        if kind := _raw_item_kind(record):
            yield from unknown_in(f"bare.{kind}", record, RolloutRecord, UNUSED_ITEM_KEYS | {"created_at"})
            yield from _unknown_part_keys(record)
        elif document_session(record) is None:
            yield from unknown_in("line", record, known=BARE_SETTING_KEYS)
        return
    line_type, payload = record.get("type"), payload if isinstance(payload, dict) else {}
    kind = _raw_item_kind(payload) if line_type in ITEM_LINES else None
    setting = payload.get("type") if line_type == EVENT_LINE else line_type
    setting = setting if isinstance(setting, str) and setting in UNUSED_SETTING_KEYS else None
    line = f"line.{kind}" if kind else setting or "line"
    yield from unknown_in(line, record, known=ENVELOPE_KEYS)
    if kind:
        yield from unknown_in(kind, payload, Payload, UNUSED_ITEM_KEYS)
        yield from _unknown_part_keys(payload)
    elif setting:
        yield from unknown_in(f"{setting}.payload", payload, Payload, UNUSED_SETTING_KEYS[setting])


def _raw_item_kind(item: Mapping[str, JSON]) -> str | None:
    """The kind of an item that is conversation."""
    kind = item.get("type")
    if kind is None and isinstance(item.get("role"), str) and "content" in item:
        return "message"
    return kind if isinstance(kind, str) and kind in ITEM_KINDS else None


def _unknown_part_keys(item: Mapping[str, JSON]) -> Iterator[str]:
    # The parts of reasoning are no parts of a message.
    contents = (item.get("content") if item.get("type") != "reasoning" else None, item.get("output"))
    for content in contents:
        for part in content if isinstance(content, list) else ():
            kind = part.get("type") if isinstance(part, dict) else None
            if isinstance(kind, str) and kind in PART_KEYS:
                name, known = PART_KEYS[kind]
                yield from unknown_in(name, part, known=known)


def read_model_context(record: Mapping[str, JSON]) -> ModelContext | None:
    """The base instructions of a thread and the tools that its client added; built-in tools are not recorded."""
    payload = record.get("payload")
    if record.get("type") not in ("session_meta", "turn_context") or not isinstance(payload, Mapping):
        return None
    instructions = payload.get("base_instructions")
    text = instructions.get("text") if isinstance(instructions, Mapping) else instructions
    return model_context(text, payload.get("dynamic_tools"))
