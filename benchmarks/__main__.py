"""python -m benchmarks [NAME ...]: run all benchmarks, or those named, and print their results."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from benchmarks.corpus import corpus, parse_size
from benchmarks.measure import Options

NAMES = ("archive", "export", "html", "mcp", "memory", "redaction", "store", "web")
_NEED_HOME = {"archive", "export", "html", "mcp", "web"}


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, make a home to measure on, and run the benchmarks."""
    chosen = _parser().parse_args(arguments)
    names = chosen.names or list(NAMES)
    for name in names:
        if name not in NAMES:
            raise SystemExit(f"no benchmark {name!r}; there are {', '.join(NAMES)}")
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores, load {_load()}")
    if not _NEED_HOME.intersection(names):
        _run(names, _options(chosen, Path()))
        return
    with corpus(chosen.home, chosen.size) as (home, origin):
        print(f"home: {origin}")
        _run(names, _options(chosen, home))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(NAMES)}; default: all")
    parser.add_argument("--home", type=Path, metavar="DIR", help="measure on this home instead of a generated one")
    parser.add_argument("--agent", default="claude-code", help="measure sessions of this agent")
    parser.add_argument("--size", type=parse_size, default=parse_size("200MB"), help="size of the generated home")
    parser.add_argument("--rounds", type=int, default=3, help="repeat so often; the best result counts")
    parser.add_argument(
        "--session", type=parse_size, default=parse_size("30MB"), help="size of the small session of `memory`"
    )
    parser.add_argument(
        "--peers", type=Path, metavar="PYTHON", help="interpreter of an environment with the tools to compare with"
    )
    return parser


def _options(chosen: argparse.Namespace, home: Path) -> Options:
    return Options(home, chosen.rounds, chosen.session, chosen.agent, chosen.peers)


def _run(names: Sequence[str], options: Options) -> None:
    for name in names:
        print()
        for line in import_module(f"benchmarks.{name}").report(options):
            print(line, flush=True)


def _load() -> str:
    try:
        return " ".join(f"{load:.2f}" for load in os.getloadavg())
    except OSError:
        return "unknown"


if __name__ == "__main__":
    main()
