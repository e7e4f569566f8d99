"""Stars, labels, notes and titles: at the top of a session, in the form that changes them, and on one page for all."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import msgspec
from markupsafe import Markup, escape
from starlette.responses import Response

from clew.annotations import (
    MAX_LABEL_CHARS,
    MAX_NOTE_CHARS,
    MAX_TITLE_CHARS,
    Annotation,
    Annotations,
    AnnotationsExport,
    AnnotationsUnreadable,
    Target,
    checked_export,
    masked_export,
)
from clew.catalog import queries
from clew.catalog.annotated import AnnotatedItem, annotated_items, current_indexes, message_target
from clew.catalog.database import CatalogNotWritable
from clew.catalog.ids import session_key
from clew.catalog.queries import Entry
from clew.catalog.sync import apply_titles
from clew.errors import Busy, InvalidDocument, UnknownReference, UsageError
from clew.io.codec import dumps
from clew.model.json import JSON
from clew.web.context import NO_MASKING, resolve_reference
from clew.web.download import content_disposition
from clew.web.request import PageRequest, respond
from clew.web.templates import session_name_of, session_url_of

SESSIONS_PER_PAGE = 30
MAX_MESSAGES_PER_SESSION = 20
"""Annotated messages of a session on the page of all annotations; the page of the session lists all of them."""
EXCERPT_CHARS = 240
TITLES_WAIT_SECONDS = 2.0
"""How long a new title waits for a running sync, which would write it too."""


class AnnotationChange(msgspec.Struct, forbid_unknown_fields=True):
    """What the scripts post: the key of a session, perhaps the index of a message, and what is to be changed."""

    session: str
    message: int | None = None
    starred: bool | None = None
    add_labels: list[str] = []
    remove_labels: list[str] = []
    note: str | None = None
    title: str | None = None


class MarkedMessage(NamedTuple):
    """A message with an annotation, and the index that it has now."""

    message: int
    annotation: Annotation


class SessionAnnotations(NamedTuple):
    """The annotation of a session, and those of its messages in their order."""

    own: Annotation
    messages: list[MarkedMessage]
    is_readable: bool = True


def session_annotations(request: PageRequest, entry: Entry) -> SessionAnnotations:
    """The annotations of a session in the catalog."""
    try:
        index = request.context.annotations.get()
    except (Busy, AnnotationsUnreadable):
        return SessionAnnotations(Annotation(agent=entry.agent, session=entry.id), [], is_readable=False)
    found = index.of_session(entry.agent, entry.id)
    indexes = current_indexes(request.context.db, entry.number, found)
    marked = [MarkedMessage(indexes.get(one.target.key, one.message), one) for one in found if one.message is not None]
    return SessionAnnotations(index.get(Target(entry.agent, entry.id)), sorted(marked, key=lambda one: one.message))


def of_session(request: PageRequest) -> Response:
    """The annotations block of a session page, as a fragment."""
    entry = request.entry()
    return respond(request, "annotations.html", entry=entry, annotations=session_annotations(request, entry))


def form(request: PageRequest) -> Response:
    """The form that changes the title, labels and note of a session or message."""
    message = request.number("message", 0) or None
    target, entry = _target(request, request.param("session") or "", message)
    index = request.context.annotations.get()
    annotation = index.get(target)
    with request.masking_of(entry):
        note, title = (_field(request, text) for text in (annotation.note, annotation.title))
    return respond(
        request,
        "annotation_form.html",
        entry=entry,
        annotation=annotation,
        note=note,
        title=title,
        message=message,
        labels=[(label, annotation.has([label])) for label in index.labels],
        max_title_chars=MAX_TITLE_CHARS,
        max_label_chars=MAX_LABEL_CHARS,
        max_note_chars=MAX_NOTE_CHARS,
    )


class Field(NamedTuple):
    """The content of a field of the form."""

    text: str
    is_masked: bool
    """True if a part of it is masked: it is then shown, and cannot be changed."""


def _field(request: PageRequest, text: str) -> Field:
    if request.masking.text(text) != text:
        return Field(text, is_masked=True)
    # As it is: pages spell out invisible characters, and the form would store the spelling.
    return Field(Markup(escape(text)), is_masked=False)


def change(request: PageRequest, body: AnnotationChange) -> JSON:
    """Change the star, labels, note or title of a session or message."""
    target, _ = _target(request, body.session, body.message)
    annotation = Annotations().change(
        target,
        starred=body.starred,
        add_labels=map(resolve_reference, body.add_labels),
        remove_labels=map(resolve_reference, body.remove_labels),
        note=body.note,
        title=body.title,
        now=request.context.now(),
    )
    if body.title is not None:
        _apply_titles(request)
    return {"starred": annotation.starred}


def _apply_titles(request: PageRequest) -> None:
    """Write titles into the catalog, where lists find them, unless a sync does it."""
    with suppress(Busy, CatalogNotWritable):
        apply_titles(request.context.folder, TITLES_WAIT_SECONDS)


def _target(request: PageRequest, key: str, message: int | None) -> tuple[Target, Entry | None]:
    """The session or message with this key and index, and its session, if the catalog has it."""
    context = request.context
    entry = queries.by_key(context.db, key)
    if entry is None:
        return _unknown_target(request, key, message), None
    target = Target(entry.agent, entry.id, None, message)
    if message is None:
        return target, entry
    known = next((one for one in session_annotations(request, entry).messages if one.message == message), None)
    if known is not None:
        return known.annotation.target._replace(message=message), entry
    # A message that was written a moment ago may not be in the catalog yet.
    found = message_target(context.db, entry.number, target)
    return found or Target.of(context.session(entry, NO_MASKING), message), entry


def _unknown_target(request: PageRequest, key: str, message: int | None) -> Target:
    """The annotated session or message that the catalog does not have."""
    for found in request.context.annotations.get().all:
        if session_key(found.agent, found.session) == key and found.message == message:
            return found.target
    raise UnknownReference("no such session")


def view(request: PageRequest) -> Response:
    """All sessions and messages with a star, label or note, or those with some labels or a star."""
    index = request.context.annotations.get()
    labels, is_starred = request.params("label"), request.is_starred
    items = annotated_items(request.context.db, index.having(labels, starred=is_starred))
    sessions: dict[str, list[AnnotatedItem]] = {}
    for item in items:
        sessions.setdefault(item.key, []).append(item)
    page_number = max(1, request.number("page", 1))
    first = (page_number - 1) * SESSIONS_PER_PAGE
    return respond(
        request,
        "annotated.html" if not request.is_fragment else "annotated_list.html",
        groups=[_group(request, found) for found in list(sessions.values())[first : first + SESSIONS_PER_PAGE]],
        total=len(items),
        labels=index.labels,
        given_labels=labels,
        is_starred=is_starred,
        page_number=page_number,
        pages=max(1, -(-len(sessions) // SESSIONS_PER_PAGE)),
    )


def _group(request: PageRequest, items: list[AnnotatedItem]) -> dict[str, Any]:
    """A session with its annotation and its annotated messages."""
    items = [_masked_item(request, item) for item in items]
    first = items[0]
    messages = [item for item in items if item.message is not None]
    return {
        "key": first.key,
        "agent": first.annotation.agent,
        "project": first.project,
        "ended_us": first.ended_us,
        "is_known": first.number is not None,
        "title": session_name_of(first.title, first.annotation.session, request.masking.text),
        "reference": Target(first.annotation.agent, first.annotation.session).reference,
        "url": session_url_of(first.annotation.agent, first.annotation.session, first.key),
        "own": next((item.annotation for item in items if item.message is None), None),
        "messages": [
            (item.message, item.annotation, _excerpt(request, item)) for item in messages[:MAX_MESSAGES_PER_SESSION]
        ],
        "left_out": max(0, len(messages) - MAX_MESSAGES_PER_SESSION),
    }


def _masked_item(request: PageRequest, item: AnnotatedItem) -> AnnotatedItem:
    """An annotation whose texts are masked as those of its session are."""
    if item.number is None or not request.masking.is_on:
        return item
    mask = partial(request.context.searcher(request.profile).masked, item.number)
    annotation = item.annotation
    annotation = msgspec.structs.replace(annotation, note=mask(annotation.note), title=mask(annotation.title))
    return item._replace(annotation=annotation, title=mask(item.title))


def _excerpt(request: PageRequest, item: AnnotatedItem) -> str:
    """The beginning of an annotated message, masked."""
    if item.number is None or item.message is None:
        return ""
    text = request.context.searcher(request.profile).message_text(item.number, item.message)
    line = " ".join(text[: 4 * EXCERPT_CHARS].split())
    return line if len(line) <= EXCERPT_CHARS else f"{line[:EXCERPT_CHARS]}…"


def export(request: PageRequest) -> Response:
    """All annotations as JSON, masked like the pages."""
    found, exported = Annotations().all(), Annotations().export(request.context.now())
    items = [_masked_item(request, item).annotation for item in annotated_items(request.context.db, found)]
    by_target = {annotation.target: annotation for annotation in items}
    masked = {**exported, "annotations": msgspec.to_builtins([by_target[each.target] for each in found])}
    exported = masked_export(exported, request.masking.value(masked), request.profile)
    headers = {"Content-Disposition": content_disposition("clew-annotations", ".json")}
    return Response(msgspec.json.format(dumps(exported), indent=2), media_type="application/json", headers=headers)


def merge(request: PageRequest, body: AnnotationsExport) -> JSON:
    """Add annotations of an exported file, or of a part of one."""
    try:
        done = Annotations().merge(checked_export(body, "the file"))
    except InvalidDocument as error:
        raise UsageError(str(error)) from None
    _apply_titles(request)
    return done._asdict()
