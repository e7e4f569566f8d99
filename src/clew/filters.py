"""The filters every command, page and program shares."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from clew.errors import UsageError
from clew.model.json import JSON
from clew.model.time import parse_time

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
        """Filters from plain words, as a command line or an address gives them; None and empty are no filter."""
        known = set(cls.__struct_fields__)
        for name in given:
            if name not in known:
                raise UsageError(f"unknown filter {name!r}; known: {', '.join(sorted(known))}")
        words = {name: value for name, value in given.items() if value not in (None, "", ())}
        for name in ("since", "until"):
            if name in words:
                words[name] = point_in_time(words[name], now or datetime.now(UTC))
        for name in ("agent", "has"):
            if name in words:
                words[name] = (words[name],) if isinstance(words[name], str) else tuple(words[name])
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
        none: dict[str, Any] = {name: () if name in ("agent", "has") else None for name in names}
        return msgspec.structs.replace(self, **none)


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
