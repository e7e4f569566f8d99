"""Plain messages one right after the other: the quick way into the log, with little more to do than to write.

The first message goes the usual way, which looks at everything: the lock, the end of the log, whether somebody waits.
That holds for some milliseconds, as the lock is kept meanwhile, and time and surroundings hold for the rest of theirs.
So those that follow are put together from parts that are spelled already. What is not plain goes the usual way.
"""

from __future__ import annotations

import os
import sys
import time
import weakref
from collections.abc import Callable, Generator
from functools import partial
from types import GeneratorType
from typing import TypeAlias, cast

import msgspec
from msgspec import UNSET

from clew.errors import Busy, SourceUnreadable
from clew.io.records import MAX_RECORD_BYTES
from clew.model.json import JSON
from clew.store.context import Surroundings
from clew.store.drafts import Draft, Receipt, State
from clew.store.layout import OWN
from clew.store.log import Log, under_way
from clew.store.news import News
from clew.store.stamps import FIRST, Times
from clew.store.tree import MAIN
from clew.store.wire import MESSAGES, Context, MessageRecord

KEPT_FOR = 10
"""Milliseconds until somebody who waits for the lock is noticed."""
OPEN_FOR = 1000
"""Milliseconds until a message goes the usual way again, which renews the metadata where it is time to."""
FEW, SELDOM = 4, 64
"""Where fewer messages went the way, only every second one opens it, then every fourth, and at last every so many."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.00002, 0.001
_PATIENCE = 30.0
"""Seconds until a thread that appends is given up: at the end of a program it may never run again."""
_encode, _join = msgspec.json.Encoder().encode, b"".join
_OPENINGS = {kind: b'{"type":"%b","uuid":"' % kind.encode() for kind in MESSAGES}
_PARENT, _NUMBER, _CLOSE = b'","parentUuid":"', b',"isSidechain":false,"metadata":{"clew":{"seq":', b"}}}\n"

_Way: TypeAlias = "GeneratorType[Receipt | None, Draft, None]"
"""Takes drafts and gives receipts, or None and nothing done. As it runs for one thread at a time, it needs no guard."""


class Ended(Exception):
    """The way was open for long enough, or somebody else has written."""


_Moment: TypeAlias = tuple[float, float, bytes, bytes, str]
"""A millisecond, how it is spelled between the parent and the words or results of a message, and the folder."""


class Burst:
    """The quick way, for as long as it is open. Who closes it waits until nothing is under way there."""

    def __init__(self, log: Log, news: News, times: Times, surroundings: Surroundings, version: str) -> None:
        self.log, self.news, self.times = log, news, times
        self._surroundings = surroundings
        session = _encode(log.path.parent.name)
        self._place = b'","sessionId":%b,"version":%b,"context":' % (session, _encode(version))
        self._context: Context | None = None
        self._behind = b""
        """What stands behind the time of a message, in this context."""
        self._way: _Way | None = None
        self._last = self._looked = self._opened = self._eased = -1
        self._state, self._began, self._skipped, self._skips = State(), 0, 0, 1
        self._has_failed = False
        self._shut: Callable[[Draft], Receipt | None] = _closed
        """What is met where there is no quick way: nothing, or what is to be told first."""
        _BURSTS.add(self)
        self.add: Callable[[Draft], Receipt | None] = _closed
        """Append a message, if it is plain and the way is open; None, and nothing done, where not."""

    def open(self, record: MessageRecord, state: State, beginning: str) -> bool:
        """After a message went the usual way: open the quick one for those that follow.

        True means that the lock is kept from now on. A message that comes alone never keeps it.
        """
        milli = self.times.milli
        follows, self._last = 0 <= milli - self._last <= KEPT_FOR, milli
        if not follows or state.branch != MAIN or not state.is_tip or self.news.first_prompt is None:
            return False
        self._skipped += 1
        if self._skipped < self._skips:
            return False
        if not record.uuid.startswith(beginning) or not self.log.keep(self):
            return False
        todos = b',"todos":' + _encode(state.todos) if state.todos is not UNSET else b""
        self._opened = self._looked = milli
        self._state, self._began, self._skipped = state, state.seq, 0
        self._way = cast("_Way", _way(self, state, beginning, todos + _NUMBER))
        next(self._way)
        self.add = self._way.send
        return True

    def moment(self) -> _Moment:
        """Now; raises where the way ends."""
        now, context = self.times.now(), self._surroundings.now()
        milli = self._last = self.times.milli
        if not 0 <= milli - self._looked < KEPT_FOR:
            if not 0 <= milli - self._opened < OPEN_FOR or self.log.is_wanted():
                raise Ended
            self._looked = milli
        if not self.log.is_as_left():
            raise Ended
        if context is not self._context:
            self._context, self._behind = context, self._place + _encode(context)
        self.news.later, self.news.is_told = (now, context), False
        stamp = b'","timestamp":"' + now.encode() + self._behind
        return milli / 1000, (milli + 1) / 1000, stamp + b',"message":', stamp + b',"toolResults":', context.cwd

    def close(self) -> None:
        """For who holds the guard of the log; waits until nothing is under way there, but not for ever."""
        if self._way is None:
            return
        self.add, pause, latest = self._shut, _FIRST_PAUSE, time.monotonic() + _PATIENCE
        while not self._is_closed():
            self.refuse_own()
            if time.monotonic() > latest:
                raise Busy(f"{self.log.path}: another thread has been appending for more than {_PATIENCE:g} s")
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _is_closed(self) -> bool:
        """Close the way; False where a thread is under way there."""
        try:
            if self._way is not None:
                self._way.close()
        except ValueError:
            return False
        self._way, self.add = None, self._shut
        self._skips = min(2 * self._skips, SELDOM) if self._state.seq - self._began < FEW else 1
        return True

    def refuse_own(self) -> None:
        """A signal handler in the thread that is under way here would wait for itself."""
        way = self._way
        frame = sys._getframe() if way is not None and way.gi_running else None
        while way is not None and frame is not None:
            if frame is way.gi_frame:
                raise under_way(self.log.path)
            frame = frame.f_back

    def part_from_parent(self) -> None:
        """In a forked child: the thread that was under way there did not come along."""
        self._way, self.add = None, _closed

    def ease(self) -> bool:
        """Let go of a lock that was kept and not used since the last call; True when it is kept no longer."""
        log = self.log
        if not log.guard.acquire(blocking=False):
            return False
        try:
            if log.is_kept and log.end == self._eased and self._is_closed():
                log.finish()
            self._eased, self._has_failed = log.end, False
            return not log.is_kept
        finally:
            log.guard.release()

    def fail(self, error: Exception) -> None:
        """The lock could not be let go: the next message says so, once, and is not written."""
        if self._has_failed:
            return

        def tell(_: Draft) -> None:
            self.add = self._shut = _closed
            words = f"its lock could not be let go when it was due, and is tried again: {error!r}"
            raise SourceUnreadable(f"{self.log.path}: {words}") from error

        self._has_failed = True
        self.add = self._shut = tell


_BURSTS: weakref.WeakSet[Burst] = weakref.WeakSet()


def _after_fork() -> None:
    for burst in list(_BURSTS):
        burst.part_from_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _closed(_: Draft) -> None:
    """There is no quick way."""


def _closing(extra: dict[str, JSON]) -> bytes:
    """The end of a line that has more metadata than its number."""
    if OWN in extra:
        raise KeyError(OWN)
    return b"},%b}\n" % _encode(extra)[1:]


def _way(burst: Burst, state: State, beginning: str, ending: bytes) -> Generator[Receipt | None, Draft, None]:
    """The quick way itself. What each message needs stands in variables of its own, which is what makes it quick."""
    log, news, clock, cwd = burst.log, burst.news, burst.times.clock, os.getcwd
    write, descriptor, looks, syncs = log.write, log.descriptor, log.durable, log.syncs
    size = partial(log.seek, descriptor, 0, os.SEEK_END)
    encode, join, openings, unset = _encode, _join, _OPENINGS, UNSET
    seq, head, receipt = state.seq, encode(state.head)[1:-1], None
    number, parent, plain, limit = _NUMBER, _PARENT, _CLOSE, 0
    since, until, folder = 0.0, 0.0, ""
    while True:
        draft = yield receipt
        receipt, record = None, draft.record
        said, usage, kind, extra = record.message, record.usage, record.type, draft.extra
        # Plain is what says nothing that must be checked, or that changes where the session stands.
        if record.uuid or draft.parent is not unset or draft.sidechain or record.todos is not unset:
            continue
        if record.timestamp is not unset or record.context is not unset or record.version is not unset:
            continue
        if not (record.thinking_metadata is record.branch_id is record.branch_parent_uuid is unset):
            continue
        try:
            # Beside a sync, it costs little to look for each message at the folder and at the end of the log.
            if not since <= clock() < until or (looks and (cwd() != folder or size() != log.end)):
                since, until, words, results, folder = burst.moment()
            if said is unset and kind == "tool_result":
                stamp, body, end = results, encode(record.tool_results), number
            elif said is unset or kind == "tool_result" or record.tool_results is not unset:
                continue
            elif said.content.__class__ is str or said.content.__class__ is list:
                stamp, body, end = words, encode(said), ending
            else:
                continue
            spent = b"" if usage is unset else b',"usage":' + encode(usage)
            opening, close = openings[kind], _closing(extra) if extra else plain
        except Exception:
            continue  # whatever it is, the usual way meets it again, and names it
        seq += 1
        if seq >= limit:
            limit, zeros = 10 ** len(str(seq)), f"{beginning}{FIRST}"[: -len(str(seq))]
        own = (uuid := zeros + (digits := str(seq))).encode()
        line = join((opening, own, parent, head, stamp, body, spent, end, digits.encode(), close))
        if (length := len(line)) >= MAX_RECORD_BYTES:
            seq -= 1
            continue
        try:
            done = write(descriptor, line)
            if done != length or syncs:
                log.complete(line, done)
            log.end += length
            state.seq, state.head, record.uuid, head = seq, uuid, uuid, own
        except BaseException:
            log.give_up()
            raise
        if kind == "user":
            news.last_prompt = record
        if extra:
            news.note(record, extra)
        receipt = Receipt(uuid, seq)
