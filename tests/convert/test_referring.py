"""A rollout of Codex that refers to the history before it: that goes over with it, or is named."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clew.agents.base import SourceFile, Unit
from clew.agents.codex import Codex
from clew.convert.conversion import REFERRED
from clew.convert.losses import Loss
from clew.convert.prepare import prepare
from clew.errors import UsageError
from tests.agents.rollouts import OTHER, THIRD, THREAD, answered, asked, event, item, line, meta, spelled, words, write
from tests.cli.running import clew
from tests.convert.said import only, said

TARGETS = ["claude-code", "codex", "gemini", "sage-agent", "sage-emacs"]
PATH = [("user", "one"), ("assistant", "two"), ("user", "three"), ("assistant", "four")]


def numbered(lines: list[dict[str, Any]], first: int = 0) -> list[dict[str, Any]]:
    """The lines as they are since they have numbers."""
    return [
        {"timestamp": each["timestamp"], "ordinal": first + at, "type": each["type"], "payload": each["payload"]}
        for at, each in enumerate(lines)
    ]


def told(home: Path, *more: dict[str, Any], thread: str = OTHER, base: Any = None) -> tuple[Path, int, int]:
    """A rollout; how many lines and bytes it has."""
    first = base["end_ordinal_exclusive"] if isinstance(base, dict) else 0
    head = meta(thread, history_mode="paginated", **({"history_base": base} if base is not None else {}))
    lines = numbered([head, *more], first)
    return write(home, *lines, thread=thread), first + len(lines), len(spelled(*lines))


def based(thread: str, lines: int, size: int) -> dict[str, Any]:
    return {"thread_id": thread, "end_ordinal_exclusive": lines, "end_byte_offset": size}


def forked(home: Path) -> Path:
    """A fork of a thread that went on after it."""
    path, lines, size = told(home, *asked("one", 1), *answered("two", 2))
    with path.open("ab") as stream:
        stream.write(spelled(*numbered([words("user", "elsewhere", second=3)], lines)))
    return told(home, *asked("three", 4), *answered("four", 5), thread=THREAD, base=based(OTHER, lines, size))[0]


def convert(path: Path, target: str, home: Path, branch: str | None = None) -> tuple[Path, list[Loss]]:
    found = only(path)
    written = prepare(found.agent, found.source, target, branch).write(home, allow_loss=True)
    return Path(written.files[0]), written.losses


def spoken(path: Path) -> list[tuple[str, str]]:
    found = only(path)
    return said(found.agent, found.source)


@pytest.mark.parametrize("target", TARGETS)
def test_the_history_goes_over(tmp_path: Path, target: str) -> None:
    path, losses = convert(forked(tmp_path / "home"), target, tmp_path / "there")
    assert losses == []
    assert spoken(path) == PATH


@pytest.mark.parametrize("target", [each for each in TARGETS if each != "codex"])
def test_it_comes_back_as_it_was(tmp_path: Path, target: str) -> None:
    before = forked(tmp_path / "home")
    path, _ = convert(before, target, tmp_path / "there")
    back, losses = convert(path, "codex", tmp_path / "back")
    assert back.read_bytes() == before.read_bytes()
    assert losses == []


def test_it_goes_on_to_a_third_agent_without_a_word(tmp_path: Path) -> None:
    path, _ = convert(forked(tmp_path / "home"), "gemini", tmp_path / "there")
    third, losses = convert(path, "claude-code", tmp_path / "further")
    assert spoken(third) == PATH
    assert losses == []


def test_for_its_own_agent_it_is_one_thread(tmp_path: Path) -> None:
    path, _ = convert(forked(tmp_path / "home"), "codex", tmp_path / "there")
    records = [json.loads(text) for text in path.read_text().splitlines()]
    own = [record for record in records if record["type"] != "clew-origin"]
    assert [record["ordinal"] for record in own] == list(range(len(own)))
    assert "history_base" not in own[0]["payload"]


def test_a_history_with_a_history(tmp_path: Path) -> None:
    home = tmp_path / "home"
    _, lines, size = told(home, *asked("one", 1), *answered("two", 2), thread=THIRD)
    _, lines, size = told(home, *asked("three", 3), thread=OTHER, base=based(THIRD, lines, size))
    path, *_ = told(home, *answered("four", 4), thread=THREAD, base=based(OTHER, lines, size))
    assert spoken(convert(path, "gemini", tmp_path / "there")[0]) == PATH


def test_a_packed_history(tmp_path: Path) -> None:
    path = forked(tmp_path / "home")
    base = path.with_name(path.name.replace(THREAD, OTHER))
    base.with_name(base.name + ".gz").write_bytes(gzip.compress(base.read_bytes()))
    base.unlink()
    assert spoken(convert(path, "gemini", tmp_path / "there")[0]) == PATH


def test_what_comes_back_to_a_home_without_its_history_is_named(tmp_path: Path) -> None:
    before = forked(tmp_path / "home")
    there, _ = convert(before, "gemini", tmp_path / "there")
    back = clew("convert", there, "--to", "codex", "--home", tmp_path / "back")
    assert (back.code, f"the history before it, in the thread {OTHER}" in back.err) == (6, True)
    before.unlink()
    assert clew("convert", there, "--to", "codex", "--home", tmp_path / "home").code == 0


def test_a_base_without_a_head_is_named(tmp_path: Path) -> None:
    home = tmp_path / "home"
    lines = numbered([*asked("one", 1), *answered("two", 2)])
    write(home, *lines, thread=OTHER)
    base = based(OTHER, len(lines), len(spelled(*lines)))
    path, *_ = told(home, *asked("three", 4), *answered("four", 5), thread=THREAD, base=base)
    _, losses = convert(path, "gemini", tmp_path / "there")
    assert [loss.why for loss in losses] == [REFERRED]


def test_damage_is_where_it_is_in_its_own_file(tmp_path: Path) -> None:
    path = forked(tmp_path / "home")
    with path.open("ab") as stream:
        stream.write(b'{"timestamp":"2026-03-02T10:00:09.000Z","ty')
    _, losses = convert(path, "gemini", tmp_path / "there")
    assert [loss.what for loss in losses] == ["line 6, which may hold a message"]


@pytest.mark.parametrize("target", ["claude-code", "codex"])
class TestMissing:
    def named(self, path: Path, target: str, home: Path) -> None:
        found, losses = convert(path, target, home)
        assert losses == [Loss(None, f"the history before it, in the thread {OTHER}", REFERRED)]
        assert spoken(found) == PATH[2:]

    def test_one_that_is_not_here_is_named(self, tmp_path: Path, target: str) -> None:
        path = forked(tmp_path / "home")
        path.with_name(path.name.replace(THREAD, OTHER)).unlink()
        self.named(path, target, tmp_path / "there")

    def test_one_that_is_too_short_is_named(self, tmp_path: Path, target: str) -> None:
        path = forked(tmp_path / "home")
        base = path.with_name(path.name.replace(THREAD, OTHER))
        base.write_bytes(base.read_bytes()[:200])
        self.named(path, target, tmp_path / "there")

    @pytest.mark.parametrize("end", [5, -1, "all", None, 2**70])
    def test_one_that_ends_nowhere_is_named(self, tmp_path: Path, target: str, end: Any) -> None:
        home = tmp_path / "home"
        told(home, *asked("one", 1), *answered("two", 2))
        base = {"thread_id": OTHER, "end_ordinal_exclusive": 5, "end_byte_offset": end}
        path, *_ = told(home, *asked("three", 4), *answered("four", 5), thread=THREAD, base=base)
        self.named(path, target, tmp_path / "there")

    def test_one_that_goes_round_in_a_circle_is_named(self, tmp_path: Path, target: str) -> None:
        home = tmp_path / "home"
        _, lines, size = told(home, *asked("one", 1), base=based(THREAD, 3, 5))
        path, *_ = told(home, *asked("three", 4), *answered("four", 5), thread=THREAD, base=based(OTHER, lines, size))
        self.named(path, target, tmp_path / "there")

    @pytest.mark.parametrize("base", ["elsewhere", 7, [], {}, {"thread_id": 5}])
    def test_odd_references_do_no_harm(self, tmp_path: Path, target: str, base: Any) -> None:
        home = tmp_path / "home"
        lines = [meta(THREAD, history_base=base), *asked("three", 4), *answered("four", 5)]
        found, losses = convert(write(home, *lines), target, tmp_path / "there")
        assert spoken(found) == PATH[2:]
        assert [loss.why for loss in losses] == [REFERRED]


class TestPlaces:
    def branched(self, home: Path) -> Path:
        """A fork in which a turn was taken back."""
        _, lines, size = told(home, *asked("one", 1), *answered("two", 2))
        back = event("thread_rolled_back", 5, num_turns=1)
        gone = [*asked("gone", 3), *answered("away", 4)]
        later = [*asked("three", 6), *answered("four", 7)]
        return told(home, *gone, back, *later, thread=THREAD, base=based(OTHER, lines, size))[0]

    def test_a_branch_is_named_as_the_session_shows_it(self, tmp_path: Path) -> None:
        path = self.branched(tmp_path / "home")
        for branch in ("1", uuid_of(path, "gone")):
            found, _ = convert(path, "gemini", tmp_path / branch, branch)
            assert spoken(found) == [*PATH[:2], ("user", "gone"), ("assistant", "away")]

    def repeating(self, home: Path, *more: dict[str, Any]) -> Path:
        """A fork in which a turn was taken back before it repeats the prompt that its history ends with."""
        _, lines, size = told(home, *asked("one", 1), *answered("two", 2), words("user", "three", second=3))
        gone = [*more, *asked("gone", 4), *answered("away", 5), event("thread_rolled_back", 6, num_turns=1)]
        again = event("user_message", 7, message="three", images=[])
        own = [*gone, again, *answered("four", 8)]
        return told(home, *own, thread=THREAD, base=based(OTHER, lines, size))[0]

    def test_a_branch_is_found_where_an_event_repeats_a_word_of_the_history(self, tmp_path: Path) -> None:
        path = self.repeating(tmp_path / "home")
        ends = {"gone": [("user", "gone"), ("assistant", "away")], "three": PATH[3:], "four": PATH[3:]}
        for text, end in ends.items():
            for branch in (uuid_of(path, text), index_of(path, text)):
                found, _ = convert(path, "gemini", tmp_path / branch, branch)
                assert spoken(found) == [*PATH[:3], *end]

    def history(self, home: Path, *more: dict[str, Any]) -> dict[str, Any]:
        """A history that ends with a prompt of which no event tells, before some more lines."""
        _, lines, size = told(home, *asked("one", 1), *answered("two", 2), words("user", "three", second=3), *more)
        return based(OTHER, lines, size)

    @pytest.mark.parametrize("is_taken_back", [False, True])
    def test_a_branch_that_only_repeats_a_word_of_the_history_ends_there(
        self, tmp_path: Path, is_taken_back: bool
    ) -> None:
        gone = [*asked("gone", 3), *answered("away", 3), event("thread_rolled_back", 3, num_turns=1)]
        base = self.history(tmp_path / "home", *(gone if is_taken_back else ()))
        again = event("user_message", 4, message="three", images=[])
        own = [again, event("thread_rolled_back", 5, num_turns=1), *asked("other", 6), *answered("else", 7)]
        path = told(tmp_path / "home", *own, thread=THREAD, base=base)[0]
        for branch in (uuid_of(path, "three"), index_of(path, "three")):
            found, _ = convert(path, "gemini", tmp_path / branch, branch)
            assert spoken(found) == PATH[:3]

    def glued(self, home: Path, *more: dict[str, Any]) -> Path:
        """A fork in which the event that repeats its history stands on one line with what is behind it."""
        again = event("user_message", 4, message="three", images=[])
        back = event("thread_rolled_back", 7, num_turns=1)
        own = [again, *more, words("assistant", "four", second=6), back, *asked("other", 8), *answered("else", 9)]
        path = told(home, *own, thread=THREAD, base=self.history(home))[0]
        text = path.read_bytes().split(b"\n")
        behind = 3 + len(more)
        text[1:behind] = [b"".join(text[1:behind])]
        path.write_bytes(b"\n".join(text))
        return path

    def test_a_branch_is_found_on_a_line_that_holds_fewer_messages_behind_its_history(self, tmp_path: Path) -> None:
        path = self.glued(tmp_path / "home")
        ends = {"three": PATH[2:], "four": PATH[2:], "other": [("user", "other"), ("assistant", "else")]}
        for text, end in ends.items():
            branch = index_of(path, text)
            found, _ = convert(path, "gemini", tmp_path / branch, branch)
            assert spoken(found) == [*PATH[:2], *end]

    def test_a_loss_is_found_on_a_line_that_holds_fewer_messages_behind_its_history(self, tmp_path: Path) -> None:
        drawn = {"type": "input_image", "image_url": "data:image/png;base64,aGk="}
        picture = item("message", 5, role="user", content=[{"type": "input_text", "text": "look"}, drawn])
        path = self.glued(tmp_path / "home", picture)
        found = index_of(path, "look")
        _, losses = convert(path, "sage-agent", tmp_path / "there", found)
        assert [str(loss.message) for loss in losses if loss.what == "a picture"] == [found]

    def test_a_branch_is_named_by_a_message_and_nothing_else(self, tmp_path: Path) -> None:
        path = self.glued(tmp_path / "home")
        for branch in ("9", "nobody"):
            with pytest.raises(UsageError, match="no message of that name"):
                convert(path, "gemini", tmp_path / "there", branch)

    def test_its_own_file_is_read_for_itself_only_where_something_is_lost_in_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        drawn = {"type": "input_image", "image_url": "data:image/png;base64,aGk="}
        picture = item("message", 3, role="user", content=[drawn])
        passes: list[Path] = []
        genuine = Codex.units

        def units(agent: Codex, source: SourceFile) -> Iterator[Unit]:
            passes.append(source.path)
            return genuine(agent, source)

        monkeypatch.setattr(Codex, "units", units)
        for place in ("nowhere", "history", "own"):
            home = tmp_path / place
            before = [picture] if place == "history" else []
            _, lines, size = told(home, *asked("one", 1), *answered("two", 2), *before)
            behind = [picture] if place == "own" else []
            path = told(home, *asked("three", 4), *behind, thread=THREAD, base=based(OTHER, lines, size))[0]
            found = only(path)
            passes.clear()
            prepare(found.agent, found.source, "sage-agent")
            assert [each == path for each in passes] == [False, False, True][: 3 if place == "own" else 2]

    def test_a_loss_is_found_where_an_event_repeats_a_word_of_the_history(self, tmp_path: Path) -> None:
        content = [{"type": "input_text", "text": "look"}, {"type": "input_image", "image_url": "data:image/png,"}]
        picture = item("message", 3, role="user", content=content)
        shown = event("user_message", 3, message="look", images=[])
        path = self.repeating(tmp_path / "home", picture, shown)
        _, losses = convert(path, "sage-agent", tmp_path / "there")
        assert [str(loss.message) for loss in losses if loss.what == "a picture"] == [index_of(path, "look")]

    def test_a_loss_is_where_the_session_shows_it(self, tmp_path: Path) -> None:
        home = tmp_path / "home"
        drawn = {"type": "input_image", "image_url": "data:image/png;base64,aGk="}
        picture = line("response_item", {"type": "message", "role": "user", "content": [drawn]}, 3)
        _, lines, size = told(home, *asked("one", 1), picture, *answered("two", 2))
        path, *_ = told(
            home, picture, *asked("three", 4), *answered("four", 5), thread=THREAD, base=based(OTHER, lines, size)
        )
        _, losses = convert(path, "sage-agent", tmp_path / "there")
        assert [(loss.message, loss.what) for loss in losses] == [(None, "2 x a picture")]


def uuid_of(path: Path, text: str) -> str:
    return str(shown(path, text)["uuid"])


def index_of(path: Path, text: str) -> str:
    return str(shown(path, text)["index"])


def shown(path: Path, text: str) -> dict[str, Any]:
    """The message of a session's own file that says something."""
    found = only(path)
    units = found.agent.units(found.source)
    messages = [unit.value for unit in units if unit.is_message]
    return next(each for each in messages if text in str(each["content"]))


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    convert(forked(tmp_path / "home"), "gemini", tmp_path / "there")
    assert list(folder.iterdir()) == []


def test_RD03_the_history_is_masked_too(tmp_path: Path) -> None:
    key = "sk-ant-" + "api03-" + "Zq7" * 31 + "QAA"
    home = tmp_path / "home"
    _, lines, size = told(home, *asked(f"my key is {key}", 1), *answered("two", 2))
    told(home, *asked("three", 4), *answered("four", 5), thread=THREAD, base=based(OTHER, lines, size))
    there = tmp_path / "there"
    ran = clew("--home", home, "convert", THREAD, "--to", "gemini", "--home", there, "--redact", "secrets", "--json")
    assert ran.code == 0, ran.err
    text = Path(ran.json["files"][0]).read_text()
    assert "my key is [REDACTED:" in text
    assert key not in text
