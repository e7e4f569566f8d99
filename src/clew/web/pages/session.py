"""The page of one session: facts, outline, and the transcript in windows."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Container, Mapping
from typing import NamedTuple

from markupsafe import Markup, escape
from starlette.responses import HTMLResponse, Response, StreamingResponse

from clew.catalog import queries
from clew.catalog.change_detection import has_unread_messages
from clew.catalog.queries import Entry
from clew.catalog.running import running_sessions
from clew.continuation import is_path
from clew.errors import UnknownReference
from clew.io.paths import escape_invalid_utf8
from clew.render.page.fragments import MAX_TEXT_CHARS, FileLink, More, TruncatedText
from clew.render.page.frame import branches, count
from clew.web.context import NO_MASKING, AppContext, use_redactor
from clew.web.editor import EditorLinks, editor_links
from clew.web.pages.annotated import session_annotations
from clew.web.pages.compare_links import branch_comparisons, reference_of
from clew.web.pages.export import DEFAULT_PROFILE, FORMATS, Format
from clew.web.pages.panels import PANELS
from clew.web.pages.session_list import GROUPINGS, ROWS
from clew.web.request import PageRequest, respond
from clew.web.templates import format_duration, render, session_url
from clew.web.transcript import WINDOW_MESSAGES, SubagentLinks, Transcript, window_bounds

ETAG_HEADER = "X-Clew-Etag"
"""Identifies the state of a window; live events carry the current ones."""
MESSAGES_PLACEHOLDER = "<!-- the messages -->"


class SessionActions(NamedTuple):
    """What the menu of actions needs to know."""

    formats: Mapping[str, Format]
    default_profile: str
    without_files: str
    """Why the session can be neither exported nor continued; "" if it can."""
    compare_reference: str
    folder: str
    """The project's folder; "" if it is unknown or masked."""
    source_path: str
    """The file of the session; "" if it is missing, on another machine or masked."""
    folder_link: FileLink | None
    """Opens the folder in the editor of the settings."""


def _session_actions(request: PageRequest, entry: Entry, transcript: Transcript) -> SessionActions:
    context, folder = request.context, transcript.header.get("workspace") or ""
    without_files = context.why_without_files(entry)
    source_path = "" if without_files else escape_invalid_utf8(str(context.session(entry, NO_MASKING).path))
    links = _file_links(request, entry, transcript)
    with request.masking_of(entry):
        folder, source_path = (path if request.masking.leaves(path) else "" for path in (folder, source_path))
        folder_link = links(folder) if links is not None and is_path(folder) else None
    return SessionActions(
        FORMATS, DEFAULT_PROFILE, without_files, reference_of(entry), folder, source_path, folder_link
    )


def view(request: PageRequest) -> Response:
    """The page with one window; its script loads the others when they come into view."""
    context, entry = request.context, request.entry()
    window_number = request.number("window", 0)
    # For a window named in the address the whole session is read; the first window alone is there sooner.
    open_transcript = context.transcript if window_number else context.transcript_for_first_page
    transcript = open_transcript(entry, request.profile)
    first = max(0, min(transcript.windows, window_number) - 1)
    find = request.param("find") or ""
    (entry,) = queries.with_children(context.db, [entry], None)
    newer, older = queries.neighbours(context.db, entry)
    return respond(
        request,
        "session.html",
        entry=entry,
        actions=_session_actions(request, entry, transcript),
        find=find,
        find_reference=Markup(escape(request.masking.reference(find))),
        header=transcript.header,
        parent=_parent(context, entry),
        newer=newer,
        older=older,
        windows=[(number, *_bounds(number, transcript.messages)) for number in range(transcript.windows)],
        first=first,
        html=Markup(
            transcript.window(
                first,
                _subagent_links(request, entry),
                more_link(entry),
                _file_links(request, entry, transcript),
            )
        ),
        etag=transcript.window_etag(first),
        messages=transcript.messages,
        is_complete=transcript.is_complete,
        is_long=transcript.is_long,
        is_partly_read=entry.state == "gone" and has_unread_messages(context.db, entry.number),
        size=WINDOW_MESSAGES,
        list_rows=ROWS,
        list_groupings=GROUPINGS,
        panels=PANELS,
        now=context.now(),
        annotations=session_annotations(request, entry),
    )


def render_facts(context: AppContext, entry: Entry, profile: str, transcript: Transcript) -> str:
    """The facts at the top of the page, masked."""
    values = {"header": transcript.header, "messages": transcript.messages, "parent": _parent(context, entry)}
    with use_redactor(context.session_redactor(entry, profile)):
        return render("facts.html", profile, entry=entry, **values)


def _parent(context: AppContext, entry: Entry) -> Entry | None:
    return queries.by_key(context.db, entry.parent) if entry.parent else None


def _bounds(number: int, messages: int) -> tuple[int, int]:
    first, last = window_bounds(number)
    return first, min(last, messages)


def subagent_links(request: PageRequest, entry: Entry) -> SubagentLinks:
    """The sessions that this one started."""
    (entry,) = queries.with_children(request.context.db, [entry], None)
    return _subagent_links(request, entry)


def _subagent_links(request: PageRequest, entry: Entry) -> SubagentLinks:
    running = running_sessions(request.context.db, request.context.now()) if entry.children else {}
    with request.masking_of(entry):
        return SubagentLinks(
            {child.id: session_url(child) for child in entry.children},
            {child.id: request.masking.text(child.title) for child in entry.children if child.title},
            {child.id: _describe_subagent(child, running) for child in entry.children},
        )


def _describe_subagent(entry: Entry, running: Container[int]) -> str:
    """Messages, duration, errors, and whether it still runs."""
    facts = [count(entry.messages, "message")]
    facts += [format_duration(entry.ended_us - entry.started_us)] if entry.ended_us > entry.started_us > 0 else []
    facts += [count(entry.errors, "error")] if entry.errors else []
    facts += ["still running"] if entry.number in running else []
    return ", ".join(facts)


def window(request: PageRequest) -> Response:
    """The HTML of one window."""
    entry, number = request.entry(), int(request.path_param("number"))
    transcript = request.context.transcript(entry, request.profile)
    if number >= transcript.windows:
        raise UnknownReference("no such page of messages")
    links, file_links = subagent_links(request, entry), _file_links(request, entry, transcript)
    html = transcript.window(number, links, more_link(entry), file_links)
    return HTMLResponse(html, headers={ETAG_HEADER: transcript.window_etag(number)})


def _file_links(request: PageRequest, entry: Entry, transcript: Transcript) -> EditorLinks | None:
    return editor_links(request, entry, transcript.header.get("workspace") or "")


def more_link(entry: Entry) -> More:
    """Put a link to the rest of a text where it is cut."""
    return lambda text: str(_more_link(entry, text, MAX_TEXT_CHARS))


def _more_link(entry: Entry, text: TruncatedText, start: int) -> Markup:
    left = len(text.text) - start
    if left <= 0:
        return Markup()
    url = f"{session_url(entry)}/more/{text.section}/{text.number}?from={start}"
    return Markup(f'<a class="more" data-more href="{url}">Show more: {left:,} characters are left</a>')


def more(request: PageRequest) -> Response:
    """The next part of a text that was cut."""
    entry, start = request.entry(), request.number("from", MAX_TEXT_CHARS)
    section, number = int(request.path_param("section")), int(request.path_param("number"))
    text = request.context.transcript(entry, request.profile).truncated_text(section, number)
    if text is None or start >= len(text.text):
        raise UnknownReference("no such text")
    html, next_link = Markup(text.piece(start)), _more_link(entry, text, start + MAX_TEXT_CHARS)
    if request.is_fragment:
        return HTMLResponse(f'<span class="rest" tabindex="-1">{html}</span>{next_link}')
    return respond(request, "more.html", entry=entry, message=text.message, start=start, html=html, rest=next_link)


def message_markdown(request: PageRequest) -> Response:
    """A message with the rest of its reply, as it stands in the Markdown export."""
    entry, number = request.entry(), int(request.path_param("number"))
    text = request.context.transcript(entry, request.profile).markdown(number)
    if text is None:
        raise UnknownReference("no such message")
    return Response(text, media_type="text/markdown")


def print_view(request: PageRequest) -> Response:
    """All windows on one page, streamed one after the other."""
    context, entry = request.context, request.entry()
    transcript = context.transcript(entry, request.profile)
    links, link_rest = subagent_links(request, entry), more_link(entry)
    values = {"entry": entry, "header": transcript.header}
    with request.masking_of(entry):
        html = render("print.html", request.profile, request=request, messages=transcript.messages, **values)
    before, after = html.split(MESSAGES_PLACEHOLDER)

    async def pieces() -> AsyncIterator[str]:
        yield before
        for number in range(transcript.windows):
            yield await context.run(transcript.window, number, links, link_rest)
        yield after

    return StreamingResponse(pieces(), media_type="text/html")


def outline(request: PageRequest) -> Response:
    """The prompts of the whole session, and the tree of its branches."""
    entry = request.entry()
    transcript = request.context.transcript(entry, request.profile)
    contents = transcript.contents()
    forks = [[parent or 0, [branch.index for branch in fork.branches]] for parent, fork in contents.forks]
    active = [branch.index for _, fork in contents.forks for branch in fork.branches if branch.is_active]
    return respond(
        request,
        "outline.html",
        base=session_url(entry),
        prompts=contents.prompts,
        tree=Markup(branches(contents.forks, contents.labels)),
        comparisons=branch_comparisons(entry, contents, request.profile),
        forks=json.dumps(forks),
        active=json.dumps(active),
        sections=json.dumps(transcript.section_counts()),
    )
