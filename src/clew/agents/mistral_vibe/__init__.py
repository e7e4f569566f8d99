"""Mistral Vibe: the session store of version 3 below ~/.vibe."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

from clew.agents.backups import is_plain_file
from clew.agents.base import Agent, Claim, Header, SourceFile
from clew.host import Host
from clew.io.paths import safe_relative

META, CURRENT = "meta.json", "CURRENT"
JOURNAL_FOLDER = "journal/"
_PARTS = (f"{JOURNAL_FOLDER}*.jsonl", "chunks/*.json")
_SIDES = (CURRENT, "scheduled-loops.json", "generations/*/*.json")
_CHUNK = re.compile(r"(?:.*/)?[0-9a-f]{64}\.json")
_JOURNAL = re.compile(r"\d{16}\.jsonl")


class MistralVibe(Agent):
    """The agent `mistral-vibe`."""

    id = "mistral-vibe"
    title = "Mistral Vibe"
    homepage = "https://github.com/mistralai/mistral-vibe"
    package = __name__
    newest_tested_version = "3.0.3"
    session_files = (f"*/{META}",)

    def roots(self, host: Host) -> Iterator[Path]:
        yield host.configured_folder("VIBE_HOME", ".vibe") / "logs" / "session" / "unified"

    def claims(self, path: Path, head: bytes) -> Claim:
        if path.name == META:
            return Claim.YES if b'"session_id"' in head and b'"working_directory"' in head else Claim.NO
        is_journal = _JOURNAL.fullmatch(path.name) is not None
        return Claim.YES if is_journal and b'"recovery_journal_record_version"' in head else Claim.NO

    def locate(self, path: Path) -> SourceFile:
        folder = next((above for above in path.parents[:3] if is_plain_file(above / META)), path.parent)
        parts, sides = _files(folder, _PARTS), _files(folder, _SIDES)
        stats = [file.stat() for name in (META, *parts, *sides) if is_plain_file(file := folder / name)]
        size, mtime = sum(stat.st_size for stat in stats), max((stat.st_mtime for stat in stats), default=0.0)
        return SourceFile(self.id, folder / META, tuple(parts), tuple(sides), size, mtime)

    def session_id(self, source: SourceFile) -> str:
        return source.path.parent.name

    def workspace_folder(self, source: SourceFile) -> str:
        return source.path.parent.parent.name

    def beside(self, path: PurePath, content: bytes, known: Sequence[str]) -> Iterator[str]:
        folder = f"{path.parent.as_posix()}/"
        return (name for name in known if name.startswith(folder) and name != path.as_posix())

    def document_keys(self, head: bytes, name: str) -> tuple[str, ...] | None:
        from clew.agents.mistral_vibe.records import NO_ARRAY

        if name.endswith(".jsonl"):
            return None
        return () if is_chunk(name) else NO_ARRAY

    def target(self, header: Header) -> str:
        return f".vibe/logs/session/unified/{safe_relative(str(header.session['id']))}/{META}"


def _files(folder: Path, patterns: tuple[str, ...]) -> list[str]:
    found = (path for pattern in patterns for path in sorted(folder.glob(pattern)) if is_plain_file(path))
    return [path.relative_to(folder).as_posix() for path in found]


def is_chunk(name: str) -> bool:
    """True for a file that is an array of records."""
    return _CHUNK.fullmatch(name) is not None
