"""Measures the HTML site of an agent's sessions, beside other tools and `orjson.loads` of the same bytes.

`--peers PYTHON` names the interpreter of an environment with `claude-code-transcripts` or `claude-code-log`. They write
the same sessions, sub-agents included, in the same run. Each gets a copy of the sessions, because claude-code-log keeps
a cache beside them. Written pages are counted, because a tool may write fewer. claude-code-log also writes all sessions
of a project as one page, unless this is switched off: both are measured.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.export import decode_lines
from benchmarks.measure import Cost, Options, agent_files, alternate, best, measure_process, timed, total_bytes

_UNMASKED, _MASKED = "clew", "clew, masked"
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
"""The arguments of each program, by its name and a note on its options."""


def report(options: Options) -> Iterator[str]:
    """The lines of the report."""
    files = agent_files(options.home, options.agent)
    yield f"html: {len(files)} files of {options.agent}, {total_bytes(files) / 10**6:.1f} MB, best of {options.rounds}"
    peers = [name for name in _PEERS if options.peers and (options.peers.parent / _program(name)).is_file()]
    written: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as name:
        folder = Path(name)
        _compile_programs(options, folder, files, peers)
        first, *others = alternate(
            options.rounds,
            lambda: timed(lambda: decode_lines(files)),
            lambda: _site(options, folder, "none", written),
            lambda: _site(options, folder, "secrets", written),
            *(_peer(options, folder, name, written) for name in peers),
        )
    costs = dict(zip((_UNMASKED, _MASKED, *peers), map(best, others), strict=True))
    yield f"  {'floor, orjson.loads of each line':34}{best(first)}"
    for name, cost in costs.items():
        yield f"  {name:34}{cost}  {written[name]}"
        if name in peers:
            yield from (f"    {_ratio(cost, costs[ours])} of {ours}" for ours in (_UNMASKED, _MASKED))


def _ratio(cost: Cost, ours: Cost) -> str:
    over = cost.over(ours)
    return f"{over.wall:.1f} times the wall time, {over.cpu:.1f} times the processor time"


def _program(name: str) -> str:
    return name.partition(",")[0]


def _site(options: Options, folder: Path, masking: str, written: dict[str, str]) -> Cost:
    command = [sys.executable, "-c", _CLEW, "--home", str(options.home), "export", "--agent", options.agent]
    name = _UNMASKED if masking == "none" else _MASKED
    return _measure_command(folder, name, lambda out: [*command, "--redact", masking, "--site", str(out)], written)


def _peer(options: Options, folder: Path, name: str, written: dict[str, str]) -> Callable[[], Cost]:
    assert options.peers is not None
    program = str(options.peers.parent / _program(name))

    def measured() -> Cost:
        copy = Path(tempfile.mkdtemp(prefix="copy-", dir=folder))
        shutil.copytree(options.home / ".claude", copy / ".claude", copy_function=os.link)
        return _measure_command(folder, name, lambda out: [program, *_PEERS[name](copy, out)], written)

    return measured


def _compile_programs(options: Options, folder: Path, files: Sequence[Path], peers: Sequence[str]) -> None:
    """Run each program on the smallest session, so that its bytecode is cached before the measurement."""
    smallest = min(files, key=lambda path: path.stat().st_size)
    small = options._replace(home=folder / "small")
    copy = small.home / smallest.relative_to(options.home)
    copy.parent.mkdir(parents=True)
    shutil.copy(smallest, copy)
    for masking in ("none", "secrets"):
        _site(small, folder, masking, {})
    for name in peers:
        _peer(small, folder, name, {})()


def _measure_command(folder: Path, name: str, command: Callable[[Path], list[str]], written: dict[str, str]) -> Cost:
    """Measure a command that writes pages to a new folder, with a HOME of its own for caches.

    Output is kept until the end of the benchmark: creating files is slower in a file system that has just deleted many.
    """
    out = Path(tempfile.mkdtemp(prefix="out-", dir=folder)) / "pages"
    (folder / "home").mkdir(exist_ok=True)
    cost = measure_process(command(out), home=folder / "home")
    pages = list(out.rglob("*.html"))
    written[name] = f"{len(pages)} pages, {total_bytes(pages) / 10**6:.1f} MB"
    return cost
