"""Databases of OpenCode, written with the tables and columns of versions 1 and 2 that matter."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from clew.agents.base import SourceFile
from clew.agents.opencode import OpenCode
from clew.model.json import JSON

AGENT = OpenCode()
SESSION = "ses_e1bced286ffenTDWBIPMf3KmO5"
CHILD = "ses_e1bceb53dffe79F47aSEqTytNm"
START_MS = 1_794_829_790_000
FOLDER = "/home/ada/src/tidebell"

SCHEMA = """
CREATE TABLE migration (id TEXT PRIMARY KEY, time_completed INTEGER NOT NULL);
CREATE TABLE credential (id TEXT PRIMARY KEY, label TEXT NOT NULL, value TEXT NOT NULL);
CREATE TABLE account (id TEXT PRIMARY KEY, access_token TEXT NOT NULL);
CREATE TABLE project (id TEXT PRIMARY KEY, worktree TEXT NOT NULL, name TEXT, time_created INTEGER);
CREATE TABLE session (
    id TEXT PRIMARY KEY, project_id TEXT NOT NULL, parent_id TEXT, slug TEXT NOT NULL, directory TEXT NOT NULL,
    title TEXT NOT NULL, version TEXT NOT NULL, cost REAL DEFAULT 0 NOT NULL, revert TEXT,
    time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, time_archived INTEGER
);
CREATE TABLE message (
    id TEXT PRIMARY KEY, session_id TEXT NOT NULL, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL,
    data TEXT NOT NULL
);
CREATE TABLE part (
    id TEXT PRIMARY KEY, message_id TEXT NOT NULL, session_id TEXT NOT NULL, time_created INTEGER NOT NULL,
    time_updated INTEGER NOT NULL, data TEXT NOT NULL
);
CREATE TABLE todo (
    session_id TEXT NOT NULL, content TEXT NOT NULL, status TEXT NOT NULL, priority TEXT NOT NULL,
    position INTEGER NOT NULL, PRIMARY KEY (session_id, position)
);
CREATE TABLE event_sequence (aggregate_id TEXT PRIMARY KEY, seq INTEGER NOT NULL, owner_id TEXT);
CREATE TABLE event (
    id TEXT PRIMARY KEY, aggregate_id TEXT NOT NULL, seq INTEGER NOT NULL, type TEXT NOT NULL, data TEXT NOT NULL
);
CREATE TABLE session_message (
    id TEXT PRIMARY KEY, session_id TEXT NOT NULL, type TEXT NOT NULL, seq INTEGER NOT NULL,
    time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, data TEXT NOT NULL
);
CREATE INDEX part_session_idx ON part (session_id);
CREATE INDEX part_message_id_id_idx ON part (message_id, id);
INSERT INTO migration VALUES ('20260622202450_simplify_session_input', 1);
INSERT INTO credential VALUES ('cred_1', 'provider', 'secret-of-a-provider');
INSERT INTO account VALUES ('acc_1', 'secret-of-an-account');
"""
SCHEMA_2 = """
CREATE TABLE kv (key TEXT PRIMARY KEY, value TEXT);
CREATE TABLE session_v2 (
    id TEXT PRIMARY KEY, project_id TEXT NOT NULL, parent_id TEXT, slug TEXT, directory TEXT NOT NULL, title TEXT,
    version TEXT NOT NULL, revert TEXT, fork_session_id TEXT, time_created INTEGER NOT NULL,
    time_updated INTEGER NOT NULL, time_archived INTEGER
);
"""
TOKENS = {"total": 942, "input": 300, "output": 32, "reasoning": 10, "cache": {"read": 600, "write": 0}}


class Database:
    """A database that a test fills; every row is written at once."""

    def __init__(self, path: Path, *, version_2: bool = False, log: bool = False) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.db = sqlite3.connect(path, isolation_level=None)
        if log:
            self.db.execute("PRAGMA journal_mode = WAL")
        self.db.executescript(SCHEMA + (SCHEMA_2 if version_2 else ""))
        self.db.execute("INSERT INTO project VALUES ('prj', ?, NULL, ?)", (FOLDER, START_MS))
        self._count = 0

    def close(self) -> None:
        self.db.close()

    def session(self, name: str = SESSION, *, table: str = "session", **columns: JSON) -> str:
        row: dict[str, JSON] = {
            "id": name,
            "project_id": "prj",
            "slug": "calm-bell",
            "directory": FOLDER,
            "title": "Ring the bell",
            "version": "1.18.33",
            "time_created": START_MS,
            "time_updated": START_MS,
            **columns,
        }
        self._insert(table, row)
        return name

    def message(self, session: str, data: dict[str, JSON], *parts: dict[str, JSON]) -> str:
        """A message with its parts; ids and times ascend."""
        name, time = self._next("msg")
        stamped = {"time": {"created": time, "completed": time + 500}, **data}
        row = {"id": name, "session_id": session, "time_created": time, "time_updated": time}
        self._insert("message", {**row, "data": spell(stamped)})
        for part in parts:
            own, at = self._next("prt")
            row = {"id": own, "message_id": name, "session_id": session, "time_created": at, "time_updated": at}
            self._insert("part", {**row, "data": spell(part)})
        return name

    def prompt(self, session: str, text: str, *parts: dict[str, JSON]) -> str:
        return self.message(session, {"role": "user", "agent": "build"}, {"type": "text", "text": text}, *parts)

    def reply(self, session: str, *parts: dict[str, JSON], **data: JSON) -> str:
        head: dict[str, JSON] = {"role": "assistant", "modelID": "lab-model", "providerID": "lab", "tokens": TOKENS}
        return self.message(session, {**head, "finish": "stop", **data}, *parts)

    def row_of_version_2(self, session: str, kind: str, data: dict[str, JSON]) -> str:
        name, time = self._next("msg")
        row = {"id": name, "session_id": session, "type": kind, "seq": self._count, "time_created": time}
        self._insert("session_message", {**row, "time_updated": time, "data": spell(data)})
        return name

    def event(self, session: str, kind: str, data: dict[str, JSON]) -> None:
        name, _ = self._next("evt")
        row = {"id": name, "aggregate_id": session, "seq": self._count, "type": kind, "data": spell(data)}
        self._insert("event", row)
        self.db.execute("INSERT OR REPLACE INTO event_sequence VALUES (?, ?, NULL)", (session, self._count))

    def _next(self, prefix: str) -> tuple[str, int]:
        self._count += 1
        return f"{prefix}_{self._count:012x}aaaaaaaaaaaaaa", START_MS + 1000 * self._count

    def _insert(self, table: str, row: dict[str, JSON]) -> None:
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        self.db.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(row.values()))


def spell(value: JSON) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def tool(name: str, given: JSON, output: str | None, **state: JSON) -> dict[str, JSON]:
    """A part with a call; without an output it has not ended."""
    ended: dict[str, JSON] = {"status": "running"} if output is None else {"status": "completed", "output": output}
    times = {"start": START_MS + 5, "end": START_MS + 9}
    return {
        "type": "tool",
        "tool": name,
        "callID": f"call_{name}",
        "state": {**ended, "input": given, "title": name, "metadata": {}, "time": times, **state},
    }


def database_in(home: Path, name: str = "opencode") -> Path:
    return home / ".local" / "share" / name / f"{name}.db"


def write_conversation(database: Database, *, is_compacted: bool = True) -> None:
    """A session with every kind of part, and the sub-agent that it started."""
    session, child = database.session(), database.session(CHILD, parent_id=SESSION, title="Count (@general subagent)")
    picture = {"type": "file", "mime": "image/png", "filename": "dot.png", "url": "data:image/png;base64,iVBORw0KGgo="}
    database.prompt(
        session,
        'Ring the bell,\n"three" times.',
        picture,
        {"type": "text", "text": "Called the Read tool.", "synthetic": True},
    )
    write = {"filePath": f"{FOLDER}/bell.py", "content": "print('dong')\n"}
    database.reply(
        session,
        {"type": "step-start", "snapshot": "1892c99c9890950d48250c600d0ed2f7cfbdee8b"},
        {"type": "reasoning", "text": "I write it first.", "metadata": {"anthropic": {"signature": "c2ln"}}},
        {"type": "text", "text": "I write the script."},
        tool("write", write, "Wrote file successfully.", metadata={"filepath": write["filePath"], "exists": False}),
        {"type": "step-finish", "reason": "tool-calls", "tokens": TOKENS, "cost": 0.00171},
        {"type": "patch", "hash": "1892c99c9890950d48250c600d0ed2f7cfbdee8b", "files": [write["filePath"]]},
        finish="tool-calls",
    )
    todos = [{"content": "Write bell.py", "status": "completed", "priority": "high"}]
    task = {"sessionId": child, "parentSessionId": session}
    database.reply(
        session,
        tool("bash", {"command": "exit 3"}, "(no output)", metadata={"output": "", "exit": 3}),
        tool("todowrite", {"todos": todos}, "[]", metadata={"todos": todos}),
        tool("task", {"description": "Count", "prompt": "Count the words."}, "<task_result>", metadata=task),
        tool("webfetch", {"url": "http://bell"}, None, status="error", error="no such host"),
        finish="tool-calls",
    )
    database.reply(session, {"type": "text", "text": "It rings."}, {"type": "from-the-future", "bell": True})
    if is_compacted:
        database.message(session, {"role": "user", "agent": "build"}, {"type": "compaction", "auto": False})
        database.reply(session, {"type": "text", "text": "The bell was rung."}, summary=True, mode="compaction")
    database.db.execute("INSERT INTO todo VALUES (?, 'Write bell.py', 'completed', 'high', 0)", (session,))
    database.prompt(child, "Count the words.")
    database.reply(child, {"type": "text", "text": "Eleven."})


def undo(database: Database, session: str = SESSION) -> tuple[str, str]:
    """An exchange that was undone: its rows are gone, and the log has them."""
    names = []
    for role, text in (("user", "Ring it again."), ("assistant", "It rang again.")):
        name, time = database._next("msg")
        part, _ = database._next("prt")
        info: dict[str, JSON] = {"id": name, "sessionID": session, "role": role, "time": {"created": time}}
        if role == "assistant":
            info |= {"modelID": "lab-model", "tokens": TOKENS}
        database.event(session, "message.updated.1", {"sessionID": session, "info": info})
        for state in ("", text):
            piece = {"id": part, "messageID": name, "sessionID": session, "type": "text", "text": state}
            database.event(session, "message.part.updated.1", {"sessionID": session, "part": piece})
        names.append(name)
    for name in names:
        database.event(session, "message.removed.1", {"sessionID": session, "messageID": name})
    return names[0], names[1]


def write_version_2(database: Database) -> None:
    """A session of version 2 with every kind of row."""
    session = database.session(table="session_v2", version="2.0.23", title=None, slug=None)
    row = database.row_of_version_2
    picture = {"data": "iVBORw0KGgo=", "mime": "image/png"}
    row(session, "agent-switched", {"agent": "build"})
    row(session, "model-switched", {"model": {"id": "lab-model", "providerID": "lab"}})
    row(session, "user", {"text": "Ring the bell.", "files": [picture], "time": {"created": START_MS + 1}})
    call = {
        "type": "tool",
        "id": "call_1",
        "name": "bash",
        "state": {"status": "completed", "input": {"command": "ring"}, "content": [{"type": "text", "text": "dong"}]},
        "time": {"created": START_MS + 2, "completed": START_MS + 3},
    }
    failed = {
        "type": "tool",
        "id": "call_2",
        "name": "webfetch",
        "state": {"status": "error", "input": {"url": "x"}, "error": {"type": "unknown", "message": "no such host"}},
    }
    row(
        session,
        "assistant",
        {
            "agent": "build",
            "model": {"id": "lab-model", "providerID": "lab"},
            "content": [{"type": "reasoning", "text": "Ring."}, {"type": "text", "text": "I ring."}, call, failed],
            "finish": "tool-calls",
            "tokens": TOKENS,
            "time": {"created": START_MS + 2, "completed": START_MS + 4},
        },
    )
    row(session, "synthetic", {"text": "The bell is old."})
    row(session, "shell", {"callID": "call_3", "command": "date", "output": "today"})
    row(session, "compaction", {"reason": "manual", "summary": "The bell was rung."})
    row(session, "from-the-future", {"bell": True})


def rows(path: Path, session: str) -> bytes:
    """The rows of a session as a file."""
    from clew.agents.base import open_main

    with open_main(source(path, session)) as stream:
        return stream.read()


def source(path: Path, session: str = SESSION) -> SourceFile:
    return next(found for found in AGENT.discover(path.parent) if AGENT.session_id(found) == session)


def write_fixtures(folder: Path, scratch: Path) -> None:
    """The fixtures of the conformance suite: `python -m tests.agents.opencode_database` writes them."""
    for name, write, version_2 in (("version-1", _whole, False), ("version-2", write_version_2, True)):
        database = Database(scratch / name / "opencode.db", version_2=version_2)
        with closing(database):
            write(database)
        (folder / f"{name}.jsonl").write_bytes(rows(database.path, SESSION))


def _whole(database: Database) -> None:
    write_conversation(database)
    undo(database)


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        write_fixtures(Path(__file__).parent.parent / "fixtures" / "opencode", Path(scratch))
