"""The Agent Trajectory Interchange Format as typed records, versions 1.0 to 1.8.

A trajectory is one JSON document with the array `steps`. Sub-agents are whole trajectories in the same document. The
modules of this package know the key names, and no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from clew.agents.model_context import ModelContext, model_context
from clew.io.typed_records import TokenCount, unknown_in
from clew.model.json import JSON
from clew.model.message import Role

STEPS = ("steps",)
"""The key of the array that holds the records."""
SOURCES: dict[str | None, Role] = {"user": "user", "agent": "assistant", "system": "system"}
"""The sources of steps, each with the role of its message."""


class AgentInfo(Struct):
    """The program that the trajectory is of."""

    name: str | None = None
    version: str | None = None
    model_name: str | None = None
    tool_definitions: Any = None


class Trajectory(Struct):
    """The document. Its steps are records of their own, but for those of sub-agents."""

    session_id: str | None = None
    trajectory_id: str | None = None
    agent: AgentInfo | None = None
    steps: Any = None
    subagent_trajectories: Any = None
    extra: Any = None

    @property
    def is_export_of_clew(self) -> bool:
        """True for what `clew export --format atif` wrote."""
        return isinstance(self.extra, dict) and isinstance(self.extra.get("clew"), dict)


class ToolCall(Struct):
    tool_call_id: str | None = None
    function_name: str | None = None
    arguments: Any = None


class SubagentReference(Struct):
    trajectory_id: str | None = None


class Result(Struct):
    """`source_call_id` null: it answers no call of its step."""

    source_call_id: str | None = None
    content: Any = None
    subagent_trajectory_ref: Any = None
    extra: Any = None


class Observation(Struct):
    results: Any = None


class Metrics(Struct):
    """`prompt_tokens` includes `cached_tokens`."""

    prompt_tokens: TokenCount | UnsetType = UNSET
    completion_tokens: TokenCount | UnsetType = UNSET
    cached_tokens: TokenCount | UnsetType = UNSET
    extra: Any = None


class CountsByClew(Struct):
    """`extra` of metrics in an export of clew: all counts that the session records. Input is without cached tokens."""

    input_tokens: TokenCount | UnsetType = UNSET
    output_tokens: TokenCount | UnsetType = UNSET
    cache_creation_tokens: TokenCount | UnsetType = UNSET
    cache_read_tokens: TokenCount | UnsetType = UNSET
    cache_creation_5m_tokens: TokenCount | UnsetType = UNSET
    cache_creation_1h_tokens: TokenCount | UnsetType = UNSET
    reasoning_tokens: TokenCount | UnsetType = UNSET


class Step(Struct):
    """An element of `steps`."""

    step_id: int | None = None
    timestamp: str | None = None
    source: str | None = None
    model_name: str | None = None
    reasoning_effort: Any = None
    message: Any = None
    reasoning_content: str | None = None
    tool_calls: Any = None
    observation: Observation | None = None
    metrics: Metrics | None = None


# Keys of the format that clew does not decode; all others are signs of a new version

_TRAJECTORY_KEYS = frozenset("schema_version notes final_metrics continued_trajectory_ref".split())
_STEP_KEYS = frozenset("is_copied_context llm_call_count extra".split())
_METRICS_KEYS = frozenset("cost_usd prompt_token_ids completion_token_ids logprobs".split())


def is_trajectory(record: Mapping[str, JSON]) -> bool:
    """True for the document itself, False for a step."""
    return "schema_version" in record or "steps" in record


def find_unknown_keys(record: Mapping[str, JSON]) -> Iterator[str]:
    """The keys of a record that are not known, each behind the name of the object that holds it."""
    if is_trajectory(record):
        yield from unknown_in("trajectory", record, Trajectory, _TRAJECTORY_KEYS)
        yield from unknown_in("agent", record.get("agent"), AgentInfo, ("extra",))
        return
    yield from unknown_in("step", record, Step, _STEP_KEYS)
    yield from unknown_in("metrics", record.get("metrics"), Metrics, _METRICS_KEYS)
    yield from unknown_in("call", record.get("tool_calls"), ToolCall, ("extra",))
    observation = record.get("observation")
    if isinstance(observation, Mapping):
        yield from unknown_in("observation", observation, Observation)
        yield from unknown_in("result", observation.get("results"), Result)


def read_model_context(record: Mapping[str, JSON]) -> ModelContext | None:
    """The definitions of tools; a system prompt is a step."""
    agent = record.get("agent") if is_trajectory(record) else None
    return model_context(tools=agent.get("tool_definitions")) if isinstance(agent, Mapping) else None
