"""Session references: taken apart, and resolved."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import AmbiguousReference, SourceUnreadable, UnknownReference, UsageError
from clew.host import Host
from clew.library import Library
from clew.references import Reference, branch_of, message_of, named_path
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
        ("@2", Reference("@2")),
        ("claude:@12#3", Reference("@12", "claude-code", 3)),
        ("claude:f005", Reference("f005", "claude-code")),
        ("Fix the tide table", Reference("Fix the tide table")),
        ("Fix the tide table#4", Reference("Fix the tide table", message=4)),
        ("Fix: the @tide #2 table", Reference("Fix: the @tide #2 table")),
        ("Fix the tide…", Reference("Fix the tide")),
        ("agent-8d06219d", Reference("agent-8d06219d")),
        ("été", Reference("été")),
    ],
)
def test_references_are_taken_apart(text: str, expected: Reference) -> None:
    assert Reference.parse(text) == expected


@pytest.mark.parametrize("text", ["", " ", "#1", "@0", "f005#", "f005#x", "f005#-1", "f005#1#2", "f005#" + "9" * 5000])
def test_what_is_no_reference(text: str) -> None:
    with pytest.raises(UsageError, match="is not a session reference; try an id"):
        Reference.parse(text)


@given(st.text(max_size=40))
def test_any_text_is_a_reference_or_refused(text: str) -> None:
    with suppress(UsageError):
        assert Reference.parse(text).id


def write_session(
    home: Path,
    name: str,
    *,
    time: str = "2026-11-01T10:00:00.000Z",
    folder: str = "-p",
    agent: str | None = None,
    prompt: str = "Hello",
    cwd: str = "/p",
) -> Path:
    """Write a session of Claude Code; with `agent`, that of a sub-agent."""
    path = home / ".claude" / "projects" / folder / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    line = claude_line("user", f"u-{name}", None, prompt, cwd=cwd) | {"timestamp": time, "sessionId": name}
    if agent is not None:
        line |= {"isSidechain": True, "agentId": agent}
    path.write_text(json.dumps(line) + "\n")
    return path


def found(home: Path, reference: str) -> str:
    return Library(Host.at(home)).get(reference).id


@pytest.mark.parametrize(
    ("text", "expected"),
    [("abc1", "abc1"), ("abc", "abc"), ("xy", "xy"), ("x", "xy"), ("claude-code:x", "xy"), ("abc2#4", "abc2")],
)
def test_references_are_resolved(tmp_path: Path, text: str, expected: str) -> None:
    for name in ("abc1", "abc2", "abc", "xy"):
        write_session(tmp_path, name)
    assert found(tmp_path, text) == expected


def test_a_prefix_of_several_is_ambiguous(tmp_path: Path) -> None:
    for number in range(9):
        write_session(tmp_path, f"s{number}")
    with pytest.raises(AmbiguousReference, match=r"'s' is ambiguous: claude-code:s0, .*claude-code:s4 and 4 more$"):
        found(tmp_path, "s")


def test_one_id_in_two_files_is_ambiguous(tmp_path: Path) -> None:
    paths = [write_session(tmp_path, "same", folder=folder) for folder in ("-one", "-two")]
    with pytest.raises(AmbiguousReference) as raised:
        found(tmp_path, "same")
    assert all(str(path) in str(raised.value) for path in paths)


@pytest.mark.parametrize("text", ["nobody", "sage-agent:abc", "ABC1", "No such title"])
def test_an_unknown_reference(tmp_path: Path, text: str) -> None:
    write_session(tmp_path, "abc1")
    with pytest.raises(UnknownReference, match="`clew list` lists all"):
        found(tmp_path, text)


def test_the_last_of_none(tmp_path: Path) -> None:
    with pytest.raises(UnknownReference, match="@last: there is no session yet"):
        found(tmp_path, "@last")
    write_session(tmp_path, "a")
    with pytest.raises(UnknownReference, match=r"@2: there is only 1 session$"):
        found(tmp_path, "@2")
    write_session(tmp_path, "b")
    with pytest.raises(UnknownReference, match=r"@3: there are only 2 sessions$"):
        found(tmp_path, "@3")


def test_earlier_sessions_are_counted_from_the_last(tmp_path: Path) -> None:
    for name, hour in (("a", 9), ("b", 11), ("c", 10)):
        write_session(tmp_path, name, time=f"2026-11-01T{hour:02}:00:00.000Z")
    assert [found(tmp_path, name) for name in ("@last", "@1", "@2", "@3", "claude:@2")] == ["b", "b", "c", "a", "c"]


def test_an_agent_may_be_named_by_a_unique_beginning(tmp_path: Path) -> None:
    write_session(tmp_path, "abc1")
    assert found(tmp_path, "claude:abc") == "abc1"
    with pytest.raises(UsageError, match="agent 'sage' is ambiguous: sage-agent, sage-emacs"):
        found(tmp_path, "sage:abc")
    with pytest.raises(UsageError, match=r"unknown agent 'cluade'; did you mean claude-code\? known: claude-code, "):
        found(tmp_path, "cluade:abc")


def test_a_session_by_its_title(tmp_path: Path) -> None:
    write_session(tmp_path, "a", prompt="Fix the tide table")
    write_session(tmp_path, "b", prompt="Fix the moon phase")
    write_session(tmp_path, "c", prompt="Fix the moon phases again")
    assert found(tmp_path, "Fix the tide table") == "a"
    assert found(tmp_path, "fix THE tide") == "a"
    assert found(tmp_path, "fix the tide#1") == "a"
    assert found(tmp_path, "Fix the moon phase") == "b"
    with pytest.raises(AmbiguousReference, match="'Fix the' is ambiguous: claude-code:a, claude-code:b, claude-code:c"):
        found(tmp_path, "Fix the")
    with pytest.raises(AmbiguousReference, match="'Fix' is ambiguous"):
        found(tmp_path, "Fix")
    with pytest.raises(UnknownReference):
        found(tmp_path, "Fi")


def test_an_id_comes_before_a_title(tmp_path: Path) -> None:
    write_session(tmp_path, "moon-1", prompt="Something else")
    write_session(tmp_path, "b", prompt="moon")
    assert found(tmp_path, "moon") == "moon-1"


def test_a_text_too_long_for_a_file_name_is_a_title(tmp_path: Path) -> None:
    with pytest.raises(UnknownReference, match="no session matches"):
        found(tmp_path, "word " * 1000 + "end")


def test_the_last_is_the_one_that_something_was_said_in_last(tmp_path: Path) -> None:
    for name, hour, written in (("a", 9, 1_800_000_000), ("b", 11, 1_800_000_002), ("c", 10, 1_800_000_009)):
        path = write_session(tmp_path, name, time=f"2026-11-01T{hour:02}:00:00.000Z")
        os.utime(path, (written, written))
    assert found(tmp_path, "@last") == "b"


def test_sub_agents_are_last_only_among_themselves(tmp_path: Path) -> None:
    write_session(tmp_path, "agent-1", time="2026-11-02T10:00:00.000Z", agent="1")
    assert found(tmp_path, "@last") == "agent-1"
    write_session(tmp_path, "a")
    assert found(tmp_path, "@last") == "a"


def test_positions_count_each_session_once_and_no_sub_agent(tmp_path: Path) -> None:
    write_session(tmp_path, "agent-1", time="2026-11-05T10:00:00.000Z", agent="1")
    for folder in ("-one", "-two"):
        write_session(tmp_path, "same", time="2026-11-02T10:00:00.000Z", folder=folder)
    write_session(tmp_path, "a")
    assert [found(tmp_path, name) for name in ("@1", "@2")] == ["same", "a"]
    with pytest.raises(UnknownReference, match=r"@3: there are only 2 sessions$"):
        found(tmp_path, "@3")


def test_P11_a_session_that_cannot_be_read_is_no_candidate(tmp_path: Path) -> None:
    write_session(tmp_path, "abc")
    os.mkfifo(tmp_path / ".claude" / "projects" / "-p" / "abd.jsonl")
    assert found(tmp_path, "ab") == "abc"
    assert found(tmp_path, "@last") == "abc"


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


def test_a_reference_that_is_too_long_for_a_file_may_name_a_message() -> None:
    assert message_of(f"{'a' * 300}/b#3") == 3
