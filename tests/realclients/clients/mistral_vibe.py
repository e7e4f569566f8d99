"""Mistral Vibe."""

from __future__ import annotations

from pathlib import Path

from tests.realclients.client import LATEST, MODEL_URL, Client, Part, Story
from tests.realclients.project import HORN
from tests.realclients.script import Call, Say, Think, turn
from tests.realclients.wire_chat import MODEL, ChatCompletions

SETTINGS = f"""\
active_model = "lab"
enable_telemetry = false
enable_update_checks = false

[[providers]]
name = "lab"
api_base = "{MODEL_URL}/v1"
api_key_env_var = "LAB_KEY"
backend = "generic"

[[models]]
name = "{MODEL}"
provider = "lab"
alias = "lab"
"""


def _arguments(prompt: str, session: str | None, home: Path) -> list[str]:
    resume = ["--continue"] if session == LATEST else ["--resume", session] if session else []
    return ["--trust", "--auto-approve", *resume, "-p", prompt]


CLIENT = Client(
    name="mistral-vibe",
    agent="mistral-vibe",
    wire=ChatCompletions(),
    pip={"mistral-vibe": "3.0.3"},
    minimum_python=(3, 12),
    binary="python/bin/vibe",
    arguments=_arguments,
    environment={"LAB_KEY": "lab", "MISTRAL_API_KEY": "lab"},
    settings={".vibe/config.toml": SETTINGS},
    sessions=(".vibe/logs/session/unified/*/meta.json",),
    id_of=lambda path: path.parent.name,
)


def _bell_and_horn(project: Path) -> tuple[Part, ...]:
    bell, horn = str(project / "bell.py"), str(project / "horn.py")
    todos = [{"id": "1", "content": "Ring twice", "status": "completed"}, {"id": "2", "content": "Paint the horn"}]
    twice = {"file_path": bell, "old_string": "'dong'", "new_string": "'dong dong'"}
    louder = {"file_path": horn, "old_string": "'toot'", "new_string": "'TOOT'"}
    first = (
        turn(Think("The bell comes first."), Say("I read the bell."), Call("read_file", {"path": bell})),
        turn(Call("edit", twice), after="def ring"),
        turn(Say("Now a horn."), Call("write_file", {"path": horn, "content": HORN})),
        turn(Call("bash", {"command": "python3 bell.py"}), Call("bash", {"command": "ls no-such-folder"})),
        turn(Call("todo", {"action": "write", "todos": todos})),
        turn(Say("The bell rings twice.")),
    )
    second = (turn(Call("read_file", {"path": horn})), turn(Call("edit", louder)), turn(Say("It is louder.")))
    third = (turn(Think("Both are done."), Say("A bell and a horn: ring, and blow — “toot”."), after="What"),)
    return (
        Part("Make the bell ring twice.", first),
        Part("Make the horn louder.", second),
        Part("What have we made?", third),
    )


STORIES = (Story("mistral-vibe", CLIENT, _bell_and_horn),)
