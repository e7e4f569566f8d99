"""Qwen Code."""

from __future__ import annotations

import json
from pathlib import Path

from tests.realclients.client import LATEST, MODEL_URL, SUBAGENT_TASK, Client, FileChanges, Part, Story
from tests.realclients.project import FILES_TO_CHANGE, HORN
from tests.realclients.script import Call, Say, Think, turn
from tests.realclients.wire_chat import ChatCompletions

SETTINGS = {
    "security": {"auth": {"selectedType": "openai"}},
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"disableAutoUpdate": True},
    "memory": {"enableManagedAutoMemory": False},
    "tools": {"todoWrite": {"enabled": True}},
}
MODEL = "qwen3-vl-plus"
"""It sends pictures to models of certain names alone."""
INJECTED = ("<system-reminder>", "(attached media from previous tool call)")


def _arguments(prompt: str, session: str | None, home: Path) -> list[str]:
    resume = ["--continue"] if session == LATEST else ["--resume", session] if session else []
    return [*resume, "--approval-mode", "yolo", "-p", prompt]


CLIENT = Client(
    name="qwen",
    agent="qwen-code",
    wire=ChatCompletions(INJECTED),
    npm={"@qwen-code/qwen-code": "0.24.4", "node": "22.23.3"},
    binary="node_modules/.bin/qwen",
    arguments=_arguments,
    environment={"OPENAI_API_KEY": "lab", "OPENAI_BASE_URL": f"{MODEL_URL}/v1", "OPENAI_MODEL": MODEL},
    settings={".qwen/settings.json": json.dumps(SETTINGS)},
    sessions=(".qwen/projects/*/chats/*.jsonl", ".qwen/projects/*/subagents/*/*.jsonl"),
    id_of=lambda path: None if path.name.startswith("agent-") else path.stem,
)


def _edit(path: str, old: str, new: str) -> Call:
    return Call("edit", {"file_path": path, "old_string": old, "new_string": new})


def _shell(command: str) -> Call:
    return Call("run_shell_command", {"command": command, "description": "Run it", "is_background": False})


def _bell_and_horn(project: Path) -> tuple[Part, ...]:
    bell, horn = str(project / "bell.py"), str(project / "horn.py")
    todos = [
        {"id": "1", "content": "Ring twice", "status": "completed"},
        {"id": "2", "content": "Blow", "status": "pending"},
    ]
    subagent = {
        "description": "Count lines",
        "prompt": f"{SUBAGENT_TASK} It is {bell}.",
        "subagent_type": "general-purpose",
        "run_in_background": False,
    }
    first = (
        turn(Think("The bell comes first."), Say("I read the bell."), Call("read_file", {"file_path": bell})),
        turn(_edit(bell, "'dong'", "'dong dong'"), after="def ring"),
        turn(Say("Now a horn."), Call("write_file", {"file_path": horn, "content": HORN})),
        turn(
            _shell("python3 bell.py"),
            _shell("ls no-such-folder"),
            Call("read_file", {"file_path": str(project / "missing.py")}),
        ),
        # It encodes pictures anew before it sends them.
        turn(Call("read_file", {"file_path": str(project / "flag.png")})),
        turn(Call("todo_write", {"todos": todos})),
        turn(Call("agent", subagent)),
        turn(Say("The bell rings twice; it has 5 lines.")),
    )
    count = (turn(Call("read_file", {"file_path": bell})), turn(Say("There are 5."), after="def ring"))
    second = (
        # It refuses to change what this process has not read.
        turn(Call("read_file", {"file_path": horn}), after="louder"),
        turn(_edit(horn, "'toot'", "'TOOT'"), after="def blow"),
        turn(Say("It is louder.")),
    )
    third = (turn(Think("Both are done."), Say("A bell and a horn: ring, and blow — “toot”."), after="What"),)
    return (
        Part("Make the bell ring twice.", first, count),
        Part("Make the horn louder.", second),
        Part("What have we made?", third),
    )


def _file_changes(project: Path) -> tuple[tuple[Call, ...], ...]:
    def path(name: str) -> str:
        return str(project / name)

    def read(name: str) -> Call:
        return Call("read_file", {"file_path": path(name)})

    def write(name: str, content: str) -> Call:
        return Call("write_file", {"file_path": path(name), "content": content})

    first = (
        *(read(name) for name in FILES_TO_CHANGE),
        _edit(path("bell.py"), "'dong'", "'dong dong'"),
        write("horn.py", "def blow():\n    return 'toot'\n"),
        _shell("cat horn.py | head -3"),
        _edit(path("horn.py"), "'toot'", "'TOOT'"),
        _edit(path("crlf.txt"), "two", "TWO"),
        _edit(path("mark.txt"), "two\n", "TWO\nTHREE\n"),
        _edit(path("open.txt"), "two", "2"),
        _edit(path("mixed.txt"), "two", "TWO"),
        _shell("python3 bell.py > sound.txt"),
        read("bell.py"),
        _edit(path("bell.py"), "'dong dong'", "'DONG'"),
        read("sound.txt"),
    )
    second = (
        read("open.txt"),
        write("open.txt", "new\nlines\n"),
        read("crlf.txt"),
        write("crlf.txt", "new\nlines\n"),
        _shell("rm horn.py && printf 'x' > new.txt"),
        read("new.txt"),
        read("bell.py"),
        _edit(path("bell.py"), "DONG", "ding"),
    )
    return first, second


STORIES = (Story("qwen", CLIENT, _bell_and_horn, has_subagent_file=True),)
FILE_CHANGES = (FileChanges("qwen", CLIENT, _file_changes, 0.1),)
