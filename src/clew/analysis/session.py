"""Figures that follow from a session as a whole, and the surroundings of each message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from clew.analysis.facts import Facts
from clew.analysis.messages import is_sidechain, metadata_of
from clew.analysis.titles import short_title
from clew.analysis.usage import Usage
from clew.model.json import JSON

_WATCHED = ("cwd", "git_branch", "platform", "agent_version", "user_type")


class Derived(msgspec.Struct, frozen=True, kw_only=True):
    """What a session comes to. None is unknown, never zero."""

    id: str
    slug: str | None
    cwd: str | None
    git_branch: str | None
    started_at: str | None
    ended_at: str | None
    project: str | None
    """Last component of the working folder."""
    duration: float | None
    """Seconds between the first and the last time."""
    turn_count: int
    """All messages of role user, tool results included."""
    prompt_count: int
    """Messages that a person wrote; 0 in the session of a sub-agent."""
    usage: Usage
    usage_by_model: dict[str, Usage]
    total_tokens: int | None
    """Input plus output."""
    cache_hit_rate: float | None
    """Share of cached input that was read, not written; None where nothing was cached."""
    has_errors: bool
    """Some tool result is an error."""


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """The surroundings of a message; None where nothing was said about it so far."""

    cwd: str | None = None
    git_branch: str | None = None
    platform: str | None = None
    agent_version: str | None = None
    user_type: str | None = None


class ContextChange(msgspec.Struct, frozen=True):
    """A message that was written in other surroundings than the one before."""

    index: int
    name: str
    before: str
    after: str


def derived(session: dict[str, JSON], facts: Facts) -> Derived:
    """The figures of a session, from its header and one pass over it."""
    by_model = dict(facts.ledger.by_model())
    usage = sum(by_model.values(), Usage())
    cwd = facts.cwd or session.get("workspace") or None
    return Derived(
        id=session["id"],
        slug=session.get("slug"),
        cwd=cwd,
        git_branch=facts.git_branch,
        started_at=facts.first_time,
        ended_at=facts.last_time,
        project=project_of(cwd),
        duration=_duration(facts),
        turn_count=facts.user_messages,
        # What a sub-agent is asked to do was written by another agent.
        prompt_count=0 if session.get("is_agent_session") else facts.prompts,
        usage=usage,
        usage_by_model=by_model,
        total_tokens=usage.total_tokens,
        cache_hit_rate=usage.cache_hit_rate,
        has_errors=facts.has_errors,
    )


def title_of(session: dict[str, JSON], facts: Facts) -> str | None:
    """The title of a session: that of its header; without one, the task of a sub-agent."""
    return session.get("title") or (short_title(facts.task) if session.get("is_agent_session") else None)


def project_of(cwd: str | None) -> str | None:
    """The last component of a folder, whichever system it is from; a root has none."""
    if not cwd:
        return None
    # A backslash is part of a name where slashes separate.
    plain = cwd if "/" in cwd and cwd[1:2] != ":" else cwd.replace("\\", "/")
    last = plain.rstrip("/").rpartition("/")[2]
    return last if last and not (len(last) == 2 and last[1] == ":") else None


def _duration(facts: Facts) -> float | None:
    started, ended = facts.started, facts.ended
    if started is None or ended is None:
        return None
    return max(0.0, (ended - started).total_seconds())


def context_changes(messages: Iterable[dict[str, JSON]]) -> list[ContextChange]:
    """Where folder, branch, platform, version or user type change; sidechains among themselves."""
    known: dict[tuple[bool, str], str] = {}
    changes: list[ContextChange] = []
    for message in messages:
        for name, value in _stated(message):
            place = (is_sidechain(message), name)
            before = known.get(place)
            known[place] = value
            if before is not None and before != value:
                changes.append(ContextChange(message["index"], name, before, value))
    return changes


def context_at(messages: Iterable[dict[str, JSON]], index: int) -> Context:
    """The surroundings of message `index`: what it says itself, else what was said last before it."""
    known: dict[bool, dict[str, str]] = {False: {}, True: {}}
    for message in messages:
        if message["index"] > index:
            continue
        known[is_sidechain(message)].update(_stated(message))
        if message["index"] == index:
            return Context(**known[is_sidechain(message)])
    raise IndexError(f"no message {index}")


def _stated(message: dict[str, JSON]) -> Iterator[tuple[str, str]]:
    metadata = metadata_of(message)
    for name in _WATCHED:
        value = metadata.get(name)
        if isinstance(value, str):
            yield name, value
