"""Codex CLI."""

from __future__ import annotations

from pathlib import Path

from tests.realclients.client import LATEST, MODEL_URL, SUBAGENT_TASK, Client, FileChanges, Part, Story, first_record
from tests.realclients.project import FILES_TO_CHANGE, HORN
from tests.realclients.script import Call, Say, Think, turn
from tests.realclients.wire_openai import OpenAI

SETTINGS = f"""\
model = "gpt-5.5"
model_provider = "lab"
approval_policy = "never"
sandbox_mode = "danger-full-access"

[model_providers.lab]
name = "lab"
base_url = "{MODEL_URL}/v1"
env_key = "LAB_KEY"
wire_api = "responses"

[tools.update_plan]
enabled = true

# Both ask for addresses on start and wait seconds for an answer.
[analytics]
enabled = false
[features]
plugins = false
"""


def _arguments(prompt: str, session: str | None, home: Path) -> list[str]:
    resume = ["resume", "--last"] if session == LATEST else ["resume", session] if session else []
    return ["exec", "--skip-git-repo-check", *resume, prompt]


def _session_id(path: Path) -> str | None:
    meta = first_record(path)["payload"]
    return None if meta.get("parent_thread_id") else str(meta["id"])


CLIENT = Client(
    name="codex",
    agent="codex",
    wire=OpenAI(),
    npm={"@openai/codex": "0.166.0"},
    binary="node_modules/.bin/codex",
    arguments=_arguments,
    environment={"LAB_KEY": "lab"},
    settings={".codex/config.toml": SETTINGS},
    sessions=(".codex/sessions/*/*/*/rollout-*.jsonl",),
    id_of=_session_id,
    caches=("*.sqlite*",),
)


def _patch(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


RING_TWICE = _patch("*** Update File: bell.py", "@@ def ring():", "-    return 'dong'", "+    return 'dong dong'")
ADD_HORN = _patch("*** Add File: horn.py", *(f"+{line}" for line in HORN.splitlines()))
LOUDER = _patch("*** Update File: horn.py", "@@ def blow():", "-    return 'toot'", "+    return 'TOOT'")


def _bell_and_horn(project: Path) -> tuple[Part, ...]:
    plan = [{"step": "Ring twice", "status": "completed"}, {"step": "Paint the horn", "status": "pending"}]
    first = (
        turn(Think("The bell comes first."), Say("I read the bell."), Call("exec_command", {"cmd": "cat bell.py"})),
        turn(Call("apply_patch", RING_TWICE), after="def ring"),
        turn(Say("Now a horn."), Call("apply_patch", ADD_HORN), after="Success"),
        turn(
            Call("exec_command", {"cmd": "python3 bell.py"}),
            Call("exec_command", {"cmd": "ls no-such-folder"}),
            after="Success",
        ),
        turn(Call("view_image", {"path": str(project / "flag.png")}), after="code 2"),
        turn(Call("apply_patch", RING_TWICE)),
        turn(Call("update_plan", {"explanation": "Two things", "plan": plan}), after="Failed"),
        turn(Say("The bell rings twice."), after="Plan updated"),
    )
    second = (turn(Call("apply_patch", LOUDER), after="louder"), turn(Say("It is louder."), after="Success"))
    third = (turn(Think("Both are done."), Say("A bell and a horn: ring, and blow — “toot”."), after="What"),)
    return (
        Part("Make the bell ring twice.", first),
        Part("Make the horn louder.", second),
        Part("What have we made?", third),
    )


def _in_code(command: str) -> str:
    return f"text((await tools.exec_command({{cmd: {command!r}}})).output)"


def _code_mode(project: Path) -> tuple[Part, ...]:
    """The newest models write JavaScript that calls the tools."""
    subagent = {"task_name": "count", "message": f"{SUBAGENT_TASK} It is bell.py."}
    first = (
        turn(Think("The bell comes first."), Call("exec", _in_code("cat bell.py"))),
        turn(Call("exec", f"text(await tools.apply_patch({RING_TWICE!r}))"), after="def ring"),
        turn(Call("exec", _in_code("ls no-such-folder"))),
        turn(Call("exec", "throw new Error('no such thing')"), after="No such file"),
        turn(Call("spawn_agent", subagent, "collaboration"), after="no such thing"),
        turn(Call("wait_agent", {"timeout_ms": 20000}, "collaboration")),
        turn(Say("The bell rings twice; it has 5 lines.")),
    )
    count = (
        turn(Call("exec", _in_code("wc -l bell.py"))),
        turn(Say("There are 5."), after="5 "),
    )
    third = (turn(Say("A bell."), after="What"),)
    return (Part("Make the bell ring twice.", first, count), Part("What have we made?", third))


def _file_changes(project: Path) -> tuple[tuple[Call, ...], ...]:
    def shell(command: str) -> Call:
        return Call("exec_command", {"cmd": command})

    def change(name: str, old: str, *new: str) -> Call:
        lines = (f"*** Update File: {name}", "@@", f"-{old}", *(f"+{line}" for line in new))
        return Call("apply_patch", _patch(*lines))

    first = (
        *(shell(f"cat {name}") for name in FILES_TO_CHANGE),
        change("bell.py", "    return 'dong'", "    return 'dong dong'"),
        Call("apply_patch", _patch("*** Add File: sub/horn.py", "+def blow():", "+    return 'toot'")),
        shell("cat sub/horn.py | head -3"),
        change("sub/horn.py", "    return 'toot'", "    return 'TOOT'"),
        change("crlf.txt", "two", "TWO"),
        change("mark.txt", "two", "TWO", "THREE"),
        change("open.txt", "two", "2"),
        change("mixed.txt", "two", "TWO"),
        Call(
            "apply_patch",
            _patch("*** Update File: sub/horn.py", "*** Move to: horn.py", "@@", "-def blow():", "+def honk():"),
        ),
        shell("python3 bell.py > sound.txt"),
        change("bell.py", "    return 'dong dong'", "    return 'DONG'"),
        shell("cat bell.py"),
        shell("cat sound.txt"),
    )
    second = (
        Call("apply_patch", _patch("*** Delete File: horn.py")),
        change("bell.py", "    return 'not there'", "    x"),
        shell("apply_patch <<'EOF'\n" + _patch("*** Add File: heredoc.txt", "+here") + "\nEOF"),
        change("bell.py", "    return 'DONG'", "    return 'ding'"),
    )
    return first, second


STORIES = (
    Story("codex", CLIENT, _bell_and_horn, shows_image=True),
    Story(
        "codex-code",
        CLIENT,
        _code_mode,
        options=("-c", 'model="gpt-6.1-terra"'),
        writes_horn=False,
        has_subagent_file=True,
    ),
)
FILE_CHANGES = (FileChanges("codex", CLIENT, _file_changes, 0.5),)
