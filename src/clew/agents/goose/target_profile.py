"""What Goose can hold of other agents' sessions, and how it imports them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from clew.agents.database_agent import locate_rows
from clew.agents.encoding import import_file
from clew.agents.goose.encode import session_name
from clew.agents.goose.layout import AGENT, FOLDER, LAYOUT, roots
from clew.agents.target_profile import Capacity, TargetProfile
from clew.agents.tools import Tool
from clew.host import Host
from clew.model.json import JSON

TOOLS = (
    Tool("shell", "shell"),
    Tool("write", "write"),
    Tool("edit", "edit", {"old": "before", "new": "after"}),
    Tool("list", "tree"),
)


def _main_path(place: str, host: Host) -> Path:
    below = Path(place)
    return next(roots(host)) / below.relative_to(FOLDER) if below.is_relative_to(FOLDER) else host.home / below


def _resume(session: Mapping[str, JSON]) -> list[str]:
    """Goose assigns its own id on import; before that, resume by name."""
    own = ((session.get("extensions") or {}).get(AGENT) or {}).get("id")
    found = ["--session-id", str(own)] if own is not None else [f"--name={session_name(session)}"]
    return ["goose", "session", "--resume", *found]


TARGET_PROFILE = TargetProfile(
    capacity=Capacity(
        images=True,
        images_in_results=True,
        thinking=True,
        failures=True,
        titles=True,
        subagents=True,
        subagents_by_call=True,
        foreign_lines=True,
    ),
    tools=TOOLS,
    id_keys=(),
    resume=_resume,
    injected_prefixes=("<turn-context>",),
    main_path=_main_path,
    can_find_by_id=lambda path, _session: bool(locate_rows(AGENT, path, LAYOUT).change_token),
    import_command=lambda main_file: ["goose", "session", "import", import_file(str(main_file))],
)
