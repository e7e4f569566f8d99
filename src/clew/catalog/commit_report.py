"""The commits of a range with their sessions, what these cost, and the sums of the range, as JSON values."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from clew.analysis.git_commits import co_authoring_agents
from clew.analysis.pricing import NANO_DOLLARS
from clew.catalog.commit_links import COUNTED_CERTAINTIES, RANKS, Certainty, Link
from clew.catalog.queries import Entry, entries, numbers_of, with_subagents
from clew.catalog.stats import Amounts
from clew.io.git import Commit
from clew.model.json import JSON
from clew.model.time import format_utc

CERTAINTIES: tuple[Certainty, ...] = (*COUNTED_CERTAINTIES, "possible")


def commit_report(
    db: sqlite3.Connection,
    commits: Sequence[Commit],
    links: Mapping[str, list[Link]],
    session_keys: Collection[str] = (),
) -> dict[str, JSON]:
    """The report that `clew commits --json` prints; with `session_keys`, only the commits of these sessions."""
    sources = _entries_by_source(db, {link.source for found in links.values() for link in found if link.source})
    if session_keys:
        kept = {
            name: [link for link in found if {link.session, _key_of(sources, link.source)} & set(session_keys)]
            for name, found in links.items()
        }
        commits, links = [commit for commit in commits if kept[commit.hash]], kept
    known = {link.session for commit in commits for link in links[commit.hash] if link.session}
    sessions = _sessions(db, known)
    rows = [_commit_row(commit, links[commit.hash], sessions, sources) for commit in commits]
    best = _best_certainties(link for commit in commits for link in links[commit.hash])
    commits_by_session = Counter(key for commit in commits for key in {link.session for link in links[commit.hash]})
    return {
        "commits": rows,
        "sessions": [
            {**_session_row(session, used), "certainty": best[key], "commits": commits_by_session[key]}
            for key, (session, used) in sorted(sessions.items(), key=lambda pair: -pair[1][0].ended_us)
        ],
        "totals": _totals(commits, links, sessions, best),
    }


def _sessions(db: sqlite3.Connection, keys: Iterable[str]) -> dict[str, tuple[Entry, Amounts]]:
    """Sessions by key, each with the usage of itself and its sub-agents."""
    wanted = set(keys)
    families = entries(db, sorted(numbers_of(db, with_subagents(db, sorted(wanted)))))
    parents = {entry.key: entry.parent for entry in families}
    used = defaultdict[str, Amounts](Amounts)
    for entry in families:
        key = entry.key
        for _ in parents:
            if key in wanted or key not in parents:
                break
            key = parents[key]
        used[key] = used[key] + entry.used
    return {entry.key: (entry, used[entry.key]) for entry in families if entry.key in wanted}


def _entries_by_source(db: sqlite3.Connection, numbers: Iterable[int]) -> dict[int, Entry]:
    return {entry.number: entry for entry in entries(db, sorted(numbers))}


def _key_of(sources: Mapping[int, Entry], number: int) -> str | None:
    return sources[number].key if number in sources else None


def _commit_row(
    commit: Commit, links: Sequence[Link], sessions: Mapping[str, tuple[Entry, Amounts]], sources: Mapping[int, Entry]
) -> dict[str, JSON]:
    return {
        "commit": commit.hash,
        "time": _time(commit.commit_time),
        "author_time": _time(commit.author_time),
        "subject": commit.subject,
        "is_merge": len(commit.parents) > 1,
        "co_authors": co_authoring_agents(commit.message),
        "sessions": [
            _link_row(link, sessions, sources) for link in links if not link.session or link.session in sessions
        ],
    }


def _time(seconds: int | None) -> str | None:
    return format_utc(seconds * 1_000_000) if seconds is not None else None


def _link_row(
    link: Link, sessions: Mapping[str, tuple[Entry, Amounts]], sources: Mapping[int, Entry]
) -> dict[str, JSON]:
    entry = sources.get(link.source)
    empty = dict.fromkeys(("id", "agent", "title", "cost", "cost_is_at_least", "total_tokens"))
    return {
        **(_session_row(*sessions[link.session]) if link.session else empty),
        "certainty": link.certainty,
        "evidence": link.evidence,
        "detail": link.detail or None,
        "message": link.message or None,
        "subagent": entry.id if entry is not None and entry.key != link.session else None,
    }


def _session_row(entry: Entry, used: Amounts) -> dict[str, JSON]:
    return {"id": entry.id, "agent": entry.agent, "title": entry.title or None, **_cost_columns(used)}


def _cost_columns(used: Amounts) -> dict[str, JSON]:
    return {
        "cost": used.cost_nano / NANO_DOLLARS if used.priced_calls else None,
        "cost_is_at_least": used.cost_is_lower_bound,
        "total_tokens": used.total_tokens,
    }


def _best_certainties(links: Iterable[Link]) -> dict[str, Certainty]:
    """The most certain link of each session."""
    found: dict[str, Certainty] = {}
    for link in sorted(links, key=lambda link: RANKS[link.certainty]):
        if link.session:
            found.setdefault(link.session, link.certainty)
    return found


def _totals(
    commits: Sequence[Commit],
    links: Mapping[str, list[Link]],
    sessions: Mapping[str, tuple[Entry, Amounts]],
    best: Mapping[str, Certainty],
) -> dict[str, JSON]:
    """Commits by their most certain link, and the usage of sessions by theirs; each session counts once."""
    by_certainty: dict[str, JSON] = {}
    for certainty in CERTAINTIES:
        chosen = [used for key, (_, used) in sessions.items() if best.get(key) == certainty]
        of_commits = sum(bool(found := links[commit.hash]) and found[0].certainty == certainty for commit in commits)
        by_certainty[certainty] = _sum_row(of_commits, chosen)
    counted = [used for key, (_, used) in sessions.items() if best.get(key) in COUNTED_CERTAINTIES]
    linked = sum(bool(found := links[commit.hash]) and found[0].is_counted for commit in commits)
    stated = sum(bool(found := links[commit.hash]) and found[0].certainty == "stated" for commit in commits)
    return {"commits": len(commits), "linked": _sum_row(linked, counted), **by_certainty, "stated": {"commits": stated}}


def _sum_row(commits: int, used: Sequence[Amounts]) -> dict[str, JSON]:
    total = Amounts()
    for one in used:
        total = total + one
    return {"commits": commits, "sessions": len(used), **_cost_columns(total)}
