"""Claude Code, from the package that holds version 2.1.325."""

from __future__ import annotations

from pathlib import Path

from tests.realclients.client import LATEST, MODEL_URL, SUBAGENT_TASK, Client, FileChanges, Part, Story
from tests.realclients.project import FILES_TO_CHANGE, HORN
from tests.realclients.script import Call, Say, Think, turn
from tests.realclients.wire_anthropic import Anthropic


def _arguments(prompt: str, session: str | None, home: Path) -> list[str]:
    resume = ["--continue"] if session == LATEST else ["--resume", session] if session else []
    return [*resume, "-p", prompt, "--dangerously-skip-permissions"]


def _session_id(path: Path) -> str | None:
    return None if path.stem.startswith("agent-") else path.stem


CLIENT = Client(
    name="claude",
    agent="claude-code",
    wire=Anthropic(),
    pip={"claude-agent-sdk": "0.2.182"},
    binary="python/lib/python3*/site-packages/claude_agent_sdk/_bundled/claude",
    arguments=_arguments,
    environment={
        "ANTHROPIC_BASE_URL": MODEL_URL,
        "ANTHROPIC_API_KEY": "sk-lab",
        "IS_SANDBOX": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
    },
    sessions=(".claude/projects/*/*.jsonl", ".claude/projects/*/*/subagents/*.jsonl"),
    id_of=_session_id,
)
CHECKPOINTS = {"CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING": "1"}


def _bell_and_horn(project: Path) -> tuple[Part, ...]:
    bell, horn = str(project / "bell.py"), str(project / "horn.py")
    twice = {"file_path": bell, "old_string": "'dong'", "new_string": "'dong dong'"}
    task = {"subject": "Ring twice", "description": "The bell rings twice.", "activeForm": "Ringing twice"}
    subagent = {
        "description": "Count lines",
        "prompt": f"{SUBAGENT_TASK} It is {bell}.",
        "subagent_type": "general-purpose",
    }
    first = (
        turn(Think("The bell comes first."), Say("I read the bell."), Call("Read", {"file_path": bell})),
        turn(Call("Edit", twice), after="def ring"),
        turn(Say("Now a horn."), Call("Write", {"file_path": horn, "content": HORN}), after="updated"),
        turn(
            Call("Bash", {"command": "python3 bell.py", "description": "Ring the bell"}),
            Call("Bash", {"command": "ls no-such-folder", "description": "Look for what is not there"}),
            Call("Read", {"file_path": str(project / "missing.py")}),
            after="created",
        ),
        turn(Call("Read", {"file_path": str(project / "flag.png")}), after="does not exist"),
        turn(Call("ToolSearch", {"query": "select:TaskCreate,TaskUpdate"})),
        turn(Call("TaskCreate", task), Call("TaskCreate", {**task, "subject": "Paint the horn"})),
        turn(Call("TaskUpdate", {"taskId": "1", "status": "completed"}), after="Paint the horn"),
        turn(Call("Agent", {**subagent, "run_in_background": False})),
        turn(Say("The bell rings twice; it has 5 lines."), after="There are 5."),
    )
    count = (turn(Call("Bash", {"command": f"wc -l {bell}"})), turn(Say("There are 5."), after="5 "))
    louder = {"file_path": horn, "old_string": "'toot'", "new_string": "'TOOT'"}
    second = (turn(Call("Edit", louder), after="louder"), turn(Say("It is louder."), after="updated"))
    third = (turn(Think("Both are done."), Say("A bell and a horn: ring, and blow — “toot”."), after="What"),)
    return (
        Part("Make the bell ring twice.", first, count),
        Part("Make the horn louder.", second),
        Part("What have we made?", third),
    )


def _checkpoints(project: Path) -> tuple[Part, ...]:
    bell, horn = str(project / "bell.py"), str(project / "horn.py")
    return (
        Part(
            "Make the bell ring twice.",
            (
                turn(Call("Read", {"file_path": bell})),
                turn(Call("Edit", {"file_path": bell, "old_string": "'dong'", "new_string": "'dong dong'"})),
                turn(Call("Write", {"file_path": horn, "content": HORN})),
                turn(Say("Done.")),
            ),
        ),
        Part(
            "And louder.",
            (
                turn(Call("Read", {"file_path": bell}), Call("Read", {"file_path": horn})),
                turn(Call("Edit", {"file_path": bell, "old_string": "'dong dong'", "new_string": "'DONG'"})),
                turn(Call("Edit", {"file_path": horn, "old_string": "'toot'", "new_string": "'TOOT'"})),
                turn(Say("Louder.")),
            ),
        ),
        Part("Thanks.", (turn(Say("You are welcome.")),)),
    )


def _file_changes(project: Path) -> tuple[tuple[Call, ...], ...]:
    def path(name: str) -> dict[str, str]:
        return {"file_path": str(project / name)}

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


STORIES = (
    Story(
        "claude",
        CLIENT,
        _bell_and_horn,
        {"CLAUDE_CODE_ENABLE_TODO_TOOLS": "1"},
        shows_image=True,
        has_subagent_file=True,
    ),
    Story("claude-checkpoints", CLIENT, _checkpoints, CHECKPOINTS),
)
FILE_CHANGES = (
    FileChanges("claude", CLIENT, _file_changes, 0.05),
    FileChanges("claude-checkpoints", CLIENT, _file_changes, 0.5, CHECKPOINTS),
)
