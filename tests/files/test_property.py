"""Whatever is written, edited, deleted and run, in any order: what is called exact is what was there."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.agents.file_evidence import FileContent
from tests.files.claude import FOLDER, Transcript

NAMES = ("bell.py", "horn.py", "flag.txt")
WORDS = st.sampled_from(["ding", "dong", "toot", "one", "two"])
ENDS = st.sampled_from([b"\n", b"\r\n"])
HARMLESS = ("cat bell.py", "ls -la", "git status && git diff")

Disk = dict[str, bytes]


class World:
    """A project, and an agent that works in it and writes a transcript as Claude Code does."""

    def __init__(self, files: Disk) -> None:
        self.disk = dict(files)
        self.said = Transcript()
        self.moments: list[Disk] = [{}]
        self._copies: dict[str, int] = {}
        self._last: dict[str, bytes | None] = {}

    def keep(self, before: Disk | None = None) -> None:
        """Every message that was added since sees the disk as it is now, or as it was before."""
        while len(self.moments) <= self.said.index:
            self.moments.append(dict(self.disk if before is None else before))

    def prompt(self, parent: int | None = None) -> None:
        asked = self.said.prompt(parent=f"u-{parent}" if parent is not None else None)
        for path in self._copies:
            self._copy(path)
        if self._copies:
            self.said.snapshot(asked, {path: (self.disk.get(path), self._copies[path]) for path in self._copies})
        self.keep()

    def rewind(self, to: int, *, files: bool) -> None:
        """The person goes back to an earlier message and asks otherwise; files may go back with the conversation."""
        to = 1 + to % self.said.index
        if files:
            self.disk = dict(self.moments[to])
        self.prompt(to)

    def at_once(self, works: list[Work], *, early: bool) -> None:
        """Several calls in one reply. Each does its work as soon as it is said, or just before its result."""
        begun = []
        reply = self.said.index + 1
        for work in works:
            call = self.said.call(work.name, work.given)
            self.said.records[-1]["message"]["id"] = f"msg_{reply}"
            self.keep()
            number = self.said.calls
            begun.append((number, call, None if not early else work.do(self, call)))
        for (number, call, told), work in zip(begun, works, strict=True):
            told = work.do(self, call) if told is None else told
            self.said.result(told, error=isinstance(told, str), call=number)
            self.keep()

    def _copy(self, path: str) -> None:
        """A copy gets a new name when the file has changed since the last."""
        if self._last.get(path, b"-") != self.disk.get(path):
            self._copies[path] = self._copies.get(path, 0) + 1
            self._last[path] = self.disk.get(path)

    def write(self, path: str, text: str, *, copies: bool, tells: bool) -> None:
        before = self.disk.get(path)
        call = self.said.call("Write", {"file_path": path, "content": text})
        self.keep()
        self._note(path, call, copies)
        self.disk[path] = text.encode()
        original = _shown(before) if before is not None and tells else None
        kind = "create" if before is None else "update"
        self.said.result({"type": kind, "filePath": path, "content": text, "originalFile": original})
        self.keep()

    def edit(self, path: str, old: str, new: str, *, copies: bool, tells: bool) -> None:
        body = self.disk.get(path)
        call = self.said.call("Edit", {"file_path": path, "old_string": old, "new_string": new})
        self.keep()
        text = _shown(body) if body is not None else ""
        if body is None or text.count(old) != 1:
            self.said.result("Error: no such text", error=True)
            self.keep()
            return
        self._note(path, call, copies)
        changed = text.replace(old, new)
        self.disk[path] = (changed.replace("\n", "\r\n") if b"\r\n" in body else changed).encode()
        told = {"filePath": path, "oldString": old, "newString": new, "structuredPatch": []}
        self.said.result({**told, "originalFile": text if tells else None})
        self.keep()

    def _note(self, path: str, call: int, copies: bool) -> None:
        if copies and path not in self._copies:
            self._copy(path)
            self.said.copy(path, self.disk.get(path), self._copies[path], call)

    def read(self, path: str) -> None:
        body = self.disk.get(path)
        if body is None:
            self.said.tool("Read", {"file_path": path}, "Error: no such file", error=True)
        else:
            self.said.read(path, _shown(body))
        self.keep()

    def run(self, command: str, changes: dict[str, bytes | None]) -> None:
        self.said.call("Bash", {"command": command})
        self.keep()
        for path, body in changes.items():
            self.disk.pop(path, None)
            if body is not None:
                self.disk[path] = body
        self.said.result({"stdout": "", "stderr": "", "interrupted": False})
        self.keep()


class Work(NamedTuple):
    """A call, and what it does when it is carried out."""

    name: str
    given: dict[str, Any]
    do: Callable[[World, int], Any]


def writing(path: str, text: str) -> Work:
    def do(world: World, _: int) -> Any:
        before = world.disk.get(path)
        world.disk[path] = text.encode()
        kind = "create" if before is None else "update"
        return {"type": kind, "content": text, "originalFile": _shown(before) if before is not None else None}

    return Work("Write", {"file_path": path, "content": text}, do)


def editing(path: str, old: str, new: str, tells: bool) -> Work:
    def do(world: World, _: int) -> Any:
        body = world.disk.get(path)
        text = _shown(body) if body is not None else ""
        if body is None or text.count(old) != 1:
            return "Error: no such text"
        changed = text.replace(old, new)
        world.disk[path] = (changed.replace("\n", "\r\n") if b"\r\n" in body else changed).encode()
        told = {"oldString": old, "newString": new, "structuredPatch": []}
        return {**told, "originalFile": text if tells else None}

    return Work("Edit", {"file_path": path, "old_string": old, "new_string": new}, do)


def running(changes: dict[str, bytes | None]) -> Work:
    def do(world: World, _: int) -> Any:
        for path, body in changes.items():
            world.disk.pop(path, None)
            if body is not None:
                world.disk[path] = body
        return {"stdout": ""}

    return Work("Bash", {"command": "make"}, do)


def reading(path: str) -> Work:
    def do(world: World, _: int) -> Any:
        body = world.disk.get(path)
        if body is None:
            return "Error: no such file"
        text = _shown(body)
        count = text.count("\n") + 1
        file = {"content": text, "numLines": count, "startLine": 1, "totalLines": count}
        return {"type": "text", "file": file}

    return Work("Read", {"file_path": path}, do)


def _shown(body: bytes) -> str:
    return body.decode().replace("\r\n", "\n")


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    end = draw(ENDS)
    return b"".join(word.encode() + end for word in draw(st.lists(WORDS, max_size=4)))


PATHS = st.sampled_from([f"{FOLDER}/{name}" for name in NAMES])
WORKS = st.one_of(
    st.builds(writing, PATHS, st.lists(WORDS, max_size=3).map(lambda words: "".join(f"{word}\n" for word in words))),
    st.builds(editing, PATHS, WORDS, WORDS, st.booleans()),
    st.builds(running, st.dictionaries(PATHS, st.one_of(st.none(), texts()), max_size=2)),
    st.builds(reading, PATHS),
)
STEPS = st.one_of(
    st.tuples(st.just("at once"), st.lists(WORKS, min_size=2, max_size=3), st.booleans()),
    st.tuples(st.just("rewind"), st.integers(0, 99), st.booleans()),
    st.tuples(st.just("prompt")),
    st.tuples(st.just("write"), PATHS, st.lists(WORDS, max_size=4), st.booleans(), st.booleans()),
    st.tuples(st.just("edit"), PATHS, WORDS, WORDS, st.booleans(), st.booleans()),
    st.tuples(st.just("read"), PATHS),
    st.tuples(st.just("run"), st.dictionaries(PATHS, st.one_of(st.none(), texts()), max_size=2)),
    st.tuples(st.just("look"), st.sampled_from(HARMLESS)),
)


def do(world: World, step: tuple[object, ...]) -> None:
    match step:
        case ("prompt",):
            world.prompt()
        case ("write", str(path), list(words), bool(copies), bool(tells)):
            world.write(path, "".join(f"{word}\n" for word in words), copies=copies, tells=tells)
        case ("edit", str(path), str(old), str(new), bool(copies), bool(tells)):
            world.edit(path, old, new, copies=copies, tells=tells)
        case ("read", str(path)):
            world.read(path)
        case ("run", dict(changes)):
            world.run("make", changes)
        case ("at once", list(works), bool(early)):
            world.at_once(works, early=early)
        case ("rewind", int(to), bool(back)):
            world.rewind(to, files=back)
        case ("look", str(command)):
            world.run(command, {})
        case _:
            raise AssertionError(step)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.dictionaries(PATHS, texts()), st.lists(STEPS, max_size=14))
def test_what_is_called_exact_is_what_was_there(files: Disk, steps: list[tuple[object, ...]]) -> None:
    check(files, steps)


def test_back_at_the_end_of_another_branch_files_may_have_gone_back() -> None:
    """Twice: to what one branch left, with its files, and then to the other, without."""
    path = f"{FOLDER}/bell.py"
    one, other = [writing(path, "")] * 2, [writing(path, ""), writing(path, "ding\n")]
    steps = [("at once", one, False), ("rewind", 0, False), ("at once", other, False), ("rewind", 4, True)]
    check({}, [*steps, ("rewind", 9, False)])


def check(files: Disk, steps: list[tuple[object, ...]]) -> None:
    """All that is said of a session is true."""
    world = World(files)
    world.prompt()
    for step in steps:
        do(world, step)
    with tempfile.TemporaryDirectory() as folder:
        history = world.said.write(Path(folder))
        asked = [
            (path, message, timeline.at(message))
            for path, timeline in history.timelines.items()
            for message in range(1, world.said.index + 1)
        ]
        contents = history.contents([answer for _, _, answer in asked])
    for (path, message, answer), state in zip(asked, contents, strict=True):
        truth = world.moments[message].get(path)
        found = state.body if isinstance(state, FileContent) else None
        if answer.certainty == "exact":
            assert found == truth, (message, answer)
        elif answer.certainty == "text":
            assert truth is not None and found is not None, (message, answer)
            assert found.replace(b"\r\n", b"\n") == truth.replace(b"\r\n", b"\n"), (message, answer)
