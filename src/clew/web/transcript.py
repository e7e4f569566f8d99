"""A session as windows of HTML: read as far as somebody has scrolled, rendered when it comes into view."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from clew.agents.base import freeze, session_object, shown_messages, skim
from clew.catalog.opening import Remembered
from clew.library import StoredSession
from clew.model.json import JSON
from clew.render.branching import Forks
from clew.render.outline import by_section
from clew.render.page.fragments import Cut, Fragments, More, untold
from clew.render.page.session import Contents
from clew.render.parts import Part

WINDOW = 100
"""Messages that come at a time."""
_STEP = 60
"""Sections that are read before another thread gets its turn."""
_MOST = 4
"""Transcripts that are held; more than a person reads at a time."""

State = tuple[tuple[int, int], ...]


class Transcript:
    """The parts of one session, in the order of its messages."""

    def __init__(self, session: StoredSession) -> None:
        self.header, self.messages, forks, messages = _read(session)
        self.table = Contents()
        self._coming = by_section(self.header, messages, forks=forks)
        self._sections: list[Sequence[Part]] = []
        self._starts: list[int] = []
        self._is_whole = False
        self._lock = threading.Lock()

    @property
    def windows(self) -> int:
        """How many there are; one that is empty is still one."""
        return max(1, -(-self.messages // WINDOW))

    def window(self, number: int, links: Mapping[str, str], more: More = untold) -> str:
        """The HTML of a window; the first is 0."""
        first, last = bounds(number)
        self._pull(last)
        begin, end = (bisect_left(self._starts, index) for index in (first, last + 1))
        fragments = Fragments(links=links, more=more)
        pieces = [piece for shown in self._sections[begin:end] for piece in fragments.write(shown)]
        return b"".join([*pieces, fragments.end()]).decode()

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


def _read(session: StoredSession) -> tuple[dict[str, JSON], int, Forks, Iterator[dict[str, JSON]]]:
    if isinstance(session, Remembered):
        facts = session.facts
        messages = (unit.value for unit in session.units())
        return session.session_object, facts.messages, Forks.of_tree(facts.tree), messages
    agent, source = session.agent, freeze(session.source)
    facts = skim(agent, source, tree=True, counts=False)
    header = session_object(agent, source, facts)
    return header, facts.messages, Forks.of_tree(facts.tree), shown_messages(agent, source, facts)


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
        self._held: OrderedDict[tuple[int, str], tuple[StoredSession, State, Transcript]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, number: int, profile: str, find: Callable[[], StoredSession]) -> Transcript:
        """The transcript of the session with this number in the catalog."""
        key = number, profile
        with self._lock:
            held = self._held.get(key)
        if held is not None and state_of(held[0]) == held[1]:
            return held[2]
        session = find()
        state = state_of(session)
        made = Transcript(session)
        with self._lock:
            self._held[key] = session, state, made
            self._held.move_to_end(key)
            while len(self._held) > _MOST:
                self._held.popitem(last=False)
        return made
