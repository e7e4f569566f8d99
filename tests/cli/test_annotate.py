"""clew annotate: stars, labels and notes are set, found, filtered and kept, whatever happens to the session's files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from clew.annotations import Annotations
from clew.catalog.database import catalog_folder
from clew.host import data_dir
from clew.store import Store
from tests.catalog.worlds import append, claude_lines, spelled, write_claude
from tests.cli.running import FORKED, LATEST, clew
from tests.redact.planted import Planter

SESSION = "0a0a0a0a-1111-4111-8111-111111111111"
OTHER = "0b0b0b0b-1111-4111-8111-111111111111"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_claude(tmp_path / "home", SESSION, 8)
    write_claude(tmp_path / "home", OTHER, 8, seed=1)
    return tmp_path / "home"


def annotate(home: Path, *words: str) -> Any:
    done = clew("--home", home, "annotate", *words, "--json")
    assert done.code == 0, done.err
    return done.json


def listed(home: Path, *options: str) -> list[str]:
    return sorted(row["id"] for row in clew("--home", home, "list", "--json", *options).json)


def test_a_session_and_a_message_are_annotated(demo: Path) -> None:
    row = annotate(demo, "set", LATEST[:8], "--star", "--label", "Sea", "--note", "see below")
    assert (row["reference"], row["starred"], row["labels"]) == (f"claude-code:{LATEST}", True, ["Sea"])
    message = annotate(demo, "set", f"{LATEST}#2", "--label", "sea", "--label", "salt")
    assert message["message"] == 2 and message["message_id"] and message["labels"] == ["salt", "Sea"]
    assert [row["message"] for row in annotate(demo, "show", LATEST)] == [None, 2]
    assert [row["message"] for row in annotate(demo, "show", f"{LATEST}#2")] == [2]
    shown = clew("--home", demo, "annotate", "show", LATEST).out
    assert shown == f"★ claude-code:{LATEST}: Sea\n  see below\nclaude-code:{LATEST}#2: salt, Sea\n"
    rows = annotate(demo, "list")
    assert [(row["message"], row["in_catalog"], bool(row["title"])) for row in rows] == [
        (None, True, True),
        (2, True, True),
    ]


def test_annotations_are_removed(demo: Path) -> None:
    annotate(demo, "set", LATEST, "--star", "--label", "sea", "--note", "n")
    row = annotate(demo, "set", LATEST, "--no-star", "--remove-label", "SEA", "--note", "")
    assert (row["starred"], row["labels"], row["note"], row["changed_at"]) == (False, [], "", None)
    done = clew("--home", demo, "annotate", "list")
    assert (done.code, done.out) == (1, "") and "no stars, labels or notes yet" in done.err
    assert clew("--home", demo, "annotate", "show", LATEST).code == 1


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (["set", LATEST], 2, "nothing to set"),
        (["set", "no-such-session", "--star"], 1, "no session matches"),
        (["set", f"{LATEST}#99999", "--star"], 1, "has no message 99999"),
        (["set", f"{FORKED}@main", "--star"], 2, "names a branch"),
        (["set", LATEST, "--label", "a\x1bb"], 2, "control or invisible"),
        (["set", LATEST, "--note", "x" * 10_001], 2, "at most 10,000"),
        (["show", "no-such-session"], 1, "no session matches"),
        (["list", "--label", "none"], 1, "no stars, labels or notes match --label none"),
        (["import", "/no/such/file"], 2, "does not exist"),
    ],
)
def test_what_cannot_be_done_is_refused(demo: Path, words: list[str], code: int, reason: str) -> None:
    done = clew("--home", demo, "annotate", *words)
    assert (done.code, done.out) == (code, "") and reason in done.err
    assert Annotations().all() == []


def test_the_list_is_filtered(place: Path) -> None:
    annotate(place, "set", SESSION, "--star")
    annotate(place, "set", f"{SESSION}#2", "--label", "sea")
    annotate(place, "set", OTHER, "--label", "sea", "--label", "salt")

    def references(*options: str) -> list[tuple[str, int | None]]:
        return sorted(
            (row["session"], row["message"] or 0)
            for row in clew("--home", place, "annotate", "list", "--json", *options).json
        )

    assert references("--starred") == [(SESSION, 0)]
    assert references("--label", "SEA") == [(SESSION, 2), (OTHER, 0)]
    assert references("--label", "sea", "--label", "salt") == [(OTHER, 0)]
    assert len(references("--agent", "claude", "--project", "loom")) == 3
    assert references("--agent", "codex") == references("--project", "elsewhere") == []


def test_filters_choose_sessions_by_their_own_and_their_messages_annotations(place: Path) -> None:
    annotate(place, "set", f"{SESSION}#3", "--star", "--label", "sea")
    annotate(place, "set", OTHER, "--label", "sea")
    assert listed(place, "--starred") == [SESSION]
    assert listed(place, "--label", "Sea") == [SESSION, OTHER]
    done = clew("--home", place, "list", "--label", "sea", "--label", "none", "--starred")
    assert done.code == 1 and "no sessions match --starred --label sea --label none" in done.err


def test_a_list_shows_stars_and_labels_of_sessions(place: Path) -> None:
    annotate(place, "set", SESSION, "--star", "--label", "sea")
    annotate(place, "set", f"{OTHER}#3", "--star")
    rows = {row["id"]: (row["starred"], row["labels"]) for row in clew("--home", place, "list", "--json").json}
    assert rows == {SESSION: (True, ["sea"]), OTHER: (False, [])}
    text = clew("--home", place, "list").out
    assert [line.split()[0] for line in text.splitlines() if "★" in line] == [SESSION[:8]]


def test_text_is_masked_and_json_is_not(demo: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    done = clew("--home", demo, "annotate", "set", LATEST, "--note", f"token {secret}", "--label", f"k {secret}")
    assert secret not in done.out + done.err and "REDACTED" in done.out
    for words in (["show", LATEST], ["list"], ["list", "--json", "--redact", "secrets"], ["export", "--redact", "all"]):
        assert secret not in clew("--home", demo, "annotate", *words).out
    assert annotate(demo, "list")[0]["note"] == f"token {secret}"


def test_secrets_of_the_session_are_masked_in_its_note(tmp_path: Path) -> None:
    word = Planter("note").github()[4:20]
    with Store(tmp_path).session("s") as session:
        session.user(f"export DB_PASSWORD={word}")
    note = f"use {word} here"
    assert annotate(tmp_path, "set", "s", "--note", note)["note"] == note
    assert word not in clew("--home", tmp_path, "annotate", "show", "s").out


def test_an_export_is_imported(demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    annotate(demo, "set", LATEST, "--star", "--note", "n")
    file = tmp_path / "mine.json"
    assert clew("annotate", "export", "-o", file).code == 0
    assert clew("annotate", "export", "-o", file).code == 6
    assert clew("annotate", "export", "-o", file, "--force", "--json").json == {"path": str(file), "annotations": 1}
    assert clew("annotate", "export").json["annotations"] == json.loads(file.read_text())["annotations"]
    monkeypatch.setenv("CLEW_DATA_DIR", str(tmp_path / "other"))
    assert clew("annotate", "import", file, "--dry-run", "--json").json["added"] == 1
    assert clew("annotate", "list").code == 1
    assert clew("annotate", "import", file).err == "1 added, 0 changed, 0 unchanged\n"
    assert clew("annotate", "import", file, "--json").json == {
        "added": 0,
        "changed": 0,
        "unchanged": 1,
        "dry_run": False,
    }
    (row,) = annotate(demo, "list")
    assert row["note"] == "n" and row["in_catalog"]
    file.write_text("{}")
    assert clew("annotate", "import", file).code == 4


def test_annotations_survive_whatever_happens_to_the_session(place: Path) -> None:
    path = place / ".claude/projects/-home-mira-loom" / f"{SESSION}.jsonl"
    annotate(place, "set", SESSION, "--star")
    annotate(place, "set", f"{SESSION}#3", "--label", "sea")

    def check() -> None:
        assert listed(place, "--starred") == listed(place, "--label", "sea") == [SESSION]
        assert [(row["message"], row["in_catalog"]) for row in annotate(place, "list")] == [(None, True), (3, True)]

    append(path, spelled(claude_lines(SESSION, 8, 4)))
    assert clew("--home", place, "sync").code == 0
    check()
    shutil.rmtree(catalog_folder([place]))
    check()
    assert clew("--home", place, "sync", "--full").code == 0
    assert clew("--home", place, "doctor", "--fix").code == 0
    check()
    moved = path.parent.with_name("-home-mira-elsewhere") / path.name
    moved.parent.mkdir()
    path.rename(moved)
    check()
    # A record before the annotated message: its index changes, its id does not.
    first, *others = moved.read_bytes().splitlines(keepends=True)
    moved.write_bytes(
        first
        + spelled(claude_lines("0c0c0c0c-1111-4111-8111-111111111111", 0, 1)).replace(
            b"0c0c0c0c-1111-4111-8111-111111111111", SESSION.encode()
        )
        + b"".join(others)
    )
    assert clew("--home", place, "sync").code == 0
    assert [row["message"] for row in annotate(place, "list")] == [None, 4]


def test_annotations_of_a_deleted_session_are_kept(place: Path) -> None:
    path = place / ".claude/projects/-home-mira-loom" / f"{SESSION}.jsonl"
    annotate(place, "set", f"{SESSION}#3", "--label", "sea")
    before = annotate(place, "list")
    assert clew("--home", place, "archive").code == 0
    assert clew("--home", place, "sync").code == 0
    path.unlink()
    assert clew("--home", place, "sync").code == 0
    assert annotate(place, "list") == before
    added = annotate(place, "set", f"{SESSION}#3", "--star")
    assert added["message_id"] == before[0]["message_id"] and added["labels"] == ["sea"]
    assert clew("--home", place, "archive", "restore", SESSION, "--in-place").code == 0
    assert listed(place, "--starred") == [SESSION]


def test_an_annotation_without_a_session_is_listed_and_can_be_removed(place: Path) -> None:
    annotate(place, "set", f"{SESSION}#3", "--label", "sea")
    shutil.rmtree(place / ".claude")
    shutil.rmtree(catalog_folder([place]))
    (row,) = annotate(place, "list")
    assert (row["reference"], row["in_catalog"], row["title"]) == (f"claude-code:{SESSION}#3", False, None)
    assert "(not in the catalog)" in clew("--home", place, "annotate", "list").out
    assert annotate(place, "show", f"{SESSION[:8]}#3")[0]["labels"] == ["sea"]
    annotate(place, "set", f"claude:{SESSION}#3", "--remove-label", "sea")
    assert Annotations().all() == []


def test_erase_deletes_the_annotations_of_what_it_erases(tmp_path: Path) -> None:
    for name in ("s", "other"):
        with Store(tmp_path).session(name) as session:
            session.user("first", uuid=f"{name}-1")
            session.user("second", uuid=f"{name}-2")
        annotate(tmp_path, "set", name, "--note", f"about {name}")
        annotate(tmp_path, "set", f"{name}#1", "--note", "quotes the quahog")
        annotate(tmp_path, "set", f"{name}#2", "--star")
    assert clew("--home", tmp_path, "erase", "s", "s-1").code == 0
    assert len(Annotations().all()) == 6
    assert clew("--home", tmp_path, "erase", "s", "s-1", "--yes").code == 0
    assert [found.message_id for found in Annotations().of_session("sage-agent", "s")] == [None, "s-2"]
    assert clew("--home", tmp_path, "erase", "s", "--yes").code == 0
    assert {found.session for found in Annotations().all()} == {"other"}
    assert clew("--home", tmp_path, "erase", "other", "--yes").code == 0
    assert b"quahog" not in Annotations().path.read_bytes()


def test_erase_says_if_annotations_could_not_be_deleted(tmp_path: Path) -> None:
    with Store(tmp_path).session("s") as session:
        session.user("first")
    Annotations().path.parent.mkdir(parents=True, exist_ok=True)
    Annotations().path.write_bytes(b"damaged" * 1000)
    done = clew("--home", tmp_path, "erase", "s", "--yes")
    assert "not erased: stars, labels and notes in" in done.err


def test_a_damaged_file_stops_only_what_needs_it(demo: Path) -> None:
    damaged = b"this is not a database" * 100
    (data_dir() / "annotations.db").write_bytes(damaged)
    for words in (["list"], ["show", LATEST], ["stats"], ["search", "tide"]):
        assert clew("--home", demo, *words).code == 0
    assert "annotations.db" in clew("--home", demo, "list").err
    for words in (["list", "--starred"], ["annotate", "list"], ["annotate", "set", LATEST, "--star"]):
        done = clew("--home", demo, *words)
        assert done.code == 3 and "annotations.db" in done.err and "Traceback" not in done.err
    checked = clew("--home", demo, "doctor", "--fix", "--json")
    assert checked.code == 1 and "damaged-annotations" in {row["code"] for row in checked.json}
    assert (data_dir() / "annotations.db").read_bytes() == damaged
