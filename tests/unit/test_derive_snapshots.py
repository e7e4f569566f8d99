"""File snapshots of both spellings, as one model."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from clew.analysis.snapshots import merge_snapshots, snapshots, snapshots_by_message
from clew.model import Snapshot, TrackedFile
from tests.unit.samples import Record, claude_line, read_lines, seed

TIME = "2026-01-01T10:00:00.000Z"


def claude(message: str, prompt: str, files: dict[str, Any], is_update: bool) -> Record:
    snapshot = {"messageId": prompt, "trackedFileBackups": files, "timestamp": TIME}
    return {"type": "file-history-snapshot", "messageId": message, "snapshot": snapshot, "isSnapshotUpdate": is_update}


def backup(name: str | None, version: int = 1) -> Record:
    return {"backupFileName": name, "version": version, "backupTime": TIME}


def sage(stated: Record) -> Record:
    """The record of seed 001 as its reader gives it."""
    tracked, backups = stated["snapshot"]["trackedFiles"], stated["snapshot"]["fileBackups"]
    files: dict[str, Record] = {}
    for path, file in tracked.items():
        files[path] = {
            "original_content": file["originalContent"],
            "content_hash": file["contentHash"],
            "size": file["size"],
            "state": file["state"],
        }
    for path, file in backups.items():
        files.setdefault(path, {}).update(backup=file["backupPath"], original_hash=file["originalHash"])
    snapshot = {"message_uuid": stated["messageId"], "is_update": stated["isSnapshotUpdate"], "files": files}
    return {
        "after": 2,
        "kind": "snapshot",
        "type": stated["type"],
        "timestamp": stated["timestamp"],
        "snapshot": snapshot,
    }


@pytest.mark.seed("SX-1", "S1-13", "S1-14", "S1-15", "S1-16")
def test_both_spellings_are_one_model(tmp_path: Path) -> None:
    theirs = claude("m1", "m1", {"a.py": backup("71a5@v1")}, False)
    read = read_lines(tmp_path, theirs, claude_line("user", "m1", None))
    (one,) = snapshots(read.records)
    (two,) = snapshots([sage(seed("seed-001/file_history_snapshot"))])
    assert one == Snapshot(
        message_uuid="m1",
        timestamp=TIME,
        is_update=False,
        files={"a.py": TrackedFile(backup="71a5@v1", version=1, time=TIME)},
    )
    assert two.message_uuid == "550e8400-e29b-41d4-a716-446655440001"
    assert two.timestamp == "2025-12-21T01:30:05.500Z"
    assert two.files == {
        "weather_app/index.html": TrackedFile(original_content=None, content_hash="abc123", size=0, state="created"),
        "weather_app/style.css": TrackedFile(backup=".sage/backups/style.css.backup", original_hash="def456"),
    }


def test_updates_and_deltas_join_the_snapshot_of_their_prompt(tmp_path: Path) -> None:
    delta = {
        "type": "file-history-delta",
        "messageId": "a2",
        "snapshotMessageId": "p1",
        "trackingPath": "c.py",
        "backup": backup(None),
        "timestamp": TIME,
    }
    read = read_lines(
        tmp_path,
        claude("p1", "p1", {"a.py": backup("a@v1")}, False),
        claude_line("user", "p1", None),
        claude("a1", "p1", {"a.py": backup("a@v1"), "b.py": backup("b@v1")}, True),
        delta,
        claude("p2", "p2", {"a.py": backup("a@v2", 2), "b.py": backup("b@v1")}, False),
        claude_line("user", "p2", "p1"),
    )
    assert [snapshot.is_update for snapshot in snapshots(read.records)] == [False, True, True, False]
    merged = snapshots_by_message(read.records)
    assert list(merged) == ["p1", "p2"]
    assert {path: file.backup for path, file in (merged["p1"].files or {}).items()} == {
        "a.py": "a@v1",
        "b.py": "b@v1",
        "c.py": None,
    }
    assert merged["p1"].is_update is False
    assert (merged["p2"].files or {})["a.py"].version == 2


def test_a_correction_keeps_the_state_before() -> None:
    first = Snapshot(files={"a": TrackedFile(original_hash="old", content_hash="one", state="modified", size=1)})
    later = Snapshot(is_update=True, files={"a": TrackedFile(original_hash="one", content_hash="two", state="deleted")})
    merged = merge_snapshots(first, later)
    assert merged.files == {"a": TrackedFile(original_hash="old", content_hash="two", state="deleted")}
    assert first.files == {"a": TrackedFile(original_hash="old", content_hash="one", state="modified", size=1)}


@pytest.mark.seed("S1-15")
@pytest.mark.parametrize(
    ("first", "last", "both"),
    [
        ("created", "modified", "created"),
        ("created", "deleted", "unchanged"),
        ("deleted", "created", "modified"),
        ("modified", "deleted", "deleted"),
        ("modified", "unchanged", "modified"),
        ("unchanged", "modified", "modified"),
    ],
)
def test_states_of_two_steps_join(first: str, last: str, both: str) -> None:
    one = Snapshot(files={"a": TrackedFile(state=first)})
    two = Snapshot(is_update=True, files={"a": TrackedFile(state=last)})
    assert merge_snapshots(one, two).files == {"a": TrackedFile(state=both)}


@pytest.mark.seed("S1-23")
def test_maps_may_be_empty_or_absent() -> None:
    record = {"after": 0, "kind": "snapshot", "type": "file_history_snapshot", "message_uuid": "m1", "snapshot": {}}
    (snapshot,) = snapshots([record])
    assert snapshot.files is UNSET
    assert snapshots_by_message([record])["m1"].files == {}


def test_what_is_no_snapshot_is_passed_over() -> None:
    records = [
        {"after": 0, "kind": "title", "text": "x"},
        {"after": 0, "kind": "snapshot"},
        {"after": 0, "kind": "snapshot", "snapshot": {"files": 3}},
        {"after": 0, "kind": "snapshot", "extensions": {"claude-code": {"rest": {"trackingPath": "a", "backup": 1}}}},
    ]
    assert list(snapshots(records)) == []
