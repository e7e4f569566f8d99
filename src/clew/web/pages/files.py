"""Files that sessions changed: their history across sessions, diffs, and blame.

A path is looked up in the catalog and its content comes from session records; no file is opened by a requested path.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup
from starlette.responses import Response

from clew.agents.file_evidence import FileContent, KnownContent, absolute
from clew.catalog import queries
from clew.catalog.ids import session_key
from clew.catalog.queries import Entry, RecordedChange
from clew.errors import SourceUnreadable, UnknownReference
from clew.file_history.blame import Line, Origin, Version, blame, versions
from clew.file_history.history import FileHistory
from clew.file_history.timeline import OBSERVATIONS
from clew.render.page.fragments import FileLink, Fragments, TruncatedText
from clew.render.parts import Diff
from clew.render.tables import clock
from clew.web.context import NO_MASKING
from clew.web.editor import editor_links
from clew.web.request import PageRequest, respond
from clew.web.templates import session_name, session_url_of

FILES_PER_PAGE = 100
MAX_BLAME_LINES = 5_000
MAX_BLAME_SESSIONS = 40
"""The latest sessions are read for one blame."""


def view(request: PageRequest) -> Response:
    """All files, or those with a text in their path."""
    all_files = request.context.cached("files", lambda: queries.files(request.context.db))
    wanted = (request.param("text") or "").casefold()
    found = [file for file in all_files if wanted in file.path.casefold()]
    page_number = max(1, request.number("page", 1))
    first = (page_number - 1) * FILES_PER_PAGE
    return respond(
        request,
        "files.html",
        sync_progress=request.context.sync_progress(),
        files=found[first : first + FILES_PER_PAGE],
        total=len(found),
        wanted=request.param("text"),
        page_number=page_number,
        pages=max(1, -(-len(found) // FILES_PER_PAGE)),
    )


def _requested_file(request: PageRequest) -> tuple[str, list[tuple[Entry, list[RecordedChange]]]]:
    """The requested path, and the sessions that changed it."""
    path = request.param("path") or ""
    sessions = queries.sessions_of_file(request.context.db, path)
    if not sessions:
        raise UnknownReference("no session changed this file")
    return path, sessions


def history(request: PageRequest) -> Response:
    """The sessions that changed a file."""
    path, sessions = _requested_file(request)
    return respond(request, "file.html", path=path, found=sessions, editor_link=_editor_link(request, path, sessions))


def _editor_link(request: PageRequest, path: str, sessions: Sequence[tuple[Entry, object]]) -> FileLink | None:
    """The link that opens a file, if one of its sessions was on this machine."""
    links = next((found for entry, _ in sessions if (found := editor_links(request, entry)) is not None), None)
    return links(path) if links is not None else None


class Step(NamedTuple):
    """One change of a file, with its diff."""

    message: int
    action: str
    certainty: str
    time: str
    prompt: tuple[int, str] | None
    html: Markup


def changes(request: PageRequest) -> Response:
    """What one session changed in a file, as diffs."""
    path, sessions = _requested_file(request)
    key = request.param("session")
    entry = next((entry for entry, _ in sessions if entry.key == key), None)
    if entry is None:
        raise UnknownReference("the session did not change this file")
    return respond(request, "changes.html", path=path, entry=entry, steps=_load_steps(request, entry, path))


def _file_history(request: PageRequest, entry: Entry) -> FileHistory | None:
    if entry.state == "gone":
        return None
    session = request.context.session(entry, NO_MASKING)
    return FileHistory(session.agent, session.source) if session.agent.has_file_changes else None


def _recorded_names(history: FileHistory, path: str) -> list[str]:
    """The names under which the session's records have a file; the catalog may have recorded another form."""
    wanted = {absolute(path, None), absolute(path, history.workspace or None), path}
    ending = "/" + path.strip("/")
    return [name for name in history.timelines if name in wanted or name.endswith(ending)]


def _load_steps(request: PageRequest, entry: Entry, path: str) -> list[Step] | None:
    history = _file_history(request, entry)
    if history is None:
        return None
    all_evidence = [
        evidence
        for name in _recorded_names(history, path)
        for evidence in history.timelines[name].all_evidence
        if evidence.action not in OBSERVATIONS
    ]
    contents = history.contents_of((evidence.number, after) for evidence in all_evidence for after in (False, True))
    mask_text, mask_content = request.masking.text, _content_mask(request, entry, path)
    steps = []
    for evidence in sorted(all_evidence, key=lambda evidence: (evidence.call, evidence.number)):
        before, after = contents.get((evidence.number, False)), contents.get((evidence.number, True))
        prompt = history.prompt(evidence.call)
        message_url = session_url_of(entry.agent, entry.id, entry.key, evidence.call)
        has_content = after is not None or before is not None
        steps.append(
            Step(
                evidence.call,
                evidence.action,
                evidence.after.certainty if evidence.after is not None else "unknown",
                clock(history.times.get(evidence.call)) or "",
                (prompt[0], mask_text(prompt[1])) if prompt is not None else None,
                _diff(mask_content(before), mask_content(after), message_url) if has_content else Markup(),
            )
        )
    return steps


def _content_mask(request: PageRequest, entry: Entry, path: str) -> Callable[[KnownContent | None], str]:
    """A function that gives the masked text of a file's content. Of a credential file everything is masked."""
    masking = request.masking
    if not masking.is_on:
        return _text
    redactor = masking.learned_redactor(request.context.session(entry, NO_MASKING))
    return lambda content: redactor.text(_text(content), path)


def _text(content: KnownContent | None) -> str:
    return content.body.decode("utf-8", "replace") if isinstance(content, FileContent) else ""


def _diff(before: str, after: str, message_url: Markup) -> Markup:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=3)
    body = "\n".join(list(lines)[2:])
    fragments = Fragments(more=lambda text: _truncation_notice(text, message_url))
    pieces = [*fragments.write([Diff(body)]), fragments.end()] if body else []  # type: ignore[list-item]
    return Markup("".join(pieces))


def _truncation_notice(text: TruncatedText, message_url: Markup) -> str:
    link = f'<a href="{message_url}">the message</a>'
    return f'<i class="more">… {text.left:,} more characters are not shown here; {link} has them.</i>'


def blame_view(request: PageRequest) -> Response:
    """Which message wrote each line of a file, in its last recorded version."""
    path, sessions = _requested_file(request)
    dated: list[tuple[str, Version]] = []
    unread = 0
    limit = request.number("rows", 0)
    for entry, _ in sessions[: limit or MAX_BLAME_SESSIONS]:
        try:
            dated += _versions(request, entry, path)
        except SourceUnreadable:
            unread += 1
    dated.sort(key=lambda pair: pair[0])
    bodies = [body for _, version in dated for body in (version.before, version.after) if body is not None]
    lines = blame(bodies[-1], [version for _, version in dated]) if bodies else []
    return respond(
        request,
        "blame.html",
        path=path,
        lines=_blame_rows(request, lines[: limit or MAX_BLAME_LINES], path, [entry for entry, _ in sessions]),
        left_out=max(0, len(lines) - (limit or MAX_BLAME_LINES)),
        unread=unread + max(0, len(sessions) - (limit or MAX_BLAME_SESSIONS)),
    )


def _versions(request: PageRequest, entry: Entry, path: str) -> list[tuple[str, Version]]:
    history = _file_history(request, entry)
    if history is None:
        return []
    return list(versions(history.agent, history.source, entry.id, set(_recorded_names(history, path))))


def _blame_rows(
    request: PageRequest, lines: Sequence[Line], path: str, sessions: Sequence[Entry]
) -> list[dict[str, Any]]:
    """The lines; the first of those that one message wrote names its session and the prompt."""
    mask = request.masking.text
    names = {(entry.agent, entry.id): mask(session_name(entry, mask)) for entry in sessions}
    texts = request.masking.lines([line.text.rstrip("\r\n") for line in lines], path)
    rows: list[dict[str, Any]] = []
    before = None
    for line, text in zip(lines, texts, strict=True):
        origin = line.origin
        row: dict[str, Any] = {"number": line.number, "text": text, "origin": origin, "is_first": False}
        if origin is not None:
            row |= _origin_columns(request, origin)
            row |= {"session": names[origin.agent, origin.session], "is_first": origin != before}
        rows.append(row)
        before = origin
    return rows


def _origin_columns(request: PageRequest, origin: Origin) -> dict[str, Any]:
    """Where the message that wrote a line is, and the prompt that led to it."""
    key = session_key(origin.agent, origin.session)
    index, prompt = origin.prompt or (None, "")
    return {
        "url": session_url_of(origin.agent, origin.session, key, origin.message),
        "prompt": request.masking.text(prompt),
        "prompt_url": session_url_of(origin.agent, origin.session, key, index),
    }
