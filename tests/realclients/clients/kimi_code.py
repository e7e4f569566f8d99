"""Kimi Code."""

from __future__ import annotations

import re
from pathlib import Path

from tests.realclients.client import LATEST, MODEL_URL, SUBAGENT_TASK, Client, FileChanges, Part, Story
from tests.realclients.project import FILES_TO_CHANGE, HORN
from tests.realclients.script import Call, Say, Think, turn
from tests.realclients.wire_chat import MODEL, ChatCompletions

ENVIRONMENT_MODEL = "__kimi_env_model__"
"""How the client calls the model that the environment describes."""


def _arguments(prompt: str, session: str | None, home: Path) -> list[str]:
    resume = ["-c"] if session == LATEST else ["-r", session] if session else []
    # Without a terminal, the client asks for the model of a session that does not name one.
    return [*resume, *(["-m", ENVIRONMENT_MODEL] if resume else []), "-p", prompt]


def _read_result(text: str) -> str:
    """A result as it is recorded: the client joins the texts around an image without a line feed."""
    return re.sub(r'\A(<image path="[^"\n]*">)(</image>)(<system>[^\n]*</system>)\Z', r"\1\n\2\n\3", text)


def _session_id(path: Path) -> str | None:
    return path.parent.name if path.name == "state.json" else None


CLIENT = Client(
    name="kimi",
    agent="kimi-code",
    wire=ChatCompletions(
        ("<system-reminder>", "Attached media from tool result:"),
        image_result="(see attached media)",
        result_wrapper=r"\A(?:Wall time: [\d.]+ seconds\n)?(?:<system>ERROR: Tool execution failed\.</system>\n)?"
        r"|\A<system>Tool output is empty\.</system>\Z|\n<system>[^\n]*</system>\Z",
        read_result=_read_result,
    ),
    npm={"@moonshot-ai/kimi-code": "2.1.0", "node": "22.23.3"},
    binary="node_modules/.bin/kimi",
    arguments=_arguments,
    environment={
        "KIMI_MODEL_NAME": MODEL,
        "KIMI_MODEL_API_KEY": "lab",
        "KIMI_MODEL_BASE_URL": f"{MODEL_URL}/v1",
        "KIMI_MODEL_PROVIDER_TYPE": "openai",
        "KIMI_CODE_NO_AUTO_UPDATE": "1",
    },
    sessions=(".kimi-code/sessions/wd_*/*/state.json", ".kimi-code/sessions/wd_*/*/agents/*/wire.jsonl"),
    id_of=_session_id,
    caches=("cache", ".index-cache"),
)


def _bell_and_horn(project: Path) -> tuple[Part, ...]:
    bell, horn = str(project / "bell.py"), str(project / "horn.py")
    todos = [{"title": "Ring twice", "status": "done"}, {"title": "Paint the horn", "status": "pending"}]
    subagent = {"description": "Count lines", "prompt": f"{SUBAGENT_TASK} It is {bell}.", "subagent_type": "coder"}
    first = (
        turn(Think("The bell comes first."), Say("I read the bell."), Call("Read", {"path": bell})),
        turn(
            Call("Edit", {"path": bell, "old_string": "'dong'", "new_string": "'dong dong'"}),
            after="def ring",
        ),
        turn(Say("Now a horn."), Call("Write", {"path": horn, "content": HORN}), after="Replaced"),
        turn(
            Call("Bash", {"command": "python3 bell.py", "description": "Ring the bell"}),
            Call("Bash", {"command": "ls no-such-folder", "description": "Look for what is not there"}),
            Call("Read", {"path": str(project / "missing.py")}),
            after="Wrote",
        ),
        turn(Call("ReadMediaFile", {"path": str(project / "flag.png")})),
        turn(Call("TodoList", {"todos": todos})),
        turn(Call("Agent", subagent), after="Todo list updated"),
        turn(Say("The bell rings twice; it has 5 lines."), after="There are 5."),
    )
    count = (turn(Call("Bash", {"command": f"wc -l {bell}"})), turn(Say("There are 5."), after="5 "))
    second = (
        turn(Call("Edit", {"path": horn, "old_string": "'toot'", "new_string": "'TOOT'"}), after="louder"),
        turn(Say("It is louder."), after="Replaced"),
    )
    third = (turn(Think("Both are done."), Say("A bell and a horn: ring, and blow — “toot”."), after="What"),)
    return (
        Part("Make the bell ring twice.", first, count),
        Part("Make the horn louder.", second),
        Part("What have we made?", third),
    )


def _file_changes(project: Path) -> tuple[tuple[Call, ...], ...]:
    def path(name: str) -> dict[str, str]:
        return {"path": str(project / name)}

    def edit(name: str, old: str, new: str) -> Call:
        return Call("Edit", {**path(name), "old_string": old, "new_string": new})

    def bash(command: str) -> Call:
        return Call("Bash", {"command": command, "description": "A command"})

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
        Call("Read", path("new.txt")),
        edit("bell.py", "'not there'", "'x'"),
        edit("bell.py", "DONG", "ding"),
    )
    return first, second


STORIES = (Story("kimi", CLIENT, _bell_and_horn, shows_image=True, has_subagent_file=True),)
FILE_CHANGES = (FileChanges("kimi", CLIENT, _file_changes, 0.6),)
