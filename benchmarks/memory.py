"""Measures the peak memory of reading, verifying, exporting, converting and rendering one session.

Each task runs in a process of its own, on three sessions: a small one, one with ten times as many messages, and one
with messages ten times as long. Only the second may need more memory, and only a little per message.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from benchmarks.measure import Options
from benchmarks.sessions import file_name, write_session
from tests.memory import peak_bytes

_FACTOR = 10
_CONVERT_TO = {"claude-code": "codex", "codex": "gemini", "gemini": "claude-code"}
"""The target agent of a conversion, by the agent of the session."""


class Peak(NamedTuple):
    """The peak memory of a process, and the messages that it counted (0 if it did not count)."""

    bytes: int
    messages: int


def report(options: Options) -> Iterator[str]:
    """The lines of the report."""
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as folder:
        agent = options.agent
        small, many, long = (Path(folder) / file_name(agent, name) for name in ("small", "many", "long"))
        turns = write_session(agent, small, size=options.session_bytes)
        write_session(agent, many, turns=turns * _FACTOR)
        write_session(agent, long, turns=turns, scale=_FACTOR)
        peaks = {name: [peak_of(name, path) for path in (small, many, long)] for name in TASKS if name != "nothing"}
        sizes = [path.stat().st_size / 10**6 for path in (small, many, long)]
    floor = f"floor: everything imported, nothing read {_floor():.1f}"
    yield f"memory: one session of {agent}, peak of a process in MB; {floor}"
    columns = zip(("small", f"{_FACTOR} x messages", f"{_FACTOR} x length"), sizes, peaks["read"], strict=True)
    for name, size, peak in columns:
        yield f"  {name:14}{size:7.1f} MB {peak.messages:9,} messages"
    further = peaks["read"][1].messages - peaks["read"][0].messages
    for name, (first, more, longer) in peaks.items():
        each = (more.bytes - first.bytes) / further
        figures = " ".join(f"{peak.bytes / 10**6:7.1f}" for peak in (first, more, longer))
        yield f"  {name:8}{figures}   {each:4.0f} bytes for each further message"


def _floor() -> float:
    return peak_of("nothing", Path(os.devnull)).bytes / 10**6


def peak_of(task: str, path: Path) -> Peak:
    """Run a task in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.memory", task, str(path)]
    done = subprocess.run(command, check=True, capture_output=True, cwd=Path(__file__).resolve().parent.parent)
    return Peak(**json.loads(done.stdout))


def _read(path: Path) -> int:
    from clew import Library

    return sum(1 for _ in Library().get(str(path)).messages)


def _verify(path: Path) -> int:
    from clew import Library, verify

    session = Library().get(str(path))
    proof = verify(session.agent, session.source)
    assert proof.holds
    return 0


def _export(path: Path) -> int:
    from clew import Library
    from clew.export.document import write_document

    gc.disable()
    session = Library().get(str(path))
    with open(os.devnull, "wb") as out:
        write_document(session.agent, session.source, out, timestamp="2026-01-01T00:00:00Z")
    return 0


def _page(path: Path) -> int:
    from clew import Library
    from clew.agents.base import messages_of, session_object
    from clew.export.html import write_html
    from clew.render.branching import Forks

    gc.disable()
    session = Library().get(str(path))
    agent, source = session.agent, session.source
    facts = agent.facts(source)
    header, forks = session_object(agent, source, facts), Forks.of_tree(facts.tree)
    with open(os.devnull, "wb") as out:
        write_html(header, messages_of(agent.events(source)), out, forks=forks)
    return 0


def _convert(path: Path) -> int:
    from clew import Library
    from clew.convert.prepare import prepare

    session = Library().get(str(path))
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as home:
        prepare(session.agent, session.source, _CONVERT_TO[session.agent.id]).write(Path(home), allow_loss=True)
    return 0


def _nothing(path: Path) -> int:
    for name in ("clew.library", "clew.export.verify"):
        import_module(name)
    from clew.agents import registry

    registry.load_all()
    return 0


TASKS: dict[str, Callable[[Path], int]] = {
    "nothing": _nothing,
    "read": _read,
    "verify": _verify,
    "export": _export,
    "convert": _convert,
    "page": _page,
}


def _main(task: str, path: str) -> None:
    messages = TASKS[task](Path(path))
    print(json.dumps({"bytes": peak_bytes(), "messages": messages}))


if __name__ == "__main__":
    _main(*sys.argv[1:])
