"""The filters every command, page and program shares."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from clew.errors import UsageError
from clew.model.json import JSON, strings_in
from clew.model.time import parse_time

if TYPE_CHECKING:
    from clew.library import StoredSession

HAS = ("error", "thinking", "subagent", "edit")
EDITING = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit", "write_file", "replace", "edit_file", "apply_patch"})
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

    def admits(self, session: StoredSession) -> bool:
        """True when the session passes; reads its content only for --file and --text."""
        if self.agent and session.agent.id not in self.agent:
            return False
        if not any(
            (self.project, self.branch, self.model, self.since, self.until, self.tool, self.has, self.file, self.text)
        ):
            return True
        return self._admits_facts(session) and self._admits_content(session)

    def _admits_facts(self, session: StoredSession) -> bool:
        facts = session.facts
        header = session.session_object
        return (
            _in(self.project, header["workspace"], header["workspace_encoded"])
            and _in(self.branch, facts.git_branch)
            and _in(self.model, *facts.models)
            and _in(self.tool, *facts.tools)
            and (self.since is None or (facts.ended is not None and facts.ended >= self.since))
            and (self.until is None or (facts.started is not None and facts.started <= self.until))
            and all(_has(name, session) for name in self.has)
        )

    def _admits_content(self, session: StoredSession) -> bool:
        if self.file is None and self.text is None:
            return True
        file, text = self.file is None, self.text is None
        for unit in session.units():
            if unit.is_message:
                blocks = unit.value["content"]
                file = file or any(_in(self.file, path) for path in _paths(blocks))
                text = text or any(_in(self.text, words) for words in strings_in(blocks))
                if file and text:
                    return True
        return False


def _in(wanted: str | None, *values: str | None) -> bool:
    return wanted is None or any(wanted.casefold() in value.casefold() for value in values if value)


def _has(name: str, session: StoredSession) -> bool:
    facts = session.facts
    if name == "error":
        return facts.has_errors
    if name == "thinking":
        return facts.has_thinking
    if name == "edit":
        return not EDITING.isdisjoint(facts.tools)
    return bool(session.session_object.get("subagents"))


def _paths(blocks: list[dict[str, JSON]]) -> Iterator[str]:
    for block in blocks:
        arguments = block.get("input") if block["type"] == "tool_use" else None
        for key in ("file_path", "path", "notebook_path", "filename", "absolute_path"):
            if isinstance(arguments, dict) and isinstance(arguments.get(key), str):
                yield arguments[key]


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
