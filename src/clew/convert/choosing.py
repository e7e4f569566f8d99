"""How a session gets to an agent: written anew, or brought back from the original it carries."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from clew.agents import registry
from clew.agents.base import Agent, SourceFile
from clew.agents.folding import derived_id
from clew.convert import origin
from clew.convert.conversation import Loss
from clew.convert.writing import Conversion, Converted, Find, Return


class Prepared(Protocol):
    """A conversion that is ready to be written."""

    def describe(self, home: Path) -> Converted:
        """What `write` would do."""
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
    with_original: bool = True,
) -> Prepared:
    """The conversion of a session for the agent of that name; one that only comes back is not written anew.

    `find` gives the sessions of its sub-agents, which then go with it. Without its original it cannot come back byte
    for byte: so it goes where the original must not.
    """
    receiver = registry.get(target)
    lost: list[Loss] = []
    kept = None
    try:
        kept = origin.find(source) if branch is None and with_original else None
    except origin.DamagedOriginal as error:
        lost.append(Loss(None, "the original that travels along", f"it is damaged: {error.why}"))
    if kept is not None and kept.is_current and kept.origin.agent == receiver.id and agent.id != receiver.id:
        return Return(kept, receiver)
    # The same session gives the same id as long as it does not grow.
    identity = derived_id(agent.id, agent.session_id(source), source.path.stat().st_size, target, branch)
    if not with_original:
        identity = derived_id(identity, "without the original")
    return Conversion(
        agent, source, receiver, new_id=identity, branch=branch, find=find, with_original=with_original, lost=lost
    )
