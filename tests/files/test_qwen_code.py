"""What sessions of Qwen Code prove about files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clew.agents.file_evidence import ABSENT, Event, FileChange, FileContent, WriterFinished, WriterStarted
from clew.agents.qwen_code import QwenCode
from tests.agents.qwen_sessions import FOLDER, SESSION, Transcript, call, diff_display

AGENT = QwenCode()
BELL = f"{FOLDER}/bell.py"


def evidence(log: Transcript, home: Path) -> list[Event]:
    source = AGENT.locate(log.write(home))
    return list(AGENT.file_changes(source, AGENT.units(source)))


def changes(log: Transcript, home: Path) -> list[FileChange]:
    return [event for event in evidence(log, home) if isinstance(event, FileChange)]


def ran(log: Transcript, name: str, output: str, display: Any = "", **arguments: Any) -> None:
    identity = f"call_{len(log.records)}"
    log.reply(call(identity, name, **arguments))
    log.result(identity, name, output, display=display)


def test_a_new_file_did_not_exist(tmp_path: Path) -> None:
    log = Transcript()
    output = f"Successfully created and wrote to new file: {BELL}."
    ran(log, "write_file", output, diff_display(BELL, "", "dong\n"), file_path=BELL, content="dong\n")
    (change,) = changes(log, tmp_path)
    assert (change.path, change.action) == (BELL, "create")
    assert (change.before, change.after) == (ABSENT, FileContent(b"dong\n", True))


def test_an_edit_keeps_how_lines_end(tmp_path: Path) -> None:
    log = Transcript()
    display = diff_display(BELL, "one\ntwo\n", "one\nTWO\n")
    ran(log, "edit", "updated", display, file_path=BELL, old_string="two", new_string="TWO")
    (change,) = changes(log, tmp_path)
    assert change.before == FileContent(b"one\ntwo\n", False)
    assert change.edit is not None
    assert change.edit(FileContent(b"one\r\ntwo\r\n", True)) == FileContent(b"one\r\nTWO\r\n", True)


def test_a_display_that_was_cut_is_no_content(tmp_path: Path) -> None:
    log = Transcript()
    cut = {"truncatedForSession": True, "originalContentTruncated": True, "newContentTruncated": True}
    display = {**diff_display(BELL, "one [...]", "ONE [...]"), **cut}
    ran(log, "edit", "updated", display, file_path=BELL, old_string="one", new_string="ONE")
    ran(log, "write_file", "Successfully overwrote file.", display, file_path=BELL, content="whole\n")
    edited, written = changes(log, tmp_path)
    assert (edited.before, written.before) == (None, None)
    assert edited.edit is not None and written.edit is not None
    assert edited.edit(FileContent(b"one\ntwo\n", True)) == FileContent(b"ONE\ntwo\n", True)
    assert written.edit(ABSENT) == FileContent(b"whole\n", True)


def test_only_whole_files_are_known_by_reading(tmp_path: Path) -> None:
    log = Transcript()
    ran(log, "read_file", "dong\n", file_path=BELL)
    ran(log, "read_file", "dong\n", file_path=BELL, offset=3)
    ran(log, "read_file", "Showing lines 1-9 of 99 total lines.\n\n---\n\ndong\n", file_path=BELL)
    read = [change.after for change in changes(log, tmp_path)]
    assert read == [FileContent(b"dong\n", False), None, None]


def test_a_failed_call_changes_nothing(tmp_path: Path) -> None:
    log = Transcript()
    log.reply(call("call_1", "edit", file_path=BELL, old_string="a", new_string="b"))
    log.result("call_1", "edit", "not found", is_error=True)
    assert changes(log, tmp_path) == []


def test_commands_can_change_any_file_until_they_end(tmp_path: Path) -> None:
    log = Transcript()
    ran(log, "run_shell_command", "", command="make", is_background=False)
    ran(log, "run_shell_command", "", command="cat bell.py", is_background=False)
    found = evidence(log, tmp_path)
    assert [type(event) for event in found] == [WriterStarted, WriterFinished]
    assert isinstance(found[0], WriterStarted) and found[0].what == "`make`"


def test_a_subagent_in_the_background_ends_with_its_notification(tmp_path: Path) -> None:
    log = Transcript()
    log.reply(call("call_1", "agent", prompt="Count."))
    log.result("call_1", "agent", "launched", display={"type": "task_execution", "executionMode": "background"})
    log.reply({"text": "It counts."})
    words = "<task-notification>\n<tool-use-id>call_1</tool-use-id>\n</task-notification>"
    log.prompt(words, subtype="notification", provenance="system")
    started, finished = evidence(log, tmp_path)
    assert isinstance(started, WriterStarted) and started.call == 1
    assert finished == WriterFinished("call_1", 4)


def test_backups_are_exact_and_counted_once(tmp_path: Path) -> None:
    log = Transcript()
    log.prompt("Ring.")
    backup = {"backupFileName": "0123456789abcdef@v1", "version": 1, "backupTime": "2026-11-16T10:00:00.000Z"}
    absent = {"backupFileName": None, "version": 1, "backupTime": "2026-11-16T10:00:00.000Z"}
    gone = {**backup, "backupFileName": "fedcba9876543210@v1"}
    files = {"bell.py": backup, f"{FOLDER}/horn.py": absent, "gone.py": gone, "failed.py": {**gone, "failed": True}}
    for _ in range(2):
        log.system("file_history_snapshot", snapshots=[{"promptId": "p", "trackedFileBackups": files}])
    folder = tmp_path / ".qwen" / "file-history" / SESSION
    folder.mkdir(parents=True)
    (folder / "0123456789abcdef@v1").write_bytes(b"dong\r\n")
    found = changes(log, tmp_path)
    assert [(change.path, change.after) for change in found] == [
        (BELL, FileContent(b"dong\r\n", True)),
        (f"{FOLDER}/horn.py", ABSENT),
        (f"{FOLDER}/gone.py", None),
    ]
    assert found[2].note == "the copy of it is missing"
    source = AGENT.locate(log.write(tmp_path))
    assert list(AGENT.copies(source)) == [folder]
