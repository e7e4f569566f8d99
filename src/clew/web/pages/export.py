"""A session as a file to save: HTML, Markdown or JSON, as `clew export` writes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import IO, NamedTuple

from starlette.responses import Response

from clew.catalog.queries import Entry
from clew.errors import UnknownReference, UsageError
from clew.export.document import write_document
from clew.export.session_file import write_markdown_file, write_page
from clew.model.time import spell_time
from clew.render.outline import session_title
from clew.stored_session import StoredSession
from clew.web.context import NO_MASKING, AppContext, masking
from clew.web.download import Download
from clew.web.request import PageRequest

DEFAULT_PROFILE = "secrets"
"""What an export masks unless another choice was made."""
ID_CHARS_IN_NAME = 8

Write = Callable[[AppContext, StoredSession, IO[bytes], Counter[str]], object]
"""Writes a session; the counter counts what its mask hides."""


class Format(NamedTuple):
    """A format of files."""

    title: str
    suffix: str
    media_type: str
    write: Write


def _write_html(context: AppContext, session: StoredSession, out: IO[bytes], masked: Counter[str]) -> None:
    agent, library = session.agent, context.library()
    write_page(
        agent,
        session.source,
        out,
        masked,
        find_subagents=lambda source: library.subagents(StoredSession(agent, source)),
    )


def _write_markdown(_context: AppContext, session: StoredSession, out: IO[bytes], masked: Counter[str]) -> None:
    write_markdown_file(session.agent, session.source, out, masked)


def _write_json(context: AppContext, session: StoredSession, out: IO[bytes], _masked: Counter[str]) -> None:
    write_document(session.agent, session.source, out, timestamp=spell_time(context.now()))


FORMATS = {
    "html": Format("HTML", ".html", "text/html", _write_html),
    "markdown": Format("Markdown", ".md", "text/markdown", _write_markdown),
    "json": Format("JSON", ".json", "application/json", _write_json),
}


def why_without_files(context: AppContext, entry: Entry) -> str:
    """Why a session can be neither exported nor continued; "" if it can."""
    if context.engine:
        return "The files of this session are not on this machine."
    if entry.state == "gone":
        return "The source file of this session is missing."
    return ""


def export_profile(request: PageRequest) -> str:
    """What the exported file masks. Refuses to mask nothing while the app masks everything it shows."""
    is_unmasked = request.param("redact") == NO_MASKING
    if is_unmasked and request.context.profile != NO_MASKING:
        raise UsageError(f"This app was started with --redact {request.context.profile}; it exports nothing unmasked.")
    return request.profile if is_unmasked or request.masking.is_on else DEFAULT_PROFILE


def view(request: PageRequest) -> Response:
    """The file."""
    context, form = request.context, FORMATS.get(request.path_param("format"))
    if form is None:
        raise UnknownReference("no such format")
    entry = context.entry(request.path_param("agent"), request.path_param("identity"))
    if reason := why_without_files(context, entry):
        raise UsageError(reason)
    session, masked = context.session(entry, NO_MASKING), Counter[str]()
    own_masking = masking(export_profile(request))
    if own_masking.is_on:
        redactor = own_masking.redactor()
        session, masked = session.redacted(redactor), redactor.masked
    header = session.session_object
    name = f"{session_title(header)} ({session.agent.id} {header['id'][:ID_CHARS_IN_NAME]})"
    return Download(lambda out: form.write(context, session, out, masked), name, form.suffix, form.media_type)
