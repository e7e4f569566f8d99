"""What Kimi Code can hold of other agents' sessions, and how it resumes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from clew.agents.kimi_code import locate
from clew.agents.kimi_code.encode import ID_KEYS, OWN_TODO_STATES
from clew.agents.kimi_code.events import TODO_STATES
from clew.agents.target_profile import Capacity, TargetProfile
from clew.agents.tools import EDIT_ARGUMENTS, Tool, todos_from, todos_into

_read_todos = todos_from({"title": "content"}, TODO_STATES)
_write_todos = todos_into({"content": "title"}, OWN_TODO_STATES)
TOOLS = (
    Tool("shell", "Bash"),
    Tool("read", "Read", {"offset": "line_offset", "limit": "n_lines"}),
    Tool("write", "Write"),
    Tool("edit", "Edit", EDIT_ARGUMENTS),
    Tool("glob", "Glob"),
    Tool("grep", "Grep"),
    Tool("fetch", "FetchURL"),
    Tool("search", "WebSearch"),
    Tool("todos", "TodoList", read=_read_todos, write=_write_todos),
)


def _resumes_file(path: Path, parts: Sequence[str]) -> bool:
    """True for a whole session, and for the journal of a sub-agent in one."""
    return bool(parts) or (path.parent.parent.name == locate.AGENTS and not locate.is_main(path))


TARGET_PROFILE = TargetProfile(
    capacity=Capacity(
        images=True,
        images_in_results=True,
        thinking=True,
        failures=True,
        titles=True,
        subagents=True,
        subagents_by_call=True,
        todos=("user", "assistant"),
    ),
    tools=TOOLS,
    id_keys=ID_KEYS,
    resume=lambda session: ["kimi", "-r", str(session["id"])],
    resumes_file=_resumes_file,
    injected_prefixes=("<system-reminder>",),
    nests_subagents=True,
    child_id=lambda identity: f"agent-{identity.replace('-', '')[:16]}",
    can_find_by_id=lambda path, identity: path.name == locate.STATE and path.parent.name == identity,
)
