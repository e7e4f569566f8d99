"""The times of converted sessions: those of the original, also where its records have none."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from clew.convert.prepare import prepare
from clew.host import Host
from clew.library import Library
from tests.cli.running import clew
from tests.receivers import RECEIVERS

SESSION = "11111111-2222-4333-8444-555555555555"
MODIFIED = 1_790_000_000
MODIFIED_DAY = "2026-09-21"
CONTINUE_SESSION = "c0111111-0000-4000-8000-000000000001"
CONTINUE_FIXTURES = Path(__file__).parents[1] / "fixtures" / "continue"


def write_session(home: Path, *times: str | None) -> None:
    """A session of Claude Code with a message for each of the times."""
    path = home / ".claude" / "projects" / "x" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    parent = None
    with path.open("w") as out:
        for number, time in enumerate(times):
            role = "assistant" if number % 2 else "user"
            message = {"role": role, "content": [{"type": "text", "text": f"message {number}"}]}
            record = {"type": role, "uuid": f"u{number}", "parentUuid": parent, "cwd": "/home/ada", "message": message}
            out.write(json.dumps(record if time is None else record | {"timestamp": time}) + "\n")
            parent = f"u{number}"
    os.utime(path, (MODIFIED, MODIFIED))


def convert(source: Path, session: str, target: str, home: Path) -> dict[str, Any]:
    done = clew("--home", source, "convert", session, "--to", target, "--home", home, "--allow-loss", "--json")
    assert done.code == 0, done.err
    found: dict[str, Any] = done.json
    return found


@pytest.mark.parametrize("target", [target for target in RECEIVERS if target != "claude-code"])
@pytest.mark.parametrize("times", [(None, None), ("yesterday", "2026-99-99T99:99:99.000Z")], ids=["none", "invalid"])
def test_a_session_without_valid_times_gets_that_of_its_file(
    tmp_path: Path, target: str, times: tuple[str | None, str | None]
) -> None:
    write_session(tmp_path / "home", *times)
    converted = convert(tmp_path / "home", SESSION, target, tmp_path / "out")
    note = ["it records no valid one; the modification time of its file is used"]
    assert [loss["why"] for loss in converted["losses"] if loss["what"] == "the time of the session"] == note
    for file in map(Path, converted["files"]):
        assert "1970" not in file.name
        assert all(b"1970-01-01" not in line for line in file.read_bytes().splitlines() if b"clew-origin" not in line)
    (row,) = clew("list", "--home", tmp_path / "out", "--json").json
    assert row["started_at"].startswith(MODIFIED_DAY)
    document = clew("--home", tmp_path / "out", "export", row["id"]).json
    assert {message["timestamp"][:10] for message in document["messages"] if "timestamp" in message} <= {MODIFIED_DAY}


@pytest.mark.parametrize("target", [target for target in RECEIVERS if target != "claude-code"])
def test_a_message_with_an_invalid_time_has_that_of_the_message_before(tmp_path: Path, target: str) -> None:
    write_session(tmp_path / "home", "2026-05-04T10:00:00.000Z", "2026-99-99T99:99:99.000Z")
    converted = convert(tmp_path / "home", SESSION, target, tmp_path / "out")
    assert not [loss for loss in converted["losses"] if loss["what"] == "the time of the session"]
    document = clew("--home", tmp_path / "out", "export", converted["session_id"]).json
    assert {message["timestamp"][:10] for message in document["messages"] if "timestamp" in message} <= {"2026-05-04"}


@pytest.mark.parametrize("is_listed", [True, False])
def test_the_list_of_continue_has_the_entry_of_a_session_that_comes_back(tmp_path: Path, is_listed: bool) -> None:
    folder = tmp_path / "home" / ".continue" / "sessions"
    folder.mkdir(parents=True)
    document = json.loads((CONTINUE_FIXTURES / f"{CONTINUE_SESSION}.json").read_text())
    main = folder / f"{CONTINUE_SESSION}.json"
    main.write_text(json.dumps(document | {"title": "The bell"}))
    os.utime(main, (MODIFIED, MODIFIED))
    entry = {
        "sessionId": CONTINUE_SESSION,
        "title": "The bell",
        "workspaceDirectory": document["workspaceDirectory"],
        "dateCreated": f"{MODIFIED}000",
    }
    if is_listed:
        entry |= {"dateCreated": "1793520000123", "messageCount": 5}
        (folder / "sessions.json").write_text(json.dumps([entry]))
    there = convert(tmp_path / "home", CONTINUE_SESSION, "codex", tmp_path / "there")
    convert(tmp_path / "there", there["session_id"], "continue", tmp_path / "back")
    (restored,) = json.loads((tmp_path / "back" / ".continue" / "sessions" / "sessions.json").read_text())
    assert restored == entry


def test_a_session_without_any_time_gets_that_of_the_conversion(tmp_path: Path) -> None:
    write_session(tmp_path / "home", None)
    (found,) = Library(Host.at(tmp_path / "home")).sources()
    source = msgspec.structs.replace(found.source, mtime=0.0)
    prepared = prepare(found.agent, source, "codex", now=lambda: datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC))
    assert "it records no valid one; the time of the conversion is used" in [loss.why for loss in prepared.losses]
    converted = Path(prepared.write(tmp_path / "out", allow_loss=True).files[0])
    assert "2026-03-04T05:06:07" in converted.read_text()
