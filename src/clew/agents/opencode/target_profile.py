"""What OpenCode can hold of other agents' sessions, and how it imports them."""

from __future__ import annotations

from pathlib import Path

from clew.agents.database import Layout
from clew.agents.database_agent import locate_rows
from clew.agents.encoding import NO_RESULT, import_file
from clew.agents.opencode.encode import session_id
from clew.agents.opencode.layout import data_folder
from clew.agents.target_profile import Capacity, TargetProfile
from clew.agents.tools import Tool, todos_from, todos_into
from clew.host import Host

_PATH = {"path": "filePath"}
# The tool demands a priority for each entry.
_write_todos = todos_into(defaults=lambda _todo, _number: {"priority": "medium"})
TOOLS = (
    Tool("shell", "bash", {"cwd": "workdir"}),
    Tool("read", "read", _PATH),
    Tool("write", "write", _PATH),
    Tool("edit", "edit", {**_PATH, "old": "oldString", "new": "newString", "all": "replaceAll"}),
    Tool("glob", "glob"),
    Tool("grep", "grep", {"glob": "include"}),
    Tool("list", "list"),
    Tool("fetch", "webfetch"),
    Tool("search", "websearch"),
    Tool("todos", "todowrite", read=todos_from(), write=_write_todos),
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
        capacity=Capacity(
            images=True,
            documents=True,
            images_in_results=True,
            document_types=("application/pdf",),
            typed_links=True,
            thinking=True,
            failures=True,
            titles=True,
            subagents=True,
            subagents_by_call=True,
            foreign_lines=True,
        ),
        tools=TOOLS,
        id_keys=(),
        resume=lambda session: [name, "--session", str(session["id"])],
        no_result_text=NO_RESULT,
        new_id=session_id,
        child_id=session_id,
        main_path=main_path,
        can_find_by_id=is_in_database,
        import_command=import_command,
    )
