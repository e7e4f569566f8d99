"""What a look at the workspace finds that no tool did: somebody's edits to files that no tool names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from clew.cli.main import main
from tests.files.asking import known
from tests.files.storing import Deed, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, ["a.txt", "b.txt"])


def tool(world: World, name: str, named: bool = False) -> None:
    world.reply([([Deed("rewrite", name)], named)])


def actions(world: World) -> list[tuple[str, str]]:
    history = world.history()
    marks = [mark for mark in (*history.all_evidence(), *history.unexplained_changes()) if mark.action != "snapshot"]
    return sorted((mark.path.rpartition("/")[2], mark.action) for mark in marks)


def test_an_edit_that_a_look_found_is_known_behind_it_and_not_proved_before(world: World) -> None:
    tool(world, "a.txt")
    world.person(Deed("rewrite", "a.txt"))
    tool(world, "b.txt")
    world.say("user")
    history = world.history()
    said = [known(history, message, world.path("a.txt")) for message in (2, 3, 4, 5, 6)]
    assert [certainty for certainty, _ in said] == ["exact", "unproved", "unproved", "exact", "exact"]
    assert (said[0][1], said[3][1]) == (world.moments[2]["a.txt"], world.moments[5]["a.txt"])
    assert actions(world) == [("a.txt", "change"), ("a.txt", "outside"), ("b.txt", "change")]


def test_a_file_is_as_the_first_look_saw_it_before_somebody_edits_it(world: World) -> None:
    tool(world, "b.txt")
    world.person(Deed("rewrite", "a.txt"))
    tool(world, "a.txt")
    history = world.history()
    assert known(history, 1, world.path("a.txt")) == ("exact", world.moments[1]["a.txt"])
    assert known(history, 3, world.path("a.txt"))[0] == "unproved"


def test_a_named_look_tells_what_changed_since_the_last_whole_one(world: World) -> None:
    tool(world, "b.txt")
    world.person(Deed("rewrite", "a.txt"))
    tool(world, "a.txt", named=True)
    assert known(world.history(), 1, world.path("a.txt")) == ("exact", world.moments[1]["a.txt"])


def test_the_first_whole_look_is_compared_with_what_named_ones_left(world: World) -> None:
    tool(world, "a.txt", named=True)
    world.person(Deed("rewrite", "a.txt"))
    tool(world, "b.txt")
    history = world.history()
    assert known(history, 4, world.path("a.txt"))[0] == "unproved"
    assert known(history, 5, world.path("a.txt")) == ("exact", world.moments[5]["a.txt"])


@pytest.mark.parametrize("how", ["gone", "older"])
@pytest.mark.parametrize("named", [True, False])
def test_where_it_is_not_known_what_the_last_look_saw_nothing_is_proved_across(
    world: World, how: str, named: bool
) -> None:
    """The file is removed, or a power cut brings an older one back."""
    tool(world, "b.txt")
    [older] = (world.session.folder / "scans").iterdir()
    content = older.read_bytes()
    tool(world, "a.txt")
    [place] = (world.session.folder / "scans").iterdir()
    place.unlink()
    if how == "older":
        older.write_bytes(content)
    world.say("user")
    before = world.index
    for name in ("a.txt", "notes.md"):
        world.person(Deed("rewrite", name))
    tool(world, "notes.md", named=named and how == "older")
    tool(world, "b.txt")
    world.say("user")
    history = world.history()
    for name in ("a.txt", "notes.md"):
        assert history.at(before, world.path(name)).certainty != "exact", name
    for message in range(1, world.index + 1):
        for name in ("a.txt", "b.txt", "notes.md"):
            certainty, body = known(history, message, world.path(name))
            assert certainty != "exact" or body == world.moments[message].get(name), (message, name)
    lost = [
        line for line in (world.session.folder / "snapshots.jsonl").read_text().splitlines() if '"lost":true' in line
    ]
    assert len(lost) >= 1


def test_a_file_that_became_a_link_is_not_called_what_it_was(world: World) -> None:
    tool(world, "a.txt")
    (world.work / "a.txt").unlink()
    (world.work / "a.txt").symlink_to("b.txt")
    tool(world, "b.txt")
    history = world.history()
    assert [known(history, message, world.path("a.txt"))[0] for message in (4, 5)] == ["unproved", "unknown"]


def test_a_record_tells_only_what_differs(world: World) -> None:
    tool(world, "a.txt")
    tool(world, "b.txt")
    world.person(Deed("rewrite", "a.txt"))
    tool(world, "b.txt")
    records = map(json.loads, (world.session.folder / "snapshots.jsonl").read_text().splitlines())
    found = [record["metadata"]["clew"].get("found", {}) for record in records]
    assert [sorted(files) for files in found] == [[], [], [], [], ["a.txt"], []]


def test_what_the_ignore_list_hides_from_now_on_has_not_gone(world: World) -> None:
    tool(world, "b.txt")
    (world.home / ".sage/config.json").write_text('{"clew": {"ignore": ["a.txt"]}}')
    world.session.close()
    world.session = type(world.store)(world.home).session("s")
    tool(world, "b.txt")
    assert actions(world) == [("b.txt", "change"), ("b.txt", "change")]


def test_tools_of_one_reply_that_run_at_once_are_one_run(world: World) -> None:
    message = world.note(world.session.assistant("Both."))
    one, other = (world.session.watch(message, root=world.work) for _ in range(2))
    one.before()
    world.deed(Deed("rewrite", "a.txt"), "m2")
    other.before()
    world.deed(Deed("rewrite", "b.txt"), "m2")
    one.after()
    world.deed(Deed("append", "a.txt"), "m2")
    other.after()
    world.say("user")
    assert actions(world) == [("a.txt", "change"), ("b.txt", "change")]
    assert known(world.history(), 3, world.path("a.txt")) == ("exact", world.moments[3]["a.txt"])


def asked(world: World, *words: str) -> str:
    result = CliRunner().invoke(main, [*words, "--home", str(world.home)])
    return result.output


def test_a_whole_tool_that_was_cut_off_is_said_by_every_command(world: World) -> None:
    message = world.note(world.session.assistant("I am killed."))
    world.session.watch(message, root=world.work).before()
    world.deed(Deed("rewrite", "a.txt"), "u")
    world.session.close()
    for words in (("files", "s"), ("diff", "s#2"), ("restore", "s#1", "--into", str(world.work))):
        assert "a tool of message 2 was interrupted" in asked(world, *words)


def test_names_in_a_diff_are_quoted_and_a_mode_is_shown(world: World) -> None:
    folder = world.work / "x\n+++ b"
    folder.mkdir()
    message = world.note(world.session.assistant("I do it."))
    with world.session.watch(message, root=world.work):
        (folder / "evil").write_text("1\n")
        (world.work / "a.txt").chmod(0o755)
    world.say("user")
    world.session.close()
    told = asked(world, "diff", "s#2").splitlines()
    assert [line for line in told if line.startswith("+++ ")] == [f'+++ "b{world.path("x")}\\n+++ b/evil"']
    assert "new mode 100755" in told


def test_an_undo_stands_behind_the_tool_that_was_cut_off(world: World) -> None:
    message = world.note(world.session.assistant("I am killed."))
    world.session.watch(message, root=world.work).before()
    world.deed(Deed("rewrite", "a.txt"), "u")
    world.session.undo(root=world.work, force=True)
    assert [mark.action for mark in world.history().all_evidence()] == ["change", "undo"]
