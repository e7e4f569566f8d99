"""Stars, labels and notes: at the top of a session, in the form that changes them, and all of them on one page."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from markupsafe import Markup, escape
from starlette.responses import Response

from clew.annotations import (
    MAX_LABEL_CHARS,
    MAX_NOTE_CHARS,
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
from clew.catalog.ids import session_key
from clew.catalog.queries import Entry
from clew.errors import Busy, InvalidDocument, UnknownReference, UsageError
from clew.io.codec import dumps
from clew.model.json import JSON
from clew.web.context import NO_MASKING, use_redactor
from clew.web.request import PageRequest, respond
from clew.web.templates import session_url_of

SESSIONS_PER_PAGE = 30
EXCERPT_CHARS = 240


class AnnotationChange(msgspec.Struct, forbid_unknown_fields=True):
    """What the scripts post: the key of a session, perhaps the index of a message, and what is to be changed."""

    session: str
    message: int | None = None
    starred: bool | None = None
    add_labels: list[str] = []
    remove_labels: list[str] = []
    note: str | None = None


class MarkedMessage(NamedTuple):
    """A message with an annotation, and the index that it has now."""

    message: int
    annotation: Annotation


def session_annotations(request: PageRequest, entry: Entry) -> dict[str, Any]:
    """The values of `annotations.html`: the annotation of a session, and those of its messages."""
    values: dict[str, Any] = {"annotation": None, "marked": [], "annotations_problem": False}
    try:
        found = Annotations().of_session(entry.agent, entry.id)
    except (Busy, AnnotationsUnreadable):
        return {**values, "annotations_problem": True}
    indexes = current_indexes(request.context.db, entry.number, found)
    marked = [MarkedMessage(indexes.get(one.target.key, one.message), one) for one in found if one.message is not None]
    own = next((one for one in found if one.message is None), None)
    return {**values, "annotation": own, "marked": sorted(marked, key=lambda one: one.message)}


def of_session(request: PageRequest) -> Response:
    """What stands at the top of a session, alone."""
    entry = request.context.entry(request.path_param("agent"), request.path_param("identity"))
    return respond(request, "annotations.html", entry=entry, **session_annotations(request, entry))


def form(request: PageRequest) -> Response:
    """The form that changes the labels and the note of a session or message."""
    message = request.number("message", 0) or None
    target, entry = _target(request, request.param("session") or "", message)
    annotations = Annotations()
    annotation = annotations.get(target)
    redactor = request.context.session_redactor(entry, request.profile) if entry is not None else None
    with use_redactor(redactor):
        is_note_masked = request.masking.text(annotation.note) != annotation.note
    # As it is: pages spell out invisible characters, and the form would store the spelling.
    note = annotation.note if is_note_masked else Markup(escape(annotation.note))
    return respond(
        request,
        "annotation_form.html",
        entry=entry,
        annotation=annotation,
        note=note,
        message=message,
        labels=[(label, annotation.has([label])) for label in annotations.labels()],
        is_note_masked=is_note_masked,
        max_label_chars=MAX_LABEL_CHARS,
        max_note_chars=MAX_NOTE_CHARS,
    )


def change(request: PageRequest, body: AnnotationChange) -> JSON:
    """Change the star, labels or note of a session or message."""
    target, _ = _target(request, body.session, body.message)
    annotation = Annotations().change(
        target,
        starred=body.starred,
        add_labels=map(request.resolve, body.add_labels),
        remove_labels=map(request.resolve, body.remove_labels),
        note=body.note,
        now=request.context.now(),
    )
    return {"starred": annotation.starred}


def _target(request: PageRequest, key: str, message: int | None) -> tuple[Target, Entry | None]:
    """The session or message with this key and index, and its session, if the catalog has it."""
    context = request.context
    entry = queries.by_key(context.db, key)
    if entry is None:
        return _unknown_target(key, message), None
    target = Target(entry.agent, entry.id, None, message)
    if message is None:
        return target, entry
    known = next((one for one in session_annotations(request, entry)["marked"] if one.message == message), None)
    if known is not None:
        return known.annotation.target._replace(message=message), entry
    # A message that was written a moment ago may not be in the catalog yet.
    found = message_target(context.db, entry.number, target)
    return found or Target.of(context.session(entry, NO_MASKING), message), entry


def _unknown_target(key: str, message: int | None) -> Target:
    """The annotated session or message that the catalog does not have."""
    for found in Annotations().all():
        if session_key(found.agent, found.session) == key and found.message == message:
            return found.target
    raise UnknownReference("no such session")


def view(request: PageRequest) -> Response:
    """All sessions and messages with a star, label or note, or those with some labels or a star."""
    annotations = Annotations()
    labels, is_starred = request.params("label"), request.is_starred
    items = annotated_items(request.context.db, annotations.all(labels=labels, starred=is_starred))
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
        labels=annotations.labels(),
        given_labels=labels,
        is_starred=is_starred,
        page_number=page_number,
        pages=max(1, -(-len(sessions) // SESSIONS_PER_PAGE)),
    )


def _group(request: PageRequest, items: list[AnnotatedItem]) -> dict[str, Any]:
    """A session with its annotation and its annotated messages."""
    first = items[0]
    return {
        "key": first.key,
        "agent": first.annotation.agent,
        "project": first.project,
        "ended_us": first.ended_us,
        "is_known": first.number is not None,
        "title": first.title or f"Session {request.masking.text(first.annotation.session)[:16]}",
        "reference": Target(first.annotation.agent, first.annotation.session).reference,
        "url": session_url_of(first.annotation.agent, first.annotation.session, first.key),
        "own": next((item.annotation for item in items if item.message is None), None),
        "messages": [
            (item.message, item.annotation, _excerpt(request, item)) for item in items if item.message is not None
        ],
    }


def _excerpt(request: PageRequest, item: AnnotatedItem) -> str:
    """The beginning of an annotated message, masked."""
    if item.number is None or item.message is None:
        return ""
    text = request.context.searcher(request.profile).message_text(item.number, item.message)
    line = " ".join(text[: 4 * EXCERPT_CHARS].split())
    return line if len(line) <= EXCERPT_CHARS else f"{line[:EXCERPT_CHARS]}…"


def export(request: PageRequest) -> Response:
    """All annotations as JSON, masked like the pages."""
    exported = masked_export(Annotations().export(request.context.now()), request.masking.value, request.profile)
    headers = {"Content-Disposition": 'attachment; filename="clew-annotations.json"'}
    return Response(msgspec.json.format(dumps(exported), indent=2), media_type="application/json", headers=headers)


def merge(_request: PageRequest, body: AnnotationsExport) -> JSON:
    """Add annotations of an exported file, or of a part of one."""
    try:
        return Annotations().merge(checked_export(body, "the file"))._asdict()
    except InvalidDocument as error:
        raise UsageError(str(error)) from None
