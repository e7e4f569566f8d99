"""Where VS Code keeps its chats, and whether a file is one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

from clew.agents.backups import is_link, is_plain_file, read_inside
from clew.agents.base import Claim, SourceFile, source_at
from clew.agents.editor_folders import user_folders
from clew.agents.file_evidence import absolute
from clew.agents.target_profile import Header
from clew.host import Host
from clew.io.codec import NOT_JSON, loads
from clew.io.compress import plain_name
from clew.io.paths import safe_relative
from clew.model.json import JSON

AGENT = "vscode-chat"
CHATS = "chatSessions"
WORKSPACES = "workspaceStorage"
WORKSPACE_FILE = "workspace.json"
"""Names the folder of a workspace, beside its folder of chats."""
GLOBAL_CHATS = ("globalStorage/emptyWindowChatSessions", "globalStorage/transferredChatSessions")
"""The folders of chats without a workspace."""

_USUAL = ".config/Code/User"
_MAX_WORKSPACE_BYTES = 1 << 20
_LOG_START = re.compile(rb'\s*\{\s*"kind"\s*:\s*0\s*,\s*"v"\s*:\s*\{')
_STATE_KEYS = re.compile(rb'"(?:responderUsername|requesterUsername|initialLocation|inputState)"\s*:')


def roots(host: Host) -> Iterator[Path]:
    """The folders of workspaces and of chats without one, of each editor."""
    for user in user_folders(host):
        yield user / WORKSPACES
        yield from (user / name for name in GLOBAL_CHATS)


def discover(root: Path) -> Iterator[SourceFile]:
    """Every chat below a root; follows no links."""
    if root.name == WORKSPACES:
        for workspace in _entries(root):
            yield from _chats(workspace / CHATS)
    else:
        yield from _chats(root)


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _chats(folder: Path) -> Iterator[SourceFile]:
    """The chats of a folder. A document was replaced by the log of the same name."""
    if is_link(folder) or is_link(folder.parent):
        return
    paths = [path for path in _entries(folder) if path.suffix in (".json", ".jsonl") and not is_link(path)]
    logs = {path.stem for path in paths if path.suffix == ".jsonl"}
    for path in paths:
        if path.suffix == ".jsonl" or path.stem not in logs:
            yield source_file(path)


def is_of_extensions(below: PurePath) -> bool:
    """True for what extensions keep in the folder of a workspace."""
    return len(below.parts) > 1 and below.parts[1] not in (CHATS, WORKSPACE_FILE)


def source_file(path: Path) -> SourceFile:
    """The chat in a file."""
    return source_at(AGENT, path)


def session_id(path: Path) -> str:
    """The id of a chat: the name of its file."""
    return plain_name(path.name).removesuffix(".jsonl").removesuffix(".json")


def workspace_of(path: Path) -> str:
    """The folder of the workspace that a chat belongs to; empty where it has none."""
    folder = path.parent.parent
    if path.parent.name != CHATS or not is_plain_file(folder / WORKSPACE_FILE):
        return ""
    text = read_inside(folder, WORKSPACE_FILE, _MAX_WORKSPACE_BYTES)
    try:
        found: JSON = loads(text) if text is not None else None
    except NOT_JSON:
        return ""
    address = (found.get("folder") or found.get("workspace")) if isinstance(found, dict) else None
    return absolute(address, None) if isinstance(address, str) else ""


def storage_folder(path: Path) -> str:
    """The folder of a chat below the folder of the editor's user, else the name of its folder."""
    for above in path.parents:
        if above.name == "User":
            return path.parent.relative_to(above).as_posix()
    return path.parent.name


def target(header: Header) -> str:
    """Where a restored chat belongs below a home folder."""
    session = header.session
    name = Path(str((session.get("source") or {}).get("path") or "").replace("\\", "/")).name
    suffix = ".json" if name.endswith(".json") else ".jsonl"
    folder = str(session.get("workspace_encoded") or "")
    if not folder.startswith((f"{WORKSPACES}/", "globalStorage/")):
        folder = GLOBAL_CHATS[0]
    parts = [*map(safe_relative, folder.split("/")), safe_relative(f"{session['id']}{suffix}")]
    return "/".join([_USUAL, *parts])


def beside(path: PurePath, known: Sequence[str]) -> Iterator[str]:
    """The file that names the workspace."""
    wanted = path.parent.parent / WORKSPACE_FILE
    return (name for name in known if PurePath(name) == wanted)


def claims(path: Path, head: bytes) -> Claim:
    """How sure it is that the file is a chat."""
    name, start = plain_name(path.name), head.removeprefix(b"\xef\xbb\xbf")
    if name.endswith(".jsonl"):
        first = start.split(b"\n", 1)[0]
        is_chat = _LOG_START.match(first) and (_STATE_KEYS.search(first) or b'"requests"' in first)
        return Claim.YES if is_chat else Claim.NO
    is_chat = name.endswith(".json") and _STATE_KEYS.search(start) and b'"requests"' in start
    return Claim.YES if is_chat else Claim.NO
