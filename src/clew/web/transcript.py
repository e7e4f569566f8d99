"""A session as windows of HTML. Messages are read as far as they are needed, and rendered when they are shown."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import tzinfo
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from msgspec import structs

from clew.agents.base import Agent, messages_of, session_object
from clew.agents.source import FileStates, SourceFile, file_states, with_current_size
from clew.analysis.facts import Facts
from clew.analysis.pair_tool_results import WINDOW as PAIRING_MESSAGES
from clew.catalog.sessions import CatalogOnlySession
from clew.io.compress import open_source
from clew.model.json import JSON
from clew.render.branching import Forks
from clew.render.detail import DETAILS
from clew.render.markdown import section_markdown
from clew.render.outline import by_section
from clew.render.page.fragments import FileLink, Fragments, More, TruncatedText, no_file_link, plain_notice
from clew.render.page.session import Contents
from clew.render.parts import Call, Part
from clew.stored_session import StoredSession

WINDOW_MESSAGES = 50
"""Messages per window: several screens."""
SECTIONS_PER_STEP = 60
"""Sections that are read before the lock is released to another thread."""
MAX_CACHED_TRANSCRIPTS = 4
MAX_MESSAGES_WITH_OPEN_CALLS = 100
"""In longer sessions tool calls are folded to one line each."""

FIRST_WINDOW_BYTES = (1 << 19, 1 << 21)
"""How much of a long session is read for its first window; the second where the first holds too few messages."""
LOOKAHEAD_MESSAGES = 2 * PAIRING_MESSAGES
"""Messages read behind the first window, so that its tool calls have their results."""
ETAG_MASK = (1 << 48) - 1

CacheKey = tuple[int, str, tzinfo, object]
"""A session's number in the catalog, the masking profile, the time zone, and the state of the user's own rules."""


class SubagentLinks(NamedTuple):
    """The sessions that a session started: address, masked name and description by their ids."""

    urls: Mapping[str, str] = MappingProxyType({})
    names: Mapping[str, str] = MappingProxyType({})
    descriptions: Mapping[str, str] = MappingProxyType({})


class Transcript:
    """The parts of one session, in the order of its messages."""

    def __init__(
        self,
        header: dict[str, JSON],
        count: int,
        forks: Forks,
        messages: Iterable[dict[str, JSON]],
        *,
        is_complete: bool,
    ) -> None:
        self.header, self.messages, self.is_complete = header, count, is_complete
        self._contents = Contents()
        self._unread = by_section(header, messages, forks=forks)
        self._sections: list[Sequence[Part]] = []
        self._starts: list[int] = []
        """The first message of each section."""
        self._is_read = False
        self._etags: list[str] = []
        self._lock = threading.Lock()

    @property
    def windows(self) -> int:
        """The number of windows; an empty session has one."""
        return max(1, -(-self.messages // WINDOW_MESSAGES))

    @property
    def is_long(self) -> bool:
        """True if tool calls are folded to one line each."""
        return self.messages > MAX_MESSAGES_WITH_OPEN_CALLS

    def window(
        self,
        number: int,
        subagents: SubagentLinks,
        more: More = plain_notice,
        file_link: Callable[[str], FileLink | None] | None = None,
    ) -> str:
        """The HTML of a window; the first is 0."""
        fragments = Fragments(
            links=subagents.urls,
            names=subagents.names,
            about=subagents.descriptions,
            more=more,
            are_calls_folded=self.is_long,
            file_link=file_link or no_file_link,
        )
        pieces = [piece for section in self._window_sections(number) for piece in fragments.write(section)]
        return "".join([*pieces, fragments.end()])

    def window_etag(self, number: int) -> str:
        """A hash of what the window shows, comparable within this process."""
        return f"{hash(tuple(map(tuple, self._window_sections(number)))) & ETAG_MASK:012x}"

    def etags(self) -> list[str]:
        """The hashes of all windows."""
        self._read_to(None)
        if not self._etags:
            self._etags = [self.window_etag(number) for number in range(self.windows)]
        return self._etags

    def _window_sections(self, number: int) -> list[Sequence[Part]]:
        first, last = window_bounds(number)
        self._read_to(last)
        begin, end = (bisect_left(self._starts, index) for index in (first, last + 1))
        return self._sections[begin:end]

    def truncated_text(self, section: int, number: int) -> TruncatedText | None:
        """The `number`-th text of a section that is longer than what the page shows of it."""
        self._read_to(section)
        at = bisect_left(self._starts, section)
        if at == len(self._starts) or self._starts[at] != section:
            return None
        fragments = Fragments()
        for _ in fragments.write(self._sections[at]):
            pass
        return fragments.truncated[number] if number < len(fragments.truncated) else None

    def markdown(self, message: int) -> str | None:
        """The section that a message belongs to, as Markdown; None if there is no such message."""
        self._read_to(message)
        at = bisect_right(self._starts, message) - 1
        if at < 0 or message > self.messages:
            return None
        earlier = self._sections[max(0, at - LOOKAHEAD_MESSAGES) : at]
        answers = [part.result for section in earlier for part in section if type(part) is Call]
        return section_markdown(self._sections[at], [answer.index for answer in answers if answer is not None])

    def section_counts(self) -> list[list[int]]:
        """How many sections each window shows, at each level of detail."""
        counts = [[0] * len(DETAILS) for _ in range(self.windows)]
        self._read_to(None)
        for start, section in zip(self._starts, self._sections, strict=True):
            window = min((start - 1) // WINDOW_MESSAGES, self.windows - 1)
            for level in range(_level(section[0]), len(DETAILS)):
                counts[window][level] += 1
        return counts

    def sections(self) -> Sequence[Sequence[Part]]:
        """All sections, of all branches."""
        self._read_to(None)
        return self._sections

    def contents(self) -> Contents:
        """Prompts and forks of the whole session."""
        self._read_to(None)
        return self._contents

    def _read_to(self, last: int | None) -> None:
        """Read until all sections are there that begin at or before a message; None reads to the end."""
        while not self._is_read and (last is None or not self._starts or self._starts[-1] <= last):
            with self._lock:
                # Another thread may have read them while this one waited.
                sections = list(islice(self._unread, SECTIONS_PER_STEP)) if not self._is_read else []
                for section in sections:
                    self._contents.add_section(section)
                    self._starts.append(_message_index(section[0]))
                    self._sections.append(section)
                self._is_read = self._is_read or len(sections) < SECTIONS_PER_STEP


def window_bounds(number: int) -> tuple[int, int]:
    """The first and the last message of a window."""
    return number * WINDOW_MESSAGES + 1, (number + 1) * WINDOW_MESSAGES


def _message_index(part: Any) -> int:
    index: int = part.index
    return index


def _level(part: Any) -> int:
    level: int = part.level
    return level


def full_transcript(session: StoredSession) -> Transcript:
    """The transcript of a whole session."""
    if isinstance(session, CatalogOnlySession):
        facts = session.facts
        messages = (unit.value for unit in session.units())
        return Transcript(session.session_object, facts.messages, Forks.of_tree(facts.tree), messages, is_complete=True)
    source = with_current_size(session.source)
    return _read_transcript(session.agent, source, session.agent.facts(source))


def first_window(session: StoredSession, message_count: int) -> Transcript | None:
    """The first window of a long session, read from its first bytes only.

    It shows the messages as they were then: later records may add tool results or replace a message. None if the source
    has to be read whole, or is too short for this to be faster.
    """
    source = with_current_size(session.source)
    is_one_file = not source.parts and source.snapshot is None and source.path.suffix == ".jsonl"
    if not is_one_file or isinstance(session, CatalogOnlySession):
        return None
    for length in FIRST_WINDOW_BYTES:
        if source.size < 2 * length:
            return None
        start_of_source = structs.replace(source, size=_end_of_last_line(source.path, length))
        facts = session.agent.facts(start_of_source)
        if facts.messages >= WINDOW_MESSAGES + LOOKAHEAD_MESSAGES:
            return _read_transcript(session.agent, start_of_source, facts, max(message_count, facts.messages))
    return None


def _end_of_last_line(path: Path, length: int) -> int:
    """The length of the complete lines within the first bytes of a file."""
    with open_source(path, length) as stream:
        return stream.read(length).rfind(b"\n") + 1


def _read_transcript(agent: Agent, source: SourceFile, facts: Facts, message_count: int | None = None) -> Transcript:
    header, messages = session_object(agent, source, facts), messages_of(agent.events(source))
    total = facts.messages if message_count is None else message_count
    return Transcript(header, total, Forks.of_tree(facts.tree), messages, is_complete=message_count is None)


class TranscriptCache:
    """The transcripts that were used last. One whose files have changed is read again."""

    def __init__(self) -> None:
        self._cache: OrderedDict[CacheKey, tuple[StoredSession, FileStates, Transcript]] = OrderedDict()
        self._lock = threading.Lock()
        self._key_locks: dict[CacheKey, threading.Lock] = {}

    def cached(self, key: CacheKey) -> Transcript | None:
        """The transcript of a session, if it is cached and its files have not changed."""
        with self._lock:
            found = self._cache.get(key)
        return found[2] if found is not None and file_states(found[0].source) == found[1] else None

    def get(self, key: CacheKey, open_session: Callable[[], StoredSession]) -> Transcript:
        """The transcript of a session. Threads that want the same one wait for the first to read it."""
        with self._lock:
            key_lock = self._key_locks.setdefault(key, threading.Lock())
        with key_lock:
            return self.cached(key) or self._read(key, open_session())

    def _read(self, key: CacheKey, session: StoredSession) -> Transcript:
        states = file_states(session.source)
        transcript = full_transcript(session)
        with self._lock:
            self._cache[key] = session, states, transcript
            self._cache.move_to_end(key)
            while len(self._cache) > MAX_CACHED_TRANSCRIPTS:
                self._key_locks.pop(self._cache.popitem(last=False)[0], None)
        return transcript
