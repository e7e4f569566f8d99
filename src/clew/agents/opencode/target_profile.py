"""What OpenCode can hold of other agents' sessions, and how it imports them."""

from __future__ import annotations

from pathlib import Path

from clew.agents.database import Layout
from clew.agents.database_agent import locate_rows
from clew.agents.opencode.encode import UNANSWERED, import_file, session_id
from clew.agents.opencode.layout import data_folder
from clew.agents.target_profile import Capacity, TargetProfile
from clew.agents.tools import (
    EDIT,
    FETCH,
    GLOB,
    GREP,
    LIST,
    READ,
    SEARCH,
    SHELL,
    TODOS,
    WRITE,
    Arguments,
    Tool,
    todos_from,
)
from clew.host import Host

_PATH = {"path": "filePath"}


def _with_priorities(arguments: Arguments) -> Arguments:
    """A todo list whose entries all have a priority, which the client demands."""
    entries = arguments.get("todos")
    if type(entries) is not list or not all(type(entry) is dict for entry in entries):
        return arguments
    return {**arguments, "todos": [{**entry, "priority": entry.get("priority", "medium")} for entry in entries]}


TOOLS = (
    Tool(SHELL, "bash", {"cwd": "workdir"}),
    Tool(READ, "read", _PATH),
    Tool(WRITE, "write", _PATH),
    Tool(EDIT, "edit", {**_PATH, "old": "oldString", "new": "newString", "all": "replaceAll"}),
    Tool(GLOB, "glob"),
    Tool(GREP, "grep", {"glob": "include"}),
    Tool(LIST, "list"),
    Tool(FETCH, "webfetch"),
    Tool(SEARCH, "websearch"),
    Tool(TODOS, "todowrite", read=todos_from({}), write=_with_priorities),
)


def make_profile(name: str, layout: Layout) -> TargetProfile:
    """The profile of a program that is called by this name."""

    def main_path(place: str, host: Host) -> Path:
        folder = f".local/share/{name}/"
        return data_folder(host, name) / place.removeprefix(folder) if place.startswith(folder) else host.home / place

    def is_in_database(path: Path, _session: str) -> bool:
        return bool(locate_rows(name, path, layout).change_token)

    def import_command(main_file: Path) -> list[str]:
        return [name, "import", import_file(str(main_file))]

    return TargetProfile(
        Capacity(
            images=True,
            documents=True,
            images_in_results=True,
            image_types=("image/png", "image/jpeg", "image/gif", "image/webp"),
            document_types=("application/pdf",),
            typed_links=True,
            thinking=True,
            failures=True,
            titles=True,
            subagents=True,
            foreign_lines=True,
        ),
        TOOLS,
        (),
        lambda session: [name, "--session", str(session["id"])],
        no_result_text=UNANSWERED,
        new_id=session_id,
        child_id=session_id,
        main_path=main_path,
        can_find_by_id=is_in_database,
        import_command=import_command,
    )
