"""The second pass: each message once, with its last version, and everything else as a record in its place."""

from __future__ import annotations

from collections.abc import Iterator

from clew.agents.base import SourceFile, Unit
from clew.agents.folding import Message, note, own_extension
from clew.agents.gemini import tables
from clew.agents.gemini.events import RESULTS_SUFFIX
from clew.agents.gemini.fold import Pairs, fold
from clew.agents.gemini.locate import AGENT, is_log, known_chats, project_folder, relative_name, session_id
from clew.agents.gemini.replay import EARLIER, FETCHED, NONE, PLACE, Replay, replay
from clew.agents.gemini.steps import Does, Fetcher, Step, Steps
from clew.agents.jsondoc import DocumentRecord, note_document
from clew.agents.jsonl import Form, JsonlReading
from clew.model.json import JSON


def read_units(source: SourceFile, found: Replay | None = None) -> GeminiReading:
    """The messages and records of a session; `found` is its replay, where it is known."""
    chats = known_chats(project_folder(source.path)) if is_log(source.path) else frozenset()
    return GeminiReading(source, found or replay(Steps(source)), chats)


class GeminiReading(JsonlReading):
    """Messages and records of one session."""

    def __init__(self, source: SourceFile, replay: Replay, chats: frozenset[str]) -> None:
        extra: dict[str, JSON] = {"file": relative_name(source.path), "session": session_id(source)}
        super().__init__(AGENT, source, None, {}, extra)
        self.replay = replay
        self._chats = chats
        self._now: Form = tables.OTHER
        self._steps = Steps(source)
        self._fetcher = Fetcher(self._steps)
        self._pairs = Pairs()
        self._slot = self._number = 0
        self._is_entry = False
        self._entries: dict[str, str] = {}
        """The entry of the log that each session has last."""

    def __iter__(self) -> Iterator[Unit]:
        for step in self._steps:
            yield from self._units(step)
        self.damage = self._steps.damage

    def choose(self, _value: dict[str, JSON]) -> Form:
        """The form that the step at hand asks for."""
        return self._now

    def _units(self, step: Step) -> Iterator[Unit]:
        if step.does is not Does.MESSAGE or step.record.value is None:
            yield self._state(step)
            return
        slot, self._slot = self._slot, self._slot + 1
        code = self.replay.codes[slot]
        if code == PLACE:
            yield self._place(step)
            return
        if code == FETCHED:
            yield from self._shown(self._fetcher.fetch(*self.replay.fetched[slot]), is_later=True)
        if code in (EARLIER, FETCHED):
            yield self._made(step, tables.VERSION)
        else:
            yield from self._shown(step)

    def _state(self, step: Step) -> Unit:
        value = step.record.value
        if value is None:
            form = tables.OTHER
        elif isinstance(step.record, DocumentRecord) and step.record.document is not None:
            form = tables.HEADER if tables.MESSAGES in value else tables.SAVED
        else:
            form = tables.state_form(value)
        unit = self._made(step, form)
        if step.holds:
            note(unit.value, AGENT, holds=True)
        return unit

    def _made(self, step: Step, form: Form) -> Unit:
        """The unit of a step, with what the writer needs to put it back."""
        self._now = form
        unit = self.unit(step.record, step.part)
        name = tables.form_name(form, unit.is_message)
        if name is not None and step.record.value is not None:
            note(unit.value, AGENT, form=name)
        self._note_place(unit.value, step)
        return unit

    def _note_place(self, value: dict[str, JSON], step: Step) -> None:
        note_document(value, AGENT, step.record)
        if step.is_copy:
            note(value, AGENT, copy=True)
        elif step.element is not None:
            note(value, AGENT, held=True)

    def _shown(self, step: Step, is_later: bool = False) -> Iterator[Unit]:
        value = step.record.value
        assert value is not None
        number, self._number = self._number, self._number + 1
        form = self._form(value)
        if form.role is None:
            yield self._made(step, form)
            return
        unit = self._made(step, form)
        message = unit.value
        self._identify(message, number)
        if is_later:
            note(message, AGENT, later=True)
        results = fold(message, self.replay.is_answered)
        self._pairs.name(message)
        yield unit
        if results is not None:
            self.replay.answers[number] = 1
            self.index += 1
            results["index"] = self.index
            # The results have no bytes of their own.
            yield unit._replace(value=results, start=unit.stop, findings=())

    def _form(self, value: dict[str, JSON]) -> Form:
        """A message of a chat, a turn of a saved chat, or a prompt of the log, unless its chat is there too."""
        self._is_entry = "messageId" in value and "message" in value
        role = value.get("role")
        if type(role) is str and role in tables.TURN and "parts" in value:
            return tables.TURN[role]
        if self._is_entry:
            return tables.LOGGED if str(value.get("sessionId"))[:8] in self._chats else tables.entry_form(value)
        return tables.message_form(value)

    def _identify(self, message: Message, number: int) -> None:
        """The id, where the message has none, and the message before it."""
        replay = self.replay
        if "uuid" not in message:
            message["uuid"] = replay.names[number]
            note(message, AGENT, derived=["uuid"])
        parent = replay.parents[number]
        if self._is_entry:
            self._follow(message)
        elif parent != NONE:
            # Of a message that is shown further on it is not known yet whether results follow it.
            is_behind_results = parent < number and replay.answers[parent]
            message["parent_uuid"] = replay.names[parent] + (RESULTS_SUFFIX if is_behind_results else "")
        if number in replay.causes:
            note(message, AGENT, cause=replay.causes[number])
        if number in replay.brought and message["role"] == "user":
            message.setdefault("metadata", {})["is_compact_summary"] = True

    def _follow(self, entry: Message) -> None:
        """An entry of the log follows the one before it of its session: the log is that of all sessions."""
        session = str(own_extension(entry, AGENT).get("session"))
        if session in self._entries:
            entry["parent_uuid"] = self._entries[session]
        self._entries[session] = entry["uuid"]

    def _place(self, step: Step) -> Unit:
        """Where the bytes of a message stand that was shown earlier."""
        record = step.record
        value: dict[str, JSON] = {"after": self.index, "kind": "link", "type": tables.PLACE, "message_uuid": step.id}
        if step.part:
            note(value, AGENT, part=step.part)
        if record.end != b"\n":
            note(value, AGENT, end=record.end.decode())
        self._note_place(value, step)
        return Unit(False, value, record.line, record.start, record.stop, record.findings, step.part)
