"""Stars, labels and notes: what is kept, compared, merged, and refused."""

from __future__ import annotations

import json
import multiprocessing
import os
import sqlite3
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from clew.annotations import (
    MAX_LABEL_CHARS,
    MAX_LABELS,
    MAX_NOTE_CHARS,
    MAX_TITLE_CHARS,
    Annotation,
    Annotations,
    AnnotationsUnreadable,
    Target,
    read_export,
)
from clew.errors import Busy, InvalidDocument, UsageError
from tests.killing import killed_at

SESSION = Target("codex", "0199")
MESSAGE = Target("codex", "0199", "msg_1", 4)
UNNAMED = Target("codex", "0199", None, 9)
MORNING, NOON = datetime(2026, 11, 3, 9, tzinfo=UTC), datetime(2026, 11, 3, 12, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Annotations:
    return Annotations(tmp_path / "data" / "annotations.db")


def test_nothing_is_written_before_the_first_annotation(store: Annotations) -> None:
    assert store.all() == [] and store.labels() == {} and store.get(SESSION).is_empty
    store.check()
    assert store.change(SESSION, starred=False, remove_labels=["bug"], note="").is_empty
    assert store.delete("codex", "0199") == 0
    assert store.merge([Annotation(agent="codex", session="0199", starred=True)], dry_run=True) == (1, 0, 0)
    assert not store.path.parent.exists()


def test_sessions_and_messages_have_annotations_of_their_own(store: Annotations) -> None:
    store.change(SESSION, starred=True, now=MORNING)
    store.change(MESSAGE, add_labels=["bug"], note=" see\r\nbelow ", now=NOON)
    store.change(UNNAMED, add_labels=["idea"])
    session, message, unnamed = store.of_session("codex", "0199")
    assert (session.target, session.starred, session.changed_at) == (SESSION, True, "2026-11-03T09:00:00Z")
    assert (message.target, message.labels, message.note) == (MESSAGE, ("bug",), "see\nbelow")
    assert (unnamed.target, unnamed.message_id) == (UNNAMED, None)
    assert [target.reference for target in (SESSION, MESSAGE)] == ["codex:0199", "codex:0199#4"]
    assert store.of_session("gemini", "0199") == []


def test_what_is_not_named_stays_and_an_empty_annotation_is_gone(store: Annotations) -> None:
    store.change(SESSION, starred=True, add_labels=["bug", "sea"], note="n")
    assert store.change(SESSION, remove_labels=["BUG"]).labels == ("sea",)
    assert store.change(SESSION, note="").starred
    assert store.change(SESSION, starred=False, remove_labels=["sea", "never there"]).is_empty
    assert store.all() == []


def test_an_unchanged_annotation_keeps_its_time(store: Annotations) -> None:
    store.change(SESSION, add_labels=["bug"], now=MORNING)
    assert store.change(SESSION, add_labels=["Bug"], now=NOON).changed_at == "2026-11-03T09:00:00Z"


def test_labels_are_compared_without_case_and_normalised(store: Annotations) -> None:
    store.change(SESSION, add_labels=["  Cafe\u0301   au lait "])
    assert store.get(SESSION).labels == ("Café au lait",)
    assert store.change(MESSAGE, add_labels=["CAFÉ AU  LAIT"]).labels == ("Café au lait",)
    assert [one.target for one in store.all(labels=["café au lait"])] == [SESSION, MESSAGE]
    assert store.labels() == {"Café au lait": 2}


@pytest.mark.parametrize(
    "label", ["", "  ", "a\x00b", "a\x1b[31mb", "a\u202eb", "\u200b", "a\udcffb", "x" * (MAX_LABEL_CHARS + 1)]
)
def test_a_label_that_is_not_one_is_refused(store: Annotations, label: str) -> None:
    with pytest.raises(UsageError, match="label"):
        store.change(SESSION, starred=True, add_labels=[label])
    assert store.all() == []


def test_the_longest_label_and_emoji_are_allowed(store: Annotations) -> None:
    labels = ["x" * MAX_LABEL_CHARS, "👩‍💻 work", "ünïcödé", "a/b: c"]
    assert set(store.change(SESSION, add_labels=labels).labels) == set(labels)


def test_the_number_of_labels_is_limited(store: Annotations) -> None:
    store.change(SESSION, add_labels=[str(number) for number in range(MAX_LABELS)])
    with pytest.raises(UsageError, match="at most 50 labels"):
        store.change(SESSION, add_labels=["one more"])
    assert len(store.get(SESSION).labels) == MAX_LABELS


@pytest.mark.parametrize("note", ["x" * (MAX_NOTE_CHARS + 1), "a\x00b", "a\x1b]0;title\x07", "a\udcffb"])
def test_a_note_that_is_too_long_or_not_text_is_refused(store: Annotations, note: str) -> None:
    with pytest.raises(UsageError, match="note"):
        store.change(SESSION, note=note)


def test_a_session_has_the_stars_and_labels_of_its_messages(store: Annotations) -> None:
    store.change(SESSION, add_labels=["sea"])
    store.change(MESSAGE, starred=True, add_labels=["salt"])
    store.change(Target("gemini", "g"), add_labels=["sea"])
    both = {("codex", "0199"), ("gemini", "g")}
    assert store.sessions(["Sea"]) == both
    assert store.sessions(["sea", "SALT"]) == store.sessions(starred=True) == {("codex", "0199")}
    assert store.sessions(["pepper"]) == set()


def test_the_file_is_private_and_deleted_notes_are_overwritten(store: Annotations) -> None:
    store.change(SESSION, note="periwinkle " * 200)
    store.change(MESSAGE, note="scallop " * 200)
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert store.delete("codex", "0199", ["msg_1"]) == 1
    assert b"scallop" not in store.path.read_bytes() and b"periwinkle" in store.path.read_bytes()
    assert store.delete("codex", "0199") == 1 and store.delete("codex", "0199") == 0
    assert b"periwinkle" not in store.path.read_bytes()


def test_a_deletion_includes_what_was_added_a_moment_ago(store: Annotations, monkeypatch: pytest.MonkeyPatch) -> None:
    store.change(SESSION, starred=True)
    read = Annotations.of_session

    def add_after_reading(self: Annotations, agent: str, session: str) -> list[Annotation]:
        found = read(self, agent, session)
        self.change(MESSAGE, note="added meanwhile")
        return found

    monkeypatch.setattr(Annotations, "of_session", add_after_reading)
    assert store.delete("codex", "0199") == 2
    assert store.all() == []


def _add_labels(path: Path, name: str, count: int) -> None:
    for number in range(count):
        Annotations(path).change(SESSION, add_labels=[f"{name}{number}"])


def test_two_processes_write_at_once(store: Annotations) -> None:
    start = multiprocessing.get_context("spawn").Process
    writers = [start(target=_add_labels, args=(store.path, name, 20)) for name in "ab"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
        assert writer.exitcode == 0
    assert len(store.get(SESSION).labels) == 40


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are killed at a chosen moment by fork alone")
def test_a_process_that_is_killed_leaves_the_old_or_the_new_annotation(store: Annotations) -> None:
    store.change(SESSION, note="old " * 500)
    connect = sqlite3.connect

    class Killable(sqlite3.Connection):
        def execute(self, *words: Any) -> sqlite3.Cursor:
            return super().execute(*words)

    for moment in range(1, 40):
        sqlite3.connect = lambda *words, **more: connect(*words, factory=Killable, **more)  # type: ignore[assignment]
        try:
            was_killed = killed_at(moment, lambda: store.change(SESSION, note="new " * 500), [(Killable, "execute")])
        finally:
            sqlite3.connect = connect
        store.check()
        assert store.get(SESSION).note.split()[0] in ("old", "new")
        if not was_killed:
            break
    assert moment > 5 and store.get(SESSION).note.startswith("new")


def test_a_busy_file_is_reported(store: Annotations, monkeypatch: pytest.MonkeyPatch) -> None:
    store.change(SESSION, starred=True)
    monkeypatch.setattr("clew.annotations.BUSY_TIMEOUT_SECONDS", 0.01)
    other = sqlite3.connect(store.path)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(Busy, match="another process"):
        store.change(SESSION, starred=False)
    other.close()
    assert store.get(SESSION).starred


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"SQLite format 3\0" + b"\xff" * 4000])
def test_a_damaged_file_is_reported_and_kept(store: Annotations, content: bytes) -> None:
    store.path.parent.mkdir()
    store.path.write_bytes(content)
    for work in (store.all, store.check, lambda: store.change(SESSION, starred=True)):
        with pytest.raises(AnnotationsUnreadable, match=r"annotations\.db"):
            work()
    assert store.path.read_bytes() == content


def test_a_damaged_row_is_reported(store: Annotations) -> None:
    store.change(SESSION, add_labels=["bug"])
    with sqlite3.connect(store.path) as db:
        db.execute("UPDATE annotation SET labels = '[1, '")
    db.close()
    with pytest.raises(AnnotationsUnreadable, match="damaged"):
        store.all()


VERSION_1 = Path(__file__).parent / "fixtures" / "annotations-1.db"
"""A file of version 1, in which times are microseconds."""


@pytest.mark.parametrize("is_change", [False, True])
def test_a_file_of_version_1_is_read_and_changed(store: Annotations, is_change: bool) -> None:
    store.path.parent.mkdir()
    store.path.write_bytes(VERSION_1.read_bytes())
    if is_change:
        store.change(UNNAMED, add_labels=["idea"])
    session, message = (found for found in store.of_session("codex", "0199") if found.target != UNNAMED)
    assert (session.target, session.starred, session.changed_at) == (SESSION, True, "2026-11-03T09:00:00Z")
    assert (message.target, message.labels, message.note) == (MESSAGE, ("bug",), "see\nbelow")
    assert message.changed_at == "2026-11-03T12:00:00.000001Z"
    store.check()
    assert store.change(MESSAGE, note="", now=NOON).changed_at == "2026-11-03T12:00:00Z"


def test_a_dry_run_leaves_a_file_of_version_1_as_it_is(store: Annotations) -> None:
    store.path.parent.mkdir()
    store.path.write_bytes(VERSION_1.read_bytes())
    assert store.merge([Annotation(agent="codex", session="0199", starred=True)], dry_run=True) == (0, 0, 1)
    assert store.path.read_bytes() == VERSION_1.read_bytes()


@pytest.mark.parametrize(
    "statement", ["PRAGMA user_version = 99", "PRAGMA user_version = 0", "PRAGMA application_id = 7"]
)
def test_a_file_of_a_newer_version_or_another_program_is_not_touched(store: Annotations, statement: str) -> None:
    store.change(SESSION, note="kept")
    db = sqlite3.connect(store.path)
    db.execute(statement)
    db.close()
    before = store.path.read_bytes()
    for work in (store.all, lambda: store.change(SESSION, note="")):
        with pytest.raises(AnnotationsUnreadable, match=r"newer version|unknown version|not a file"):
            work()
    assert store.path.read_bytes() == before


def test_a_file_whose_creation_was_cut_off_is_empty(store: Annotations) -> None:
    store.path.parent.mkdir()
    store.path.touch()
    assert store.all() == []
    assert store.change(SESSION, starred=True).starred


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_file_can_be_read(store: Annotations) -> None:
    store.change(SESSION, starred=True)
    store.path.chmod(0o400)
    assert store.get(SESSION).starred
    with pytest.raises(AnnotationsUnreadable):
        store.change(SESSION, starred=False)


def test_a_session_has_a_title_and_a_message_has_none(store: Annotations) -> None:
    store.change(SESSION, title="  Tide\n tables ", now=MORNING)
    assert store.get(SESSION).title == "Tide tables"
    assert store.index().titles == {("codex", "0199"): "Tide tables"}
    store.change(SESSION, starred=True)
    assert store.change(SESSION, title="").title == "" and store.index().titles == {}
    with pytest.raises(UsageError, match="only a session"):
        store.change(MESSAGE, title="Tide")
    for title in ("a" * (MAX_TITLE_CHARS + 1), "Tide\u202etables", "\x1b[31mred"):
        with pytest.raises(UsageError, match="a title has"):
            store.change(SESSION, title=title)


def test_a_file_without_titles_is_read_and_gets_them(store: Annotations) -> None:
    store.change(SESSION, note="kept")
    db = sqlite3.connect(store.path)
    db.executescript("ALTER TABLE annotation DROP COLUMN title; PRAGMA user_version = 2")
    db.close()
    assert store.get(SESSION).note == "kept"
    assert store.change(SESSION, title="Tide").title == "Tide"


@pytest.mark.parametrize("is_import_later", [True, False])
def test_a_merge_keeps_the_later_title(store: Annotations, tmp_path: Path, is_import_later: bool) -> None:
    other = Annotations(tmp_path / "other.db")
    store.change(SESSION, title="Here", now=MORNING)
    other.change(SESSION, title="There", now=NOON if is_import_later else datetime(2026, 11, 3, 8, tzinfo=UTC))
    store.merge(read_export(exported(other), "file"))
    assert store.get(SESSION).title == ("There" if is_import_later else "Here")
    store.change(SESSION, title="")
    store.merge(read_export(exported(other), "file"))
    assert store.get(SESSION).title == "There"


@pytest.mark.parametrize(
    "annotation",
    [
        Annotation(agent="codex", session="", starred=True),
        Annotation(agent="codex", session="s", labels=("bell\x07",)),
        Annotation(agent="codex", session="s", note="a\x00b"),
        Annotation(agent="codex", session="s", message=3, title="Tide"),
        Annotation(agent="codex", session="s", starred=True, changed_at="yesterday"),
    ],
)
def test_a_merge_refuses_what_an_import_refuses(store: Annotations, annotation: Annotation) -> None:
    with pytest.raises(UsageError):
        store.merge([Annotation(agent="codex", session="fine", starred=True), annotation])
    assert store.all() == []


def exported(store: Annotations) -> bytes:
    return json.dumps(store.export(NOON)).encode()


def test_an_export_restores_everything_and_changes_nothing_the_second_time(store: Annotations, tmp_path: Path) -> None:
    store.change(SESSION, starred=True, add_labels=["sea"], note="n\nm", now=MORNING)
    store.change(MESSAGE, add_labels=["salt"])
    store.change(UNNAMED, note="no id")
    other = Annotations(tmp_path / "other.db")
    found = read_export(exported(store), "e.json")
    assert other.merge(found, dry_run=True) == (3, 0, 0) and other.all() == []
    assert other.merge(found) == (3, 0, 0)
    assert other.all() == store.all()
    assert other.merge(found) == (0, 0, 3)
    assert other.export(NOON) == store.export(NOON)


@pytest.mark.parametrize("is_import_later", [True, False])
def test_a_merge_unites_stars_and_labels_and_keeps_the_later_note(store: Annotations, is_import_later: bool) -> None:
    times = (MORNING, NOON) if is_import_later else (NOON, MORNING)
    store.change(SESSION, add_labels=["Sea"], note="here", now=times[0])
    other = Annotations(store.path.with_name("other.db"))
    other.change(SESSION, starred=True, add_labels=["sea", "salt"], note="there", now=times[1])
    found = other.all()
    assert store.merge(found) == (0, 1, 0)
    merged = store.get(SESSION)
    assert (merged.starred, merged.labels) == (True, ("salt", "Sea"))
    assert merged.note == ("there" if is_import_later else "here")
    assert store.merge(found) == (0, 0, 1)
    assert other.merge(store.all()) in [(0, 1, 0), (0, 0, 1)]
    assert other.get(SESSION).note == merged.note


def test_a_merge_keeps_the_known_spelling_of_a_label(store: Annotations) -> None:
    store.change(SESSION, add_labels=["Sea"])
    imported = [
        Annotation(agent="codex", session="other", labels=("sea", "salt")),
        Annotation(agent="gemini", session="third", labels=("SALT",)),
    ]
    assert (store.merge(imported), store.merge(imported)) == ((2, 0, 0), (0, 0, 2))
    assert store.labels() == {"salt": 2, "Sea": 2}
    assert {label for found in store.all() for label in found.labels} == {"salt", "Sea"}


def test_a_merge_takes_annotations_without_a_time(store: Annotations) -> None:
    untimed = Annotation(agent="codex", session="0199", starred=True)
    assert (store.merge([untimed]), store.merge([untimed])) == ((1, 0, 0), (0, 0, 1))


def test_a_merge_never_removes_a_note(store: Annotations) -> None:
    store.change(SESSION, note="here", now=MORNING)
    assert store.merge([Annotation(agent="codex", session="0199", starred=True, changed_at="2027-01-01T00:00:00Z")])
    assert store.get(SESSION).note == "here"


VALID: dict[str, Any] = {"agent": "codex", "session": "0199", "labels": ["sea"]}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not an export"),
        (b"[1]", "not an export"),
        (b'{"annotations": []}', "not an export"),
        (b'{"clew_annotations": 2, "annotations": []}', "update clew"),
        ({"agent": 1}, r"\$\.annotations"),
        ({"agent": ""}, r"\$\.annotations\[0\]: an id"),
        ({"session": "x" * 1001}, "an id has"),
        ({"labels": ["a\x00"]}, "control"),
        ({"labels": [str(number) for number in range(51)]}, "at most 50"),
        ({"note": "x" * 10_001}, "at most 10,000"),
        ({"message_id": "m"}, "index"),
        ({"message": 0}, "index"),
        ({"changed_at": "soon"}, "time"),
        (b'{"clew_annotations": 1, "annotations": ' + b"[" * 100_000, "not an export"),
    ],
)
def test_a_file_that_is_no_export_is_refused_as_a_whole(content: bytes | dict[str, Any], reason: str) -> None:
    if isinstance(content, dict):
        content = json.dumps({"clew_annotations": 1, "annotations": [{**VALID, **content}, VALID]}).encode()
    with pytest.raises(InvalidDocument, match=reason):
        read_export(content, "e.json")


def test_an_export_may_have_fields_that_are_not_known() -> None:
    content = {"clew_annotations": 1, "more": 1, "annotations": [{**VALID, "colour": "red"}]}
    (found,) = read_export(json.dumps(content).encode(), "e.json")
    assert (found.labels, found.changed_at) == (("sea",), "1970-01-01T00:00:00Z")
