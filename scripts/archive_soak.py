"""Kill `clew archive` at random moments, and count lost and duplicate versions.

Between kills, the sessions of a home grow, are copied, rewritten and deleted. After each kill the archive must be
intact. What a finished capture archived must stay. Prunes are killed too, and sometimes the index is deleted. A process
is killed at a random time, or at a random call to the file system.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from clew.archive import writer as writing
from clew.archive.archive import open_archive
from clew.archive.capture import capture, files_of
from clew.archive.prune import Policy, plan, prune
from clew.archive.records import INDEX, pack_names
from clew.archive.verify import verify
from clew.archive.writer import open_writer
from clew.host import Host
from clew.io.filesystem import System
from clew.sources.local import in_homes
from scripts.soak_runner import argument_parser, run

ROUNDS_PER_ARCHIVE = 50
LARGE_ROUND_SHARE = 0.2
"""The share of rounds with enough changes for several blocks and packs."""
SMALL_BLOCK_BYTES = 64 << 10
CALLS, CALLS_OF_LARGE_CAPTURE = 12, 40
"""The number of calls that change the file system in one capture, about."""


class KillingSystem(System):
    """A file system that kills the process at its n-th change."""

    def __init__(self, left: int) -> None:
        for name in ("write", "sync", "replace", "truncate", "unlink"):
            setattr(self, name, self._counted(getattr(System, name)))
        self._left = left

    def _counted(self, call: Callable[..., object]) -> Callable[..., object]:
        def counted(*arguments: object) -> object:
            self._left -= 1
            if self._left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments)

        return counted


class Soak:
    """Runs rounds and counts."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self._folder, self._random = folder, rng
        self.kills = self.completed = self.lost = self.doubled = self.damaged = 0
        self._archived: set[tuple[str, bytes]] = set()
        self._is_large = False
        self._start_over()

    def _start_over(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        self._sessions = self._folder / "home" / ".claude" / "projects" / "-home-ada-tide"
        self._sessions.mkdir(parents=True)
        self._archive = self._folder / "archive"
        self._archived.clear()

    def round(self, number: int) -> None:
        """Change sessions, kill a capture or a prune, and verify the archive."""
        self._is_large = self._random.random() < LARGE_ROUND_SHARE
        self._change()
        is_prune = self._random.random() < 0.15 and bool(pack_names(self._archive))
        if self._random.random() < 0.1:
            (self._archive / INDEX).unlink(missing_ok=True)
        self._kill(self._prune if is_prune else self._capture)
        if pack_names(self._archive):
            self.damaged += any(not problem.harmless for problem in verify(self._archive).problems)
        if number % 5 == 4:
            self._complete()
        if number % ROUNDS_PER_ARCHIVE == ROUNDS_PER_ARCHIVE - 1:
            self.check()
            self._start_over()

    def _change(self) -> None:
        chance = self._random
        for _ in range(chance.randint(1, 4)):
            there = sorted(self._sessions.glob("*.jsonl"))
            path = self._sessions / f"{chance.randint(0, 40):08x}-0000-4000-8000-000000000000.jsonl"
            few, many = (300, 1500) if self._is_large else (1, 30)
            lines = [self._line() for _ in range(chance.randint(few, many))]
            kind = chance.random()
            if there and kind < 0.2:
                path.write_bytes(chance.choice(there).read_bytes())
            elif there and kind < 0.3:
                chance.choice(there).unlink(missing_ok=True)
            else:
                with path.open("wb" if kind < 0.5 else "ab") as out:
                    out.writelines(lines)

    def _line(self) -> bytes:
        text = self._random.randbytes(self._random.choice((20, 400, 3000))).hex()
        record = {"type": "user", "uuid": text[:32], "message": {"role": "user", "content": text}}
        return json.dumps(record).encode() + b"\n"

    def _kill(self, work: Callable[[System], None]) -> None:
        """Do the work in a process that is killed at a random moment; sometimes it ends before."""
        by_call = self._random.random() < 0.5
        calls = CALLS_OF_LARGE_CAPTURE if self._is_large else CALLS
        system = KillingSystem(self._random.randint(0, calls)) if by_call else System()
        process = os.fork()
        if not process:
            code = 1
            try:
                writing.BLOCK_BYTES, writing.PACK_BYTES = SMALL_BLOCK_BYTES, 4 * SMALL_BLOCK_BYTES
                work(system)
                code = 0
            finally:
                os._exit(code)
        if not by_call:
            time.sleep(self._random.uniform(0, 0.5 if self._is_large else 0.03))
            os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
        self.kills += os.WIFSIGNALED(status)
        self.damaged += os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0

    def _capture(self, system: System) -> None:
        host = Host.at(self._folder / "home")
        sessions = in_homes([host], ["claude-code"])
        files = [one for found in sessions for one in files_of(host, found.agent, found.source)]
        with open_writer(self._archive, system) as writer:
            capture(writer, files, host.now)

    def _prune(self, system: System) -> None:
        """Rewrite all packs; every version is kept."""
        with open_writer(self._archive, system) as writer:
            prune(writer, plan(writer, Policy(), 0), repack=True)

    def _complete(self) -> None:
        """Run a capture to its end, and record what it archived: that must stay."""
        self._capture(System())
        self.completed += 1
        for path in self._sessions.glob("*.jsonl"):
            self._archived.add((path.name, hashlib.sha256(path.read_bytes()).digest()))

    def check(self) -> None:
        """Compare the archive with what completed captures archived."""
        self._complete()
        prefixes: dict[str, list[bytes]] = {}
        with open_archive(self._archive) as archive:
            for version in archive.versions():
                prefixes.setdefault(Path(os.fsdecode(version.path)).name, []).append(archive.content(version))
        for name, digest in self._archived:
            # A file that only grew is one version, which begins with what was there before.
            self.lost += not any(_has_prefix(content, digest) for content in prefixes.get(name, []))
        for contents in prefixes.values():
            self.doubled += sum(one == other for one, other in pairwise(contents))

    def summary(self) -> str:
        """The counts as text."""
        return (
            f"{self.kills} kills, {self.completed} completed captures: "
            f"{self.lost} lost, {self.doubled} duplicate, {self.damaged} damaged"
        )

    def is_clean(self) -> bool:
        """True where nothing was lost, duplicated or damaged."""
        return not (self.lost or self.doubled or self.damaged)


def _has_prefix(content: bytes, digest: bytes) -> bool:
    """True where the content up to some line end has this digest."""
    running = hashlib.sha256()
    if running.digest() == digest:
        return True
    for line in content.splitlines(keepends=True):
        running.update(line)
        if running.digest() == digest:
            return True
    return False


def main(arguments: Sequence[str] | None = None) -> int:
    """Run rounds until the number of kills is reached."""
    chosen = argument_parser(__doc__, 1_000).parse_args(arguments)
    import zstandard  # noqa: F401 - loaded once, before processes are forked

    with tempfile.TemporaryDirectory(prefix="clew-archive-soak-") as place:
        return run(Soak(Path(place), random.Random(chosen.seed)), chosen.kills, report_every_rounds=200)


if __name__ == "__main__":
    sys.exit(main())
