"""Databases of Goose, written with the tables and columns of schema 16 that matter."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from clew.agents.base import SourceFile, open_main
from clew.agents.goose import Goose
from clew.model.json import JSON

AGENT = Goose()
SESSION = "20261116_1"
CHILD = "20261116_2"
START_SECONDS = 1_794_831_120
FOLDER = "/home/ada/src/tidebell"
USAGE = {"inputTokens": 900, "outputTokens": 42, "totalTokens": 942, "cacheReadTokens": 600}

SCHEMA = """
CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '', description TEXT NOT NULL DEFAULT '',
    user_set_name BOOLEAN DEFAULT FALSE, session_type TEXT NOT NULL DEFAULT 'user', working_dir TEXT NOT NULL,
    created_at TIMESTAMP, updated_at TIMESTAMP, extension_data TEXT DEFAULT '{}',
    accumulated_total_tokens INTEGER, accumulated_input_tokens INTEGER,
    accumulated_output_tokens INTEGER, accumulated_cache_read_tokens INTEGER, accumulated_cache_write_tokens INTEGER,
    provider_name TEXT, model_config_json TEXT, archived_at TIMESTAMP, project_id TEXT, parent_session_id TEXT
);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT NOT NULL, role TEXT NOT NULL,
    content_json TEXT NOT NULL, created_timestamp INTEGER NOT NULL, timestamp TIMESTAMP, tokens INTEGER,
    metadata_json TEXT
);
CREATE TABLE usage_ledger (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, created_timestamp INTEGER NOT NULL, model TEXT,
    input_tokens INTEGER, output_tokens INTEGER, total_tokens INTEGER, cache_read_tokens INTEGER,
    cache_write_tokens INTEGER, cost REAL, cost_source TEXT, is_compaction INTEGER DEFAULT 0
);
INSERT INTO schema_version VALUES (16, '2026-11-16 12:12:00');
"""


class Database:
    """A database that a test fills; every row is written at once."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.executescript(SCHEMA)
        self._count = 0

    def close(self) -> None:
        self.db.close()

    def session(self, identity: str = SESSION, **columns: JSON) -> str:
        row: dict[str, JSON] = {
            "id": identity,
            "name": "Ring the bell",
            "working_dir": FOLDER,
            "created_at": "2026-11-16 12:12:00",
            "updated_at": "2026-11-16 12:12:02",
            "provider_name": "openai",
            "model_config_json": '{"model_name":"lab-model"}',
            **columns,
        }
        self._insert("sessions", row)
        return identity

    def message(self, session: str, role: str, *items: JSON, **metadata: JSON) -> str:
        self._count += 1
        name = str(metadata.pop("message_id", f"msg_{self._count:04}"))
        row = {
            "message_id": name,
            "session_id": session,
            "role": role,
            "content_json": spell(items),
            "created_timestamp": START_SECONDS + self._count,
            "metadata_json": spell({"userVisible": True, "agentVisible": True, **metadata}),
        }
        self._insert("messages", row)
        return name

    def prompt(self, session: str, text: str, *items: JSON, **metadata: JSON) -> str:
        return self.message(session, "user", {"type": "text", "text": text}, *items, **metadata)

    def reply(self, session: str, *items: JSON, in_ledger: bool = True, **metadata: JSON) -> str:
        """The first row of a reply, and its row in the ledger."""
        if in_ledger:
            self.request(session)
        return self.message(session, "assistant", *items, **{**_INFERENCE, "usage": USAGE, **metadata})

    def next_call(self, session: str, call: dict[str, JSON]) -> str:
        """A further call of the last reply."""
        return self.message(session, "assistant", call, **_INFERENCE)

    def request(self, session: str, **columns: JSON) -> None:
        row: dict[str, JSON] = {
            "session_id": session,
            "created_timestamp": START_SECONDS + self._count,
            "model": "lab-model",
            "input_tokens": 900,
            "output_tokens": 42,
            "total_tokens": 942,
            "cache_read_tokens": 600,
            **columns,
        }
        self._insert("usage_ledger", row)

    def result(self, session: str, call: str, text: str, *, meta: JSON = None, **value: JSON) -> str:
        given: dict[str, JSON] = {"resultType": "complete", "content": [{"type": "text", "text": text}], **value}
        if meta is not None:
            given["_meta"] = meta
        return self.message(
            session,
            "user",
            {"type": "toolResponse", "id": call, "toolResult": {"status": "success", "value": given}},
        )

    def _insert(self, table: str, row: dict[str, JSON]) -> None:
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        self.db.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(row.values()))


_INFERENCE: dict[str, JSON] = {"inference": {"provider": "openai", "requestedModel": "lab-model"}}


def spell(value: JSON) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def tool(key: str, name: str, given: JSON, index: int = 0) -> dict[str, JSON]:
    """An item with a call."""
    return {
        "type": "toolRequest",
        "id": key,
        "toolCall": {"status": "success", "value": {"name": name, "arguments": given}},
        "_meta": {"goose.toolCall.providerIndex": index, "goose_extension": "developer"},
    }


def database_in(home: Path) -> Path:
    return home / ".local" / "share" / "goose" / "sessions" / "sessions.db"


def write_conversation(database: Database) -> None:
    """A session with every kind of item, and the sub-agent that it started."""
    session = database.session()
    child = database.session(CHILD, parent_session_id=SESSION, session_type="sub_agent", name="Delegated task")
    picture = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
    database.prompt(session, 'Ring the bell,\n"three" times.', picture)
    database.prompt(session, "<turn-context>noon</turn-context>", userVisible=False, turnContext=True)
    bell = f"{FOLDER}/bell.py"
    database.reply(
        session,
        {"type": "thinking", "thinking": "I write it first.", "signature": "c2ln"},
        {"type": "text", "text": "I write the script."},
        tool("call_1", "write", {"path": bell, "content": "print('dong')\n"}),
    )
    database.result(session, "call_1", f"Created {bell} (1 lines)", isError=False)
    database.reply(session, tool("call_2", "shell", {"command": "python3 bell.py"}))
    database.result(session, "call_2", "dong", structuredContent={"stdout": "dong", "exit_code": 0}, isError=False)
    database.next_call(session, tool("call_3", "shell", {"command": "exit 3"}, 1))
    database.result(session, "call_3", "Command exited with code 3", isError=True)
    database.reply(session, tool("call_4", "edit", {"path": bell, "before": "'dong'", "after": "'ding'"}))
    database.result(session, "call_4", f"Edited {bell} (1 lines -> 1 lines)", isError=False)
    database.reply(session, tool("call_5", "delegate", {"instructions": "Count the words."}))
    database.result(session, "call_5", "Eleven.", isError=False, meta={"subagent_session_id": CHILD})
    database.reply(session, tool("call_6", "todo_write", {"content": "- [x] Write bell.py\n- [ ] Tune it\n"}))
    database.result(session, "call_6", "Updated", isError=False)
    failed = {"type": "toolResponse", "id": "call_7", "toolResult": {"status": "error", "error": "no such host"}}
    database.reply(session, tool("call_7", "fetch", {"url": "http://bell"}))
    database.message(session, "user", failed)
    notice = {"type": "systemNotification", "notificationType": "inlineMessage", "msg": "Compacted."}
    database.message(session, "assistant", notice)
    database.reply(session, {"type": "text", "text": "It rings."}, {"type": "from-the-future", "bell": True})
    database.prompt(child, "Count the words.")
    database.reply(child, {"type": "text", "text": "Eleven."})


def source(path: Path, session: str = SESSION) -> SourceFile:
    return next(found for found in AGENT.discover(path.parent) if AGENT.session_id(found) == session)


def rows(path: Path, session: str = SESSION) -> bytes:
    """The rows of a session as a file."""
    with open_main(source(path, session)) as stream:
        return stream.read()


def write_fixtures(folder: Path, scratch: Path) -> None:
    """The fixtures of the conformance suite: `python -m tests.agents.goose_database` writes them."""
    database = Database(scratch / "sessions.db")
    with closing(database):
        write_conversation(database)
    (folder / "bell.jsonl").write_bytes(rows(database.path))


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        write_fixtures(Path(__file__).parent.parent / "fixtures" / "goose", Path(scratch))
