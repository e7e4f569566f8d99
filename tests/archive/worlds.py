"""A small home to archive, and the archive of it."""

import json
import os
from collections.abc import Iterable
from pathlib import Path

from clew.agents import registry
from clew.archive.capture import Outcome, capture
from clew.archive.copying import companions_of, files_of
from clew.archive.reading import Reader
from clew.archive.state import load
from clew.archive.writing import Recall, writer
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

    def capture(
        self, system: System = SYSTEM, agents: Iterable[str] = ("claude-code",), recall: Recall | None = None
    ) -> Outcome:
        """Bring the archive up to date."""
        found = in_homes([self.host], agents)
        files = [one for source in found for one in files_of(self.host, source.agent, source.source)]
        files += companions_of(self.host, [registry.get(name) for name in agents])
        with writer(self.archive, system, wait=0, recall=recall) as open_writer:
            return capture(open_writer, files, self.host.now)

    def contents(self) -> dict[str, list[bytes]]:
        """All that is archived: the versions of each file by its name."""
        reader = Reader(self.archive)
        try:
            return {
                Path(os.fsdecode(path)).name: [reader.content(version) for version in versions]
                for (_, path), versions in load(self.archive).files.items()
            }
        finally:
            reader.close()

    def stored(self) -> int:
        """The size of the packs."""
        return load(self.archive).stored
