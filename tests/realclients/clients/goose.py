"""Goose. The registry has it for x64 alone."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.realclients.client import LATEST, MODEL_URL, SUBAGENT_TASK, Client, FileChanges, Part, Story
from tests.realclients.project import HORN
from tests.realclients.script import Call, Say, Think, turn
from tests.realclients.wire_chat import MODEL, ChatCompletions

PACKAGE = "@aaif/goose-binary-linux-x64"
DATABASE = ".local/share/goose/sessions/sessions.db"


def _open(home: Path) -> closing[sqlite3.Connection]:
    return closing(sqlite3.connect(f"{(home / DATABASE).as_uri()}?mode=ro", uri=True))


def _own_id(home: Path, session: str) -> str:
    """The id that the client gave a session which it imported."""
    converted = """json_extract(extension_data, '$."clew.v0".session')"""
    with _open(home) as database:
        row = database.execute(f"SELECT id FROM sessions WHERE {converted} = ?", (session,)).fetchone()
    return str(row[0]) if row is not None else session


def _arguments(prompt: str, session: str | None, home: Path) -> list[str]:
    resume = (
        ["--resume"] if session == LATEST else ["--resume", "--session-id", _own_id(home, session)] if session else []
    )
    return ["run", *resume, "--with-builtin", "developer", "-t", prompt]


def _session_ids(home: Path) -> list[str]:
    with _open(home) as database:
        return [name for (name,) in database.execute("SELECT id FROM sessions WHERE session_type = 'user' ORDER BY id")]


CLIENT = Client(
    name="goose",
    agent="goose",
    wire=ChatCompletions(
        ("<turn-context>",),
        wrapper=r"\n<turn-context>.*\Z",
        image_result="This tool result included an image that was omitted as the model does not support vision.",
    ),
    npm={PACKAGE: "1.52.0"},
    binary=f"node_modules/{PACKAGE}/bin/goose",
    arguments=_arguments,
    environment={
        "GOOSE_PROVIDER": "openai",
        "GOOSE_MODEL": MODEL,
        "GOOSE_MODE": "auto",
        "GOOSE_DISABLE_KEYRING": "1",
        "OPENAI_HOST": MODEL_URL,
        "OPENAI_BASE_PATH": "v1/chat/completions",
        "OPENAI_API_KEY": "lab",
    },
    sessions=(DATABASE,),
    list_sessions=_session_ids,
    asks_for_titles=True,
    sends_images=False,
)


def _bell_and_horn(project: Path) -> tuple[Part, ...]:
    bell, horn = str(project / "bell.py"), str(project / "horn.py")
    first = (
        turn(Think("The bell comes first."), Say("I read the bell."), Call("shell", {"command": "cat bell.py"})),
        turn(Call("edit", {"path": bell, "before": "'dong'", "after": "'dong dong'"})),
        turn(Say("Now a horn."), Call("write", {"path": horn, "content": HORN})),
        turn(Call("shell", {"command": "python3 bell.py"}), Call("shell", {"command": "ls no-such-folder"})),
        turn(Call("delegate", {"instructions": SUBAGENT_TASK})),
        turn(Say("The bell rings twice.")),
    )
    counted = (turn(Call("shell", {"command": "wc -l bell.py"})), turn(Say("Two lines.")))
    second = (turn(Call("edit", {"path": horn, "before": "'toot'", "after": "'TOOT'"})), turn(Say("It is louder.")))
    third = (turn(Think("Both are done."), Say("A bell and a horn: ring, and blow — “toot”.")),)
    return (
        Part("Make the bell ring twice.", first, counted),
        Part("Make the horn louder.", second),
        Part("What have we made?", third),
    )


def _file_changes(project: Path) -> tuple[tuple[Call, ...], ...]:
    def path(name: str) -> dict[str, str]:
        return {"path": str(project / name)}

    def edit(name: str, old: str, new: str) -> Call:
        return Call("edit", {**path(name), "before": old, "after": new})

    def shell(command: str) -> Call:
        return Call("shell", {"command": command})

    first = (
        edit("bell.py", "'dong'", "'dong dong'"),
        Call("write", {**path("horn.py"), "content": "def blow():\n    return 'toot'\n"}),
        shell("cat horn.py | head -3"),
        edit("horn.py", "'toot'", "'TOOT'"),
        edit("crlf.txt", "two", "TWO"),
        edit("mark.txt", "two\n", "TWO\nTHREE\n"),
        edit("mixed.txt", "two", "TWO"),
        shell("python3 bell.py > sound.txt"),
        edit("bell.py", "'dong dong'", "'DONG'"),
    )
    second = (
        Call("write", {**path("crlf.txt"), "content": "new\nlines\n"}),
        shell("rm horn.py && printf 'x' > new.txt"),
        edit("bell.py", "'not there'", "'x'"),
        edit("bell.py", "DONG", "ding"),
    )
    return first, second


STORIES = (Story("goose", CLIENT, _bell_and_horn, has_subagent_file=True),)
FILE_CHANGES = (FileChanges("goose", CLIENT, _file_changes, 0.1),)
