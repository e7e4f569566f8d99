"""A small home to archive, and the archive of it."""

import json
import os
from collections.abc import Iterable
from pathlib import Path

from clew.agents import registry
from clew.archive.archive import open_archive
from clew.archive.capture import Outcome, capture, companions_of, files_of
from clew.archive.records import Version, pack_names, pack_path
from clew.archive.writer import open_writer
from clew.host import Host
from clew.io.filesystem import SYSTEM, System
from clew.sources.local import in_homes

PROJECT = ".claude/projects/-home-ada-tide"


def line(number: int, text: str = "The tide rises twice a day.") -> bytes:
    """A record like those of Claude Code."""
    record = {"type": "user", "uuid": f"{number:032x}", "message": {"role": "user", "content": f"{number}: {text}"}}
    return json.dumps(record).encode() + b"\n"


def lines(*numbers: int, text: str = "The tide rises twice a day. " * 20) -> bytes:
    """Several records."""
    return b"".join(line(number, text) for number in numbers)


class World:
    """A home of its own with sessions, and an archive beside it."""

    def __init__(self, folder: Path) -> None:
        self.home, self.archive = folder / "home", folder / "archive"
        self.project = self.home / PROJECT
        self.project.mkdir(parents=True)
        self.host = Host.at(self.home)

    def session(self, number: int) -> Path:
        """Where a session lies, whether it is there or not."""
        return self.project / f"{number:08x}-0000-4000-8000-000000000000.jsonl"

    def write(self, number: int, content: bytes) -> Path:
        """A session with this content."""
        path = self.session(number)
        path.write_bytes(content)
        return path

    def capture(self, system: System = SYSTEM, agents: Iterable[str] = ("claude-code",)) -> Outcome:
        """Bring the archive up to date."""
        found = in_homes([self.host], agents)
        files = [one for source in found for one in files_of(self.host, source.agent, source.source)]
        files += companions_of(self.host, [registry.get(name) for name in agents])
        with open_writer(self.archive, system, wait=0) as writer:
            return capture(writer, files, self.host.now)

    def contents(self) -> dict[str, list[bytes]]:
        """Return the content of all versions of each archived file by its name."""
        with open_archive(self.archive) as archive:
            return {
                Path(os.fsdecode(path)).name: [archive.content(version) for version in versions]
                for (_, path), versions in archive.files.items()
            }

    def versions(self) -> list[Version]:
        """Return all archived versions."""
        with open_archive(self.archive) as archive:
            return list(archive.versions())

    def stored(self) -> int:
        """Return the size of the packs."""
        with open_archive(self.archive) as archive:
            return archive.stored

    def packs(self) -> list[Path]:
        """Return the paths of all packs, oldest first."""
        return [pack_path(self.archive, name) for name in pack_names(self.archive)]
