"""How long `clew --help` takes, against an interpreter that does nothing, and what it must not load for it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from benchmarks.listing import CLEW
from benchmarks.measure import Cost, Options, in_turn, median, process

HEAVY = ("msgspec", "rich", "zstandard", "platformdirs", "orjson", "sqlite3", "asyncio", "clew.agents.claude_code")
_LOADED = """
import sys
sys.argv[1:] = ["--help"]
from clew.cli.start import run
try:
    run()
except SystemExit:
    pass
print(*sys.modules, file=sys.stderr)
"""


def report(options: Options) -> Iterator[str]:
    """The lines of the report."""
    bare_command = [sys.executable, "-c", "pass"]
    help_command = [sys.executable, "-c", CLEW, "--help"]
    bare, helped = in_turn(options.starts, lambda: process(bare_command), lambda: process(help_command))
    floor, ours = median(bare), median(helped)
    yield f"start: whole processes, median of {options.starts}"
    yield f"  floor, python -c pass             {floor}"
    yield f"  clew --help                       {ours}"
    more = Cost(1000 * (ours.wall - floor.wall), 1000 * (ours.cpu - floor.cpu))
    yield f"  on top of the floor: {more.wall:.0f} ms wall, {more.cpu:.0f} ms cpu"
    modules = loaded()
    found = [name for name in HEAVY if name in modules]
    yield f"  {len(modules)} modules loaded; of {', '.join(HEAVY)}: {', '.join(found) or 'none'}"


def loaded() -> set[str]:
    """The modules that are there after `clew --help`."""
    done = subprocess.run([sys.executable, "-c", _LOADED], check=True, capture_output=True, text=True)
    return set(done.stderr.split())
