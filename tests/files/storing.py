"""An agent that works with the store on real files, a person beside it, and what was there at every message.

Every line of every file says who wrote it: `i` it was there, `m7` a tool of message 7, `p` the person, `u` a tool that
nobody watched. So whoever asks can be told at once whether an answer is right.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from clew.agents import registry
from clew.agents.sage_agent.locate import source_file
from clew.errors import UnknownReference
from clew.file_history.history import FileHistory
from clew.io.filesystem import System
from clew.store import Receipt, Session, Store, ToolCall, ToolResult
from clew.store.undo_plan import Refused
from tests.store.support import Quick

NAMES = ("a.txt", "b.txt", "sub/c.txt", "run.log")
HIDDEN = ".venv/cfg"
"""A look at the whole workspace leaves it out."""
NOTES = "notes.md"
"""A file of the person's own, that no tool names."""
ALL = (*NAMES, NOTES, HIDDEN)

Disk = dict[str, bytes]


class Deed(NamedTuple):
    """What is done to one file: how, and to which."""

    how: str
    name: str


class Did(NamedTuple):
    """What one watched run really did to a file."""

    message: int
    name: str
    before: bytes | None
    after: bytes | None


class World:
    """A workspace, a session, and what is known about both."""

    def __init__(self, home: Path, there: Sequence[str] = NAMES[:2], system: System | None = None) -> None:
        self.home, self.work = home, home / "work"
        self.work.mkdir(parents=True, exist_ok=True)
        self.store = Store(home, system=system or Quick())
        self.session: Session = self.store.session("s")
        self.moments: list[Disk] = [{}]
        self.did: list[Did] = []
        self.uuids: list[str] = [""]
        self._lines = self._calls = 0
        for name in there:
            self.deed(Deed("append", name), "i")
        self.say("user")

    @property
    def index(self) -> int:
        return len(self.moments) - 1

    def disk(self) -> Disk:
        return {name: (self.work / name).read_bytes() for name in ALL if (self.work / name).is_file()}

    def note(self, receipt: Receipt) -> Receipt:
        """A message was appended: what is on disk now is what was there at it."""
        self.moments.append(self.disk())
        self.uuids.append(receipt.uuid)
        return receipt

    def say(self, role: str, parent: int | None = None) -> None:
        about = {} if parent is None else {"parent": self.uuids[1 + parent % self.index]}
        add = {"user": self.session.user, "assistant": self.session.assistant, "system": self.session.system}[role]
        self.note(add("words", **about))  # type: ignore[arg-type]

    def deed(self, deed: Deed, author: str) -> None:
        """Change a file; every line that comes is marked with who wrote it."""
        path = self.work / deed.name
        lines = path.read_bytes().splitlines(keepends=True) if path.is_file() else []
        self._lines += 1
        line = f"{author} {self._lines}\n".encode()
        match deed.how:
            case "append":
                lines.append(line)
            case "prepend":
                lines.insert(0, line)
            case "replace":
                lines = [line, *lines[1:]]
            case "rewrite":
                lines = [line]
            case "drop":
                lines = lines[1:]
            case "delete":
                path.unlink(missing_ok=True)
                return
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"".join(lines))

    def run(self, message: Receipt, number: int, deeds: Sequence[Deed], named: bool) -> None:
        """One watched run of a tool."""
        names = sorted({deed.name for deed in deeds} | {"a.txt"}) if named else None
        before = self.disk()
        with self.session.watch(message, names, root=self.work):
            for deed in deeds:
                self.deed(deed, f"m{number}")
        after = self.disk()
        seen = ALL if named else (*NAMES, NOTES)
        self.did += [
            Did(number, name, before.get(name), after.get(name)) for name in seen if before.get(name) != after.get(name)
        ]

    def reply(
        self,
        runs: Sequence[tuple[Sequence[Deed], bool]],
        *,
        tool: str = "bash",
        results: str = "one",
        persons: Sequence[Deed | None] = (),
    ) -> None:
        """A reply whose tools are watched; what the person does comes before, between and behind the runs."""
        calls = [] if results == "none" else [self._call(tool) for _ in runs]
        message = self.note(self.session.assistant("I do it.", calls=calls))
        number = self.index
        edits = [*persons, *(None for _ in range(len(runs) + 1 - len(persons)))]
        for edit, (deeds, named) in zip(edits, runs, strict=False):
            self.person(edit)
            self.run(message, number, deeds, named)
        self.person(edits[len(runs)])
        answers = [ToolResult(tool_call_id=call.id, tool_name=call.name, content="ok") for call in calls]
        for group in [answers] if results == "one" else [[answer] for answer in answers]:
            if group:
                self.note(self.session.results(*group))

    def _call(self, tool: str) -> ToolCall:
        self._calls += 1
        return ToolCall(id=f"c-{self._calls}", name=tool, arguments={"command": "make"} if tool == "bash" else {})

    def unwatched(self, deeds: Sequence[Deed]) -> None:
        """A tool that nobody watches."""
        call = self._call("bash")
        self.note(self.session.assistant("I do it unseen.", calls=[call]))
        for deed in deeds:
            self.deed(deed, "u")
        self.note(self.session.results(ToolResult(tool_call_id=call.id, tool_name="bash", content="ok")))

    def restart(self) -> None:
        """The agent was killed, and is there again."""
        self.store = Store(self.home, system=Quick())
        self.session = self.store.session("s")

    def killed(self, deeds: Sequence[Deed], named: bool) -> None:
        """A watched tool that is killed with its agent, so that nothing tells what it did."""
        message = self.note(self.session.assistant("I do it, and am killed.", calls=[self._call("bash")]))
        names = sorted({deed.name for deed in deeds}) or ["a.txt"] if named else None
        self.session.watch(message, names, root=self.work).before()
        for deed in deeds:
            self.deed(deed, "u")
        self.session.close()  # as a process does that ends
        self.session = self.store.session("s")
        self.say("user")

    def person(self, deed: Deed | None) -> None:
        """What a person does. It never makes a file what it was before, which nobody could notice."""
        if deed is None:
            return
        path = self.work / deed.name
        is_seen = path.is_file() and any(not line.startswith(b"p") for line in path.read_bytes().splitlines())
        if deed.how == "drop" or (deed.how == "delete" and not is_seen):
            deed = deed._replace(how="append")
        self.deed(deed, "p")

    def go(self, how: Callable[[Session], object]) -> None:
        """Undo, redo or switch, if there is anything to."""
        with suppress(UnknownReference, Refused):
            how(self.session)

    def back(self, how: str, number: int) -> None:
        uuid = self.uuids[1 + number % self.index]
        match how:
            case "undo":
                self.go(lambda session: session.undo(root=self.work, force=True))
            case "to":
                self.go(lambda session: session.undo(uuid, root=self.work, force=True))
            case "file":
                name = NAMES[number % len(NAMES)]
                self.go(lambda session: session.undo(file=name, root=self.work, force=True))
            case "redo":
                self.go(lambda session: session.redo(root=self.work, force=True))
            case "switch":
                self.go(lambda session: session.switch(uuid))

    def look(self, named: bool = True) -> None:
        """A look at all files: what somebody did between two of them does not stay unseen."""
        message = self.note(self.session.assistant("I look."))
        with self.session.watch(message, list(ALL) if named else None, root=self.work):
            pass
        self.say("assistant")

    def history(self) -> FileHistory:
        self.session.close()
        return FileHistory(registry.get("sage-agent"), source_file(self.session.folder / "messages.jsonl"))

    def path(self, name: str) -> str:
        return os.fspath(self.work / name)
