"""The kinds of items, and who speaks in them."""

from __future__ import annotations

KINDS = (
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
"""Items that are conversation."""
ROLES = {
    "user": "user",
    "assistant": "assistant",
    "developer": "system",
    "system": "system",
}
_RESULTS = ("function_call_output", "custom_tool_call_output", "tool_search_output", "agent_message")


def role_of(kind: str, role: str | None) -> str:
    """The unified role of an item; whether a user message is injected is asked elsewhere."""
    if kind == "message":
        return ROLES.get(role or "", "system")
    return "user" if kind in _RESULTS else "assistant"
