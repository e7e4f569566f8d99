"""A project that was moved: its sessions are found by its new folder once that is mapped, and a hint says so before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clew.io.paths import encode_claude
from tests.cli.running import clew
from tests.unit.samples import claude_line

TEXT = "high\nlow\n"


class World:
    """A home with a session that wrote `tide.py` in a folder that was moved afterwards."""

    def __init__(self, folder: Path) -> None:
        self.home, self.old, self.new = folder / "home", folder / "old" / "tide", folder / "new" / "tide"
        self.new.mkdir(parents=True)
        (self.new / "tide.py").write_text(TEXT)
        path = self.home / ".claude" / "projects" / encode_claude(str(self.old)) / "tide-1.jsonl"
        path.parent.mkdir(parents=True)
        call = {"file_path": f"{self.old}/tide.py", "content": TEXT}
        write = {"type": "tool_use", "id": "t1", "name": "Write", "input": call}
        done = {"type": "tool_result", "tool_use_id": "t1", "content": "File created"}
        lines = [
            claude_line("user", "u1", None, "Write the tide table", cwd=str(self.old)),
            claude_line("assistant", "a1", "u1", [write], cwd=str(self.old)),
            claude_line("user", "r1", "a1", [done], cwd=str(self.old)),
        ]
        lines[2]["toolUseResult"] = {"type": "create", "filePath": call["file_path"], "content": TEXT}
        path.write_text("".join(json.dumps({**line, "sessionId": "tide-1"}) + "\n" for line in lines))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(tmp_path)
    monkeypatch.chdir(made.new)
    monkeypatch.setenv("HOME", str(made.home))
    return made


def test_mappings_are_added_listed_and_removed(world: World) -> None:
    ran = clew("sources", "map")
    assert (ran.code, ran.err) == (1, "no project is mapped; `clew sources map OLD NEW` adds one\n")
    ran = clew("sources", "map", world.old)
    assert (ran.code, ran.err) == (0, f"{world.old}: now {world.new}\n")
    assert clew("sources", "map", "--json").json == {str(world.old): str(world.new)}
    assert str(world.old) in clew("sources").out
    assert clew("sources", "unmap", world.old).code == 0
    assert clew("sources", "map", "--json").json == {}
    assert clew("sources", "unmap", world.old).code == 1


def test_sessions_are_listed_where_the_project_is_now(world: World) -> None:
    ran = clew("list", "--here")
    assert ran.code == 1
    assert f"if it was moved: clew sources map {world.old} {world.new}\n" in ran.err
    assert "clew sources map" in clew("stats", "--here").err
    assert "clew sources map" in clew("search", "tide", "--here").err
    ran = clew("show", "@last", "--here")
    assert ran.code == 1
    assert "@last: there is no such session in this project; there are sessions of" in ran.err
    clew("sources", "map", world.old, world.new)
    assert [row["id"] for row in clew("list", "--here", "--json").json] == ["tide-1"]
    assert clew("list", "--project", ".").code == 0
    assert "clew sources map" not in clew("list", "--here", "--text", "nothing").err
    assert clew("show", "@last", "--here").code == 0


def test_lines_are_blamed_on_sessions_of_the_old_folder(world: World) -> None:
    ran = clew("blame", "tide.py")
    assert ran.code == 1
    assert f"clew sources map {world.old} {world.new}\n" in ran.err
    clew("sources", "map", world.old, world.new)
    ran = clew("blame", "tide.py", "--json")
    assert [line["session"] for line in ran.json] == ["tide-1", "tide-1"]


def test_files_are_restored_into_the_new_folder(world: World) -> None:
    ran = clew("restore", "tide-1#3", "--in-place")
    assert ran.code == 3
    assert f"{world.old}: no such folder; if it was moved: `clew sources map {world.old} NEW`" in ran.err
    clew("sources", "map", world.old, world.new)
    (world.new / "tide.py").unlink()
    ran = clew("restore", "tide-1#3", world.new / "tide.py", "--in-place", "--write", "--unproved")
    assert (ran.code, (world.new / "tide.py").read_text()) == (0, TEXT), ran.err
    assert not world.old.exists()
    assert clew("show", "tide-1#3", "--file", world.new / "tide.py").out == TEXT


def test_a_session_goes_on_in_the_new_folder(world: World) -> None:
    before = clew("resume", "tide-1", "--print")
    assert before.out == f"cd -- {world.old} && claude --resume tide-1\n"
    clew("sources", "map", world.old, world.new)
    printed = clew("resume", "Write the tide", "--in", "codex", "--print", "--allow-loss").out
    assert f"clew convert tide-1 --to codex --home {world.home} --cwd {world.new}" in printed
    assert f"cd -- {world.new} && codex resume" in printed
    found = clew("resume", "tide-1", "--json").json
    assert found["cwd"] == str(world.new)
    folder = world.home / ".claude" / "projects" / encode_claude(str(world.new))
    assert [path.stem for path in folder.glob("*.jsonl")] == [found["argv"][-1]]


def test_the_printed_conversion_is_the_one_that_is_resumed(world: World) -> None:
    clew("sources", "map", world.old, world.new)
    convert, resume = clew("resume", "tide-1", "--print").out.splitlines()
    words = convert.removesuffix(" &&").split()
    assert words[0] == "clew"
    assert clew(*words[1:]).code == 0
    (path,) = (world.home / ".claude" / "projects" / encode_claude(str(world.new))).glob("*.jsonl")
    assert resume == f"cd -- {world.new} && claude --resume {path.stem}"
    assert clew("resume", "tide-1", "--print").out == resume + "\n"
