"""GitHub Copilot CLI. Its licence is not open: it is installed for tests and never shipped."""

from __future__ import annotations

from pathlib import Path

from tests.realclients.client import LATEST, MODEL_URL, SUBAGENT_TASK, Client, FileChanges, Part, Story
from tests.realclients.project import FILES_TO_CHANGE, HORN
from tests.realclients.script import Call, Say, Think, turn
from tests.realclients.wire_chat import MODEL, ChatCompletions

WRAPPER = r"^<current_datetime>[^<]*</current_datetime>\n\n|\n\n<system_reminder>.*</system_reminder>$"


def _arguments(prompt: str, session: str | None, home: Path) -> list[str]:
    resume = ["--continue"] if session == LATEST else [f"--resume={session}"] if session else []
    return [*resume, "-p", prompt, "--allow-all-tools", "--allow-all-paths"]


def _session_id(path: Path) -> str | None:
    return path.parent.name


CLIENT = Client(
    name="copilot-cli",
    agent="copilot-cli",
    wire=ChatCompletions(wrapper=WRAPPER),
    npm={"@github/copilot": "1.0.102"},
    binary="node_modules/.bin/copilot",
    arguments=_arguments,
    environment={
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_BASE_URL": f"{MODEL_URL}/v1",
        "COPILOT_PROVIDER_API_KEY": "lab",
        "COPILOT_MODEL": MODEL,
        "COPILOT_AUTO_UPDATE": "false",
    },
    sessions=(".copilot/session-state/*/events.jsonl",),
    id_of=_session_id,
    # In this mode the client takes every model for one that sees no images.
    sends_images=False,
    caches=("session-store.db*", "*.lock"),
)


def _bash(command: str) -> Call:
    return Call("bash", {"command": command, "description": "A command", "mode": "sync"})


def _bell_and_horn(project: Path) -> tuple[Part, ...]:
    bell, horn = str(project / "bell.py"), str(project / "horn.py")
    todos = (
        "INSERT INTO todos (id, title, status) VALUES ('ring', 'Ring twice', 'pending'), ('paint', 'Paint', 'pending')"
    )
    subagent = {"agent_type": "explore", "name": "count", "description": "Count lines"}
    first = (
        turn(Think("The bell comes first."), Say("I read the bell."), Call("view", {"path": bell})),
        turn(Call("edit", {"path": bell, "old_str": "'dong'", "new_str": "'dong dong'"}), after="def ring"),
        turn(Say("Now a horn."), Call("create", {"path": horn, "file_text": HORN}), after="updated"),
        turn(
            _bash("python3 bell.py"),
            _bash("ls no-such-folder"),
            Call("view", {"path": str(project / "missing.py")}),
            after="Created",
        ),
        turn(Call("sql", {"description": "Insert todos", "query": todos})),
        turn(Call("sql", {"description": "Done", "query": "UPDATE todos SET status = 'done' WHERE id = 'ring'"})),
        turn(Call("task", {**subagent, "prompt": f"{SUBAGENT_TASK} It is {bell}."})),
        turn(Say("The bell rings twice; it has 5 lines."), after="There are 5."),
    )
    count = (turn(_bash(f"wc -l {bell}")), turn(Say("There are 5."), after="5 "))
    louder = {"path": horn, "old_str": "'toot'", "new_str": "'TOOT'"}
    second = (turn(Call("edit", louder), after="louder"), turn(Say("It is louder."), after="updated"))
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
        return Call("edit", {**path(name), "old_str": old, "new_str": new})

    first = (
        *(Call("view", path(name)) for name in FILES_TO_CHANGE),
        edit("bell.py", "'dong'", "'dong dong'"),
        Call("create", {**path("horn.py"), "file_text": "def blow():\n    return 'toot'\n"}),
        _bash("cat horn.py | head -3"),
        edit("horn.py", "'toot'", "'TOOT'"),
        edit("crlf.txt", "two", "TWO"),
        edit("mark.txt", "two\n", "TWO\nTHREE\n"),
        edit("open.txt", "two", "2"),
        edit("mixed.txt", "two", "TWO"),
        _bash("python3 bell.py > sound.txt"),
        edit("bell.py", "'dong dong'", "'DONG'"),
        Call("view", path("sound.txt")),
    )
    second = (
        Call("create", {**path("crlf.txt"), "file_text": "new\nlines\n"}),
        _bash("rm horn.py && printf 'x' > new.txt"),
        Call("view", path("new.txt")),
        edit("bell.py", "'not there'", "'x'"),
        edit("bell.py", "DONG", "ding"),
    )
    return first, second


STORIES = (Story("copilot-cli", CLIENT, _bell_and_horn),)
FILE_CHANGES = (FileChanges("copilot-cli", CLIENT, _file_changes, 0.6),)
