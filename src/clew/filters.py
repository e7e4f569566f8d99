"""The filters every command, page and program shares."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec

from clew.agents.file_evidence import is_windows
from clew.errors import UsageError
from clew.io.git_worktrees import same_folder_in_worktrees
from clew.model.json import JSON
from clew.model.time import parse_time
from clew.sources import moved_projects
from clew.timezone import local_time, user_zone

FILTER_NAMES = (
    *("agent", "project", "here", "branch", "model", "since", "until", "tool", "file", "has", "text"),
    *("label", "starred", "min_prompts", "commits"),
)
FOLDER_FILTERS = ("here", "commits")
"""The filters that mean the current folder, which a browser does not have."""
HAS = ("error", "thinking", "subagent", "edit")
_AGO = re.compile(r"(\d{1,18}) ?(m|min|minutes?|h|hours?|d|days?|w|weeks?|mo|months?|y|years?)")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
"""Units of constant length by their first letter."""
_MONTHS_PER_UNIT = {"mo": 1, "y": 12}
_DATE = re.compile(r"(\d{4})(?:([-/])(\d\d)(?:\2(\d\d))?)?")
_OFFSET = re.compile(r"(?:z|:\d\d(?:[.,]\d+)? ?[+-]\d\d(?::?\d\d)?)$")
"""The end of a time that says its offset from UTC."""
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_FIRST_DAYS: dict[str, Callable[[date], date]] = {
    "week": lambda day: day - timedelta(days=day.weekday()),
    "month": lambda day: day.replace(day=1),
    "year": lambda day: day.replace(month=1, day=1),
}
"""The first day of the week, month or year of a day."""


class CommitRange(NamedTuple):
    """Commits of a git repository."""

    repository: str
    """A folder in it."""
    revisions: str
    """As `git log` takes them, such as `main..HEAD`; "" for all up to HEAD."""


class Filters(msgspec.Struct, frozen=True, kw_only=True):
    """All must hold. Text filters ignore case."""

    agent: tuple[str, ...] = ()
    project: str | None = None
    folders: tuple[str, ...] = ()
    """The project's folder is one of these, or below one of these."""
    sessions: tuple[str, ...] = ()
    """The keys of sessions, as `clew.catalog.ids.session_key` makes them."""
    branch: str | None = None
    model: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    tool: str | None = None
    file: str | None = None
    has: tuple[str, ...] = ()
    text: str | None = None
    label: tuple[str, ...] = ()
    """The session or one of its messages has each of these labels."""
    starred: bool = False
    """The session or one of its messages has a star."""
    min_prompts: int | None = None
    """A person has written at least this many prompts; sub-agents have none."""
    commits: CommitRange | None = None
    """The session made one of these commits, certainly or likely, or is a sub-agent of one that did."""

    @classmethod
    def of(cls, *, now: datetime | None = None, **given: JSON) -> Filters:
        """Filters from plain words, as a command line or an address gives them; None and empty values are ignored.

        A project that is a path, such as `.` or `/home/ada/tide`, means that folder and below; `here=True` means the
        current folder and below, also in other worktrees of its git repository. Moved projects are found by both paths.
        `commits="main..HEAD"` means commits of the repository of the current folder.
        """
        for name in given:
            if name not in FILTER_NAMES:
                raise UsageError(f"unknown filter {name!r}; known: {', '.join(sorted(FILTER_NAMES))}")
        words = {name: value for name, value in given.items() if value not in (None, "", (), False)}
        if words.pop("here", False):
            current = Path.cwd()
            words["folders"] = recorded_folders(map(str, [current, *same_folder_in_worktrees(current)]))
        if is_path(words.get("project", "")):
            if "folders" in words:
                raise UsageError("--here and a path as --project exclude each other")
            words["folders"] = recorded_folders([words.pop("project")])
        for name in ("since", "until"):
            if name in words:
                words[name] = point_in_time(words[name], now or datetime.now(UTC))
        for name in ("agent", "has", "label"):
            if name in words:
                words[name] = (words[name],) if isinstance(words[name], str) else tuple(words[name])
        if "agent" in words:
            from clew.agents import registry  # takes longer to load than a status line may take

            words["agent"] = tuple(map(registry.match, words["agent"]))
        for value in words.get("has", ()):
            if value not in HAS:
                raise UsageError(f"unknown value {value!r} for `has`; choose from {', '.join(HAS)}")
        if "starred" in words:
            words["starred"] = is_yes(words["starred"])
        if isinstance(words.get("commits"), str):
            words["commits"] = CommitRange(str(Path.cwd()), words["commits"])
        if "min_prompts" in words:
            words["min_prompts"] = _least_number(words["min_prompts"])
        return cls(**words)

    @property
    def needs_text(self) -> bool:
        """True where a filter looks into the stored text of messages."""
        return self.file is not None or self.text is not None

    def without(self, *names: str) -> Filters:
        """These filters but for some of them."""
        return msgspec.structs.replace(self, **{name: getattr(NO_FILTERS, name) for name in names})


NO_FILTERS = Filters()


def is_yes(value: JSON) -> bool:
    """What a filter that is on or off means, as a program or an address gives it; None is off."""
    return str(value or "no").lower() not in ("0", "false", "no")


def _least_number(value: JSON) -> int:
    if not re.fullmatch(r"\d{1,9}", str(value), re.ASCII):
        raise UsageError(f"unknown number {value!r} for `min_prompts`; it is a whole number, such as 2")
    return int(value)


def is_path(project: str) -> bool:
    """True for a project that is named by the path of its folder, and not by a part of it."""
    begins_like_path = project.startswith(("/", "./", "../", "~/", ".\\", "..\\")) or is_windows(project)
    return begins_like_path or project in (".", "..", "~")


def recorded_folders(folders: Iterable[str]) -> tuple[str, ...]:
    """The paths under which sessions may know these folders: as given, with links resolved, and before they moved."""
    moved, found = moved_projects.load(), list[str]()
    for folder in map(moved_projects.full_path, folders):
        names = [folder] if is_windows(folder) else [folder, str(Path(folder).resolve())]
        found += [path for name in names for path in moved_projects.recorded_paths(name, moved)]
    return tuple(dict.fromkeys(found))


def point_in_time(words: JSON, now: datetime) -> datetime:
    """The beginning of a day, week, month or year, a time, or how long ago, in UTC.

    `today`, `monday`, `october`, `last week`, `this month`, `2026-11`, `2026-11-03`, `2026-11-03T10:00`, `3d`, `12h`,
    `6mo`, `2 years ago`. Days begin at midnight in the zone of the user, and a time without an offset is in that zone.
    Times that are days ago and more are those of the last quarter of an hour.
    """
    if isinstance(words, datetime):
        return words if words.tzinfo is not None else words.replace(tzinfo=user_zone()).astimezone(UTC)
    text = " ".join(str(words).lower().split())
    ago = _AGO.fullmatch(text.removesuffix(" ago"))
    try:
        if ago:
            return _time_before(now, int(ago[1]), ago[2])
        day = _named_day(text, local_time(now).date())
        stamp = _midnight(day) if day is not None else _clock_time(text)
    except (ValueError, OverflowError):
        stamp = None
    if stamp is None:
        raise UsageError(f"unknown time {words!r}; try today, last week, 3d, 6mo, october, 2026-11, 2026-11-03")
    return stamp


def _time_before(now: datetime, count: int, unit: str) -> datetime:
    """The time `count` units before now; a day that does not exist in that month becomes its last day.

    Of days and longer units, the quarter of an hour in which it is, from its beginning: the catalog has sums of these.
    """
    months = next((count * each for name, each in _MONTHS_PER_UNIT.items() if unit.startswith(name)), None)
    if months is None:
        before = now - timedelta(**{_UNITS[unit[0]]: count})
    else:
        year, month = divmod(now.year * 12 + now.month - 1 - months, 12)
        before = now.replace(year=year, month=month + 1, day=min(now.day, monthrange(year, month + 1)[1]))
    if months is None and unit[0] in "mh":
        return before
    return before.replace(minute=before.minute // 15 * 15, second=0, microsecond=0)


def _named_day(text: str, today: date) -> date | None:
    """The first day of what the words name; None if they name no day, week, month or year."""
    if text in ("today", "yesterday"):
        return today - timedelta(days=text == "yesterday")
    weekday = next((number for number, name in enumerate(_WEEKDAYS) if text in (name, name[:3])), None)
    if weekday is not None:
        return today - timedelta(days=(today.weekday() - weekday) % 7)
    month = next((number for number, name in enumerate(_MONTHS, 1) if text in (name, name[:3])), None)
    if month is not None:
        return date(today.year - (month > today.month), month, 1)
    which, _, period = text.partition(" ")
    if which in ("this", "last") and period in _FIRST_DAYS:
        first = _FIRST_DAYS[period](today)
        return first if which == "this" else _FIRST_DAYS[period](first - timedelta(days=1))
    written = _DATE.fullmatch(text)
    return date(int(written[1]), int(written[3] or 1), int(written[4] or 1)) if written else None


def _midnight(day: date) -> datetime:
    """When a day begins in the zone of the user; where the clock skips midnight, after the gap."""
    return datetime(day.year, day.month, day.day, tzinfo=user_zone()).astimezone(UTC)


def _clock_time(text: str) -> datetime | None:
    """A date with a time of day; None if the text is not one."""
    stamp = parse_time(text.upper())
    if stamp is None or _OFFSET.search(text):
        return stamp
    return stamp.replace(tzinfo=user_zone()).astimezone(UTC)
