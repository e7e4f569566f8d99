"""Measures the store: appends, growth, and opening a long session.

Appends are compared with a loop that writes (and syncs) the same lines; opening with `json.loads` of each line.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.measure import Options
from clew.store import Draft, MessageBody, MessageRecord, Session, Store, ToolCall, ToolResult, Usage
from clew.store.layout import MESSAGES, Durability

SYNCED_APPENDS, UNSYNCED_APPENDS = 400, 20_000
LONG_SESSION_MESSAGES, TIMED_MESSAGES = 100_000, 1_000
_WORDS = "the tide rises twice a day and so does the question of how high it will come at the old harbour wall "

_USAGE = Usage(input_tokens=1200, output_tokens=80, cache_read_tokens=900)


def report(options: Options) -> Iterator[str]:
    """The lines of the report."""
    scale = 1.0 if options.session_bytes >= 1_000_000 else 0.01
    with tempfile.TemporaryDirectory(prefix="clew-store-") as folder:
        place = Path(folder)
        yield f"store: blocks of appends and of plain writes in turn, {options.rounds} rounds; synced: means, else best"
        yield from _appends(place, "disk", 20, int(SYNCED_APPENDS * scale) * options.rounds)
        yield from _appends(place, "system", 500, int(UNSYNCED_APPENDS * scale) * options.rounds)
        yield from _appends(place, "system", 500, int(UNSYNCED_APPENDS * scale) * options.rounds, together=100)
        yield from _long(place, int(LONG_SESSION_MESSAGES * scale), int(TIMED_MESSAGES * scale), options.rounds)


def _appends(folder: Path, level: Durability, block: int, count: int, together: int = 1) -> Iterator[str]:
    """Time blocks of appends, and plain writes of the same lines in turn, so that both meet the same load.

    Lines and drafts are made before the clock starts.
    """
    session = Store(folder, durability=level).session(f"{level}-{together}")
    session.user("the first message creates the folder and the metadata")
    log = (session.folder / MESSAGES).open("rb")
    descriptor = os.open(folder / f"plain-{level}-{together}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    plain, ours = [], []
    for _ in range(max(1, count // block)):
        drafts = [_draft(number) for number in range(block)]
        log.seek(0, os.SEEK_END)
        ours.append(_timed(lambda drafts=drafts: _append(session, drafts, together)))  # type: ignore[misc]
        lines = log.read().splitlines(keepends=True)
        assert len(lines) == block
        plain.append(_timed(lambda lines=lines: _write_plain(descriptor, lines, level)))  # type: ignore[misc]
    session.close()
    log.close()
    os.close(descriptor)
    # A sync takes between 0.1 ms and several ms, so that the best or the median would be chance.
    typical: Callable[[list[float]], float] = statistics.fmean if level == "disk" else min
    floor, cost = typical(plain) / block, typical(ours) / block
    name = "write and fsync" if level == "disk" else "write"
    how = f"durability {level}" + (f", {together} at once" if together > 1 else "")
    yield f"  plain {name:<30} {floor * 1e6:9.1f} us a record"
    yield f"  clew, {how:<29} {cost * 1e6:9.1f} us a record"
    goal = " (goal 0.75)" if level == "disk" else ""
    yield f"  throughput as a share of plain writes: {floor / cost:.2f}{goal}"


def _timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _append(session: Session, drafts: list[Draft], together: int = 1) -> None:
    """Append drafts one by one, or several at once."""
    if together == 1:
        for draft in drafts:
            session.append(draft)
    else:
        for start in range(0, len(drafts), together):
            session.extend(drafts[start : start + together])


def _draft(number: int) -> Draft:
    """A message of a conversation: prompt, call, result, reply, in turn."""
    words, call, step = _WORDS[number % 60 :], f"call_{number // 4}", number % 4
    if step == 0:
        return Draft(MessageRecord(type="user", uuid="", message=MessageBody(role="user", content=words)))
    if step == 1:
        calls = [ToolCall(id=call, name="bash", arguments={"command": "ls"})]
        said = MessageBody(role="assistant", content="I look.", tool_calls=calls)
        return Draft(MessageRecord(type="assistant", uuid="", message=said, usage=_USAGE))
    if step == 2:
        results = [ToolResult(tool_call_id=call, tool_name="bash", content=_WORDS)]
        return Draft(MessageRecord(type="tool_result", uuid="", tool_results=results))
    said = MessageBody(role="assistant", content=words * 2)
    return Draft(MessageRecord(type="assistant", uuid="", message=said, usage=_USAGE))


def _write_plain(descriptor: int, lines: list[bytes], level: str) -> None:
    write, sync = os.write, os.fsync
    if level == "disk":
        for line in lines:
            write(descriptor, line)
            sync(descriptor)
    else:
        for line in lines:
            write(descriptor, line)


def _long(folder: Path, count: int, edge: int, rounds: int) -> Iterator[str]:
    """Compare the last appends to a long session with the first, and time opening it."""
    session = Store(folder, durability="system").session("long")
    session.user("the first message creates the folder and the metadata")
    costs = []
    for _ in range(max(1, count // edge)):
        drafts = [_draft(number) for number in range(edge)]
        costs.append(_timed(lambda drafts=drafts: _append(session, drafts)))  # type: ignore[misc]
    session.close()
    # The best of several blocks at each end, so that a busy moment is not taken for growth.
    few = max(1, min(10, len(costs) // 2))
    first, last = min(costs[:few]), min(costs[-few:])
    path = session.folder / MESSAGES
    size = path.stat().st_size / 1e6
    yield f"  {count:,} messages, {size:.1f} MB: first {edge:,} in {first * 1e3:.1f} ms, last in {last * 1e3:.1f} ms"
    yield f"  last over first: {last / first:.2f} (goal at most 1.2)"
    floor = min(_timed(lambda: _parse(path)) for _ in range(rounds))
    ours = min(_timed(lambda: Session(session.folder).path()) for _ in range(rounds))
    reopened = min(_timed(lambda: _reopen(session.folder)) for _ in range(rounds))
    yield f"  floor, json.loads of each line      {floor * 1e3:9.1f} ms"
    yield f"  clew, opened, and its active path   {ours * 1e3:9.1f} ms, {floor / ours:.1f} times as fast (goal 3)"
    yield f"  clew, opened and appended to        {reopened * 1e3:9.1f} ms"


def _parse(path: Path) -> None:
    with path.open("rb") as stream:
        for line in stream:
            json.loads(line)


def _reopen(folder: Path) -> None:
    with Session(folder) as session:
        session.user("once more")
