"""What a watch is asked for: a message that is there, and files however their paths are spelled."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.errors import PathRefused, UsageError
from clew.store import Session, Store
from tests.store.support import Quick


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "real" / "work"
    root.mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(root)
    (root / "Makefile").write_text("zero\n")
    (root / "sub").mkdir()
    return root


@pytest.fixture
def session(tmp_path: Path, work: Path) -> Session:
    return Store(tmp_path, system=Quick()).session("s")


def test_a_message_that_is_not_there_is_refused(session: Session, work: Path) -> None:
    session.user("hi", uuid="prompt")
    with pytest.raises(UsageError, match="nonsense"):
        session.watch("nonsense", ["Makefile"])
    assert not (session.folder / "snapshots.jsonl").exists()
    with session.watch("prompt", ["Makefile"]):
        (work / "Makefile").write_text("one\n")
    session.undo()
    assert (work / "Makefile").read_text() == "zero\n"


def test_a_message_of_another_process_is_found(session: Session, tmp_path: Path) -> None:
    session.user("hi")
    Store(tmp_path, system=Quick()).session("s").user("more", uuid="theirs")
    session.watch("theirs", ["Makefile"]).before()


@pytest.mark.parametrize("path", ["Makefile", "./Makefile", ".//Makefile", Path("Makefile")])
@pytest.mark.parametrize("many", [True, False])
def test_one_path_may_stand_alone_and_begin_with_a_dot(
    session: Session, work: Path, path: str | Path, many: bool
) -> None:
    with session.watch(session.assistant("x"), [path] if many else path):
        (work / "Makefile").write_text("one\n")
    assert [step.path for step in session.undo(dry_run=True).steps] == ["Makefile"]
    session.undo(file=f"./{path}")
    assert (work / "Makefile").read_text() == "zero\n"


def test_a_root_that_is_reached_by_a_link_is_the_same(session: Session, work: Path, tmp_path: Path) -> None:
    linked = tmp_path / "link" / "work"
    for root, path in ((linked, linked), (work, linked), (linked, work), (work, work), (None, linked)):
        with session.watch(session.assistant("x"), [path / "Makefile"], root=root):
            (work / "Makefile").write_text("one\n")
        session.undo(file=str(path / "Makefile"), root=root)
        assert (work / "Makefile").read_text() == "zero\n"


@pytest.mark.parametrize("path", ["../x", "sub/../../x", "/etc/passwd", "", "."])
def test_R01_what_is_not_below_the_root_is_refused(session: Session, path: str) -> None:
    with pytest.raises(PathRefused):
        session.watch(session.assistant("x"), [path])


def test_a_link_in_the_workspace_is_not_taken_for_what_it_leads_to(session: Session, work: Path) -> None:
    (work / "alias").symlink_to("Makefile")
    with session.watch(session.assistant("x"), [work / "alias"]):
        (work / "alias").unlink()
    session.undo()
    assert (work / "alias").readlink() == Path("Makefile")
