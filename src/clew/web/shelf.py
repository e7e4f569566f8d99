"""What pages are made from: the catalog, opened once for each thread, and the transcripts that are being read."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from clew.catalog import database, queries
from clew.catalog.queries import Entry
from clew.catalog.search import Searcher
from clew.catalog.sessions import open_session
from clew.errors import ClewError, SourceUnreadable, UnknownReference
from clew.host import Host
from clew.redact.redactor import Redactor
from clew.stored_session import StoredSession
from clew.web.masking import NONE, Masking, masking
from clew.web.scanning import Scan
from clew.web.syncing import Syncing
from clew.web.transcript import Transcript, Transcripts, beginning_of

P = ParamSpec("P")
T = TypeVar("T")

THREADS = 8
"""Several of them may wait for one long session that is being read."""
KEPT = 64
"""Answers that are held until the catalog changes."""
MOST_TAUGHT = 16
"""Sessions of which the secrets are remembered from one page to the next."""


class NoCatalog(ClewError):
    """Nothing was brought into the catalog yet."""


class Shelf:
    """Everything that pages ask for. Its methods are called in the threads of `run` alone."""

    def __init__(
        self,
        hosts: Iterable[Host],
        folder: Path,
        *,
        profile: str = "none",
        syncing: Syncing | None = None,
        engine: str = "",
    ) -> None:
        self.hosts = tuple(hosts)
        self.folder, self.profile = folder, profile
        self.engine = engine
        """The server that the catalog is a copy of; "" for a catalog of this machine's own sources."""
        self.syncing = syncing or Syncing([])
        self.scan = Scan(self.syncing.options)
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="clew-page")
        self._own = threading.local()
        self._transcripts = Transcripts()
        self._kept: dict[str, tuple[object, Any]] = {}
        self._taught: dict[tuple[object, ...], Redactor] = {}

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function in a thread that may look at the catalog."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, lambda: function(*args, **kwargs))

    def prepare(self, function: Callable[[Shelf], None]) -> None:
        """Call a function in such a thread while nobody waits for it."""
        self._pool.submit(function, self)

    def close(self) -> None:
        """Let the threads go, and whoever works for them."""
        self.scan.stop()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def now(self) -> datetime:
        """The time on the clock of the first home."""
        return self.hosts[0].now()

    @property
    def db(self) -> sqlite3.Connection:
        """The catalog, for reading alone."""
        place_of_file = self._identity()
        if getattr(self._own, "identity", None) != place_of_file:
            self._open(place_of_file)
        db: sqlite3.Connection = self._own.db
        return db

    def _identity(self) -> tuple[int, int]:
        """Which file the catalog is: one that could not be used is moved away and made anew."""
        try:
            found = (self.folder / database.DATABASE).stat()
        except OSError:
            raise NoCatalog("there is no catalog yet") from None
        return found.st_dev, found.st_ino

    def _open(self, identity: tuple[int, int]) -> None:
        db = database.open_reader(self.folder)
        if db is None:
            raise NoCatalog("there is no catalog yet")
        self._own.db, self._own.identity, self._own.searchers = db, identity, {}

    def searcher(self, profile: str) -> Searcher:
        """Answers searches, and masks what it shows."""
        _ = self.db
        searchers: dict[str, Searcher] = self._own.searchers
        if profile not in searchers:
            searchers[profile] = Searcher(self.folder, masking(profile).text)
        return searchers[profile]

    def kept(self, name: str, make: Callable[[], T]) -> T:
        """What was made of the catalog; made again when the catalog has changed."""
        mark = self._mark()
        known = self._kept.get(name)
        if known is None or known[0] != mark:
            known = mark, make()
            if len(self._kept) >= KEPT:
                self._kept.clear()
            self._kept[name] = known
        value: T = known[1]
        return value

    def _mark(self) -> object:
        marks = []
        for name in (database.DATABASE, f"{database.DATABASE}-wal"):
            try:
                found = (self.folder / name).stat()
                marks.append((found.st_ino, found.st_size, found.st_mtime_ns))
            except OSError:
                marks.append((0, 0, 0))
        return marks

    def entry(self, agent: str, identity: str) -> Entry:
        """The session with an id, or with the key that the catalog gives it; no other can be asked for."""
        found = queries.entry(self.db, agent, identity) or queries.by_key(self.db, identity)
        if found is None or found.agent != agent:
            raise UnknownReference("the catalog knows of no such session")
        return found

    def session(self, entry: Entry, profile: str) -> StoredSession:
        """The session itself, as it may be seen."""
        return self.masking(profile).session(open_session(self.db, entry.number, self.hosts[0]))

    def taught(self, entry: Entry, profile: str) -> Redactor | None:
        """A redactor that has seen a session; None where nothing is masked, or the file of the session is gone."""
        masking = self.masking(profile)
        if not masking.is_on or entry.state == "gone":
            return None
        try:
            session = self.session(entry, NONE)
            state = session.path.stat()
            key = entry.number, profile, session.path, state.st_size, state.st_mtime_ns
            known = self._taught.get(key)
            # The person's rules may have changed.
            if known is None or known.setting is not masking.redactor().setting:
                known = masking.learned(session)
        except (OSError, SourceUnreadable):
            return None
        if len(self._taught) >= MOST_TAUGHT:
            self._taught.clear()
        self._taught[key] = known
        return known

    def transcript(self, entry: Entry, profile: str) -> Transcript:
        """The parts of a session, as far as they were needed so far."""
        return self._transcripts.get((entry.number, profile), lambda: self.session(entry, profile))

    def beginning(self, entry: Entry, profile: str) -> Transcript:
        """The same for who begins to read: of a long session its first window may be all that is there.

        What is masked at the beginning may be known only at the end.
        """
        held = self._transcripts.held((entry.number, profile))
        if held is None and not self.masking(profile).is_on:
            held = beginning_of(self.session(entry, profile), entry.messages)
        return held or self.transcript(entry, profile)

    def masking(self, profile: str) -> Masking:
        """What is masked."""
        return masking(profile)
