"""Where the logs do not tell all any more: an undo says so instead of guessing, and no copy is removed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from clew.errors import SourceUnreadable, UnknownReference
from clew.store import Session, Store
from clew.store.change_journal import undo_folder
from clew.store.doctor import examine
from clew.store.erase import erase_record
from clew.store.undo_plan import Refused
from tests.store.support import Quick


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    monkeypatch.chdir(root)
    (root / "a").write_text("zero\n")
    return root


@pytest.fixture
def session(tmp_path: Path, work: Path) -> Session:
    """A prompt, and three tools: `a` is written, `b` is made, `a` is written again."""
    session = Store(tmp_path, system=Quick()).session("s")
    session.user("hi", uuid="prompt")
    for uuid, name, words in (("one", "a", "one\n"), ("two", "b", "b\n"), ("three", "a", "two\n")):
        tool(session, uuid, name, lambda name=name, words=words: (work / name).write_text(words))  # type: ignore[misc]
    session.close()
    return session


def tool(session: Session, uuid: str, name: str, change: Callable[[], object]) -> None:
    with session.watch(session.assistant("I do.", uuid=uuid), [name]):
        change()


def damage(path: Path, *numbers: int) -> None:
    """Lines that are no JSON any more, counted from one."""
    lines = path.read_bytes().split(b"\n")
    for number in numbers:
        lines[number - 1] = b"#" + lines[number - 1][1:]
    path.write_bytes(b"\n".join(lines))


def snapshots(session: Session) -> Path:
    return session.folder / "snapshots.jsonl"


def messages(session: Session) -> Path:
    return session.folder / "messages.jsonl"


def contents(work: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in work.iterdir()}


LAST = {"a": "two\n", "b": "b\n"}


def assert_refused(session: Session, work: Path, words: str, to: str | None = "prompt") -> None:
    with pytest.raises(Refused, match=words) as refused:
        session.undo(to)
    assert "--force" in str(refused.value)
    assert contents(work) == LAST
    assert session.head == "three"
    assert any(words in one for one in session.undo(to, dry_run=True).unknown)


def test_behind_a_message_that_was_erased_an_undo_does_not_guess(session: Session, work: Path) -> None:
    erase_record(session.folder, "one", Quick())
    assert_refused(session, work, "one changed was erased")
    session.undo("prompt", force=True)
    assert "b" not in contents(work)


def test_what_was_erased_before_the_way_does_not_matter(session: Session, work: Path) -> None:
    erase_record(session.folder, "one", Quick())
    assert session.undo("one").unknown == []
    assert contents(work) == {"a": "one\n"}


def test_an_erased_prompt_is_no_gap(session: Session, work: Path) -> None:
    erase_record(session.folder, "prompt", Quick())
    session.undo("prompt")
    assert contents(work) == {"a": "zero\n"}


@pytest.mark.parametrize("to", ["prompt", "one"])
def test_a_message_that_cannot_be_read_stops_an_undo_past_it(session: Session, work: Path, to: str) -> None:
    damage(messages(session), 3)
    assert_refused(session, work, "messages.jsonl:3", to)


def test_one_step_back_does_not_reach_a_message_that_cannot_be_read(session: Session, work: Path) -> None:
    damage(messages(session), 2)
    session.undo()
    assert contents(work) == {"a": "one\n", "b": "b\n"}
    with pytest.raises(Refused, match=r"messages\.jsonl:2"):
        session.undo()


def test_a_last_message_that_cannot_be_read_may_have_made_files(session: Session, work: Path) -> None:
    damage(messages(session), 4)
    with pytest.raises(Refused, match=r"messages\.jsonl:4"):
        session.undo("one")
    assert contents(work) == LAST


@pytest.mark.parametrize("lines", [(1, 2), (3, 4), (5, 6)])
def test_a_tool_whose_snapshots_cannot_be_read_stops_an_undo_past_it(
    session: Session, work: Path, lines: tuple[int, int]
) -> None:
    damage(snapshots(session), *lines)
    assert_refused(session, work, f"snapshots.jsonl:{lines[0]}")


def test_one_step_back_does_not_skip_a_tool_that_cannot_be_read(session: Session, work: Path) -> None:
    damage(snapshots(session), 5, 6)
    assert_refused(session, work, "snapshots.jsonl:5", None)


def test_tools_before_the_way_do_not_matter(session: Session, work: Path) -> None:
    damage(snapshots(session), 1, 2)
    session.undo()
    assert contents(work) == {"a": "one\n", "b": "b\n"}


def test_one_file_alone_is_not_guessed_either(session: Session, work: Path) -> None:
    damage(snapshots(session), 5, 6)
    with pytest.raises(Refused, match=r"snapshots\.jsonl:5"):
        session.undo(file="a")
    damage(snapshots(session), 1, 2)
    with pytest.raises(UnknownReference, match=r"no snapshot records a change of a; .*snapshots\.jsonl:1"):
        session.undo(file="a")
    assert contents(work) == LAST


def test_without_the_log_of_the_snapshots_nothing_is_said_to_be_undone(session: Session, work: Path) -> None:
    snapshots(session).unlink()
    assert_refused(session, work, "snapshots.jsonl is missing")
    with pytest.raises(UnknownReference, match=r"snapshots\.jsonl is missing"):
        session.undo()


def test_a_redo_needs_the_snapshot_of_its_undo(session: Session, work: Path) -> None:
    """Also by force: the conversation would go on, and files would not."""
    session.undo()
    before, head = contents(work), session.head
    damage(snapshots(session), 7)
    for force in (False, True):
        with pytest.raises(
            Refused, match=r"what the undo replaced is not known for certain: .*snapshots\.jsonl:7"
        ) as refused:
            session.redo(force=force)
        assert "--force" not in str(refused.value)
        assert (contents(work), session.head) == (before, head)
    session.undo("three", force=True)
    assert (contents(work), session.head) == (LAST, "three")


def test_a_redo_to_a_message_that_is_gone_is_refused(session: Session, work: Path) -> None:
    session.undo()
    damage(messages(session), 4)
    with pytest.raises(UnknownReference, match="three"):
        Store(work.parent).session("s").redo()


@pytest.mark.parametrize("name", ["snapshots.jsonl", "messages.jsonl"])
def test_doctor_names_the_line_and_removes_no_copy(session: Session, tmp_path: Path, name: str) -> None:
    path = session.folder / name
    good, copies = path.read_bytes(), sorted(session.backups.iterdir())
    damage(path, 1, 2)
    found = list(examine(tmp_path))
    assert [(one.problem.file, one.problem.line) for one in found] == [(str(path), 1), (str(path), 2)]
    assert all(one.problem.severity == "error" and one.mend is None for one in found)
    with pytest.raises(SourceUnreadable, match="no copy was removed"):
        session.clear()
    assert sorted(session.backups.iterdir()) == copies
    path.write_bytes(good)
    assert list(examine(tmp_path)) == []


def test_doctor_removes_no_copy_where_the_log_of_the_snapshots_is_gone(session: Session, tmp_path: Path) -> None:
    copies = sorted(session.backups.iterdir())
    snapshots(session).unlink()
    assert [(one.problem.code, one.mend) for one in examine(tmp_path)] == [("snapshots-missing", None)]
    with pytest.raises(SourceUnreadable, match="no copy was removed"):
        session.clear()
    assert sorted(session.backups.iterdir()) == copies


def test_doctor_names_settings_that_stop_every_append(session: Session, tmp_path: Path) -> None:
    for words in ("{bad", "[]", '{"clew": {"durability": 5}}'):
        (tmp_path / ".sage/config.json").write_text(words)
        (tmp_path / ".sage/config.json").chmod(0o600)
        (one,) = examine(tmp_path)
        assert (one.problem.code, one.problem.file) == ("bad-settings", str(tmp_path / ".sage/config.json"))


def test_an_announcement_that_cannot_be_read_is_put_aside(session: Session, work: Path, tmp_path: Path) -> None:
    journals = undo_folder(session.folder)
    journals.mkdir(parents=True)
    (journals / "undo-x.pending").write_bytes(b"junk")
    with pytest.raises(SourceUnreadable, match="doctor --fix"):
        session.undo()
    (one,) = examine(tmp_path, Quick())
    assert one.mend is not None
    one.mend()
    assert [one.problem.code for one in examine(tmp_path)] == ["quarantined"]
    session.undo()
    assert contents(work) == {"a": "one\n", "b": "b\n"}
    with pytest.raises(SourceUnreadable, match="no copy was removed"):
        session.clear()
