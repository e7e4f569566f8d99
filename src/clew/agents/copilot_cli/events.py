"""GitHub Copilot CLI's records to events."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET, UnsetType

from clew.agents.base import SourceFile, masked_text
from clew.agents.content import output_with_attachments, parse_arguments, text_blocks, text_or_unset
from clew.agents.copilot_cli import locate
from clew.agents.copilot_cli.records import (
    EVENTS,
    RECORD_KINDS,
    BinaryReference,
    Context,
    EventData,
    Failure,
    SessionEvent,
    ToolRequest,
)
from clew.agents.copilot_cli.todos import TodoDatabase
from clew.agents.copilot_cli.usage import SessionUsage, usage_report
from clew.agents.decoding import EventDecoder, metadata_of
from clew.agents.derived_ids import MessageChain
from clew.io.typed_records import decode_each, decode_value
from clew.model.blocks import Block, DocumentBlock, Image, Thinking, ToolResult, ToolUse, Unknown
from clew.model.events import Event, SessionInfo, SubagentStarted
from clew.model.json import JSON
from clew.model.message import Message, Metadata, ModelUse, Role, ThinkingSettings
from clew.model.record import Record
from clew.model.time import canonical_time

MAIN = ""
"""The name of the main agent, whose events name none."""
TODO_TOOL = "sql"
_MAX_ASSETS = 1000
"""So many assets are kept at most: a reference to an older one has no content."""


def read_events(source: SourceFile) -> Iterator[Event]:
    """Decode a session, in file order."""
    decoder = _CopilotDecoder(source)
    yield SessionInfo(has_derived_parents=True)
    try:
        yield from decoder.read_lines(EVENTS.decode_file, decoder.decode)
        yield from decoder.finish()
    finally:
        decoder.close()


class _AgentState:
    """What is known of the main agent or of a sub-agent."""

    def __init__(self, scope: str) -> None:
        self.chain = MessageChain(scope)
        self.model: str | None = None
        self.effort: str | None = None
        self.call: str | None = None
        """The call that started the sub-agent."""


class _CopilotDecoder(EventDecoder):
    """Sub-agent messages are interleaved; each agent has a separate chain."""

    def __init__(self, source: SourceFile) -> None:
        super().__init__(source)
        self._session = masked_text(source, locate.session_id(source.path))
        self._claimed_id: str | None = None
        """The id that the start of the session states."""
        self._agents: dict[str, _AgentState] = {}
        self._usage = SessionUsage()
        self._last_reply = 0
        """The index of the last reply of a model; tokens that belong to no reply are counted with it."""
        self._todo_queries: dict[str, str] = {}
        """Statements by the call that runs them."""
        self._todos = TodoDatabase()
        self._assets: dict[str, EventData] = {}

    def decode(self, event: SessionEvent) -> Iterator[Event]:
        """The events of a line."""
        data = event.data or EventData()
        name = event.agentId or data.parentToolCallId or MAIN
        agent = self._agents.get(name)
        if agent is None:
            agent = self._agents[name] = _AgentState(f"{self._session} {name}" if name else self._session)
        match event.type:
            case "user.message":
                yield from self._add(event, name, self._prompt(event, data))
            case "assistant.message":
                yield from self._add(event, name, self._reply(event, data, agent))
            case "tool.execution_complete":
                yield from self._add(event, name, self._result(event, data))
            case "tool.user_requested" | "tool.execution_start" if data.toolCallId not in self.tool_names:
                # A call that no reply asks for: the person's own, or one of a reply that is missing.
                call = ToolRequest(data.toolCallId, data.toolName, data.arguments)
                yield from self._add(event, name, self._message(event, "assistant", [self._call(call)]))
            case "system.notification":
                notification = self._message(event, "user", text_blocks(data.content), Metadata(is_meta=True))
                yield from self._add(event, name, notification)
            case "session.compaction_complete" if data.summaryContent:
                blocks = text_blocks(data.summaryContent)
                summary = self._message(event, "user", blocks, Metadata(is_compact_summary=True))
                yield from self._add(event, name, summary)
                yield from self._count(event, data)
            case _:
                yield self._record(event, data)
                yield from self._facts(event, data, agent)
                yield from self._count(event, data)

    def finish(self) -> Iterator[Event]:
        """What is known once all records were read."""
        yield from self._usage.finish(self._session, self._last_reply)

    def close(self) -> None:
        self._todos.close()

    # Messages

    def _add(self, event: SessionEvent, agent: str, message: Message) -> Iterator[Event]:
        """A message behind the last one of its agent; the first one of a sub-agent begins a chain of its own."""
        state = self._agents[agent]
        is_first = state.chain.last is None
        state.chain.add(message)
        if agent != MAIN:
            metadata_of(message).is_sidechain = True
        yield message
        if agent != MAIN and is_first:
            call = state.call or (event.data.parentToolCallId if event.data is not None else None)
            yield SubagentStarted(root_uuid=str(message.uuid), agent_id=agent, tool_id=call)

    def _message(
        self, event: SessionEvent, role: Role, blocks: list[Block], metadata: Metadata | None = None
    ) -> Message:
        return self.make_message(role, blocks, metadata, uuid=event.id or UNSET, time=event.timestamp)

    def _prompt(self, event: SessionEvent, data: EventData) -> Message:
        blocks = text_blocks(data.content)
        if isinstance(data.attachments, list):
            blocks += [self._attachment(item) for item in data.attachments]
        # The prompt of a sub-agent has a source too: the session that gives it.
        is_injected = bool(data.source) and not event.agentId
        is_meta = is_injected or data.isAutopilotContinuation is True
        return self._message(event, "user", blocks, Metadata(is_meta=True) if is_meta else None)

    def _reply(self, event: SessionEvent, data: EventData, agent: _AgentState) -> Message:
        blocks: list[Block] = []
        if data.reasoningText or data.reasoningOpaque:
            blocks.append(Thinking(thinking=data.reasoningText or "", signature=data.reasoningOpaque or UNSET))
        blocks += text_blocks(data.content)
        blocks += [self._call(call) for call in decode_each(data.toolRequests, ToolRequest)]
        metadata, index = Metadata(), self.index + 1
        if data.apiCallId is not None or data.model is not None or data.outputTokens is not None:
            # The client writes some replies itself, to call `read_agent` for a sub-agent that has finished.
            self._last_reply = index
            metadata.model = ModelUse(name=data.model or agent.model or UNSET)
            metadata.thinking = ThinkingSettings(level=agent.effort) if agent.effort is not None else UNSET
        call = data.apiCallId or data.messageId
        metadata.message_id = call or UNSET
        usage = self._usage.of_reply(call, index, data.model or agent.model, data.outputTokens)
        if usage is not None:
            metadata.token_usage = usage
        return self._message(event, "assistant", blocks, metadata)

    def _call(self, call: ToolRequest) -> ToolUse:
        arguments = parse_arguments(call.arguments)
        if isinstance(arguments, str):
            # A tool that takes a text, such as a patch.
            arguments = {"input": arguments}
        query = arguments.get("query") if call.name == TODO_TOOL and isinstance(arguments, dict) else None
        if isinstance(query, str) and call.toolCallId is not None:
            self._todo_queries[call.toolCallId] = query
        return ToolUse(tool_id=call.toolCallId, tool_name=call.name, input=arguments)

    def _result(self, event: SessionEvent, data: EventData) -> Message:
        call, exit_code = data.toolCallId, data.shellExecution.exitCode if data.shellExecution else None
        is_error = data.success is False or exit_code not in (None, 0)
        query = self._todo_queries.pop(call or "", None)
        todos = self._todos.run(query) if query is not None and not is_error else None
        block = ToolResult(
            tool_id=call,
            tool_name=None,
            output=self._output(data),
            is_error=is_error if data.success is not None else UNSET,
        )
        return self._message(event, "user", [block], Metadata(todos=todos) if todos is not None else None)

    def _output(self, data: EventData) -> JSON:
        """What a tool gave back: a text, or with pictures a list of blocks."""
        result, error = data.result, data.error
        texts = [result.content, result.text_result_for_llm] if result is not None else []
        texts.append(error.message if isinstance(error, Failure) else error)
        known = [text for text in texts if text is not None]
        text: str | UnsetType = next(filter(None, known), "" if known else UNSET)
        items = decode_each(result.binaryResultsForLlm, BinaryReference) if result is not None else []
        return output_with_attachments(text, [self._embedded(item) for item in items])

    def _attachment(self, item: JSON) -> Block:
        """Attachment of a prompt: embedded content, else an `Unknown` block."""
        if isinstance(item, dict):
            if item.get("type") == "selection" and isinstance(item.get("text"), str):
                title = text_or_unset(item.get("filePath"))
                return DocumentBlock(media_type="text/plain", encoding="text", document=item["text"], title=title)
            reference = decode_value(item, BinaryReference)
            if reference.data is not None or reference.assetId in self._assets:
                return self._embedded(reference)
        return Unknown(value=item)

    def _embedded(self, item: BinaryReference) -> Image | DocumentBlock:
        asset = self._assets.get(item.assetId or "") or EventData()
        content: str | UnsetType = item.data or asset.data or UNSET
        media_type = item.mimeType or asset.mimeType or UNSET
        encoding = UNSET if content is UNSET else "base64"
        if media_type is UNSET or media_type.startswith("image/"):
            return Image(media_type=media_type, encoding=encoding, image=content)
        return DocumentBlock(media_type=media_type, encoding=encoding, document=content)

    # Other records

    def _record(self, event: SessionEvent, data: EventData) -> Record:
        kind = RECORD_KINDS.get(event.type or "", "other")
        text = data.title if kind == "title" and data.title is not None else UNSET
        return self.make_record(kind, event.type, time=event.timestamp, text=text)

    def _facts(self, event: SessionEvent, data: EventData, agent: _AgentState) -> Iterator[Event]:
        """What a record says about the session or about an agent."""
        context = data.context if isinstance(data.context, Context) else Context()
        match event.type:
            case "session.start" | "session.resume" | "session.context_changed":
                self._claimed_id = data.sessionId or self._claimed_id
                yield SessionInfo(
                    session_id=self._claimed_id,
                    cwd=context.cwd or data.cwd,
                    git_branch=context.branch or data.branch,
                    agent_version=data.copilotVersion,
                    started_at=canonical_time(data.startTime) or None,
                )
            case "subagent.started":
                agent.call = data.toolCallId
            case "session.binary_asset" if data.assetId is not None:
                self._assets[data.assetId] = data
                if len(self._assets) > _MAX_ASSETS:
                    del self._assets[next(iter(self._assets))]
        if event.type in ("session.start", "session.resume", "session.model_change", "subagent.configured"):
            agent.model = data.newModel or data.selectedModel or data.model or agent.model
            agent.effort = data.reasoningEffort or agent.effort

    def _count(self, event: SessionEvent, data: EventData) -> Iterator[Event]:
        """Count the tokens that a record states."""
        time = canonical_time(event.timestamp)
        call = event.id or f"{self._session} {self.ref.record}"
        report = None
        if event.type == "session.usage_record" and data.usage is not None:
            report = self._usage.add_request(data.usage, call, time or None)
        elif event.type == "session.compaction_complete" and data.compactionTokensUsed is not None:
            # The request for the summary has no record of its own, and shutdown events do not count it.
            report = usage_report(call, data.compactionTokensUsed, time or None, self._last_reply)
        elif event.type == "session.shutdown" and data.modelMetrics is not None:
            self._usage.add_shutdown_totals(data.modelMetrics)
        if report is not None:
            yield report
