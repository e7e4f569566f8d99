"""The side panel of a session: time, files, task lists, usage, native records and problems, each when it is opened."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from starlette.responses import Response

from clew.analysis.todos import progression
from clew.catalog import queries
from clew.catalog.queries import Entry
from clew.catalog.stats import UsageTotals
from clew.errors import UnknownReference
from clew.io.compress import open_source
from clew.stored_session import StoredSession
from clew.web.asking import Asked, page
from clew.web.charts import lanes

LONGEST = 200_000
"""Characters of a native record that are shown at once."""
MOST = 500
"""Rows of a panel, unless all are asked for."""
_LANES = ("prompts", "replies", "tool results", "others")
_KINDS = {"user": 0, "assistant": 1, "tool_result": 2}
_PIECE = 1 << 20


def timeline(asked: Asked, entry: Entry) -> dict[str, Any]:
    """When what was said."""
    moments = queries.moments(asked.shelf.db, entry.number)
    times = [(moment.time_us, _KINDS.get(moment.kind, 3)) for moment in moments]
    counts = [sum(lane == number for _, lane in times) for number in range(len(_LANES))]
    return {"drawing": lanes(times, _LANES, "Messages over time"), "lanes": list(zip(_LANES, counts, strict=True))}


def files(asked: Asked, entry: Entry) -> dict[str, Any]:
    """What became of which file."""
    changes = queries.changes_of(asked.shelf.db, entry.number)
    paths: dict[str, list[queries.Change]] = {}
    for change in changes:
        paths.setdefault(change.path, []).append(change)
    most = asked.number("rows", MOST)
    return {"paths": sorted(paths.items())[:most], "left_out": max(0, len(paths) - most)}


def todos(asked: Asked, entry: Entry) -> dict[str, Any]:
    """The task list, as it changed."""
    session = asked.shelf.session(entry, asked.profile)
    states = progression(unit.value for unit in session.units() if unit.is_message)
    most = asked.number("rows", MOST)
    return {"states": states[-most:], "left_out": max(0, len(states) - most)}


def usage(asked: Asked, entry: Entry) -> dict[str, Any]:
    """What each turn used."""
    prompts = asked.shelf.transcript(entry, asked.profile).contents().prompts
    nothing = UsageTotals()
    turns = [(0, "before the first prompt", nothing), *((message, text, nothing) for message, text in prompts)]
    at = 0
    for message, used in queries.calls_of(asked.shelf.db, entry.number):
        while at + 1 < len(turns) and turns[at + 1][0] <= message:
            at += 1
        turns[at] = (*turns[at][:2], turns[at][2] + used)
    return {"turns": [turn for turn in turns if turn[0] or turn[2].calls], "total": entry.used}


def record(asked: Asked, entry: Entry) -> dict[str, Any]:
    """The native record of a message."""
    wanted = asked.number("message", 0)
    start, is_gone = asked.number("from", 0), entry.state == "gone"
    if not wanted or is_gone:
        return {"wanted": wanted, "text": None, "line": 0, "left_out": 0, "start": 0, "end": 0, "is_gone": is_gone}
    session = asked.shelf.session(entry, "none")
    line, raw = _record(session, wanted)
    text = asked.shelf.masking(asked.profile).record(session, raw).decode("utf-8", "replace")
    end = start + LONGEST
    shown = {"text": text[start:end], "start": start, "end": end, "left_out": max(0, len(text) - end)}
    return {"wanted": wanted, "line": line, "is_gone": False, **shown}


def _record(session: StoredSession, wanted: int) -> tuple[int, bytes]:
    start = stop = part = line = 0
    for unit in session.units():
        # A message without bytes of its own stands in the record before.
        if not (unit.is_message and unit.start == unit.stop):
            start, stop, part, line = unit.start, unit.stop, unit.part, unit.line
        if unit.is_message and unit.value["index"] == wanted:
            names = ("", *session.source.parts)
            path = session.path.parent / names[part] if part else session.path
            with open_source(path) as stream:
                while start > 0 and (piece := stream.read(min(start, _PIECE))):
                    start, stop = start - len(piece), stop - len(piece)
                return line, stream.read(stop)
    raise UnknownReference("the session has no such message")


def problems(asked: Asked, entry: Entry) -> dict[str, Any]:
    """What is wrong with the session's files."""
    if entry.state == "gone":
        return {"problems": [], "is_gone": True, "left_out": False}
    session = asked.shelf.session(entry, asked.profile)
    most = asked.number("rows", MOST)
    found = list(islice(session.problems(), most + 1))
    return {"problems": found[:most], "is_gone": False, "left_out": len(found) > most}


PANELS: dict[str, tuple[str, Callable[[Asked, Entry], dict[str, Any]]]] = {
    "timeline": ("Timeline", timeline),
    "files": ("Files", files),
    "todos": ("Tasks", todos),
    "usage": ("Usage by turn", usage),
    "record": ("Native record", record),
    "problems": ("Problems", problems),
}


def page_of(asked: Asked) -> Response:
    """One panel: alone where a script asks, as a page where a person does."""
    name = asked.part("panel")
    if name not in PANELS:
        raise UnknownReference("there is no such panel")
    entry = asked.shelf.entry(asked.part("agent"), asked.part("identity"))
    title, make = PANELS[name]
    return page(asked, "panel.html", entry=entry, panel=name, title=title, **make(asked, entry))
