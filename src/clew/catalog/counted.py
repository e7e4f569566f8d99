"""Statistics on what was counted from the sources: the same statements, over rows that live as long as the answer."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from clew.catalog.days import month_of, spelled, week_of
from clew.catalog.ids import session_key
from clew.catalog.statements import TOKENS
from clew.catalog.tally import DAY, Counted, Use, uses

_COLUMNS = (
    "session_id TEXT, agent TEXT, model TEXT, project TEXT, git_branch TEXT, day_utc TEXT, week_utc TEXT,"
    f" month_utc TEXT, {{calls}}, {', '.join(f'{name} INTEGER' for name in TOKENS)}, cost_nano INTEGER"
)
_GROUPS = _COLUMNS.format(calls="calls INTEGER, priced_calls INTEGER") + ", min_ts_us INTEGER, max_ts_us INTEGER"
_CALLS = _COLUMNS.format(calls="is_priced INTEGER") + ", ts_us INTEGER, usage_id INTEGER"


def database(counted: Sequence[Counted], *, by_call: bool, named: bool = True) -> sqlite3.Connection:
    """The tables of usage, filled; with `by_call` every call by itself too, with `named` the names of sessions."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.execute(f"CREATE TABLE usage_days ({_GROUPS})")
    db.execute(
        "CREATE TABLE sessions (session_id TEXT, agent TEXT, native_id TEXT, title TEXT, workspace TEXT, project TEXT,"
        " git_branch TEXT)"
    )
    days: dict[int, tuple[str, str, str]] = {}
    # A name is made with care only where somebody reads it.
    found = uses(counted, one_by_one=by_call, named=session_key if named else "{} {}".format)
    _fill(db, "usage_days", [_row(use, days) for use in found])
    if by_call:
        db.execute(f"CREATE TABLE usage ({_CALLS})")
        _fill(db, "usage", [_call(use, days, number) for number, use in enumerate(found)])
    if named:
        places = {(each.agent, each.session): (each.folder, each.project) for each in counted}
        _fill(db, "sessions", [(session_key(*key), *key, "", *place, "") for key, place in places.items()])
    return db


def _fill(db: sqlite3.Connection, table: str, rows: Sequence[tuple[object, ...]]) -> None:
    if rows:
        db.execute("BEGIN")
        db.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
        db.execute("COMMIT")


def _named(day: int, days: dict[int, tuple[str, str, str]]) -> tuple[str, str, str]:
    """Day, week and month; day 0 stands for no time at all."""
    if day not in days:
        text = spelled(day * DAY)[:10] if day else ""
        days[day] = text, week_of(text), month_of(text)
    return days[day]


def _row(use: Use, days: dict[int, tuple[str, str, str]]) -> tuple[object, ...]:
    group = use.group
    place = (use.session_id, use.agent, group.model, use.project, group.branch, *_named(group.day, days))
    counts = (group.calls, group.priced_calls, *group.tokens, group.cost_nano)
    return (*place, *counts, group.min_ts_us, group.max_ts_us)


def _call(use: Use, days: dict[int, tuple[str, str, str]], number: int) -> tuple[object, ...]:
    *place, _, priced = _row(use, days)[:10]
    group = use.group
    return (*place, priced, *group.tokens, group.cost_nano, group.min_ts_us, number)
