"""The conformance suite every agent must pass, ours and third parties' alike.

    from clew.testing import AgentConformance

    class TestMyAgent(AgentConformance):
        agent = MyAgent()
        fixtures = sorted(Path("tests/fixtures/my-agent").glob("*.jsonl"))

pytest collects the class; each fixture is taken through every law.
"""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from clew.agents.base import Agent, Claim, SourceFile, Unit
from clew.export.document import LINES, ONE_LINE, write_document
from clew.export.reading import DocumentStream
from clew.export.verify import Proof, verify
from clew.model import Document, Message, Problem, Record, Session
from clew.model.json import JSON
from clew.model.load import load_document
from clew.model.time import parse_time

_TIME = "2026-01-01T00:00:00Z"


def _other_types(value: JSON) -> JSON:
    """The same JSON with a value of another type in every place."""
    match value:
        case dict():
            return {key: _other_types(item) for key, item in value.items()}
        case list():
            return {"0": value}
        case str():
            return 7
        case None:
            return [None]
        case _:
            return str(value)


def _with_other_types(raw: bytes) -> bytes:
    lines = []
    for line in raw.splitlines(keepends=True):
        try:
            lines.append(json.dumps(_other_types(json.loads(line))).encode() + b"\n")
        except ValueError:
            lines.append(line)
    return raw + b"".join(lines)


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "no final newline": lambda raw: raw.rstrip(b"\n"),
    "torn tail": lambda raw: raw + raw[: max(1, len(raw) // 3)].split(b"\n")[-1][:40] + b'{"type":"us',
    "CRLF": lambda raw: raw.replace(b"\n", b"\r\n"),
    "byte order mark": lambda raw: b"\xef\xbb\xbf" + raw,
    "NUL run": lambda raw: raw + b"\0" * 300 + b"\n",
    "blank lines": lambda raw: b"\n \n" + raw + b"\n\n",
    "no object": lambda raw: raw + b'[1,2]\n"text"\nnull\n42\n',
    "invalid UTF-8": lambda raw: raw + b'{"type":"user","message":{"content":"\xff\xfe"}}\n',
    "lone surrogate": lambda raw: raw + b'{"type":"user","message":{"content":"\\ud83c"}}\n',
    "glued records": lambda raw: raw + b'{"type":"x","a":1}{"type":"y"}\n',
    "odd spelling": lambda raw: raw + b'{ "type" : "x", "n": 1.50, "big": 123456789012345678901234567890, "e": 1E5 }\n',
    "too deep": lambda raw: raw + b'{"type":"x","a":' + b"[" * 5000 + b"]" * 5000 + b"}\n",
    "duplicate keys": lambda raw: raw + b'{"type":"user","type":"user","a":1,"a":2}\n',
    "other types": _with_other_types,
    "unknown record": lambda raw: raw + b'{"type":"from-the-future","payload":{"a":[1,{"b":null}]}}\n',
}
"""Ways a file is found in the wild; each must be read, and given back byte for byte."""


def round_trip(agent: Agent, source: SourceFile) -> Proof:
    """The proof for one source."""
    return verify(agent, source)


def units(agent: Agent, source: SourceFile) -> list[Unit]:
    """All units of a source, in order."""
    return list(agent.units(source))


class AgentConformance:
    """Subclass it with `agent` and `fixtures`, the main files of sessions."""

    agent: ClassVar[Agent]
    fixtures: ClassVar[list[Path]]

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """One test per fixture, and per damage where the test asks for it."""
        if "fixture" in metafunc.fixturenames:
            metafunc.parametrize("fixture", self.fixtures, ids=lambda path: path.name)
        if "damage" in metafunc.fixturenames:
            metafunc.parametrize("damage", list(DAMAGE))

    def test_there_are_fixtures(self) -> None:
        assert self.fixtures, "a conformance suite without sessions proves nothing"

    def test_the_agent_claims_its_own_files(self, fixture: Path) -> None:
        with fixture.open("rb") as stream:
            assert self.agent.claims(fixture, stream.read(16 << 10)) > Claim.NO

    def test_the_agent_leaves_other_files_alone(self) -> None:
        assert self.agent.claims(Path("notes.txt"), b"hello\nworld\n") == Claim.NO
        assert self.agent.claims(Path("package.json"), b'{"name":"x","version":"1"}') == Claim.NO

    def test_every_byte_comes_back(self, fixture: Path) -> None:
        proof = round_trip(self.agent, self.agent.locate(fixture))
        assert proof.different == []
        assert proof.identical == proof.files

    def test_damaged_files_come_back_too(self, fixture: Path, damage: str, tmp_path: Path) -> None:
        copy = self._copy(fixture, tmp_path)
        copy.write_bytes(DAMAGE[damage](copy.read_bytes()))
        proof = round_trip(self.agent, self.agent.locate(copy))
        assert proof.different == []

    def test_an_unknown_record_is_reported(self, fixture: Path, tmp_path: Path) -> None:
        copy = self._copy(fixture, tmp_path)
        copy.write_bytes(DAMAGE["unknown record"](copy.read_bytes().rstrip(b"\n") + b"\n"))
        events = list(self.agent.events(self.agent.locate(copy)))
        assert any(type(each) is Problem or (type(each) is Record and each.kind == "other") for each in events)

    def test_cut_at_any_place_it_still_comes_back(self, fixture: Path, tmp_path: Path) -> None:
        copy = self._copy(fixture, tmp_path)
        raw = copy.read_bytes()
        whole = len(units(self.agent, self.agent.locate(copy)))
        for cut in range(0, len(raw), max(1, len(raw) // 60)):
            copy.write_bytes(raw[:cut])
            source = self.agent.locate(copy)
            assert round_trip(self.agent, source).different == []
            assert len(units(self.agent, source)) <= whole + 1

    def test_messages_and_records_are_typed(self, fixture: Path) -> None:
        source = self.agent.locate(fixture)
        index = 0
        for unit in units(self.agent, source):
            if unit.is_message:
                index += 1
                assert msgspec.convert(unit.value, Message).index == index
            else:
                assert msgspec.convert(unit.value, Record).after == index
        session = self.agent.session(source, self.agent.facts(source))
        msgspec.convert(session, Session)
        assert {"is_agent_session", "parent_session_id", "agent_id"} <= session.keys()

    def test_reading_twice_gives_the_same(self, fixture: Path) -> None:
        source = self.agent.locate(fixture)
        assert units(self.agent, source) == units(self.agent, source)
        assert self.agent.session_id(source) == self.agent.session(source, self.agent.facts(source))["id"]

    def test_the_document_is_the_same_in_both_layouts(self, fixture: Path) -> None:
        source = self.agent.locate(fixture)
        assert _document(self.agent, source, LINES) == _document(self.agent, source, ONE_LINE)

    def test_the_document_reads_back_in_source_order(self, fixture: Path) -> None:
        source = self.agent.locate(fixture)
        text = io.BytesIO()
        write_document(self.agent, source, text, timestamp=_TIME)
        expected = [(unit.is_message, unit.value) for unit in units(self.agent, source)]
        found = list(DocumentStream(text).units())
        assert found == [unit for unit in expected if unit[0] or unit[1]["kind"] != "fragment"]

    def test_messages_name_the_record_that_holds_their_text(self, fixture: Path) -> None:
        document = _document(self.agent, self.agent.locate(fixture), LINES)
        assert document.native
        for message in document.messages:
            assert message.source, f"message {message.index} does not say which record it comes from"
            records = document.native.files[message.source.file].records
            # In a file that is one JSON document, records are elements of an array, and native records are its lines.
            record = records[message.source.record] if message.source.record < len(records) else None
            if isinstance(record, dict):
                native = list(_strings(record))
                for block in message.content:
                    text = getattr(block, "text", None)
                    assert not text or any(text in string for string in native), f"message {message.index}: {text!r}"

    def test_ids_are_unique_and_parents_exist(self, fixture: Path) -> None:
        values = [unit.value for unit in units(self.agent, self.agent.locate(fixture))]
        ids = [value["uuid"] for value in values if value.get("uuid")]
        assert len(ids) == len(set(ids))
        parents = {value["parent_uuid"] for value in values if value.get("parent_uuid")}
        assert parents <= set(ids)

    def test_times_are_iso_8601(self, fixture: Path) -> None:
        source = self.agent.locate(fixture)
        session = self.agent.session(source, self.agent.facts(source))
        times = [session.get("started_at"), session.get("ended_at")]
        times += [unit.value.get("timestamp") for unit in units(self.agent, source)]
        assert [time for time in times if time is not None and parse_time(time) is None] == []

    def test_reading_changes_nothing(self, fixture: Path) -> None:
        before = _state(fixture.parent)
        source = self.agent.locate(fixture)
        units(self.agent, source)
        list(self.agent.check(source, self.agent.facts(source)))
        assert _state(fixture.parent) == before

    def _copy(self, fixture: Path, folder: Path) -> Path:
        """A copy of the session's folder, so that its neighbours are there too."""
        target = folder / fixture.parent.name
        shutil.copytree(fixture.parent, target)
        return target / fixture.name


def _document(agent: Agent, source: SourceFile, layout: bytes) -> Document:
    text = io.BytesIO()
    write_document(agent, source, text, timestamp=_TIME, layout=layout)
    return load_document(text.getvalue())


def _strings(value: JSON) -> Iterator[str]:
    """Yield every string in a JSON value, also in JSON that is the text of a string."""
    if isinstance(value, str):
        yield value
        if value.startswith(("{", "[")):
            with suppress(ValueError, RecursionError):
                yield from _strings(json.loads(value))
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)


def _state(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path): (path.stat().st_mtime_ns, path.stat().st_size)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
