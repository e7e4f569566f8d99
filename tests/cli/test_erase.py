"""clew erase: what is erased is in no file of the store or of clew's own folder any more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from clew.catalog.search import Request, Searcher, unmasked
from clew.catalog.sync import move_aside
from clew.store import Store
from tests.cli.running import clew
from tests.demo_home import write_small_demo
from tests.store.support import assert_whole, lines, log_of

WORD, KEPT, BODY = "quahog", "periwinkle", b"scallop scallop scallop\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("CLEW_DATA_DIR", str(tmp_path / "data"))
    (work / "shell.txt").write_bytes(BODY)
    with Store(home).session("s") as session:
        session.user(f"my secret is {WORD}", uuid="secret-1")
        with session.watch(session.assistant(f"I see, {WORD}.", uuid="secret-2"), ["shell.txt"]):
            (work / "shell.txt").write_bytes(b"other\n")
        session.user(f"and {KEPT}", uuid="kept")
    with Store(home).session("other") as session:
        session.user(f"another {KEPT}")
    (work / "shell.txt").unlink()
    return home


def holding(word: str, *folders: Path) -> list[str]:
    """The files that hold a word, as bytes."""
    return [str(path) for path in _files(folders) if word.encode() in path.read_bytes()]


def _files(folders: tuple[Path, ...]) -> Iterator[Path]:
    return (path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file())


def found(home: Path, word: str) -> int:
    return int(clew("search", word, "--home", home, "--json").json["total"])


def test_S17_without_write_nothing_is_changed(place: Path) -> None:
    before = {path: path.read_bytes() for path in _files((place,))}
    done = clew("erase", "s", "secret-1", "--home", place)
    assert done.code == 0 and "nothing was changed" in done.err
    assert clew("erase", "s", "--home", place, "--json").json["erased"] is False
    assert {path: path.read_bytes() for path in _files((place,))} == before


@pytest.mark.slow
@pytest.mark.parametrize("names", [("secret-1", "secret-2"), ("#1", "#2"), ("secret-2", "#1")])
def test_S17_messages_are_gone_from_every_file(place: Path, names: tuple[str, ...]) -> None:
    data = place.parent / "data"
    assert clew("sync", "--home", place).code == 0
    assert holding(WORD, place)
    done = clew("erase", "s", *names, "--home", place, "--write")
    assert (done.code, done.err) == (0, "")
    assert sorted(done.out.splitlines()[:2]) == ["secret-1", "secret-2"]
    assert done.out.splitlines()[2] == "of session s: 4 records, 2 files"
    assert holding(WORD, place, data) == []
    assert len(list((place / ".sage" / "sessions" / "s" / "backups").iterdir())) == 0
    assert [record["type"] for record in lines(log_of(place))] == ["erased", "erased", "user"]
    assert clew("sync", "--home", place).code == 0
    assert found(place, WORD) == 0 and found(place, KEPT) > 0
    assert holding(WORD, place, data) == []
    with Store(place).session("s") as session:
        assert session.path() == ["kept"] or session.head == "kept"
        session.user("goes on")
    assert_whole(place)


def test_S17_what_would_be_erased_is_shown(place: Path) -> None:
    done = clew("erase", "s", "#1", "secret-2", "--home", place)
    assert done.out.splitlines()[:2] == [
        f"secret-1  user: my secret is {WORD}",
        f"secret-2  assistant: I see, {WORD}.",
    ]


def test_S17_a_number_that_has_moved_erases_nothing(place: Path) -> None:
    assert clew("erase", "s", "#1", "--home", place, "--write").code == 0
    before = log_of(place).read_bytes()
    done = clew("erase", "s", "#1", "--home", place, "--write")
    assert done.code == 2 and "secret-2" in done.err
    assert log_of(place).read_bytes() == before
    assert "secret-2  assistant" in clew("erase", "s", "#1", "--home", place).out
    assert clew("erase", "s", "secret-2", "--home", place, "--write").code == 0


def test_S17_a_session_is_gone_with_all_its_files(place: Path) -> None:
    data = place.parent / "data"
    assert clew("sync", "--home", place).code == 0
    told = clew("erase", "s", "--home", place, "--write", "--json").json
    assert (told["erased"], told["records"], told["copies"]) == (True, 3, [])
    assert not (place / ".sage" / "sessions" / "s").exists()
    assert holding(WORD, place, data) == []
    assert clew("show", "s", "--home", place).code == 1
    assert clew("sync", "--home", place).code == 0
    assert found(place, WORD) == 0 and found(place, KEPT) > 0
    assert "s" not in [row["id"] for row in clew("list", "--home", place, "--json").json]


def test_S17_a_session_is_gone_with_the_title_that_the_user_gave_it(place: Path) -> None:
    data, title = place.parent / "data", "Quincunx of the tides"
    assert clew("annotate", "set", "s", "--title", title, "--home", place).code == 0
    assert title in clew("list", "--home", place).out
    assert clew("erase", "s", "--home", place, "--write").code == 0
    assert holding("Quincunx", place, data) == []


def test_S17_copies_that_cannot_be_reached_are_named(place: Path) -> None:
    data = place.parent / "data"
    rescue = data / "rescue" / "sage-agent-s-20260101"
    rescue.mkdir(parents=True)
    assert clew("archive", "--home", place).code == 0
    done = clew("erase", "s", "secret-1", "--home", place, "--write")
    assert f"not erased: {rescue}" in done.err and f"not erased: the archive {data / 'archive'}" in done.err
    (place / ".sage" / "sessions" / "s" / "quarantine.jsonl").write_text("{}\n")
    assert "quarantine.jsonl" in clew("erase", "s", "secret-2", "--home", place, "--write").err


def test_only_messages_of_the_own_store_are_erased(place: Path, tmp_path: Path) -> None:
    assert clew("erase", "s", "main", "--home", place, "--write").code == 2
    assert clew("erase", "s", "nothing", "--home", place, "--write").code == 1
    assert clew("erase", "s#1", "--home", place, "--write").code == 2
    write_small_demo(tmp_path / "demo")
    done = clew("erase", "claude-code:@last", "--home", tmp_path / "demo", "--write")
    assert done.code == 2 and "not of clew's own store; --home DIR" in done.err
    assert len(lines(log_of(place))) == 3 and len(holding(KEPT, place)) >= 2


def test_a_snapshot_that_names_the_log_as_its_backup_erases_one_message(place: Path) -> None:
    folder = log_of(place).parent
    record = {"type": "file_history_snapshot", "messageId": "secret-1", "timestamp": "2026-01-01T00:00:00Z"}
    backups = {name: {"backupPath": name} for name in ("messages.jsonl", "./metadata.json", "../other/messages.jsonl")}
    with (folder / "snapshots.jsonl").open("a") as log:
        log.write(json.dumps({**record, "snapshot": {"trackedFiles": {}, "fileBackups": backups}}) + "\n")
    done = clew("erase", "s", "secret-1", "--home", place, "--write")
    assert done.code == 0
    assert f"not erased: {folder / 'messages.jsonl'}, named by a snapshot" in done.err
    assert [record["type"] for record in lines(log_of(place))] == ["erased", "assistant", "user"]
    assert (folder / "metadata.json").exists() and len(lines(log_of(place, "other"))) == 1


def test_S17_a_session_is_gone_from_the_catalogs_of_other_homes(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = place.parent / "data"
    monkeypatch.setenv("HOME", str(place))
    assert clew("sync").code == 0
    assert clew("sync", "--home", place).code == 0
    assert len(list(data.glob("catalog*/catalog.sqlite"))) == 2
    assert clew("erase", "s", "--write", "--home", place).code == 0
    for folder in data.glob("catalog*"):
        searcher = Searcher(folder, unmasked)
        assert searcher.search(Request(WORD)).total == 0 < searcher.search(Request(KEPT)).total
        searcher.close()


def test_S17_a_catalog_that_was_moved_aside_is_named(place: Path) -> None:
    data = place.parent / "data"
    assert clew("sync", "--home", place).code == 0
    (catalog,) = data.glob("catalog-*")
    aside = move_aside(catalog)
    done = clew("erase", "s", "--write", "--home", place)
    assert done.code == 0 and f"the catalog {aside}, which is no longer used" in done.err


def test_a_session_whose_messages_were_all_erased_is_not_called_empty(tmp_path: Path) -> None:
    with Store(tmp_path).session("s") as session:
        session.user("one", uuid="m1")
    assert clew("--home", tmp_path, "erase", "s", "m1", "--write").code == 0
    done = clew("--home", tmp_path, "validate", "s")
    assert done.code == 0 and "empty" not in done.out + done.err


@pytest.mark.parametrize("names", [(), ("secret-1",), ("#2",), ("2", "1"), ("1", "2", "3")])
def test_the_preview_counts_what_is_erased(place: Path, names: tuple[str, ...]) -> None:
    preview = clew("erase", "s", *names, "--home", place, "--json").json
    erased = clew("erase", "s", *names, "--home", place, "--json", "--write").json
    counts = ("messages", "records", "files")
    assert [preview[name] for name in counts] == [erased[name] for name in counts]


def test_a_number_that_also_begins_a_uuid_is_not_guessed(tmp_path: Path) -> None:
    with Store(tmp_path).session("s") as session:
        for number in range(1001):
            session.user("x", uuid=f"{number:04}-abc")
    done = clew("erase", "s", "1000", "--home", tmp_path)
    assert done.code != 0 and "names several messages" in done.err
    assert clew("erase", "s", "#1000", "--home", tmp_path, "--json").json["messages"] == ["0999-abc"]
