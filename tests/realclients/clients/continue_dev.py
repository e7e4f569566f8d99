"""Continue, the command line."""

from __future__ import annotations

from pathlib import Path

from tests.realclients.client import MODEL_URL, Client, FileChanges, Part, Story
from tests.realclients.project import FILES_TO_CHANGE, HORN
from tests.realclients.script import Call, Say, turn
from tests.realclients.wire_chat import MODEL, ChatCompletions

SETTINGS = f"""\
name: lab
version: 0.0.1
schema: v1
models:
  - name: lab
    provider: openai
    model: {MODEL}
    apiBase: {MODEL_URL}/v1
    apiKey: lab
    roles: [chat]
    capabilities: [tool_use, image_input]
"""


def _arguments(prompt: str, session: str | None, home: Path) -> list[str]:
    # `--fork ID` loads a session by its id and goes on in a new one; a home has one session here, the latest.
    resume = ["--resume"] if session else []
    return ["--config", str(home / ".continue/config.yaml"), "--auto", *resume, "-p", prompt]


def _session_id(path: Path) -> str | None:
    return None if path.name == "sessions.json" else path.stem


CLIENT = Client(
    name="continue",
    agent="continue",
    wire=ChatCompletions(),
    npm={"@continuedev/cli": "1.5.47"},
    binary="node_modules/.bin/cn",
    arguments=_arguments,
    environment={"CONTINUE_TELEMETRY_ENABLED": "0", "CONTINUE_ALLOW_ANONYMOUS_TELEMETRY": "0"},
    settings={".continue/config.yaml": SETTINGS},
    sessions=(".continue/sessions/*-*.json",),
    id_of=_session_id,
)


def _bell_and_horn(project: Path) -> tuple[Part, ...]:
    bell, horn = str(project / "bell.py"), str(project / "horn.py")
    twice = {"file_path": bell, "old_string": "'dong'", "new_string": "'dong dong'"}
    louder = {"file_path": horn, "old_string": "'toot'", "new_string": "'TOOT'"}
    first = (
        turn(Say("I read the bell."), Call("Read", {"filepath": bell})),
        turn(Call("Edit", twice), after="def ring"),
        turn(Say("Now a horn."), Call("Write", {"filepath": horn, "content": HORN})),
        turn(
            Call("Bash", {"command": "python3 bell.py"}),
            Call("Bash", {"command": "ls no-such-folder"}),
            Call("Read", {"filepath": str(project / "missing.py")}),
        ),
        turn(Call("Checklist", {"checklist": "- [x] Ring twice\n- [ ] Paint the horn"})),
        turn(Say("The bell rings twice.")),
    )
    second = (turn(Call("Read", {"filepath": horn})), turn(Call("Edit", louder)), turn(Say("It is louder.")))
    third = (turn(Say("A bell and a horn: ring, and blow — “toot”."), after="What"),)
    return (
        Part("Make the bell ring twice.", first),
        Part("Make the horn louder.", second),
        Part("What have we made?", third),
    )


def _file_changes(project: Path) -> tuple[tuple[Call, ...], ...]:
    def path(name: str) -> dict[str, str]:
        return {"filepath": str(project / name)}

    def edit(name: str, old: str, new: str) -> Call:
        return Call("Edit", {"file_path": str(project / name), "old_string": old, "new_string": new})

    def bash(command: str) -> Call:
        return Call("Bash", {"command": command})

    first = (
        *(Call("Read", path(name)) for name in FILES_TO_CHANGE),
        edit("bell.py", "'dong'", "'dong dong'"),
        Call("Write", {**path("horn.py"), "content": "def blow():\n    return 'toot'\n"}),
        bash("cat horn.py | head -3"),
        edit("horn.py", "'toot'", "'TOOT'"),
        edit("crlf.txt", "two", "TWO"),
        edit("mark.txt", "two\n", "TWO\nTHREE\n"),
        edit("open.txt", "two", "2"),
        edit("mixed.txt", "two", "TWO"),
        bash("python3 bell.py > sound.txt"),
        edit("bell.py", "'dong dong'", "'DONG'"),
        Call("Read", path("sound.txt")),
    )
    second = (
        Call("Write", {**path("crlf.txt"), "content": "new\nlines\n"}),
        bash("rm horn.py && printf 'x' > new.txt"),
        Call("Read", path("bell.py")),
        edit("bell.py", "'not there'", "'x'"),
        edit("bell.py", "DONG", "ding"),
    )
    return first, second


STORIES = (Story("continue", CLIENT, _bell_and_horn),)
FILE_CHANGES = (FileChanges("continue", CLIENT, _file_changes, 0.5),)
