"""Sessions that were saved under a name: one JSON document each, with what holds for all messages around them."""

from __future__ import annotations

from collections.abc import Iterator

from clew.agents.base import SourceFile, Unit, open_main
from clew.agents.folding import Fold, FoldedReading, Message, note
from clew.agents.jsondoc import DocumentRecord, note_document, read_stream
from clew.agents.jsonl import Form, JsonlReading
from clew.agents.mapping import Values
from clew.agents.sage_emacs import locate, tables
from clew.derive.facts import Facts
from clew.derive.titles import short_title
from clew.io.compress import damage
from clew.io.records import RawRecord
from clew.model.json import JSON
from clew.model.time import parse_time, spell_time

MESSAGES = "messages"


def document_records(source: SourceFile) -> Iterator[DocumentRecord]:
    """The header, then each element of the list of messages, then what is left over."""
    with open_main(source) as stream:
        yield from read_stream(stream, (MESSAGES,))


def is_element(record: DocumentRecord) -> bool:
    """True for an element of the list of messages; what is left over behind a torn or whole document is none."""
    return not record.behind and "torn-tail" not in record.findings


def header_of(source: SourceFile) -> dict[str, JSON]:
    """What stands around the messages; empty where that cannot be read."""
    first = next(document_records(source), None)
    return (first.value if first is not None else None) or {}


class DocumentReading(JsonlReading):
    """The header and the messages of one document, in order."""

    def __init__(self, source: SourceFile, shared: Values, extra: dict[str, JSON]) -> None:
        super().__init__(locate.AGENT, source, None, shared, extra)
        self.header: dict[str, JSON] = {}
        self._is_header = False

    def __iter__(self) -> Iterator[Unit]:
        with open_main(self.source) as stream:
            for number, record in enumerate(read_stream(stream, (MESSAGES,))):
                # With no list of messages in it, a document is nothing but its header.
                self._is_header = number == 0
                if self._is_header:
                    self.header = record.value or {}
                yield self.unit(record)
            self.damage = damage(stream)

    def unit(self, record: RawRecord, part: int = 0) -> Unit:
        """The unit of one record, with what the header says of it and what the writer needs."""
        unit = super().unit(record, part)
        if unit.is_message and unit.value["role"] == "assistant":
            self._put_down(unit.value)
        note_document(unit.value, locate.AGENT, record)
        return unit

    def choose(self, value: dict[str, JSON]) -> Form:
        """The form of the header, or of a message as in a conversation."""
        return tables.SAVED if self._is_header else tables.choose(value)

    def _put_down(self, reply: Message) -> None:
        """The session alone names the model, so every reply is put down to it."""
        model = _text(self.header, "model")
        metadata = reply.get("metadata") or {}
        if model is not None and tables.MODEL not in metadata:
            reply["metadata"] = {**metadata, tables.MODEL: {"name": model}}
            note(reply, locate.AGENT, derived=[tables.MODEL])


class SavedReading(FoldedReading):
    """The messages of a saved session."""

    def __init__(self, inner: DocumentReading, fold: Fold) -> None:
        super().__init__(inner, fold)
        self._document = inner

    @property
    def header(self) -> dict[str, JSON]:
        """What stands around the messages, once they were begun to be read."""
        return self._document.header


def session_object(source: SourceFile, facts: Facts) -> dict[str, JSON]:
    """The session of the unified document."""
    known = facts.extra["header"] if "header" in facts.extra else header_of(source)
    session: dict[str, JSON] = {
        "id": locate.session_id(source),
        "workspace": _workspace(known, facts),
        "workspace_encoded": source.path.parent.name,
        "started_at": facts.first_time or _canonical(known.get("created_at")),
        "ended_at": facts.last_time or _canonical(known.get("updated_at")),
        "source": {"type": "local", "host": None, "path": str(source.path)},
        "is_agent_session": False,
        "parent_session_id": None,
        "agent_id": None,
    }
    title = _text(known, "name") or short_title(facts.first_prompt)
    return {**session, "title": title} if title is not None else session


def _workspace(known: dict[str, JSON], facts: Facts) -> str:
    workspace = _text(known, "workspace") or facts.cwd or ""
    return workspace.rstrip("/") or workspace


def _text(known: dict[str, JSON], name: str) -> str | None:
    value = known.get(name)
    return value if isinstance(value, str) and value.strip() else None


def _canonical(time: JSON) -> str | None:
    stamp = parse_time(time)
    return spell_time(stamp) if stamp is not None else None
