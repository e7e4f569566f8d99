"""OpenCode 1.x."""

from __future__ import annotations

import json
import platform
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.realclients.client import LATEST, MODEL_URL, SUBAGENT_TASK, Client, FileChanges, Part, Story
from tests.realclients.project import FILES_TO_CHANGE, HORN
from tests.realclients.script import Call, Say, Think, turn
from tests.realclients.wire_chat import MODEL, ChatCompletions

IS_ARM = platform.machine() in ("aarch64", "arm64")
PACKAGE = "opencode-linux-arm64" if IS_ARM else "opencode-linux-x64"
VERSION = "1.18.18"
"""The newest version of the program for both processors."""
PROVIDER = {
    "npm": "@ai-sdk/openai-compatible",
    "options": {"baseURL": f"{MODEL_URL}/v1", "apiKey": "lab"},
    "models": {
        MODEL: {
            "reasoning": True,
            "tool_call": True,
            "attachment": True,
            "modalities": {"input": ["text", "image", "pdf"], "output": ["text"]},
            "limit": {"context": 200000, "output": 8192},
        }
    },
}
ALLOWED = dict.fromkeys(("edit", "bash", "webfetch", "external_directory", "doom_loop"), "allow")
SETTINGS = {
    "provider": {"lab": PROVIDER},
    "model": f"lab/{MODEL}",
    "small_model": f"lab/{MODEL}",
    "permission": ALLOWED,
    "autoupdate": False,
    "share": "disabled",
    "lsp": False,
    "formatter": False,
}
DATABASE = ".local/share/opencode/opencode.db"


def _arguments(prompt: str, session: str | None, home: Path) -> list[str]:
    resume = ["--continue"] if session == LATEST else ["--session", session] if session else []
    # An argument with spaces would be stored with quotation marks around it.
    return ["run", "--model", f"lab/{MODEL}", *resume, "--", *prompt.split(" ")]


def _session_ids(home: Path) -> list[str]:
    with closing(sqlite3.connect(f"{(home / DATABASE).as_uri()}?mode=ro", uri=True)) as database:
        return [name for (name,) in database.execute("SELECT id FROM session WHERE parent_id IS NULL ORDER BY id")]


CLIENT = Client(
    name="opencode",
    agent="opencode",
    wire=ChatCompletions(("Attached media from tool result:",)),
    npm={PACKAGE: VERSION},
    binary=f"node_modules/{PACKAGE}/bin/opencode",
    arguments=_arguments,
    environment={
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    },
    settings={".config/opencode/opencode.json": json.dumps(SETTINGS)},
    sessions=(DATABASE,),
    list_sessions=_session_ids,
    asks_for_titles=True,
    sends_thoughts_as_answers=True,
)


def _bell_and_horn(project: Path) -> tuple[Part, ...]:
    bell, horn = str(project / "bell.py"), str(project / "horn.py")
    twice = {"filePath": bell, "oldString": "'dong'", "newString": "'dong dong'"}
    louder = {"filePath": horn, "oldString": "'toot'", "newString": "'TOOT'"}
    todos = [{"content": "Ring the bell", "status": "completed", "priority": "high"}]
    task = {"description": "Count lines", "prompt": SUBAGENT_TASK, "subagent_type": "general"}
    first = (
        turn(Think("The bell comes first."), Say("I read the bell."), Call("read", {"filePath": bell})),
        turn(Call("edit", twice)),
        turn(Say("Now a horn."), Call("write", {"filePath": horn, "content": HORN})),
        turn(
            Call("bash", {"command": "python3 bell.py", "description": "Ring the bell"}),
            Call("bash", {"command": "ls no-such-folder", "description": "Look for a folder"}),
            Call("todowrite", {"todos": todos}),
        ),
        turn(Call("read", {"filePath": str(project / "flag.png")})),
        turn(Call("task", task)),
        turn(Say("The bell rings twice.")),
    )
    counted = (turn(Call("bash", {"command": "wc -l bell.py", "description": "Count"})), turn(Say("Two lines.")))
    second = (turn(Call("edit", louder)), turn(Say("It is louder.")))
    third = (turn(Think("Both are done."), Say("A bell and a horn: ring, and blow — “toot”.")),)
    return (
        Part("Make the bell ring twice.", first, counted),
        Part("Make the horn louder.", second),
        Part("What have we made?", third),
    )


def _file_changes(project: Path) -> tuple[tuple[Call, ...], ...]:
    def path(name: str) -> dict[str, str]:
        return {"filePath": str(project / name)}

    def edit(name: str, old: str, new: str) -> Call:
        return Call("edit", {**path(name), "oldString": old, "newString": new})

    def bash(command: str) -> Call:
        return Call("bash", {"command": command, "description": "A command"})

    first = (
        *(Call("read", path(name)) for name in FILES_TO_CHANGE),
        edit("bell.py", "'dong'", "'dong dong'"),
        Call("write", {**path("horn.py"), "content": "def blow():\n    return 'toot'\n"}),
        bash("cat horn.py | head -3"),
        edit("horn.py", "'toot'", "'TOOT'"),
        edit("crlf.txt", "two", "TWO"),
        edit("mark.txt", "two\n", "TWO\nTHREE\n"),
        edit("mixed.txt", "two", "TWO"),
        bash("python3 bell.py > sound.txt"),
        edit("bell.py", "'dong dong'", "'DONG'"),
        Call("read", path("sound.txt")),
    )
    second = (
        Call("write", {**path("crlf.txt"), "content": "new\nlines\n"}),
        Call("write", {**path("mark.txt"), "content": "new\nlines\n"}),
        bash("rm horn.py && printf 'x' > new.txt"),
        Call("read", path("new.txt")),
        edit("bell.py", "'not there'", "'x'"),
        edit("bell.py", "DONG", "ding"),
    )
    return first, second


STORIES = (Story("opencode", CLIENT, _bell_and_horn, shows_image=True, has_subagent_file=True),)
FILE_CHANGES = (FileChanges("opencode", CLIENT, _file_changes, 0.05),)
