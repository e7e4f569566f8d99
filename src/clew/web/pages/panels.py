"""The side panels of a session page, each loaded when it is opened."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, islice
from typing import Any

from starlette.responses import Response

from clew.agents.source import open_file
from clew.analysis.todos import progression
from clew.catalog import queries
from clew.catalog.change_detection import has_unread_messages
from clew.catalog.queries import Entry
from clew.catalog.stats import UsageTotals, catalog_stats
from clew.errors import UnknownReference
from clew.filters import Filters
from clew.stored_session import StoredSession
from clew.web.charts import OTHER_COLOUR, lanes
from clew.web.context import NO_MASKING
from clew.web.editor import editor_links
from clew.web.request import PageRequest, respond
from clew.web.usage_charts import catalog_colours

RECORD_CHARS = 200_000
"""Characters of a native record that are shown at once."""
MAX_ROWS = 500
LANES = ("prompts", "replies", "tool results", "others")
LANE_OF_KIND = {"user": 0, "assistant": 1, "tool_result": 2}
READ_BYTES = 1 << 20


def timeline(request: PageRequest, entry: Entry) -> dict[str, Any]:
    """Messages over time."""
    moments = queries.moments(request.context.db, entry.number)
    times = [(moment.time_us, LANE_OF_KIND.get(moment.kind, 3)) for moment in moments]
    counts = [sum(lane == number for _, lane in times) for number in range(len(LANES))]
    return {"drawing": lanes(times, LANES, "Messages over time"), "lanes": list(zip(LANES, counts, strict=True))}


def files(request: PageRequest, entry: Entry) -> dict[str, Any]:
    """The changes of each file."""
    paths: dict[str, list[queries.RecordedChange]] = {}
    for change in queries.recorded_changes(request.context.db, entry.number):
        paths.setdefault(change.path, []).append(change)
    limit = request.number("rows", MAX_ROWS)
    left_out = max(0, len(paths) - limit)
    return {"paths": sorted(paths.items())[:limit], "left_out": left_out, "editor": editor_links(request, entry)}


def todos(request: PageRequest, entry: Entry) -> dict[str, Any]:
    """The task list after each change."""
    session = request.context.session(entry, request.profile)
    states = progression(unit.value for unit in session.units() if unit.is_message)
    limit = request.number("rows", MAX_ROWS)
    return {"states": states[-limit:], "left_out": max(0, len(states) - limit)}


def usage(request: PageRequest, entry: Entry) -> dict[str, Any]:
    """Token usage of each turn, and of each model."""
    prompts = request.context.transcript(entry, request.profile).contents().prompts
    turns: list[tuple[int, str, UsageTotals]] = [
        (0, "before the first prompt", UsageTotals()),
        *((*prompt, UsageTotals()) for prompt in prompts),
    ]
    current = 0
    for message, used in queries.calls_of(request.context.db, entry.number):
        while current + 1 < len(turns) and turns[current + 1][0] <= message:
            current += 1
        turns[current] = (*turns[current][:2], turns[current][2] + used)
    shown = [turn for turn in turns if turn[0] or turn[2].calls]
    return {"turns": shown, "total": entry.used, "models": _models(request, entry)}


def _models(request: PageRequest, entry: Entry) -> list[tuple[int, str, UsageTotals]]:
    """Colour, name and usage of each model of a session, in the order of the colours."""
    usage = catalog_stats(request.context.db, Filters(sessions=(entry.key,))).usage_by("model")
    colours = catalog_colours(request.context, "model")
    return sorted(
        ((colours.get(model, OTHER_COLOUR), model, used) for (model,), used in usage.items()), key=lambda one: one[:2]
    )


def record(request: PageRequest, entry: Entry) -> dict[str, Any]:
    """The native record of a message."""
    message, start, is_gone = request.number("message", 0), request.number("from", 0), entry.state == "gone"
    shown = {"wanted": message, "text": None, "line": 0, "left_out": 0, "start": 0, "end": 0, "is_gone": is_gone}
    if not message or is_gone:
        return shown
    session = request.context.session(entry, NO_MASKING)
    line, raw = _read_record(session, message)
    text = request.masking.record(session, raw).decode("utf-8", "replace")
    end = start + RECORD_CHARS
    left_out = max(0, len(text) - end)
    return {**shown, "text": text[start:end], "line": line, "left_out": left_out, "start": start, "end": end}


def _read_record(session: StoredSession, message: int) -> tuple[int, bytes]:
    """The line and the bytes of the record that holds a message."""
    start = stop = part = line = 0
    for unit in session.units():
        # A message without its own bytes is part of the record before it.
        if not (unit.is_message and unit.start == unit.stop):
            start, stop, part, line = unit.start, unit.stop, unit.part, unit.line
        if unit.is_message and unit.value["index"] == message:
            name = session.source.parts[part - 1] if part else ""
            with open_file(session.source, name) as stream:
                while start > 0 and (skipped := stream.read(min(start, READ_BYTES))):
                    start, stop = start - len(skipped), stop - len(skipped)
                return line, stream.read(stop)
    raise UnknownReference("the session has no such message")


def problems(request: PageRequest, entry: Entry) -> dict[str, Any]:
    """Problems in the session's files."""
    if entry.state == "gone":
        return {"problems": [], "is_gone": True, "left_out": False}
    session = request.context.session(entry, request.profile)
    limit = request.number("rows", MAX_ROWS)
    shared = queries.shared_messages(request.context.db, session.path)
    found = list(islice(chain(session.problems(), shared), limit + 1))
    return {"problems": found[:limit], "is_gone": False, "left_out": len(found) > limit}


PANELS: dict[str, tuple[str, Callable[[PageRequest, Entry], dict[str, Any]]]] = {
    "timeline": ("Timeline", timeline),
    "files": ("Files", files),
    "todos": ("Tasks", todos),
    "usage": ("Usage by turn", usage),
    "record": ("Native record", record),
    "problems": ("Problems", problems),
}


def view(request: PageRequest) -> Response:
    """One panel: alone for the script, as a page without it."""
    name = request.path_param("panel")
    if name not in PANELS:
        raise UnknownReference("no such panel")
    entry = request.entry()
    title, load = PANELS[name]
    is_unread = has_unread_messages(request.context.db, entry.number)
    shown = load(request, entry)
    return respond(request, "panel.html", entry=entry, panel=name, title=title, is_unread=is_unread, **shown)
