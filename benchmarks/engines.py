"""One home on four engines: what its rows take there, and whether ten statistics are equal to the last digit.

The catalog is the reference. The lake is asked through DuckDB and through a Spark cluster of one master and two
workers, of which one is killed after the first answer; PostgreSQL is a server of its own. What is missing here is left
out, and said.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import postgres_server, spark_cluster
from benchmarks.asking import TEN
from benchmarks.measure import Cost, Options, process

Answers = dict[str, Any]


def report(options: Options) -> Iterator[str]:
    """The lines of the report."""
    folder = Path(tempfile.mkdtemp(prefix="clew-engines-"))
    try:
        yield from _Run(options.home, folder).lines()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Run:
    """Everything in a folder of its own."""

    def __init__(self, home: Path, folder: Path) -> None:
        self._home, self._folder = home, folder
        self._env = {"HOME": str(home), "CLEW_DATA_DIR": str(folder / "data")}
        self._clew = [sys.executable, "-m", "clew"]

    def lines(self) -> Iterator[str]:
        """Rows first, then answers."""
        size = sum(path.stat().st_size for path in self._home.rglob("*") if path.is_file())
        cost = self._run("sync")
        messages, calls = (self._count(table) for table in ("messages", "usage"))
        yield f"engines: {size / 1e6:,.1f} MB, {messages:,} messages, {calls:,} calls"
        yield self._row("catalog", cost, _bytes(self._folder / "data"), messages)
        for level in ("metrics", "redacted", "raw"):
            cost = self._run("lake", "write", str(self._folder / level), "--level", level)
            yield self._row(f"lake, {level}", cost, _bytes(self._folder / level), messages)
        own, wall = self._asked("sqlite")
        yield f"  ten statistics, catalog   {wall:6.1f} s"
        yield self._compared("DuckDB over the lake", own, *self._asked(f"duckdb:{self._folder / 'raw'}"))
        yield from self._postgres(own, messages)
        yield from self._spark(own)

    def _postgres(self, own: Answers, messages: int) -> Iterator[str]:
        if (why := postgres_server.missing()) is not None:
            yield f"  PostgreSQL: {why}"
            return
        with postgres_server.running("shared_buffers=256MB", "max_wal_size=4GB") as server:
            cost = self._run("push", server.url(), "--level", "raw")
            yield self._row("PostgreSQL, raw", cost, _bytes(server.folder / "base" / "base"), messages)
            yield self._compared("PostgreSQL", own, *self._asked(server.url()))

    def _spark(self, own: Answers) -> Iterator[str]:
        if (why := spark_cluster.missing()) is not None:
            yield f"  Spark: {why}"
            return
        (self._folder / "spark").mkdir()
        with spark_cluster.cluster(self._folder / "spark") as cluster:
            engine = f"{cluster.url}{self._folder / 'raw'}"
            yield self._compared("Spark, two workers", own, *self._asked(engine, cluster))
            yield self._compared("Spark, one of them killed", own, *self._asked(engine, cluster, loses=True))

    def _run(self, *words: str) -> Cost:
        os.environ["CLEW_DATA_DIR"] = self._env["CLEW_DATA_DIR"]
        return process([*self._clew, *words], home=self._home)

    def _count(self, table: str) -> int:
        words = [*self._clew, "sql", f"SELECT count(*) AS n FROM {table}", "--json"]
        done = subprocess.run(words, env={**os.environ, **self._env}, check=True, capture_output=True)
        return int(json.loads(done.stdout)["n"])

    def _asked(
        self, engine: str, cluster: spark_cluster.Cluster | None = None, *, loses: bool = False
    ) -> tuple[Answers, float]:
        env = {**(cluster.env() if cluster else os.environ), **self._env}
        start = time.perf_counter()
        words = [sys.executable, "-m", "benchmarks.asking", engine, *TEN]
        asked = subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert asked.stdout is not None
        first = asked.stdout.readline()
        if loses and cluster is not None:
            cluster.kill(1)
        answers = dict(json.loads(line) for line in (first, *asked.stdout) if line.strip())
        asked.wait()
        return answers, time.perf_counter() - start

    def _row(self, name: str, cost: Cost, size: int, messages: int) -> str:
        return f"  {name:24} {cost}, {size / 1e6:8.1f} MB, {size / max(1, messages):6.0f} bytes a message"

    def _compared(self, name: str, own: Answers, answers: Answers, wall: float) -> str:
        equal = sum(answers.get(key) == rows for key, rows in own.items())
        return f"  ten statistics, {name:24} {wall:6.1f} s, {equal} of {len(own)} equal"


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
