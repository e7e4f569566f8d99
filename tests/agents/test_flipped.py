"""One byte is not what it was: the session is read all the same, and comes back byte for byte."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from clew.agents.source import SourceFile, with_current_size
from clew.export.verify import verify
from clew.host import Host
from clew.library import Library, StoredSession
from tests.demo_home import write_small_demo

AGENTS = ["claude-code", "codex", "gemini", "sage-agent", "sage-emacs"]
FLIPS = 25
_BYTES = [0xFF, 0xC3, 0x80, 0xED, *b'"\\{},:x0 \x00']


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> list[StoredSession]:
    home = tmp_path_factory.mktemp("flipped") / "home"
    write_small_demo(home)
    return list(Library(Host.at(home)).sources())


def flipped(content: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(content))
    return content[:at] + bytes([chance.choice(_BYTES)]) + content[at + 1 :]


@pytest.mark.slow
@pytest.mark.parametrize("agent", AGENTS)
def test_P05_a_flipped_byte_moves_no_message(sessions: list[StoredSession], tmp_path: Path, agent: str) -> None:
    chance = random.Random(agent)
    found = [session for session in sessions if session.agent.id == agent]
    assert found
    for session in found:
        content, path = session.path.read_bytes(), session.path
        try:
            for _ in range(FLIPS):
                path.write_bytes(flipped(content, chance))
                source = with_current_size(SourceFile(agent, path))
                units = list(session.agent.units(source))
                messages = sum(unit.is_message for unit in units)
                assert session.agent.facts(source).messages == messages, path.read_bytes()
                assert verify(session.agent, source).holds
        finally:
            path.write_bytes(content)


def told(tmp_path: Path, *lines: bytes) -> tuple[StoredSession, SourceFile]:
    folder = tmp_path / ".claude/projects/-home-ada"
    folder.mkdir(parents=True)
    path = folder / "aaaaaaaa-0000-4000-8000-000000000001.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    (session,) = Library(Host.at(tmp_path)).sources()
    return session, with_current_size(session.source)


def prompt(number: int, content: bytes) -> bytes:
    head = b'{"type":"user","uuid":"u%d","sessionId":"aaaaaaaa-0000-4000-8000-000000000001"' % number
    return head + b',"message":{"role":"user","content":%b}}' % content


def test_P05_a_prompt_that_is_no_text_is_listed(tmp_path: Path) -> None:
    session, source = told(tmp_path, prompt(1, b'[{"type":"text","text":"how \x80 so"}]'), prompt(2, b'"and"'))
    facts = session.agent.facts(source)
    assert (facts.messages, facts.first_prompt) == (2, "how \N{REPLACEMENT CHARACTER} so")


def test_P09_records_glued_on_a_line_that_is_no_text_are_all_read(tmp_path: Path) -> None:
    session, source = told(
        tmp_path, prompt(1, b'"one"') + prompt(2, b'"t\xffo"') + b'{"type":"us\xff', prompt(3, b'"z"')
    )
    facts = session.agent.facts(source)
    assert facts.messages == 3
    texts = [message.content[0].text for message in session.messages]  # type: ignore[union-attr]
    assert texts == ["one", "t\N{REPLACEMENT CHARACTER}o", "z"]
    assert verify(session.agent, source).holds


def test_a_type_that_begins_as_a_known_one_is_another(tmp_path: Path) -> None:
    """However many of the known one were read before."""
    record = b'{"type":"file-history-snapshot","messageId":"%d","snapshot":{"messageId":"m"},"isSnapshotUpdate":false}'
    known = [record % number for number in range(9)]
    session, source = told(tmp_path, *known, known[0].replace(b"snapshot", b"snapshoX", 1), prompt(1, b'"one"'))
    proof = verify(session.agent, source)
    assert proof.holds and proof.unknown_types == {"file-history-snapshoX": 1}


def test_P05_a_margin_that_is_no_text_spoils_no_document(tmp_path: Path) -> None:
    write_small_demo(tmp_path / "home")
    found = (each for each in Library(Host.at(tmp_path / "home")).sources() if each.path.suffix == ".json")
    for session in found:
        content = session.path.read_bytes()
        session.path.write_bytes(content.replace(b"\n    {", b"\n \xc3  {", 1))
        assert verify(session.agent, with_current_size(SourceFile(session.agent.id, session.path))).holds
