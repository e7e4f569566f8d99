"""Gemini CLI."""

from __future__ import annotations

import json
from pathlib import Path

from tests.realclients.client import (
    MODEL_URL,
    SUBAGENT_TASK,
    TWO_MINUTES_LATER,
    Client,
    FileChanges,
    Part,
    Story,
    first_record,
)
from tests.realclients.project import FILES_TO_CHANGE, HORN
from tests.realclients.script import Call, Say, Think, turn
from tests.realclients.wire_gemini import Gemini

SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    # By default, it deletes sessions at its start, among them some that were resumed.
    "general": {
        "enableAutoUpdate": False,
        "checkpointing": {"enabled": True},
        "sessionRetention": {"enabled": False},
    },
}


def _arguments(prompt: str, session: str | None, home: Path) -> list[str]:
    resume = ["--resume", session] if session else []
    return [*resume, "--yolo", "--skip-trust", "-m", "gemini-2.5-pro", "-p", prompt]


def _session_id(path: Path) -> str | None:
    header = first_record(path)
    return str(header["sessionId"]) if header.get("kind", "main") == "main" else None


CLIENT = Client(
    name="gemini",
    agent="gemini",
    wire=Gemini(),
    npm={"@google/gemini-cli": "0.61.0"},
    binary="node_modules/.bin/gemini",
    arguments=_arguments,
    environment={"GEMINI_API_KEY": "lab", "GOOGLE_GEMINI_BASE_URL": MODEL_URL},
    settings={".gemini/settings.json": json.dumps(SETTINGS)},
    sessions=(".gemini/tmp/*/chats/**/*.jsonl", ".gemini/tmp/*/chats/**/*.json"),
    id_of=_session_id,
)


def _bell_and_horn(project: Path) -> tuple[Part, ...]:
    bell, horn = str(project / "bell.py"), str(project / "horn.py")
    twice = {"file_path": bell, "instruction": "Ring twice", "old_string": "'dong'", "new_string": "'dong dong'"}
    todos = [{"description": "Ring twice", "status": "completed"}, {"description": "Blow", "status": "pending"}]
    subagent = {"agent_name": "generalist", "prompt": f"{SUBAGENT_TASK} It is {bell}."}
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
        turn(Call("invoke_agent", subagent)),
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
        # It names files by the minute, so a session that is resumed later has another file.
        Part("What have we made?", third, environment=TWO_MINUTES_LATER),
    )


def _file_changes(project: Path) -> tuple[tuple[Call, ...], ...]:
    def path(name: str) -> dict[str, str]:
        return {"file_path": str(project / name)}

    def replace(name: str, old: str, new: str) -> Call:
        return Call("replace", {**path(name), "instruction": "Change it", "old_string": old, "new_string": new})

    def shell(command: str) -> Call:
        return Call("run_shell_command", {"command": command})

    first = (
        *(Call("read_file", path(name)) for name in FILES_TO_CHANGE),
        replace("bell.py", "'dong'", "'dong dong'"),
        Call("write_file", {**path("horn.py"), "content": "def blow():\n    return 'toot'\n"}),
        shell("cat horn.py | head -3"),
        replace("horn.py", "'toot'", "'TOOT'"),
        replace("crlf.txt", "two", "TWO"),
        replace("mark.txt", "two\n", "TWO\nTHREE\n"),
        replace("open.txt", "two", "2"),
        replace("mixed.txt", "two", "TWO"),
        shell("python3 bell.py > sound.txt"),
        replace("bell.py", "'dong dong'", "'DONG'"),
        Call("read_file", path("sound.txt")),
    )
    second = (
        Call("write_file", {**path("open.txt"), "content": "new\nlines\n"}),
        Call("write_file", {**path("crlf.txt"), "content": "new\nlines\n"}),
        shell("rm horn.py && printf 'x' > new.txt"),
        Call("read_file", path("new.txt")),
        replace("bell.py", "DONG", "ding"),
    )
    return first, second


STORIES = (Story("gemini", CLIENT, _bell_and_horn, shows_image=True, has_subagent_file=True),)
FILE_CHANGES = (FileChanges("gemini", CLIENT, _file_changes, 0.1),)
