"""Pi coding agent."""

from __future__ import annotations

import json
from pathlib import Path

from tests.realclients.client import LATEST, MODEL_URL, Client, FileChanges, Part, Story, first_record
from tests.realclients.project import FILES_TO_CHANGE, HORN
from tests.realclients.script import Call, Say, Think, turn
from tests.realclients.wire_chat import MODEL, ChatCompletions

MODELS = {
    "providers": {
        "lab": {
            "baseUrl": f"{MODEL_URL}/v1",
            "api": "openai-completions",
            "apiKey": "lab",
            "models": [
                {
                    "id": MODEL,
                    "reasoning": True,
                    "input": ["text", "image"],
                    "cost": {"input": 1, "output": 2, "cacheRead": 0.1, "cacheWrite": 1},
                    "contextWindow": 200000,
                    "maxTokens": 8192,
                }
            ],
        }
    }
}


def _arguments(prompt: str, session: str | None, home: Path) -> list[str]:
    resume = ["--continue"] if session == LATEST else ["--session", session] if session else []
    return ["--provider", "lab", "--model", MODEL, *resume, "-p", prompt]


def _session_id(path: Path) -> str | None:
    return str(first_record(path)["id"])


CLIENT = Client(
    name="pi",
    agent="pi",
    wire=ChatCompletions(("Attached image(s) from tool result:",), image_result="(see attached image)"),
    npm={"@earendil-works/pi-coding-agent": "0.87.1", "node": "22.23.3"},
    binary="node_modules/.bin/pi",
    arguments=_arguments,
    environment={"PI_OFFLINE": "1", "PI_TELEMETRY": "0"},
    settings={".pi/agent/models.json": json.dumps(MODELS)},
    sessions=(".pi/agent/sessions/*/*.jsonl",),
    id_of=_session_id,
)


def _bell_and_horn(project: Path) -> tuple[Part, ...]:
    bell, horn = str(project / "bell.py"), str(project / "horn.py")
    twice = {"path": bell, "edits": [{"oldText": "'dong'", "newText": "'dong dong'"}]}
    louder = {"path": horn, "edits": [{"oldText": "'toot'", "newText": "'TOOT'"}]}
    first = (
        turn(Think("The bell comes first."), Say("I read the bell."), Call("read", {"path": bell})),
        turn(Call("edit", twice), after="def ring"),
        turn(Say("Now a horn."), Call("write", {"path": horn, "content": HORN})),
        turn(
            Call("bash", {"command": "python3 bell.py"}),
            Call("bash", {"command": "ls no-such-folder"}),
            Call("read", {"path": str(project / "missing.py")}),
        ),
        turn(Call("read", {"path": str(project / "flag.png")})),
        turn(Say("The bell rings twice.")),
    )
    second = (turn(Call("edit", louder), after="louder"), turn(Say("It is louder.")))
    third = (turn(Think("Both are done."), Say("A bell and a horn: ring, and blow — “toot”."), after="What"),)
    return (
        Part("Make the bell ring twice.", first),
        Part("Make the horn louder.", second),
        Part("What have we made?", third),
    )


def _file_changes(project: Path) -> tuple[tuple[Call, ...], ...]:
    def path(name: str) -> dict[str, str]:
        return {"path": str(project / name)}

    def edit(name: str, *replacements: tuple[str, str]) -> Call:
        edits = [{"oldText": old, "newText": new} for old, new in replacements]
        return Call("edit", {"path": name, "edits": edits})

    def bash(command: str) -> Call:
        return Call("bash", {"command": command})

    first = (
        *(Call("read", path(name)) for name in FILES_TO_CHANGE),
        edit("bell.py", ("'dong'", "'dong dong'"), ("def ring", "def  ring")),
        Call("write", {**path("horn.py"), "content": "def blow():\n    return 'toot'\n"}),
        bash("cat horn.py | head -3"),
        edit("horn.py", ("'toot'", "'TOOT'")),
        edit("crlf.txt", ("two", "TWO")),
        edit("mark.txt", ("two\n", "TWO\nTHREE\n")),
        # It matches spaces at the ends of lines and quotation marks loosely.
        edit("open.txt", ("one  \ntwo", "one\n\N{RIGHT SINGLE QUOTATION MARK}2")),
        edit("open.txt", ("'2", "two")),
        edit("mixed.txt", ("two", "TWO")),
        bash("python3 bell.py > sound.txt"),
        edit("bell.py", ("'dong dong'", "'DONG'")),
        Call("read", path("sound.txt")),
    )
    second = (
        Call("write", {**path("crlf.txt"), "content": "new\nlines\n"}),
        bash("rm horn.py && printf 'x' > new.txt"),
        Call("read", path("new.txt")),
        edit("bell.py", ("'not there'", "'x'")),
        edit("bell.py", ("DONG", "ding")),
    )
    return first, second


STORIES = (Story("pi", CLIENT, _bell_and_horn, shows_image=True),)
FILE_CHANGES = (FileChanges("pi", CLIENT, _file_changes, 0.45),)
