"""The filters every command, page and program shares."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from clew.agents import registry
from clew.agents.file_evidence import is_windows
from clew.errors import UsageError
from clew.io.git_worktrees import same_folder_in_worktrees
from clew.model.json import JSON
from clew.model.time import parse_time
from clew.sources import moved_projects

FILTER_NAMES = ("agent", "project", "here", "branch", "model", "since", "until", "tool", "file", "has", "text")
HAS = ("error", "thinking", "subagent", "edit")
EDITING_TOOLS = frozenset(
    {"Edit", "Write", "MultiEdit", "NotebookEdit", "write_file", "replace", "edit_file", "apply_patch"}
)
_AGO = re.compile(r"(\d{1,18})\s*(min|m|h|d|w)")
_UNITS = {"min": "minutes", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


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

    @classmethod
    def of(cls, *, now: datetime | None = None, **given: JSON) -> Filters:
        """Filters from plain words, as a command line or an address gives them; None and empty are no filter.

        A project that is a path, such as `.` or `/home/ada/tide`, means that folder and below; `here=True` means the
        current folder and below, also in other worktrees of its git repository. Moved projects are found by both paths.
        """
        for name in given:
            if name not in FILTER_NAMES:
                raise UsageError(f"unknown filter {name!r}; known: {', '.join(sorted(FILTER_NAMES))}")
        words = {name: value for name, value in given.items() if value not in (None, "", (), False)}
        if words.pop("here", False):
            current = Path.cwd()
            words["folders"] = _recorded_folders(map(str, [current, *same_folder_in_worktrees(current)]))
        if is_path(words.get("project", "")):
            if "folders" in words:
                raise UsageError("--here and a path as --project exclude each other")
            words["folders"] = _recorded_folders([words.pop("project")])
        for name in ("since", "until"):
            if name in words:
                words[name] = point_in_time(words[name], now or datetime.now(UTC))
        for name in ("agent", "has"):
            if name in words:
                words[name] = (words[name],) if isinstance(words[name], str) else tuple(words[name])
        if "agent" in words:
            words["agent"] = tuple(map(registry.match, words["agent"]))
        for value in words.get("has", ()):
            if value not in HAS:
                raise UsageError(f"--has {value}: choose from {', '.join(HAS)}")
        return cls(**words)

    @property
    def needs_text(self) -> bool:
        """True where a filter looks into the stored text of messages."""
        return self.file is not None or self.text is not None

    def without(self, *names: str) -> Filters:
        """These filters but for some of them."""
        return msgspec.structs.replace(self, **{name: getattr(NO_FILTERS, name) for name in names})


NO_FILTERS = Filters()


def is_path(project: str) -> bool:
    """True for a project that is named by the path of its folder, and not by a part of it."""
    begins_like_path = project.startswith(("/", "./", "../", "~/", ".\\", "..\\")) or is_windows(project)
    return begins_like_path or project in (".", "..", "~")


def _recorded_folders(folders: Iterable[str]) -> tuple[str, ...]:
    """The paths under which sessions may know these folders: as given, with links resolved, and before they moved."""
    moved, found = moved_projects.load(), list[str]()
    for folder in map(moved_projects.full_path, folders):
        names = [folder] if is_windows(folder) else [folder, str(Path(folder).resolve())]
        found += [path for name in names for path in moved_projects.recorded_paths(name, moved)]
    return tuple(dict.fromkeys(found))


def point_in_time(words: JSON, now: datetime) -> datetime:
    """A date, a time, or how long ago: `2026-11-01`, `2026-11-01T10:00`, `3d`, `12h`, `today`, `yesterday`."""
    if isinstance(words, datetime):
        return words if words.tzinfo is not None else words.replace(tzinfo=UTC)
    text = str(words).strip().lower()
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if text in ("today", "yesterday"):
        return midnight - timedelta(days=text == "yesterday")
    ago = _AGO.fullmatch(text.removesuffix(" ago"))
    if ago:
        stamp = _before(now, int(ago[1]), _UNITS[ago[2]])
    else:
        stamp = parse_time(f"{text}T00:00:00") if len(text) == 10 else parse_time(text.upper())
    if stamp is None:
        raise UsageError(f"{words!r} is no time; try 2026-11-01, 3d, 12h, today or yesterday")
    return stamp


def _before(now: datetime, count: int, unit: str) -> datetime | None:
    try:
        return now - timedelta(**{unit: count})
    except OverflowError:
        return None
