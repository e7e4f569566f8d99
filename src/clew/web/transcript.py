"""A session as windows of HTML: read as far as somebody has scrolled, rendered when it comes into view."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from msgspec import structs

from clew.agents.base import Agent, SourceFile, messages_of, session_object, with_current_size
from clew.analysis.facts import Facts
from clew.analysis.pair_tool_results import WINDOW as JOINED
from clew.catalog.sessions import CatalogOnlySession
from clew.io.compress import open_source
from clew.model.json import JSON
from clew.render.branching import Forks
from clew.render.outline import by_section
from clew.render.page.fragments import Cut, Fragments, More, untold
from clew.render.page.session import Contents
from clew.render.parts import Part
from clew.stored_session import StoredSession

WINDOW = 50
"""Messages that come at a time: several screens, and no more than a browser shows at once."""
_STEP = 60
"""Sections that are read before another thread gets its turn."""
_MOST = 4
"""Transcripts that are held; more than a person reads at a time."""

_LINES = ".jsonl"
"""Files that can be read from their beginning: each line stands for itself."""
_BEGINNINGS = (1 << 19, 1 << 21)
"""Bytes of a session that are read for its first window; more where these do not hold enough messages."""
_SLACK = 2 * JOINED
"""Messages behind a window that are read with it, so that its calls have their results."""
_PRINT = (1 << 48) - 1

State = tuple[tuple[int, int], ...]
Key = tuple[int, str]
"""A session's number in the catalog, and what is masked in it."""


class Started(NamedTuple):
    """The sessions that one started, by their ids: where they are shown, and what there is to say of them."""

    links: Mapping[str, str] = MappingProxyType({})
    about: Mapping[str, str] = MappingProxyType({})


class Transcript:
    """The parts of one session, in the order of its messages."""

    def __init__(
        self, header: dict[str, JSON], count: int, forks: Forks, messages: Iterable[dict[str, JSON]], *, is_all: bool
    ) -> None:
        self.header, self.messages, self.is_all = header, count, is_all
        self.table = Contents()
        self._coming = by_section(header, messages, forks=forks)
        self._sections: list[Sequence[Part]] = []
        self._starts: list[int] = []
        self._is_whole = False
        self._prints: list[str] = []
        self._lock = threading.Lock()

    @property
    def windows(self) -> int:
        """How many there are; one that is empty is still one."""
        return max(1, -(-self.messages // WINDOW))

    def window(self, number: int, started: Started, more: More = untold) -> str:
        """The HTML of a window; the first is 0."""
        fragments = Fragments(links=started.links, about=started.about, more=more)
        pieces = [piece for shown in self._shown(number) for piece in fragments.write(shown)]
        return b"".join([*pieces, fragments.end()]).decode()

    def print_of(self, number: int) -> str:
        """A word that is another one when the window shows something else; good while this process runs."""
        return f"{hash(tuple(map(tuple, self._shown(number)))) & _PRINT:012x}"

    def prints(self) -> list[str]:
        """The words of all windows."""
        self._pull(None)
        if not self._prints:
            self._prints = [self.print_of(number) for number in range(self.windows)]
        return self._prints

    def _shown(self, number: int) -> list[Sequence[Part]]:
        """The sections of a window."""
        first, last = bounds(number)
        self._pull(last)
        begin, end = (bisect_left(self._starts, index) for index in (first, last + 1))
        return self._sections[begin:end]

    def cut(self, section: int, number: int) -> Cut | None:
        """A text that is longer than what is shown of it, by its section and its place among them."""
        self._pull(section)
        at = bisect_left(self._starts, section)
        if at == len(self._starts) or self._starts[at] != section:
            return None
        fragments = Fragments()
        for _ in fragments.write(self._sections[at]):
            pass
        return fragments.cuts[number] if number < len(fragments.cuts) else None

    def contents(self) -> Contents:
        """Prompts and forks of the whole session."""
        self._pull(None)
        return self.table

    def _pull(self, last: int | None) -> None:
        """Read on until all sections are there that begin at this message or before."""
        while not self._is_whole and (last is None or not self._starts or self._starts[-1] <= last):
            with self._lock:
                # Another thread may have come first.
                came = list(islice(self._coming, _STEP)) if not self._is_whole else []
                for shown in came:
                    self.table.see(shown)
                    self._starts.append(_index(shown[0]))
                    self._sections.append(shown)
                self._is_whole = self._is_whole or len(came) < _STEP


def bounds(number: int) -> tuple[int, int]:
    """The first and the last message of a window."""
    return number * WINDOW + 1, (number + 1) * WINDOW


def _index(part: Any) -> int:
    index: int = part.index
    return index


def transcript_of(session: StoredSession) -> Transcript:
    """The transcript of a whole session."""
    if isinstance(session, CatalogOnlySession):
        facts = session.facts
        messages = (unit.value for unit in session.units())
        return Transcript(session.session_object, facts.messages, Forks.of_tree(facts.tree), messages, is_all=True)
    source = with_current_size(session.source)
    return _made(session.agent, source, session.agent.facts(source))


def beginning_of(session: StoredSession, count: int) -> Transcript | None:
    """The first window of a long session, which is known to have so many messages: as it stood when it had little more.

    What comes later may tell more of these messages: that others took their place, what became of a call. None where
    the source must be read whole, or is not so long that this would be quicker.
    """
    source = with_current_size(session.source)
    if source.parts or source.path.suffix != _LINES or isinstance(session, CatalogOnlySession):
        return None
    for length in _BEGINNINGS:
        if source.size < 2 * length:
            return None
        begun = structs.replace(source, size=_end_of_line(source.path, length))
        facts = session.agent.facts(begun)
        if facts.messages >= WINDOW + _SLACK:
            return _made(session.agent, begun, facts, max(count, facts.messages))
    return None


def _end_of_line(path: Path, length: int) -> int:
    """How long the whole lines are of so many bytes."""
    with open_source(path, length) as stream:
        return stream.read(length).rfind(b"\n") + 1


def _made(agent: Agent, source: SourceFile, facts: Facts, count: int | None = None) -> Transcript:
    header, messages = session_object(agent, source, facts), messages_of(agent.events(source))
    total = facts.messages if count is None else count
    return Transcript(header, total, Forks.of_tree(facts.tree), messages, is_all=count is None)


def state_of(session: StoredSession) -> State:
    """What the session's files look like from outside."""
    folder = session.path.parent
    return tuple(_mark(path) for path in (session.path, *(folder / name for name in session.source.parts)))


def _mark(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, -1
    return found.st_mtime_ns, found.st_size


class Transcripts:
    """The transcripts that were read last. One whose files have changed is read anew."""

    def __init__(self) -> None:
        self._held: OrderedDict[Key, tuple[StoredSession, State, Transcript]] = OrderedDict()
        self._lock = threading.Lock()
        self._reading: dict[Key, threading.Lock] = {}

    def held(self, key: Key) -> Transcript | None:
        """The transcript of a session, where it is at hand."""
        with self._lock:
            held = self._held.get(key)
        return held[2] if held is not None and state_of(held[0]) == held[1] else None

    def get(self, key: Key, find: Callable[[], StoredSession]) -> Transcript:
        """The transcript of a session; whoever asks for one that is being read waits for it."""
        with self._lock:
            reading = self._reading.setdefault(key, threading.Lock())
        with reading:
            return self.held(key) or self._read(key, find())

    def _read(self, key: Key, session: StoredSession) -> Transcript:
        state = state_of(session)
        made = transcript_of(session)
        with self._lock:
            self._held[key] = session, state, made
            self._held.move_to_end(key)
            while len(self._held) > _MOST:
                self._reading.pop(self._held.popitem(last=False)[0], None)
        return made
