"""The reader and writer every agent shares whose sessions are JSON lines.

An agent brings tables; this module walks the bytes, keeps order and spelling, and puts files back together.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Raw

from clew.agents.base import Header, SourceFile, Unit, open_main
from clew.agents.mapping import Context, Sections, Table, Values
from clew.agents.orders import Order, Orders
from clew.errors import SourceUnreadable
from clew.io.codec import COMPACT, DIALECTS
from clew.io.compress import damage, open_source
from clew.io.records import TOO_LONG, RawRecord, read_records
from clew.model.json import JSON

CANARY = Raw(b'"\\u0063lew"')
"""Spelled as nobody spells it: a document in which it stands like this has not been written anew by another tool."""
BATCH = 1 << 17
"""So many bytes of a document are gathered before they are written."""
MAX_FINDINGS = 20
"""How many findings a reading keeps; `validate` finds them all."""
MAX_CALLS = 10_000
"""How many tool calls are remembered, so that their results can be named."""


class Form(NamedTuple):
    """How one type of record is unified. `role` None: it is no message but a record of `kind`."""

    table: Table
    role: str | None = None
    kind: str = "other"
    given: tuple[str, ...] = ()
    """Slots that do not come from the record; where it takes the quick way, the agent gives their values."""


Choose = Callable[[dict[str, JSON]], Form]


keep_call = dict.__setitem__
"""Notes a call; who does it often asks itself whether there are too many."""


class RecentCalls(dict[str, str]):
    """The names of tools by the id of the call; the oldest are forgotten, as results follow their calls closely."""

    def __setitem__(self, call: str, name: str) -> None:
        keep_call(self, call, name)
        if len(self) > MAX_CALLS:
            self.forget()

    def forget(self) -> None:
        """Forget the oldest; the quick way notes calls without asking."""
        while len(self) > MAX_CALLS:
            del self[next(iter(self))]


def count(counts: dict[str, int], name: str) -> None:
    """Count one more of a name."""
    counts[name] = counts.get(name, 0) + 1


def _unknown_key(counts: dict[str, int], table: str, key: str) -> None:
    count(counts, f"{table}.{key}")


def _unknown_block(counts: dict[str, int], block: JSON) -> None:
    kind = block.get("type") if isinstance(block, dict) else type(block).__name__
    count(counts, f"content.{kind}")


class JsonlReading:
    """The second pass over JSON lines: each record through its table, in order."""

    def __init__(
        self,
        agent: str,
        source: SourceFile,
        choose: Choose | None,
        shared: Values,
        extra: dict[str, JSON] | None = None,
        derive: Callable[[dict[str, JSON]], None] | None = None,
        hints: Mapping[str, list[Order]] | None = None,
    ) -> None:
        self.unknown_types: dict[str, int] = {}
        self.unknown_keys: dict[str, int] = {}
        self.carried_raw = 0
        self.damage: str | None = None
        self.findings: list[tuple[str, int]] = []
        """What was wrong with the first odd lines: the code of a problem and the line, 0 where it is not known."""
        self._agent, self.source, self._choose, self._derive = agent, source, choose, derive
        self._extra = extra or {}
        self.index = 0
        self.calls = RecentCalls()
        self.form: Form | None = None
        """How the record read last was unified."""
        self.context = Context(agent, {**shared, "role": None}, Orders(hints=hints))
        # Counters and not methods of the reading: a reading that holds a file must go when nobody holds it.
        self.context.unknown = partial(_unknown_key, self.unknown_keys)
        self.context.unknown_block = partial(_unknown_block, self.unknown_types)

    def __iter__(self) -> Iterator[Unit]:
        folder = self.source.path.parent
        for part, path in enumerate((self.source.path, *(folder / name for name in self.source.parts))):
            with open_source(path) if part else open_main(self.source) as stream:
                for record in read_records(stream):
                    yield self.unit(record, part)
                self.damage = damage(stream) or self.damage

    def choose(self, value: dict[str, JSON]) -> Form:
        """The form of a record; one who brings no function for it overrides this."""
        assert self._choose is not None
        return self._choose(value)

    def unit(self, record: RawRecord, part: int = 0) -> Unit:
        """The unit of one record, which must be the next of the source."""
        value = record.value
        if record.findings and len(self.findings) < MAX_FINDINGS:
            found = [(code, record.line) for code in record.findings]
            # A line that is too long comes in pieces.
            if found != self.findings[-1:] or found[0][0] != TOO_LONG:
                self.findings += found
        if value is None:
            return self._plain(self._fragment(record, part), record, part)
        form = self.choose(value)
        if form.kind == "unknown":
            count(self.unknown_types, str(value.get("type", "")))
        sections: Sections = {"": {}, "metadata": {}, "model": {}, "usage": {}, "thinking": {}, "snapshot": {}}
        rest: Values = {}
        own: Values = {}
        self.context.own = own
        self.context.shared["role"] = form.role
        form.table.take(value, sections, rest, self.context)
        self.form = form
        if rest:
            own["rest"] = rest
        if part or record.dialect != COMPACT or record.end != b"\n":
            self._spelling(own, record, part)
        if form.role is None:
            return self._plain(self._record(form, sections, own), record, part)
        return Unit(
            True, self._message(form.role, sections, own), record.line, record.start, record.stop, record.findings, part
        )

    def _plain(self, value: dict[str, JSON], record: RawRecord, part: int) -> Unit:
        return Unit(False, value, record.line, record.start, record.stop, record.findings, part)

    def _message(self, role: str, sections: Sections, own: dict[str, JSON]) -> dict[str, JSON]:
        self.index += 1
        main = sections[""]
        content = main.pop("content", None)
        message: dict[str, JSON] = {"index": self.index, "role": role}
        message.update(main)
        message["content"] = content if content is not None else []
        metadata = sections["metadata"]
        if sections["model"]:
            metadata["model"] = sections["model"]
        if sections["usage"]:
            metadata["token_usage"] = sections["usage"]
        if sections["thinking"]:
            metadata["thinking"] = sections["thinking"]
        if metadata:
            message["metadata"] = metadata
        if content:
            self._name_tools(content)
        if own:
            message["extensions"] = {self._agent: own}
        if self._derive is not None:
            self._derive(message)
        return message

    def _name_tools(self, content: list[dict[str, JSON]]) -> None:
        for block in content:
            kind = block["type"]
            if kind == "tool_use":
                self.calls[block["tool_id"]] = block["tool_name"]
            elif kind == "tool_result" and block.get("tool_name") is None:
                block["tool_name"] = self.calls.get(block["tool_id"])

    def _record(self, form: Form, sections: Sections, own: dict[str, JSON]) -> dict[str, JSON]:
        record: dict[str, JSON] = {"after": self.index, "kind": form.kind if form.kind != "unknown" else "other"}
        record.update(sections[""])
        if sections["snapshot"]:
            record["snapshot"] = sections["snapshot"]
        if own:
            record["extensions"] = {self._agent: own}
        return record

    def _fragment(self, record: RawRecord, part: int) -> dict[str, JSON]:
        own: dict[str, JSON] = {}
        self._spelling(own, record, part)
        if "blank-line" in record.findings and not record.raw:
            own.pop("raw", None)
            self.carried_raw -= 1
        return {"after": self.index, "kind": "fragment", "extensions": {self._agent: own}}

    def _spelling(self, own: dict[str, JSON], record: RawRecord, part: int) -> None:
        """Note what the table cannot know: dialect, line end, and the raw bytes where nothing else gives them back."""
        if record.end != b"\n":
            own["end"] = record.end.decode()
        if part:
            own["part"] = part
        if record.dialect == COMPACT:
            return
        if record.dialect is not None:
            own["dialect"] = record.dialect
            return
        self.carried_raw += 1
        try:
            own["raw"] = record.raw.decode()
        except UnicodeDecodeError:
            own["raw_base64"] = base64.b64encode(record.raw).decode()

    def extensions(self) -> dict[str, JSON]:
        own: dict[str, JSON] = {"spelling": CANARY, "orders": self.context.orders.all(), **self._extra}
        if self.source.sides:
            own["files"] = {name: _side_text(self.source.path.parent / name) for name in self.source.sides}
        if self.source.parts:
            own["parts"] = list(self.source.parts)
        return {self._agent: own}


def _side_text(path: Path) -> JSON:
    """A small neighbouring file: its text, or its bytes in base64."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise SourceUnreadable(f"{path}: {error.strerror or error}") from error
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(raw).decode()}


def side_bytes(value: JSON) -> bytes:
    """The bytes of a neighbouring file as the document carries it."""
    return value.encode() if isinstance(value, str) else base64.b64decode(value["base64"])


class JsonlWriter:
    """Puts messages and records back into JSON lines."""

    def __init__(
        self, agent: str, header: Header, chosen: Callable[[bool, dict[str, JSON]], Form], shared: Values
    ) -> None:
        own = header.extensions.get(agent) or {}
        self._parts = ["", *own.get("parts", ())]
        self._agent, self._chosen, self._sides = agent, chosen, own.get("files", {})
        self.context = Context(agent, {**shared, "role": None}, Orders(own.get("orders")))
        self.context.plain_text = "orders" not in own

    def files(self, units: Iterator[tuple[bool, dict[str, JSON]]]) -> Iterator[tuple[str, bytes]]:
        """The lines, then the files that travel along."""
        yield from self.lines(units)
        for name, value in self._sides.items():
            yield name, side_bytes(value)

    def lines(self, units: Iterator[tuple[bool, dict[str, JSON]]]) -> Iterator[tuple[str, bytes]]:
        """The bytes of each unit with the name of the file they belong to."""
        for is_message, value in units:
            own = (value.get("extensions") or {}).get(self._agent) or {}
            part = own.get("part", 0)
            name = self._parts[part] if part < len(self._parts) else ""
            yield name, self._raw(own, is_message, value) + own.get("end", "\n").encode()

    def _raw(self, own: dict[str, JSON], is_message: bool, value: dict[str, JSON]) -> bytes:
        if "raw" in own:
            return str(own["raw"]).encode()
        if "raw_base64" in own:
            return base64.b64decode(own["raw_base64"])
        if not is_message and value.get("kind") == "fragment":
            return b""
        return DIALECTS[own.get("dialect", COMPACT)](self.native(own, is_message, value))

    def native(self, own: dict[str, JSON], is_message: bool, value: dict[str, JSON]) -> dict[str, JSON]:
        """The native record of one message or record."""
        self.context.own = own
        self.context.shared["role"] = value.get("role")
        table = self._chosen(is_message, value).table
        return table.give(_sections(is_message, value), own.get("rest", {}), self.context)


def _sections(is_message: bool, value: dict[str, JSON]) -> Sections:
    if not is_message:
        return {"": value, "snapshot": value.get("snapshot") or {}}
    metadata: dict[str, Any] = value.get("metadata") or {}
    return {
        "": value,
        "metadata": metadata,
        "model": metadata.get("model") or {},
        "usage": metadata.get("token_usage") or {},
        "thinking": metadata.get("thinking") or {},
    }
