"""What sessions of Pi prove about files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from clew.agents import registry
from clew.file_history.history import FileHistory
from tests.files.asking import known

FOLDER = "/home/ada/bell"
BELL = f"{FOLDER}/bell.py"
PATCH = "--- bell.py\n+++ bell.py\n@@ -1,1 +1,1 @@\n-one\n+two\n"


class Log:
    """A session that grows."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = [{"type": "session", "version": 3, "id": "s", "cwd": FOLDER}]
        self.index = 0
        self.add("user", content="Go.")

    def add(self, role: str, **message: Any) -> int:
        parent = str(self.index) if self.index else None
        self.index += 1
        entry = {"type": "message", "id": str(self.index), "parentId": parent}
        self.lines.append({**entry, "message": {"role": role, **message}})
        return self.index

    def tool(self, name: str, text: str = "ok", *, failed: bool = False, details: Any = None, **given: Any) -> int:
        call = f"c{self.index}"
        self.add("assistant", content=[{"type": "toolCall", "id": call, "name": name, "arguments": given}])
        content = [{"type": "text", "text": text}]
        result = {"toolCallId": call, "toolName": name, "content": content, "details": details, "isError": failed}
        return self.add("toolResult", **result)

    def history(self, folder: Path) -> FileHistory:
        path = folder / "s.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in self.lines), encoding="utf-8")
        agent = registry.get("pi")
        return FileHistory(agent, agent.locate(path))


def test_what_tools_wrote_and_edited_is_exact(tmp_path: Path) -> None:
    log = Log()
    written = log.tool("write", path="bell.py", content="one\r\n")
    edited = log.tool("edit", path=BELL, edits=[{"oldText": "ONE", "newText": "two"}], details={"patch": PATCH})
    older = log.tool("edit", path=f"@{BELL}", oldText="two", newText="three")
    failed = log.tool("write", path="bell.py", content="x", failed=True)
    history = log.history(tmp_path)
    assert known(history, written, BELL) == ("exact", b"one\r\n")
    assert known(history, edited, BELL) == ("exact", b"two\r\n")
    assert known(history, older, BELL) == ("exact", b"three\r\n")
    assert known(history, failed, BELL) == ("exact", b"three\r\n")


def test_a_reading_shows_the_file_unless_it_is_cut(tmp_path: Path) -> None:
    log = Log()
    part = log.tool("read", "one\n", path="part.py", limit=1)
    cut = log.tool("read", "one\n\n[Showing lines 1-1 of 9.]", path="cut.py", details={"truncation": {}})
    picture = log.tool("read", "Read image file [image/png]\nIt is too large.", path="bell.png")
    whole = log.tool("read", "one\n", path="bell.py")
    history = log.history(tmp_path)
    assert known(history, part, f"{FOLDER}/part.py")[1] is None
    assert known(history, cut, f"{FOLDER}/cut.py")[1] is None
    assert known(history, picture, f"{FOLDER}/bell.png")[1] is None
    assert known(history, whole, BELL) == ("exact", b"one\n")


def test_commands_of_the_model_and_of_the_person_can_change_any_file(tmp_path: Path) -> None:
    log = Log()
    log.tool("write", path="bell.py", content="one\n")
    looked = log.tool("bash", command="ls")
    listed = log.tool("grep", pattern="one")
    typed = log.add("bashExecution", command="git status", output="")
    ran = log.add("bashExecution", command="make", output="")
    history = log.history(tmp_path)
    assert {known(history, index, BELL)[0] for index in (looked, listed, typed)} == {"exact"}
    assert known(history, ran, BELL)[0] == "unproved"


def test_an_interrupted_call_may_have_changed_its_file(tmp_path: Path) -> None:
    log = Log()
    log.tool("write", path="bell.py", content="one\n")
    call = {"type": "toolCall", "id": "cut", "name": "write", "arguments": {"path": "bell.py", "content": "two\n"}}
    called = log.add("assistant", content=[call])
    prompt = log.add("user", content="Go on.")
    late = log.add("toolResult", toolCallId="cut", toolName="write", content=[{"type": "text", "text": "ok"}])
    history = log.history(tmp_path)
    assert known(history, called, BELL) == ("exact", b"one\n")
    assert known(history, prompt, BELL) == ("unknown", None)
    assert known(history, late, BELL) == ("exact", b"two\n")
