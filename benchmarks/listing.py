"""`clew list --json` over a home, with no cache, against a process that decodes every line with `json`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from benchmarks.measure import Options, best, claude_files, in_turn, process, total

CLEW = "from clew.cli import main; main()"
FLOOR = """
import json, sys
from pathlib import Path
for path in sorted((Path(sys.argv[1]) / ".claude" / "projects").rglob("*.jsonl")):
    with path.open("rb") as stream:
        for line in stream:
            try:
                json.loads(line)
            except ValueError:
                continue
"""


def report(options: Options) -> Iterator[str]:
    """The lines of the report."""
    home = str(options.home)
    files = claude_files(options.home)
    ours_command = [sys.executable, "-c", CLEW, "list", "--json", "--home", home]
    floor_command = [sys.executable, "-c", FLOOR, home]
    floors, listings = in_turn(options.rounds, lambda: process(floor_command), lambda: process(ours_command))
    floor, ours = best(floors), best(listings)
    ratio = ours.over(floor)
    megabytes = total(files) / 10**6
    yield f"listing: {len(files)} Claude files, {megabytes:.1f} MB, whole processes, best of {options.rounds}"
    yield f"  floor, json.loads of each line    {floor}"
    yield f"  clew list --json                  {ours}"
    yield f"  time as a multiple of the floor: {ratio.wall:.2f} wall, {ratio.cpu:.2f} cpu"
