"""Planted secrets come out of no object, no name and no word on stderr, at the levels that mask."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from clew.cli.main import main
from clew.host import data_dir
from tests.catalog.worlds import claude_lines, claude_path, spelled
from tests.redact import histories
from tests.redact.planted import Planter, held

NAME = "dddddddd-7777-4777-8777-777777777777"


def planted(home: Path) -> dict[str, str]:
    """A home with a secret in every kind of field that a row is made from; returns them by their place."""
    plant = Planter("lake")
    found = {place: plant.github() for place in _PLACES}
    lines = claude_lines(NAME, 0, 10)
    for line in lines:
        line |= {"gitBranch": f"fix/{found['branch']}", "cwd": f"/srv/{found['cwd']}", "version": found["version"]}
    lines[0]["message"]["content"] = f"take {found['prompt']}"
    lines[1]["message"]["content"][0]["thinking"] = f"hm {found['thinking']}"
    lines[2]["message"]["content"][0]["text"] = f"with {found['reply']}"
    lines[2]["message"]["model"] = found["model"]
    call = lines[3]["message"]["content"][0]
    call["name"], call["id"] = f"run_{found['tool']}", found["call"]
    call["input"]["file_path"] = f"/srv/{found['path']}/key.pem"
    call["input"]["new_string"] = found["input"]
    lines[4]["message"]["content"][0] |= {"tool_use_id": found["call"], "content": found["output"]}
    todos = [{"content": found["todo"], "status": found["status"], "activeForm": "x"}]
    lines[8]["message"]["content"][0] |= {"name": "TodoWrite", "input": {"todos": todos}}
    lines[9]["uuid"] = found["uuid"]
    title = {"type": "custom-title", "customTitle": found["title"], "sessionId": NAME}
    path = claude_path(home, NAME, f"-srv-{found['folder']}")
    path.parent.mkdir(parents=True)
    path.write_bytes(spelled([*lines, title]))
    named = claude_path(home, f"session-{found['name']}")
    named.parent.mkdir(parents=True, exist_ok=True)
    named.write_bytes(spelled(claude_lines(f"session-{found['name']}", 0, 5)))
    _codex(home, found)
    told = histories.values()
    histories.write(home, told)
    return found | {f"history {place}": value for place, value in told.items()}


_PLACES = (
    "branch cwd version prompt thinking reply model tool call path input output todo status uuid title folder name "
    "codex_said codex_cwd codex_branch codex_tool"
).split()


def _codex(home: Path, found: dict[str, str]) -> None:
    thread = "019a0000-8888-7888-8888-888888888888"
    path = home / ".codex/sessions/2026/10/01" / f"rollout-2026-10-01T10-00-00-{thread}.jsonl"
    path.parent.mkdir(parents=True)
    stamp = "2026-10-01T10:00:00.000Z"
    about: dict[str, object] = {"id": thread, "timestamp": stamp, "cwd": f"/srv/{found['codex_cwd']}"}
    about |= {"git": {"branch": found["codex_branch"]}}
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": found["codex_said"]}]}
    called = {"type": "function_call", "name": found["codex_tool"], "arguments": "{}", "call_id": "c1"}
    lines = [("session_meta", about), ("response_item", said), ("response_item", called)]
    records = [{"timestamp": stamp, "type": kind, "payload": payload} for kind, payload in lines]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def everything(folder: Path) -> bytes:
    """All that a lake holds: names, raw bytes, and rows unpacked."""
    parts = []
    for path in sorted(folder.rglob("*")):
        parts.append(path.relative_to(folder).as_posix().encode())
        if path.is_file():
            parts.append(path.read_bytes())
        if path.suffix == ".parquet":
            parts += _texts(pq.read_table(path))
    return b"\n".join(parts)


def _texts(table: pa.Table) -> list[bytes]:
    columns = [column for column in table.columns if pa.types.is_string(column.type)]
    return [text.encode() for column in columns for text in column.to_pylist()]


@pytest.mark.parametrize("level", ["metrics", "redacted"])
def test_no_planted_secret_comes_out(tmp_path: Path, level: str) -> None:
    home, lake = tmp_path / "home", tmp_path / "lake"
    secrets = planted(home)
    said = CliRunner().invoke(main, ["lake", "write", str(lake), "--home", str(home), "--level", level])
    assert said.exit_code == 0, said.output
    content = everything(lake)
    assert held(content, secrets) == []
    assert held(said.output.encode(), secrets) == []
    assert data_dir().joinpath("redaction.key").read_bytes() not in content
    assert str(tmp_path).encode() not in content


def test_a_raw_lake_would_have_shown_them(tmp_path: Path) -> None:
    """The look for planted secrets finds them where they are."""
    home, lake = tmp_path / "home", tmp_path / "lake"
    secrets = planted(home)
    said = CliRunner().invoke(main, ["lake", "write", str(lake), "--home", str(home), "--level", "raw"])
    assert said.exit_code == 0
    found = held(everything(lake), secrets)
    for place in ("branch", "prompt", "thinking", "reply", "model", "tool", "call", "path", "input", "output", "todo"):
        assert place in found
    for place in ("status", "title", "name", "codex_said", "codex_tool"):
        assert place in found


def test_an_older_rule_does_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a new rule masks is written again, and goes from the lake when its objects are merged."""
    from datetime import UTC, datetime

    from clew.warehouse.lake.compact import compact
    from clew.warehouse.lake.store import FolderStore
    from tests.warehouse.lake.worlds import age

    home, lake, config = tmp_path / "home", tmp_path / "lake", tmp_path / "config"
    lines = claude_lines(NAME, 0, 5)
    lines[0]["message"]["content"] = "ask EMP-123456 about it"
    path = claude_path(home, NAME)
    path.parent.mkdir(parents=True)
    path.write_bytes(spelled(lines))
    config.mkdir()
    monkeypatch.setenv("CLEW_CONFIG_DIR", str(config))
    write = ["lake", "write", str(lake), "--home", str(home), "--level", "redacted"]
    assert CliRunner().invoke(main, write).exit_code == 0
    assert b"EMP-123456" in everything(lake)
    (config / "redaction.toml").write_text("[[rule]]\nid = 'staff'\npattern = 'EMP-[0-9]{6}'\n")
    assert "sessions written: 1" in CliRunner().invoke(main, write).output
    age(lake)
    compact(FolderStore(lake), datetime(2027, 1, 1, tzinfo=UTC))
    assert b"EMP-123456" not in everything(lake)
    assert "sessions written: 0" in CliRunner().invoke(main, write).output
