"""VS Code Copilot Chat: the chats of VS Code and of editors made from it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

from clew.agents.backups import is_plain_file, read_inside
from clew.agents.base import Agent, Claim, Header, SourceFile, file_stem
from clew.agents.file_evidence import absolute
from clew.agents.folders import files_below, user_folders
from clew.analysis.facts import Facts
from clew.host import Host
from clew.io.codec import NOT_JSON, loads
from clew.io.compress import plain_name
from clew.io.paths import safe_relative
from clew.model import Problem
from clew.model.json import JSON

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


class VSCodeChat(Agent):
    """The agent `vscode-chat`."""

    id = "vscode-chat"
    title = "VS Code Copilot Chat"
    homepage = "https://github.com/microsoft/vscode"
    package = __name__

    def roots(self, host: Host) -> Iterator[Path]:
        for user in user_folders(host):
            yield user / WORKSPACES
            yield from (user / name for name in GLOBAL_CHATS)

    def discover(self, root: Path) -> Iterator[SourceFile]:
        """Every chat below a root. A document was replaced by the log of the same name."""
        folder = f"*/{CHATS}/" if root.name == WORKSPACES else ""
        paths = list(files_below(root, (f"{folder}*.json", f"{folder}*.jsonl")))
        logs = {path.parent / file_stem(path) for path in paths if not _is_document(path)}
        for path in paths:
            if not _is_document(path) or path.parent / file_stem(path) not in logs:
                yield self.locate(path)

    def beside(self, path: PurePath, content: bytes, known: Sequence[str]) -> Iterator[str]:
        wanted = path.parent.parent / WORKSPACE_FILE
        return (name for name in known if PurePath(name) == wanted)

    def ignores(self, below: PurePath) -> bool:
        # Extensions keep files in the folder of a workspace, too.
        return len(below.parts) > 1 and below.parts[1] not in (CHATS, WORKSPACE_FILE)

    def claims(self, path: Path, head: bytes) -> Claim:
        name, start = plain_name(path.name), head.removeprefix(b"\xef\xbb\xbf")
        if name.endswith(".jsonl"):
            start = start.split(b"\n", 1)[0]
            is_chat = _LOG_START.match(start) and (_STATE_KEYS.search(start) or b'"requests"' in start)
        else:
            is_chat = _is_document(path) and _STATE_KEYS.search(start) and b'"requests"' in start
        return Claim.YES if is_chat else Claim.NO

    def document_keys(self, head: bytes, name: str) -> tuple[str, ...] | None:
        from clew.agents.vscode_chat.records import DOCUMENT_REQUESTS, is_document_name

        return (DOCUMENT_REQUESTS,) if is_document_name(name) else None

    def workspace_folder(self, source: SourceFile) -> str:
        """The folder of a chat below the folder of the editor's user, else the name of its folder."""
        folder = source.path.parent
        user = next((above for above in folder.parents if above.name == "User"), None)
        return folder.relative_to(user).as_posix() if user is not None else folder.name

    def check(self, source: SourceFile, facts: Facts) -> Iterator[Problem]:
        from clew.agents.vscode_chat.events import check

        return check(source)

    def target(self, header: Header) -> str:
        session = header.session
        suffix = ".json" if header.recorded_path.suffix == ".json" else ".jsonl"
        folder = str(session.get("workspace_encoded") or "")
        if not folder.startswith((f"{WORKSPACES}/", "globalStorage/")):
            folder = GLOBAL_CHATS[0]
        parts = [*map(safe_relative, folder.split("/")), safe_relative(f"{session['id']}{suffix}")]
        return "/".join([_USUAL, *parts])


def _is_document(path: Path) -> bool:
    return plain_name(path.name).endswith(".json")


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
