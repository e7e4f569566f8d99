"""A path of a session in words that any agent's writer understands, and the list of what the target cannot hold."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from itertools import chain

import msgspec

from clew.agents.base import Unit
from clew.agents.folding import derived_id
from clew.agents.jsonl import RecentCalls
from clew.agents.receiving import Capacity, Receiver
from clew.agents.tools import Translator
from clew.convert.path import Chosen
from clew.convert.todos import Todos
from clew.io.codec import dumps
from clew.model.json import JSON

_SAFE_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_METADATA = ("cwd", "git_branch", "model", "is_meta")


class Loss(msgspec.Struct, frozen=True):
    """Something the target cannot hold."""

    message: int | None
    """Index of the message in the session; None: it concerns the whole."""
    what: str
    why: str


class Conversation:
    """The messages of a path, one at a time. The losses are complete once it was iterated."""

    def __init__(
        self,
        path: Chosen,
        capacity: Capacity,
        translator: Translator,
        own: Receiver | None,
        *,
        new_id: str,
        title: str,
    ) -> None:
        self._path, self._capacity, self._translator, self._title = path, capacity, translator, title
        self._injected = own.injected if own else ()
        # Where an agent reads from its results whether a call failed, they tell it wherever they go.
        self._keeps_failures = capacity.failures or (own is not None and not own.capacity.failures)
        self._new_id = new_id
        self._calls = RecentCalls()
        self._todos = Todos(capacity, translator, title)
        self._failures = 0
        self._last: str | None = None
        self.losses: list[Loss] = []
        self.messages = 0
        self.said = 0
        """How many messages hold more than thoughts."""

    def of(self, units: Iterable[Unit]) -> Iterator[tuple[bool, dict[str, JSON]]]:
        """The messages that go over, numbered anew."""
        for unit in units:
            value = unit.value
            if not unit.is_message or not self._path.holds(value["index"]):
                continue
            self._todos.see(value)
            message = self._message(value) if not self._is_note(value) else None
            if message is not None:
                yield True, message
        if self._failures and not self._keeps_failures:
            what = "a call" if self._failures == 1 else f"{self._failures} calls"
            self._lose(None, f"that {what} failed", f"{self._title} keeps results without a mark for it")
        if lost := self._todos.lost():
            self._lose(self._todos.changed, *lost)

    def _is_note(self, value: dict[str, JSON]) -> bool:
        """True for what the agent itself noted or told its model: the target has notes of its own."""
        if value["role"] == "system":
            return True
        if not self._injected or not (value.get("metadata") or {}).get("is_meta"):
            return False
        text = next((block["text"] for block in value["content"] if block["type"] == "text"), "")
        return text.lstrip().startswith(self._injected)

    def _message(self, value: dict[str, JSON]) -> dict[str, JSON] | None:
        content = list(chain.from_iterable(self._block(block, value["index"]) for block in value["content"]))
        metadata = value.get("metadata") or {}
        if not content:
            return None
        self.messages += 1
        self.said += any(block["type"] != "thinking" for block in content)
        uuid = derived_id(self._new_id, self.messages)
        message = {"index": self.messages, "uuid": uuid, "parent_uuid": self._last, "role": value["role"]}
        self._last = uuid
        if value.get("timestamp") is not None:
            message["timestamp"] = value["timestamp"]
        kept = {name: metadata[name] for name in _METADATA if metadata.get(name)}
        kept |= self._todos.carried(value["role"])
        return {**message, "content": content, **({"metadata": kept} if kept else {})}

    def _block(self, block: dict[str, JSON], index: int) -> list[dict[str, JSON]]:
        match block["type"]:
            case "text":
                return [{"type": "text", "text": block["text"]}] if block["text"] else []
            case "thinking":
                return self._thinking(block, index)
            case "tool_use":
                return [self._call(block)]
            case "tool_result":
                return self._result(block, index)
            case "image":
                return self._attachment(block, index, self._capacity.images, "a picture")
            case "document":
                return self._attachment(block, index, self._capacity.documents, "an attached document")
        kind = block.get("value")
        name = kind.get("type") if isinstance(kind, dict) else None
        self._lose(index, f"a block of the kind {name!r}", _why_kept_back(name))
        return []

    def _thinking(self, block: dict[str, JSON], index: int) -> list[dict[str, JSON]]:
        if not block["thinking"]:
            return []
        if self._capacity.thinking:
            return [{"type": "thinking", "thinking": block["thinking"]}]
        self._lose(index, "thinking", f"{self._title} cannot hold what another model thought")
        return []

    def _call(self, block: dict[str, JSON]) -> dict[str, JSON]:
        name = block["tool_name"]
        identity = safe_id(block["tool_id"])
        self._calls[identity] = self._translator.name(name) or "unknown"
        arguments = self._translator.arguments(name, block["input"])
        return {"type": "tool_use", "tool_id": identity, "tool_name": self._calls[identity], "input": arguments}

    def _result(self, block: dict[str, JSON], index: int) -> list[dict[str, JSON]]:
        identity = safe_id(block["tool_id"])
        if identity not in self._calls:
            return self._stray(block, index)
        output = self._output(block.get("output"), index, self._capacity.pictured_results)
        result = {"type": "tool_result", "tool_id": identity, "tool_name": self._calls[identity], "output": output}
        if block.get("is_error"):
            result["is_error"] = True
            self._failures += 1
        return [result]

    def _stray(self, block: dict[str, JSON], index: int) -> list[dict[str, JSON]]:
        """A result without its call is refused by the models; what it says is still part of the conversation."""
        if block.get("is_error"):
            self._lose(index, "that a call failed", "the call is not there")
        output = self._output(block.get("output"), index, self._capacity.images)
        blocks = output if isinstance(output, list) else [{"type": "text", "text": as_text(output)}]
        kept = [block for block in blocks if block["type"] != "text" or block["text"]]
        if not kept:
            self._lose(index, "an empty result", "the call it answers is not there")
        return kept

    def _output(self, output: JSON, index: int, pictures: bool) -> JSON:
        if not isinstance(output, list):
            return "" if output is None else output
        kept: list[JSON] = []
        for block in output:
            kind = block.get("type") if isinstance(block, dict) else None
            if kind == "text":
                kept.append({"type": "text", "text": block["text"]})
            elif kind == "image":
                kept += self._attachment(block, index, pictures, "a picture in a tool's result")
            elif kind == "document" and block.get("encoding") == "text":
                kept.append({"type": "text", "text": as_text(block.get("document") or "")})
            elif kind == "document":
                held = pictures and self._capacity.documents
                kept += self._attachment(block, index, held, "a document in a tool's result")
            else:
                # What a tool gave back in a form of its agent's own can still be read as text.
                kept.append({"type": "text", "text": dumps(block.get("value", block) if kind else block).decode()})
        return kept if any(block["type"] != "text" for block in kept) else text_of(kept)

    def _attachment(self, block: dict[str, JSON], index: int, held: bool, what: str) -> list[dict[str, JSON]]:
        if held and block.get(block["type"]):
            return [{name: item for name, item in block.items() if name != "extensions"}]
        why = f"{self._title} cannot hold it" if block.get(block["type"]) else "the session names it without its bytes"
        self._lose(index, what, why)
        return []

    def _lose(self, index: int | None, what: str, why: str) -> None:
        self.losses.append(Loss(index, what, why))


def as_text(value: JSON) -> str:
    """A value as text: what is none is spelled as JSON."""
    return value if isinstance(value, str) else dumps(value).decode()


def text_of(blocks: Iterable[JSON]) -> str:
    """The texts of a tool's result."""
    return "\n".join(block["text"] for block in blocks if block["type"] == "text")


def _why_kept_back(kind: JSON) -> str:
    """Why a block that clew keeps as it is stays behind."""
    if kind == "redacted_thinking":
        return "only the model that thought it can read it"
    if kind == "server_tool_use" or (isinstance(kind, str) and kind.endswith("_tool_result")):
        return "a tool of the model's provider, which no other agent has"
    return "no other agent is known to have the like"


def is_given(title: str | None, prompt: str | None) -> bool:
    """True for a title that is more than the beginning of what was asked first."""
    if not title:
        return False
    return title.rstrip("… ") not in " ".join((prompt or "").split())


def safe_id(identity: str | None) -> str:
    """The id of a call as every model's interface accepts it."""
    text = identity or ""
    if _SAFE_ID.fullmatch(text):
        return text
    return "call_" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]
