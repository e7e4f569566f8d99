"""What Codex can hold of other agents' sessions, and how it is told to go on with one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from clew.agents.codex import locate
from clew.agents.codex.beside import aside, namespace, strange
from clew.agents.codex.compose import output_of
from clew.agents.codex.exit_status import exit_status
from clew.agents.codex.gather import gathered
from clew.agents.codex.injected_context import SPOKEN
from clew.agents.codex.names import INDEX
from clew.agents.receiving import Capacity, Header, Receiver
from clew.agents.tools import SHELL, TODOS, Tool, command_text, todos_from, todos_into
from clew.io.codec import dumps
from clew.io.compress import open_source
from clew.model.json import JSON

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
        write=todos_into({"content": "step"}),
    ),
)


def _listed(header: Header) -> Iterator[tuple[str, bytes]]:
    """The thread's name, which Codex keeps in a list of its own."""
    title = header.session.get("title")
    if title:
        line = {"id": header.session["id"], "thread_name": title, "updated_at": header.session.get("ended_at")}
        yield f".codex/{INDEX}", dumps(line) + b"\n"


def _goes_on(path: Path, _parts: Sequence[str]) -> bool:
    """True for a rollout that begins with its head and stands for its thread.

    Codex has forgotten the older forms, and finds what replaces another rollout only beside that one.
    """
    named = locate.parse_name(path)
    if named is not None and named.rollout is not None:
        return False
    with open_source(path) as stream:
        return b'"session_meta"' in stream.read(_HEAD)


def _beyond(session: Mapping[str, JSON]) -> Sequence[str]:
    """The history before a fork or a revert, where the rollout names the thread that holds it."""
    base = _base(session)
    thread = base.get("thread_id") if isinstance(base, dict) else None
    return [] if base is None else [f"the history before it, in the thread {thread}"]


def _absent(session: Mapping[str, JSON], home: Path) -> Sequence[str]:
    base = _base(session)
    thread = base.get("thread_id") if isinstance(base, dict) else None
    near = home / ".codex" / locate.SESSIONS / "any"
    is_there = isinstance(thread, str) and locate.find_rollout(near, thread) is not None
    return () if is_there else _beyond(session)


def _base(session: Mapping[str, JSON]) -> JSON:
    own = (session.get("extensions") or {}).get(locate.AGENT) or {}
    return own.get("history_base")


RECEIVER = Receiver(
    Capacity(
        images=True,
        pictured_results=True,
        image_types=("image/png", "image/jpeg", "image/gif", "image/webp"),
        thinking=True,
        titles=True,
        subagents=True,
        foreign_lines=True,
    ),
    TOOLS,
    ("id", "session_id", "thread_id", "threadId", "parent_thread_id", "forked_from_id"),
    lambda session: ["codex", "resume", str(session["id"])],
    _goes_on,
    spoken=SPOKEN,
    tells_failure=lambda output: exit_status(output_of(output)).is_error is True,
    strange=strange,
    aside=aside,
    namespace=namespace,
    unsaid={"annotations": "the annotations of a text"},
    gathered=gathered,
    beyond=_beyond,
    absent=_absent,
    listed=_listed,
    # One that was put away is not looked for.
    finds=lambda path, _identity: path.suffix != ".gz" and locate.ARCHIVED not in path.parts,
)
