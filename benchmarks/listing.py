"""`clew list --json` of an agent's sessions, with no cache, against a process that decodes their lines with `json`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from benchmarks.measure import Options, agent_files, best, in_turn, process, total

CLEW = "from clew.cli.start import run; run()"
FLOOR = """
import json, sys
for path in sys.stdin.read().split("\\0"):
    with open(path, "rb") as stream:
        for line in stream if path.endswith(".jsonl") else (stream.read(),):
            try:
                json.loads(line)
            except ValueError:
                continue
"""


def report(options: Options) -> Iterator[str]:
    """The lines of the report."""
    home = str(options.home)
    files = agent_files(options.home, options.agent)
    ours_command = [sys.executable, "-c", CLEW, "list", "--json", "--home", home, "--agent", options.agent]
    floor_command = [sys.executable, "-c", FLOOR]
    names = "\0".join(map(str, files)).encode()
    floors, listings = in_turn(options.rounds, lambda: process(floor_command, names), lambda: process(ours_command))
    floor, ours = best(floors), best(listings)
    ratio = ours.over(floor)
    megabytes = total(files) / 10**6
    what = f"{len(files)} files of {options.agent}, {megabytes:.1f} MB"
    yield f"listing: {what}, whole processes, best of {options.rounds}"
    yield f"  floor, json.loads of each line    {floor}"
    yield f"  clew list --json                  {ours}"
    yield f"  time as a multiple of the floor: {ratio.wall:.2f} wall, {ratio.cpu:.2f} cpu"
