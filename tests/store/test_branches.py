"""A conversation goes back and on another way; both ways stay, and names and moves are records themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew import Host, Library
from clew.errors import AmbiguousReference, UnknownReference, UsageError
from clew.store import Session, Store, ToolResult
from clew.store.erase import erase_record
from tests.store.support import Quick, assert_whole, lines, log_of


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """Asked twice: after the first answer the person went back."""
    session = Store(tmp_path).session("s")
    session.user("how high is the tide?", uuid="q1")
    session.assistant("4 m", uuid="a1")
    session.user("and tomorrow?", uuid="q2")
    session.assistant("5 m", uuid="a2")
    session.user("and at night?", uuid="q3", parent="a1")
    session.assistant("3 m", uuid="a3")
    return session


@pytest.mark.seed("S1-1", "S1-33", "S1-32", "S1-60")
def test_an_older_parent_makes_a_branch(session: Session, tmp_path: Path) -> None:
    main, side = session.branches()
    assert (main.name, main.head, main.messages, main.parent, main.active) == ("main", "a2", 4, None, False)
    assert (side.head, side.messages, side.parent, side.active) == ("a3", 2, "a1", True)
    assert session.path() == ["q1", "a1", "q3", "a3"]
    assert session.path("main") == ["q1", "a1", "q2", "a2"]
    assert [record["message"]["content"] for record in session.messages("a2")][2:] == ["and tomorrow?", "5 m"]
    q3, a3 = lines(log_of(tmp_path))[4:]
    assert (q3["isSidechain"], q3["branchId"], q3["branchParentUuid"]) == (True, side.id, "a1")
    assert (a3["branchId"], "branchParentUuid" in a3) == (side.id, False)
    session.close()
    assert_whole(tmp_path)


@pytest.mark.seed("S1-60")
def test_branches_are_named_and_switched(session: Session, tmp_path: Path) -> None:
    session.name_branch("a3", "night")
    session.switch("main")
    session.user("the day after?", uuid="q4")
    session.switch("night")
    other = Store(tmp_path).session("s")
    assert [(branch.name, branch.active) for branch in other.branches()] == [("main", False), ("night", True)]
    assert other.path() == ["q1", "a1", "q3", "a3"]
    other.user("and at dawn?", uuid="q5")
    assert session.path() == ["q1", "a1", "q3", "a3", "q5"]
    assert session.path("main")[-1] == "q4"
    other.close()
    session.close()
    assert_whole(tmp_path)
    [found] = Library(Host.at(tmp_path)).sources()
    assert found.facts.tree.graph().active_path == session.path()


def test_a_move_without_a_message_behind_it_counts(session: Session, tmp_path: Path) -> None:
    session.switch("#2")
    assert session.head == "a1"
    session.close()
    [found] = Library(Host.at(tmp_path)).sources()
    assert found.facts.tree.graph().active_path == session.path() == ["q1", "a1"]
    receipt = Store(tmp_path).session("s").user("a third way")
    assert session.path() == ["q1", "a1", receipt.uuid]
    assert len(session.branches()) == 3


def test_the_files_at_the_ends_of_two_ways_are_compared(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a").write_bytes(b"1")
    (work / "same").write_bytes(b"1")

    def say(session: Session, uuid: str, parent: str, **files: bytes | None) -> None:
        with session.watch(session.assistant(uuid, uuid=uuid, parent=parent), root=work):
            for name, body in files.items():
                (work / name).unlink(missing_ok=True) if body is None else (work / name).write_bytes(body)

    with Store(tmp_path, system=Quick()).session("s") as session:
        session.user("go", uuid="q")
        say(session, "one", "q", a=b"2", new=b"n", same=b"2")
        session.undo("q", root=work)
        say(session, "two", "q", a=None, same=b"2")
        found = session.compare("one", "two", root=work)
        assert (found.base, found.one, found.other) == ("q", ["one"], ["two"])
        told = {file.path: (session.content(file.one), session.content(file.other)) for file in found.files}
        assert told == {"a": (b"2", None), "new": (b"n", None)}
        [file] = session.compare("q", "two", root=work).files[:1]
        assert (file.path, session.content(file.one), session.content(file.other)) == ("a", b"1", None)
        assert session.compare("two", "two", root=work).files == []


def test_two_ways_are_compared(session: Session) -> None:
    found = session.compare("main", "a3")
    assert (found.base, found.one, found.other) == ("a1", ["q2", "a2"], ["q3", "a3"])
    assert session.compare("q1", "main").one == []
    root = session.user("from the start", parent=None)
    assert session.compare("main", root.uuid).base is None


def test_results_make_no_branch(tmp_path: Path) -> None:
    session = Store(tmp_path).session("s")
    call = session.assistant("both at once")
    for number in range(3):
        session.results(ToolResult(tool_call_id=str(number), tool_name="t", content=""), parent=call.uuid)
    session.assistant("done")
    late = session.results(ToolResult(tool_call_id="3", tool_name="t", content=""), parent=call.uuid)
    assert [branch.name for branch in session.branches()] == ["main"]
    again = Store(tmp_path).session("s")
    again.assistant("a reply to the late result", parent=late.uuid)
    assert len(again.branches()) == 2


def test_what_follows_a_late_result_branches_off_by_itself(tmp_path: Path) -> None:
    session = Store(tmp_path).session("s")
    call = session.assistant("calls")
    session.user("goes on")
    session.results(ToolResult(tool_call_id="1", tool_name="t", content=""), parent=call.uuid)
    Store(tmp_path).session("s").user("behind the result")
    assert len(session.branches()) == 2


@pytest.mark.parametrize("name", ["", "main", "a b", "x#1", "x@y", "a\nb", "q1"])
def test_names_are_plain_and_free(session: Session, name: str) -> None:
    with pytest.raises(UsageError):
        session.name_branch("a3", name)


def test_names_are_not_taken_twice_but_may_change(session: Session) -> None:
    session.name_branch("a3", "night")
    session.name_branch("night", "evening")
    session.name_branch("evening", "evening")
    with pytest.raises(UnknownReference):
        session.path("night")
    with pytest.raises(UsageError):
        session.name_branch("main", "evening")


def test_what_is_not_there_is_said_so(session: Session) -> None:
    for target in ("nowhere", "#99", "#0", ""):
        with pytest.raises(UnknownReference):
            session.switch(target)
    for name in ("long-id-1", "long-id-2"):
        session.user(name, uuid=name)
    with pytest.raises(AmbiguousReference):
        session.path("long-id")
    assert session.path("long-id-1")[-1] == "long-id-1"


def test_a_branch_without_messages_left_is_not_listed(session: Session) -> None:
    for uuid in ("q3", "a3"):
        erase_record(session.folder, uuid)
    assert [branch.name for branch in session.branches()] == ["main"]
    for uuid in ("q1", "a1", "q2", "a2"):
        erase_record(session.folder, uuid)
    assert session.branches() == []
    session.user("once more")
    assert [branch.messages for branch in session.branches()] == [1]
