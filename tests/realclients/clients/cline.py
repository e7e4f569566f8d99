"""Cline, by its session library: the program needs a terminal to resume, and has no package for every processor.

The library is what the program records and resumes sessions with. `cline_session.mjs` calls it in the same way.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.realclients.client import MODEL_URL, SUBAGENT_TASK, Client, FileChanges, Part, Story
from tests.realclients.project import FILES_TO_CHANGE, HORN
from tests.realclients.script import Call, Say, Think, turn
from tests.realclients.wire_chat import MODEL, ChatCompletions

IMAGE_RESULT = '[{"type":"text","text":"(see following user message for image)"}]'
PROGRAM = Path(__file__).parents[1] / "cline_session.mjs"


def _arguments(prompt: str, session: str | None, home: Path) -> list[str]:
    return [str(PROGRAM), f"{MODEL_URL}/v1", MODEL, prompt, *([session] if session else [])]


def _session_id(path: Path) -> str | None:
    name = path.name.removesuffix(".messages.json")
    return None if name.startswith("agent_") else name


def _result_text(content: str) -> str:
    """The results in `[{query, result, success}]`, or in one such object."""
    if not content.startswith(('[{"query":', '{"query":')):
        return content
    found = json.loads(content)
    entries = found if isinstance(found, list) else [found]
    return "\n".join(entry["result"] or entry.get("error", "") for entry in entries)


CLIENT = Client(
    name="cline",
    agent="cline",
    wire=ChatCompletions(image_result=IMAGE_RESULT, read_result=_result_text),
    npm={"@cline/core": "0.0.86", "node": "22.23.3"},
    program_version="3.0.65",
    binary="node_modules/.bin/node",
    arguments=_arguments,
    environment={"DO_NOT_TRACK": "1"},
    sessions=(".cline/data/sessions/*/*.messages.json",),
    id_of=_session_id,
    caches=("*.db*",),
    # Its list of sessions is a database, in which a session that clew wrote is not; it finds that one by its id.
    resumes_latest=False,
)


def _bell_and_horn(project: Path) -> tuple[Part, ...]:
    bell, horn = str(project / "bell.py"), str(project / "horn.py")
    task = {"systemPrompt": "You count.", "task": f"{SUBAGENT_TASK} It is {bell}."}
    first = (
        turn(Think("The bell comes first."), Say("I read it."), Call("read_files", {"files": [{"path": bell}]})),
        turn(Call("editor", {"path": bell, "old_text": "'dong'", "new_text": "'dong dong'"}), after="def ring"),
        turn(Say("Now a horn."), Call("editor", {"path": horn, "new_text": HORN}), after="Edited"),
        turn(
            Call("run_commands", {"commands": ["python3 bell.py"]}),
            Call("run_commands", {"commands": ["ls no-such-folder"]}),
            Call("read_files", {"files": [{"path": str(project / "missing.py")}]}),
            after="created",
        ),
        turn(Call("spawn_agent", task)),
        turn(Say("The bell rings twice; it has 5 lines."), after="There are 5."),
    )
    count = (turn(Call("run_commands", {"commands": [f"wc -l {bell}"]})), turn(Say("There are 5."), after="5 "))
    louder = {"path": horn, "old_text": "'toot'", "new_text": "'TOOT'"}
    second = (turn(Call("editor", louder), after="louder"), turn(Say("It is louder."), after="Edited"))
    third = (turn(Think("Both are done."), Say("A bell and a horn: ring, and blow — “toot”."), after="What"),)
    return (
        Part("Make the bell ring twice.", first, count),
        Part("Make the horn louder.", second),
        Part("What have we made?", third),
    )


def _file_changes(project: Path) -> tuple[tuple[Call, ...], ...]:
    def edit(name: str, new: str, **more: object) -> Call:
        return Call("editor", {"path": str(project / name), "new_text": new, **more})

    def run(command: str) -> Call:
        return Call("run_commands", {"commands": [command]})

    first = (
        *(Call("read_files", {"files": [{"path": str(project / name)}]}) for name in FILES_TO_CHANGE),
        edit("horn.py", HORN),
        edit("horn.py", "'TOOT'", old_text="'toot'"),
        edit("horn.py", "# A horn.", insert_line=1),
        edit("bell.py", "'dong dong'", old_text="'dong'"),
        edit("crlf.txt", "TWO", old_text="two"),
        edit("mark.txt", "TWO\nTHREE\n", old_text="two\n"),
        edit("mixed.txt", "TWO", old_text="two"),
        run("cat horn.py"),
        edit("new.txt", "one\r\ntwo"),
        edit("new.txt", "three", insert_line=2),
        run("python3 bell.py > sound.txt"),
    )
    second = (
        edit("last.txt", "new\nlines\n"),
        edit("last.txt", "end", insert_line=4),
        run("rm horn.py"),
        edit("bell.py", "x", old_text="not there"),
    )
    return first, second


STORIES = (Story("cline", CLIENT, _bell_and_horn, has_subagent_file=True),)
FILE_CHANGES = (FileChanges("cline", CLIENT, _file_changes, 0.1),)
