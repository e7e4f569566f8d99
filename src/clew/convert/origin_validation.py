"""An original laid out in a folder of its own, to see what it is: nothing that it says of itself is believed.

What comes back are sessions of its agent, in places where that agent looks for them, with the files such a session
has, and nothing else. Who sends somebody a session must not be able to send anything else with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from clew.agents import registry
from clew.agents.base import Agent, SourceFile
from clew.convert.copies import is_own
from clew.convert.origin import BESIDE, NOWHERE, Kept, Origin, Out, unpack
from clew.errors import InvalidDocument, UsageError
from clew.host import Host
from clew.io.compress import SUFFIXES, open_source
from clew.io.paths import safe_below
from clew.model.json import JSON


class Misplaced(InvalidDocument):
    """An original with a file that is no session of its agent, nor a part of one."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the original inside the session belongs nowhere: {name!r}")
        self.why = f"{name!r} belongs nowhere"


class Member(NamedTuple):
    """A session of the original, as its own bytes tell it."""

    origin: Origin
    source: SourceFile
    session: dict[str, JSON]
    first_prompt: str | None


@contextmanager
def laid_out(kept: Kept) -> Iterator[list[Member]]:
    """The sessions of an original in a folder that is gone afterwards: the one that was converted, then those below."""
    agent = registry.get(kept.origin.agent)
    with TemporaryDirectory(prefix="clew-") as folder:
        home = Path(folder)
        mains = [_main(agent, each, home) for each in kept.origin.family()]
        outs: list[Out] = []
        for main, each in zip(mains, kept.origin.family(), strict=True):
            outs += [_Laid(_beside(main, file.name)) for file in each.files]
        copies = [copy for each in kept.origin.family() for copy in each.copies]
        with open_source(kept.path) as stream:
            unpack(stream, kept.origin, [*outs, *(NOWHERE for _ in copies)])
        members = [_member(agent, each, home) for each in kept.origin.family()]
        _check_links(members)
        yield members


def _main(agent: Agent, origin: Origin, home: Path) -> Path:
    try:
        main = home / safe_below(origin.target)
    except UsageError:
        raise Misplaced(origin.target) from None
    if not any(main.is_relative_to(root) and main != root for root in agent.roots(Host.at(home))):
        raise Misplaced(origin.target)
    return main


def _beside(main: Path, name: str) -> Path:
    try:
        return main.parent / safe_below(name) if name else main
    except UsageError:
        raise Misplaced(name) from None


def _member(agent: Agent, origin: Origin, home: Path) -> Member:
    """One session, found as its agent finds its sessions."""
    main = home / origin.target
    source = _found(agent, main, home)
    if source is None:
        raise Misplaced(origin.target)
    known = {"", *source.parts, *source.sides, main.name + BESIDE}
    stray = [file.name for file in origin.files if file.name not in known]
    stray += [copy.name for copy in origin.copies if not is_own(source, copy.name)]
    if stray:
        raise Misplaced(stray[0])
    facts = agent.facts(source)
    return Member(origin, source, agent.session(source, facts), facts.first_prompt)


def _found(agent: Agent, main: Path, home: Path) -> SourceFile | None:
    """The session in a file, if its agent lists it: unpacked, and in a folder that is known as it was."""
    plain = main.with_suffix("") if main.suffix in SUFFIXES else main
    receiver = agent.receiver()
    renewed = receiver.renewed if receiver is not None else {}
    known = [folder / name for name in renewed for folder in (main.parent, main.parent.parent)]
    for missing in ([], [each for each in (plain, *known) if not each.exists()]):
        for path in missing:
            path.touch()
        is_listed = any(source.path in (main, plain) for source in _listed(agent, home))
        for path in missing:
            path.unlink()
        if is_listed:
            return agent.locate(main)
    return None


def _listed(agent: Agent, home: Path) -> Iterator[SourceFile]:
    return (source for root in agent.roots(Host.at(home)) for source in agent.discover(root))


def _check_links(members: list[Member]) -> None:
    """Each of those below was started by another."""
    named = {link.get("session_id") for member in members for link in member.session.get("subagents") or ()}
    for member in members[1:]:
        if member.session["id"] not in named:
            raise Misplaced(member.origin.target)


class _Laid:
    """A file of the original; there may be more than a program may have open."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def write(self, piece: bytes, /) -> int:
        """Add to the end."""
        with self._path.open("ab") as stream:
            return stream.write(piece)
