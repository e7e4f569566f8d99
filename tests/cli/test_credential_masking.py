"""What was read from a credential file is masked wherever the session repeats it, also when its file is gone."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from clew.catalog.database import DATABASE, catalog_folder
from tests.cli.running import clew
from tests.redact.planted import Planter

PLANT = Planter("credential masking")
SESSION = "2b12b43d-8dac-417e-8742-00000000000b"
FOLDER = "/home/ada/src/shop"
CALLS = {
    "Read": {"file_path": f"{FOLDER}/.env"},
    "Bash": {"command": f"cat {FOLDER}/.env", "description": "Show settings"},
}


def write_session(home: Path, value: str, tool: str, written: Path | None = None) -> Path:
    """Write a session that reads `.env` and later repeats one of its values without context, also in a file."""
    path = home / ".claude" / "projects" / FOLDER.replace("/", "-") / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    output = f"HARBOUR_MODE={value}\nPORT=8080\n"
    call = {"type": "tool_use", "id": "toolu_01abcd", "name": tool, "input": CALLS[tool]}
    result = {"type": "tool_result", "tool_use_id": "toolu_01abcd", "content": output}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "how is the harbour set up?"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": [{"type": "text", "text": f"The harbour runs as {value} today."}]},
    ]
    if written is not None:
        body = {"file_path": str(written), "content": f"start the {value} now\n"}
        messages.append(
            {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_02", "name": "Write", "input": body}]}
        )
        messages.append(
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_02", "content": "ok"}]}
        )
    lines = []
    for number, message in enumerate(messages):
        if message["role"] == "assistant":
            message |= {"id": f"msg_{number}", "type": "message", "model": "claude-sonnet-4-5"}
            message["usage"] = {"input_tokens": 5, "output_tokens": 7}
        lines.append(
            {
                "parentUuid": f"00000000-0000-4000-8000-00000000000{number - 1}" if number else None,
                "isSidechain": False,
                "cwd": FOLDER,
                "sessionId": SESSION,
                "version": "2.0.1",
                "gitBranch": "main",
                "type": message["role"],
                "uuid": f"00000000-0000-4000-8000-00000000000{number}",
                "timestamp": f"2026-10-20T10:00:0{number}.000Z",
                "message": message,
            }
        )
    lines[2]["toolUseResult"] = {"stdout": output, "stderr": "", "interrupted": False}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("tool", CALLS)
def test_a_value_of_a_credential_file_is_masked_in_search_and_show(tmp_path: Path, tool: str) -> None:
    value = PLANT.chars(5).lower() + "-quay"
    source = write_session(tmp_path, value, tool)
    commands = [
        ("search", "harbour"),
        ("search", "runs"),
        ("search", "--regex", "harbour runs"),
        ("search", "runs", "--json", "--redact", "secrets"),
        ("show", SESSION),
        ("show", SESSION, "--detail", "full"),
        ("show", SESSION, "--json", "--redact", "secrets"),
    ]
    assert clew("--home", tmp_path, "sync").code == 0
    for state in ("there", "gone"):
        for words in commands:
            done = clew("--home", tmp_path, *words)
            assert done.code == 0, (state, words, done.err)
            assert value not in done.out + done.err, (state, words)
        assert value in clew("--home", tmp_path, "search", "runs", "--json").out
        source.unlink(missing_ok=True)
        assert clew("--home", tmp_path, "sync").code == 0


def test_text_that_was_read_before_stays_masked_after_the_session_was_rewritten(tmp_path: Path) -> None:
    value = PLANT.chars(5).lower() + "-dock"
    source = write_session(tmp_path, value, "Read")
    assert clew("--home", tmp_path, "sync").code == 0
    lines = source.read_text().splitlines(keepends=True)
    source.write_text(lines[0])
    assert clew("--home", tmp_path, "list").code == 0
    done = clew("--home", tmp_path, "search", "runs", "--no-sync")
    assert done.code == 0 and "today." in done.out
    assert value not in done.out


def test_a_catalog_of_version_11_keeps_what_is_masked_in_a_session_that_is_gone(tmp_path: Path) -> None:
    value = PLANT.chars(5).lower() + "-jetty"
    write_session(tmp_path, value, "Read")
    assert clew("--home", tmp_path, "sync").code == 0
    path = catalog_folder([tmp_path]) / DATABASE
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE session SET header = json_set(header, '$.credential_calls', json_array('toolu_01abcd'))")
        db.execute("DROP TABLE credential_call")
        db.execute("PRAGMA user_version = 11")
        db.commit()
    shutil.rmtree(tmp_path / ".claude")
    done = clew("--home", tmp_path, "search", "runs")
    assert done.code == 0 and "today." in done.out
    assert value not in done.out


def test_the_same_output_beside_the_message_is_masked(tmp_path: Path) -> None:
    value = PLANT.chars(5).lower() + "-pier"
    source = write_session(tmp_path, value, "Bash")
    done = clew("--home", tmp_path, "redact", str(source), "-o", "-")
    assert value not in done.out
    answer = json.loads(done.out.splitlines()[2])
    assert answer["toolUseResult"]["stdout"].startswith("HARBOUR_MODE=[REDACTED")
    assert (answer["cwd"], answer["type"], answer["gitBranch"]) == (FOLDER, "user", "main")


def test_blame_masks_what_the_session_read_from_a_credential_file(tmp_path: Path) -> None:
    value = PLANT.chars(5).lower() + "-mole"
    file = tmp_path / "work" / "notes.txt"
    file.parent.mkdir()
    file.write_text(f"start the {value} now\n")
    write_session(tmp_path, value, "Read", file)
    for words in ((str(file),), (str(file), "--json", "--redact", "secrets")):
        done = clew("--home", tmp_path, "blame", *words)
        assert done.code == 0, done.err
        assert SESSION[:8] in done.out
        assert value not in done.out + done.err, words
    assert value in clew("--home", tmp_path, "blame", str(file), "--json").out
