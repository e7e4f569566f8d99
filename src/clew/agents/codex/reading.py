"""The second pass over a rollout: messages and records in order, each with what the lines before it say of it."""

from __future__ import annotations

from collections.abc import Iterator

from clew.agents.base import SourceFile, Unit, open_main
from clew.agents.codex import tables
from clew.agents.codex.known import EVENT
from clew.agents.codex.outline import Outline
from clew.agents.codex.records import head_of, is_document, records_of
from clew.agents.codex.regular import ORDERS, Regular
from clew.agents.codex.shape import DONE, payload_rest, shaped
from clew.agents.codex.tables import AGENT, BARE
from clew.agents.codex.thread import Thread
from clew.agents.codex.words import is_injected, starts_turn
from clew.agents.folding import Message, note
from clew.agents.jsondoc import note_document
from clew.agents.jsonl import Form, JsonlReading, count
from clew.io.compress import damage
from clew.io.records import RawRecord, read_chunks
from clew.model.json import JSON

_PASSED = "internal_chat_message_metadata_passthrough"


class CodexReading(JsonlReading):
    """Messages and records of one rollout."""

    def __init__(self, source: SourceFile, outline: Outline) -> None:
        super().__init__(AGENT, source, None, {}, {"thread": outline.thread}, hints=ORDERS)
        self.outline = outline
        self.thread = Thread(outline.thread)
        self.line = 0
        self._kind: str | None = None
        self._injected = self._begins = False
        self._first: str | None = None
        outline.spent.rewind()

    def __iter__(self) -> Iterator[Unit]:
        if not is_document(self.source):
            yield from super().__iter__()
            return
        for record in records_of(self.source):
            unit = self.unit(record)
            note_document(unit.value, AGENT, record)
            yield unit

    def encode(self, messages: bytearray, records: bytearray, between: bytes) -> Iterator[None]:
        """Append the JSON of each unit and `between`; stops now and then, so that what is there can be taken away."""
        regular = Regular(self, between)
        with open_main(self.source) as stream:
            line = 0
            for chunk, whole in () if is_document(self.source) else read_chunks(stream):
                line = regular.read(chunk, line) if whole else regular.read_piece(chunk, line)
                self.calls.forget()
                regular.hand_over(messages, records)
                yield
            self.damage = damage(stream)
        for unit in self if is_document(self.source) else ():
            regular.add(unit)
        regular.hand_over(messages, records)
        yield

    def unit(self, record: RawRecord, part: int = 0) -> Unit:
        """The unit of one record, with what follows from the lines before it."""
        self.line = record.line
        unit = super().unit(record, part)
        if unit.is_message:
            self._complete(unit.value)
        elif record.value is not None:
            self.note_record(record.value)
        return unit

    # Forms

    def choose(self, record: dict[str, JSON]) -> Form:
        """The form of a record, which depends on the lines before it."""
        payload = record.get("payload")
        bare = "payload" not in record
        item = record if bare else payload if type(payload) is dict else None
        self._kind = tables.item_kind(BARE if bare else record.get("type"), item)
        if self._kind is not None and item is not None:
            form = (tables.BARE_ITEMS if bare else tables.ITEMS)[self._kind]
            return Form(form, self.role(self._kind, item))
        if self.line in self.outline.lone and item is not None and _speaks(record, item):
            return self._lone(item)
        form_of_record = tables.record_form(record)
        if form_of_record is None:
            count(self.unknown_types, tables.type_name(record))
        return form_of_record or tables.UNKNOWN

    def role(self, kind: str, item: dict[str, JSON]) -> str:
        """The role of an item; notes whether it was put in by Codex, and whether a turn begins with it."""
        said = item.get("role")
        role = tables.role_of(kind, said if type(said) is str else None)
        self._injected, self._begins = role == "system", kind == "agent_message"
        if role == "user" and kind == "message":
            texts = _texts(item.get("content"))
            self._injected = is_injected(texts, _kinds(item))
            self._begins = not self._injected or starts_turn(texts)
            if self._injected:
                self.thread.read_context(texts)
                return "system"
        return role

    def _lone(self, item: dict[str, JSON]) -> Form:
        """An event whose words stand nowhere else is a message."""
        self._kind = "message"
        spoken = item.get("type") == "agent_message"
        self._injected, self._begins = False, not spoken
        name = "agent_message" if spoken else "user_message"
        return Form(tables.EVENTS[name], "assistant" if spoken else "user")

    # Messages

    def _complete(self, message: Message) -> None:
        kind = self._kind or "message"
        if self.form is not None and self.form.table.name.startswith("bare."):
            note(message, AGENT, bare=True)
        shaped(message, kind)
        self._name(message)
        self._place(message, kind)

    def _place(self, message: Message, kind: str) -> None:
        if self.line <= self.outline.inherited:
            note(message, AGENT, inherited=True)
        self._identify(message)
        # Last of all, as usage may have to be added to it in a text that is written already.
        self._describe(message, kind)

    def _name(self, message: Message) -> None:
        for block in message["content"]:
            if block["type"] == "tool_use" and block["tool_id"] is not None:
                self.calls[block["tool_id"]] = block["tool_name"]
            elif block["type"] == "tool_result":
                block["tool_name"] = self.calls.get(block["tool_id"])

    def _identify(self, message: Message) -> None:
        own = message.get("uuid")
        uuid = self.thread.uuid(own, self.line, self.outline.repeated)
        if own is not None and uuid != own:
            self._keep_id(message, own)
        message["uuid"] = uuid
        message["parent_uuid"] = self.thread.follow(uuid, self._injected, self._begins)

    def _keep_id(self, message: Message, own: str) -> None:
        """An id that cannot be the message's goes to what else its item says."""
        extension = message.setdefault("extensions", {}).setdefault(AGENT, {})
        rest = extension.setdefault("rest", {})
        (rest if BARE in extension else rest.setdefault("payload", {}))["id"] = own

    def _describe(self, message: Message, kind: str) -> None:
        thread = self.thread
        metadata: dict[str, JSON] = dict(thread.news()) if thread.has_news else {}
        if self._injected:
            metadata["is_meta"] = True
        if kind == "agent_message":
            metadata["origin"] = "agent"
        if message["role"] == "assistant":
            stop = DONE.get(str(payload_rest(message).get("phase"))) if kind == "message" else None
            metadata |= self.answered(stop)
            usage = self.outline.spent.at(message["index"])
            if usage:
                metadata["token_usage"] = usage
        if metadata:
            message["metadata"] = metadata

    def answered(self, stop: str | None) -> dict[str, JSON]:
        """What holds for everything the model says now."""
        thread = self.thread
        model = {"name": thread.model} if thread.model else {}
        if stop:
            model["stop_reason"] = stop
        described: dict[str, JSON] = {"model": model} if model else {}
        if thread.effort:
            described["thinking"] = {"level": thread.effort}
        return described

    # Records

    def note_record(self, record: dict[str, JSON]) -> None:
        """Take from a record what holds for the messages behind it."""
        payload = record.get("payload")
        kind = record.get("type")
        record = head_of(record) or record
        if type(payload) is not dict:
            if "payload" not in record and kind is None and "record_type" not in record:
                self._meta(record)
            return
        if kind == "turn_context":
            self.thread.model = _text(payload, "model") or self.thread.model
            self.thread.effort = _text(payload, "effort")
            self.thread.surround(cwd=_text(payload, "cwd"))
        elif kind == "session_meta":
            self._meta(payload)
        elif kind == "inter_agent_communication":
            self.thread.begin_turn()
        elif kind == "event_msg" and payload.get("type") == "thread_rolled_back":
            turns = payload.get("num_turns")
            self.thread.roll_back(turns if type(turns) is int else None)

    def _meta(self, meta: dict[str, JSON]) -> None:
        named = _text(meta, "id")
        if self._first is None:
            self._first = named or ""
        elif named and named != self._first:
            return
        git = meta.get("git")
        self.thread.surround(
            cwd=_text(meta, "cwd"),
            git_branch=_text(git, "branch") if type(git) is dict else None,
            agent_version=_text(meta, "cli_version"),
            user_type=_text(meta, "originator"),
        )


def _text(value: dict[str, JSON], name: str) -> str | None:
    item = value.get(name)
    return item if type(item) is str else None


def _speaks(record: dict[str, JSON], item: dict[str, JSON]) -> bool:
    """True for an event with words; other records may be glued to its line."""
    return record.get("type") == EVENT and item.get("type") in tables.EVENTS and "message" in item


def _texts(content: JSON) -> list[str]:
    if type(content) is str:
        return [content]
    blocks = [block for block in content if type(block) is dict] if type(content) is list else []
    texts = [block.get("text") for block in blocks if block.get("type") in ("input_text", "output_text", "text")]
    return [text for text in texts if type(text) is str]


def _kinds(item: dict[str, JSON]) -> list[JSON] | None:
    passed = item.get(_PASSED)
    kinds = passed.get("content_item_kinds") if type(passed) is dict else None
    return kinds if type(kinds) is list else None
