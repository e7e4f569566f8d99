"""What pages read from: the catalog, open transcripts, cached results, and what is masked in all of them.

By default nothing is masked: users read their own history on their own machine.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

from clew.agents.source import source_state
from clew.catalog import database, queries
from clew.catalog.change_detection import Hosts, count_unread_sources, find_hosts
from clew.catalog.queries import Entry
from clew.catalog.search import Searcher
from clew.catalog.sessions import open_session
from clew.catalog.sync_process import Progress
from clew.catalog.text_index import unindexed_text
from clew.errors import ClewError, SourceUnreadable, UnknownReference
from clew.host import Host, config_dir
from clew.library import Library
from clew.model.json import JSON
from clew.redact.masks import MARKER
from clew.redact.native_files import mask
from clew.redact.redactor import MaskSettings, Redactor
from clew.redact.settings import RULES_FILE, load_settings
from clew.stored_session import StoredSession
from clew.timezone import prefer_zone, user_zone
from clew.web import user_settings
from clew.web.annotation_cache import AnnotationCache
from clew.web.background import CatalogUpdater, SecretScan, State
from clew.web.transcript import Transcript, TranscriptCache, first_window

_LOG = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")

NO_MASKING = "none"
PAGE_THREADS = 8
"""Several threads may wait for one long session that is being read."""
MAX_CACHED_RESULTS = 64
MAX_CACHED_REDACTORS = 16
REFERENCE_PREFIX = "~"
REFERENCE_HEX_DIGITS = 24
MAX_REFERENCED_VALUES = 10_000


class MaskingOptions(NamedTuple):
    """Options of masking that hold for every profile."""

    plain: bool = False
    rules: Path | None = None


_options = MaskingOptions()
_reference_key = secrets.token_bytes(32)
_referenced_values: OrderedDict[str, str] = OrderedDict()
"""Masked values by the references that stand for them in addresses, least recently used first."""
_referenced_values_lock = threading.Lock()
_session_redactor: ContextVar[Redactor | None] = ContextVar("session_redactor", default=None)
"""A redactor that has learned the secrets of the session a page is about."""


def set_masking_options(options: MaskingOptions) -> None:
    """Mask with these options from now on, in all pages of this process."""
    global _options
    _options = options


def masking_options() -> MaskingOptions:
    """The options in use."""
    return _options


@contextmanager
def use_redactor(redactor: Redactor | None) -> Iterator[None]:
    """Mask with a redactor that knows a session, inside this block."""
    token = _session_redactor.set(redactor)
    try:
        yield
    finally:
        _session_redactor.reset(token)


def resolve_reference(text: str) -> str:
    """The value of a reference in an address; any other text is returned unchanged."""
    with _referenced_values_lock:
        if text not in _referenced_values:
            return text
        _referenced_values.move_to_end(text)
        return _referenced_values[text]


FileState = tuple[int, int]
"""Modification time and size of a file."""


class Masking:
    """Masks by one profile."""

    def __init__(self, profile: str) -> None:
        self.profile = profile

    @property
    def is_on(self) -> bool:
        """False for the profile that masks nothing."""
        return self.profile != NO_MASKING

    def redactor(self) -> Redactor:
        """A redactor that has learned nothing yet."""
        return Redactor(_load_settings(self.profile, _options, _rules_file_state()))

    def session(self, session: StoredSession) -> StoredSession:
        """The session, masked."""
        return session.redacted(self.redactor()) if self.is_on else session

    def text(self, text: str, calls: Sequence[JSON] = (), /) -> str:
        """Mask a text. `calls` are tool calls of its session that read credential files, with their outputs.

        A redactor that knows the session (`use_redactor`) has learned these calls already, and more.
        """
        if not self.is_on or not text:
            return text
        redactor = _session_redactor.get()
        if redactor is None or redactor.settings.profile != self.profile:
            redactor = self.redactor()
            redactor.learn(calls)
        return str(redactor.mask_for_append(text))

    def leaves(self, text: str) -> bool:
        """True if nothing in a text is masked, or would be."""
        return MARKER.search(text) is None and self.text(text) == text

    def lines(self, lines: list[str], path: str) -> list[str]:
        """Mask the lines of a file."""
        return self.redactor().mask_lines(lines, path) if self.is_on else lines

    def names(self, names: list[str]) -> list[str]:
        """Mask each name by itself."""
        return self.redactor().mask_each(names) if self.is_on else names

    def value(self, value: JSON) -> JSON:
        """Mask a value that belongs to no session."""
        return self.redactor().learn_and_mask(value) if self.is_on else value

    def reference(self, text: str) -> str:
        """A text for use in an address: the text itself, or a reference if part of it is masked."""
        if self.text(text) == text:
            return text
        digest = hmac.digest(_reference_key, text.encode("utf-8", "surrogatepass"), "sha256").hex()
        reference = REFERENCE_PREFIX + digest[:REFERENCE_HEX_DIGITS]
        with _referenced_values_lock:
            _referenced_values[reference] = text
            _referenced_values.move_to_end(reference)
            if len(_referenced_values) > MAX_REFERENCED_VALUES:
                _referenced_values.popitem(last=False)
        return reference

    def learned_redactor(self, session: StoredSession) -> Redactor:
        """A redactor that has learned the secrets of a whole session."""
        redactor = self.redactor()
        session.teach(redactor)
        return redactor

    def record(self, session: StoredSession, raw: bytes) -> bytes:
        """Mask a native record."""
        return mask(raw, self.learned_redactor(session)) if self.is_on else raw


@lru_cache
def masking(profile: str) -> Masking:
    """The masking of a profile."""
    return Masking(profile)


def _rules_file_state() -> FileState | None:
    """The state of the user's own rules; None without a file."""
    try:
        stat = (_options.rules or config_dir() / RULES_FILE).stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size


@lru_cache(maxsize=16)
def _load_settings(profile: str, options: MaskingOptions, _rules_state: FileState | None) -> MaskSettings:
    """Load the rules; again when their file has changed. Without a key, markers are plain."""
    return load_settings(profile, plain=options.plain, rules=options.rules, without_key=lambda _error: None)


class SyncProgress(NamedTuple):
    """How far the catalog is up to date."""

    state: State
    is_first: bool
    """True while the first sync of this run is under way: some sessions may be missing, and all usage."""
    step: Progress | None
    """What a running sync reads now."""
    unread: int
    """Sessions whose messages are not in the catalog, or not as they are now."""
    unindexed: int
    """Texts that a search does not find yet."""
    is_requested: bool
    """True if a user asked for a sync that has not ended."""

    @property
    def is_complete(self) -> bool:
        """True if pages show everything that there was when the last sync began."""
        return not (self.is_first or self.unread or self.unindexed)

    @property
    def will_change(self) -> bool:
        """True if a sync will soon complete what pages show."""
        return self.is_requested or (not self.is_complete and self.state in ("working", "fresh"))


class NoCatalog(ClewError):
    """The first sync has not created the catalog yet."""


class AppContext:
    """Everything that pages read. Its methods are called in the threads of `run` only."""

    def __init__(
        self,
        hosts: Hosts,
        folder: Path,
        *,
        profile: str = NO_MASKING,
        updater: CatalogUpdater | None = None,
        engine: str = "",
        target_host: Host | None = None,
    ) -> None:
        self._hosts = hosts
        self.host = self.hosts[0]
        """The first home: its clock counts."""
        self.target_host = target_host or self.host
        """The home that converted sessions are written to, and whose agents continue sessions."""
        self.folder, self.profile = folder, profile
        self.run_id = secrets.token_hex(8)
        """Identifies this run of the app: on the same port, another run may show another home."""
        self.engine = engine
        """The server whose rows the catalog is a copy of; "" for a catalog of local files."""
        self.updater = updater or CatalogUpdater()
        self.scan = SecretScan(hosts)
        self.annotations = AnnotationCache()
        self._pool = ThreadPoolExecutor(PAGE_THREADS, thread_name_prefix="clew-page")
        self._is_closed = False
        self._thread = threading.local()
        self._opened: list[sqlite3.Connection | Searcher] = []
        """What the threads have open."""
        self._opened_lock = threading.Lock()
        self._transcripts = TranscriptCache()
        self._results: OrderedDict[str, tuple[object, Any]] = OrderedDict()
        """Results with the state that they were computed from, least recently used first."""
        self._results_lock = threading.Lock()
        self._refreshing: set[str] = set()
        """Keys of results that are being computed in the background."""
        self._redactors: dict[tuple[object, ...], Redactor] = {}

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function in a thread that may read the catalog. Times are in the zone of the settings."""

        def call() -> T:
            with prefer_zone(user_settings.load().timezone):
                return function(*args, **kwargs)

        return await asyncio.get_running_loop().run_in_executor(self._pool, call)

    def run_in_background(self, function: Callable[[AppContext], object]) -> None:
        """Call a function in such a thread without waiting for it, in the same time zone. A failure is logged."""
        self._submit(function, self)

    def _submit(self, function: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        def call() -> None:
            try:
                function(*args, **kwargs)
            except Exception:
                # The end of the app closes what its threads have open.
                if not self._is_closed:
                    _LOG.exception("work in the background failed")

        self._pool.submit(copy_context().run, call)

    def close(self) -> None:
        """End the threads and a running scan."""
        self._is_closed = True
        self.scan.stop()
        self._pool.shutdown(wait=False, cancel_futures=True)
        with self._opened_lock:
            still_open = self._opened[:]
        for opened in still_open:
            opened.close()

    def now(self) -> datetime:
        """The time on the clock of the first home."""
        return self.host.now()

    @property
    def hosts(self) -> tuple[Host, ...]:
        """The homes that there are now: `clew sources` adds and removes some while the app runs."""
        return find_hosts(self._hosts)

    def library(self) -> Library:
        """The sessions of all homes, found by the catalog as it is."""
        return Library(*self.hosts, catalog_folder=self.folder, sync=False)

    @property
    def db(self) -> sqlite3.Connection:
        """A read-only connection of this thread. Opened again when the catalog was replaced by a new file."""
        identity = self._catalog_identity()
        if getattr(self._thread, "identity", None) != identity:
            db = database.open_reader(self.folder)
            if db is None:
                raise NoCatalog("there is no catalog yet")
            self._close_replaced()
            self._note_opened(db)
            self._thread.db, self._thread.identity, self._thread.searchers = db, identity, {}
        connection: sqlite3.Connection = self._thread.db
        return connection

    def _close_replaced(self) -> None:
        """Close what this thread has open of a catalog that was replaced."""
        if hasattr(self._thread, "db"):
            for opened in (self._thread.db, *self._thread.searchers.values()):
                with self._opened_lock:
                    self._opened.remove(opened)
                opened.close()

    def _note_opened(self, opened: sqlite3.Connection | Searcher) -> None:
        with self._opened_lock:
            self._opened.append(opened)

    def _catalog_identity(self) -> tuple[int, int]:
        try:
            stat = (self.folder / database.DATABASE).stat()
        except OSError:
            raise NoCatalog("there is no catalog yet") from None
        return stat.st_dev, stat.st_ino

    def searcher(self, profile: str) -> Searcher:
        """The searcher of this thread, which masks the hits."""
        _ = self.db
        searchers: dict[str, Searcher] = self._thread.searchers
        if profile not in searchers:
            searchers[profile] = Searcher(self.folder, masking(profile).text)
            self._note_opened(searchers[profile])
        return searchers[profile]

    def cached(self, key: str, compute: Callable[[], T]) -> T:
        """The result of a function of the catalog; computed again after the catalog, the zone or rules have changed."""
        state = self._result_state()
        known = self._known_result(key)
        if known is None or known[0] != state:
            known = state, compute()
            with self._results_lock:
                self._results[key] = known
                self._results.move_to_end(key)
                if len(self._results) > MAX_CACHED_RESULTS:
                    self._results.popitem(last=False)
        result: T = known[1]
        return result

    def _known_result(self, key: str) -> tuple[object, Any] | None:
        with self._results_lock:
            if key in self._results:
                self._results.move_to_end(key)
            return self._results.get(key)

    def _result_state(self) -> object:
        return self.catalog_state(), user_zone(), _rules_file_state()

    def recent(self, key: str, compute: Callable[[], T]) -> T:
        """As `cached`, but at once where there is an older result: it is then computed again in the background."""
        known = self._known_result(key)
        if known is None:
            return self.cached(key, compute)
        if known[0] != self._result_state() and key not in self._refreshing:
            self._refreshing.add(key)
            self._submit(self._refresh, key, compute)
        result: T = known[1]
        return result

    def _refresh(self, key: str, compute: Callable[[], T]) -> None:
        try:
            self.cached(key, compute)
        finally:
            self._refreshing.discard(key)

    def sync_progress(self) -> SyncProgress:
        """What pages say about a sync that has not finished."""
        unread = self.cached("unread", lambda: count_unread_sources(self.db))
        unindexed = self.cached("unindexed", lambda: unindexed_text(self.db).blocks)
        state = self.updater.state
        is_first = state == "working" and not self.updater.has_finished
        return SyncProgress(state, is_first, self.updater.progress, unread, unindexed, self.updater.is_requested)

    def catalog_state(self) -> object:
        """A value that is another one after the catalog was written to."""
        state = []
        for name in (database.DATABASE, f"{database.DATABASE}-wal"):
            try:
                stat = (self.folder / name).stat()
                state.append((stat.st_ino, stat.st_size, stat.st_mtime_ns))
            except OSError:
                state.append((0, 0, 0))
        return state

    def entry(self, agent: str, identity: str) -> Entry:
        """The session with a native id or a catalog key. Only sessions in the catalog can be opened."""
        found = queries.entry(self.db, agent, identity) or queries.by_key(self.db, identity)
        if found is None or found.agent != agent:
            raise UnknownReference("no such session")
        return found

    def session(self, entry: Entry, profile: str) -> StoredSession:
        """Open a session, masked."""
        return masking(profile).session(open_session(self.db, entry.number, self.host))

    def why_without_files(self, entry: Entry) -> str:
        """Why a session can be neither exported nor continued; "" if it can."""
        if self.engine:
            return "The files of this session are not on this machine."
        return "The source file of this session is missing." if entry.state == "gone" else ""

    def session_redactor(self, entry: Entry, profile: str) -> Redactor | None:
        """A redactor that knows the secrets of a session; None if nothing is masked, or the session cannot be read."""
        own_masking = masking(profile)
        if not own_masking.is_on:
            return None
        try:
            session = self.session(entry, NO_MASKING)
            state = str(self.catalog_state()) if entry.state == "gone" else source_state(session.source)
            key = entry.number, profile, session.path, state
            redactor = self._redactors.get(key)
            # The setting is another object after the user's rules have changed.
            if redactor is None or redactor.settings is not own_masking.redactor().settings:
                redactor = own_masking.learned_redactor(session)
        except (OSError, SourceUnreadable):
            return None
        if len(self._redactors) >= MAX_CACHED_REDACTORS:
            self._redactors.clear()
        self._redactors[key] = redactor
        return redactor

    def transcript(self, entry: Entry, profile: str) -> Transcript:
        """The transcript of a whole session."""
        key = entry.number, profile, user_zone(), _rules_file_state()
        return self._transcripts.get(key, lambda: self.session(entry, profile))

    def transcript_for_first_page(self, entry: Entry, profile: str) -> Transcript:
        """The transcript of a session; of a long one that is not cached, only the first window.

        A masked session is always read whole: its end may show what is secret at its beginning.
        """
        transcript = self._transcripts.cached((entry.number, profile, user_zone(), _rules_file_state()))
        if transcript is None and not masking(profile).is_on:
            transcript = first_window(self.session(entry, profile), entry.messages)
        return transcript or self.transcript(entry, profile)
