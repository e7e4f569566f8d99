"""What sessions of OpenCode prove about files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from clew.file_history.history import FileHistory
from clew.model.json import JSON
from tests.agents.opencode_database import AGENT, FOLDER, SESSION, Database, database_in, tool
from tests.files.asking import is_absent, known

BELL, HORN = f"{FOLDER}/bell.py", f"{FOLDER}/horn.py"


class Log:
    """A session that grows by calls of tools; each is one message, and its result the next."""

    def __init__(self, database: Database) -> None:
        self.database, self.index = database, 1
        database.session()
        database.prompt(SESSION, "Ring the bell.")

    def tool(self, name: str, details: dict[str, JSON], **given: JSON) -> int:
        """Returns the message with the result."""
        part = {**tool(name, given, "ok", metadata=details), "callID": f"call_{self.index}"}
        self.database.reply(SESSION, part)
        self.index += 2
        return self.index

    def read(self, text: str, path: str = BELL, lines: int | None = None) -> int:
        count = text.count("\n") + 1
        display = {"type": "file", "text": text, "lineStart": 1, "lineEnd": count, "totalLines": lines or count}
        return self.tool("read", {"display": display}, filePath=path)

    def edit(self, old: str, new: str, patch: str) -> int:
        return self.tool("edit", {"diff": patch}, filePath=BELL, oldString=old, newString=new)

    def history(self) -> FileHistory:
        (source,) = AGENT.discover(self.database.path.parent)
        return FileHistory(AGENT, source)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with closing(Database(database_in(tmp_path))) as database:
        yield Log(database)


def patch(*lines: str, start: int = 1) -> str:
    old = sum(line[0] in " -" for line in lines)
    new = sum(line[0] in " +" for line in lines)
    return "\n".join(["--- bell.py", "+++ bell.py", f"@@ -{start},{old} +{start},{new} @@", *lines, ""])


def test_a_patch_that_reaches_the_end_completes_a_reading(log: Log) -> None:
    log.read("one\ntwo")
    edited = log.edit("two", "TWO", patch(" one", "-two", "+TWO"))
    assert known(log.history(), edited, BELL) == ("text", b"one\nTWO\n")


def test_a_patch_shows_that_the_last_line_does_not_end(log: Log) -> None:
    log.read("one\ntwo")
    edited = log.edit("one", "ONE", patch("-one", "+ONE", " two", "\\ No newline at end of file"))
    assert known(log.history(), edited, BELL) == ("text", b"ONE\ntwo")


def test_a_patch_of_the_middle_leaves_the_end_to_a_later_one(log: Log) -> None:
    lines = [f"line {number}" for number in range(1, 20)]
    log.read("\n".join(lines))
    middle = log.edit("line 5", "FIVE", patch(" line 4", "-line 5", "+FIVE", " line 6", start=4))
    end = log.edit("line 19", "LAST", patch(" line 18", "-line 19", "+LAST", start=18))
    history = log.history()
    lines[4] = "FIVE"
    assert known(history, middle, BELL) == ("text", "".join(f"{line}\n" for line in lines).encode())
    lines[18] = "LAST"
    assert known(history, end, BELL) == ("text", "".join(f"{line}\n" for line in lines).encode())


def test_a_patch_of_the_middle_proves_no_content(log: Log) -> None:
    log.read("\n".join(f"line {number}" for number in range(1, 20)))
    middle = log.edit("line 5", "FIVE", patch(" line 4", "-line 5", "+FIVE", " line 6", start=4))
    assert known(log.history(), middle, BELL) == ("unknown", None)


def test_a_command_after_a_reading_may_have_changed_the_file(log: Log) -> None:
    log.read("one\ntwo")
    log.tool("bash", {}, command="make")
    edited = log.edit("two", "TWO", patch(" one", "-two", "+TWO"))
    assert known(log.history(), edited, BELL)[1] is None


@pytest.mark.parametrize("text, lines", [("one\ntwo", 3), ("x" * 2001 + "\ntwo", None)], ids=["part", "cut line"])
def test_a_reading_that_does_not_show_all_proves_nothing(log: Log, text: str, lines: int | None) -> None:
    log.read(text, lines=lines)
    edited = log.edit("two", "TWO", patch("-two", "+TWO", start=2))
    assert known(log.history(), edited, BELL)[1] is None


def test_a_patch_that_is_cut_at_the_left_is_not_applied(log: Log) -> None:
    log.tool("write", {"exists": False}, filePath=BELL, content="\n\n\n")
    edited = log.edit("\n\n\n", "\n    two\n\n", patch(" ", "-", "+two", " "))
    assert known(log.history(), edited, BELL) == ("exact", b"\n    two\n\n")


def test_edits_of_older_versions_hold_the_whole_text(log: Log) -> None:
    texts = {"before": "one\r\ntwo\r\n", "after": "one\r\nTWO\r\n"}
    found = log.tool("edit", {"filediff": texts}, filePath=BELL, oldString="two", newString="TWO")
    log.tool("write", {"exists": False}, filePath=HORN, content="toot\n")
    texts = {"before": "toot\n", "after": "TOOT\n"}
    louder = log.tool("edit", {"filediff": texts}, filePath=HORN, oldString="toot", newString="TOOT")
    texts = {"before": "", "after": "new\n"}
    empty = log.tool("edit", {"filediff": texts}, filePath=f"{FOLDER}/new.py", oldString="", newString="new\n")
    history = log.history()
    assert known(history, found - 1, BELL) == ("text", b"one\ntwo\n")
    assert known(history, found, BELL) == ("text", b"one\nTWO\n")
    assert known(history, louder, HORN) == ("exact", b"TOOT\n")
    assert known(history, empty, f"{FOLDER}/new.py") == ("text", b"new\n")
    assert known(history, empty - 1, f"{FOLDER}/new.py")[1] is None


def test_writing_over_an_unknown_file_may_keep_its_byte_order_mark(log: Log) -> None:
    over = log.tool("write", {"exists": True}, filePath=BELL, content="one\n")
    new = log.tool("write", {"exists": False}, filePath=HORN, content="one\r\n")
    again = log.tool("write", {"exists": True}, filePath=HORN, content="two\n")
    history = log.history()
    assert known(history, over, BELL) == ("text", b"one\n")
    assert known(history, new, HORN) == ("exact", b"one\r\n")
    assert known(history, again, HORN) == ("exact", b"two\n")


def test_patches_add_update_move_and_delete(log: Log) -> None:
    asked = "*** Begin Patch\n*** Add File: horn.py\n+toot\n*** End Patch"
    file = {"filePath": HORN, "type": "add", "patch": "@@ -0,0 +1,1 @@\n+toot\n"}
    added = log.tool("apply_patch", {"files": [file]}, patchText=asked)
    file = {"filePath": HORN, "type": "update", "patch": "@@ -1,1 +1,1 @@\n-toot\n+TOOT\n"}
    updated = log.tool("apply_patch", {"files": [file]}, patchText="...")
    file = {**file, "type": "move", "movePath": BELL, "patch": "@@ -1,1 +1,1 @@\n-TOOT\n+dong\n"}
    moved = log.tool("apply_patch", {"files": [file]}, patchText="...")
    deleted = log.tool("apply_patch", {"files": [{"filePath": BELL, "type": "delete", "patch": ""}]}, patchText="...")
    history = log.history()
    assert known(history, added, HORN) == ("exact", b"toot\n")
    assert known(history, updated, HORN) == ("exact", b"TOOT\n")
    assert known(history, moved, BELL) == ("exact", b"dong\n")
    assert is_absent(history, moved, HORN)
    assert is_absent(history, deleted, BELL)


def test_a_new_file_whose_patch_is_cut_at_the_left_is_not_known(log: Log) -> None:
    asked = "*** Begin Patch\n*** Add File: horn.py\n+    toot\n*** End Patch"
    file = {"filePath": HORN, "type": "add", "patch": "@@ -0,0 +1,1 @@\n+toot\n"}
    added = log.tool("apply_patch", {"files": [file]}, patchText=asked)
    assert known(log.history(), added, HORN)[1] is None


def test_version_2_reads_whole_files(tmp_path: Path) -> None:
    with closing(Database(database_in(tmp_path), version_2=True)) as database:
        database.session(table="session_v2", version="2.0.23")
        database.row_of_version_2(SESSION, "user", {"text": "Ring the bell."})
        calls: tuple[tuple[str, dict[str, JSON], dict[str, JSON]], ...] = (
            ("read", {"path": "bell.py"}, {"content": "one\r\n", "encoding": "utf8"}),
            ("read", {"path": "part.py", "limit": 1}, {"content": "one", "encoding": "utf8"}),
            ("write", {"path": "horn.py", "content": "toot\n"}, {"existed": False}),
        )
        content = [
            {"type": "tool", "id": f"call_{number}", "name": name, "state": state(given, details)}
            for number, (name, given, details) in enumerate(calls)
        ]
        database.row_of_version_2(SESSION, "assistant", {"content": content})
        (source,) = AGENT.discover(database.path.parent)
        history = FileHistory(AGENT, source)
        last = max(history.all_messages)
        assert known(history, last, BELL) == ("text", b"one\n")
        assert known(history, last, f"{FOLDER}/part.py")[1] is None
        assert known(history, last, HORN) == ("exact", b"toot\n")


def state(given: dict[str, JSON], details: dict[str, JSON]) -> dict[str, JSON]:
    return {"status": "completed", "input": given, "structured": details, "content": [{"type": "text", "text": "ok"}]}
