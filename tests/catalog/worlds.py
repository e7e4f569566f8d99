"""Homes to sync, and catalogs to compare."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

from clew.catalog import database
from clew.catalog.change_detection import text_index_exists, text_index_is_complete
from clew.catalog.database import transaction
from clew.catalog.dedupe import update_visible_copies
from clew.catalog.queries import list_rows
from clew.catalog.row_writer import RowWriter
from clew.catalog.schema import KEYS_PER_SOURCE
from clew.catalog.sync import sync
from clew.catalog.sync_report import SyncReport
from clew.catalog.text_index import TextWriter
from clew.host import Host
from tests import children

VIEWS = "sessions messages blocks tool_calls usage usage_days file_changes todos".split()
SESSION_VIEWS = "sessions usage_days headers titles sources".split()
"""What a sync of sessions and usage alone makes right."""


def claude_lines(session: str, first: int, count: int, seed: int = 0, branch: str = "main") -> list[dict[str, Any]]:
    """Records of a conversation from number `first` on: prompts, replies on two lines, calls and their results."""
    return [_record(session, number, seed, branch) for number in range(first, first + count)]


def _record(session: str, number: int, seed: int, branch: str) -> dict[str, Any]:
    uuid = _uuid(session, number, seed)
    line: dict[str, Any] = {
        "parentUuid": _uuid(session, number - 1, seed) if number else None,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/home/mira/loom",
        "sessionId": session,
        "version": "2.1.7",
        "gitBranch": branch,
        "type": "assistant",
        "message": {},
        "uuid": uuid,
        "timestamp": f"2026-10-{1 + number // 1000 % 28:02}T{number // 60 % 24:02}:{number % 60:02}:07.250Z",
    }
    kind = number % 5
    if kind == 0:
        return {**line, "type": "user", "message": {"role": "user", "content": f"weave thread{seed}x{number} please"}}
    if kind == 4:
        return {**line, "type": "user", "message": {"role": "user", "content": [_result(session, number, seed)]}}
    group = number // 5
    blocks = {1: _thinking(number, seed), 2: _said(number, seed), 3: _call(session, number, seed)}
    message = {
        "id": f"msg_{session[:8]}{seed}_{group}",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5-20250929",
        "content": [blocks[kind]],
        "usage": {"input_tokens": 3, "output_tokens": 10 * kind, "cache_read_input_tokens": 7 * group},
    }
    return {**line, "message": message}


def _uuid(session: str, number: int, seed: int) -> str:
    return f"{session[:8]}-{seed:04x}-4000-8000-{number:012x}"


def _thinking(number: int, seed: int) -> dict[str, Any]:
    return {"type": "thinking", "thinking": f"mull{seed}x{number}", "signature": "c2ln"}


def _said(number: int, seed: int) -> dict[str, Any]:
    return {"type": "text", "text": f"the shuttle{seed}x{number} passes"}


def _call(session: str, number: int, seed: int) -> dict[str, Any]:
    given = {"file_path": f"/home/mira/loom/part{number % 3}.py", "old_string": "a\nb", "new_string": f"a\nc{seed}\nd"}
    return {"type": "tool_use", "id": f"toolu_{session[:8]}{seed}_{number}", "name": "Edit", "input": given}


def _result(session: str, number: int, seed: int) -> dict[str, Any]:
    key = f"toolu_{session[:8]}{seed}_{number - 1}"
    return {"type": "tool_result", "tool_use_id": key, "content": f"The file was updated{seed}.", "is_error": False}


def spelled(lines: list[dict[str, Any]]) -> bytes:
    """Records as Claude Code writes them."""
    return b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)


def claude_path(home: Path, session: str, project: str = "-home-mira-loom") -> Path:
    """Where a session's transcript lies."""
    return home / ".claude" / "projects" / project / f"{session}.jsonl"


def write_claude(home: Path, session: str, count: int, seed: int = 0, branch: str = "main") -> Path:
    """A session with so many records."""
    path = claude_path(home, session)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(spelled(claude_lines(session, 0, count, seed, branch)))
    return path


def append(path: Path, text: bytes) -> None:
    """Add to a file, as an agent does."""
    with path.open("ab") as file:
        file.write(text)


def run(home: Path, folder: Path, **options: Any) -> SyncReport:
    """One sync of a home."""
    return sync([Host.at(home)], folder, workers=1, **options)


def dump(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All that the views show of sources that are there, in an order of its own; as if nothing had ever been gone."""
    found = database.open_reader(folder)
    assert found is not None
    db = sqlite3.connect(":memory:", isolation_level=None)
    found.backup(db)
    found.close()
    with transaction(db):
        for (number,) in db.execute("SELECT id FROM source WHERE state = 'gone'").fetchall():
            RowWriter(db).delete_source(number)
        update_visible_copies(db)
    shown = {view: sorted(db.execute(f"SELECT * FROM {view}").fetchall(), key=repr) for view in VIEWS}
    shown["sources"] = sorted(db.execute("SELECT path, agent, state, size, problems FROM sources").fetchall(), key=repr)
    headers = db.execute("SELECT header FROM session").fetchall()
    shown["headers"] = sorted((json.dumps(json.loads(header), sort_keys=True),) for (header,) in headers)
    shown["titles"] = sorted((str(row["path"]), row["title"]) for row in list_rows(db))
    shown["texts"] = sorted(texts(db), key=repr)
    db.close()
    return shown


def texts(db: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """The stored text of every block that has one."""
    from clew.catalog.text_store import TextStore

    store = TextStore(db)
    query = "SELECT b.id, t.text, f.path FROM block b JOIN string t ON t.id = b.type JOIN source f ON f.id = b.id / ?"
    rows = db.execute(f"{query} WHERE b.chars > 0", (KEYS_PER_SOURCE,)).fetchall()
    return [(path, kind, store.get(doc)) for doc, kind, path in rows]


def indexed(folder: Path) -> int:
    """How many documents the text index holds, which must be complete."""
    import tantivy

    db = database.open_reader(folder)
    assert db is not None
    has_index = text_index_exists(folder)
    count = tantivy.Index.open(str(folder / database.TEXT)).searcher().num_docs if has_index else 0
    assert text_index_is_complete(db, folder)
    db.close()
    return int(count)


def searchable(folder: Path) -> int:
    """How many blocks can be found: those with a text, of messages that are shown, titles and file names."""
    db = database.open_reader(folder)
    assert db is not None
    query = f"SELECT count(*) FROM block b JOIN session s ON s.id = b.id / {KEYS_PER_SOURCE}"
    query += " LEFT JOIN message m ON m.id = b.message WHERE b.chars > 0 AND b.kind <> 0"
    (count,) = db.execute(f"{query} AND coalesce(m.is_visible, s.is_visible) = 1").fetchone()
    db.close()
    return int(count)


def kill_at(step: int, work: Any) -> bool:
    """Do the work in a child that is killed when it has come to its nth effect; True where it came to its end."""
    left = [step]

    def counted(effect: Any) -> Any:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                os._exit(9)
            return effect(*args, **kwargs)

        return wrapped

    def mortal() -> None:
        transaction.__exit__ = counted(transaction.__exit__)  # type: ignore[method-assign]
        RowWriter.write = counted(RowWriter.write)  # type: ignore[method-assign]
        TextWriter.commit = counted(TextWriter.commit)  # type: ignore[method-assign]
        work()

    return children.done(mortal) == 0
