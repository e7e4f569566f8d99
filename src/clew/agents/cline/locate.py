"""Where Cline keeps sessions and its extensions keep tasks, which files belong to one, and its id.

A session of Cline 3 is `sessions/<id>/<id>.messages.json`, with the manifest `<id>.json` and the files of sub-agents,
`agent_<...>.messages.json`, beside it. A task of an extension is `tasks/<id>/api_conversation_history.json`, with what
the editor displayed in `ui_messages.json`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePath, PurePosixPath

from clew.agents.backups import is_plain_file
from clew.agents.base import Claim, Header, SourceFile, source_at
from clew.agents.folders import user_folders
from clew.host import Host
from clew.io.compress import plain_name
from clew.io.paths import safe_relative, walk

MESSAGES = ".messages.json"
"""The end of the names of Cline 3's files with messages."""
TASK, DISPLAYED = "api_conversation_history.json", "ui_messages.json"
_OLD_DISPLAYED = "claude_messages.json"
HISTORY_ITEM = "history_item.json"
_TASK_SIDES = (HISTORY_ITEM, "task_metadata.json", "context_history.json")
_COMPACTION = ".compaction.json"
_SESSION_HEAD = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"updated_at"\s*:')
_TASK_HEAD = re.compile(rb'\s*\[\s*(?:\]|\{[^{}]*"(?:role|ts)"\s*:)')
_SUBAGENT, _SUBAGENT_SEPARATOR = "agent_", "__"
DATA = ".cline/data"
"""The folder of Cline 3 below a home."""


def cline_roots(host: Host) -> Iterator[Path]:
    """The folders of Cline 3: sessions, and tasks that the extension moved there."""
    data = data_folder(host)
    yield data / "sessions"
    yield data / "tasks"


def data_folder(host: Host) -> Path:
    """The configured folder of Cline 3, else the usual one."""
    configured = host.env.get("CLINE_DATA_DIR")
    return Path(configured).expanduser() if configured else host.home / DATA


def main_path(place: str, host: Host) -> Path:
    """Where a main file goes on a host, given where it goes in any home."""
    is_in_data = place.startswith(f"{DATA}/")
    return data_folder(host) / place.removeprefix(f"{DATA}/") if is_in_data else host.home / place


def extension_roots(host: Host, extension: str) -> Iterator[Path]:
    """The folder of tasks in each editor."""
    return (folder / "globalStorage" / extension / "tasks" for folder in user_folders(host))


def discover(agent: str, root: Path) -> Iterator[SourceFile]:
    """Every session below a root, sub-agents included, or every task."""
    for folder, folders, files in walk(root):
        # A task has a repository with checkpoints below it.
        folders[:] = sorted(folders) if Path(folder) == root else []
        for name in sorted(files):
            path = Path(folder) / name
            if (is_task(path) or plain_name(name).endswith(MESSAGES)) and is_plain_file(path):
                yield source_file(agent, path)


def source_file(agent: str, path: Path) -> SourceFile:
    """The session a file belongs to."""
    folder, name = path.parent, plain_name(path.name)
    if name in (DISPLAYED, _OLD_DISPLAYED) and is_plain_file(folder / TASK):
        path, name = folder / TASK, TASK
    source = source_at(agent, path)
    if name == TASK:
        displayed = (each for each in (DISPLAYED, _OLD_DISPLAYED) if is_plain_file(folder / each))
        sides = tuple(each for each in _TASK_SIDES if is_plain_file(folder / each))
        return SourceFile(agent, path, tuple(displayed)[:1], sides, source.size, source.mtime)
    if is_subagent(path):
        return source
    names = (manifest_name(path), name.removesuffix(MESSAGES) + _COMPACTION)
    sides = tuple(each for each in names if is_plain_file(folder / each))
    return SourceFile(agent, path, (), sides, source.size, source.mtime)


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
    beside = (each for each in path.parent.iterdir() if is_subagent(each) and is_plain_file(each))
    return sorted(beside)


def session_id(path: PurePath) -> str:
    """The id of a session is the name of its file, that of a task the name of its folder."""
    if is_task(path):
        return path.parent.name
    name = plain_name(path.name).removesuffix(MESSAGES)
    return f"{path.parent.name}{_SUBAGENT_SEPARATOR}{name}" if is_subagent(path) else name


def document_keys(name: str) -> tuple[str, ...]:
    """The key of the array of records: a task is that array itself."""
    return () if plain_name(name) in (TASK, DISPLAYED, _OLD_DISPLAYED) else ("messages",)


def claims(extension: str, path: Path, head: bytes) -> Claim:
    """How sure it is that a file belongs to the agent whose extension has this id."""
    name = plain_name(path.name)
    head = head.removeprefix(b"\xef\xbb\xbf")
    if name.endswith(MESSAGES):
        if extension.endswith(".claude-dev") and (_SESSION_HEAD.match(head) or not head.strip()):
            return Claim.YES
        return Claim.NO
    if name not in (TASK, DISPLAYED, _OLD_DISPLAYED) or not (_TASK_HEAD.match(head) or not head.strip()):
        return Claim.NO
    if extension in path.parts:
        return Claim.YES
    return Claim.NO if "globalStorage" in path.parts or not extension.endswith(".claude-dev") else Claim.MAYBE


def target(extension: str, header: Header) -> str:
    """Where a session belongs below a home folder: one that was read goes back to where it was."""
    session = header.session
    recorded = PurePosixPath(str((session.get("source") or {}).get("path") or "").replace("\\", "/"))
    identity = safe_relative(str(session["id"]))
    # A task that is converted gets a new id, and becomes a session of Cline 3.
    if is_task(recorded) and recorded.parent.name == session["id"]:
        below = f"tasks/{identity}/{TASK}"
        if extension not in recorded.parts:
            return f"{DATA}/{below}"
        at = recorded.parts.index(extension)
        # Editors differ in the folder above `User`: `.config/Code`, `Library/Application Support/Cursor`, ...
        application = "/".join(map(safe_relative, _below_home(recorded.parts[: max(at - 2, 0)])))
        return f"{application or '.config/Code'}/User/globalStorage/{extension}/{below}"
    parent, is_nested, name = identity.partition(f"{_SUBAGENT_SEPARATOR}{_SUBAGENT}")
    return f"{DATA}/sessions/{parent}/{_SUBAGENT + name if is_nested else identity}{MESSAGES}"


def _below_home(parts: tuple[str, ...]) -> tuple[str, ...]:
    """The part of a path from the folder that applications of the system keep their files in."""
    for first in (
        ".config",
        "Library",
        "AppData",
        ".vscode-server",
        ".vscode-server-insiders",
        ".cursor-server",
        ".local",
    ):
        if first in parts:
            return parts[len(parts) - 1 - parts[::-1].index(first) :]
    return ()
