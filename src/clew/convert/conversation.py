"""The messages of a path translated for another agent, and the list of what that agent cannot hold."""

from __future__ import annotations

import hashlib
import mimetypes
import re
from collections import deque
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

import msgspec

from clew.agents.derived_ids import derived_id
from clew.agents.native_records import content_of, output_of
from clew.agents.target_profile import Capacity, RecordText, TargetProfile
from clew.agents.tools import RecentCalls, Translator
from clew.analysis.todos import Replay
from clew.convert.compaction import CompactedSession, Part
from clew.convert.history import BranchSelection
from clew.convert.losses import Loss, Losses
from clew.io.codec import dumps
from clew.model import Todo
from clew.model.json import JSON
from clew.model.time import parse_time
from clew.model.unit import Unit

FAILED_MARK = "[failed]"
"""Begins the result of a failed call where the target has no flag for it."""
_MAX_QUEUED_PROMPTS = 256
_MAX_OPEN_CALLS = 4096
"""How many calls are remembered until their results come."""
_SAFE_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_METADATA = ("cwd", "git_branch", "model", "is_meta")
_ATTACHED = {"image": "a picture", "document": "an attached document"}
_MEDIA_TYPES = {"image/jpg": "image/jpeg"}
"""Names of types that some providers refuse."""
_REPLACED = {
    "lone-surrogate": ("half of a character", "it is not valid text, so it is replaced by a replacement character"),
    "invalid-utf8": ("bytes that are not UTF-8", "they are replaced by replacement characters"),
}
"""What of a line was replaced when it was decoded, by the code of the finding."""
NO_PROFILE = TargetProfile(Capacity(failures=True), (), (), lambda _session: [])
"""For agents whose sessions are only read."""


class Asides:
    """Texts of records that are no messages, until it is known whether a message holds the same text."""

    def __init__(self) -> None:
        self._near: list[RecordText] = []
        """Those behind the last message."""
        self._prompts: deque[RecordText] = deque(maxlen=_MAX_QUEUED_PROMPTS)
        """Those that any later message may hold."""
        self.last: dict[str, JSON] = {"content": []}
        """The last message that was converted."""

    def add(self, aside: RecordText, is_on_path: bool) -> None:
        """Add the text of a record; `is_on_path`: the message before it is converted."""
        if aside.may_be_sent_later:
            self._prompts.append(aside)
        elif (is_on_path or aside.belongs_to_next_message) and not _has_all(
            _words_of(self.last), aside.identifying_texts
        ):
            self._near.append(aside)

    def before(self, message: dict[str, JSON], is_on_path: bool) -> list[RecordText]:
        """Those that stand before a message, and that neither it nor the one before it holds."""
        if self._prompts:
            text = text_of(message["content"])
            self._prompts = deque(
                (aside for aside in self._prompts if not _is_sent(aside.text, text)), _MAX_QUEUED_PROMPTS
            )
        words = _words_of(message) if self._near else ""
        found = [
            aside
            for aside in self._near
            if (is_on_path or not aside.belongs_to_next_message) and not _has_all(words, aside.identifying_texts)
        ]
        self._near = []
        return found

    def remaining(self) -> list[RecordText]:
        """Those behind the last message, and the prompts that no message holds."""
        return [*self._near, *(aside._replace(text="") for aside in self._prompts)]


def _has_all(text: str, marks: Iterable[str]) -> bool:
    """True for a text that has all of the marks, if there are any."""
    wanted = [mark.strip() for mark in marks if mark.strip()]
    return bool(wanted) and all(mark in text for mark in wanted)


def _is_sent(prompt: str, text: str) -> bool:
    """True for a text that holds a prompt; of a command only the name stays as it was typed."""
    words = prompt.split()
    if not words or prompt.strip() in text:
        return True
    is_command = words[0].startswith("/") and "/" not in words[0][1:]
    return is_command and words[0] in text


def _words_of(message: dict[str, JSON]) -> str:
    """The texts and thoughts of a message."""
    thoughts = [block["thinking"] for block in message["content"] if block["type"] == "thinking"]
    return "\n".join([text_of(message["content"]), *thoughts])


def fit_attachment(block: dict[str, JSON], capacity: Capacity, title: str) -> dict[str, JSON] | str:
    """A picture or document as the target takes it, or why it does not."""
    kind = block["type"]
    if not block.get(kind):
        return "the session does not contain its bytes"
    kept = {name: item for name, item in block.items() if name not in ("extensions", "title")}
    media = _MEDIA_TYPES.get(str(block.get("media_type")), block.get("media_type"))
    types = capacity.image_types if kind == "image" else capacity.document_types
    if block.get("encoding") != "url":
        if block.get("encoding") != "text" and not str(media or "").startswith(types):
            return f"{title} does not take the type {media or 'unknown'}"
        return kept if media is None else {**kept, "media_type": media}
    try:
        address = urlsplit(block[kind])
    except ValueError:
        address = urlsplit("")
    if address.scheme not in ("http", "https"):
        return "only its own agent can read its address"
    media = media or mimetypes.guess_type(address.path)[0]
    if capacity.typed_links and not media:
        return f"{title} must be told its type, and its address does not tell it"
    if media and not str(media).startswith(types):
        return f"{title} does not take the type {media}"
    return {**kept, "media_type": media} if capacity.typed_links else kept


class Todos:
    """Follows the todo list of the session, and the list as the target has it."""

    def __init__(self, capacity: Capacity, translator: Translator, title: str) -> None:
        self._capacity, self._translator, self._title = capacity, translator, title
        # Where no tool sets the list and messages carry it, a call alone sets nothing.
        self._is_set_by_calls = not capacity.todos or translator.writes("todos")
        self._replay = Replay()
        self._calls: set[str] = set()
        """Those that set the list of the target as well, once their results say that they did."""
        self._target_todos: list[Todo] = []
        self.changed = 0
        """Index of the message that changed the list last."""

    def add(self, message: dict[str, JSON], *, is_converted: bool = True) -> None:
        """Follow a message of the path; the target does not see the calls of one that is not converted."""
        before = self._replay.todos
        for _ in self._replay.see(message):
            pass
        if _content_and_status(self._replay.todos) != _content_and_status(before):
            self.changed = message["index"]
        for block in message["content"] if is_converted else ():
            if block["type"] == "tool_use" and self._translator.kind(block["tool_name"]) == "todos":
                self._calls.add(block["tool_id"])
            elif block["type"] == "tool_result" and block["tool_id"] in self._calls:
                self._calls.discard(block["tool_id"])
                if self._is_set_by_calls and not block.get("is_error"):
                    self._target_todos = self._replay.todos

    def _is_current(self) -> bool:
        if _content_and_status(self._replay.todos) == _content_and_status(self._target_todos):
            return True
        # An agent puts a list away once all of it is done.
        return not self._replay.todos and all(todo.status == "completed" for todo in self._target_todos)

    def metadata(self, role: str) -> dict[str, JSON]:
        """What a converted message of this role has to carry of the list."""
        if role not in self._capacity.todos or self._is_current():
            return {}
        self._target_todos = self._replay.todos
        return {"todos": msgspec.to_builtins(self._target_todos)}

    def lost(self) -> tuple[str, str] | None:
        """What the target does not have in the end, and why."""
        if self._is_current():
            return None
        why = "no message follows it" if self._capacity.todos else f"{self._title} cannot store it"
        return ("the todo list" if self._replay.todos else "that the todo list was emptied"), why


def _content_and_status(todos: list[Todo]) -> list[tuple[JSON, JSON]]:
    return [(todo.content, todo.status) for todo in todos]


class Conversation:
    """The messages of a path for the target, one at a time. The losses are complete once all were converted."""

    def __init__(
        self,
        path: BranchSelection,
        target: TargetProfile,
        translator: Translator,
        own: TargetProfile | None,
        *,
        new_id: str,
        title: str,
        compaction: CompactedSession | None = None,
    ) -> None:
        """With a compaction, the target's model gets its summary in place of all messages before it."""
        self._path, self._target, self._translator, self._title = path, target, translator, title
        self._capacity, self._own = target.capacity, own or NO_PROFILE
        self._new_id, self._compaction = new_id, compaction
        self._part = Part.SENT
        """Of the unit that is converted."""
        self._calls = RecentCalls(_MAX_OPEN_CALLS)
        self._answered = RecentCalls(_MAX_OPEN_CALLS)
        self._asides = Asides()
        self._todos = Todos(target.capacity, translator, title)
        self._failures = 0
        """Results of failed calls that were marked in their text."""
        self._command: Unit | None = None
        self._last_uuid: str | None = None
        self._messages = 0
        self._losses = Losses()
        self._lose, self._note = self._losses.add, self._losses.add_note
        self.message_count = 0
        """How many messages hold more than thoughts."""

    @property
    def losses(self) -> list[Loss]:
        """What the target cannot hold."""
        return self._losses.listed()

    def convert(self, units: Iterable[Unit]) -> Iterator[Unit]:
        """The messages for the target, numbered anew."""
        parts = self._compaction.split(units) if self._compaction is not None else ((Part.SENT, unit) for unit in units)
        for part, unit in parts:
            if part is not Part.EARLIER and self._part is Part.EARLIER:
                # The model does not see earlier calls, and would refuse their results.
                self._calls = RecentCalls(_MAX_OPEN_CALLS)
            self._part = part
            if part is not Part.EARLIER or self._capacity.compactions:
                yield from self._unit_of_path(unit)
            elif unit.is_message and self._path.contains(unit.value["index"]):
                self._todos.add(unit.value, is_converted=False)
        for aside in self._asides.remaining():
            yield from self._aside(aside)
        if self._failures:
            what = "a call" if self._failures == 1 else f"{self._failures} calls"
            self._note(None, f"that {what} failed", f"its text begins with {FAILED_MARK}")
        if lost := self._todos.lost():
            self._note(self._todos.changed, *lost)

    def _unit_of_path(self, unit: Unit) -> Iterator[Unit]:
        """The messages for a unit, and for the texts of records before it."""
        value = unit.value
        if not unit.is_message:
            if (aside := self._own.aside(unit)) is not None:
                after = value["after"]
                self._asides.add(aside._replace(after=after), not after or self._path.contains(after))
            return
        is_on_path = self._path.contains(value["index"])
        for aside in self._asides.before(value, is_on_path):
            yield from self._aside(aside)
        if is_on_path:
            for code in unit.findings:
                if code in _REPLACED:
                    self._note(value["index"], *_REPLACED[code])
            self._todos.add(value)
            yield from self._message_or_command(unit)

    def _aside(self, aside: RecordText) -> Iterator[Unit]:
        """A message for the text of a record that no message holds."""
        if aside.call is not None and safe_id(aside.call) in self._calls:
            return
        if not aside.text:
            report = self._note if aside.is_note else self._lose
            report(aside.after or None, aside.description, aside.loss_reason)
        elif not aside.is_thought:
            self.message_count += 1
            yield self._unit({"role": aside.role}, [{"type": "text", "text": aside.text}])
        elif blocks := self._thinking(aside.text, aside.after or None):
            yield self._unit({"role": aside.role}, blocks)

    # Messages

    def _message_or_command(self, unit: Unit) -> Iterator[Unit]:
        """A command to the agent is no prompt, unless the model answered it."""
        command, self._command = self._command, None
        if command is not None and unit.value["role"] == "assistant":
            yield from self._message(command)
        blocks = unit.value["content"]
        is_text = all(block["type"] == "text" for block in blocks)
        if unit.value["role"] == "user" and _is_meta(unit.value) and is_text and self._own.is_command(text_of(blocks)):
            self._command = unit
        else:
            yield from self._message(unit)

    def _message(self, unit: Unit) -> Iterator[Unit]:
        value, blocks, index = unit.value, unit.value["content"], unit.value["index"]
        if self._is_note(value):
            self._lose_note(unit)
            return
        if value["role"] == "system" and self._own.capacity.instructions and not self._capacity.instructions:
            self._note(index, "a system message", f"{self._title} uses its own system prompt")
            return
        content: list[dict[str, JSON]] = []
        results: list[dict[str, JSON]] = []
        for number, block in enumerate(blocks):
            before = blocks[number - 1] if number else None
            if block["type"] == "image" and before and before["type"] == "tool_use" and before["tool_id"] is None:
                # A picture that a call drew, which its agent keeps with the call.
                is_supported, what = self._capacity.images_in_results, "a picture in a tool's result"
                if output := self._attachment(block, index, is_supported, what):
                    results.append(self._tool_result(call_id(value, number - 1), output))
            else:
                content += self._block(block, unit, number)
        if not blocks and (text := content_of(unit.native)) is not None:
            content = [{"type": "text", "text": as_text(text)}]
        for what in self._own.unconvertible(unit):
            self._note(index, what, f"{self._title} cannot store it")
        if content:
            converted = self._unit(value, content)
            has_content = any(block["type"] != "thinking" for block in content)
            self.message_count += has_content and converted.value["role"] != "system"
            self._asides.last = converted.value
            yield converted
        if results:
            yield self._unit({**value, "role": "user", "metadata": {}}, results)

    def _is_note(self, value: dict[str, JSON]) -> bool:
        """True for a note of the agent itself, and for what it told its model: the target has notes of its own."""
        text = next((block["text"] for block in value["content"] if block["type"] == "text"), "")
        if value["role"] == "system":
            return not self._own.capacity.instructions and not text.startswith(self._own.user_note_prefixes)
        return _is_meta(value) and bool(text.lstrip().startswith(self._own.injected_prefixes))

    def _lose_note(self, unit: Unit) -> None:
        """Leave out a note; what may be more than a note is a loss."""
        index = unit.value["index"]
        kind = self._own.unknown_kind(unit) if unit.value["role"] == "system" else None
        if kind is not None:
            self._lose(index, f"a message of the kind {kind!r}", "clew does not support this kind of message")
        for block in unit.value["content"]:
            if block["type"] in _ATTACHED:
                self._lose(index, f"{_ATTACHED[block['type']]} in a note of the agent", "notes stay behind")

    def _unit(self, value: dict[str, JSON], content: list[dict[str, JSON]]) -> Unit:
        """A new message, behind the last one; no record of the target holds it yet."""
        self._messages += 1
        uuid = derived_id(self._new_id, self._messages)
        role = "user" if value["role"] == "system" and not self._own.capacity.instructions else value["role"]
        message = {"index": self._messages, "uuid": uuid, "parent_uuid": self._last_uuid, "role": role}
        self._last_uuid = uuid
        if parse_time(value.get("timestamp")) is not None:
            message["timestamp"] = value["timestamp"]
        message["content"] = content
        metadata = value.get("metadata") or {}
        kept = {name: metadata[name] for name in _METADATA if metadata.get(name)} | self._todos.metadata(role)
        if self._part is Part.SUMMARY and self._capacity.compactions:
            kept["is_compact_summary"] = True
        if kept:
            message["metadata"] = kept
        return Unit(True, message, 0, 0, 0, ())

    # Blocks

    def _block(self, block: dict[str, JSON], unit: Unit, number: int) -> list[dict[str, JSON]]:
        index = unit.value["index"]
        match block["type"]:
            case "text":
                is_empty = block["text"] in ("", self._own.text_guard)
                return [] if is_empty else [{"type": "text", "text": block["text"]}]
            case "thinking":
                return self._thinking(block["thinking"], index)
            case "tool_use":
                return [self._call(block, unit, number)]
            case "tool_result":
                return self._result(block, unit)
            case "image" | "document":
                return self._attached(block, unit.value)
        native = block.get("value")
        kind = native.get("type") or next(iter(native), None) if isinstance(native, dict) else None
        why = "no other agent supports it"
        if kind == "redacted_thinking":
            why = "only its own model can read it"
        elif kind == "server_tool_use" or (isinstance(kind, str) and kind.endswith("_tool_result")):
            why = "a tool of the model's provider, which no other agent has"
        report = self._note if kind == "redacted_thinking" else self._lose
        report(index, f"a block of the kind {kind!r}", why)
        return []

    def _thinking(self, thought: str, index: int | None) -> list[dict[str, JSON]]:
        if thought and self._capacity.thinking:
            return [{"type": "thinking", "thinking": thought}]
        if thought:
            self._note(index, "thinking", f"{self._title} cannot hold what another model thought")
        return []

    def _call(self, block: dict[str, JSON], unit: Unit, number: int) -> dict[str, JSON]:
        name, identity = block["tool_name"], call_id(unit.value, number)
        if namespace := self._own.namespace(unit):
            full_name = name or "unknown"
            if not full_name.startswith(namespace):
                full_name = f"{namespace.rstrip('_')}__{full_name}"
        else:
            full_name = self._translator.name(name) or "unknown"
        self._answered.pop(identity, None)
        self._calls[identity] = full_name
        arguments = self._translator.arguments(name, block["input"])
        if not isinstance(arguments, dict):
            # The models take arguments by their names alone.
            arguments = {} if arguments is None else {"input": arguments}
        return {"type": "tool_use", "tool_id": identity, "tool_name": full_name, "input": arguments}

    def _result(self, block: dict[str, JSON], unit: Unit) -> list[dict[str, JSON]]:
        index, output, is_error = unit.value["index"], block.get("output"), bool(block.get("is_error"))
        if not output:
            output = output_of(unit.native)
            output = output if output is None or isinstance(output, list) else as_text(output)
        identity = safe_id(block["tool_id"])
        if block["tool_id"] is None or identity not in self._calls:
            return self._result_without_call(output, is_error, index, "its call is missing")
        if self._own.no_result_text and is_error and output == self._own.no_result_text:
            return []  # it only says that there is none
        if identity in self._answered:
            return self._result_without_call(output, is_error, index, "its call already has a result")
        self._answered[identity] = ""
        result = self._tool_result(identity, self._output(output, index, self._capacity.images_in_results))
        if is_error:
            result["is_error"] = True
            # Where an agent's own results do not say that a call failed, their text does, wherever it goes.
            has_flag = self._capacity.failures or not self._own.capacity.failures
            if not has_flag and not self._target.shows_failure(result["output"]):
                self._failures += 1
                result["output"] = _marked_as_failed(result["output"])
        return [result]

    def _tool_result(self, call: str, output: JSON) -> dict[str, JSON]:
        return {"type": "tool_result", "tool_id": call, "tool_name": self._calls[call], "output": output}

    def _result_without_call(self, output: JSON, is_error: bool, index: int, why: str) -> list[dict[str, JSON]]:
        """A result that answers no call is refused by the models; its text is still part of the conversation."""
        output = self._output(output, index, self._capacity.images)
        if is_error:
            self._failures += 1
            output = _marked_as_failed(output)
        blocks = output if isinstance(output, list) else [{"type": "text", "text": as_text(output)}]
        kept = [block for block in blocks if block["type"] != "text" or block["text"]]
        if not kept:
            self._note(index, "an empty result", why)
        return kept

    def _output(self, output: JSON, index: int, pictures: bool) -> JSON:
        if not isinstance(output, list):
            return "" if output is None else output
        kept: list[JSON] = []
        for block in output:
            kind = block.get("type") if isinstance(block, dict) else None
            if kind == "text" and isinstance(block.get("text"), str):
                kept.append({"type": "text", "text": block["text"]})
            elif kind == "image":
                kept += self._attachment(block, index, pictures, "a picture in a tool's result")
            elif kind == "document" and block.get("encoding") == "text":
                kept.append({"type": "text", "text": as_text(block.get("document") or "")})
            elif kind == "document":
                is_supported = pictures and self._capacity.documents
                kept += self._attachment(block, index, is_supported, "a document in a tool's result")
            else:
                # A block in a form of the agent's own can still be read as text.
                kept.append({"type": "text", "text": dumps(block.get("value", block) if kind else block).decode()})
        return kept if any(block["type"] != "text" for block in kept) else text_of(kept)

    def _attached(self, block: dict[str, JSON], value: dict[str, JSON]) -> list[dict[str, JSON]]:
        """A picture or document of a message."""
        what, index = _ATTACHED[block["type"]], value["index"]
        if value["role"] == "assistant" and not self._capacity.images_in_replies:
            self._lose(index, f"{what} in a reply", f"{self._title} has none where the model speaks")
            return []
        is_supported = self._capacity.images if block["type"] == "image" else self._capacity.documents
        kept = self._attachment(block, index, is_supported, what)
        if kept and block.get("title"):
            self._note(index, "the title of a document", f"{self._title} cannot store it")
        return kept

    def _attachment(self, block: dict[str, JSON], index: int, is_supported: bool, what: str) -> list[dict[str, JSON]]:
        kept = fit_attachment(block, self._capacity, self._title)
        if isinstance(kept, dict) and is_supported:
            return [kept]
        self._lose(index, what, kept if isinstance(kept, str) else f"{self._title} cannot hold it")
        return []


def _marked_as_failed(output: JSON) -> JSON:
    """The output of a failed call for an agent whose results have no flag for it."""
    if isinstance(output, list):
        return [{"type": "text", "text": FAILED_MARK}, *output]
    return f"{FAILED_MARK}\n{as_text(output)}" if output else FAILED_MARK


def _is_meta(message: dict[str, JSON]) -> bool:
    return bool((message.get("metadata") or {}).get("is_meta"))


def as_text(value: JSON) -> str:
    """A value as text; what is no text becomes JSON."""
    return value if isinstance(value, str) else dumps(value).decode()


def text_of(blocks: Iterable[JSON]) -> str:
    """The texts among blocks."""
    return "\n".join(block["text"] for block in blocks if block["type"] == "text")


def is_custom_title(title: str | None, prompt: str | None) -> bool:
    """True for a title that is more than the beginning of the first prompt."""
    if not title:
        return False
    return title.rstrip("… ") not in " ".join((prompt or "").split())


def safe_id(identity: str | None) -> str:
    """The id of a call as every model's interface accepts it."""
    text = identity or ""
    if _SAFE_ID.fullmatch(text):
        return text
    return "call_" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def call_id(message: dict[str, JSON], number: int) -> str:
    """The id of a call that is a block of a message; one without an id gets it from its message."""
    own = message["content"][number]["tool_id"]
    if own is not None:
        return safe_id(own)
    name = str(message.get("uuid") or f"message {message['index']}")
    return safe_id(name if not number else f"{name}:{number}")
