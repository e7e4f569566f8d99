"""What sessions of the two Sages prove about files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from clew.agents import registry
from clew.file_history.history import FileHistory
from tests.files.asking import is_absent, known

FOLDER = "/home/ada/bell"
BELL, HORN = f"{FOLDER}/bell.py", f"{FOLDER}/horn.py"
SESSION = "session-123"


def digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


class Log:
    """A session of Sage Agent that grows."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.snapshots: list[dict[str, Any]] = []
        self.backups: dict[str, bytes] = {}
        self.index = 0
        self._calls = 0
        self._add("user", {"role": "user", "content": "Go."})

    def _add(self, kind: str, message: dict[str, Any]) -> int:
        self.index += 1
        envelope = {"type": kind, "uuid": f"u-{self.index}", "parentUuid": f"u-{self.index - 1}", "sessionId": SESSION}
        context = {"cwd": FOLDER, "platform": "linux"}
        time = f"2026-10-01T08:00:{self.index:02}Z"
        self.records.append({**envelope, "timestamp": time, "version": "1", "context": context, "message": message})
        if self.index == 1:
            self.records[-1]["parentUuid"] = None
        return self.index

    def call(self, name: str, arguments: dict[str, Any]) -> int:
        self._calls += 1
        calls = [{"id": f"c-{self._calls}", "name": name, "arguments": arguments}]
        return self._add("assistant", {"role": "assistant", "content": "", "toolCalls": calls})

    def result(self, success: bool = True) -> int:
        result = {"toolCallId": f"c-{self._calls}", "toolName": "x", "content": "ok", "success": success}
        return self._add("tool_result", {"role": "tool", "content": "", "toolResults": [result]})

    def tool(self, name: str, arguments: dict[str, Any], success: bool = True) -> int:
        self.call(name, arguments)
        return self.result(success)

    def snapshot(self, index: int, tracked: dict[str, Any], backups: dict[str, Any], inside: bool = False) -> None:
        record = {
            "type": "file_history_snapshot",
            "messageId": f"u-{index}",
            "timestamp": "2026-10-01T09:00:00Z",
            "isSnapshotUpdate": False,
            "snapshot": {"trackedFiles": tracked, "fileBackups": backups},
        }
        (self.records if inside else self.snapshots).append(record)

    def write(self, home: Path) -> FileHistory:
        folder = home / ".sage" / "sessions" / SESSION
        (folder / "backups").mkdir(parents=True, exist_ok=True)
        for name, records in (("messages.jsonl", self.records), ("snapshots.jsonl", self.snapshots)):
            (folder / name).write_text("".join(json.dumps(record) + "\n" for record in records))
        for name, body in self.backups.items():
            (folder / "backups" / name).write_bytes(body)
        agent = registry.get("sage-agent")
        return FileHistory(agent, agent.locate(folder / "messages.jsonl"))


def test_a_file_that_a_tool_wrote_is_exact(tmp_path: Path) -> None:
    log = Log()
    done = log.tool("write_file", {"path": "bell.py", "content": "one\r\n"})
    edited = log.tool("edit", {"file_path": BELL, "old_string": "one", "new_string": "two"})
    failed = log.tool("write", {"file_path": BELL, "content": "x"}, success=False)
    history = log.write(tmp_path)
    assert known(history, done, BELL) == ("exact", b"one\r\n")
    assert known(history, edited, BELL) == ("exact", b"two\r\n")
    assert known(history, failed, BELL) == ("exact", b"two\r\n")


def test_commands_disturb(tmp_path: Path) -> None:
    log = Log()
    log.tool("write_file", {"path": "bell.py", "content": "one\n"})
    looked = log.tool("bash", {"command": "ls"})
    ran = log.tool("bash", {"command": "make"})
    history = log.write(tmp_path)
    assert known(history, looked, BELL)[0] == "exact"
    assert known(history, ran, BELL)[0] == "unproved"


def test_a_snapshot_tells_what_was_before_and_the_digest_of_what_was_after(tmp_path: Path) -> None:
    for inside in (False, True):
        log = Log()
        call = log.call("edit", {"file_path": BELL, "old_string": "one", "new_string": "two"})
        tracked = {"bell.py": {"originalContent": "one\n", "contentHash": digest(b"two\n"), "state": "modified"}}
        if inside:
            log.snapshot(call, tracked, {}, inside=True)
        done = log.result()
        if not inside:
            log.snapshot(call, tracked, {})
        history = log.write(tmp_path / str(inside))
        assert known(history, 1, BELL) == ("exact", b"one\n")
        assert known(history, done, BELL) == ("exact", b"two\n")


def test_what_does_not_have_the_digest_is_not_known(tmp_path: Path) -> None:
    log = Log()
    call = log.call("edit", {"file_path": BELL, "old_string": "one", "new_string": "two"})
    done = log.result()
    tracked = {"bell.py": {"originalContent": "one\n", "contentHash": digest(b"TWO\n"), "state": "modified"}}
    log.snapshot(call, tracked, {})
    history = log.write(tmp_path)
    assert known(history, done, BELL) == ("unknown", None)
    assert history.at(done, BELL).reason == "only its checksum is recorded"


def test_a_copy_is_found_in_the_folder_of_the_session(tmp_path: Path) -> None:
    log = Log()
    call = log.call("bash", {"command": "make"})
    done = log.result()
    log.backups["bell.py_1.backup"] = b"\xff\xfe"
    backup = {"backupPath": "/elsewhere/.sage/backups/bell.py_1.backup", "originalHash": digest(b"\xff\xfe")}
    log.snapshot(call, {"bell.py": {"state": "deleted", "size": 0}}, {"bell.py": backup})
    history = log.write(tmp_path)
    assert known(history, call, BELL) == ("exact", b"\xff\xfe")
    assert history.at(done, BELL).is_absent


def test_R08_a_copy_with_another_digest_is_refused(tmp_path: Path) -> None:
    log = Log()
    call = log.call("bash", {"command": "make"})
    log.result()
    log.backups["bell.py.backup"] = b"onf\n"
    backup = {"backupPath": ".sage/backups/bell.py.backup", "originalHash": digest(b"one\n")}
    log.snapshot(call, {}, {"bell.py": backup})
    history = log.write(tmp_path)
    assert known(history, call, BELL) == ("unknown", None)
    assert history.at(call, BELL).reason == "the copy of it does not have the digest that the record names"


def test_the_state_before_is_that_of_the_first_of_two_snapshots(tmp_path: Path) -> None:
    log = Log()
    call = log.call("bash", {"command": "make"})
    done = log.result()
    log.snapshot(call, {"bell.py": {"originalContent": "one\n", "contentHash": digest(b"two\n")}}, {})
    log.backups["bell.py.backup"] = b"two\n"
    backup = {"backupPath": ".sage/backups/bell.py.backup", "originalHash": digest(b"two\n")}
    log.snapshot(call, {"bell.py": {"contentHash": digest(b"three\n"), "state": "modified"}}, {"bell.py": backup})
    history = log.write(tmp_path)
    assert known(history, call, BELL) == ("exact", b"one\n")
    assert history.at(done, BELL).reason == "only its checksum is recorded"


@pytest.mark.parametrize("uuids", [("e-1", "e-2"), ("e-1", "e-1"), (None, None)])
def test_tools_of_several_erased_messages_are_all_over_with_the_next_turn(
    tmp_path: Path, uuids: tuple[str | None, str | None]
) -> None:
    log = Log()
    for uuid in uuids:
        log.records.append({"type": "erased", "was": "assistant", "uuid": uuid, "parentUuid": "elsewhere"})
    log.tool("write_file", {"path": "bell.py", "content": "one\n"})
    last = log.tool("read_file", {"path": "horn.py"})
    assert known(log.write(tmp_path), last, BELL) == ("exact", b"one\n")


def test_that_nothing_is_kept_from_before_does_not_prove_that_there_was_no_file(tmp_path: Path) -> None:
    log = Log()
    call = log.call("bash", {"command": "make"})
    log.result()
    tracked = {"bell.py": {"originalContent": None, "contentHash": digest(b"x"), "state": "created", "size": 1}}
    log.snapshot(call, tracked, {})
    history = log.write(tmp_path)
    assert not is_absent(history, 1, BELL)
    assert known(history, 1, BELL) == ("unknown", None)


def test_sage_emacs_writes_text(tmp_path: Path) -> None:
    folder = tmp_path / ".emacs.d/sage/projects/-home-ada-bell"
    folder.mkdir(parents=True)
    (folder / "metadata.json").write_text(json.dumps({"project_dir": FOLDER}))
    write = {"name": "write_file", "args": {"path": "bell.py", "content": "one\n"}, "result": "ok", "success": True}
    shell = {"name": "run_shell", "args": {"command": "make"}, "result": "", "success": True}
    lines = [
        {"role": "user", "content": "Go.", "timestamp": "2026-01-11T17:00:00-0500"},
        {"role": "assistant", "content": "", "timestamp": "2026-01-11T17:00:01-0500", "tool_calls": [write]},
        {"role": "assistant", "content": "", "timestamp": "2026-01-11T17:00:02-0500", "tool_calls": [shell]},
    ]
    path = folder / "conversation.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    agent = registry.get("sage-emacs")
    history = FileHistory(agent, agent.locate(path))
    assert known(history, 3, BELL) == ("text", b"one\n")
    assert known(history, 5, BELL) == ("unproved", b"one\n")


def test_a_copy_behind_a_link_is_not_read(tmp_path: Path) -> None:
    """A session called like a private folder, and a link beside it to where that folder is."""
    log = Log()
    call = log.call("bash", {"command": "make"})
    log.result()
    log.snapshot(call, {}, {"bell.py": {"backupPath": "key"}})
    (tmp_path / "home" / SESSION).mkdir(parents=True)
    (tmp_path / "home" / SESSION / "key").write_bytes(b"private\n")
    (tmp_path / "repo/.sage").mkdir(parents=True)
    (tmp_path / "repo/.sage/backups").symlink_to(tmp_path / "home")
    history = log.write(tmp_path / "repo")
    assert known(history, call, BELL) == ("unknown", None)
