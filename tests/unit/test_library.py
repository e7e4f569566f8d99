"""The library: typed, lazy, and never in need of more files than were asked for."""

from __future__ import annotations

import gzip
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

import clew
from clew.agents.base import SourceFile, show
from clew.agents.claude_code import ClaudeCode
from clew.analysis.facts import Facts
from clew.errors import AmbiguousReference, SourceUnreadable, UnknownReference
from clew.host import Host
from clew.io import compress
from clew.library import Library, StoredSession
from clew.model import Text, ToolUse
from clew.redact.redactor import Redactor
from clew.redact.settings import load_settings
from tests.unit.samples import SESSION, claude_line

FORKED = "f005c7db-1dcc-4692-bc16-77f2521cfb4b"
WITH_AGENTS = "38ed9768-3187-478b-a81f-4c75a5724c22"


pytestmark = pytest.mark.usefixtures("synced_demo")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Every source that is opened, as often as it is."""
    paths: list[Path] = []
    real = compress.open_regular

    def noted(path: Path) -> object:
        paths.append(path)
        return real(path)

    monkeypatch.setattr(compress, "open_regular", noted)
    return paths


def claude(home: Path) -> Library:
    return Library(Host.at(home), agents=["claude-code"])


def test_the_words_of_the_readme_work(demo: Path) -> None:
    seen = 0
    for session in clew.sessions(demo):
        assert isinstance(session, StoredSession)
        assert session.header.id == session.id
        for message in session.messages:
            assert isinstance(message, clew.Message)
            assert message.role in ("user", "assistant", "system")
            assert message.timestamp is None or isinstance(message.timestamp, str)
            seen += 1
    assert seen == 219


def test_blocks_are_typed(demo: Path) -> None:
    session = Library(Host.at(demo)).get(FORKED)
    first, *others = session.messages
    assert [type(block) for block in first.content] == [Text]
    calls = [block for message in others for block in message.content if isinstance(block, ToolUse)]
    assert [call.tool_name for call in calls] == ["Write"]
    records = list(session.records)
    assert all(isinstance(record, clew.Record) for record in records)
    assert records[0].type == "permission-mode"


def test_finding_sessions_opens_none(demo: Path, opened: list[Path]) -> None:
    sessions = list(claude(demo).sessions())
    assert len(sessions) == 12
    assert all(session.id for session in sessions)
    assert opened == []


def test_reading_one_session_opens_no_other(demo: Path, opened: list[Path]) -> None:
    for session in claude(demo).sessions():
        opened.clear()
        assert list(session.messages)
        assert set(opened) == {session.path}
        list(session.records)
        assert session.usage is not None
        list(session.problems())
        assert set(opened) == {session.path}


def test_messages_come_one_at_a_time(tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "projects" / "-p"
    folder.mkdir(parents=True)
    path = folder / f"{SESSION}.jsonl"
    path.write_text("".join(json.dumps(claude_line("user", f"u{n}", None)) + "\n" for n in range(100)))
    (session,) = claude(tmp_path).sessions()
    messages = iter(session.messages)
    assert next(messages).uuid == "u0"
    assert next(messages).uuid == "u1"
    # Asked again, it begins again.
    assert len(list(session.messages)) == 100
    assert next(messages).uuid == "u2"


def test_messages_of_a_redacted_session_are_masked(tmp_path: Path) -> None:
    key = "AKIA" + "QYLPMN5HHHFPZAM2"
    folder = tmp_path / ".claude" / "projects" / "-p"
    folder.mkdir(parents=True)
    (folder / f"{SESSION}.jsonl").write_text(json.dumps(claude_line("user", "u1", None, f"key {key}")) + "\n")
    (session,) = claude(tmp_path).sessions()
    assert key in repr(list(session.messages))
    (message,) = session.redacted(Redactor(load_settings("secrets"))).messages
    assert message.uuid == "u1" and key not in repr(message)


def test_a_session_is_opened_once_for_its_messages(demo: Path, opened: list[Path]) -> None:
    session = claude(demo).get(FORKED)
    opened.clear()
    assert list(session.messages)
    assert opened == [session.path]


def test_a_header_is_read_once_and_may_be_forgotten(demo: Path, opened: list[Path]) -> None:
    session = claude(demo).get(FORKED)
    opened.clear()
    title = session.header.title
    before = len(opened)
    assert session.header.title == title
    assert len(opened) == before
    session.forget()
    assert session.header.title == title
    assert len(opened) > before


def test_a_reference_opens_no_file_that_the_catalog_knows(demo: Path, opened: list[Path]) -> None:
    claude(demo).get(WITH_AGENTS)
    opened.clear()
    session = claude(demo).get(WITH_AGENTS[:8])
    assert (session.id, opened) == (WITH_AGENTS, [])


def test_references_that_lead_nowhere(demo: Path) -> None:
    library = Library(Host.at(demo))
    with pytest.raises(UnknownReference, match="no session matches 'nobody'"):
        library.get("nobody")
    with pytest.raises(AmbiguousReference, match=r"'f' is ambiguous: claude-code:f.*, claude-code:f"):
        library.get("f")
    with pytest.raises(SourceUnreadable, match="no such file or folder"):
        library.get("/no/such/file")
    with pytest.raises(AmbiguousReference, match="holds 9 sessions"):
        library.get(f"{demo}/.claude")


def test_a_document_of_a_session(demo: Path) -> None:
    moment = datetime(2026, 12, 24, 18, 0, tzinfo=UTC)
    session = Library(Host(demo, {}, lambda: moment)).get(FORKED)
    document = session.document()
    assert isinstance(document, clew.Document)
    assert document.export_timestamp == "2026-12-24T18:00:00Z"
    assert document.session == session.header
    assert document.messages == list(session.messages)
    assert isinstance(document.graph, clew.Graph)
    assert not document.graph.is_linear
    assert clew.load_document(clew.dump_document(document)) == document


def test_problems_of_a_session(demo: Path) -> None:
    codes = [problem.code for problem in Library(Host.at(demo)).get("3c986c27").problems()]
    assert codes.count("glued-records") == 2
    assert "torn-tail" in codes


def test_sessions_take_filters_as_words(demo: Path) -> None:
    assert [session.id for session in clew.sessions(demo, project="moon", agent="claude-code")] == [FORKED]
    assert list(clew.sessions(str(demo), since="2027-01-01")) == []
    with pytest.raises(clew.ClewError, match="unknown filter 'colour'"):
        list(clew.sessions(demo, colour="red"))


def test_several_homes_are_one_library(demo: Path, tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "projects" / "-p"
    folder.mkdir(parents=True)
    (folder / f"{SESSION}.jsonl").write_text(json.dumps(claude_line("user", "u1", None)) + "\n")
    both = Library(Host.at(demo), Host.at(tmp_path), Host.at(demo))
    ids = [session.id for session in both.sessions()]
    assert len(ids) == len(set(ids)) == 29
    assert SESSION in ids


def test_only_the_named_agents_are_asked(demo: Path) -> None:
    assert {session.agent.id for session in claude(demo).sessions()} == {"claude-code"}
    with pytest.raises(clew.ClewError, match="unknown agent 'nobody'; known: claude-code"):
        list(Library(Host.at(demo), agents=["nobody"]).sources())


def test_usage_of_a_library_by_model(demo: Path) -> None:
    library = claude(demo)
    total = library.usage()
    single = [session.facts.ledger.by_model() for session in library.sessions()]
    for model, usage in total.items():
        sums = [each[model].output_tokens or 0 for each in single if model in each]
        assert (usage.output_tokens or 0) <= sum(sums)
    # The demo holds a session and its resumed copy, so that something is counted once only.
    assert sum(usage.calls for usage in total.values()) < sum(u.calls for each in single for u in each.values())
    filtered = library.usage(clew.Filters.of(project="moon"))
    assert filtered == library.get(FORKED).facts.ledger.by_model()


def test_an_object_says_what_it_is(demo: Path) -> None:
    assert repr(claude(demo).get(FORKED)) == f"<StoredSession claude-code:{FORKED}>"


def test_threads_that_read_leave_the_limit_of_recursion_as_it_was(demo: Path) -> None:
    sessions = list(Library(Host.at(demo)).sessions())
    before = sys.getrecursionlimit()
    with ThreadPoolExecutor(8) as threads:
        counts = list(threads.map(lambda one: sum(1 for _ in one.messages), sessions * 4))
    assert counts == [sum(1 for _ in one.messages) for one in sessions] * 4
    assert sys.getrecursionlimit() == before


def test_a_packed_session_is_not_held_whole_to_be_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / f"{SESSION}.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(claude_line("user", "u1", None)).encode() + b"\n"))
    monkeypatch.setattr("clew.agents.source.SINGLE_PASS_BYTES", 1 << 30)
    assert len(list(show(ClaudeCode(), ClaudeCode().locate(path)).messages)) == 1


def test_usage_is_counted_again_only_where_the_source_changed(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [path] = [one.path for one in Library(Host.at(demo)).sources() if one.id == FORKED]
    counted: list[SourceFile] = []
    real = ClaudeCode.facts

    def noted(self: ClaudeCode, source: SourceFile) -> Facts:
        counted.append(source)
        return real(self, source)

    monkeypatch.setattr(ClaudeCode, "facts", noted)
    [found] = [one for one in Library(Host.at(demo)).sources() if one.id == FORKED]
    first = found.usage
    assert found.usage is first and len(counted) == 1
    stamp = path.stat()
    try:
        os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns + 1_000_000))
        assert found.usage == first and len(counted) == 2
    finally:
        os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))


def test_a_library_takes_a_folder_by_its_name(tmp_path: Path) -> None:
    assert list(clew.Library(str(tmp_path)).sources()) == []
    with pytest.raises(SourceUnreadable, match="no such folder"):
        clew.sessions(home=tmp_path / "nosuch")
    assert dir(clew) == sorted(clew.__all__)
