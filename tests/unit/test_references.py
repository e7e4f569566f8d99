"""Session references: taken apart, and resolved."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.agents import registry
from clew.agents.base import Agent, SourceFile
from clew.errors import AmbiguousReference, SourceUnreadable, UnknownReference, UsageError
from clew.host import Host
from clew.library import Library
from clew.references import Reference, branch_of, message_of, named_path, resolve
from tests.unit.samples import claude_line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f005c7db", Reference("f005c7db")),
        ("f005#12", Reference("f005", message=12)),
        ("claude-code:f005", Reference("f005", "claude-code")),
        ("sage-agent:f005#3", Reference("f005", "sage-agent", message=3)),
        ("@last", Reference("@last")),
        ("@last#2", Reference("@last", message=2)),
        ("claude-code:@last", Reference("@last", "claude-code")),
        ("agent-8d06219d", Reference("agent-8d06219d")),
        ("été", Reference("été")),
    ],
)
def test_references_are_taken_apart(text: str, expected: Reference) -> None:
    assert Reference.parse(text) == expected


@pytest.mark.parametrize("text", ["", "#1", "a b", "f005#", "f005#x", "f005#-1", "f005#1#2", "f005#" + "9" * 5000])
def test_what_is_no_reference(text: str) -> None:
    with pytest.raises(UsageError, match="is no session reference; try an id"):
        Reference.parse(text)


@given(st.text(max_size=40))
def test_any_text_is_a_reference_or_refused(text: str) -> None:
    with suppress(UsageError):
        assert Reference.parse(text).id


@dataclass
class Stored:
    """A session in name only."""

    agent: Agent
    source: SourceFile
    id: str
    is_subagent: bool = False


@dataclass
class Broken:
    """A session whose file must be opened to know its id, and cannot be."""

    agent: Agent
    source: SourceFile

    is_subagent: bool = False

    @property
    def id(self) -> str:
        raise SourceUnreadable("x: Permission denied")


def stored(name: str, mtime: float = 0, agent: str = "claude-code", file: str | None = None) -> Stored:
    return Stored(registry.get(agent), SourceFile(agent, Path(file or f"{name}.jsonl"), mtime=mtime), name)


SESSIONS = [stored("abc1", 1), stored("abc2", 5), stored("abc", 3), stored("xyz", 9, "sage-agent"), stored("xy", 2)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("abc1", "abc1"),
        ("abc", "abc"),
        ("xy", "xy"),
        ("xyz", "xyz"),
        ("sage-agent:x", "xyz"),
        ("claude-code:x", "xy"),
        ("@last", "xyz"),
        ("claude-code:@last", "abc2"),
        ("abc2#4", "abc2"),
    ],
)
def test_references_are_resolved(text: str, expected: str) -> None:
    assert resolve(Reference.parse(text), SESSIONS).id == expected


def test_a_prefix_of_several_is_ambiguous() -> None:
    with pytest.raises(
        AmbiguousReference, match="'ab' is ambiguous: claude-code:abc1, claude-code:abc2, claude-code:abc"
    ):
        resolve(Reference("ab"), SESSIONS)
    many = [stored(f"s{number}") for number in range(9)]
    with pytest.raises(AmbiguousReference, match=r"claude-code:s4 and 4 more$"):
        resolve(Reference("s"), many)


def test_one_id_in_two_places_is_ambiguous() -> None:
    with pytest.raises(AmbiguousReference):
        resolve(Reference("same"), [stored("same"), stored("same", agent="sage-agent")])
    assert resolve(Reference("same", "sage-agent"), [stored("same"), stored("same", agent="sage-agent")])


@pytest.mark.parametrize("text", ["nobody", "sage-agent:abc", "ABC1"])
def test_an_unknown_reference(text: str) -> None:
    with pytest.raises(UnknownReference, match="`clew list` shows those there are"):
        resolve(Reference.parse(text), SESSIONS)


def test_the_last_of_none() -> None:
    with pytest.raises(UnknownReference, match="there is no session yet"):
        resolve(Reference("@last"), [])


def test_the_last_is_the_one_that_a_list_has_first(tmp_path: Path) -> None:
    found = []
    for name, hour, written in (("a", 9, 1_800_000_000), ("b", 11, 1_800_000_002), ("c", 10, 1_800_000_009)):
        path = tmp_path / f"{name}.jsonl"
        line = claude_line("user", name, None) | {"timestamp": f"2026-11-01T{hour:02}:00:00.000Z"}
        path.write_text(json.dumps(line) + "\n")
        found.append(stored(name, written, file=str(path)))
    assert resolve(Reference("@last"), found).id == "b"
    # One that was written long before the last word of another was said need not be opened.
    unopened = stored("d", 1_000_000_000, file=str(tmp_path / "missing.jsonl"))
    assert resolve(Reference("@last"), [*found, unopened]).id == "b"


def test_sub_agents_are_last_only_among_themselves() -> None:
    agent = replace(stored("agent-1", 99), is_subagent=True)
    assert resolve(Reference("@last"), [stored("a", 1), agent]).id == "a"
    assert resolve(Reference("@last"), [agent]).id == "agent-1"


def test_P11_a_session_that_cannot_be_read_is_no_candidate() -> None:
    broken = Broken(registry.get("claude-code"), SourceFile("claude-code", Path("x.jsonl"), mtime=99))
    both: list[Stored | Broken] = [broken, stored("abc", 1)]
    assert resolve(Reference("a"), both).id == "abc"
    assert resolve(Reference("@last"), both).id == "abc"


def test_paths_are_told_from_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "c#1"
    folder.mkdir()
    file = folder / "x.jsonl"
    file.touch()
    assert named_path(str(file)) == file
    assert named_path(f"{file}#12") == file
    assert named_path(str(folder)) == folder
    monkeypatch.chdir(folder)
    assert named_path("x.jsonl") == Path("x.jsonl")
    assert named_path("./x.jsonl#3") == Path("x.jsonl")
    assert named_path("x") is None
    # A folder in the way does not hide a session of the same name.
    (folder / "f005").mkdir()
    assert named_path("f005") is None
    assert named_path("./f005") == Path("f005")


@pytest.mark.parametrize("path", ["/no/such", "./no", "../no/such", "~/no", "~nobody-of-this-name/x", "/no/such#3"])
def test_a_path_that_is_not_there(path: str) -> None:
    with pytest.raises(SourceUnreadable, match="no such file or folder"):
        named_path(path)


def test_the_message_of_a_reference(tmp_path: Path) -> None:
    assert message_of("f005#12") == 12
    assert message_of("@last#1") == 1
    assert message_of("f005") is None
    assert message_of("/p/x.jsonl#3") == 3
    odd = tmp_path / "x#3"
    odd.touch()
    assert message_of(str(odd)) is None
    assert message_of(f"{odd}#4") == 4


def test_a_branch_stands_behind_the_id(tmp_path: Path) -> None:
    assert Reference.parse("f005@main") == Reference("f005", branch="main")
    assert Reference.parse("sage-agent:f005@feature/x#7") == Reference("f005", "sage-agent", 7, "feature/x")
    assert Reference.parse("@last@main") == Reference("@last", branch="main")
    assert branch_of("f005@main#3") == "main"
    odd = tmp_path / "x@main"
    odd.touch()
    assert branch_of(str(odd)) is None


def test_who_takes_the_whole_session_refuses_a_branch(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="names a branch"):
        Library(Host.at(tmp_path)).get("f005@main")
