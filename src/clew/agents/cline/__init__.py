"""Cline, and the extensions Roo Code and Kilo Code that were made from it.

Cline 3 keeps a folder for each session, the extensions keep one for each task. All of their files are JSON documents
that are written anew at every change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import ClassVar

from clew.agents.backups import is_plain_file
from clew.agents.base import Agent, Claim, Header, SourceFile, source_at
from clew.agents.cline import locate
from clew.agents.cline.locate import DATA, DISPLAYED, MESSAGES, TASK
from clew.agents.folders import user_folders
from clew.agents.target_profile import TargetProfile
from clew.host import Host
from clew.io.compress import plain_name
from clew.io.paths import safe_relative

_TASK_SIDES = (locate.HISTORY_ITEM, "task_metadata.json", "context_history.json")
_COMPACTION = ".compaction.json"
_SESSION_HEAD = re.compile(rb'(?:\xef\xbb\xbf)?\s*(?:\{\s*"version"\s*:\s*\d+\s*,\s*"updated_at"\s*:|\Z)')
_TASK_HEAD = re.compile(rb'(?:\xef\xbb\xbf)?\s*(?:\[\s*(?:\]|\{[^{}]*"(?:role|ts)"\s*:)|\Z)')
_APPLICATIONS = (
    ".config",
    "Library",
    "AppData",
    ".vscode-server",
    ".vscode-server-insiders",
    ".cursor-server",
    ".local",
)
"""The folders that applications keep their files in, below a home."""


class Cline(Agent):
    """The agent `cline`."""

    id = "cline"
    title = "Cline"
    homepage = "https://github.com/cline/cline"
    package = __name__
    newest_tested_version = "3.0.65"
    session_files = (f"*/{TASK}", f"*/*{MESSAGES}")
    extension: ClassVar[str] = "saoudrizwan.claude-dev"
    """The id of the extension, which its folder in an editor is called by."""

    def roots(self, host: Host) -> Iterator[Path]:
        data = locate.data_folder(host)
        # The extension moved tasks there.
        yield from (data / "sessions", data / "tasks")
        yield from self.extension_roots(host)

    def extension_roots(self, host: Host) -> Iterator[Path]:
        """The folder of tasks in each editor."""
        return (folder / "globalStorage" / self.extension / "tasks" for folder in user_folders(host))

    def beside(self, path: PurePath, content: bytes, known: Sequence[str]) -> Iterator[str]:
        manifest = path.parent / locate.manifest_name(path)
        return (name for name in known if PurePath(name) == manifest)

    def claims(self, path: Path, head: bytes) -> Claim:
        name, is_cline = plain_name(path.name), self.id == Cline.id
        if name.endswith(MESSAGES):
            return Claim.YES if is_cline and _SESSION_HEAD.match(head) else Claim.NO
        if name not in (TASK, *DISPLAYED) or not _TASK_HEAD.match(head):
            return Claim.NO
        if self.extension in path.parts:
            return Claim.YES
        return Claim.MAYBE if is_cline and "globalStorage" not in path.parts else Claim.NO

    def locate(self, path: Path) -> SourceFile:
        folder, name = path.parent, plain_name(path.name)
        if name in DISPLAYED and is_plain_file(folder / TASK):
            path, name = folder / TASK, TASK

        def existing(*names: str) -> list[str]:
            return [each for each in names if is_plain_file(folder / each)]

        if name == TASK:
            return source_at(self.id, path, existing(*_TASK_SIDES), existing(*DISPLAYED)[:1])
        if locate.is_subagent(path):
            return source_at(self.id, path)
        return source_at(self.id, path, existing(locate.manifest_name(path), name.removesuffix(MESSAGES) + _COMPACTION))

    def session_id(self, source: SourceFile) -> str:
        return locate.session_id(source.path)

    def document_keys(self, head: bytes, name: str) -> tuple[str, ...] | None:
        return locate.document_keys(name)

    def target(self, header: Header) -> str:
        """A session that was read goes back to where it was."""
        session, recorded = header.session, header.recorded_path
        identity = safe_relative(str(session["id"]))
        # A task that is converted gets a new id, and becomes a session of Cline 3.
        if locate.is_task(recorded) and recorded.parent.name == session["id"]:
            below = f"tasks/{identity}/{TASK}"
            if self.extension not in recorded.parts:
                return f"{DATA}/{below}"
            at = recorded.parts.index(self.extension)
            # Editors differ in the folder above `User`: `.config/Code`, `Library/Application Support/Cursor`, ...
            application = "/".join(map(safe_relative, _below_home(recorded.parts[: max(at - 2, 0)])))
            return f"{application or '.config/Code'}/User/globalStorage/{self.extension}/{below}"
        return f"{DATA}/sessions/{locate.session_path(identity)}"


def _below_home(parts: tuple[str, ...]) -> tuple[str, ...]:
    """The part of a path from the folder that applications of the system keep their files in."""
    first = next((name for name in _APPLICATIONS if name in parts), None)
    return parts[len(parts) - 1 - parts[::-1].index(first) :] if first is not None else ()


class RooCode(Cline):
    """The agent `roo-code`."""

    id = "roo-code"
    title = "Roo Code"
    homepage = "https://github.com/RooCodeInc/Roo-Code"
    newest_tested_version = ""
    extension = "rooveterinaryinc.roo-cline"

    def roots(self, host: Host) -> Iterator[Path]:
        return self.extension_roots(host)

    def target_profile(self) -> TargetProfile | None:
        return None


class KiloCode(RooCode):
    """The agent `kilo-code`: the extension before it moved to the database of the Kilo command line."""

    id = "kilo-code"
    title = "Kilo Code"
    homepage = "https://github.com/Kilo-Org/kilocode"
    extension = "kilocode.kilo-code"
