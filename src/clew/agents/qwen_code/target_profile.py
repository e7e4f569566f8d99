"""What Qwen Code can hold of other agents' sessions, and how it is made to find them."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from clew.agents.gemini_content import DOCUMENT_TYPES, is_command
from clew.agents.qwen_code.locate import ARCHIVE, CHATS
from clew.agents.target_profile import Capacity, TargetProfile
from clew.agents.tools import EDIT_ARGUMENTS, Tool, todos_from, todos_into
from clew.host import Host

_INJECTED = ("<system-reminder>", "<qwen:user-prompt-submit-context>")


_PATH = {"path": "file_path"}
# The tool demands an id for each entry.
_write_todos = todos_into(defaults=lambda _todo, number: {"id": str(number)})
TOOLS = (
    Tool("shell", "run_shell_command", {"cwd": "directory"}),
    Tool("read", "read_file", _PATH),
    Tool("write", "write_file", _PATH),
    Tool("edit", "edit", {**_PATH, **EDIT_ARGUMENTS}),
    Tool("glob", "glob"),
    Tool("grep", "grep_search"),
    Tool("list", "list_directory"),
    Tool("fetch", "web_fetch"),
    Tool("search", "web_search"),
    Tool("todos", "todo_write", read=todos_from(), write=_write_todos),
)


def _main_path(place: str, host: Host) -> Path:
    """The folder that the environment names, else the usual one."""
    home = host.env.get("QWEN_RUNTIME_DIR") or host.env.get("QWEN_HOME")
    below = PurePosixPath(place).relative_to(".qwen")
    return host.expand(home) / below if home else host.home / place


TARGET_PROFILE = TargetProfile(
    capacity=Capacity(
        images=True,
        documents=True,
        images_in_results=True,
        image_types=tuple(f"image/{kind}" for kind in ("png", "jpeg", "webp", "gif", "bmp")),
        document_types=DOCUMENT_TYPES,
        typed_links=True,
        thinking=True,
        failures=True,
        titles=True,
        subagents=True,
        foreign_lines=True,
    ),
    tools=TOOLS,
    id_keys=("sessionId", "parentSessionId"),
    resume=lambda session: ["qwen", "--resume", str(session["id"])],
    resumes_file=lambda path, _parts: path.parent.name != ARCHIVE,
    injected_prefixes=_INJECTED,
    is_command=is_command,
    nests_subagents=True,
    child_id=lambda identity: f"agent-{identity}",
    main_path=_main_path,
    can_find_by_id=lambda path, identity: path.parent.name == CHATS and path.name == f"{identity}.jsonl",
)
