"""How a session gets to an agent: written anew, or brought back from the original it carries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from clew.agents import registry
from clew.agents.base import Agent, SourceFile
from clew.agents.derived_ids import derived_id
from clew.convert import origin
from clew.convert.losses import Loss
from clew.convert.origin import Member, Misplaced, is_unchanged, laid_out
from clew.convert.restore_original import Return
from clew.convert.writing import REFERRED, Conversion, Converted, Find, NothingSaid
from clew.errors import SourceUnreadable, UsageError

_ORIGINAL = "the original that travels along"
_NAMED = 5
"""So many kinds of things are named, of all that an original holds beyond what goes over."""


class Prepared(Protocol):
    """A conversion that is ready to be written."""

    losses: list[Loss]

    def describe(self, home: Path) -> Converted:
        """The session as `write` would write it, with the files that are known without writing."""
        ...

    def rehearse(self, home: Path) -> Converted:
        """What `write` would do, file by file; writes nothing, and refuses what is in the way."""
        ...

    def write(self, home: Path, *, allow_loss: bool = False) -> Converted:
        """Write the session below a home folder."""
        ...


def prepare(
    agent: Agent,
    source: SourceFile,
    target: str,
    branch: str | None = None,
    find: Find | None = None,
    *,
    home: Path | None = None,
    with_original: bool = True,
) -> Prepared:
    """The conversion of a session for the agent of that name; one that only comes back is not written anew.

    `find` gives the sessions of its sub-agents, which then go with it; `home` is where it is going. Without its
    original it cannot come back byte for byte: so it goes where the original must not.
    """
    receiver = registry.get(target)
    lost: list[Loss] = []
    if with_original:
        back = _of_the_original(agent, source, receiver, home, is_whole=branch is None)
        if isinstance(back, Return):
            return back
        lost = back
    # The same session gives the same id as long as it does not grow.
    identity = derived_id(agent.id, agent.session_id(source), source.path.stat().st_size, target, branch)
    if not with_original:
        identity = derived_id(identity, "without the original")
    return Conversion(
        agent, source, receiver, new_id=identity, branch=branch, find=find, with_original=with_original, lost=lost
    )


def is_there(agent: Agent, converted: Converted) -> bool:
    """Whether a session was converted before: some agents have one place for whatever is current."""
    path = Path(converted.files[0])
    return path.is_file() and agent.session_id(agent.locate(path)) == converted.session_id


def prepare_original(source: SourceFile, target: str) -> Prepared:
    """The way back to the original that a session carries, whatever came after it."""
    agent = registry.get(source.agent)
    kept = origin.find(source)
    if kept is None:
        raise UsageError(f"{source.path} carries no original: it was not made by `clew convert`")
    if kept.origin.agent != target:
        raise UsageError(f"the original of this session is one of {kept.origin.agent!r}: say --to {kept.origin.agent}")
    with laid_out(kept) as members:
        return Return(kept, registry.get(target), members, _workspace(agent, source))


def _of_the_original(
    agent: Agent, source: SourceFile, target: Agent, home: Path | None, *, is_whole: bool
) -> Return | list[Loss]:
    """The way back to the original that a session carries, or what stays behind with it."""
    comes_back = False
    try:
        kept = origin.find(source)
        if kept is None or not registry.is_known(kept.origin.agent):
            return []
        is_wanted = is_whole and kept.origin.agent == target.id != agent.id
        comes_back = is_wanted and is_unchanged(source, kept.origin)
        with laid_out(kept) as members:
            if comes_back:
                return Return(kept, target, members, _workspace(agent, source), home)
            return [] if agent.id == target.id else list(_beyond(kept, members, agent))
    except Misplaced as error:
        if comes_back:
            raise
        return [Loss(None, _ORIGINAL, error.why)]
    except origin.UnusableOriginal as error:
        return [Loss(None, _ORIGINAL, error.why)]


def _workspace(agent: Agent, source: SourceFile) -> str:
    return str(agent.session(source, agent.facts(source))["workspace"])


def _beyond(kept: origin.Kept, members: Sequence[Member], agent: Agent) -> Iterator[Loss]:
    """What the original holds and the session that was made of it never did."""
    sources = {member.session["id"]: member.source for member in members}
    first = members[0]
    if first.origin.agent == agent.id:
        return
    try:
        whole = Conversion(
            registry.get(first.origin.agent), first.source, agent, new_id=kept.origin.converted, find=sources.get
        )
    except (NothingSaid, SourceUnreadable):
        return
    # What it only refers to cannot be looked for here; the conversion said whether that was there.
    losses = [loss for loss in whole.losses if loss.why != REFERRED]
    if losses:
        what = f"what the original held beyond this: {_spelled(losses)}"
        yield Loss(None, what, f"the original is inside {kept.path}; `clew convert --original` brings it back")


def _spelled(losses: Sequence[Loss]) -> str:
    counts = Counter(loss.what for loss in losses)
    named = [what if count == 1 else f"{what} ({count} times)" for what, count in counts.most_common(_NAMED)]
    return ", ".join([*named, *(["more"] if len(counts) > _NAMED else [])])
