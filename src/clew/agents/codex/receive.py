"""What Codex can hold of other agents' sessions, and how it is told to go on with one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from clew.agents.codex.names import INDEX
from clew.agents.receiving import Capacity, Header, Read, Receiver
from clew.agents.tools import SHELL, TODOS, Tool, command_text, todos_from, todos_into
from clew.io.codec import dumps
from clew.io.compress import open_source

_HEAD = 200


_CWD = {"cwd": "workdir"}
TOOLS = (
    Tool(SHELL, "exec_command", {"command": "cmd", **_CWD}),
    Tool(SHELL, "shell_command", _CWD),
    Tool(SHELL, "shell", _CWD, read=command_text),
    Tool(SHELL, "local_shell", {"cwd": "working_directory"}, read=command_text),
    Tool(
        TODOS,
        "update_plan",
        {"todos": "plan"},
        read=todos_from({"step": "content"}),
        write=todos_into({"content": "step", "status": "status"}),
    ),
)


def _register(header: Header, read: Read) -> Iterator[tuple[str, bytes]]:
    """The thread's name, which Codex keeps in a list of its own."""
    title = header.session.get("title")
    if not title:
        return
    name = f".codex/{INDEX}"
    line = {"id": header.session["id"], "thread_name": title, "updated_at": header.session.get("ended_at")}
    before = read(name) or b""
    yield name, before + (b"\n" if before and not before.endswith(b"\n") else b"") + dumps(line) + b"\n"


def _goes_on(path: Path, _parts: Sequence[str]) -> bool:
    """True for a rollout that begins with its head: Codex has forgotten the older forms."""
    with open_source(path) as stream:
        return b'"session_meta"' in stream.read(_HEAD)


RECEIVER = Receiver(
    Capacity(images=True, pictured_results=True, thinking=True, titles=True, subagents=True, foreign_lines=True),
    TOOLS,
    ("id", "session_id", "thread_id", "threadId", "parent_thread_id", "forked_from_id"),
    lambda session: ["codex", "resume", str(session["id"])],
    _goes_on,
    register=_register,
)
