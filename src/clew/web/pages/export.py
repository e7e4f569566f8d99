"""A session as a file to save: HTML, Markdown or JSON, as `clew export` writes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import IO, NamedTuple

from starlette.responses import Response

from clew.errors import UnknownReference, UsageError
from clew.export.document import write_document
from clew.export.session_file import with_user_title, write_markdown_file, write_page
from clew.model.time import spell_time
from clew.render.outline import session_title
from clew.stored_session import StoredSession
from clew.web.context import NO_MASKING, AppContext, masking
from clew.web.download import Download
from clew.web.request import PageRequest

DEFAULT_PROFILE = "secrets"
"""What an export masks unless another choice was made."""
ID_CHARS_IN_NAME = 8

Write = Callable[[AppContext, StoredSession, str, IO[bytes], Counter[str]], object]
"""Writes a session with the title that the user gave it, if any; the counter counts what its mask hides."""


class Format(NamedTuple):
    """A format of files."""

    title: str
    suffix: str
    media_type: str
    write: Write


def _write_html(context: AppContext, session: StoredSession, title: str, out: IO[bytes], masked: Counter[str]) -> None:
    agent, library = session.agent, context.library()
    write_page(
        agent,
        session.source,
        out,
        masked,
        find_subagents=lambda source: library.subagents(StoredSession(agent, source)),
        title=title,
    )


def _write_markdown(_: AppContext, session: StoredSession, title: str, out: IO[bytes], masked: Counter[str]) -> None:
    write_markdown_file(session.agent, session.source, out, masked, title=title)


def _write_json(context: AppContext, session: StoredSession, _title: str, out: IO[bytes], _: Counter[str]) -> None:
    """Write the document of what the agent stored, which has the agent's own title."""
    write_document(session.agent, session.source, out, timestamp=spell_time(context.now()))


FORMATS = {
    "html": Format("HTML", ".html", "text/html", _write_html),
    "markdown": Format("Markdown", ".md", "text/markdown", _write_markdown),
    "json": Format("JSON", ".json", "application/json", _write_json),
}


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
    entry = request.entry()
    if reason := context.why_without_files(entry):
        raise UsageError(reason)
    session, masked = context.session(entry, NO_MASKING), Counter[str]()
    own_masking = masking(export_profile(request))
    if own_masking.is_on:
        redactor = own_masking.redactor()
        session, masked = session.redacted(redactor), redactor.masked
    title = request.annotations.titles.get((entry.agent, entry.id), "")
    return Download(
        lambda out: form.write(context, session, title, out, masked),
        lambda: _file_name(session, title),
        (" (masked)" if own_masking.is_on else " (NOT masked)") + form.suffix,
        form.media_type,
    )


def _file_name(session: StoredSession, title: str) -> str:
    header = with_user_title(session.session_object, session.source, title)
    return f"{session_title(header)} ({session.agent.id} {header['id'][:ID_CHARS_IN_NAME]})"
