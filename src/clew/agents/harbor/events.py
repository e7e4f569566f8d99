"""Steps of trajectories to events."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET
from msgspec.structs import asdict

from clew.agents.base import SourceFile
from clew.agents.content import content_blocks, joined_output, split_data_url, text_block
from clew.agents.decoding import EventDecoder, token_usage
from clew.agents.harbor.records import (
    SOURCES,
    STEPS,
    CountsByClew,
    Metrics,
    Result,
    Step,
    SubagentReference,
    ToolCall,
    Trajectory,
    is_trajectory,
)
from clew.io.typed_records import decode_each, decode_value
from clew.model.blocks import Block, Image, Thinking, ToolResult, ToolUse
from clew.model.events import Event, SessionInfo, SubagentStarted
from clew.model.json import JSON
from clew.model.message import Message, Metadata, ModelUse, Role, ThinkingSettings
from clew.model.usage import TokenUsage


def read_events(source: SourceFile) -> Iterator[Event]:
    """Decode a trajectory: its steps in file order, then those of its sub-agents."""
    decoder = _TrajectoryDecoder(source)
    yield SessionInfo(has_derived_parents=True)
    yield from decoder.read_document(STEPS, decoder.decode)
    yield from decoder.decode_subagents()


class _TrajectoryDecoder(EventDecoder):
    def __init__(self, source: SourceFile) -> None:
        super().__init__(source)
        self._trajectory = Trajectory()
        self._calls: dict[str, str | None] = {}
        """By the id of the trajectory of a sub-agent: the call that started it."""
        self._last: str | None = None
        self._scope = ""
        self._is_sidechain = False

    def decode(self, value: dict[str, JSON], _is_header: bool) -> Iterator[Event]:
        """The events of the document without its steps, or of a step."""
        if is_trajectory(value):
            self._trajectory = trajectory = decode_value(value, Trajectory)
            self._scope = trajectory.trajectory_id or trajectory.session_id or ""
            version = trajectory.agent.version if trajectory.agent is not None else None
            yield SessionInfo(session_id=trajectory.session_id, agent_version=version)
            yield self.make_record("state", "trajectory")
        else:
            yield from self._step(value)

    def decode_subagents(self) -> Iterator[Event]:
        """The steps of the sub-agents in the document, and of theirs."""
        waiting = decode_each(self._trajectory.subagent_trajectories, Trajectory)
        self._is_sidechain = True
        while waiting:
            self._trajectory, *waiting = waiting
            waiting = [*decode_each(self._trajectory.subagent_trajectories, Trajectory), *waiting]
            identity = self._trajectory.trajectory_id or f"{self._scope}/{len(waiting)}"
            self._scope, self._last = identity, None
            first = True
            steps = self._trajectory.steps
            for value in steps if isinstance(steps, list) else ():
                for event in self._step(value) if isinstance(value, dict) else ():
                    if first and isinstance(event, Message):
                        first = False
                        call = self._calls.get(identity)
                        yield SubagentStarted(agent_id=identity, tool_id=call, root_uuid=event.uuid or None)
                    yield event

    def _step(self, value: dict[str, JSON]) -> Iterator[Event]:
        step = decode_value(value, Step)
        role = SOURCES.get(step.source)
        if role is None:
            yield self.make_record("other", step.source)
            return
        blocks: list[Block] = [Thinking(thinking=step.reasoning_content)] if step.reasoning_content else []
        blocks += content_blocks(step.message, _block)
        for call in decode_each(step.tool_calls, ToolCall):
            blocks.append(ToolUse(tool_id=call.tool_call_id, tool_name=call.function_name, input=call.arguments))
        yield self._message(role, blocks, self._metadata(step, role), step, "")
        results = decode_each(step.observation.results if step.observation is not None else None, Result)
        if results:
            self._note_subagents(results)
            answers: list[Block] = [_result(result) for result in results]
            yield self._message("user", answers, Metadata(), step, ":results")

    def _message(self, role: Role, blocks: list[Block], metadata: Metadata, step: Step, suffix: str) -> Message:
        uuid = f"{self._scope}#{self.index + 1 if step.step_id is None else step.step_id}{suffix}"
        if self._is_sidechain:
            metadata.is_sidechain = True
        message = self.make_message(role, blocks, metadata, uuid=uuid, parent=self._last, time=step.timestamp or UNSET)
        self._last = uuid
        return message

    def _metadata(self, step: Step, role: Role) -> Metadata:
        metadata = Metadata()
        if role != "assistant":
            return metadata
        # clew names the model of every step whose model is known.
        agent = self._trajectory.agent if not self._trajectory.is_export_of_clew else None
        if model := step.model_name or (agent.model_name if agent is not None else None):
            metadata.model = ModelUse(name=model)
        if step.reasoning_effort is not None:
            metadata.thinking = ThinkingSettings(level=str(step.reasoning_effort))
        if step.metrics is not None:
            metadata.token_usage = _usage(step.metrics, self._trajectory)
        return metadata

    def _note_subagents(self, results: list[Result]) -> None:
        for result in results:
            for reference in decode_each(result.subagent_trajectory_ref, SubagentReference):
                if reference.trajectory_id is not None:
                    self._calls.setdefault(reference.trajectory_id, result.source_call_id)


def _usage(metrics: Metrics, trajectory: Trajectory) -> TokenUsage:
    if trajectory.is_export_of_clew and isinstance(metrics.extra, dict):
        return TokenUsage(**asdict(decode_value(metrics.extra, CountsByClew)))
    return token_usage(
        input=metrics.prompt_tokens,
        output=metrics.completion_tokens,
        cache_read=metrics.cached_tokens,
        is_cache_in_input=True,
    )


def _result(result: Result) -> ToolResult:
    extra = result.extra if isinstance(result.extra, dict) else {}
    output = joined_output(content_blocks(result.content, _block))
    is_error = True if extra.get("is_error") is True else UNSET
    return ToolResult(tool_id=result.source_call_id, tool_name=None, output=output, is_error=is_error)


def _block(part: JSON) -> Block:
    source = part.get("source") if isinstance(part, dict) and part.get("type") == "image" else None
    if not isinstance(source, dict) or not isinstance(source.get("path"), str):
        return text_block(part)
    media_type, encoding, content = split_data_url(source["path"])
    return Image(media_type=source.get("media_type") or media_type, encoding=encoding, image=content)
