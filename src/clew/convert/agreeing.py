"""Whether an original says what the session says that brings it along: who sends a session might send another in it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from clew.agents import registry
from clew.agents.base import Agent, Receives, SourceFile
from clew.convert.since import said
from clew.convert.trial import Member
from clew.convert.writing import Conversion, NothingSaid
from clew.errors import SourceUnreadable, UsageError


def agrees(members: Sequence[Member], agent: Agent, source: SourceFile) -> bool:
    """Whether the original, converted once more, gives the words of the session."""
    first = members[0]
    own = registry.get(first.origin.agent)
    receiver = own.receiver() if isinstance(own, Receives) else None
    if receiver is None or not receiver.goes_on(first.source.path, first.source.parts):
        return True  # Nobody goes on with it as it is; what a log says depends on what lies beside it.
    with TemporaryDirectory(prefix="clew-") as folder:
        try:
            copy = _converted(own, members, agent, Path(folder))
        except (NothingSaid, SourceUnreadable, UsageError):
            return False
        again, now = (said(each, each.path.stat().st_size)[0] for each in (copy, source))
    # What the original refers to cannot be seen from here.
    return now.endswith(again) if receiver.beyond(first.session) else now == again


def _converted(own: Agent, members: Sequence[Member], agent: Agent, home: Path) -> SourceFile:
    sources = {member.session["id"]: member.source for member in members}
    branch = members[0].origin.branch
    conversion = Conversion(
        own, members[0].source, agent, new_id="again", branch=branch, find=sources.get, with_original=False
    )
    return agent.locate(Path(conversion.write(home, allow_loss=True).files[0]))
