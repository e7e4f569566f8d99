"""Continuing a session: the command for its own agent, and writing it for another agent."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import msgspec
from starlette.responses import PlainTextResponse, Response

from clew.agents import registry
from clew.agents.base import Agent
from clew.catalog.queries import Entry, agent_summaries
from clew.continuation import Continuation
from clew.convert.client_version import installed_version, untested_version
from clew.convert.conversion import NothingToConvert
from clew.convert.losses import Loss, serious
from clew.errors import Busy, PathRefused, UnknownReference, UsageError, WouldLose
from clew.model.json import JSON
from clew.web.context import NO_MASKING, AppContext
from clew.web.request import PageRequest, respond
from clew.web.templates import render

WHILE_MASKED = "Secrets are hidden, and the new session would hold them."
LOSES_NOW = "Since this page was loaded, the session has something that cannot be carried over. Load the page again."


class TargetAgent(NamedTuple):
    """An agent that a session can be written for."""

    id: str
    title: str
    is_installed: bool
    """True if its program is on PATH."""
    sessions: int
    """Its sessions in the catalog."""


class Plan(NamedTuple):
    """What writing a session for another agent does, or has done."""

    losses: Sequence[Loss]
    notes: Sequence[Loss]
    files: Sequence[str]
    commands: Sequence[str]
    """For a shell: they continue the session."""
    is_written: bool = False
    obstacle: str = ""
    """Why it cannot be written."""
    warning: str = ""


@contextmanager
def _explained_obstacles() -> Iterator[None]:
    """Raise what prevents a conversion as a UsageError, whose text pages show."""
    try:
        yield
    except (WouldLose, Busy, PathRefused, NothingToConvert) as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        raise UsageError(f"the files cannot be written: {error.strerror or error}") from error


def resume_command(request: PageRequest) -> Response:
    """What `clew resume --dry-run` prints: the commands that continue the session in its own agent."""
    context, entry = request.context, request.entry()
    if reason := context.why_without_files(entry):
        raise UsageError(reason)
    conversion = None
    with _explained_obstacles():
        continuation = _continuation(context, entry, None)
        if continuation.conversion is not None and not continuation.was_converted:
            continuation.conversion.rehearse(context.target_host.home)
            conversion = continuation.convert_command(str(continuation.session.path))
    with request.masking_of(entry):
        lines = continuation.shell_lines(request.masking.text, conversion)
    return PlainTextResponse("\n".join(lines))


def view(request: PageRequest) -> Response:
    """The agents to choose from; for the one that the address names, what would be lost and written."""
    context, entry = request.context, request.entry()
    reason = _why_not(request, entry)
    targets = [] if reason else _targets(context, entry)
    chosen = next((target for target in targets if target.id == request.param("to")), None)
    plan = _plan(context, entry, registry.get(chosen.id)) if chosen is not None else None
    return respond(
        request, "continue.html", entry=entry, reason=reason, targets=targets, chosen=chosen, plan=plan,
        own_agent=registry.get(entry.agent).title,
    )  # fmt: skip


class WriteRequest(msgspec.Struct, forbid_unknown_fields=True):
    """What the button posts."""

    to: str
    allow_loss: bool = False


def write(request: PageRequest, body: WriteRequest) -> JSON:
    """Write the session for another agent, like `clew resume --to`; answers with HTML that says what was written."""
    context, entry = request.context, request.entry()
    if reason := _why_not(request, entry):
        raise UsageError(reason)
    if body.to not in [target.id for target in _targets(context, entry)]:
        raise UnknownReference("no such agent")
    with _explained_obstacles():
        continuation = _continuation(context, entry, registry.get(body.to))
        written = continuation.converted
        assert written is not None
        if not continuation.was_converted:
            if serious(written.losses) and not body.allow_loss:
                raise UsageError(LOSES_NOW)
            written = continuation.write(allow_loss=body.allow_loss)
    plan = Plan((), (), written.files, continuation.shell_lines(str), is_written=True)
    return {"html": render("continued.html", request.profile, plan=plan, target=continuation.agent.title)}


def _why_not(request: PageRequest, entry: Entry) -> str:
    """Why the session cannot be written for another agent; "" if it can."""
    return request.context.why_without_files(entry) or (WHILE_MASKED if request.masking.is_on else "")


def _continuation(context: AppContext, entry: Entry, agent: Agent | None) -> Continuation:
    """The session continued in an agent; None is its own."""
    session = context.session(entry, NO_MASKING)
    find_subagents = context.library().subagents(session)
    continuation = Continuation(session, agent or session.agent, context.target_host, find_subagents)
    if not continuation.argv:
        raise UsageError("The id of this session is not safe on a command line; `clew convert` gives it a new one.")
    return continuation


def _targets(context: AppContext, entry: Entry) -> list[TargetAgent]:
    """Agents that sessions can be written for: those that are installed first, then those with sessions here."""
    summaries = agent_summaries(context.db)
    targets = []
    for agent in registry.load_all():
        profile = agent.target_profile()
        if profile is None or agent.id == entry.agent:
            continue
        is_installed = shutil.which(profile.command({"id": "any"})[0]) is not None
        sessions = summaries[agent.id]["sessions"] if agent.id in summaries else 0
        targets.append(TargetAgent(agent.id, agent.title, is_installed, sessions))
    return sorted(targets, key=lambda target: (not target.is_installed, not target.sessions, target.title.casefold()))


def _plan(context: AppContext, entry: Entry, agent: Agent) -> Plan:
    """Rehearse the conversion; nothing is written."""
    try:
        with _explained_obstacles():
            continuation = _continuation(context, entry, agent)
            conversion, outcome = continuation.conversion, continuation.converted
            assert conversion is not None and outcome is not None
            if not continuation.was_converted:
                outcome = conversion.rehearse(context.target_host.home)
    except UsageError as error:
        return Plan((), (), (), (), obstacle=str(error))
    losses = serious(outcome.losses)
    return Plan(
        losses,
        [loss for loss in outcome.losses if loss.is_note],
        outcome.files,
        continuation.shell_lines(str),
        is_written=continuation.was_converted,
        warning=untested_version(agent, installed_version(outcome.resume[0])) or "",
    )
