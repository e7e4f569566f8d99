"""Measures `clew mcp` with the SDK's own client: its start, the answers of each tool, and its memory.

    python -m benchmarks mcp --home HOME

The home is synced before; `CLEW_DATA_DIR` keeps the catalog for the next run. The figures:

- Start: from before the process starts until it has answered `initialize`; and the part of it that Python needs to
  import the SDK alone, measured in a process of its own.
- Each tool: milliseconds from call to answer, for many different arguments: searches for words of the sessions, and
  sessions chosen at random, each of which is opened for the first time. The median and the 95th percentile.
- Memory: the largest resident memory of the server after all this.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from benchmarks.measure import Options
from clew import Library
from clew.catalog.sync_level import SyncLevel

_CLEW = "import sys; from clew.cli.main import run; sys.exit(run())"
CALLS = 40
"""Calls of each tool."""
QUERIES = "error test function return config file async import parser schema cache token retry index".split()


def report(options: Options) -> Iterator[str]:
    """Measure on a home, and return the lines of the report."""
    with Library(options.home).catalog(SyncLevel.TEXT):
        pass
    starts = sorted(anyio.run(_start, options.home) for _ in range(max(3, options.rounds)))
    imports = sorted(_import_seconds() for _ in starts)
    yield f"start            {starts[0]:.2f} s, of which importing the SDK {imports[0]:.2f} s"
    times, memory = anyio.run(_measure, options.home)
    for tool, seconds in times.items():
        slowest = statistics.quantiles(seconds, n=20)[-1]
        yield f"{tool:16} {1000 * statistics.median(seconds):5.0f} ms median {1000 * slowest:6.0f} ms p95"
    yield f"memory           {memory >> 20} MB"


def _import_seconds() -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import mcp.server.stdio, mcp.server.lowlevel"], check=True)
    return time.perf_counter() - begin


@asynccontextmanager
async def _connect(home: Path) -> AsyncIterator[tuple[Any, int]]:
    """A session of the SDK's client, and the id of the server's process."""
    from mcp import ClientSession, StdioServerParameters, stdio_client

    with tempfile.TemporaryDirectory() as folder:
        process_id = Path(folder, "id")
        code = f"import os; open({str(process_id)!r}, 'w').write(str(os.getpid())); {_CLEW}"
        server = StdioServerParameters(
            command=sys.executable, args=["-c", code, "--home", str(home), "mcp"], env=dict(os.environ)
        )
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            await session.initialize()
            yield session, int(process_id.read_text())


async def _start(home: Path) -> float:
    begin = time.perf_counter()
    async with _connect(home):
        return time.perf_counter() - begin


async def _measure(home: Path) -> tuple[dict[str, list[float]], int]:
    """The seconds of all calls by tool, and the largest resident memory of the server in bytes."""
    choose = random.Random(7)
    with tempfile.TemporaryDirectory() as folder:
        calls = list(_calls(home, Path(folder), choose))
        choose.shuffle(calls)
        times: dict[str, list[float]] = {}
        async with _connect(home) as (session, process_id):
            await session.call_tool("list_sessions", {"limit": 1})
            for tool, arguments in calls:
                begin = time.perf_counter()
                result = await session.call_tool(tool, arguments)
                times.setdefault(tool, []).append(time.perf_counter() - begin)
                assert not result.is_error or "no record" in result.content[0].text, (tool, arguments, result)
            return dict(sorted(times.items())), _peak_memory(process_id)


def _calls(home: Path, folder: Path, choose: random.Random) -> Iterator[tuple[str, dict[str, Any]]]:
    """Calls of every tool."""
    library = Library(home, sync=False)
    with library.catalog() as catalog:
        rows = catalog.db.execute("SELECT agent || ':' || native_id, project FROM session WHERE is_agent_session = 0")
        sessions = rows.fetchall()
        files = catalog.db.execute(
            "SELECT DISTINCT path FROM file_changes WHERE path LIKE '/%' ORDER BY path LIMIT 2000"
        ).fetchall()
    file = folder / "now.py"
    file.write_text("import os\n")
    for number in range(CALLS):
        (session, project), (path,) = choose.choice(sessions), choose.choice(files)
        query = " ".join(choose.sample(QUERIES, 1 + number % 2))
        yield "search", {"query": query, **({"project": project} if number % 3 == 0 and project else {})}
        yield "list_sessions", {"sort": choose.choice(["time", "cost"]), "limit": 20}
        yield "show", {"session": session, "detail": choose.choice(["conversation", "full"])}
        yield "files", {"session": choose.choice(sessions)[0]}
        yield "todos", {"session": choose.choice(sessions)[0]}
        yield "blame", {"path": str(file), "recorded_path": path}
        yield "stats", {"by": choose.choice(["day", "model", "project"]), "since": "30d"}
        yield "resume_command", {"session": choose.choice(sessions)[0]}


def _peak_memory(process_id: int) -> int:
    """The largest resident memory of a process in bytes (Linux)."""
    lines = Path(f"/proc/{process_id}/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
