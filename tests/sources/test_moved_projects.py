"""Where moved projects are, and under which paths sessions know them."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.errors import SourceUnreadable, UnknownReference, UsageError
from clew.host import data_dir
from clew.sources.moved_projects import FILE, add, current_path, load, recorded_paths, remove

MOVED = {"/old/tide": "/new/tide", "/older": "/old/tide/lib"}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/old/tide", "/new/tide"),
        ("/old/tide/a.py", "/new/tide/a.py"),
        ("/old/tide-2", "/old/tide-2"),
        ("/older/b.py", "/new/tide/lib/b.py"),
        ("/new/tide", "/new/tide"),
        ("relative", "relative"),
    ],
)
def test_where_a_recorded_path_is_now(path: str, expected: str) -> None:
    assert current_path(path, MOVED) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/new/tide", ["/new/tide", "/old/tide", "/older"]),
        ("/new/tide/a.py", ["/new/tide/a.py", "/old/tide/a.py"]),
        ("/new/tide/lib/b.py", ["/new/tide/lib/b.py", "/old/tide/lib/b.py", "/older/b.py"]),
        ("/new", ["/new", "/old/tide", "/older"]),
        ("/new/tide-2", ["/new/tide-2"]),
    ],
)
def test_the_paths_that_sessions_know(path: str, expected: list[str]) -> None:
    assert recorded_paths(path, MOVED) == expected


def test_mappings_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "new").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load() == {}
    assert add("old/", "new") == (f"{tmp_path}/old", f"{tmp_path}/new")
    assert add("C:\\Users\\Ada\\tide", ".") == ("C:/Users/Ada/tide", str(tmp_path))
    assert load() == {f"{tmp_path}/old": f"{tmp_path}/new", "C:/Users/Ada/tide": str(tmp_path)}
    assert remove("old") == f"{tmp_path}/new"
    with pytest.raises(UnknownReference, match="old is not mapped"):
        remove("old")


def test_what_cannot_be_mapped(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    (tmp_path / "other").mkdir()
    with pytest.raises(SourceUnreadable, match="no such folder"):
        add("/old", str(tmp_path / "missing"))
    for old, new in ((one, one), (one, tmp_path), (tmp_path, one)):
        with pytest.raises(UsageError, match="must not contain each other"):
            add(str(old), str(new))
    add(str(one), str(two))
    with pytest.raises(UsageError, match=f"{one} is mapped to {two}"):
        add(str(two), str(one))
    add(str(one), str(two))
    with pytest.raises(UsageError, match=f"clew sources unmap {one}"):
        add(str(one), str(tmp_path / "other"))
    assert load() == {str(one): str(two)}


def test_mappings_that_lead_in_a_circle_are_refused(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one / "sub", two / "sub"):
        folder.mkdir(parents=True)
    add(str(one), str(two))
    with pytest.raises(UsageError, match=f"clew sources unmap {one}"):
        add(str(two), str(one / "sub"))
    remove(str(one))
    add(str(one / "sub"), str(two / "sub"))
    with pytest.raises(UsageError, match="would lead back to itself"):
        add(str(two), str(one))
    assert load() == {str(one / "sub"): str(two / "sub")}


@pytest.mark.parametrize("moved", [{"/a": "/b", "/b": "/a/sub"}, {"/a/s": "/b", "/b": "/a"}, {"/a": "/b", "/b": "/a"}])
def test_a_file_with_a_circle_stops_nothing(moved: dict[str, str]) -> None:
    for path in ("/a/f", "/b/f", "/a/s/f", "/b/s/f"):
        assert current_path(path, moved).endswith("/f")
        assert path in recorded_paths(path, moved)


def test_a_damaged_file_is_named() -> None:
    data_dir().mkdir(parents=True, exist_ok=True)
    (data_dir() / FILE).write_text("[1]")
    with pytest.raises(SourceUnreadable, match=r"moved_projects.json: .*correct or delete the file"):
        load()
