"""The first pass: what the messages come to, once it is known which versions of them count."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import asdict

from clew.agents.base import SourceFile, Unit
from clew.agents.folding import Message, own_extension
from clew.agents.gemini import tables
from clew.agents.gemini.locate import AGENT, is_log, known_chats, project_folder, session_id
from clew.agents.gemini.reading import GeminiReading
from clew.agents.gemini.replay import Replay, replay
from clew.agents.gemini.steps import Steps
from clew.agents.gemini.terms import CHANCE
from clew.derive.collect import SYNTHETIC, Collector
from clew.derive.facts import Facts
from clew.derive.native import text_of
from clew.derive.reminders import split_context
from clew.derive.usage import FIELDS
from clew.graph.links import RESULT
from clew.model.json import JSON

_STATE = ("sessionId", "projectHash", "startTime", "lastUpdated", "summary", "directories", "kind", "memoryScratchpad")
_PATHS = ("file_path", "absolute_path", "dir_path", "path", "directory")
MAX_HINTS = 40
_MAX_CONTEXT = 8000


def reading_of(source: SourceFile, found: Replay) -> GeminiReading:
    """The messages and records of a source."""
    chats = known_chats(project_folder(source.path)) if is_log(source.path) else frozenset()
    return GeminiReading(source, found, chats)


def scan(source: SourceFile, counts: bool = True) -> Facts:
    """Facts of a session; without `counts` no tokens."""
    found = replay(Steps(source))
    reading = reading_of(source, found)
    scanner = Scanner(session_id(source), counts)
    for unit in reading:
        scanner.see(unit)
    facts = scanner.finish()
    facts.extra["replay"] = found
    facts.leaf_uuid = reading.leaf
    facts.links.is_derived = True
    return facts


class Scanner:
    """Collects the facts of a session from its units."""

    def __init__(self, session: str, counts: bool = True) -> None:
        self._session, self._counts = session, counts
        self._collector = Collector()
        self.facts = self._collector.facts
        self.state: dict[str, JSON] = {}
        self.agents: dict[str, str] = {}
        self.hints: list[str] = []

    def said(self, message: Message, prompt: str | None) -> None:
        """Note a message of the user that was taken the quick way; `prompt` is what a person typed."""
        facts = self.facts
        facts.user_messages += 1
        if prompt is not None:
            facts.prompts += 1
            facts.first_prompt = facts.first_prompt or prompt
        self._context(message)

    def called(self, arguments: Iterable[JSON]) -> None:
        """Note the arguments of calls."""
        for each in arguments if len(self.hints) < MAX_HINTS else ():
            if isinstance(each, dict):
                self.hints += [each[key] for key in _PATHS if isinstance(each.get(key), str)]

    def see(self, unit: Unit) -> None:
        """Note the next unit."""
        if not unit.is_message:
            self._collector.add(False, unit.value)
            self._state(unit.value)
            return
        self._collector.add(True, self._keyed(unit.value))
        own = own_extension(unit.value, AGENT)
        if "joined" not in own:
            # A response that was taken back is no part of the way that leads past it.
            self.facts.links.flags[-1] &= ~RESULT
        if unit.value["role"] == "user":
            self._context(unit.value)
        for block in unit.value["content"]:
            if block["type"] == "tool_use":
                self._call(block)

    def _keyed(self, message: Message) -> Message:
        """The message with a name for its request; ids that are not made by chance may stand in other sessions too."""
        metadata = message.get("metadata") or {}
        if "token_usage" not in metadata:
            return message
        if not self._counts:
            return {**message, "metadata": {name: metadata[name] for name in metadata if name != "token_usage"}}
        key = self._key(message["uuid"])
        return message if key == message["uuid"] else {**message, "metadata": {**metadata, "message_id": key}}

    def _key(self, uuid: str) -> str:
        return uuid if CHANCE.fullmatch(uuid) else f"{self._session} {uuid}"

    def replied(self, replies: Iterable[tuple[str, str, JSON]]) -> None:
        """Note replies that were taken the quick way: uuid, model and usage of each."""
        said = [reply for reply in replies if reply[1] != SYNTHETIC]
        self.facts.models.update(name for _, name, _ in said if name)
        for uuid, name, usage in said if self._counts else ():
            if usage:
                counts = usage if isinstance(usage, dict) else asdict(usage)
                self.facts.ledger.note(self._key(uuid), name, [counts.get(field) for field in FIELDS])

    def _context(self, message: Message) -> None:
        """The folder is told in the first words that the client says for the person."""
        text = (text_of(message) or "") if "context" not in self.facts.extra else ""
        if text.lstrip().startswith("<session_context>"):
            self.facts.extra.setdefault("context", text[:_MAX_CONTEXT])

    def _call(self, call: dict[str, JSON]) -> None:
        agent = (own_extension(call, AGENT).get("rest") or {}).get("agentId")
        if isinstance(agent, str) and isinstance(call["tool_id"], str):
            self.agents[agent] = call["tool_id"]
        self.called([call["input"]])

    def _state(self, record: dict[str, JSON]) -> None:
        own = own_extension(record, AGENT)
        rest = own.get("rest") or {}
        stated = rest.get(tables.PATCH, {}) if own.get("form") is None else rest if own["form"] == "header" else {}
        if record["kind"] not in ("state", "summary") or not isinstance(stated, dict):
            return
        self.state.update({name: stated[name] for name in _STATE if name in stated})
        for name, slot in (("lastUpdated", "timestamp"), ("summary", "text")):
            if record.get(slot) is not None:
                self.state[name] = record[slot]

    def finish(self) -> Facts:
        """The facts, once all was seen."""
        facts = self.facts
        facts.extra.update(state=self.state, agents=self.agents, hints=self.hints)
        if isinstance(self.state.get("summary"), str):
            facts.titles["summary"] = self.state["summary"]
        if facts.first_prompt is not None:
            # The client puts the files that a prompt names behind it.
            facts.first_prompt = split_context(facts.first_prompt).words
        return facts
