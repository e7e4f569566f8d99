"""The sessions that the clients record: each does what its client can do, over several runs."""

from __future__ import annotations

import struct
import subprocess
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.realclients.clients import CLAUDE, CODEX, GEMINI, Client
from tests.realclients.lab import Run, run
from tests.realclients.script import Call, Say, Script, Think, Turn, turn

BELL = "def ring():\n    return 'dong'\n\n\nprint(ring())\n"
HORN = "def blow():\n    return 'toot'\n"
LATER = {"NODE_OPTIONS": f"--require {Path(__file__).with_name('later.cjs')}"}
"""Two minutes on: Gemini CLI names files by the minute, so a session that is resumed later has another one."""
ERRAND = "Count the lines of the bell."
"""How the task of every sub-agent begins."""


@dataclass(frozen=True)
class Part:
    """One run: what the user asks, and what the model answers."""

    prompt: str
    turns: tuple[Turn, ...]
    errand: tuple[Turn, ...] = ()
    """The turns of a sub-agent."""
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def script(self) -> Script:
        return Script(self.turns, {ERRAND: self.errand} if self.errand else {})


@dataclass(frozen=True)
class Story:
    """A session to be: the first part begins it, every other resumes it."""

    name: str
    client: Client
    parts: Callable[[Path], tuple[Part, ...]]
    """From the project's folder, since tools are given whole paths."""
    environment: dict[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recording:
    """A session that a client wrote."""

    story: Story
    home: Path
    project: Path
    session: str
    runs: tuple[Run, ...]

    @property
    def files(self) -> list[Path]:
        return self.story.client.files(self.home)


def record(story: Story, folder: Path) -> Recording:
    """Let the client play the story, in a home and a project below the folder."""
    home, project = folder / "home", folder / "harbour"
    build_project(project)
    runs: list[Run] = []
    session: str | None = None
    for part in story.parts(project):
        one = run(
            story.client,
            home,
            project,
            part.prompt,
            part.script,
            session=session,
            environment={**story.environment, **part.environment},
            options=story.options,
        )
        runs.append(one.check())
        (session,) = story.client.session_ids(home)
    assert session is not None
    return Recording(story, home, project, session, tuple(runs))


def build_project(project: Path) -> None:
    """A small project under git."""
    project.mkdir(parents=True)
    (project / "bell.py").write_text(BELL, encoding="utf-8")
    (project / "flag.png").write_bytes(flag())
    git = ["git", "-C", str(project), "-c", "user.name=lab", "-c", "user.email=lab@example.org"]
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "Harbour"]):
        subprocess.run([*git, *words], check=True)


def flag() -> bytes:
    """A picture: sixteen by sixteen points of one red."""
    rows = (b"\0" + b"\xc8\x10\x2e" * 16) * 16
    head = struct.pack(">IIBBBBB", 16, 16, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in chunks
    )


def _claude(project: Path) -> tuple[Part, ...]:
    bell, horn = str(project / "bell.py"), str(project / "horn.py")
    twice = {"file_path": bell, "old_string": "'dong'", "new_string": "'dong dong'"}
    task = {"subject": "Ring twice", "description": "The bell rings twice.", "activeForm": "Ringing twice"}
    errand = {"description": "Count lines", "prompt": f"{ERRAND} It is {bell}.", "subagent_type": "general-purpose"}
    first = (
        turn(Think("The bell comes first."), Say("I read the bell."), Call("Read", {"file_path": bell})),
        turn(Call("Edit", twice), after="def ring"),
        turn(Say("Now a horn."), Call("Write", {"file_path": horn, "content": HORN}), after="updated"),
        turn(
            Call("Bash", {"command": "python3 bell.py", "description": "Ring the bell"}),
            Call("Bash", {"command": "ls no-such-folder", "description": "Look for what is not there"}),
            Call("Read", {"file_path": str(project / "missing.py")}),
            after="created",
        ),
        turn(Call("Read", {"file_path": str(project / "flag.png")}), after="does not exist"),
        turn(Call("ToolSearch", {"query": "select:TaskCreate,TaskUpdate"})),
        turn(Call("TaskCreate", task), Call("TaskCreate", {**task, "subject": "Paint the horn"})),
        turn(Call("TaskUpdate", {"taskId": "1", "status": "completed"}), after="Paint the horn"),
        turn(Call("Agent", {**errand, "run_in_background": False})),
        turn(Say("The bell rings twice; it has 5 lines."), after="There are 5."),
    )
    count = (turn(Call("Bash", {"command": f"wc -l {bell}"})), turn(Say("There are 5."), after="5 "))
    louder = {"file_path": horn, "old_string": "'toot'", "new_string": "'TOOT'"}
    second = (turn(Call("Edit", louder), after="louder"), turn(Say("It is louder."), after="updated"))
    third = (turn(Think("Both are done."), Say("A bell and a horn: ring, and blow — “toot”."), after="What"),)
    return (
        Part("Make the bell ring twice.", first, count),
        Part("Make the horn louder.", second),
        Part("What have we made?", third),
    )


def _claude_checkpoints(project: Path) -> tuple[Part, ...]:
    bell, horn = str(project / "bell.py"), str(project / "horn.py")
    return (
        Part(
            "Make the bell ring twice.",
            (
                turn(Call("Read", {"file_path": bell})),
                turn(Call("Edit", {"file_path": bell, "old_string": "'dong'", "new_string": "'dong dong'"})),
                turn(Call("Write", {"file_path": horn, "content": HORN})),
                turn(Say("Done.")),
            ),
        ),
        Part(
            "And louder.",
            (
                turn(Call("Read", {"file_path": bell}), Call("Read", {"file_path": horn})),
                turn(Call("Edit", {"file_path": bell, "old_string": "'dong dong'", "new_string": "'DONG'"})),
                turn(Call("Edit", {"file_path": horn, "old_string": "'toot'", "new_string": "'TOOT'"})),
                turn(Say("Louder.")),
            ),
        ),
        Part("Thanks.", (turn(Say("You are welcome.")),)),
    )


def _patch(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


RING_TWICE = _patch("*** Update File: bell.py", "@@ def ring():", "-    return 'dong'", "+    return 'dong dong'")
ADD_HORN = _patch("*** Add File: horn.py", *(f"+{line}" for line in HORN.splitlines()))
LOUDER = _patch("*** Update File: horn.py", "@@ def blow():", "-    return 'toot'", "+    return 'TOOT'")


def _codex(project: Path) -> tuple[Part, ...]:
    plan = [{"step": "Ring twice", "status": "completed"}, {"step": "Paint the horn", "status": "pending"}]
    first = (
        turn(Think("The bell comes first."), Say("I read the bell."), Call("exec_command", {"cmd": "cat bell.py"})),
        turn(Call("apply_patch", RING_TWICE), after="def ring"),
        turn(Say("Now a horn."), Call("apply_patch", ADD_HORN), after="Success"),
        turn(
            Call("exec_command", {"cmd": "python3 bell.py"}),
            Call("exec_command", {"cmd": "ls no-such-folder"}),
            after="Success",
        ),
        turn(Call("view_image", {"path": str(project / "flag.png")}), after="code 2"),
        turn(Call("apply_patch", RING_TWICE)),
        turn(Call("update_plan", {"explanation": "Two things", "plan": plan}), after="Failed"),
        turn(Say("The bell rings twice."), after="Plan updated"),
    )
    second = (turn(Call("apply_patch", LOUDER), after="louder"), turn(Say("It is louder."), after="Success"))
    third = (turn(Think("Both are done."), Say("A bell and a horn: ring, and blow — “toot”."), after="What"),)
    return (
        Part("Make the bell ring twice.", first),
        Part("Make the horn louder.", second),
        Part("What have we made?", third),
    )


def _in_code(command: str) -> str:
    return f"text((await tools.exec_command({{cmd: {command!r}}})).output)"


def _codex_code(project: Path) -> tuple[Part, ...]:
    """The newest models write JavaScript that calls the tools."""
    errand = {"task_name": "count", "message": f"{ERRAND} It is bell.py."}
    first = (
        turn(Think("The bell comes first."), Call("exec", _in_code("cat bell.py"))),
        turn(Call("exec", f"text(await tools.apply_patch({RING_TWICE!r}))"), after="def ring"),
        turn(Call("exec", _in_code("ls no-such-folder"))),
        turn(Call("exec", "throw new Error('no such thing')"), after="No such file"),
        turn(Call("spawn_agent", errand, "collaboration"), after="no such thing"),
        turn(Call("wait_agent", {"timeout_ms": 20000}, "collaboration")),
        turn(Say("The bell rings twice; it has 5 lines.")),
    )
    count = (
        turn(Call("exec", _in_code("wc -l bell.py"))),
        turn(Say("There are 5."), after="5 "),
    )
    third = (turn(Say("A bell."), after="What"),)
    return (Part("Make the bell ring twice.", first, count), Part("What have we made?", third))


def _gemini(project: Path) -> tuple[Part, ...]:
    bell, horn = str(project / "bell.py"), str(project / "horn.py")
    twice = {"file_path": bell, "instruction": "Ring twice", "old_string": "'dong'", "new_string": "'dong dong'"}
    todos = [{"description": "Ring twice", "status": "completed"}, {"description": "Blow", "status": "pending"}]
    errand = {"agent_name": "generalist", "prompt": f"{ERRAND} It is {bell}."}
    first = (
        turn(Think("**First** The bell comes first."), Say("I read the bell."), Call("read_file", {"file_path": bell})),
        turn(Call("replace", twice), after="def ring"),
        turn(Say("Now a horn."), Call("write_file", {"file_path": horn, "content": HORN}), after="modified"),
        turn(
            Call("run_shell_command", {"command": "python3 bell.py", "description": "Ring the bell"}),
            Call("run_shell_command", {"command": "ls no-such-folder"}),
            Call("read_file", {"file_path": str(project / "missing.py")}),
        ),
        turn(Call("read_file", {"file_path": str(project / "flag.png")})),
        turn(Call("write_todos", {"todos": todos})),
        turn(Call("invoke_agent", errand)),
        turn(Say("The bell rings twice; it has 5 lines.")),
    )
    count = (
        turn(Call("run_shell_command", {"command": f"wc -l {bell}"})),
        turn(Call("complete_task", {"result": {"response": "There are 5."}}), after="5 "),
    )
    louder = {"file_path": horn, "instruction": "Louder", "old_string": "'toot'", "new_string": "'TOOT'"}
    second = (turn(Call("replace", louder), after="louder"), turn(Say("It is louder."), after="modified"))
    third = (turn(Think("Both are done."), Say("A bell and a horn: ring, and blow — “toot”."), after="What"),)
    return (
        Part("Make the bell ring twice.", first, count),
        Part("Make the horn louder.", second),
        Part("What have we made?", third, environment=LATER),
    )


STORIES = {
    story.name: story
    for story in (
        Story("claude", CLAUDE, _claude, {"CLAUDE_CODE_ENABLE_TODO_TOOLS": "1"}),
        Story("claude-checkpoints", CLAUDE, _claude_checkpoints, {"CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING": "1"}),
        Story("codex", CODEX, _codex),
        Story("codex-code", CODEX, _codex_code, options=("-c", 'model="gpt-6.1-terra"')),
        Story("gemini", GEMINI, _gemini),
    )
}
