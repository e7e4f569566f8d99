"""Decides how a session gets to an agent: written for it, or restored from the original that it carries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from clew.agents import registry
from clew.agents.base import Agent
from clew.agents.derived_ids import derived_id
from clew.agents.source import SourceFile, source_state
from clew.convert import origin
from clew.convert.conversion import REFERRED, Conversion, Find, NothingToConvert
from clew.convert.losses import Converted, Loss
from clew.convert.restore_original import Restoration, is_unchanged
from clew.convert.target_files import Prepared as Prepared
from clew.errors import SourceUnreadable, UsageError
from clew.host import current_time
from clew.model.json import JSON

_ORIGINAL = "the included original"
_MAX_KINDS_NAMED = 5
"""How many kinds of things are named, of all that an original holds beyond the session."""


def prepare(
    agent: Agent,
    source: SourceFile,
    target: str,
    branch: str | None = None,
    find: Find | None = None,
    *,
    home: Path | None = None,
    with_original: bool = True,
    workspace: str | None = None,
    full_history: bool = False,
    title: str | None = None,
    now: Callable[[], datetime] = current_time,
) -> Prepared:
    """The conversion of a session for the agent of that name; its unchanged original is restored where it carries it.

    `find` gives the sessions of its sub-agents, which are converted too; `home` is where it is going. Without its
    original, as when it is masked, it cannot come back byte for byte. `workspace` is the project's folder where it is
    not the recorded one; such a session is written anew. With `full_history`, the target's model gets the messages
    before a compaction too. `title` replaces that of the original.
    """
    lost: list[Loss] = []
    is_unchanged_copy = branch is None and workspace is None and title is None
    if with_original:
        original = _original(agent, source, registry.get(target), home, is_whole=is_unchanged_copy)
        if isinstance(original, Restoration):
            return original
        lost = original
    # The same session gives the same id as long as it does not grow.
    identity = derived_id(agent.id, agent.session_id(source), source_state(source).st_size, target, branch)
    if not with_original:
        identity = derived_id(identity, "without the original")
    if workspace is not None:
        identity = derived_id(identity, "moved to", workspace)
    if title is not None:
        identity = derived_id(identity, "with the title", title)
    if full_history:
        identity = derived_id(identity, "with the full history")
    return Conversion(
        agent,
        source,
        registry.get(target),
        new_id=identity,
        branch=branch,
        find=find,
        with_original=with_original,
        lost=lost,
        workspace=workspace,
        full_history=full_history,
        title=title,
        now=now,
    )


def is_converted(agent: Agent, converted: Converted) -> bool:
    """Whether a session was converted before: some agents have one place for whatever is current."""
    path = Path(converted.files[0])
    return path.is_file() and agent.session_id(agent.locate(path)) == converted.session_id


def prepare_original(source: SourceFile, target: str) -> Prepared:
    """The original that a session carries, whatever came after it."""
    original = origin.find(source)
    if original is None:
        raise UsageError(f"{source.path} contains no original; it was not written by `clew convert`")
    if original.origin.agent != target:
        name = original.origin.agent
        raise UsageError(f"the original of this session belongs to {name!r}; use --to {name}")
    agent = registry.get(target)
    return Restoration(original, original.lay_out(), agent, _session(registry.get(source.agent), source))


def _original(
    agent: Agent, source: SourceFile, target: Agent, home: Path | None, *, is_whole: bool
) -> Restoration | list[Loss]:
    """The original that a session carries, where it is wanted and nothing was said since; else what is lost with it."""
    comes_back = False
    try:
        original = origin.find(source)
        if original is None or not registry.is_known(original.origin.agent):
            return []
        is_wanted = is_whole and original.origin.agent == target.id != agent.id
        comes_back = is_wanted and is_unchanged(source, original.origin)
        members = original.lay_out()
        if comes_back:
            return Restoration(original, members, target, _session(agent, source), home)
        return [] if agent.id == target.id else _lost_with_original(original, members, agent)
    except origin.Misplaced as error:
        if comes_back:
            raise
        return [Loss(None, _ORIGINAL, error.why)]
    except origin.DamagedOriginal as error:
        return [Loss(None, _ORIGINAL, error.why)]


def _session(agent: Agent, source: SourceFile) -> dict[str, JSON]:
    return agent.session(source, agent.facts(source))


def _lost_with_original(original: origin.Original, members: list[origin.Member], agent: Agent) -> list[Loss]:
    """What the original holds and the session that was made of it never did."""
    first = members[0]
    if first.origin.agent == agent.id:
        return []
    sources = {member.session["id"]: member.source for member in members}
    try:
        made = Conversion(
            registry.get(first.origin.agent), first.source, agent, new_id=first.origin.converted, find=sources.get
        )
    except (NothingToConvert, SourceUnreadable):
        return []
    # What it only refers to cannot be looked for here; the first conversion listed it where it was missing.
    counts = Counter(loss.what for loss in made.losses if loss.why != REFERRED)
    if not counts:
        return []
    kinds = [what if count == 1 else f"{what} ({count} times)" for what, count in counts.most_common(_MAX_KINDS_NAMED)]
    named = ", ".join([*kinds, *(["more"] if len(counts) > _MAX_KINDS_NAMED else [])])
    why = f"the original is inside {original.path}; `clew convert --original` restores it"
    is_note = all(loss.is_note for loss in made.losses if loss.why != REFERRED)
    return [Loss(None, f"content of the original that is not here: {named}", why, is_note)]
