"""Connects git commits with sessions, each link with its evidence and how certain it is.

- The agent's own call made the commit: git printed its hash. A commit that was rewritten since keeps its author date,
  its subject or its patch; a squash lists the commits that it was made of.
- A trailer in the message names the session.
- The session wrote lines that the commit adds, or at least changed its files in that time.

All of it comes from the catalog and from git; no session is read again.
"""

from __future__ import annotations

import json
import re
import sqlite3
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from clew.agents.file_evidence import absolute
from clew.analysis.git_commits import (
    CHECKPOINT_TRAILER,
    MentionKind,
    listed_subjects,
    session_trailers,
    source_commits,
)
from clew.catalog.database import key_range
from clew.catalog.queries import with_subagents
from clew.catalog.schema import KEYS_PER_SOURCE
from clew.catalog.text_store import TextStore
from clew.catalog.tool_arguments import written_lines
from clew.errors import SourceUnreadable, UsageError
from clew.filters import CommitRange, Filters, recorded_folders
from clew.io.codec import NOT_JSON, loads
from clew.io.git import MAX_COMMITS, MAX_DIFF_BYTES, Commit, CommitLog, Diffs, Repository, open_repository
from clew.io.paths import path_from_text, path_to_text

Certainty = Literal["certain", "likely", "possible", "stated"]
"""`stated`: a trailer names a session that is not known here."""
Evidence = Literal["call", "trailer", "rewritten", "squashed", "commit-time", "patch", "content", "time"]
EVIDENCE_TEXT: Mapping[Evidence, str] = {
    "call": "its git call printed the hash",
    "trailer": "named by a trailer",
    "rewritten": "its commit was rewritten",
    "squashed": "its commit is listed in the message",
    "commit-time": "committed during its git call",
    "patch": "it committed the same patch",
    "content": "it wrote lines of the commit",
    "time": "it changed these files before",
}
COUNTED_CERTAINTIES: tuple[Certainty, ...] = ("certain", "likely")
"""The certainties of links that a filter and the sums of a range count."""
RANKS: Mapping[Certainty, int] = {"certain": 0, "likely": 1, "possible": 2, "stated": 3}

CLOCK_TOLERANCE_SECONDS = 2
"""Git's times are whole seconds, and a call may be recorded shortly after it began."""
MAX_CALL_SECONDS = 6 * 3600
"""A call may wait for a person to allow it. The times of a longer one are damaged, or say too little."""
CONTENT_DAYS = 30
"""Changes of files so long before a commit are compared with it."""
MIN_CONTENT_SHARE = 0.2
"""The share of a commit's added lines that a session wrote, from which the link is likely."""
MIN_LINE_CHARS = 8
"""Shorter lines, such as `else:`, are written by anyone."""
MIN_SUBJECT_CHARS = 10
MIN_HASH_CHARS = 7
MAX_PATCHES = 500
"""Commits of sessions that are no longer in the range, whose patches are compared."""
MAX_CHECKPOINT_SESSIONS = 8
_NESTED_WORKTREE = re.compile(r"^\.(?:claude/)?worktrees/[^/]+/")
"""Agents put worktrees into the repository, and remove them after their work."""
_CHECKPOINT_BRANCHES = ("refs/heads/entire/checkpoints/v1", "refs/remotes/origin/entire/checkpoints/v1")
_CHECKPOINT = re.compile(r"[0-9a-f]{12}")


class Link(NamedTuple):
    """A session that a commit comes from."""

    session: str
    """The key of the session; empty if it is not known here. Sub-agents count for the session that started them."""
    certainty: Certainty
    evidence: Evidence
    source: int = 0
    """The number of the source with the evidence: of the session or of one of its sub-agents."""
    message: int = 0
    """The number of the message with the evidence; 0 if it is no single message."""
    detail: str = ""
    """The trailer, the rewritten commit, or the share of added lines."""

    @property
    def is_counted(self) -> bool:
        """True if a filter and the sums of a range count the session."""
        return self.certainty in COUNTED_CERTAINTIES


class FoundLinks(NamedTuple):
    """The sessions of some commits."""

    by_commit: dict[str, list[Link]]
    """By the hash of the commit, the most certain first."""
    is_cut: bool
    """True if not all changes of the commits were read."""


class _Session(NamedTuple):
    """A session of the catalog."""

    key: str
    parent: str
    native_id: str
    workspace: str | None


class _Mention(NamedTuple):
    """A row of the table `commit_mention`."""

    message: int
    kind: MentionKind
    name: str
    subject: str
    started_us: int
    ended_us: int

    @property
    def source(self) -> int:
        return self.message // KEYS_PER_SOURCE

    @property
    def window(self) -> tuple[float, float] | None:
        """The first and the last second at which git can have run; None if the times of the call are of no use."""
        if self.started_us <= 0 or self.ended_us - self.started_us > MAX_CALL_SECONDS * 1_000_000:
            return None
        return self.started_us / 1e6 - CLOCK_TOLERANCE_SECONDS, self.ended_us / 1e6 + CLOCK_TOLERANCE_SECONDS

    @property
    def has_duration(self) -> bool:
        """True if it is known when the call began and ended. Some agents record one time for both, or none."""
        return self.window is not None and self.ended_us > self.started_us

    def was_running_at(self, seconds: int | None) -> bool:
        """True if a time of git is known and within the call."""
        return seconds is not None and (window := self.window) is not None and window[0] <= seconds <= window[1]


class _Change(NamedTuple):
    """A change of a file of the repository by a message."""

    message: int
    time: float
    path: str
    """Relative to the repository."""
    added: int | None
    """Lines that it added at most; None if that is not known."""


def with_commit_sessions(db: sqlite3.Connection, filters: Filters) -> Filters:
    """The filters with the keys of the sessions of the wanted commits, in place of the range.

    Raises UsageError for a range that cannot be read as a whole: sessions of it would be left out.
    """
    if filters.commits is None:
        return filters
    repository = open_repository(Path(filters.commits.repository))
    log = commits_of(repository, filters.commits)
    if log.is_cut:
        raise _too_large(filters.commits, f"{MAX_COMMITS:,} commits")
    links = find_links(db, repository, log.commits)
    if links.is_cut:
        raise _too_large(filters.commits, f"{MAX_DIFF_BYTES >> 20} MB of changes to compare")
    found = {link.session for of_commit in links.by_commit.values() for link in of_commit if link.is_counted}
    keys = set(with_subagents(db, sorted(found)))
    if filters.sessions:
        keys &= set(filters.sessions)
    return msgspec.structs.replace(filters.without("commits"), sessions=tuple(sorted(keys)) or ("",))


def _too_large(wanted: CommitRange, limit: str) -> UsageError:
    return UsageError(f"the commit range {wanted.revisions or 'HEAD'} has more than {limit}; name a smaller range")


def commits_of(repository: Repository, wanted: CommitRange, limit: int | None = None) -> CommitLog:
    """The commits of a range."""
    if not wanted.revisions and repository.is_empty():
        return CommitLog([], is_cut=False)
    named = wanted.revisions or "HEAD"
    return repository.commits([named], limit)


def commits_since(db: sqlite3.Connection, repository: Repository, key: str, limit: int | None = None) -> CommitLog:
    """The commits of all branches that can come from a session: not older than it, or without a valid time."""
    row = db.execute("SELECT min(started_us) FROM session WHERE session_id = ? AND started_us > 0", (key,)).fetchone()
    since = row[0] // 1_000_000 - CLOCK_TOLERANCE_SECONDS if row[0] else None
    return CommitLog([], is_cut=False) if repository.is_empty() else repository.commits([], limit, since=since)


def find_links(db: sqlite3.Connection, repository: Repository, commits: Sequence[Commit]) -> FoundLinks:
    """The sessions of some commits."""
    return _LinkFinder(db, repository, commits).links()


class _LinkFinder:
    """Finds the links of some commits, by one kind of evidence after the other."""

    def __init__(self, db: sqlite3.Connection, repository: Repository, commits: Sequence[Commit]) -> None:
        self._db, self._repository, self._commits = db, repository, commits
        self._found: dict[str, dict[str, Link]] = {commit.hash: {} for commit in commits}
        """The best link of each commit and session."""

    def links(self) -> FoundLinks:
        if self._commits:
            self._find_calls()
            self._find_trailers()
            self._find_rewritten()
            self._find_content()
            self._find_patches()
        by_commit = {
            name: sorted(links.values(), key=lambda link: (RANKS[link.certainty], link.session, link.detail))
            for name, links in self._found.items()
        }
        return FoundLinks(by_commit, self._diffs.is_cut)

    def _add(self, commit: Commit, link: Link) -> None:
        links, key = self._found[commit.hash], link.session or f"stated {link.detail}"
        if key not in links or RANKS[link.certainty] < RANKS[links[key].certainty]:
            links[key] = link

    def _add_mention(
        self, commit: Commit, mention: _Mention, certainty: Certainty, evidence: Evidence, detail: str = ""
    ) -> None:
        key = self._root_of(mention.source)
        if key is not None:
            number = mention.message % KEYS_PER_SOURCE
            self._add(commit, Link(key, certainty, evidence, mention.source, number, detail))

    def _has_counted(self, commit: Commit) -> bool:
        return any(link.is_counted for link in self._found[commit.hash].values())

    @cached_property
    def _sessions(self) -> dict[int, _Session]:
        query = "SELECT id, session_id, parent_session_id, native_id, json_extract(header, '$.workspace') FROM session"
        return {
            number: _Session(key, parent, native, path_from_text(workspace) if workspace else None)
            for number, key, parent, native, workspace in self._db.execute(query)
        }

    @cached_property
    def _parents(self) -> dict[str, str]:
        return {session.key: session.parent for session in self._sessions.values()}

    def _root_of(self, source: int) -> str | None:
        """The key of the session that a source belongs to: for a sub-agent, of the one that started it."""
        session = self._sessions.get(source)
        if session is None:
            return None
        key, seen = session.key, {session.key}
        while (parent := self._parents.get(key, "")) in self._parents and parent not in seen:
            seen.add(parent)
            key = parent
        return key

    @cached_property
    def _mentions(self) -> list[_Mention]:
        query = """SELECT c.message, c.kind, c.name, c.subject, c.started_us, c.ended_us FROM commit_mention c
          JOIN message m ON m.id = c.message WHERE m.is_visible = 1 ORDER BY c.id"""
        return [_Mention(*row) for row in self._db.execute(query)]

    @cached_property
    def _by_prefix(self) -> dict[str, list[_Mention]]:
        """The mentions of hashes by their first characters."""
        found = defaultdict[str, list[_Mention]](list)
        for mention in self._mentions:
            if mention.kind in ("made", "printed"):
                found[mention.name[:MIN_HASH_CHARS]].append(mention)
        return found

    @cached_property
    def _roots(self) -> tuple[str, ...]:
        """The folders of the repository, as sessions may have recorded them."""
        return recorded_folders(map(str, self._repository.worktrees))

    @cached_property
    def _sources_in_repository(self) -> frozenset[int]:
        """The sources of sessions that worked in the repository."""
        return frozenset(
            number
            for number, session in self._sessions.items()
            if session.workspace and self._below_root(absolute(session.workspace, None)) is not None
        )

    def _below_root(self, path: str) -> str | None:
        """A path relative to the repository; None outside of it."""
        for root in self._roots:
            if path == root:
                return ""
            if path.startswith(f"{root.rstrip('/')}/"):
                return _NESTED_WORKTREE.sub("", path[len(root.rstrip("/")) + 1 :])
        return None

    def _mentions_of(self, name: str) -> Iterator[_Mention]:
        """The calls whose output names a commit, by its full hash."""
        return (mention for mention in self._by_prefix.get(name[:MIN_HASH_CHARS], ()) if name.startswith(mention.name))

    def _find_calls(self) -> None:
        """Link commits with the calls that made them. A short hash alone could be of another repository.

        A call that ran at another time only listed the commit.
        """
        for commit in self._commits:
            for mention in self._mentions_of(commit.hash):
                if mention.subject != commit.subject.strip() and mention.source not in self._sources_in_repository:
                    continue
                is_made = mention.kind == "made"
                if mention.was_running_at(commit.author_time) or (
                    is_made and mention.was_running_at(commit.commit_time)
                ):
                    self._add_mention(commit, mention, "certain", "call")
                elif is_made and not (mention.has_duration and commit.known_times):
                    self._add_mention(commit, mention, "likely", "call")

    def _find_trailers(self) -> None:
        trailers = {commit.hash: session_trailers(commit.message) for commit in self._commits}
        if not any(trailers.values()):
            return
        checkpoints = [one.name for found in trailers.values() for one in found if one.key == CHECKPOINT_TRAILER]
        in_checkpoint = _checkpoint_sessions(self._repository, checkpoints)
        by_native = defaultdict[str, set[int]](set)
        for number, session in self._sessions.items():
            by_native[session.native_id].add(number)
        by_trailer = defaultdict[str, list[_Mention]](list)
        for mention in self._mentions:
            if mention.kind == "trailer":
                by_trailer[mention.name].append(mention)
        for commit in self._commits:
            for trailer in trailers[commit.hash]:
                names = in_checkpoint.get(trailer.name, []) if trailer.key == CHECKPOINT_TRAILER else [trailer.name]
                detail, is_known = f"{trailer.key}: {trailer.name}", False
                for number in {number for name in names for number in by_native.get(name, ())}:
                    if (key := self._root_of(number)) is not None:
                        self._add(commit, Link(key, "certain", "trailer", number, 0, detail))
                        is_known = True
                for mention in by_trailer.get(trailer.name, ()):
                    self._add_mention(commit, mention, "certain", "trailer", detail)
                    is_known = True
                if not is_known:
                    self._add(commit, Link("", "stated", "trailer", detail=detail))

    def _find_rewritten(self) -> None:
        """Link commits that were amended, rebased, picked or squashed with the calls that made the first version."""
        by_subject = defaultdict[str, list[_Mention]](list)
        for mention in self._mentions:
            if mention.kind == "made":
                by_subject[mention.subject].append(mention)
        for commit in self._commits:
            for mention in by_subject.get(commit.subject.strip(), ()):
                if mention.was_running_at(commit.author_time):
                    self._add_mention(commit, mention, "likely", "rewritten", mention.name)
            for name in source_commits(commit.message):
                for mention in self._mentions_of(name):
                    if mention.kind == "made":
                        self._add_mention(commit, mention, "likely", "squashed", mention.name)
            for subject in listed_subjects(commit.message):
                for mention in by_subject.get(subject, ()) if len(subject) >= MIN_SUBJECT_CHARS else ():
                    last = commit.commit_time
                    is_before = last is not None and mention.started_us / 1e6 <= last + CLOCK_TOLERANCE_SECONDS
                    if is_before and mention.source in self._sources_in_repository:
                        self._add_mention(commit, mention, "likely", "squashed", mention.name)
        self._find_by_time()

    def _find_by_time(self) -> None:
        """Link commits with the call that ran when they were authored, if its own commit is not in the range.

        The time of the commit itself is no evidence: a rebase commits what others wrote.
        """
        timed = [(commit.author_time, commit) for commit in self._commits if commit.author_time is not None]
        timed.sort(key=itemgetter(0))
        times = [time for time, _ in timed]
        for mention in self._mentions:
            is_silent = mention.kind == "silent"
            is_rewritten = mention.kind == "made" and not self._is_in_range(mention.name)
            window = mention.window if is_silent or is_rewritten else None
            if window is None or mention.source not in self._sources_in_repository:
                continue
            evidence: Evidence = "commit-time" if is_silent else "rewritten"
            for _, commit in timed[bisect_left(times, window[0]) : bisect_right(times, window[1])]:
                self._add_mention(commit, mention, "likely", evidence, mention.name)

    @cached_property
    def _range_by_prefix(self) -> dict[str, list[str]]:
        found = defaultdict[str, list[str]](list)
        for commit in self._commits:
            found[commit.hash[:MIN_HASH_CHARS]].append(commit.hash)
        return found

    def _is_in_range(self, name: str) -> bool:
        """True if a hash or its beginning is of a commit in the range."""
        return any(one.startswith(name) for one in self._range_by_prefix.get(name[:MIN_HASH_CHARS], ()))

    @cached_property
    def _diffs(self) -> Diffs:
        """The changes of the commits; none where git cannot read them, as in a partial clone."""
        try:
            return self._repository.diffs(commit.hash for commit in self._commits)
        except (SourceUnreadable, UsageError):
            return Diffs({}, is_cut=False)

    def _find_patches(self) -> None:
        """Link commits with calls that made a commit with the same changes, which git still has."""
        unlinked = [commit for commit in self._commits if not self._has_counted(commit)]
        if not unlinked:
            return
        first_us, last_us = (limit * 1_000_000 for limit in self._time_limits)
        made = {
            mention.name: mention
            for mention in reversed(self._mentions)
            if mention.kind == "made" and first_us <= mention.started_us <= last_us
            if mention.source in self._sources_in_repository and not self._is_in_range(mention.name)
        }
        names = list(made)[:MAX_PATCHES]
        if not names:
            return
        try:
            full = self._repository.full_hashes(names)
            patches = self._repository.diffs(full.values())
        except (SourceUnreadable, UsageError):
            return
        if patches.is_cut:
            patches.by_commit.popitem()  # The last one is not complete.
        by_patch = {
            frozenset(patches.by_commit[whole]): made[name]
            for name, whole in full.items()
            if patches.by_commit.get(whole)
        }
        for commit in unlinked:
            mention = by_patch.get(frozenset(self._diffs.by_commit.get(commit.hash, ())))
            if mention is not None:
                self._add_mention(commit, mention, "likely", "patch", mention.name)

    def _find_content(self) -> None:
        """Link commits with sessions that changed their files before, by the lines they wrote or by the time alone."""
        changes = self._changes_by_path()
        if not changes:
            return
        written = _WrittenLines(self._db, (change.message for found in changes.values() for change in found))
        times = {commit.hash: commit.commit_time for commit in self._commits}
        times |= self._repository.commit_times(
            sorted({parent for commit in self._commits for parent in commit.parents[:1] if parent not in times})
        )
        for commit in self._commits:
            is_linked = self._has_counted(commit)
            before = (times.get(commit.parents[0]) if commit.parents else None) or 0
            added = {line for diff in self._diffs.by_commit.get(commit.hash, ()) for line in _notable_lines(diff.added)}
            by_session = self._changes_of(commit, changes)
            for key, found in by_session.items():
                share = _written_count(added, found, written) / len(added) if added else 0.0
                last = max(found, key=lambda change: change.time)
                source, number = divmod(last.message, KEYS_PER_SOURCE)
                if share >= MIN_CONTENT_SHARE:
                    self._add(commit, Link(key, "likely", "content", source, number, f"{share:.0%} of added lines"))
                elif share > 0 and not is_linked:
                    self._add(commit, Link(key, "possible", "content", source, number, f"{share:.0%} of added lines"))
                elif not is_linked and last.time > before:
                    self._add(commit, Link(key, "possible", "time", source, number))

    @cached_property
    def _time_limits(self) -> tuple[int, int]:
        """The first and the last second at which something can have led to a commit of the range."""
        times = [time for commit in self._commits for time in commit.known_times]
        if not times:
            return 0, 0
        return min(times) - CONTENT_DAYS * 86_400, max(times) + CLOCK_TOLERANCE_SECONDS

    def _changes_of(self, commit: Commit, changes: Mapping[str, list[_Change]]) -> dict[str, list[_Change]]:
        """The changes of the files of a commit before it, by session."""
        found = defaultdict[str, list[_Change]](list)
        if not commit.known_times:
            return found
        last = max(commit.known_times) + CLOCK_TOLERANCE_SECONDS
        first = min(commit.known_times) - CONTENT_DAYS * 86_400
        for path in {diff.path for diff in self._diffs.by_commit.get(commit.hash, ())}:
            for change in changes.get(path, ()):
                key = self._root_of(change.message // KEYS_PER_SOURCE) if first <= change.time <= last else None
                if key is not None:
                    found[key].append(change)
        return found

    def _changes_by_path(self) -> dict[str, list[_Change]]:
        """The changes that sessions made to files of the commits, by path."""
        paths = {diff.path for diffs in self._diffs.by_commit.values() for diff in diffs}
        if not paths or not self._roots:
            return {}
        first, last = self._time_limits
        inside = " OR ".join(["substr(c.path, 1, 1) <> '/'", *("substr(c.path, 1, ?) = ?" for _ in self._roots)])
        values = [value for root in map(path_to_text, self._roots) for value in (len(root), root)]
        query = f"""SELECT c.message, c.path, c.lines_added, m.ts_us FROM change c JOIN message m ON m.id = c.message
          WHERE ({inside}) AND m.is_visible = 1 AND m.ts_us BETWEEN ? AND ?"""
        found = defaultdict[str, list[_Change]](list)
        for message, path, added, time_us in self._db.execute(query, (*values, first * 1_000_000, last * 1_000_000)):
            session = self._sessions.get(message // KEYS_PER_SOURCE)
            inner = self._below_root(absolute(path_from_text(path), session.workspace)) if session is not None else None
            if inner in paths:
                found[inner].append(_Change(message, time_us / 1e6, inner, added))
        return found


class _WrittenLines:
    """The lines in the arguments of calls that change files, by message."""

    def __init__(self, db: sqlite3.Connection, messages: Iterable[int]) -> None:
        self._store = TextStore(db)
        self._blocks = defaultdict[int, list[int]](list)
        self._lines: dict[int, frozenset[str]] = {}
        by_source = defaultdict[int, set[int]](set)
        for message in messages:
            by_source[message // KEYS_PER_SOURCE].add(message)
        query = """SELECT b.id, b.message FROM block b JOIN string t ON t.id = b.type
          WHERE b.id BETWEEN ? AND ? AND t.text = 'tool_use' AND b.message IN (SELECT value FROM json_each(?))"""
        for source, wanted in by_source.items():
            for block, message in db.execute(query, (*key_range(source), json.dumps(sorted(wanted)))):
                self._blocks[message].append(block)

    def get(self, message: int) -> frozenset[str]:
        """The lines that the calls of a message may have written."""
        if message not in self._lines:
            texts = (self._store.get(block) or "" for block in self._blocks.get(message, ()))
            self._lines[message] = frozenset(_notable_lines(line for text in texts for line in written_lines(text)))
        return self._lines[message]


def _written_count(added: set[str], changes: Sequence[_Change], written: _WrittenLines) -> int:
    """How many lines of a commit some changes wrote.

    The text of an edit also has the lines that it replaced. So no more lines count than the changes added.
    """
    adding = [change for change in changes if change.added != 0]
    count = len(added & set[str]().union(*(written.get(change.message) for change in adding)))
    counts = [change.added for change in adding]
    return min(count, sum(number for number in counts if number is not None)) if None not in counts else count


def _notable_lines(lines: Iterable[str]) -> Iterator[str]:
    """Lines without the space around them, if they are long enough to say who wrote them."""
    return (text for line in lines if len(text := line.strip()) >= MIN_LINE_CHARS)


def _checkpoint_sessions(repository: Repository, checkpoints: Sequence[str]) -> dict[str, list[str]]:
    """The ids of the sessions of Entire's checkpoints, as its branch in the repository names them."""
    names: dict[str, str] = {}
    for one in filter(_CHECKPOINT.fullmatch, checkpoints):
        folder = f"{one[:2]}/{one[2:]}"
        inner = [folder, *(f"{folder}/{number}" for number in range(MAX_CHECKPOINT_SESSIONS))]
        names |= {f"{branch}:{at}/metadata.json": one for branch in _CHECKPOINT_BRANCHES for at in inner}
    found = defaultdict[str, list[str]](list)
    try:
        contents = repository.files(list(names))
    except (SourceUnreadable, UsageError):
        return {}
    for name, content in contents.items():
        try:
            metadata = loads(content)
        except NOT_JSON:
            continue
        session = metadata.get("session_id") if isinstance(metadata, dict) else None
        if isinstance(session, str):
            found[names[name]].append(session)
    return found
