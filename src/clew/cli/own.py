"""Sessions of clew's own store, as commands get at them."""

from __future__ import annotations

import click

from clew.agents.sage_agent.locate import AGENT
from clew.cli.options import library
from clew.errors import UsageError
from clew.io.paths import refuse_link_to_session
from clew.library import StoredSession
from clew.references import message_of
from clew.store.session import Session


def own_session(context: click.Context, homes: tuple[str, ...], reference: str, *, branches: bool = False) -> Session:
    """The session that a reference means, which must be one that the store can hold."""
    if message_of(reference) is not None:
        raise UsageError(f"{reference} names a message; name it behind the session, as #12")
    shelf = library(context, homes)
    session = shelf.get(reference, branches=branches)
    for host in shelf.hosts:
        refuse_link_to_session(session.path, host.base or host.home)
    return _own(session, reference)


def _own(session: StoredSession, reference: str) -> Session:
    if session.agent.id != AGENT or session.path.name != "messages.jsonl":
        raise UsageError(f"{reference} is a session of {session.agent.title}, not of clew's own store")
    return Session(session.path.parent)


def branch_path(session: StoredSession, branch: str) -> list[str]:
    """The uuids of the messages that lead to a branch."""
    return _own(session, session.id).path(branch)
