"""Which files belong to a session of Cline or a task of its extensions, and its id.

A session of Cline 3 is `sessions/<id>/<id>.messages.json`, with the manifest `<id>.json` and the files of sub-agents,
`agent_<...>.messages.json`, beside it. A task of an extension is `tasks/<id>/api_conversation_history.json`, with what
the editor displayed in `ui_messages.json`.
"""

from __future__ import annotations

from pathlib import Path, PurePath

from clew.agents.backups import is_plain_file
from clew.host import Host
from clew.io.compress import plain_name

MESSAGES = ".messages.json"
"""The end of the names of Cline 3's files with messages."""
TASK, HISTORY_ITEM = "api_conversation_history.json", "history_item.json"
DISPLAYED = ("ui_messages.json", "claude_messages.json")
"""What the editor displayed, by its present and its former name."""
_SUBAGENT, _SUBAGENT_SEPARATOR = "agent_", "__"
DATA = ".cline/data"
"""The folder of Cline 3 below a home."""


def data_folder(host: Host) -> Path:
    """The configured folder of Cline 3, else the usual one."""
    return host.configured_folder("CLINE_DATA_DIR", DATA)


def main_path(place: str, host: Host) -> Path:
    """Where a main file goes on a host, given where it goes in any home."""
    is_in_data = place.startswith(f"{DATA}/")
    return data_folder(host) / place.removeprefix(f"{DATA}/") if is_in_data else host.home / place


def is_task(path: PurePath) -> bool:
    """True for the main file of a task of an extension."""
    return plain_name(path.name) == TASK


def is_subagent(path: PurePath) -> bool:
    """True for the session of a sub-agent, which lies in the folder of its parent."""
    name = plain_name(path.name)
    return name.endswith(MESSAGES) and name != path.parent.name + MESSAGES and name.startswith(_SUBAGENT)


def manifest_name(path: PurePath) -> str:
    """The name of the manifest of a session: of that which a sub-agent belongs to."""
    return (path.parent.name if is_subagent(path) else plain_name(path.name).removesuffix(MESSAGES)) + ".json"


def subagent_files(path: Path) -> list[Path]:
    """The sessions of the sub-agents that lie beside a session."""
    if is_task(path) or is_subagent(path):
        return []
    return sorted(each for each in path.parent.iterdir() if is_subagent(each) and is_plain_file(each))


def session_id(path: PurePath) -> str:
    """The id of a session is the name of its file, that of a task the name of its folder."""
    if is_task(path):
        return path.parent.name
    name = plain_name(path.name).removesuffix(MESSAGES)
    return f"{path.parent.name}{_SUBAGENT_SEPARATOR}{name}" if is_subagent(path) else name


def session_path(session: str) -> str:
    """The path of the session with this id in the folder of sessions."""
    parent, is_nested, name = session.partition(f"{_SUBAGENT_SEPARATOR}{_SUBAGENT}")
    return f"{parent}/{_SUBAGENT + name if is_nested else session}{MESSAGES}"


def document_keys(name: str) -> tuple[str, ...]:
    """The key of the array of records: a task is that array itself."""
    return () if plain_name(name) in (TASK, *DISPLAYED) else ("messages",)
