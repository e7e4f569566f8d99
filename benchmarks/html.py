"""HTML pages of every session of an agent, as a site, against nothing but `orjson.loads` of the same bytes.

`--peers PYTHON` names the interpreter of an environment in which `claude-code-transcripts` or `claude-code-log` are
installed: they write the same sessions, sub-agents included, in the same run, one after the other. Each gets a copy of
the sessions, because one of them keeps a cache beside them; what each wrote is counted, because it may be less. One of
them writes all sessions of a project as one text too, unless it is told not to: both ways are measured.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.export import load
from benchmarks.measure import Cost, Options, agent_files, best, in_turn, process, timed, total

_OURS, _MASKED = "clew", "clew, masked"
_CLEW = "import sys; from clew.cli.main import run; sys.exit(run())"
_PEERS: dict[str, Callable[[Path, Path], list[str]]] = {
    "claude-code-transcripts": lambda home, out: [
        "all", "--include-agents", "-q", "-s", str(home / ".claude/projects"), "-o", str(out)
    ],
    "claude-code-log": lambda home, out: [
        "convert", str(home / ".claude/projects"), "--all-projects", "-o", str(out)
    ],
    "claude-code-log, no combined text": lambda home, out: [
        "convert", str(home / ".claude/projects"), "--all-projects", "--combined", "no", "-o", str(out)
    ],
}  # fmt: skip
"""By the name of the program, and what is told about how it is called."""


def report(options: Options) -> Iterator[str]:
    """The lines of the report."""
    files = agent_files(options.home, options.agent)
    yield f"html: {len(files)} files of {options.agent}, {total(files) / 10**6:.1f} MB, best of {options.rounds}"
    peers = [name for name in _PEERS if options.peers and (options.peers.parent / _program(name)).is_file()]
    written: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as folder:
        room = Path(folder)
        _warm(options, room, files, peers)
        first, *others = in_turn(
            options.rounds,
            lambda: timed(lambda: load(files)),
            lambda: _site(options, room, "none", written),
            lambda: _site(options, room, "secrets", written),
            *(_peer(options, room, name, written) for name in peers),
        )
    costs = dict(zip((_OURS, _MASKED, *peers), map(best, others), strict=True))
    yield f"  {'floor, orjson.loads of each line':34}{best(first)}"
    for name, cost in costs.items():
        yield f"  {name:34}{cost}  {written[name]}"
        if name in peers:
            yield from (f"    {_ratio(cost, costs[ours])} of {ours}" for ours in (_OURS, _MASKED))


def _ratio(cost: Cost, ours: Cost) -> str:
    over = cost.over(ours)
    return f"{over.wall:.1f} times the wall time, {over.cpu:.1f} times the processor time"


def _program(name: str) -> str:
    return name.partition(",")[0]


def _site(options: Options, room: Path, masking: str, written: dict[str, str]) -> Cost:
    command = [sys.executable, "-c", _CLEW, "--home", str(options.home), "export", "--agent", options.agent]
    name = _OURS if masking == "none" else _MASKED
    return _fresh(room, name, lambda out: [*command, "--redact", masking, "--site", str(out)], written)


def _peer(options: Options, room: Path, name: str, written: dict[str, str]) -> Callable[[], Cost]:
    assert options.peers is not None
    program = str(options.peers.parent / _program(name))

    def measured() -> Cost:
        copy = Path(tempfile.mkdtemp(prefix="copy-", dir=room))
        shutil.copytree(options.home / ".claude", copy / ".claude", copy_function=os.link)
        return _fresh(room, name, lambda out: [program, *_PEERS[name](copy, out)], written)

    return measured


def _warm(options: Options, room: Path, files: Sequence[Path], peers: Sequence[str]) -> None:
    """Have each program write the smallest session once: it is compiled then, as one that is installed is."""
    smallest = min(files, key=lambda path: path.stat().st_size)
    small = options._replace(home=room / "small")
    copy = small.home / smallest.relative_to(options.home)
    copy.parent.mkdir(parents=True)
    shutil.copy(smallest, copy)
    for masking in ("none", "secrets"):
        _site(small, room, masking, {})
    for name in peers:
        _peer(small, room, name, {})()


def _fresh(room: Path, name: str, command: Callable[[Path], list[str]], written: dict[str, str]) -> Cost:
    """The cost of a command that writes to a folder which is not there yet; what is kept for later goes elsewhere.

    Nothing is removed before the end, so that there must be room for all that is written: where many files were a
    minute ago, a file system takes longer to make new ones.
    """
    out = Path(tempfile.mkdtemp(prefix="out-", dir=room)) / "pages"
    (room / "home").mkdir(exist_ok=True)
    cost = process(command(out), home=room / "home")
    pages = list(out.rglob("*.html"))
    written[name] = f"{len(pages)} pages, {total(pages) / 10**6:.1f} MB"
    return cost
