"""Kill `clew push` at random moments, and count lost and duplicate rows.

Between kills, the sessions of two machines grow, are copied and rewritten. A push is killed at a random time, or at a
random statement; sometimes the server ends its connection instead. After each kill, the server must hold complete
batches only. After a completed push, it must show the same rows as a new server.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from clew.host import Host
from clew.sources.local import in_homes
from clew.warehouse.merge_sql import PUBLIC
from clew.warehouse.postgres import push as pushing
from clew.warehouse.postgres import schema
from clew.warehouse.postgres.connection import connect
from clew.warehouse.publisher import load_publisher
from scripts.soak_runner import argument_parser, run
from tests.catalog.worlds import claude_lines, claude_path, spelled
from tests.warehouse.postgres.server import Server, missing, running

ROUNDS_PER_CHECK = 25
_INCONSISTENCIES = """
SELECT count(*) FROM (SELECT batch FROM batches WHERE is_current EXCEPT SELECT batch FROM loaded) x
UNION ALL SELECT count(*) FROM (SELECT batch FROM loaded EXCEPT SELECT batch FROM batches WHERE is_current) x
UNION ALL SELECT count(*) FROM (SELECT batch FROM loaded EXCEPT SELECT batch FROM sessions_copies) x
UNION ALL SELECT count(*) FROM (SELECT batch FROM messages_copies EXCEPT SELECT batch FROM loaded) x
UNION ALL SELECT count(*) FROM sessions_copies s
  WHERE s.message_count <> (SELECT count(*) FROM messages_copies m WHERE m.batch = s.batch)
UNION ALL SELECT count(*) - count(DISTINCT event_id) FROM messages
UNION ALL SELECT count(*) - count(DISTINCT usage_id) FROM usage
UNION ALL SELECT (SELECT count(*) FROM usage) - (SELECT coalesce(sum(calls), 0) FROM usage_days)
"""
"""Each count is 0 if all batches are complete."""


class Soak:
    """Runs rounds and counts."""

    def __init__(self, server: Server, folder: Path, rng: random.Random) -> None:
        self._server, self._folder, self._random = server, folder, rng
        self.kills = self.ends = self.completed = self.lost = self.doubled = self.damaged = 0
        self._machines = [folder / "one", folder / "two"]
        for machine in self._machines:
            (machine / "home" / ".claude").mkdir(parents=True)
        self._url = self._database("soak_test")

    def _database(self, name: str) -> str:
        with psycopg.connect(self._server.url(), autocommit=True) as db:
            db.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())
            db.execute(f"CREATE DATABASE {name}".encode())
        return self._server.url(name)

    def round(self, number: int) -> None:
        """Change sessions, kill a push, and check the batches on the server."""
        for _ in range(self._random.randint(1, 3)):
            self._change()
        self._kill(self._random.choice(self._machines))
        self.damaged += not self._is_consistent()
        if number % ROUNDS_PER_CHECK == ROUNDS_PER_CHECK - 1:
            self.check()

    def _change(self) -> None:
        chance = self._random
        home = chance.choice(self._machines) / "home"
        session = f"{chance.randrange(12):08x}-0000-4000-8000-000000000000"
        path = claude_path(home, session)
        path.parent.mkdir(parents=True, exist_ok=True)
        there, kind = sorted(home.rglob("*.jsonl")), chance.random()
        if there and kind < 0.15:
            # Like a resumed session: the records of another one, and further records.
            path.write_bytes(chance.choice(there).read_bytes() + spelled(claude_lines(session, 900, 5, seed=1)))
        elif kind < 0.4:
            path.write_bytes(spelled(claude_lines(session, 0, chance.randint(1, 60), seed=chance.randrange(3))))
        else:
            with path.open("ab") as out:
                out.write(spelled(claude_lines(session, chance.randrange(500), chance.randint(1, 40))))

    def _kill(self, machine: Path) -> None:
        """Push in a process that is killed at a random moment; sometimes it ends before."""
        how = self._random.random()
        left = self._random.randint(0, 60) if how < 0.6 else -1
        process = os.fork()
        if not process:
            code = 1
            try:
                if left >= 0:
                    _kill_at_call(left)
                self._push(machine, self._url, self._random.choice((1, 1, 3)))
                code = 0
            finally:
                os._exit(code)
        if how >= 0.6:
            time.sleep(self._random.uniform(0, 0.6))
            if how >= 0.9:
                self._end_connections()
                self.ends += 1
            else:
                os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
        self.kills += os.WIFSIGNALED(status)
        self._wait_for_disconnects()

    def _end_connections(self) -> None:
        with psycopg.connect(self._server.url(), autocommit=True) as db:
            db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'soak_test'")

    def _wait_for_disconnects(self) -> None:
        """Wait until the server has noticed that its clients are gone."""
        with psycopg.connect(self._server.url(), autocommit=True) as db:
            for _ in range(400):
                row = db.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = 'soak_test'").fetchone()
                if row == (0,):
                    return
                time.sleep(0.025)

    def _push(self, machine: Path, url: str, count: int = 1) -> None:
        sources = [found.source for found in in_homes([Host.at(machine / "home")], ["claude-code"])]
        pushing.MAX_PORTION_SOURCES = 2
        pushing.push(url, sources, load_publisher("raw", folder=machine / "data"), workers=count)

    def _is_consistent(self) -> bool:
        with closing(connect(self._url)) as db:
            if schema.version_of(db) == 0:
                return True
            return not any(count for (count,) in db.execute(_INCONSISTENCIES.encode()).fetchall())

    def check(self) -> None:
        """Complete a push of each machine, and compare with a new database that got the same pushes without kills."""
        fresh = self._database("fresh")
        for machine in self._machines:
            self._push(machine, self._url)
            self._push(machine, fresh)
            self.completed += 1
        self.damaged += not self._is_consistent()
        for name in PUBLIC:
            there, expected = _rows(self._url, name), _rows(fresh, name)
            self.lost += (expected - there).total()
            self.doubled += (there - expected).total()

    def summary(self) -> str:
        """The counts as text."""
        return (
            f"{self.kills} kills, {self.ends} connections ended, {self.completed} completed pushes: "
            f"{self.lost} rows lost, {self.doubled} duplicate, {self.damaged} times inconsistent"
        )

    def is_clean(self) -> bool:
        """True where nothing was lost, duplicated or damaged."""
        return not (self.lost or self.doubled or self.damaged)


def _rows(url: str, name: str) -> Counter[tuple[Any, ...]]:
    with closing(connect(url, read_only=True)) as db:
        return Counter(db.execute(f"SELECT * FROM {name}".encode()).fetchall())


def _kill_at_call(left: int) -> None:
    """Kill this process at its n-th call to the server."""

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **options)

        return wrapped

    for kind, name in ((psycopg.Connection, "execute"), (psycopg.Cursor, "executemany"), (psycopg.Copy, "write")):
        setattr(kind, name, counted(getattr(kind, name)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run rounds until the number of kills is reached."""
    chosen = argument_parser(__doc__, 1_000).parse_args(arguments)
    if missing() is not None:
        raise SystemExit(missing())
    with tempfile.TemporaryDirectory(prefix="clew-push-soak-") as place, running("fsync=off") as server:
        return run(Soak(server, Path(place), random.Random(chosen.seed)), chosen.kills, report_every_rounds=100)


if __name__ == "__main__":
    sys.exit(main())
