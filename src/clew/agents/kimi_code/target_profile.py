"""What Kimi Code can hold of other agents' sessions, and how it resumes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from clew.agents.kimi_code import locate
from clew.agents.kimi_code.encode import ID_KEYS, OWN_TODO_STATES
from clew.agents.kimi_code.events import TODO_STATES
from clew.agents.target_profile import Capacity, TargetProfile
from clew.agents.tools import (
    EDIT,
    FETCH,
    GLOB,
    GREP,
    READ,
    SEARCH,
    SHELL,
    TODOS,
    WRITE,
    Arguments,
    Tool,
    todos_from,
    todos_into,
)

_from_own_names = todos_from({"title": "content"})
_into_own_names = todos_into({"content": "title"})


def _read_todos(arguments: Arguments) -> Arguments:
    return _with_states(_from_own_names(arguments), TODO_STATES)


def _write_todos(arguments: Arguments) -> Arguments:
    return _into_own_names(_with_states(arguments, OWN_TODO_STATES))


def _with_states(arguments: Arguments, states: dict[str, str]) -> Arguments:
    """The todos with other names for their states."""
    todos = arguments.get("todos")
    if type(todos) is not list or not all(type(todo) is dict for todo in todos):
        return arguments
    renamed = [{**todo, "status": states.get(str(todo.get("status")), todo.get("status"))} for todo in todos]
    return {**arguments, "todos": renamed}


TOOLS = (
    Tool(SHELL, "Bash"),
    Tool(READ, "Read", {"offset": "line_offset", "limit": "n_lines"}),
    Tool(WRITE, "Write"),
    Tool(EDIT, "Edit", {"old": "old_string", "new": "new_string", "all": "replace_all"}),
    Tool(GLOB, "Glob"),
    Tool(GREP, "Grep"),
    Tool(FETCH, "FetchURL"),
    Tool(SEARCH, "WebSearch"),
    Tool(TODOS, "TodoList", read=_read_todos, write=_write_todos),
)


def _resumes_file(path: Path, parts: Sequence[str]) -> bool:
    """True for a whole session, and for the journal of a sub-agent in one."""
    return bool(parts) or (path.parent.parent.name == locate.AGENTS and not locate.is_main(path))


TARGET_PROFILE = TargetProfile(
    Capacity(
        images=True,
        images_in_results=True,
        image_types=("image/png", "image/jpeg", "image/gif", "image/webp"),
        thinking=True,
        failures=True,
        titles=True,
        subagents=True,
        todos=("user", "assistant"),
    ),
    TOOLS,
    ID_KEYS,
    lambda session: ["kimi", "-r", str(session["id"])],
    _resumes_file,
    injected_prefixes=("<system-reminder>",),
    nests_subagents=True,
    child_id=lambda identity: f"agent-{identity.replace('-', '')[:16]}",
    can_find_by_id=lambda path, identity: path.name == locate.STATE and path.parent.name == identity,
)
