"""Sessions of all agents go to all agents; what is missing afterwards is what was named, and all of it comes back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from clew.convert.losses import Loss
from clew.convert.prepare import prepare
from clew.host import Host
from clew.library import Library, StoredSession
from clew.sources.local import at_path
from clew.store import Store, TodoItem, ToolCall, ToolResult
from tests.convert.checking import faults, unnamed
from tests.convert.said import only
from tests.convert.transcripts import helped, spoke, transcript, tried
from tests.receivers import RECEIVERS

AGENTS = RECEIVERS
FIXTURES = Path(__file__).parents[1] / "fixtures"
_SMALL = 40 << 10
_EVERY = 6


def found(sessions: Iterator[StoredSession], library: Library, target: str, scratch: Path) -> dict[str, list[str]]:
    """What is wrong with the sessions once they were converted, by their files."""
    report = {}
    for number, session in enumerate(sessions):
        wrong = faults(session, target, scratch / str(number), library.subagents(session))
        if wrong:
            report[str(session.path)] = wrong
    return report


def below(folder: Path) -> Iterator[StoredSession]:
    return (StoredSession(*each) for each in at_path(folder))


@pytest.mark.slow
@pytest.mark.parametrize("target", AGENTS)
def test_the_demo(demo: Path, tmp_path: Path, target: str) -> None:
    library = Library(Host.at(demo))
    assert found(library.sources(), library, target, tmp_path) == {}


@pytest.mark.parametrize("target", AGENTS)
def test_sessions_written_by_hand(tmp_path: Path, target: str) -> None:
    transcript(folder(tmp_path, "nameless"), spoke("user", "one"), spoke("assistant", "two"))
    transcript(folder(tmp_path, "failed"), *tried(is_error=True))
    transcript(folder(tmp_path, "aside"), *helped("u2"))
    transcript(folder(tmp_path, "empty"), spoke("user", ""))
    with Store(tmp_path / "store").session("tides") as session:
        session.user("how high?", uuid="q1")
        call = ToolCall(id="c1", name="bash", arguments={"command": "tide", "now": True})
        session.assistant("", calls=[call], uuid="a1", todos=[TodoItem(content="look", status="pending")])
        session.results(ToolResult(tool_call_id="c1", tool_name="bash", content="4 m"), uuid="r1")
        session.user("and tomorrow?", uuid="q2")
        session.user("and at night?", uuid="q3", parent="r1")
    assert found(below(tmp_path), Library(Host.at(tmp_path)), target, tmp_path / "homes") == {}


class TestTheCheck:
    """It finds what is missing and what is named for nothing."""

    def converted(self, folder: Path, *, is_error: bool) -> tuple[StoredSession, StoredSession, list[Loss]]:
        before = only(
            transcript(folder, *tried(is_error=is_error), spoke("assistant", "so", uuid="u4", parentUuid="u3"))
        )
        written = prepare(before.agent, before.source, "codex").write(folder / "home", allow_loss=True)
        return StoredSession(*before), StoredSession(*only(Path(written.files[0]))), written.losses

    def test_what_is_whole_passes(self, tmp_path: Path) -> None:
        assert list(unnamed(*self.converted(tmp_path, is_error=True))) == []

    @pytest.mark.parametrize("words", [b'"try"', b'"function_call"', b'"function_call_output"'])
    def test_a_line_that_is_gone_is_found(self, tmp_path: Path, words: bytes) -> None:
        before, copy, losses = self.converted(tmp_path, is_error=False)
        lines = copy.path.read_bytes().splitlines(keepends=True)
        copy.path.write_bytes(b"".join(line for line in lines if words not in line))
        assert any("1 messages are absent" in fault for fault in unnamed(before, copy, losses))

    def test_an_argument_that_is_gone_is_found(self, tmp_path: Path) -> None:
        before, copy, losses = self.converted(tmp_path, is_error=False)
        copy.path.write_bytes(copy.path.read_bytes().replace(b'{\\"cmd\\":\\"false\\"}', b"{}"))
        assert list(unnamed(before, copy, losses)) == ["of the arguments is missing 'false'"]

    def test_another_order_is_found(self, tmp_path: Path) -> None:
        before, copy, losses = self.converted(tmp_path, is_error=False)
        text = copy.path.read_text()
        copy.path.write_text(text.replace('"try"', '"?"').replace('"so"', '"try"').replace('"?"', '"so"'))
        assert "what was said stands in another order" in list(unnamed(before, copy, losses))

    def test_words_that_nobody_said_are_found(self, tmp_path: Path) -> None:
        before, copy, losses = self.converted(tmp_path, is_error=False)
        copy.path.write_bytes(copy.path.read_bytes().replace(b'"so"', b'"so it is"'))
        assert "nobody said 'so it is'" in list(unnamed(before, copy, losses))

    def test_a_line_that_cannot_be_read_is_found(self, tmp_path: Path) -> None:
        before, copy, losses = self.converted(tmp_path, is_error=False)
        with before.path.open("ab") as stream:
            stream.write(b'{"type":"user","message":{{\n\n')
        damaged = StoredSession(*only(before.path))
        assert list(unnamed(damaged, copy, losses)) == ["1 lines cannot be read, 0 are named"]
        assert list(unnamed(damaged, copy, [Loss(None, "line 5, which may hold a message", "")])) == []

    def test_losses_that_are_none_and_losses_without_a_name_are_found(self, tmp_path: Path) -> None:
        before, copy, _ = self.converted(tmp_path, is_error=True)
        assert list(unnamed(before, copy, [])) == ["of 1 calls it is not told that they failed, 0 are named"]
        both = [Loss(None, "that a call failed", ""), Loss(None, "9 messages on other branches", "")]
        assert list(unnamed(before, copy, both)) == ["0 messages are absent, 9 are named: #[]"]


def folder(home: Path, name: str) -> Path:
    place = home / name
    place.mkdir()
    return place


@pytest.mark.parametrize("target", AGENTS)
def test_the_fixtures(tmp_path: Path, target: str) -> None:
    sessions = [each for name in ("codex", "gemini", "seeds") for each in below(FIXTURES / name)]
    assert sessions
    assert found(iter(sessions), Library(Host.at(tmp_path)), target, tmp_path / "homes") == {}


@pytest.mark.parametrize("target", AGENTS)
def test_some_of_the_corpus(shared: Path, tmp_path: Path, target: str) -> None:
    small = sorted((each for each in below(shared / "corpus") if each.source.size < _SMALL), key=lambda one: one.path)
    assert found(iter(small[::_EVERY]), Library(Host.at(tmp_path)), target, tmp_path / "homes") == {}
