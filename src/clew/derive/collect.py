"""Facts from unified messages and records, for every agent that has no quicker way of its own."""

from __future__ import annotations

from collections.abc import Iterable

from clew.derive.facts import Facts
from clew.derive.prompts import is_prompt
from clew.derive.usage import FIELDS, NAMELESS
from clew.graph.links import MESSAGE, RESULT, SAID, SIDECHAIN, SIGNIFICANT
from clew.model.json import JSON
from clew.model.time import parse_time

SYNTHETIC = "<synthetic>"


class Collector:
    """Adds unified messages and records, as JSON, to Facts."""

    def __init__(self, facts: Facts | None = None) -> None:
        self.facts = facts or Facts()

    def add(self, is_message: bool, value: dict[str, JSON]) -> None:
        """Add the next unit of the source."""
        self.facts.records += 1
        if is_message:
            self.message(value)
        elif value.get("uuid") is not None:
            self.facts.links.add(value["uuid"], value.get("parent_uuid"), 0)

    def message(self, message: dict[str, JSON]) -> None:
        facts = self.facts
        facts.messages += 1
        metadata = message.get("metadata") or {}
        self._context(message, metadata)
        results = self._blocks(message)
        flags = MESSAGE | (SIDECHAIN if metadata.get("is_sidechain") else 0) | (RESULT if results else 0)
        if message["role"] != "system":
            flags |= SAID
        if self._significant(message, metadata, results):
            flags |= SIGNIFICANT
        stamp = parse_time(message.get("timestamp")) if flags & SIGNIFICANT else None
        facts.links.add(
            message.get("uuid"),
            message.get("parent_uuid"),
            flags,
            facts.messages,
            stamp.timestamp() if stamp else 0.0,
            metadata.get("logical_parent_uuid"),
        )

    def _context(self, message: dict[str, JSON], metadata: dict[str, JSON]) -> None:
        facts = self.facts
        facts.saw_time(message.get("timestamp"))
        if facts.cwd is None and not metadata.get("is_sidechain"):
            facts.cwd = metadata.get("cwd") or None
        facts.git_branch = facts.git_branch or metadata.get("git_branch")
        facts.version = metadata.get("agent_version") or facts.version
        if message["role"] == "user":
            facts.user_messages += 1
            if is_prompt(message):
                facts.prompts += 1
                facts.first_prompt = facts.first_prompt or text_of(message)
        usage, model = metadata.get("token_usage"), (metadata.get("model") or {}).get("name")
        if model and model != SYNTHETIC:
            facts.models[model] += 1
        if usage and model != SYNTHETIC:
            call = metadata.get("message_id") or message.get("uuid") or f"{NAMELESS}{facts.records}"
            # A count that is a known secret is a marker in a masked session.
            counts = [count if type(count := usage.get(name)) is int else None for name in FIELDS]
            facts.ledger.note(call, model, counts, facts.messages)

    def _blocks(self, message: dict[str, JSON]) -> bool:
        facts = self.facts
        results = False
        for block in message["content"]:
            kind = block["type"]
            if kind == "tool_use":
                facts.tool_calls += 1
                if block.get("tool_name"):
                    facts.tools[block["tool_name"]] += 1
            elif kind == "tool_result":
                results = True
                facts.has_errors = facts.has_errors or block.get("is_error") is True
            elif kind == "thinking":
                facts.has_thinking = True
        return results

    def _significant(self, message: dict[str, JSON], metadata: dict[str, JSON], results: bool) -> bool:
        if message["role"] == "user":
            return not (results or metadata.get("is_meta") or metadata.get("is_compact_summary"))
        if message["role"] == "assistant":
            group = metadata.get("message_id")
            return group is None or self.facts.links.begins_reply(group)
        return False


def collect(units: Iterable[tuple[bool, dict[str, JSON]]]) -> Facts:
    """Facts of a whole session."""
    collector = Collector()
    for is_message, value in units:
        collector.add(is_message, value)
    return collector.facts


def text_of(message: dict[str, JSON]) -> str | None:
    """The text blocks of a message, joined."""
    texts = [block["text"] for block in message["content"] if block["type"] == "text"]
    return "\n".join(texts) or None
