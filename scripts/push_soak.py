"""Kill `clew push` at random moments, again and again, and count what was lost or doubled.

Between kills the sessions of two machines grow, are copied and rewritten. A push is killed at a random time, or
at a random statement that it sends; now and then the server ends its connection instead. After each kill, what is
there must be whole batches. After a push that ended, the server must show exactly what another shows that is new.
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
from scripts.soaking import options, run
from tests.catalog.worlds import claude_lines, claude_path, spelled
from tests.warehouse.postgres.server import Server, missing, running

ROUNDS_TO_A_CHECK = 25
_COUNTED = """
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
"""Each of these is nothing where what is there is whole."""


class Soak:
    """The rounds, and their account."""

    def __init__(self, server: Server, place: Path, chance: random.Random) -> None:
        self._server, self._place, self._chance = server, place, chance
        self.kills = self.ends = self.completed = self.lost = self.doubled = self.damaged = 0
        self._machines = [place / "one", place / "two"]
        for machine in self._machines:
            (machine / "home" / ".claude").mkdir(parents=True)
        self._url = self._database("soaked")

    def _database(self, name: str) -> str:
        with psycopg.connect(self._server.url(), autocommit=True) as db:
            db.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())
            db.execute(f"CREATE DATABASE {name}".encode())
        return self._server.url(name)

    def round(self, number: int) -> None:
        """Sessions change, a push is killed, and what it left is looked at."""
        for _ in range(self._chance.randint(1, 3)):
            self._change()
        self._kill(self._chance.choice(self._machines))
        self.damaged += not self._is_whole()
        if number % ROUNDS_TO_A_CHECK == ROUNDS_TO_A_CHECK - 1:
            self.check()

    def _change(self) -> None:
        chance = self._chance
        home = chance.choice(self._machines) / "home"
        session = f"{chance.randrange(12):08x}-0000-4000-8000-000000000000"
        path = claude_path(home, session)
        path.parent.mkdir(parents=True, exist_ok=True)
        there, kind = sorted(home.rglob("*.jsonl")), chance.random()
        if there and kind < 0.15:
            # As a resumed session does: what another says, and something of its own.
            path.write_bytes(chance.choice(there).read_bytes() + spelled(claude_lines(session, 900, 5, seed=1)))
        elif kind < 0.4:
            path.write_bytes(spelled(claude_lines(session, 0, chance.randint(1, 60), seed=chance.randrange(3))))
        else:
            with path.open("ab") as out:
                out.write(spelled(claude_lines(session, chance.randrange(500), chance.randint(1, 40))))

    def _kill(self, machine: Path) -> None:
        """Push in a process that does not live to its end, or hardly."""
        how = self._chance.random()
        left = self._chance.randint(0, 60) if how < 0.6 else -1
        process = os.fork()
        if not process:
            code = 1
            try:
                if left >= 0:
                    _die_at(left)
                self._push(machine, self._url, self._chance.choice((1, 1, 3)))
                code = 0
            finally:
                os._exit(code)
        if how >= 0.6:
            time.sleep(self._chance.uniform(0, 0.6))
            if how >= 0.9:
                self._end_connections()
                self.ends += 1
            else:
                os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
        self.kills += os.WIFSIGNALED(status)
        self._wait_for_silence()

    def _end_connections(self) -> None:
        with psycopg.connect(self._server.url(), autocommit=True) as db:
            db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'soaked'")

    def _wait_for_silence(self) -> None:
        """The server notices a dead client when it next talks to it."""
        with psycopg.connect(self._server.url(), autocommit=True) as db:
            for _ in range(400):
                row = db.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = 'soaked'").fetchone()
                if row == (0,):
                    return
                time.sleep(0.025)

    def _push(self, machine: Path, url: str, count: int = 1) -> None:
        sources = [found.source for found in in_homes([Host.at(machine / "home")], ["claude-code"])]
        pushing.MAX_PORTION_SOURCES = 2
        pushing.push(url, sources, load_publisher("raw", folder=machine / "data"), workers=count)

    def _is_whole(self) -> bool:
        with closing(connect(self._url)) as db:
            if schema.version_of(db) == 0:
                return True
            return not any(count for (count,) in db.execute(_COUNTED.encode()).fetchall())

    def check(self) -> None:
        """Let a push live, and compare with a server that was given everything at once, by nobody who was killed."""
        fresh = self._database("fresh")
        for machine in self._machines:
            self._push(machine, self._url)
            self._push(machine, fresh)
            self.completed += 1
        self.damaged += not self._is_whole()
        for name in PUBLIC:
            there, expected = _rows(self._url, name), _rows(fresh, name)
            self.lost += (expected - there).total()
            self.doubled += (there - expected).total()

    def account(self) -> str:
        """What came of it."""
        return (
            f"{self.kills} kills, {self.ends} connections ended, {self.completed} pushes that ended: "
            f"{self.lost} rows lost, {self.doubled} doubled, {self.damaged} times not whole"
        )

    def is_clean(self) -> bool:
        """True where nothing went wrong."""
        return not (self.lost or self.doubled or self.damaged)


def _rows(url: str, name: str) -> Counter[tuple[Any, ...]]:
    with closing(connect(url, read_only=True)) as db:
        return Counter(db.execute(f"SELECT * FROM {name}".encode()).fetchall())


def _die_at(left: int) -> None:
    """End this process at its n-th word to the server."""

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def said(*given: Any, **named: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*given, **named)

        return said

    for kind, name in ((psycopg.Connection, "execute"), (psycopg.Cursor, "executemany"), (psycopg.Copy, "write")):
        setattr(kind, name, counted(getattr(kind, name)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run rounds until there were so many kills."""
    chosen = options(__doc__, 1_000).parse_args(arguments)
    if missing() is not None:
        raise SystemExit(missing())
    with tempfile.TemporaryDirectory(prefix="clew-push-soak-") as place, running("fsync=off") as server:
        return run(Soak(server, Path(place), random.Random(chosen.seed)), chosen.kills, told_every=100)


if __name__ == "__main__":
    sys.exit(main())
