"""Records for the sessions of other agents: results go back to their calls, and content becomes one string."""

from __future__ import annotations

from collections.abc import Iterator

from clew.agents.folding import Message, Step
from clew.agents.jsonl import RecentCalls
from clew.agents.sage_emacs.locate import AGENT
from clew.agents.sage_emacs.tables import CALLS
from clew.io.codec import dumps
from clew.model.json import JSON

_PATIENCE = 64
"""How many messages wait for the results of their calls."""


def composed(units: Iterator[Step]) -> Iterator[Step]:
    """The messages as the tables know them; records of another agent have no place here."""
    composer = _Composer()
    for is_message, value in units:
        if is_message:
            yield from ((True, message) for message in composer.add(value))
    yield from ((True, message) for message in composer.flush())


class _Composer:
    def __init__(self) -> None:
        self._waiting: list[Message] = []
        self._instead = RecentCalls()
        """The message that stands for one that was merged away; the oldest are forgotten."""

    def flush(self) -> list[Message]:
        waiting, self._waiting = self._waiting, []
        return waiting

    def add(self, message: Message) -> Iterator[Message]:
        """Take the next message; gives those that are complete."""
        blocks = message["content"]
        results = [block for block in blocks if block["type"] == "tool_result"]
        text = "\n\n".join(block["text"] for block in blocks if block["type"] == "text" and block["text"])
        calls = [_call(block) for block in blocks if block["type"] == "tool_use"]
        strays = [result for result in results if not self._settle(result)]
        if not text and not calls:
            self._skip(message, bool(results) and not strays)
        for number, stray in enumerate(strays):
            yield from self.flush()
            yield self._stray(message, stray, number)
        if text or calls:
            if not calls:
                yield from self.flush()
            self._waiting.append(self._native(message, text, calls))
            if not calls or len(self._waiting) > _PATIENCE:
                yield from self.flush()

    def _settle(self, result: Message) -> bool:
        """Put a result to its call, if that still waits."""
        for message in reversed(self._waiting):
            for call in message[CALLS]:
                if call["tool_id"] == result["tool_id"] and "is_error" not in call:
                    call["output"] = output_text(result)
                    call["is_error"] = result.get("is_error") is True
                    return True
        return False

    def _skip(self, message: Message, settled: bool) -> None:
        uuid = message.get("uuid")
        if uuid is not None:
            stand_in = self._waiting[-1].get("uuid") if settled and self._waiting else self._parent(message)
            self._instead[uuid] = stand_in or ""

    def _parent(self, message: Message) -> str | None:
        parent: str | None = message.get("parent_uuid")
        return self._instead.get(parent, parent) or None if parent is not None else None

    def _native(self, message: Message, text: str, calls: list[Message]) -> Message:
        native = {name: item for name, item in message.items() if name not in ("extensions", "content")}
        content = [{"type": "text", "text": text}]
        return {**native, "parent_uuid": self._parent(message), "content": content, CALLS: calls}

    def _stray(self, message: Message, result: Message, number: int) -> Message:
        """A result whose call is not at hand, as a record of the role `tool`."""
        native = {name: message[name] for name in ("role", "timestamp") if message.get(name) is not None}
        native |= {"uuid": f"{message.get('uuid') or ''}:r{number}", "parent_uuid": self._parent(message)}
        native |= {"tool_id": result["tool_id"], "output": output_text(result)}
        native["is_error"] = result.get("is_error") is True
        if result.get("tool_name"):
            native["tool_name"] = result["tool_name"]
        return {**native, "content": [], "extensions": {AGENT: {"rest": {"role": "tool"}}}}


def _call(block: Message) -> Message:
    return {"type": "tool_use", "tool_id": block["tool_id"], "tool_name": block["tool_name"], "input": block["input"]}


def output_text(result: Message) -> str:
    """A tool's output as one string."""
    output: JSON = result.get("output")
    if isinstance(output, str) or output is None:
        return output or ""
    if isinstance(output, list):
        texts = [block.get("text") for block in output if isinstance(block, dict)]
        return "\n".join(text for text in texts if isinstance(text, str))
    return dumps(output).decode()
