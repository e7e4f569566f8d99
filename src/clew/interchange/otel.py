"""A session as spans of OpenTelemetry, after its conventions for generative AI: OTLP in JSON, one line for a session.

A session or sub-agent is a span `invoke_agent`, a reply of the model a span `chat`, a call of a tool a span
`execute_tool`. Ids are hashes of the ids in the session, so that an export that is repeated sends the same spans.
Without `with_content` spans hold names, ids, times and counts, and nothing that was said.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from typing import IO

from clew.agents.encoding import provider_of
from clew.convert.conversation import as_text
from clew.convert.losses import Loss
from clew.interchange.steps import Steps, results_of
from clew.interchange.thread import Thread
from clew.io.codec import dumps
from clew.model.json import JSON
from clew.model.time import EPOCH, microseconds, to_microseconds

CONVENTIONS_VERSION = "1.41.0"
"""The version of the semantic conventions that names of spans and attributes follow."""
SCHEMA_URL = f"https://opentelemetry.io/schemas/{CONVENTIONS_VERSION}"
_INTERNAL, _CLIENT = 1, 3
"""Kinds of spans."""
_ERROR = 2
"""The status of a span that failed."""
_PROVIDERS = {"google": "gcp.gemini"}
"""The names of providers where the conventions have another one."""
_USAGE = {
    "output_tokens": "gen_ai.usage.output_tokens",
    "cache_read_tokens": "gen_ai.usage.cache_read.input_tokens",
    "cache_creation_tokens": "gen_ai.usage.cache_creation.input_tokens",
    "reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
}


def write(thread: Thread, out: IO[bytes], *, clew_version: str = "", with_content: bool = False) -> list[Loss]:
    """Write a session and its sub-agents as one OTLP request on a line; returns what it does not hold."""
    exporter = _Spans(thread, _hash(16, thread.agent.id, thread.id), None, with_content)
    resource = {"attributes": _attributes({"service.name": thread.agent.id, "service.version": thread.facts.version})}
    scope = {"name": "clew", "version": clew_version}
    out.write(b'{"resourceSpans":[{"resource":' + dumps(resource) + b',"scopeSpans":[{"scope":' + dumps(scope))
    separator = b',"spans":['
    for span in exporter.spans():
        out.write(separator + dumps(span))
        separator = b","
    schema = b',"schemaUrl":' + dumps(SCHEMA_URL)
    out.write(b"]" + schema + b"}]" + schema + b"}]}\n")
    return exporter.losses


class _Spans:
    """The spans of one thread and its sub-agents."""

    def __init__(self, thread: Thread, trace: str, parent: str | None, with_content: bool) -> None:
        self._thread, self._trace, self._parent, self._with_content = thread, trace, parent, with_content
        self._now = microseconds(thread.session.get("started_at")) or to_microseconds(EPOCH)
        """The last known time, for what has none."""
        self._tools_ended = self._now
        """When the last tool so far had ended."""
        self._input: list[JSON] = []
        """Messages since the last reply."""
        self._count = 0
        self._calls: Counter[str] = Counter()
        """How many calls have an id so far."""
        self.losses: list[Loss] = []

    def spans(self, name: str = "") -> Iterator[dict[str, JSON]]:
        """The spans in the order of the session, the one of the whole last; `name` of a sub-agent."""
        thread = self._thread
        own = _hash(8, self._trace, name or thread.id)
        subagents = list(thread.subagents())
        steps = Steps(thread, subagents)
        started = self._now
        for step in steps.read():
            yield from self._step(step, own)
        ended = max(self._now, self._tools_ended)
        for child in subagents:
            # A call on another branch has no span.
            call = child.tool_id if child.tool_id in self._calls else None
            parent = _hash(8, own, "execute_tool", call) if call else own
            exporter = _Spans(child.thread, self._trace, parent, self._with_content)
            yield from exporter.spans(child.id)
            self.losses += [loss.in_subagent(child.id) for loss in exporter.losses]
        self.losses += thread.all_losses()
        model = thread.facts.models.most_common(1)[0][0] if thread.facts.models else None
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": thread.agent.id,
            "gen_ai.agent.id": name or thread.id,
            "gen_ai.agent.version": thread.facts.version or None,
            "gen_ai.conversation.id": thread.id,
            **_model_attributes(model),
        }
        span = self._span(own, self._parent, f"invoke_agent {thread.agent.id}", started, ended, attributes)
        yield {**span, "kind": _INTERNAL}

    def _step(self, step: dict[str, JSON], parent: str) -> Iterator[dict[str, JSON]]:
        before, answered = self._now, max(self._now, self._tools_ended)
        self._now = max(before, microseconds(step.get("timestamp")) or answered)
        if step["source"] != "agent":
            self._input.append(_message(step, step["source"]))
        else:
            # The model is asked when the tools have ended, unless it replied before that.
            yield self._chat(step, parent, answered if answered <= self._now else before)
            for call in step.get("tool_calls", ()):
                yield self._tool(step, call, parent)
        self._input += [{"role": "tool", "parts": [_response(result)]} for result in results_of(step)]

    def _chat(self, step: dict[str, JSON], parent: str, started: int) -> dict[str, JSON]:
        extra, metrics = step.get("extra", {}), step.get("metrics", {})
        counts = metrics.get("extra", {})
        model = step.get("model_name")
        attributes: dict[str, JSON] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.conversation.id": self._thread.id,
            **_model_attributes(model),
            "gen_ai.response.model": model,
            "gen_ai.response.id": extra.get("reply_id"),
            "gen_ai.response.finish_reasons": [extra["stop_reason"]] if extra.get("stop_reason") else None,
            "gen_ai.usage.input_tokens": metrics.get("prompt_tokens"),
            **{name: counts.get(field) for field, name in _USAGE.items()},
        }
        if self._with_content:
            output = {**_message(step, "assistant"), "finish_reason": extra.get("stop_reason") or "unknown"}
            attributes |= {
                "gen_ai.input.messages": as_text(self._input),
                "gen_ai.output.messages": as_text([output]),
            }
        self._input = []
        self._count += 1
        identity = _hash(8, parent, "chat", str(extra.get("messages", [self._count])[0]))
        name = f"chat {model}" if model else "chat"
        return {**self._span(identity, parent, name, started, self._now, attributes), "kind": _CLIENT}

    def _tool(self, step: dict[str, JSON], call: dict[str, JSON], parent: str) -> dict[str, JSON]:
        identity = call["tool_call_id"]
        result = next((each for each in results_of(step) if each["source_call_id"] == identity), dict[str, JSON]())
        extra = result.get("extra", {})
        started, ended = self._now, max(self._now, microseconds(extra.get("timestamp")) or self._now)
        self._tools_ended = max(self._tools_ended, ended)
        attributes: dict[str, JSON] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.conversation.id": self._thread.id,
            "gen_ai.tool.name": call["function_name"],
            "gen_ai.tool.call.id": identity,
            "gen_ai.tool.type": "function",
            "error.type": "tool_error" if extra.get("is_error") else None,
        }
        if self._with_content:
            attributes["gen_ai.tool.call.arguments"] = as_text(call["arguments"])
            attributes["gen_ai.tool.call.result"] = as_text(result["content"]) if "content" in result else None
        self._calls[identity] += 1
        # A few clients use the id of a call again.
        repeated = [str(self._calls[identity])] if self._calls[identity] > 1 else []
        own = _hash(8, parent, "execute_tool", identity, *repeated)
        span = self._span(own, parent, f"execute_tool {call['function_name']}", started, ended, attributes)
        status = {"status": {"code": _ERROR}} if extra.get("is_error") else {}
        return {**span, "kind": _INTERNAL, **status}

    def _span(
        self, own: str, parent: str | None, name: str, started: int, ended: int, attributes: dict[str, JSON]
    ) -> dict[str, JSON]:
        """A span; times are microseconds since 1970."""
        return {
            "traceId": self._trace,
            "spanId": own,
            **({"parentSpanId": parent} if parent is not None else {}),
            "name": name,
            "startTimeUnixNano": str(started * 1000),
            "endTimeUnixNano": str(max(started, ended) * 1000),
            "attributes": _attributes(attributes),
        }


def _hash(size: int, *parts: str) -> str:
    """An id of so many bytes, in hexadecimal."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[: 2 * size]


def _model_attributes(model: str | None) -> dict[str, JSON]:
    """The requested model and its provider; a name such as `anthropic/claude-opus-4-5` has the provider in it."""
    if model is None:
        return {}
    provider, _, name = model.rpartition("/")
    provider = provider_of(name) if not provider else provider.partition("/")[0]
    return {"gen_ai.provider.name": _PROVIDERS.get(provider, provider), "gen_ai.request.model": model}


def _message(step: dict[str, JSON], role: str) -> dict[str, JSON]:
    """A step as a message in the form that the conventions give to content."""
    message, parts = step["message"], list[JSON]()
    said: list[dict[str, JSON]] = [{"type": "text", "text": message}] if isinstance(message, str) else message
    if step.get("reasoning_content"):
        parts.append({"type": "reasoning", "content": step["reasoning_content"]})
    for part in said:
        if part["type"] == "text" and part["text"]:
            parts.append({"type": "text", "content": part["text"]})
        elif part["type"] != "text":
            source = part["source"]
            parts.append({"type": "uri", "mime_type": source["media_type"], "modality": "image", "uri": source["path"]})
    for call in step.get("tool_calls", ()):
        named = {"id": call["tool_call_id"], "name": call["function_name"], "arguments": call["arguments"]}
        parts.append({"type": "tool_call", **named})
    return {"role": role, "parts": parts}


def _response(result: dict[str, JSON]) -> dict[str, JSON]:
    return {"type": "tool_call_response", "id": result["source_call_id"], "response": result.get("content")}


def _attributes(values: dict[str, JSON]) -> list[JSON]:
    """Attributes in the form of OTLP; those that are None are left out."""
    return [{"key": key, "value": _value(value)} for key, value in values.items() if value is not None]


def _value(value: JSON) -> dict[str, JSON]:
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"stringValue": str(value)}
