"""What transcripts of Claude Code prove about files."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.file_history.history import FileHistory
from tests.files.asking import is_absent, known
from tests.files.claude import FOLDER, SESSION, Transcript
from tests.redact.planted import Planter

BELL = f"{FOLDER}/bell.py"
HORN = f"{FOLDER}/horn.py"


def test_a_new_file_is_exact_from_its_result_on_and_absent_before(tmp_path: Path) -> None:
    said = Transcript()
    said.prompt()
    done = said.create(BELL, "ding\r\n")
    history = said.write(tmp_path)
    assert known(history, done, BELL) == ("exact", b"ding\r\n")
    assert is_absent(history, done - 1, BELL)
    assert is_absent(history, 1, BELL)


def test_what_was_read_is_known_as_text(tmp_path: Path) -> None:
    said = Transcript()
    said.prompt()
    done = said.read(BELL, "one\ntwo\n")
    assert known(said.write(tmp_path), done, BELL) == ("text", b"one\ntwo\n")


def test_a_reading_of_a_part_proves_nothing(tmp_path: Path) -> None:
    said = Transcript()
    said.prompt()
    file = {"filePath": BELL, "content": "two\n", "numLines": 1, "startLine": 2, "totalLines": 9}
    done = said.tool("Read", {"file_path": BELL, "offset": 2}, {"type": "text", "file": file})
    history = said.write(tmp_path)
    assert known(history, done, BELL) == ("unknown", None)
    assert history.at(done, BELL).reason == "what was read of it is not all, or not text"


def test_an_edit_follows_from_the_original_in_its_record(tmp_path: Path) -> None:
    said = Transcript()
    said.prompt()
    done = said.edit(BELL, "two", "TWO", "one\ntwo\n")
    history = said.write(tmp_path)
    assert known(history, done, BELL) == ("text", b"one\nTWO\n")
    assert known(history, 1, BELL) == ("text", b"one\ntwo\n")


def test_a_copy_makes_the_edit_behind_it_exact_with_the_line_ends_of_the_file(tmp_path: Path) -> None:
    said = Transcript()
    said.prompt()
    call = said.call("Edit", {"file_path": BELL, "old_string": "two", "new_string": "2\n3"})
    said.copy(BELL, b"one\r\ntwo\r\n", 1, call)
    done = said.result({"oldString": "two", "newString": "2\n3", "originalFile": "one\ntwo\n", "structuredPatch": []})
    history = said.write(tmp_path)
    assert known(history, call, BELL) == ("exact", b"one\r\ntwo\r\n")
    assert known(history, done, BELL) == ("exact", b"one\r\n2\r\n3\r\n")


def test_an_edit_of_a_file_with_mixed_line_ends_is_known_as_text(tmp_path: Path) -> None:
    said = Transcript()
    said.prompt()
    call = said.call("Edit", {"file_path": BELL, "old_string": "two", "new_string": "2"})
    said.copy(BELL, b"one\r\ntwo\n", 1, call)
    done = said.result({"oldString": "two", "newString": "2", "originalFile": "one\ntwo\n", "structuredPatch": []})
    assert known(said.write(tmp_path), done, BELL) == ("text", b"one\n2\n")


def test_the_clients_own_account_of_a_change_comes_before_the_words_of_the_call(tmp_path: Path) -> None:
    said = Transcript()
    said.prompt()
    hunk = {"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2, "lines": [" one", "-two", "+two, by hand"]}
    told = {"oldString": "two", "newString": "2", "originalFile": "one\ntwo\n", "userModified": True}
    done = said.tool("Edit", {"file_path": BELL, "old_string": "two"}, {**told, "structuredPatch": [hunk]})
    assert known(said.write(tmp_path), done, BELL) == ("text", b"one\ntwo, by hand\n")


def test_what_the_person_altered_is_not_guessed(tmp_path: Path) -> None:
    said = Transcript()
    said.prompt()
    told = {"oldString": "two", "newString": "2", "originalFile": "one\ntwo\n", "userModified": True}
    done = said.tool("Edit", {"file_path": BELL}, {**told, "structuredPatch": []})
    assert known(said.write(tmp_path), done, BELL) == ("unknown", None)


def test_edits_chain_where_no_original_is_recorded(tmp_path: Path) -> None:
    said = Transcript()
    said.prompt()
    said.create(BELL, "one\n")
    said.edit(BELL, "one", "two", None)
    done = said.edit(BELL, "two", "three", None)
    assert known(said.write(tmp_path), done, BELL) == ("exact", b"three\n")


def test_several_edits_of_one_call_are_made_in_turn(tmp_path: Path) -> None:
    said = Transcript("1.0.100")
    said.prompt()
    edits = [{"old_string": "a", "new_string": "b"}, {"old_string": "b", "new_string": "c", "replace_all": True}]
    told = {"filePath": BELL, "edits": edits, "originalFileContents": "a b\n", "structuredPatch": []}
    done = said.tool("MultiEdit", {"file_path": BELL, "edits": edits}, told)
    assert known(said.write(tmp_path), done, BELL) == ("text", b"c c\n")


def test_a_file_written_over_is_exact_only_where_line_ends_cannot_differ(tmp_path: Path) -> None:
    def over(version: str, before: str) -> tuple[str, bytes | None]:
        said = Transcript(version)
        said.prompt()
        said.create(BELL, before)
        told = {"type": "update", "filePath": BELL, "content": "new\n", "originalFile": before.replace("\r\n", "\n")}
        done = said.tool("Write", {"file_path": BELL, "content": "new\n"}, told)
        return known(said.write(tmp_path / version / str(len(before))), done, BELL)

    assert over("2.0.60", "old\n") == ("exact", b"new\n")
    assert over("2.0.60", "old\r\n") == ("text", b"new\n")
    assert over("2.1.325", "old\r\n") == ("exact", b"new\n")


def test_a_version_of_any_length_is_read(tmp_path: Path) -> None:
    said = Transcript("9" * 5000)
    said.prompt()
    done = said.tool("Write", {"file_path": BELL, "content": "new\n"}, {"type": "update", "filePath": BELL})
    assert known(said.write(tmp_path), done, BELL) == ("text", b"new\n")


def test_a_notebook_is_known_where_the_record_holds_it(tmp_path: Path) -> None:
    said = Transcript()
    said.prompt()
    told = {"notebook_path": BELL, "original_file": "{}", "updated_file": '{"cells":[]}'}
    whole = said.tool("NotebookEdit", {"notebook_path": BELL}, told)
    part = said.tool("NotebookEdit", {"notebook_path": BELL}, {"new_source": "x"})
    history = said.write(tmp_path)
    assert known(history, whole, BELL) == ("text", b'{"cells":[]}')
    assert known(history, part, BELL) == ("unknown", None)


@pytest.mark.parametrize("told", ["Error: no such text", "User rejected tool use"])
def test_a_tool_that_failed_changed_nothing(tmp_path: Path, told: str) -> None:
    said = Transcript()
    said.prompt()
    said.create(BELL, "one\n")
    done = said.tool("Edit", {"file_path": BELL, "old_string": "x", "new_string": "y"}, told, error=True)
    history = said.write(tmp_path)
    assert known(history, done, BELL) == ("exact", b"one\n")
    assert [mark.action for mark in history.all_evidence()] == ["create"]


def test_a_command_leaves_nothing_proved_until_the_file_is_seen_again(tmp_path: Path) -> None:
    said = Transcript()
    said.prompt()
    made = said.create(BELL, "one\n")
    ran = said.shell("make bell")
    later = said.prompt()
    seen = said.read(BELL, "one\n")
    history = said.write(tmp_path)
    assert known(history, made, BELL) == ("exact", b"one\n")
    # The call is only said, and has done nothing yet.
    assert known(history, ran - 1, BELL) == ("exact", b"one\n")
    for message in (ran, later, seen):
        assert known(history, message, BELL) == ("text", b"one\n")


def test_between_two_commands_nothing_is_proved_even_if_the_file_comes_back(tmp_path: Path) -> None:
    said = Transcript()
    said.prompt()
    said.create(BELL, "one\n")
    first = said.shell("git stash")
    last = said.shell("git stash pop")
    said.read(BELL, "one\n")
    history = said.write(tmp_path)
    assert known(history, first, BELL) == ("unproved", b"one\n")
    assert history.at(first, BELL).reason == "`git stash` ran after message 4"
    assert known(history, last, BELL) == ("text", b"one\n")


def test_a_command_that_only_reads_disturbs_nothing(tmp_path: Path) -> None:
    said = Transcript()
    said.prompt()
    said.create(BELL, "one\n")
    done = said.shell("cat bell.py | wc -l && git status")
    assert known(said.write(tmp_path), done, BELL) == ("exact", b"one\n")


def test_an_edit_over_a_command_is_not_proved_without_the_original(tmp_path: Path) -> None:
    said = Transcript()
    said.prompt()
    said.create(BELL, "one\ntwo\n")
    said.shell("make")
    blind = said.edit(BELL, "two", "2", None)
    history = said.write(tmp_path)
    assert known(history, blind, BELL) == ("unproved", b"one\n2\n")
    assert history.at(blind, BELL).reason == "the content before the change is only inferred"


def test_a_command_in_the_background_disturbs_until_it_is_over(tmp_path: Path) -> None:
    said = Transcript()
    said.prompt()
    call = {"command": "make watch", "run_in_background": True}
    said.tool("Bash", call, {"stdout": "", "backgroundTaskId": "b1"})
    made = said.create(BELL, "one\n")
    assert known(said.write(tmp_path / "1"), made, BELL)[0] == "unproved"
    said.tool("TaskOutput", {"task_id": "b1"}, {"task": {"task_id": "b1", "status": "completed"}})
    seen = said.read(BELL, "one\n")
    made = said.create(HORN, "toot\n")
    history = said.write(tmp_path / "2")
    assert known(history, seen, BELL) == ("text", b"one\n")
    assert known(history, made, HORN) == ("exact", b"toot\n")


def test_sub_agents_and_foreign_tools_disturb(tmp_path: Path) -> None:
    for number, name in enumerate(("Agent", "Task", "mcp__files__write")):
        said = Transcript()
        said.prompt()
        said.create(BELL, "one\n")
        done = said.tool(name, {"prompt": "x"}, {"status": "completed"})
        assert known(said.write(tmp_path / str(number)), done, BELL)[0] == "unproved"


def test_an_agent_in_the_background_is_over_when_the_client_says_so(tmp_path: Path) -> None:
    said = Transcript()
    said.prompt()
    said.tool("Agent", {"prompt": "x"}, {"isAsync": True, "status": "async_launched", "agentId": "a1"})
    open_ = said.create(BELL, "one\n")
    note = "<task-notification>\n<tool-use-id>t-1</tool-use-id>\n<status>completed</status></task-notification>"
    said.add("user", note)
    calm = said.create(HORN, "toot\n")
    history = said.write(tmp_path)
    assert known(history, open_, BELL)[0] == "unproved"
    assert known(history, calm, HORN) == ("exact", b"toot\n")


def test_a_hook_may_have_changed_what_was_just_written(tmp_path: Path) -> None:
    said = Transcript()
    said.prompt()
    said.create(BELL, "one\n")
    hook = {"type": "hook_success", "hookEvent": "PostToolUse", "toolUseID": "t-1", "command": "tidy", "exitCode": 0}
    note = {"parentUuid": f"u-{said.index}", "type": "attachment", "uuid": "h-1", "attachment": hook}
    said.records.append({**note, "isSidechain": False, "sessionId": SESSION, "timestamp": "2026-10-01T09:00:00.000Z"})
    said.index += 1
    assert known(said.write(tmp_path), said.index, BELL)[0] == "unproved"


def test_a_command_that_the_person_typed_disturbs(tmp_path: Path) -> None:
    said = Transcript()
    said.prompt()
    made = said.create(BELL, "one\n")
    typed = said.prompt("<bash-input>sed -i s/one/two/ bell.py</bash-input>")
    said.prompt("<bash-stdout></bash-stdout>")
    history = said.write(tmp_path)
    assert known(history, made, BELL)[0] == "exact"
    assert known(history, typed, BELL)[0] == "unproved"


def test_a_slash_command_that_is_not_the_clients_own_disturbs(tmp_path: Path) -> None:
    for number, (name, certainty) in enumerate((("/model", "exact"), ("/release", "unproved"))):
        said = Transcript()
        said.prompt()
        said.create(BELL, "one\n")
        said.prompt(f"<command-message>x</command-message>\n<command-name>{name}</command-name>")
        last = said.prompt("And now?")
        assert known(said.write(tmp_path / str(number)), last, BELL)[0] == certainty


def test_a_call_without_a_result_leaves_its_file_unknown(tmp_path: Path) -> None:
    said = Transcript()
    said.prompt()
    said.create(BELL, "one\n")
    said.call("Edit", {"file_path": BELL, "old_string": "one", "new_string": "two"})
    said.prompt("[Request interrupted by user]")
    blind = said.edit(BELL, "one", "three", None)
    history = said.write(tmp_path)
    assert known(history, blind, BELL) == ("unknown", None)


def test_a_change_without_a_record_is_noticed_and_nothing_in_between_is_proved(tmp_path: Path) -> None:
    said = Transcript()
    said.prompt()
    made = said.create(BELL, "x = 'a'\n")
    later = said.prompt()
    seen = said.read(BELL, 'x = "a"\n')
    history = said.write(tmp_path)
    for message in (made, later):
        assert known(history, message, BELL) == ("unproved", b"x = 'a'\n")
    assert known(history, seen, BELL) == ("text", b'x = "a"\n')


def test_the_client_tells_of_a_change_from_outside(tmp_path: Path) -> None:
    said = Transcript()
    said.prompt()
    said.create(BELL, "one\n")
    told = {"type": "edited_text_file", "filename": BELL, "snippet": "1 two"}
    note = {"parentUuid": f"u-{said.index}", "type": "attachment", "uuid": "n-1", "attachment": told}
    said.records.append({**note, "isSidechain": False, "sessionId": SESSION, "timestamp": "2026-10-01T09:00:00.000Z"})
    said.index += 1
    history = said.write(tmp_path)
    assert known(history, said.index, BELL) == ("unknown", None)
    assert history.at(said.index, BELL).reason == "it was changed from outside"


def test_the_copies_of_a_prompt_prove_all_files_again(tmp_path: Path) -> None:
    said = Transcript()
    said.prompt()
    said.create(BELL, "one\n")
    said.shell("make")
    asked = said.prompt()
    said.snapshot(asked, {BELL: (b"ONE\n", 2), HORN: (None, 1)})
    done = said.edit(BELL, "ONE", "two", None)
    history = said.write(tmp_path)
    assert known(history, asked, BELL) == ("exact", b"ONE\n")
    assert known(history, done, BELL) == ("exact", b"two\n")
    assert is_absent(history, asked, HORN)


def test_a_copy_that_is_gone_proves_nothing(tmp_path: Path) -> None:
    said = Transcript()
    asked = said.prompt()
    said.snapshot(asked, {BELL: (b"one\n", 1)})
    said.backups.clear()
    history = said.write(tmp_path)
    assert known(history, asked, BELL) == ("unknown", None)
    assert history.at(asked, BELL).reason == "the copy of it is missing"


def test_R04_a_copy_behind_a_link_is_not_read(tmp_path: Path) -> None:
    said = Transcript()
    asked = said.prompt()
    said.snapshot(asked, {BELL: (b"one\n", 1)})
    (name,) = said.backups
    said.write(tmp_path)
    secret = tmp_path / "secret"
    secret.write_bytes(b"key")
    copy = tmp_path / ".claude" / "file-history" / SESSION / name
    copy.unlink()
    copy.symlink_to(secret)
    history = _again(tmp_path)
    assert known(history, asked, BELL) == ("unknown", None)


@pytest.mark.parametrize("name", ["../../secret", "/etc/passwd", "..", "", "secret", "0123456789abcdef@v1/../x"])
def test_R01_a_copy_is_only_looked_for_in_the_folder_of_copies(tmp_path: Path, name: str) -> None:
    said = Transcript()
    asked = said.prompt()
    said.snapshot(asked, {BELL: (b"one\n", 1)})
    said.records[-1]["snapshot"]["trackedFileBackups"]["bell.py"]["backupFileName"] = name
    (tmp_path / "secret").write_bytes(b"key")
    history = said.write(tmp_path)
    (tmp_path / ".claude" / "file-history" / SESSION / "secret").write_bytes(b"key")
    assert known(history, asked, BELL) == ("unknown", None)


def test_a_fork_finds_the_copies_of_the_session_it_came_from(tmp_path: Path) -> None:
    said = Transcript()
    asked = said.prompt()
    said.records[-1]["forkedFrom"] = {"sessionId": "0f0e7c1a-0d5b-4b6e-9d3a-6f1f0a2b3c4d", "messageUuid": "u-1"}
    said.snapshot(asked, {BELL: (b"one\n", 1)})
    history = said.write(tmp_path)
    copies = tmp_path / ".claude" / "file-history"
    (copies / SESSION).rename(copies / "0f0e7c1a-0d5b-4b6e-9d3a-6f1f0a2b3c4d")
    assert known(history, asked, BELL) == ("exact", b"one\n")


def test_copies_are_found_in_a_home_below_a_folder_called_projects(tmp_path: Path) -> None:
    said = Transcript()
    asked = said.prompt()
    said.snapshot(asked, {BELL: (b"one\n", 1)})
    assert known(said.write(tmp_path / "projects" / "home"), asked, BELL) == ("exact", b"one\n")


def test_what_another_branch_did_is_no_proof(tmp_path: Path) -> None:
    said = Transcript()
    said.prompt()
    made = said.create(BELL, "one\n")
    said.prompt("Make it two.")
    other = said.edit(BELL, "one", "two", None)
    said.add("assistant", [{"type": "text", "text": "Two."}])
    again = said.prompt("Make it three.", parent=f"u-{made}")
    blind = said.edit(BELL, "one", "three", None)
    history = said.write(tmp_path)
    assert known(history, made, BELL) == ("exact", b"one\n")
    assert known(history, other, BELL) == ("exact", b"two\n")
    # Whether the files went back with the conversation is not recorded.
    assert known(history, again, BELL)[0] == "unproved"
    assert known(history, blind, BELL)[0] in ("unproved", "unknown")


def test_paths_are_relative_to_the_folder_of_their_message(tmp_path: Path) -> None:
    said = Transcript()
    said.prompt()
    said.create("sub/../bell.py", "one\n")
    assert list(said.write(tmp_path).timelines) == [BELL]


def _again(home: Path) -> FileHistory:
    from clew.agents import registry

    agent = registry.get("claude-code")
    return FileHistory(agent, agent.locate(home / ".claude/projects/-home-ada-bell" / f"{SESSION}.jsonl"))


def test_going_back_into_the_middle_of_a_reply_is_another_branch_too(tmp_path: Path) -> None:
    said = Transcript()
    said.prompt()
    call = said.call("Write", {"file_path": BELL, "content": "one\n"})
    said.result({"type": "create", "content": "one\n", "originalFile": None})
    again = said.prompt("Rather not.", parent=f"u-{call}")
    assert known(said.write(tmp_path), again, BELL)[0] in ("unproved", "unknown")


def test_after_a_visit_to_another_branch_files_may_have_been_put_back(tmp_path: Path) -> None:
    said = Transcript()
    first = said.prompt()
    made = said.create(BELL, "one\n")
    said.add("assistant", [{"type": "text", "text": "Done."}])
    last = said.prompt("Thanks.")
    said.prompt("Begin again.", parent=f"u-{first}")
    back = said.prompt("No, go on there.", parent=f"u-{last}")
    history = said.write(tmp_path)
    assert known(history, made, BELL) == ("exact", b"one\n")
    assert known(history, last, BELL) == ("exact", b"one\n")
    assert known(history, back, BELL) == ("unproved", b"one\n")


@pytest.mark.parametrize("before", range(10, 50, 5))
def test_RD06_a_command_that_is_told_in_part_is_cut_between_words(tmp_path: Path, before: int) -> None:
    """Half of a token would not be masked any more."""
    token = Planter("commands").github()
    said = Transcript()
    said.prompt()
    said.create(f"{FOLDER}/ship.sh", "one\n")
    last = said.shell(f"deploy {'x' * before} {token} --now")
    reason = said.write(tmp_path).at(last, f"{FOLDER}/ship.sh").reason or ""
    assert "deploy" in reason
    assert token in reason or not any(token[at : at + 8] in reason for at in range(len(token) - 8)), reason
