"""Sessions as a dataset of agent traces for the Hugging Face Hub: a folder of JSON lines with a dataset card.

The Hub shows the native files of some agents. Those of the others are written in its Session Trace Simple format (STS):
a line for the session, then one for each message.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from typing import IO, NamedTuple

from clew.agents.source import open_main
from clew.analysis.titles import short_title
from clew.convert.conversation import as_text
from clew.convert.losses import Loss, Losses
from clew.interchange.steps import Steps, results_of
from clew.interchange.thread import Thread
from clew.io.codec import dumps
from clew.io.compress import plain_name
from clew.model.json import JSON
from clew.model.time import milliseconds

CARD = "README.md"
_ONLY_TEXT = "the format has only text"
_ROLES = {"agent": "assistant", "user": "user", "system": "system"}


class Trace(NamedTuple):
    """A session or a sub-agent, which is one file of the dataset."""

    id: str
    thread: Thread
    is_subagent: bool

    def write(self, out: IO[bytes]) -> list[Loss]:
        """Write the file, masked where its source is; returns what it does not hold."""
        if not _is_native(self.thread):
            return write_simple_trace(self.thread, out, self.id)
        with open_main(self.thread.source) as stream:
            shutil.copyfileobj(stream, out)
        return self.thread.losses.listed()


def find_traces(thread: Thread) -> Iterator[Trace]:
    """The trace of a session, then those of its sub-agents and of theirs; a sub-agent in a native file has no other."""
    waiting = [Trace(thread.id, thread, is_subagent=False)]
    while waiting:
        trace = waiting.pop(0)
        subagents = list(trace.thread.subagents())
        yield trace
        waiting += [
            Trace(child.id, child.thread, is_subagent=True)
            for child in subagents
            if not (child.thread.is_sidechain and _is_native(trace.thread))
        ]


def _is_native(thread: Thread) -> bool:
    """True for a session whose own file the Hub shows."""
    is_shown = thread.agent.is_shown_by_hugging_face
    return is_shown and plain_name(thread.source.path.name).endswith(".jsonl")


def write_simple_trace(thread: Thread, out: IO[bytes], trace_id: str) -> list[Loss]:
    """Write a session in the Session Trace Simple format; returns what it does not hold."""
    session: dict[str, JSON] = {"type": "session", "harness": thread.agent.id, "id": trace_id}
    if title := short_title(thread.session.get("title")):
        session["name"] = title
    out.write(dumps(session) + b"\n")
    for step in Steps(thread, has_tokens=False).read():
        _note_losses(step, thread.losses)
        for message in _messages(step):
            out.write(dumps({"type": "message", "message": message}) + b"\n")
    return thread.all_losses()


def _note_losses(step: dict[str, JSON], losses: Losses) -> None:
    """Note what a step has and the Session Trace Simple format has not."""
    results = results_of(step)
    first = step.get("extra", {}).get("messages", [None])[0]
    for content in (step["message"], *(result.get("content") for result in results)):
        for part in content if isinstance(content, list) else ():
            if part["type"] != "text":
                losses.add(first, "a picture", _ONLY_TEXT)
    for _ in step.get("extra", {}).get("unknown_blocks", ()):
        losses.add(first, "a block of an unknown kind", _ONLY_TEXT)
    for result in results:
        if result.get("extra", {}).get("is_error"):
            losses.add_note(first, "that a call failed", "the format has no place for it")


def _messages(step: dict[str, JSON]) -> Iterator[dict[str, JSON]]:
    """The messages of a step: what was said, then the result of each call."""
    results = results_of(step)
    message: dict[str, JSON] = {"role": _ROLES[step["source"]], "content": _text(step["message"])}
    if step.get("reasoning_content"):
        message["reasoningContent"] = step["reasoning_content"]
    if calls := step.get("tool_calls"):
        message["toolCalls"] = [_call(call) for call in calls]
    if step.get("model_name"):
        message["model"] = step["model_name"]
    if len(message) > 2 or message["content"] or not results:
        yield _with_time(message, step.get("timestamp"))
    for result in results:
        extra = result.get("extra", {})
        answer: dict[str, JSON] = {"role": "tool", "content": _text(result.get("content") or "")}
        if call := result["source_call_id"] or extra.get("tool_call_id"):
            answer["toolCallId"] = call
        yield _with_time(answer, extra.get("timestamp"))


def _call(call: dict[str, JSON]) -> dict[str, JSON]:
    function = {"name": call["function_name"], "arguments": as_text(call["arguments"])}
    return {"id": call["tool_call_id"], "function": function}


def _with_time(message: dict[str, JSON], time: str | None) -> dict[str, JSON]:
    stamp = milliseconds(time)
    return message if stamp is None else {**message, "timestamp": stamp}


def _text(content: JSON) -> str:
    """The texts of a message; a picture is named in its place."""
    if isinstance(content, str):
        return content
    parts = (part["text"] if part["type"] == "text" else f"[{part['source']['media_type']}]" for part in content)
    return "\n\n".join(parts)


def dataset_card(counts: Counter[str], profile: str) -> bytes:
    """The README of the dataset: its tags, where the sessions of each agent are, and what was masked."""
    lines = ["---", "pretty_name: Agent traces", "tags:", "- agent-traces", "- format:agent-traces", "configs:"]
    for agent in sorted(counts):
        lines += [f"- config_name: {agent}", f"  data_files: sessions/{agent}/*.jsonl"]
    lines += ["---", "", "# Agent traces", "", "Sessions of coding agents, exported by clew.", ""]
    lines += ["| agent | sessions |", "|---|---|"]
    lines += [f"| {agent} | {count} |" for agent, count in sorted(counts.items())]
    if profile == "none":
        masked = "Nothing was masked. Do not publish this dataset before you have read it."
    else:
        masked = f"Masked with the profile `{profile}`, which finds what looks like a secret: read before you publish."
    return "\n".join([*lines, "", masked, ""]).encode()
