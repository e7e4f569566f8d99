"""Kill `clew record` at random moments, and count lost, duplicate and torn records.

Each round starts one to eight writers on one session, sends them messages, kills each of them at a random moment, and
compares the log with what they acknowledged. About half of the writers send messages with ids; those that were not
acknowledged are sent again in the next round with the same ids. The other writers leave the ids to the store. A reader
reads the log meanwhile and must find complete records only.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts import soak_runner
from scripts.soak_runner import argument_parser

ROUNDS_PER_SESSION = 25


class Writer:
    """A process that runs `clew record`, with the messages for it."""

    def __init__(self, folder: Path, session: str, name: str, messages: list[bytes]) -> None:
        self.name, self.messages, self.sent = name, messages, 0
        inward, self._feed = os.pipe()
        self._answers, outward = os.pipe()
        self.process = os.fork()
        if not self.process:
            os.dup2(inward, 0)
            os.dup2(outward, 1)
            os.closerange(3, 200)
            run(["record", "--store", str(folder), "--session", session])
        os.close(inward)
        os.close(outward)

    def feed(self, count: int) -> None:
        """Send the next messages."""
        for message in self.messages[self.sent : self.sent + count]:
            os.write(self._feed, message)
        self.sent = min(len(self.messages), self.sent + count)

    def kill(self) -> list[tuple[str, str]]:
        """Kill the process; returns what it acknowledged, in order: the name and the id of each message."""
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        os.close(self._feed)
        with open(self._answers, "rb") as answers:
            whole = answers.read().split(b"\n")[:-1]
        ids = [json.loads(line)["uuid"] for line in whole]
        return list(zip(map(name_of, map(json.loads, self.messages)), ids, strict=False))


def name_of(message: dict[str, str]) -> str:
    """Return the name of a message: its first word."""
    return message["content"].partition(" ")[0]


def run(arguments: list[str]) -> None:
    """Run the command line in a forked process; never returns."""
    from clew.cli.main import main

    try:
        sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
        main(arguments)
    except SystemExit as stop:
        os._exit(stop.code if isinstance(stop.code, int) else 1)
    finally:
        os._exit(70)


class Soak:
    """Runs rounds and counts."""

    def __init__(self, folder: Path, writers: int, rng: random.Random) -> None:
        self._folder, self._max_writers, self._random = folder, writers, rng
        self.kills = self.acknowledged = self.lost = self.doubled = self.disordered = self.torn_reads = self.resent = 0
        self._session = ""
        self._acknowledged_messages: list[tuple[str, str]] = []
        self._unacknowledged: list[bytes] = []
        self._order: dict[str, list[str]] = {}
        self._again: set[str] = set()

    def round(self, number: int) -> None:
        """Start writers, send them messages and kill them."""
        session = self._session = f"session-{number // ROUNDS_PER_SESSION}"
        chance = self._random
        writers = [
            Writer(self._folder, session, f"{number}.{name}", self._messages(f"{number}.{name}"))
            for name in range(chance.randint(1, self._max_writers))
        ]
        started = time.monotonic()
        deadlines = {writer.name: started + chance.uniform(0, 0.12) for writer in writers}
        alive = list(writers)
        while alive:
            writer = chance.choice(alive)
            writer.feed(chance.randint(1, 3))
            if time.monotonic() >= deadlines[writer.name]:
                alive.remove(writer)
                self._kill(writer)
            if chance.random() < 0.02:
                self._read_log(session)
            time.sleep(chance.uniform(0, 0.001))
        if (number + 1) % ROUNDS_PER_SESSION == 0:
            self.check()

    def _messages(self, writer: str) -> list[bytes]:
        """Return new messages; if they have ids, after those that an earlier round sent without an answer."""
        has_ids = self._random.random() < 0.5
        again, self._unacknowledged = (
            (self._unacknowledged[:20], self._unacknowledged[20:]) if has_ids else ([], self._unacknowledged)
        )
        self.resent += len(again)
        self._again.update(json.loads(text)["uuid"] for text in again)
        names = [f"{writer}.{number}" for number in range(self._random.randint(1, 80))]
        self._order[writer] = names
        size = self._random.choice((10, 200, 3000))
        fresh = [
            {"role": "user", "content": f"{name} {'x' * size}"} | ({"uuid": name} if has_ids else {}) for name in names
        ]
        return [*again, *(json.dumps(message).encode() + b"\n" for message in fresh)]

    def _kill(self, writer: Writer) -> None:
        said = writer.kill()
        self.kills += 1
        self.acknowledged += len(said)
        self._acknowledged_messages += said
        sure = {name for name, _ in said}
        sent = ((json.loads(text), text) for text in writer.messages[: writer.sent])
        self._unacknowledged += [text for message, text in sent if "uuid" in message and message["uuid"] not in sure]

    def _read_log(self, session: str) -> None:
        """Read the log while it is written: every line up to the last line end must be a complete record."""
        log = self._log(session)
        if not log.exists():
            return
        raw = log.read_bytes()
        for line in raw[: raw.rfind(b"\n") + 1].splitlines():
            try:
                json.loads(line)
            except ValueError:
                self.torn_reads += 1

    def _log(self, session: str) -> Path:
        return self._folder / ".sage" / "sessions" / session / "messages.jsonl"

    def check(self) -> None:
        """Compare the log with what was acknowledged."""
        log = self._log(self._session)
        raw = log.read_bytes() if log.exists() else b""
        records = [json.loads(line) for line in raw[: raw.rfind(b"\n") + 1].splitlines()]
        names = [name_of(record["message"]) for record in records]
        counts, ids = Counter(names), dict(zip(names, (record["uuid"] for record in records), strict=True))
        self.lost += sum(1 for name, its in set(self._acknowledged_messages) if ids.get(name) != its)
        self.doubled += sum(count - 1 for count in counts.values())
        place = {name: at for at, name in enumerate(names)}
        for order in self._order.values():
            # A message that was sent again came from another writer.
            places = [place[name] for name in order if name in place and name not in self._again]
            self.disordered += places != sorted(places)
        self._acknowledged_messages, self._unacknowledged, self._order, self._again = [], [], {}, set()

    def summary(self) -> str:
        """Return the counts as text."""
        return (
            f"{self.kills} kills, {self.acknowledged} acknowledged, {self.resent} sent again: {self.lost} lost, "
            f"{self.doubled} duplicate, {self.disordered} out of order, {self.torn_reads} torn reads"
        )

    def is_clean(self) -> bool:
        """True where nothing was lost, duplicated, reordered or torn."""
        return not (self.lost or self.doubled or self.disordered or self.torn_reads)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run rounds until the number of kills is reached."""
    parser = argument_parser(__doc__, 10_000)
    parser.add_argument("--writers", type=int, default=8, help="at most so many at once")
    chosen = parser.parse_args(arguments)
    import clew.cli.command_record  # noqa: F401 - loaded once, before the writers are forked

    with tempfile.TemporaryDirectory(prefix="clew-soak-") as place:
        soak = Soak(Path(place), chosen.writers, random.Random(chosen.seed))
        return soak_runner.run(soak, chosen.kills, report_every_rounds=200)


if __name__ == "__main__":
    sys.exit(main())
