"""Kill `clew archive` at random moments, again and again, and count what was lost or doubled.

Between kills the sessions of a home grow, are copied, rewritten and deleted. After each kill the archive must be
intact. What a finished capture archived must stay. Prunes are killed too, and now and then the index is deleted. Kills
come at a random time, or at a random call to the file system.
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
from scripts.soaking import options, run

ROUNDS_OF_AN_ARCHIVE = 50
LARGE_ROUNDS = 0.2
"""The share of rounds with enough changes for several blocks and packs."""
SMALL_BLOCK_BYTES = 64 << 10
CALLS, CALLS_OF_LARGE_CAPTURE = 12, 40
"""The number of calls that change the file system in one capture, about."""


class Fatal(System):
    """A file system at whose n-th change the process dies."""

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
    """The rounds, and their account."""

    def __init__(self, place: Path, chance: random.Random) -> None:
        self._place, self._chance = place, chance
        self.kills = self.completed = self.lost = self.doubled = self.damaged = 0
        self._sure: set[tuple[str, bytes]] = set()
        self._is_large = False
        self._fresh()

    def _fresh(self) -> None:
        shutil.rmtree(self._place, ignore_errors=True)
        self._sessions = self._place / "home" / ".claude" / "projects" / "-home-ada-tide"
        self._sessions.mkdir(parents=True)
        self._archive = self._place / "archive"
        self._sure.clear()

    def round(self, number: int) -> None:
        """Sessions change, a process is killed, and what it left is looked at."""
        self._is_large = self._chance.random() < LARGE_ROUNDS
        self._change()
        is_prune = self._chance.random() < 0.15 and bool(pack_names(self._archive))
        if self._chance.random() < 0.1:
            (self._archive / INDEX).unlink(missing_ok=True)
        self._kill(self._prune if is_prune else self._capture)
        if pack_names(self._archive):
            self.damaged += any(not problem.harmless for problem in verify(self._archive).problems)
        if number % 5 == 4:
            self._complete()
        if number % ROUNDS_OF_AN_ARCHIVE == ROUNDS_OF_AN_ARCHIVE - 1:
            self.check()
            self._fresh()

    def _change(self) -> None:
        chance = self._chance
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
        text = self._chance.randbytes(self._chance.choice((20, 400, 3000))).hex()
        record = {"type": "user", "uuid": text[:32], "message": {"role": "user", "content": text}}
        return json.dumps(record).encode() + b"\n"

    def _kill(self, work: Callable[[System], None]) -> None:
        """Do the work in a process of its own that does not live to its end, or hardly."""
        by_call = self._chance.random() < 0.5
        calls = CALLS_OF_LARGE_CAPTURE if self._is_large else CALLS
        system = Fatal(self._chance.randint(0, calls)) if by_call else System()
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
            time.sleep(self._chance.uniform(0, 0.5 if self._is_large else 0.03))
            os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
        self.kills += os.WIFSIGNALED(status)
        self.damaged += os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0

    def _capture(self, system: System) -> None:
        host = Host.at(self._place / "home")
        sessions = in_homes([host], ["claude-code"])
        files = [one for found in sessions for one in files_of(host, found.agent, found.source)]
        with open_writer(self._archive, system) as writer:
            capture(writer, files, host.now)

    def _prune(self, system: System) -> None:
        """Rewrite all packs; every version is kept."""
        with open_writer(self._archive, system) as writer:
            prune(writer, plan(writer, Policy(), 0), repack=True)

    def _complete(self) -> None:
        """A capture that is let live: what it took in must be there from now on."""
        self._capture(System())
        self.completed += 1
        for path in self._sessions.glob("*.jsonl"):
            self._sure.add((path.name, hashlib.sha256(path.read_bytes()).digest()))

    def check(self) -> None:
        """Compare the archive with what was there at captures that ended."""
        self._complete()
        prefixes: dict[str, list[bytes]] = {}
        with open_archive(self._archive) as archive:
            for version in archive.versions():
                prefixes.setdefault(Path(os.fsdecode(version.path)).name, []).append(archive.content(version))
        for name, digest in self._sure:
            # A file that only grew is one version, which begins with what was there before.
            self.lost += not any(_begins(content, digest) for content in prefixes.get(name, []))
        for contents in prefixes.values():
            self.doubled += sum(one == other for one, other in pairwise(contents))

    def account(self) -> str:
        """What came of it."""
        return (
            f"{self.kills} kills, {self.completed} captures that ended: "
            f"{self.lost} lost, {self.doubled} doubled, {self.damaged} damaged"
        )

    def is_clean(self) -> bool:
        """True where nothing went wrong."""
        return not (self.lost or self.doubled or self.damaged)


def _begins(content: bytes, digest: bytes) -> bool:
    """True where some beginning of the content, up to a line end, has this digest."""
    running = hashlib.sha256()
    if running.digest() == digest:
        return True
    for line in content.splitlines(keepends=True):
        running.update(line)
        if running.digest() == digest:
            return True
    return False


def main(arguments: Sequence[str] | None = None) -> int:
    """Run rounds until there were so many kills."""
    chosen = options(__doc__, 1_000).parse_args(arguments)
    import zstandard  # noqa: F401 - loaded once, before processes are forked

    with tempfile.TemporaryDirectory(prefix="clew-archive-soak-") as place:
        return run(Soak(Path(place), random.Random(chosen.seed)), chosen.kills, told_every=200)


if __name__ == "__main__":
    sys.exit(main())
