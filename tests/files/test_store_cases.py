"""Single cases of sessions of clew's own store: branches, undo, people, damage, and how every command tells them."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from clew.io.blobs import digest_of, name_of
from clew.store import FileBackup, ToolCall, ToolResult, TrackedFile
from clew.store.erase import erase_record
from tests.cli.running import Ran, clew
from tests.files.asking import is_absent, known
from tests.files.storing import Deed, World

APPEND, OTHER = Deed("append", "a.txt"), Deed("append", "b.txt")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("CLEW_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "home/work").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "home/work")
    return World(tmp_path / "home")


def asked(world: World, *words: str | Path) -> Ran:
    world.session.close()
    return clew(*words, "--home", world.home)


def blamed(world: World, name: str = "a.txt") -> list[tuple[str, int | None]]:
    rows = asked(world, "blame", world.work / name, "--json").json
    return [(row["text"].split()[0], row.get("message")) for row in rows]


def test_all_commands_tell_the_same(world: World, tmp_path: Path) -> None:
    world.reply([([APPEND, Deed("delete", "b.txt"), Deed("append", "sub/c.txt")], False)])
    world.say("assistant")
    rows = asked(world, "files", "s", "--json").json
    told = {(row["message"], Path(row["path"]).name): row for row in rows}
    assert {(*key, row["action"], row["how"]) for key, row in told.items()} == {
        (2, "a.txt", "change", "backup"),
        (2, "b.txt", "delete", "backup"),
        (2, "c.txt", "create", "backup"),
    }
    for message in (1, 2, 3, 4):
        for name in ("a.txt", "b.txt", "sub/c.txt"):
            truth = world.moments[message].get(name)
            shown = asked(world, "show", f"s#{message}", "--file", name, "--json").json
            assert (shown["certainty"], shown["exists"]) == ("exact", truth is not None)
            assert shown.get("content", "") == (truth or b"").decode()
            state = told[2, Path(name).name]["before" if message < 3 else "after"]
            assert state.get("sha256") == (digest_of(truth) if truth is not None else None)
    target = tmp_path / "target"
    target.mkdir()
    assert asked(world, "restore", "s#1", "--into", target, "--write").code == 0
    assert {path.name: path.read_bytes() for path in target.iterdir()} == world.moments[1]
    for reference in ("s#2", "s#3", "s#1..4"):
        diffs = asked(world, "diff", reference, "--json").json
        assert [(Path(one["path"]).name, one["before"]["how"], one["after"]["certainty"]) for one in diffs] == [
            ("a.txt", "backup", "exact"),
            ("b.txt", "backup", "exact"),
            ("c.txt", "backup", "exact"),
        ]
    assert blamed(world) == [("i", None), ("m2", 2)]
    assert asked(world, "files", "s").out.split()[5:10] == ["#2", "change", "exact", "copy", "a.txt"]


def test_what_a_person_did_between_two_runs_is_nobodys(world: World) -> None:
    world.reply([([APPEND], True), ([APPEND], False)], persons=[None, Deed("prepend", "a.txt")])
    world.say("user")
    texts = [one["diff"].splitlines() for one in asked(world, "diff", "s#2", "--json").json]
    assert [[line[1:3] for line in text if line[0] in "+-" and line[:3] not in ("+++", "---")] for text in texts] == [
        ["m2"],
        ["m2"],
    ]
    assert blamed(world) == [("p", None), ("i", None), ("m2", 2), ("m2", 2)]
    [outside] = [row for row in asked(world, "files", "s", "--json").json if row["action"] == "outside"]
    assert (outside["message"], outside["result"], outside["before"]["certainty"]) == (2, 3, "exact")
    assert ["#2..3", "outside", "exact", "copy", "a.txt"] in [
        line.split() for line in asked(world, "files", "s").out.splitlines()
    ]
    assert asked(world, "files", "s#2", "--json").json == [
        row for row in asked(world, "files", "s", "--json").json if row["action"] == "change"
    ]


def test_between_two_messages_it_is_not_proved_and_that_is_said(world: World) -> None:
    world.reply([([APPEND], False)])
    world.person(Deed("prepend", "a.txt"))
    world.say("user")
    world.reply([([APPEND], False)])
    history = world.history()
    assert known(history, 6, world.path("a.txt")) == ("exact", world.moments[6]["a.txt"])
    assert known(history, 4, world.path("a.txt"))[0] == "unproved"
    assert history.at(4, world.path("a.txt")).reason == "something changed it between messages 2 and 6"
    assert blamed(world) == [("p", None), ("i", None), ("m2", 2), ("m5", 5)]


def test_a_file_that_was_undone_is_of_whoever_wrote_it_before(world: World) -> None:
    world.reply([([APPEND], False)])
    world.reply([([Deed("rewrite", "a.txt")], True)], results="none")
    world.session.undo(root=world.work)
    assert blamed(world) == [("i", None), ("m2", 2)]  # also before anything is said
    world.say("user")
    world.reply([([APPEND], False)])
    history, path = world.history(), world.path("a.txt")
    for message in range(1, world.index + 1):
        assert known(history, message, path) == ("exact", world.moments[message]["a.txt"])
    assert blamed(world) == [("i", None), ("m2", 2), ("m6", 6)]
    rows = asked(world, "files", "s", "--json").json
    assert [(row["message"], row["result"], row["action"]) for row in rows] == [
        (2, 3, "change"),
        (4, 5, "change"),
        (4, 5, "undo"),
        (6, 7, "change"),
    ]
    assert asked(world, "files", "s#5", "--changes").code == 0
    assert [row["action"] for row in asked(world, "files", "s#4", "--json").json] == ["change"]
    [diff] = asked(world, "diff", "s#4", "--json").json
    assert diff["diff"].endswith("@@ -1,2 +1 @@\n-i 1\n-m2 3\n+m4 4\n")


def test_a_redo_gives_the_lines_back_to_who_wrote_them(world: World) -> None:
    world.reply([([Deed("rewrite", "a.txt"), OTHER], False)])
    world.session.undo(root=world.work)
    world.session.redo(root=world.work)
    assert blamed(world) == [("m2", 2)]
    rows = asked(world, "files", "s", "--json").json
    assert [(row["action"], row["result"]) for row in rows if row["path"].endswith("a.txt")] == [
        ("change", 3),
        ("undo", None),
        ("redo", None),
    ]


def test_a_branch_that_was_left_is_as_it_was(world: World) -> None:
    world.reply([([APPEND], False)])
    world.say("assistant")
    left = world.index
    world.session.undo(world.uuids[1], root=world.work)
    world.say("user")
    world.reply([([Deed("rewrite", "a.txt")], True)], results="none")
    world.session.switch(world.uuids[left])
    world.say("user")
    history = world.history()
    for message in range(1, world.index + 1):
        answers = [known(history, message, world.path(name)) for name in ("a.txt", "b.txt") if name != "b.txt"]
        assert answers == [("exact", world.moments[message]["a.txt"])], message
    assert world.moments[left] != world.moments[world.index]


def test_a_branch_without_a_word_proves_nothing_of_what_was_changed_elsewhere(world: World) -> None:
    """Whoever names an older message as parent may have put files back by other means."""
    world.look()
    world.reply([([APPEND], False)])
    world.say("user", parent=2)
    answer = world.history().at(world.index, world.path("a.txt"))
    assert (answer.certainty, answer.reason) == ("unproved", "message 4, on another branch, changed it")


def copies(world: World) -> Path:
    return world.session.folder / "backups"


def test_R08_a_copy_that_is_gone_is_said(world: World) -> None:
    world.reply([([APPEND], False)])
    world.say("assistant")
    after = world.disk()["a.txt"]
    (copies(world) / name_of(digest_of(after))).unlink()
    history, path = world.history(), world.path("a.txt")
    assert known(history, 2, path) == ("exact", world.moments[2]["a.txt"])
    answer = history.at(3, path)
    assert (answer.certainty, answer.reason) == ("unknown", f"the copy {digest_of(after)[:12]} is missing")
    assert blamed(world) == [("i", None), ("m2", None)]
    told = asked(world, "diff", "s#2")
    assert told.code == 1 and "is missing" in told.err
    assert asked(world, "show", "s#3", "--file", "a.txt").code == 1


def test_R08_a_copy_that_is_gone_may_still_follow_from_the_call(world: World) -> None:
    """A call that holds what it wrote, and the digest that says that this was it."""
    body = b"m2 whole\n"
    calls = [ToolCall(id="w", name="write_file", arguments={"path": "a.txt", "content": body.decode()})]
    message = world.note(world.session.assistant("I write.", calls=calls))
    with world.session.watch(message, ["a.txt"], root=world.work):
        (world.work / "a.txt").write_bytes(body)
    world.note(world.session.results(ToolResult(tool_call_id="w", tool_name="write_file", content="ok")))
    history, path = world.history(), world.path("a.txt")
    assert [(mark.action, mark.how) for mark in history.timelines[path].all_evidence] == [("change", "backup")]
    assert known(history, 3, path) == ("exact", body)
    (copies(world) / name_of(digest_of(body))).unlink()
    assert known(world.history(), 3, path) == ("exact", body)


@pytest.mark.parametrize("damage", [b"", b"\0" * 40, b"(\xb5/\xfd no frame"])
def test_R08_a_copy_that_is_damaged_is_said(world: World, damage: bytes) -> None:
    world.reply([([APPEND], False)])
    world.say("assistant")
    before = world.moments[1]["a.txt"]
    (copies(world) / name_of(digest_of(before))).write_bytes(damage)
    history, path = world.history(), world.path("a.txt")
    assert known(history, 1, path) == ("unknown", None)
    [mark] = history.timelines[path].all_evidence
    assert mark.before is None and "is damaged" in str(mark.note)
    assert asked(world, "diff", "s#2").code == 1


def edit_snapshots(world: World, change: Any) -> None:
    """Rewrite the records of the snapshots, one by one; what the change gives stands in their place."""
    world.session.close()
    log = world.session.folder / "snapshots.jsonl"
    lines = [change(json.loads(line)) for line in log.read_bytes().splitlines()]
    log.write_bytes(b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines))


def test_R08_a_record_that_names_another_digest_is_not_believed(world: World) -> None:
    world.reply([([APPEND], False)])

    def other(record: dict[str, Any]) -> dict[str, Any]:
        for backup in record["snapshot"]["fileBackups"].values():
            backup["originalHash"] = "0" * 64
        return record

    edit_snapshots(world, other)
    [mark] = world.history().timelines[world.path("a.txt")].all_evidence
    assert mark.before is None and mark.note == "the copy of it does not have the digest that the record names"
    assert known(world.history(), 1, world.path("a.txt")) == ("unknown", None)


def test_a_copy_from_before_is_gone_and_something_else_was_known(world: World) -> None:
    """What the last record left is not what the next one found; without a copy of that, nothing is made up."""
    world.reply([([APPEND], False)])
    world.person(Deed("prepend", "a.txt"))
    found = world.disk()["a.txt"]
    world.reply([([APPEND], False)])
    (copies(world) / name_of(digest_of(found))).unlink()
    marks = world.history().timelines[world.path("a.txt")].all_evidence
    assert [mark.before is None for mark in marks] == [False, True]
    assert ("p", None) in blamed(world)


def test_S04_a_torn_end_is_a_tool_that_was_cut_off(world: World) -> None:
    world.reply([([APPEND], True)], results="none")
    world.say("user")
    log = world.session.folder / "snapshots.jsonl"
    world.session.close()
    log.write_bytes(log.read_bytes()[:-30])
    answer = world.history().at(3, world.path("a.txt"))
    assert (answer.certainty, answer.reason) == ("unknown", "a tool that was to change it was interrupted")
    assert known(world.history(), 1, world.path("a.txt")) == ("exact", world.moments[1]["a.txt"])


def test_R08_a_line_that_cannot_be_read_may_have_told_of_any_file(world: World) -> None:
    world.reply([([APPEND], True)], results="none")
    world.reply([([APPEND], True)], results="none")
    world.reply([([OTHER], True)], results="none")
    world.say("user")
    second = world.uuids[3]
    edit_snapshots(world, lambda record: b'{"type":"file\n' if record["messageId"] == second else record)
    history, path = world.history(), world.path("a.txt")
    for message in range(1, world.index + 1):
        certainty, body = known(history, message, path)
        assert certainty != "exact" or body == world.moments[message]["a.txt"], message
    reason = history.at(3, path).reason
    assert reason == "something whose snapshot cannot be read ran after message 2"


def test_what_cannot_be_read_is_over_after_the_undo_whose_snapshot_can(world: World) -> None:
    for _ in range(2):
        world.reply([([APPEND], True)], results="none")
    world.session.undo(root=world.work)
    world.say("user")
    world.look()
    world.say("user")
    second = world.uuids[3]
    edit_snapshots(world, lambda record: b'{"type":"file\n' if record["messageId"] == second else record)
    history, path = world.history(), world.path("a.txt")
    assert known(history, world.index, path) == ("exact", world.disk()["a.txt"])
    assert history.at(3, path).reason == "something whose snapshot cannot be read ran after message 2"


def test_tools_at_once_of_which_one_ended_with_another_file(world: World) -> None:
    message = world.note(world.session.assistant("I do it."))
    first, second = (world.session.watch(message, [name], root=world.work) for name in ("a.txt", "b.txt"))
    first.before()
    second.before()
    world.deed(APPEND, "m2")
    second.after()
    first.after()
    world.say("user")
    log = world.session.folder / "snapshots.jsonl"
    world.session.close()
    *others, last = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([*others, last.replace(b"a.txt", b"c.txt")]))
    history, path = world.history(), world.path("a.txt")
    assert known(history, 1, path) == ("exact", world.moments[1]["a.txt"])
    assert history.at(3, path).certainty == "unknown"


def test_copies_behind_a_link_are_not_followed(world: World, tmp_path: Path) -> None:
    world.reply([([APPEND], False)])
    world.session.close()
    copies(world).rename(tmp_path / "elsewhere")
    copies(world).symlink_to(tmp_path / "elsewhere")
    [mark] = world.history().timelines[world.path("a.txt")].all_evidence
    assert mark.before is mark.after is None and "behind a link" in str(mark.note)


def test_a_message_that_was_erased_may_have_changed_anything(world: World) -> None:
    world.look()
    world.reply([([APPEND], True)])
    world.say("user")
    world.session.close()
    erase_record(world.session.folder, world.uuids[4])
    history, path = world.history(), world.path("a.txt")
    assert known(history, 3, path) == ("exact", world.moments[3]["a.txt"])
    answer = history.at(5, path)  # what was message 6, for the erased one does not count
    assert (answer.certainty, answer.reason) == (
        "unproved",
        "a tool of a message that was erased ran after message 3",
    )


def test_a_watch_by_name_speaks_for_one_call(world: World) -> None:
    """Two commands, and one look by name: the other command may have come behind it."""
    calls = [ToolCall(id=name, name="bash", arguments={"command": "make"}) for name in "xy"]
    message = world.note(world.session.assistant("Two.", calls=calls))
    world.run(message, 2, [APPEND], named=True)
    world.note(world.session.results(*(ToolResult(tool_call_id=n, tool_name="bash", content="") for n in "xy")))
    answer = world.history().at(3, world.path("a.txt"))
    assert (answer.certainty, answer.reason) == ("unproved", "`make` ran after message 2")


def test_a_watch_of_the_whole_folder_speaks_for_all_calls(world: World) -> None:
    world.look()
    calls = [ToolCall(id=name, name="bash", arguments={"command": "make"}) for name in "xy"]
    message = world.note(world.session.assistant("Two.", calls=calls))
    world.run(message, world.index, [APPEND], named=False)
    world.note(world.session.results(*(ToolResult(tool_call_id=n, tool_name="bash", content="") for n in "xy")))
    history = world.history()
    for name in ("a.txt", "b.txt"):
        assert known(history, world.index, world.path(name)) == ("exact", world.moments[world.index][name])
    assert history.at(world.index, world.path(".venv/cfg")).certainty == "unproved"


def test_a_message_that_is_written_while_the_tool_runs_sees_nothing_of_its_end(world: World) -> None:
    message = world.note(world.session.assistant("I begin."))
    with world.session.watch(message, ["a.txt"], root=world.work):
        world.deed(APPEND, "m2")
        world.note(world.session.system("half of it"))
        time.sleep(0.01)
        world.deed(APPEND, "m2")
    world.say("assistant")
    history, path = world.history(), world.path("a.txt")
    assert history.at(3, path).reason == "message 2 was changing it"
    assert known(history, 4, path) == ("exact", world.moments[4]["a.txt"])


def test_records_of_an_earlier_version_speak_for_what_they_name(world: World) -> None:
    world.look()
    world.reply([([APPEND], False)])
    world.say("user")

    def older(record: dict[str, Any]) -> dict[str, Any]:
        record["metadata"]["clew"].pop("ignored", None)
        return record

    edit_snapshots(world, older)
    history = world.history()
    assert known(history, 6, world.path("a.txt")) == ("exact", world.moments[6]["a.txt"])
    assert history.at(6, world.path("b.txt")).certainty == "unproved"


def test_names_that_are_no_text_are_found_by_their_bytes(world: World) -> None:
    names = ["sub dir/\u0301.txt", os.fsdecode(b"caf\xe9.txt")]
    message = world.note(world.session.assistant("I write."))
    (world.work / "sub dir").mkdir()
    with world.session.watch(message, names, root=world.work):
        for name in names:
            (world.work / name).write_bytes(b"m2\n")
    world.say("user")
    history = world.history()
    for name in names:
        assert known(history, 3, world.path(name)) == ("exact", b"m2\n"), name
        assert is_absent(history, 1, world.path(name))
        assert asked(world, "show", "s#3", "--file", name).raw == b"m2\n"
    assert asked(world, "files", "s").code == asked(world, "diff", "s#2").code == 0
    assert [row["action"] for row in asked(world, "files", "s", "--json").json] == ["create", "create"]


def test_snapshots_that_an_agent_makes_itself_have_their_copies_too(world: World) -> None:
    before, after = world.disk()["a.txt"], b"m2\n"
    message = world.note(world.session.assistant("I write."))
    world.session._snapshots.keep([before, after])
    world.session.snapshot(
        message.uuid,
        {"a.txt": TrackedFile(content_hash=digest_of(after), size=3, state="modified")},
        {"a.txt": FileBackup(backup_path=f"backups/{name_of(digest_of(before))}", original_hash=digest_of(before))},
    )
    (world.work / "a.txt").write_bytes(after)
    world.say("user")
    assert [(row["action"], row["after"]["certainty"]) for row in asked(world, "files", "s", "--json").json] == [
        ("change", "exact")
    ]
    assert blamed(world) == [("m2", 2)]
    assert asked(world, "diff", "s#2").out.splitlines()[-2:] == ["-i 1", "+m2"]


def link(world: World) -> None:
    """A tool makes a link of a file."""
    world.look()
    message = world.note(world.session.assistant("I link."))
    with world.session.watch(message, root=world.work):
        (world.work / "a.txt").unlink()
        (world.work / "a.txt").symlink_to("b.txt")
    world.say("user")


def test_a_link_is_no_file_and_not_nothing(world: World) -> None:
    link(world)
    answer = world.history().at(world.index, world.path("a.txt"))
    assert answer.certainty == "unknown" and "link" in str(answer.reason)


def test_a_link_that_somebody_made_a_file_of_was_no_file_before(world: World) -> None:
    link(world)
    between = world.index
    (world.work / "a.txt").unlink()
    (world.work / "a.txt").write_text("somebody's\n")
    message = world.note(world.session.assistant("I write."))
    with world.session.watch(message, ["a.txt"], root=world.work):
        (world.work / "a.txt").write_text("the tool's\n")
    world.say("user")
    assert world.history().at(between, world.path("a.txt")).certainty == "unproved"


@pytest.mark.parametrize("named", [True, False])
def test_what_was_no_file_when_it_was_looked_at_is_not_what_came_later(world: World, named: bool) -> None:
    """A folder, or a link that somebody made; then somebody puts a file there."""
    path = world.work / "d"
    path.mkdir() if named else path.symlink_to("b.txt")
    message = world.note(world.session.assistant("I look."))
    with world.session.watch(message, ["d"] if named else None, root=world.work):
        pass
    world.say("user")
    path.rmdir() if named else path.unlink()
    path.write_text("somebody's\n")
    world.say("user")
    message = world.note(world.session.assistant("I write."))
    with world.session.watch(message, root=world.work):
        path.write_text("the tool's\n")
    world.say("user")
    history = world.history()
    assert all(history.at(number, world.path("d")).certainty != "exact" for number in (2, 3))
    assert known(history, 6, world.path("d")) == ("exact", b"the tool's\n")


def test_tools_at_once_say_what_the_first_of_them_found(world: World) -> None:
    world.look()
    world.person(Deed("rewrite", "a.txt"))
    message = world.note(world.session.assistant("Two."))
    one, other = (world.session.watch(message, ["a.txt"], root=world.work) for _ in range(2))
    one.before()
    world.deed(APPEND, "m4")
    other.before()
    one.after()
    other.after()
    world.say("user")
    history, path = world.history(), world.path("a.txt")
    assert history.at(3, path).certainty == "unproved"
    assert known(history, world.index, path) == ("exact", world.moments[-1]["a.txt"])


def test_bytes_that_are_no_text_are_spelled_out(world: World) -> None:
    message = world.note(world.session.assistant("I write."))
    with world.session.watch(message, ["a.txt"], root=world.work):
        (world.work / "a.txt").write_bytes(b"na\xefve\n")
    world.say("user")
    [diff] = asked(world, "diff", "s#2", "--json").json
    assert diff["diff"].endswith("+na\\xefve\n")
    assert asked(world, "diff", "s#2").out.endswith("+na\\xefve\n")
    [row] = asked(world, "blame", "a.txt", "--json").json
    assert (row["text"], row["message"]) == ("na\\xefve", 2)
    assert asked(world, "show", "s#3", "--file", "a.txt").raw == b"na\xefve\n"


def test_a_tool_that_was_cut_off_and_looked_at_late_proves_nothing(world: World) -> None:
    """What it made, the next one removed; when somebody looked, nothing differed from before."""
    world.look()
    (world.work / "a.txt").unlink()
    world.look()
    world.killed([Deed("append", "a.txt")], named=False)
    world.killed([Deed("delete", "a.txt")], named=True)
    world.back("undo", 0)
    world.look()
    history = world.history()
    for message in range(1, world.index + 1):
        answer = history.at(message, world.path("a.txt"))
        if answer.certainty == "exact":
            assert answer.is_absent == ("a.txt" not in world.moments[message]), message


@pytest.mark.skipif(os.name == "nt", reason="modes are POSIX")
def test_restore_gives_a_file_the_mode_it_had(world: World, tmp_path: Path) -> None:
    message = world.session.assistant("I make a script.")
    script = world.work / "run.sh"
    with world.session.watch(message, ["run.sh", "a.txt"], root=world.work):
        script.write_bytes(b"#!/bin/sh\n")
        script.chmod(0o755)
        (world.work / "a.txt").chmod(0o600)
    world.session.user("Next.")
    (tmp_path / "out").mkdir()
    ran = asked(world, "restore", "s#3", "run.sh", "a.txt", "--into", tmp_path / "out", "--write")
    assert ran.code == 0, ran.err
    modes = {name: (tmp_path / "out" / name).stat().st_mode & 0o777 for name in ("run.sh", "a.txt")}
    assert modes == {"run.sh": 0o755, "a.txt": 0o600}
