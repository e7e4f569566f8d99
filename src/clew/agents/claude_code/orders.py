"""The orders in which Claude Code has written the keys of its records, newest client first where they differ."""

from __future__ import annotations

_ORDERS = {
    "user": [
        "parentUuid isSidechain promptId agentId type message isMeta uuid timestamp toolUseResult "
        "sourceToolAssistantUUID session_id permissionMode origin promptSource sourceToolUseID interruptedMessageId "
        "userType entrypoint cwd sessionId version gitBranch slug",
        "parentUuid isSidechain userType cwd sessionId version gitBranch agentId slug type message thinkingMetadata "
        "todos permissionMode isMeta isVisibleInTranscriptOnly isCompactSummary uuid timestamp toolUseResult "
        "sourceToolAssistantUUID planContent sourceToolUseID",
        "parentUuid isSidechain userType cwd sessionId version gitBranch slug agentId type message toolUseResult "
        "sourceToolAssistantUUID uuid timestamp thinkingMetadata todos permissionMode",
    ],
    "assistant": [
        "parentUuid isSidechain agentId message requestId attributionSkill type uuid timestamp effort session_id "
        "userType entrypoint cwd sessionId version gitBranch slug",
        "parentUuid isSidechain userType cwd sessionId version gitBranch agentId slug message requestId type "
        "uuid timestamp",
        "parentUuid isSidechain userType cwd sessionId version gitBranch slug agentId type requestId isApiErrorMessage "
        "message uuid timestamp",
    ],
    "prompt": ["role content"],
    "reply": [
        "model id type role content stop_reason stop_sequence stop_details usage diagnostics context_management",
        "id type role model content stop_reason stop_sequence usage",
    ],
    "usage": [
        "input_tokens cache_creation_input_tokens cache_read_input_tokens output_tokens server_tool_use service_tier "
        "cache_creation inference_geo iterations speed",
        "input_tokens cache_creation_input_tokens cache_read_input_tokens cache_creation output_tokens service_tier "
        "inference_geo",
    ],
    "cache_creation": [
        "ephemeral_1h_input_tokens ephemeral_5m_input_tokens",
        "ephemeral_5m_input_tokens ephemeral_1h_input_tokens",
    ],
    "thinking_metadata": ["level disabled triggers maxThinkingTokens"],
    "text": ["type text"],
    "thinking": ["type thinking signature"],
    "tool_use": ["type id name input caller"],
    "tool_result": ["tool_use_id type content is_error", "type content is_error tool_use_id"],
}

ORDERS = {name: [tuple(order.split()) for order in orders] for name, orders in _ORDERS.items()}
