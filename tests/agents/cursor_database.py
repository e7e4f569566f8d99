"""Databases of Cursor, with the keys that matter."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from clew.agents.base import SourceFile, open_main
from clew.agents.cursor import Cursor
from clew.model.json import JSON

AGENT = Cursor()
CHAT = "00000000-0000-4000-8000-00000000c0de"
CHILD = "00000000-0000-4000-8000-00000000beef"
START_MS = 1_794_831_120_000
FOLDER = "/home/ada/src/tidebell"
SCHEMA = """
CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
INSERT INTO ItemTable VALUES ('cursorAuth/accessToken', 'secret-of-an-account');
"""


class Database:
    """A database that a test fills; every row is written at once."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.executescript(SCHEMA)

    def close(self) -> None:
        self.db.close()

    def put(self, key: str, value: JSON, *, is_blob: bool = False) -> None:
        text = json.dumps(value, separators=(",", ":"))
        self.db.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", (key, text.encode() if is_blob else text))

    def chat(self, *bubbles: dict[str, JSON], name: str = CHAT, is_blob: bool = False, **more: JSON) -> None:
        """A chat with its messages in this order, which is not that of their ids."""
        ids = [f"{len(bubbles) - number:04}" for number in range(len(bubbles))]
        headers = [{"bubbleId": own, "type": bubble["type"]} for own, bubble in zip(ids, bubbles, strict=True)]
        head: dict[str, JSON] = {
            "composerId": name,
            "name": "Ring the bell",
            "createdAt": START_MS,
            "lastUpdatedAt": START_MS + 9000,
            "unifiedMode": "agent",
            "status": "completed",
            "modelConfig": {"modelName": "lab-model"},
            "fullConversationHeadersOnly": headers,
            "speculativeSummarizationEncryptionKey": "secret-of-a-chat",
            "workspaceIdentifier": {"id": "1", "uri": {"fsPath": FOLDER, "path": FOLDER, "scheme": "file"}},
        }
        self.put(f"composerData:{name}", {**head, **more}, is_blob=is_blob)
        for number, (own, bubble) in enumerate(zip(ids, bubbles, strict=True)):
            time = f"2026-11-16T12:12:{number:02}.000Z"
            value = {"bubbleId": own, "createdAt": time, "tokenCount": {"inputTokens": 0, "outputTokens": 0}, **bubble}
            self.put(f"bubbleId:{name}:{own}", value, is_blob=is_blob)


def prompt(text: str, **more: JSON) -> dict[str, JSON]:
    return {"type": 1, "text": text, "requestId": "request-1", **more}


def reply(text: str = "", **more: JSON) -> dict[str, JSON]:
    return {"type": 2, "text": text, "usageUuid": "request-1", **more}


def call(key: str, name: str, given: JSON, result: JSON, status: str = "completed") -> dict[str, JSON]:
    """A bubble with a call."""
    tool = {
        "tool": 38,
        "name": name,
        "toolCallId": f"{key}\nfc_1",
        "modelCallId": "model-call-1",
        "status": status,
        "rawArgs": json.dumps(given),
        "result": json.dumps(result),
    }
    return reply(capabilityType=15, toolFormerData=tool)


def database_in(home: Path) -> Path:
    return home / ".config" / "Cursor" / "User" / "globalStorage" / "state.vscdb"


def write_conversation(database: Database, *, is_blob: bool = False) -> None:
    """A chat with every kind of bubble, one that it does not name any more, and a sub-agent."""
    bell = f"{FOLDER}/bell.py"
    database.chat(
        prompt("Ring the bell."),
        reply(thinking={"text": "I write it first.", "signature": "c2ln"}, capabilityType=30),
        reply("I write the script."),
        call("call_1", "write", {"file_path": bell, "contents": "print('dong')\n"}, {"success": True}),
        call("call_2", "search_replace", {"file_path": bell, "old_string": "dong", "new_string": "ding"}, {}),
        call("call_3", "run_terminal_cmd", {"command": "exit 3"}, {"output": "", "exitCodeV2": 3}),
        call("call_4", "read_file", {"target_file": "missing.py"}, {}, status="error"),
        reply("It rings."),
        is_blob=is_blob,
        todos=[{"id": "1", "content": "Write bell.py", "status": "completed"}],
        subComposerIds=[CHILD],
    )
    database.put(f"bubbleId:{CHAT}:9999", prompt("Ring it never."), is_blob=is_blob)
    database.chat(prompt("Count."), reply("Eleven."), name=CHILD, subagentInfo={"parentComposerId": CHAT})
    database.put("composerData:empty", {"composerId": "empty", "fullConversationHeadersOnly": []})
    database.put("agentKv:blob:00", {"other": True})


def source(path: Path, chat: str = CHAT) -> SourceFile:
    return next(found for found in AGENT.discover(path.parent) if AGENT.session_id(found) == chat)


def rows(path: Path, chat: str = CHAT) -> bytes:
    """The rows of a chat as a file."""
    with open_main(source(path, chat)) as stream:
        return stream.read()


def write_fixtures(folder: Path, scratch: Path) -> None:
    """The fixtures of the conformance suite: `python -m tests.agents.cursor_database` writes them."""
    database = Database(scratch / "state.vscdb")
    with closing(database):
        write_conversation(database)
    (folder / "bell.jsonl").write_bytes(rows(database.path))


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        write_fixtures(Path(__file__).parent.parent / "fixtures" / "cursor", Path(scratch))
