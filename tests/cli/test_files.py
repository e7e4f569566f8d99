"""The commands of the time machine: files, diff, show --file, restore, blame."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from clew.agents.claude_code import ClaudeCode
from clew.library import Library
from tests.cli.running import Ran, clew, state
from tests.counting.homes import claude
from tests.files.claude import SESSION, Transcript
from tests.files.test_within import SPELLINGS, tree


class World:
    """A project and a home with one session that worked in it."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "bell"
        self.home = folder / "home"
        self.target = folder / "target"
        for one in (self.project, self.home, self.target):
            one.mkdir(parents=True)
        self.said = Transcript(folder=str(self.project))
        self.bell, self.horn = str(self.project / "bell.py"), str(self.project / "horn.py")
        self.said.prompt("Make a bell.")
        self.made = self.said.create(self.bell, "def ring():\n    return 'dong'\n")
        self.said.prompt("Make it louder.")
        self.louder = self.said.edit(self.bell, "'dong'", "'DONG'", None)
        self.said.create(self.horn, "toot\n")
        self.ran = self.said.shell("make")

    def run(self, *words: str | Path) -> Ran:
        self.said.write(self.home)
        return clew(*words, "--home", self.home)

    def at(self, message: int) -> str:
        return f"{SESSION}#{message}"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("CLEW_DATA_DIR", str(tmp_path / "data"))
    return World(tmp_path)


def test_files_lists_what_each_message_did(world: World) -> None:
    done = world.run("files", SESSION)
    assert done.code == 0
    assert [line.split() for line in done.out.splitlines()] == [
        ["message", "action", "known", "by", "file"],
        ["#2", "create", "exact", "record", "bell.py"],
        ["#5", "change", "exact", "edits", "bell.py"],
        ["#7", "create", "exact", "record", "horn.py"],
    ]


def test_files_as_json_and_of_one_message(world: World) -> None:
    rows = world.run("files", SESSION, "--json").json
    assert [(row["message"], row["result"], row["action"], row["path"]) for row in rows] == [
        (2, 3, "create", world.bell),
        (5, 6, "change", world.bell),
        (7, 8, "create", world.horn),
    ]
    assert rows[0]["before"] == {"certainty": "exact", "exists": False}
    assert rows[0]["after"]["size"] == 30 and len(rows[0]["after"]["sha256"]) == 64
    assert [row["message"] for row in world.run("files", world.at(6), "--json").json] == [5]
    assert world.run("files", world.at(1)).code == 1
    assert world.run("files", world.at(99)).code == 1


def test_reads_and_copies_are_listed_when_wanted(world: World) -> None:
    world.said.read(world.horn, "toot\n")
    asked = world.said.prompt()
    world.said.snapshot(asked, {world.horn: (b"toot\n", 1)})
    actions = [row["action"] for row in world.run("files", SESSION, "--json", "--copies").json]
    assert actions == ["create", "change", "create", "read", "snapshot"]
    assert [row["action"] for row in world.run("files", SESSION, "--json", "--changes").json] == actions[:3]


def test_diff_between_two_messages_and_of_one(world: World) -> None:
    change = "@@ -1,2 +1,2 @@\n def ring():\n-    return 'dong'\n+    return 'DONG'\n"
    one = world.run("diff", world.at(5))
    assert (one.code, one.out) == (0, f"--- a/bell.py\n+++ b/bell.py\n{change}")
    both = world.run("diff", f"{SESSION}#3..8")
    assert (both.code, both.out) == (0, f"{one.out}--- /dev/null\n+++ b/horn.py\n@@ -0,0 +1 @@\n+toot\n")
    assert world.run("diff", f"{SESSION}#8..3", "horn.py").out.startswith("--- a/horn.py\n+++ /dev/null\n")
    nothing = world.run("diff", f"{SESSION}#3..4")
    assert (nothing.code, nothing.out) == (1, "")


def test_diff_says_what_is_not_known(world: World) -> None:
    done = world.run("diff", f"{SESSION}#8..{world.ran}")
    assert (done.code, done.out) == (1, "")
    assert f"{world.bell}: unproved, from recorded edits (message 6): `make` ran after message 9" in done.err
    rows = world.run("diff", f"{SESSION}#1..{world.ran}", "--unproved", "--json").json
    assert [(row["path"], row["diff"] is not None) for row in rows] == [(world.bell, True), (world.horn, True)]


def test_show_prints_a_file_as_it_was(world: World) -> None:
    done = world.run("show", world.at(world.made), "--file", "bell.py")
    assert (done.code, done.out) == (0, "def ring():\n    return 'dong'\n")
    assert done.err == f"{world.bell}: exact, complete in the record (message 3)\n"
    found = world.run("show", world.at(6), "--file", world.bell, "--json").json
    assert (found["certainty"], found["how"], found["content"][-7:]) == ("exact", "edit", "'DONG'\n")


def test_show_never_guesses(world: World) -> None:
    absent = world.run("show", world.at(1), "--file", "bell.py")
    assert (absent.code, absent.raw) == (1, b"")
    assert "exact, did not exist" in absent.err
    after = world.run("show", world.at(world.ran), "--file", "bell.py")
    assert (after.code, after.raw) == (1, b"")
    assert "`make` ran after message 9" in after.err and "--unproved" in after.err
    assert world.run("show", world.at(world.ran), "--file", "bell.py", "--unproved").code == 0
    assert world.run("show", world.at(3), "--file", "drum.py").code == 1
    assert world.run("show", SESSION, "--file", "bell.py").code == 2


def test_restore_only_says_what_it_would_do(world: World) -> None:
    before = state(world.home.parent)
    done = world.run("restore", world.at(6), "--into", world.target)
    assert done.code == 0
    assert done.out.split()[:3] == ["step", "file", "known"]
    assert "write  bell.py  exact, from recorded edits (message 6)" in done.out
    assert "same   horn.py  exact, did not exist (message 7)" in done.out
    assert "nothing was written" in done.err
    after = state(world.home.parent)
    for found in (before, after):
        for path in [path for path in found if "/home/" in path or "/data" in path]:
            del found[path]
    assert after == before


def test_restore_writes_when_it_is_told_to(world: World) -> None:
    assert world.run("restore", world.at(8), "--into", world.target, "--write").code == 0
    assert tree(world.target) == {"bell.py": b"def ring():\n    return 'DONG'\n", "horn.py": b"toot\n"}
    assert world.run("restore", world.at(3), "bell.py", "--into", world.target, "--write", "--force").code == 0
    assert (world.target / "bell.py").read_bytes() == b"def ring():\n    return 'dong'\n"


def test_R09_a_file_that_differs_needs_force_and_is_kept(world: World) -> None:
    (world.target / "bell.py").write_bytes(b"mine\n")
    words = ("restore", world.at(3), "bell.py", "--into", world.target, "--write")
    refused = world.run(*words)
    assert (refused.code, tree(world.target)) == (6, {"bell.py": b"mine\n"})
    done = world.run(*words, "--force", "--json")
    assert done.code == 0
    assert (Path(done.json["rescue"]) / "bell.py").read_bytes() == b"mine\n"
    assert (world.target / "bell.py").read_bytes() == b"def ring():\n    return 'dong'\n"


def test_a_file_that_did_not_exist_then_is_removed_only_by_force(world: World) -> None:
    (world.target / "horn.py").write_bytes(b"toot\n")
    words = ("restore", world.at(3), "--into", world.target, "--write")
    assert world.run(*words).code == 6
    assert world.run(*words, "--force").code == 0
    assert tree(world.target) == {"bell.py": b"def ring():\n    return 'dong'\n"}
    (kept,) = (world.home.parent / "data" / "rescue").iterdir()
    assert tree(kept) == {"horn.py": b"toot\n"}


def test_what_is_not_known_is_refused_unless_named(world: World) -> None:
    words = ("restore", world.at(world.ran), "--into", world.target, "--write")
    assert (world.run(*words).code, tree(world.target)) == (6, {})
    assert (world.run(*words, "--known").code, tree(world.target)) == (0, {})
    assert world.run(*words, "bell.py", "--unproved").code == 0
    assert set(tree(world.target)) == {"bell.py"}


def test_unproved_content_replaces_a_file_that_differs_only_by_force(world: World) -> None:
    target = world.target / "new"
    words = ("restore", world.at(world.ran), "bell.py", "--into", target, "--unproved")
    assert world.run(*words, "--json").json["files"][0]["verdict"] == "write"
    assert world.run(*words, "--yes").code == 0
    assert world.run(*words, "--json").json["files"][0]["verdict"] == "same"
    (target / "bell.py").write_bytes(b"mine\n")
    refused = world.run(*words, "--yes")
    assert refused.code == 6 and "exists and differs" in refused.err
    assert world.run(*words, "--yes", "--force").code == 0
    assert tree(target) == {"bell.py": b"def ring():\n    return 'DONG'\n"}


def test_restore_says_where_and_writes_into_the_project_only_when_asked(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(world.home))
    assert world.run("restore", world.at(3)).code == 2
    assert world.run("restore", world.at(3), "--into", world.target, "--in-place").code == 2
    assert world.run("restore", world.at(3), "--into", world.target / "no" / "such").code == 3
    assert world.run("restore", SESSION, "--into", world.target).code == 2
    assert world.run("restore", world.at(3), "--in-place", "--write").code == 0
    assert tree(world.project) == {"bell.py": b"def ring():\n    return 'dong'\n"}


def test_restore_does_not_write_into_a_store(world: World) -> None:
    world.said.write(world.home)
    assert world.run("restore", world.at(3), "--into", world.home / ".claude/projects", "--write").code == 2


def test_R02_a_file_elsewhere_is_refused_unless_that_folder_is_named(world: World, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    done = world.said.create(str(elsewhere / "x"), "x\n")
    words = ("restore", world.at(done), str(elsewhere / "x"), "--into", world.target, "--write")
    assert (world.run(*words).code, tree(world.target)) == (4, {})
    assert world.run(*words, "--from", elsewhere).code == 0
    assert tree(world.target) == {"x": b"x\n"}


@pytest.mark.parametrize("path", [path for path in SPELLINGS if path and "\0" not in path], ids=repr)
def test_R01_R02_R03_nothing_is_written_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setenv("CLEW_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    world = World(tmp_path)
    done = world.said.create(path, "bad\n")
    world.said.write(world.home)
    assert clew("sync", "--home", world.home).code == 0
    before = tree(tmp_path)
    ran = world.run("restore", world.at(done), "--into", world.target, "--write", "--known", "--force")
    after = tree(tmp_path)
    changed = {name for name in after if name not in before or after[name] != before[name]}
    new = {name for name in changed if not name.startswith("data/catalog")}
    assert ran.code == 0 or not new
    # What is being done is told in clew's own folder.
    new -= {"data", "data/restoring", "data/restoring/lock"}
    assert all(name.startswith("target/") for name in new)
    assert ran.code in (0, 4)
    # A refused entry stops all of it.
    assert ran.code == 0 or not new


def test_R10_a_restore_that_fails_leaves_everything_as_it_was(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    (world.target / "bell.py").write_bytes(b"mine\n")
    import os

    real, calls = os.rename, 0

    def failing(*words: object, **more: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise OSError(28, "no space left")
        real(*words, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "rename", failing)
    done = world.run("restore", world.at(8), "--into", world.target, "--write", "--force")
    assert done.code == 3
    assert tree(world.target) == {"bell.py": b"mine\n"}


def test_R13_protected_files_need_an_extra_word(world: World) -> None:
    hook = world.said.create(str(world.project / ".git/hooks/pre-commit"), "#!/bin/sh\n")
    words = ("restore", world.at(hook), ".git/hooks/pre-commit", "--into", world.target, "--write")
    assert (world.run(*words, "--force").code, tree(world.target)) == (4, {})
    assert world.run(*words, "--allow-protected").code == 0
    written = world.target / ".git/hooks/pre-commit"
    assert written.read_bytes() == b"#!/bin/sh\n" and written.stat().st_mode & 0o111 == 0


def test_R12_strange_names_are_shown_harmlessly(world: World) -> None:
    done = world.said.create(str(world.project / "a\x1b[2Jb"), "x\n")
    shown = world.run("restore", world.at(done), "--into", world.target, "--write", "--known")
    assert "\x1b" not in shown.out and shown.code == 0
    assert (world.target / "a\x1b[2Jb").read_bytes() == b"x\n"
    assert "\x1b" not in world.run("files", SESSION).out


def test_blame_names_the_message_and_the_prompt(world: World) -> None:
    Path(world.bell).write_bytes(b"def ring():\n    return 'DONG'\n\nprint(ring())\n")
    done = world.run("blame", world.bell)
    assert done.code == 0
    assert [line[: line.index("  ")].split("#")[-1] for line in done.out.splitlines()] == [
        "2",
        "5",
        "unknown",
        "unknown",
    ]
    assert f"claude-code:{SESSION[:8]}#5: Make it louder." in done.err
    (row,) = world.run("blame", f"{world.bell}:2", "--json").json
    assert (row["session"], row["message"], row["prompt"]["text"]) == (SESSION, 5, "Make it louder.")
    assert (row["line"], row["certainty"], row["text"]) == (2, "exact", "    return 'DONG'")


def test_blame_prints_a_hostile_session_id_visible_and_masked(world: World) -> None:
    Path(world.bell).write_bytes(b"def ring():\n    return 'dong'\n")
    secret = "sk-ant-api03-" + "Ab3" * 31 + "AA"
    for hostile, shown in (("\x1b[31mred", "␛[31mred"), (f"{secret}1", "sk-ant-a")):
        for record in world.said.records:
            record["sessionId"] = hostile
        world.said.write(world.home)
        (path,) = world.home.rglob("*.jsonl")
        path.rename(path.with_name(f"{hostile}.jsonl"))
        done = clew("blame", world.bell, "--home", world.home)
        assert f"claude-code:{shown}" in done.out
        assert "\x1b" not in done.out + done.err and secret not in done.out + done.err
        path.with_name(f"{hostile}.jsonl").unlink()


def test_blame_syncs_at_most_twice(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for the lines, and once for hints about all folders above the file."""
    opened: list[object] = []
    catalog = Library.catalog

    def counted(*given: Any) -> Any:
        opened.append(given)
        return catalog(*given)

    monkeypatch.setattr(Library, "catalog", counted)
    other = world.project / "other.py"
    other.write_bytes(b"x\n")
    assert world.run("blame", other).code == 1
    assert len(opened) == 2


def test_blame_of_what_nobody_wrote(world: World) -> None:
    other = world.project / "other.py"
    other.write_bytes(b"x\n")
    assert world.run("blame", other).code == 1
    assert world.run("blame", f"{other}:9").code == 1
    assert world.run("blame", world.project / "no.py").code == 3


def test_blame_of_a_copy_elsewhere_says_how_to_give_the_recorded_path(world: World) -> None:
    copy = world.project.with_name("copy") / Path(world.bell).name
    copy.parent.mkdir()
    copy.write_bytes(b"def ring():\n")
    done = world.run("blame", copy)
    assert done.code == 1 and "--as PATH gives its recorded path" in done.err
    assert world.run("blame", copy, "--as", world.bell).code == 0


def test_blame_names_a_session_that_cannot_be_read(world: World) -> None:
    Path(world.bell).write_bytes(b"def ring():\n")
    world.said.write(world.home)
    (path,) = world.home.rglob(f"{SESSION}.jsonl")
    other = path.with_name("7c1f3e9d-6b10-4b6f-8e64-1e6b5f4d3c22.jsonl")
    os.mkfifo(other)
    done = world.run("blame", world.bell)
    assert f"clew: {other}: " in done.err
    assert (done.code, done.out.split()[0].split("#")[-1]) == (0, "2")


def test_an_agent_whose_files_nobody_can_tell_is_a_clear_error(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    find = ClaudeCode._find
    monkeypatch.setattr(
        ClaudeCode, "_find", lambda agent, module, name: find(agent, module, name) if module != "file_changes" else None
    )
    done = world.run("files", SESSION)
    assert done.code == 2 and "Claude Code" in done.err


def test_a_session_from_elsewhere_does_not_choose_the_folder(world: World) -> None:
    """A file that somebody sent, or the copy of another machine's, may name any folder of this one as its own."""
    path = world.said.write(world.home).source.path
    sent = world.home.parent / "sent.jsonl"
    sent.write_bytes(path.read_bytes())
    words = ("--in-place", "--write")
    done = clew("restore", f"{sent}#3", *words)
    assert (done.code, tree(world.project)) == (2, {})
    assert "--into" in done.err
    data = world.home.parent / "data"
    mirrored = data / "remotes/box/files/home/ada/.claude/projects/-p" / path.name
    mirrored.parent.mkdir(parents=True)
    mirrored.write_bytes(path.read_bytes())
    (data / "sources.jsonl").write_text('{"name":"box","kind":"ssh","where":"box"}\n')
    state = '{"home":"/home/ada","env":{},"fetched_at":"2026-10-01T08:00:00Z"}'
    (data / "remotes/box/state.json").write_text(state)
    done = clew("--source", "box", "restore", world.at(3), *words)
    assert (done.code, tree(world.project)) == (2, {})
    assert "--into" in done.err
    assert clew("restore", f"{sent}#3", "--into", world.project, "--write").code == 0


def test_a_session_of_a_home_that_is_not_the_users_does_not_choose_the_folder(world: World) -> None:
    done = world.run("restore", world.at(3), "--in-place", "--write")
    assert (done.code, tree(world.project)) == (2, {})
    assert "was not recorded on this machine" in done.err and "--into" in done.err
    assert world.run("restore", world.at(3), "--into", world.project, "--write").code == 0


def test_a_session_kept_in_its_own_project_is_put_back_there(world: World) -> None:
    inside = world.said.write(world.project).source.path
    assert clew("restore", f"{inside}#3", "--in-place", "--write").code == 0
    assert (world.project / "bell.py").exists()


def test_the_message_that_writes_a_file_names_the_one_that_has_it(demo: Path) -> None:
    done = clew("--home", demo, "show", "f005#6", "--file", "moon.py")
    assert done.code == 1 and "message 6 changes it, and f005#7 is its result" in done.err
    assert clew("--home", demo, "show", "f005#7", "--file", "moon.py").code == 0
    before = clew("--home", demo, "show", "71960#7", "--file", "predict.py")
    assert "changes it" not in before.err


def test_a_restore_names_the_message_with_the_result_of_a_change(demo: Path, tmp_path: Path) -> None:
    (tmp_path / "moon.py").write_text("mine\n")
    words = ("--home", demo, "restore", "f005#6", "--into", tmp_path, "--write")
    refused = clew(*words)
    assert refused.code == 6 and "moon.py did not exist then; use --force to remove it" in refused.err
    assert "message 6 changes it, and f005#7 is its result" in refused.err
    assert "1 replaced or removed file is kept in" in clew(*words, "--force").err


def test_what_is_no_message_number_is_said(demo: Path, tmp_path: Path) -> None:
    done = clew("--home", demo, "restore", "f005#abc", "--into", tmp_path)
    assert done.code == 2 and "'abc' is not a message number; try f005#12" in done.err


def test_blame_refuses_a_device(demo: Path) -> None:
    done = clew("--home", demo, "blame", "/dev/zero")
    assert done.code == 3 and "not a regular file" in done.err


def test_a_session_without_a_folder_is_not_restored_in_place(tmp_path: Path) -> None:
    said = {"type": "user", "uuid": "u-1", "sessionId": SESSION, "message": {"role": "user", "content": "tides"}}
    claude(tmp_path, said, session=SESSION)
    done = clew("restore", f"{SESSION}#1", "--in-place", "--home", tmp_path)
    assert (done.code, done.err) == (2, "clew: the session does not record its folder; use --into DIR\n")


def test_a_restore_says_what_it_did(demo: Path, tmp_path: Path) -> None:
    words = ("--home", demo, "restore", "f005#7", "--into", tmp_path, "--yes")
    first = clew(*words)
    assert first.out.splitlines()[1].startswith("write") and first.err == "1 file restored\n"
    (tmp_path / "moon.py").write_text("mine\n")
    replaced = clew(*words, "--force")
    assert replaced.out.splitlines()[1].startswith("replace ") and replaced.err.startswith("1 file restored\n")
