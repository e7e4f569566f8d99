"""A path of a session in terms that every encoder understands, and the list of what the target cannot hold."""

from __future__ import annotations

import hashlib
import mimetypes
import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import urlsplit

import msgspec

from clew.agents.derived_ids import derived_id
from clew.agents.target_profile import Aside, Capacity, TargetProfile
from clew.agents.tools import TODOS, Translator
from clew.analysis.todos import Replay
from clew.convert.history import BranchSelection
from clew.convert.losses import Loss as Loss
from clew.convert.losses import Losses
from clew.io.codec import dumps
from clew.model import Todo
from clew.model.json import JSON
from clew.model.unit import Unit

_MOST = 256
"""So many prompts wait for a message that holds them."""


class Asides:
    """Holds what records say until it is known whether a message says it too."""

    def __init__(self) -> None:
        self._near: list[Aside] = []
        self._prompts: list[Aside] = []
        self._before: dict[str, JSON] = {"content": []}

    def add(self, aside: Aside, holds: bool) -> None:
        """What a record says; `holds`: it stands behind a message that goes over."""
        if aside.waits:
            self._prompts = [*self._prompts[1 - _MOST :], aside]
        elif (holds or aside.begins) and not _says(_words_of(self._before), aside.marks):
            self._near.append(aside)

    def meet(self, message: dict[str, JSON], holds: bool) -> list[Aside]:
        """Take notice of the next message; gives what stood before it and nowhere else."""
        if self._prompts:
            text = _text_of(message)
            self._prompts = [aside for aside in self._prompts if not _is_sent(aside.text, text)]
        words = _words_of(message) if self._near else ""
        found = [aside for aside in self._near if (holds or not aside.begins) and not _says(words, aside.marks)]
        self._near = []
        return found

    def went(self, message: dict[str, JSON]) -> None:
        """A message goes over."""
        self._before = message

    def rest(self) -> list[Aside]:
        """What stood behind the last message, and the prompts that no message holds."""
        return [*self._near, *(aside._replace(text="") for aside in self._prompts)]


def _says(text: str, marks: Iterable[str]) -> bool:
    """True for a text that has all of the marks, if there are any."""
    wanted = [mark.strip() for mark in marks if mark.strip()]
    return bool(wanted) and all(mark in text for mark in wanted)


def _is_sent(prompt: str, text: str) -> bool:
    """True for a text that holds a prompt; a command is spelled in another way by the time it is sent."""
    words = prompt.split()
    return not words or prompt.strip() in text or (words[0].startswith("/") and words[0] in text)


def _text_of(message: dict[str, JSON]) -> str:
    return "\n".join(block["text"] for block in message["content"] if block["type"] == "text")


def _words_of(message: dict[str, JSON]) -> str:
    """What a message says, and what its model thought."""
    thoughts = [block["thinking"] for block in message["content"] if block["type"] == "thinking"]
    return "\n".join([_text_of(message), *thoughts])


_WEB = ("http", "https")
_SPELLINGS = {"image/jpg": "image/jpeg"}
"""Types that are called otherwise by those who are strict."""


def fitted(block: dict[str, JSON], capacity: Capacity, title: str) -> dict[str, JSON] | str:
    """The block as the target takes it, or why it does not."""
    slot = block["type"]
    content = block.get(slot)
    if not content:
        return "the session names it without its bytes"
    kept = {name: item for name, item in block.items() if name not in ("extensions", "title")}
    media = _SPELLINGS.get(str(block.get("media_type")), block.get("media_type"))
    if block.get("encoding") == "url":
        return _linked(kept, media, capacity, title)
    if block.get("encoding") != "text" and not _is_taken(media, slot, capacity):
        return f"{title} does not take the type {media or 'unknown'}"
    return kept if media is None else {**kept, "media_type": media}


def _linked(block: dict[str, JSON], media: JSON, capacity: Capacity, title: str) -> dict[str, JSON] | str:
    """What stands elsewhere, by its address."""
    parts = _split(block[block["type"]])
    if parts is None or parts[0] not in _WEB:
        return "its address is one that only its own agent can read"
    media = media or mimetypes.guess_type(parts[1])[0]
    if capacity.typed_links and not media:
        return f"{title} must be told its type, and its address does not tell it"
    if media and not _is_taken(media, block["type"], capacity):
        return f"{title} does not take the type {media}"
    return {**block, "media_type": media} if capacity.typed_links else block


def _split(address: str) -> tuple[str, str] | None:
    try:
        found = urlsplit(address)
    except ValueError:
        return None
    return found.scheme, found.path


def _is_taken(media: JSON, slot: str, capacity: Capacity) -> bool:
    types = capacity.image_types if slot == "image" else capacity.document_types
    return str(media or "").startswith(types)


_DONE = "completed"


class Todos:
    """Follows the list as it stands, and what the target has been told of it."""

    def __init__(self, capacity: Capacity, translator: Translator, title: str) -> None:
        self._capacity, self._translator, self._title = capacity, translator, title
        # Where no tool sets the list and messages carry it, a call alone sets nothing.
        self._is_set_by_calls = not capacity.todos or translator.writes(TODOS)
        self._replay = Replay()
        self._calls: set[str] = set()
        """Those that set the list there as well, once their results say that they did."""
        self._told: list[Todo] = []
        self.changed = 0
        """Index of the message that changed the list last."""

    def see(self, message: dict[str, JSON]) -> None:
        """Take notice of a message of the path, whether it goes over or not."""
        before = self._replay.todos
        for _ in self._replay.see(message):
            pass
        if _key(self._replay.todos) != _key(before):
            self.changed = message["index"]
        for block in message["content"]:
            if block["type"] == "tool_use" and self._translator.kind(block["tool_name"]) == TODOS:
                self._calls.add(block["tool_id"])
            elif block["type"] == "tool_result" and block["tool_id"] in self._calls:
                self._calls.discard(block["tool_id"])
                if self._is_set_by_calls and not block.get("is_error"):
                    self._told = self._replay.todos

    @property
    def _is_told(self) -> bool:
        if _key(self._replay.todos) == _key(self._told):
            return True
        # An agent puts a list away once all of it is done.
        return not self._replay.todos and all(todo.status == _DONE for todo in self._told)

    def carried(self, role: str) -> dict[str, JSON]:
        """What a message that goes over has to say of the list."""
        if self._is_told or role not in self._capacity.todos:
            return {}
        self._told = self._replay.todos
        return {"todos": msgspec.to_builtins(self._told)}

    def lost(self) -> tuple[str, str] | None:
        """What the target is never told of, and why; asked once all was seen."""
        if self._is_told:
            return None
        why = "no message follows that could carry it" if self._capacity.todos else f"{self._title} has no place for it"
        return ("the todo list" if self._replay.todos else "that the todo list was emptied"), why


def _key(todos: list[Todo]) -> list[tuple[JSON, JSON]]:
    return [(todo.content, todo.status) for todo in todos]


_WITHIN = ("payload", "message")
"""What the records of some agents wrap."""


def unread(native: Mapping[str, JSON], name: str) -> JSON:
    """What a native record holds under a name; None where it holds nothing."""
    places = [native, *(native[key] for key in _WITHIN if isinstance(native.get(key), dict))]
    return next((place[name] for place in places if place.get(name)), None)


MAX_CALLS = 4096
"""How many calls wait for their results."""
_SAFE_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_METADATA = ("cwd", "git_branch", "model", "is_meta")
_ATTACHED = {"image": "a picture", "document": "an attached document"}
_REPLACED = {
    "lone-surrogate": ("half of a character", "no text can hold it, so a replacement character stands there"),
    "invalid-utf8": ("bytes that are no text", "replacement characters stand there"),
}
"""What of a line is read as something else, by the code of the finding."""


class RecentCalls(dict[str, str]):
    """The names of tools by the id of the call; the oldest are forgotten, as results follow their calls closely."""

    def __setitem__(self, call: str, name: str) -> None:
        self.pop(call, None)
        super().__setitem__(call, name)
        if len(self) > MAX_CALLS:
            del self[next(iter(self))]


class Conversation:
    """The messages of a path, one at a time. The losses are complete once it was iterated."""

    def __init__(
        self,
        path: BranchSelection,
        target: TargetProfile,
        translator: Translator,
        own: TargetProfile | None,
        *,
        new_id: str,
        title: str,
    ) -> None:
        self._path, self._translator, self._title = path, translator, title
        self._capacity = capacity = target.capacity
        self._tells_failure = target.tells_failure
        self._own = own
        self._injected = own.injected if own else ()
        self._unspoken = ("", own.guard) if own is not None else ("",)
        self._instructs = own is not None and own.capacity.instructions
        # Where an agent reads from its results whether a call failed, they tell it wherever they go.
        self._keeps_failures = capacity.failures or (own is not None and not own.capacity.failures)
        self._new_id = new_id
        self._calls = RecentCalls()
        self._answered = RecentCalls()
        self._asides = Asides()
        self._todos = Todos(capacity, translator, title)
        self._failures = 0
        self._command: Unit | None = None
        self._last: str | None = None
        self._losses = Losses()
        self.messages = 0
        self.said = 0
        """How many messages hold more than thoughts."""

    @property
    def losses(self) -> list[Loss]:
        """What the target cannot hold."""
        return self._losses.listed()

    def convert(self, units: Iterable[Unit]) -> Iterator[Unit]:
        """The messages that go over, numbered anew."""
        for unit in units:
            value = unit.value
            if not unit.is_message:
                self._see_record(unit)
                continue
            holds = self._path.holds(value["index"])
            for aside in self._asides.meet(value, holds):
                yield from self._told(aside)
            if not holds:
                continue
            self._see_damage(unit)
            self._todos.see(value)
            yield from self._weighed(unit)
        for aside in self._asides.rest():
            yield from self._told(aside)
        if self._failures and not self._keeps_failures:
            what = "a call" if self._failures == 1 else f"{self._failures} calls"
            self._lose(None, f"that {what} failed", f"{self._title} keeps results without a mark for it")
        if lost := self._todos.lost():
            self._lose(self._todos.changed, *lost)

    # What stands beside the messages

    def _see_record(self, record: Unit) -> None:
        aside = self._own.aside(record) if self._own is not None else None
        if aside is not None:
            after = record.value["after"]
            self._asides.add(aside._replace(after=after), not after or self._path.holds(after))

    def _see_damage(self, unit: Unit) -> None:
        """A line may be read with something else in the place of what is no text."""
        for code in unit.findings:
            if code in _REPLACED:
                self._lose(unit.value["index"], *_REPLACED[code])

    def _told(self, aside: Aside) -> Iterator[Unit]:
        """Words that no message says; where they cannot go over, they are named."""
        if aside.call is not None and safe_id(aside.call) in self._calls:
            return
        if not aside.text:
            self._lose(aside.after or None, aside.what, aside.why)
            return
        if aside.is_thought:
            blocks = self._thinking({"thinking": aside.text}, aside.after or None)
        else:
            self.said += 1
            blocks = [{"type": "text", "text": aside.text}]
        if blocks:
            yield _new_unit(self._numbered({"role": aside.role}, blocks))

    def _is_note(self, value: dict[str, JSON]) -> bool:
        """True for what the agent itself noted or told its model: the target has notes of its own."""
        text = next((block["text"] for block in value["content"] if block["type"] == "text"), "")
        if value["role"] == "system":
            return not self._instructs and not (self._own and self._own.spoken and text.startswith(self._own.spoken))
        if not self._injected or not (value.get("metadata") or {}).get("is_meta"):
            return False
        return bool(text.lstrip().startswith(self._injected))

    def _leave(self, unit: Unit) -> None:
        """A note stays behind; what may be more than a note is named."""
        note = unit.value
        strange = self._own.strange(unit) if self._own is not None and note["role"] == "system" else None
        if strange is not None:
            self._lose(note["index"], f"a message of the kind {strange!r}", "nobody knows who speaks in it")
        for block in note["content"]:
            if block["type"] in ("image", "document"):
                self._lose(note["index"], f"{_ATTACHED[block['type']]} in a note of the agent", "notes stay behind")

    # Messages

    def _weighed(self, unit: Unit) -> Iterator[Unit]:
        """A command to the agent is no prompt, unless the model answered it."""
        command, self._command = self._command, None
        if command is not None and unit.value["role"] == "assistant":
            yield from self._messages(command)
        if self._is_command(unit.value):
            self._command = unit
        else:
            yield from self._messages(unit)

    def _is_command(self, value: dict[str, JSON]) -> bool:
        if self._own is None or value["role"] != "user" or not (value.get("metadata") or {}).get("is_meta"):
            return False
        return all(block["type"] == "text" for block in value["content"]) and self._own.is_command(
            text_of(value["content"])
        )

    def _messages(self, unit: Unit) -> Iterator[Unit]:
        value = unit.value
        if self._is_note(value):
            self._leave(unit)
            return
        if value["role"] == "system" and self._instructs and not self._capacity.instructions:
            self._lose(value["index"], "what the model was told by the system", f"{self._title} has words of its own")
            return
        content, drawn = self._content(unit)
        if content:
            message = self._numbered(value, content)
            self.said += message["role"] != "system" and any(block["type"] != "thinking" for block in content)
            self._asides.went(message)
            yield _new_unit(message)
        if drawn:
            yield _new_unit(self._numbered({**value, "role": "user", "metadata": {}}, drawn))

    def _content(self, unit: Unit) -> tuple[list[dict[str, JSON]], list[dict[str, JSON]]]:
        """The blocks that go over, and the results of calls that are told with the calls themselves."""
        value = unit.value
        content: list[dict[str, JSON]] = []
        drawn: list[dict[str, JSON]] = []
        for number, block in enumerate(value["content"]):
            before = value["content"][number - 1] if number else None
            if block["type"] == "image" and before and before["type"] == "tool_use" and before["tool_id"] is None:
                drawn += self._drawn(block, value, call_id(value, number - 1))
            else:
                content += self._block(block, unit, number)
        if not value["content"] and (words := unread(unit.native, "content")) is not None:
            content = [{"type": "text", "text": as_text(words)}]
        self._see_unsaid(unit)
        return content, drawn

    def _numbered(self, value: dict[str, JSON], content: list[dict[str, JSON]]) -> dict[str, JSON]:
        self.messages += 1
        uuid = derived_id(self._new_id, self.messages)
        role = "user" if value["role"] == "system" and not self._instructs else value["role"]
        message = {"index": self.messages, "uuid": uuid, "parent_uuid": self._last, "role": role}
        self._last = uuid
        if value.get("timestamp") is not None:
            message["timestamp"] = value["timestamp"]
        metadata = value.get("metadata") or {}
        kept = {name: metadata[name] for name in _METADATA if metadata.get(name)}
        kept |= self._todos.carried(role)
        return {**message, "content": content, **({"metadata": kept} if kept else {})}

    def _block(self, block: dict[str, JSON], unit: Unit, number: int) -> list[dict[str, JSON]]:
        value, index = unit.value, unit.value["index"]
        match block["type"]:
            case "text":
                return [{"type": "text", "text": block["text"]}] if block["text"] not in self._unspoken else []
            case "thinking":
                return self._thinking(block, index)
            case "tool_use":
                return [self._call(block, unit, number)]
            case "tool_result":
                return self._result(block, unit)
            case "image" | "document":
                return self._attached(block, value)
        kind = block.get("value")
        name = kind.get("type") or next(iter(kind), None) if isinstance(kind, dict) else None
        self._lose(index, f"a block of the kind {name!r}", _why_kept_back(name))
        return []

    def _see_unsaid(self, unit: Unit) -> None:
        """Name what stands beside a text and has no place elsewhere."""
        for what in self._own.unsaid(unit) if self._own is not None else ():
            self._lose(unit.value["index"], what, f"{self._title} has no place for it")

    def _thinking(self, block: dict[str, JSON], index: int | None) -> list[dict[str, JSON]]:
        thought = block["thinking"]
        if not thought:
            return []
        if self._capacity.thinking:
            return [{"type": "thinking", "thinking": thought}]
        self._lose(index, "thinking", f"{self._title} cannot hold what another model thought")
        return []

    def _call(self, block: dict[str, JSON], unit: Unit, number: int) -> dict[str, JSON]:
        name = block["tool_name"]
        identity = call_id(unit.value, number)
        space = self._own.namespace(unit) if self._own is not None else None
        self._answered.pop(identity, None)
        self._calls[identity] = (_spaced(space, name) if space else self._translator.name(name)) or "unknown"
        arguments = self._translator.arguments(name, block["input"])
        if not isinstance(arguments, dict):
            # The models take arguments by their names alone.
            arguments = {} if arguments is None else {"input": arguments}
        return {"type": "tool_use", "tool_id": identity, "tool_name": self._calls[identity], "input": arguments}

    def _drawn(self, block: dict[str, JSON], value: dict[str, JSON], call: str) -> list[dict[str, JSON]]:
        """The picture that a call gave, which its agent keeps with the call."""
        what = "a picture in a tool's result"
        kept = self._attachment(block, value["index"], self._capacity.images_in_results, what)
        return (
            [{"type": "tool_result", "tool_id": call, "tool_name": self._calls[call], "output": kept}] if kept else []
        )

    def _result(self, block: dict[str, JSON], unit: Unit) -> list[dict[str, JSON]]:
        index = unit.value["index"]
        if not block.get("output"):
            odd = unread(unit.native, "output")
            block = {**block, "output": odd if odd is None or isinstance(odd, list) else as_text(odd)}
        if block["tool_id"] is None or (identity := safe_id(block["tool_id"])) not in self._calls:
            return self._stray(block, index, "the call is not there")
        if self._is_unanswered(block):
            return []
        if identity in self._answered:
            return self._stray(block, index, "it was answered before")
        self._answered[identity] = ""
        output = self._output(block.get("output"), index, self._capacity.images_in_results)
        result = {"type": "tool_result", "tool_id": identity, "tool_name": self._calls[identity], "output": output}
        if block.get("is_error"):
            result["is_error"] = True
            self._failures += not self._tells_failure(output)
        return [result]

    def _is_unanswered(self, result: dict[str, JSON]) -> bool:
        """True for a result that only says that there is none."""
        words = self._own.unanswered if self._own is not None else ""
        return bool(words) and bool(result.get("is_error")) and result.get("output") == words

    def _stray(self, block: dict[str, JSON], index: int, why: str) -> list[dict[str, JSON]]:
        """A result that answers no call is refused by the models; what it says is still part of the conversation."""
        if block.get("is_error"):
            self._lose(index, "that a call failed", why)
        output = self._output(block.get("output"), index, self._capacity.images)
        blocks = output if isinstance(output, list) else [{"type": "text", "text": as_text(output)}]
        kept = [block for block in blocks if block["type"] != "text" or block["text"]]
        if not kept:
            self._lose(index, "an empty result", why)
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

    def _attached(self, block: dict[str, JSON], value: dict[str, JSON]) -> list[dict[str, JSON]]:
        """What a message holds beside words."""
        what, kind = _ATTACHED[block["type"]], block["type"]
        if value["role"] == "assistant" and not self._capacity.images_in_replies:
            self._lose(value["index"], f"{what} in a reply", f"{self._title} has none where the model speaks")
            return []
        held = self._capacity.images if kind == "image" else self._capacity.documents
        kept = self._attachment(block, value["index"], held, what)
        if kept and block.get("title"):
            self._lose(value["index"], "the title of a document", f"{self._title} has no place for it")
        return kept

    def _attachment(self, block: dict[str, JSON], index: int, held: bool, what: str) -> list[dict[str, JSON]]:
        kept = fitted(block, self._capacity, self._title)
        if isinstance(kept, dict) and held:
            return [kept]
        self._lose(index, what, kept if isinstance(kept, str) else f"{self._title} cannot hold it")
        return []

    def _lose(self, index: int | None, what: str, why: str) -> None:
        self._losses.add(index, what, why)


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


def is_custom_title(title: str | None, prompt: str | None) -> bool:
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


def call_id(message: dict[str, JSON], number: int) -> str:
    """The id of a call that is a block of a message; one without an id has that of its message."""
    own = message["content"][number]["tool_id"]
    if own is not None:
        return safe_id(own)
    name = str(message.get("uuid") or f"message {message['index']}")
    return safe_id(name if not number else f"{name}:{number}")


def _spaced(space: str, name: str | None) -> str:
    """The name of a tool with what its kin are called."""
    name = name or "unknown"
    return name if name.startswith(space) else f"{space.rstrip('_')}__{name}"


def _new_unit(message: dict[str, JSON]) -> Unit:
    """A message that no record of the target agent holds yet."""
    return Unit(True, message, 0, 0, 0, ())
