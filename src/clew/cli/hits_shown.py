"""What a search prints."""

from __future__ import annotations

from collections.abc import Iterator

from clew.catalog.query import BadQuery
from clew.catalog.search import Found, Hit, Redact

MARKS = "«", "»"
_BOLD, _HIT, _DIM, _PLAIN = "\x1b[1m", "\x1b[1;33m", "\x1b[2m", "\x1b[0m"


def as_json(found: Found, readable: bool, redact: Redact) -> str:
    """All hits of a page as one JSON value."""
    import json

    value = {"total": found.total, "hits": [_value(hit, redact) for hit in found.hits]}
    if readable:
        return json.dumps(value, ensure_ascii=False, indent=2) + "\n"
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"


def _value(hit: Hit, redact: Redact) -> dict[str, str | int | None]:
    return {
        "session": redact(hit.session),
        "message": hit.message,
        "agent": hit.agent,
        "kind": hit.kind,
        "timestamp": hit.timestamp,
        "snippet": hit.snippet.marked(*MARKS),
    }


def as_text(found: Found, color: bool, redact: Redact) -> Iterator[str]:
    """The hits of a page, those of a session together, each session where its first hit stands."""
    sessions: dict[tuple[str, str], list[Hit]] = {}
    for hit in found.hits:
        sessions.setdefault((hit.agent, hit.session), []).append(hit)
    for number, hits in enumerate(sessions.values()):
        if number:
            yield "\n"
        yield _head(hits[0], color, redact)
        for hit in hits:
            yield _line(hit, color)


def _head(hit: Hit, color: bool, redact: Redact) -> str:
    words = [_one_line(word) for word in (hit.title, hit.project) if word]
    name = _one_line(f"{hit.agent}:{redact(hit.session)}")
    rest = "".join(f" · {word}" for word in words)
    return f"{_BOLD}{name}{_PLAIN}{_DIM}{rest}{_PLAIN}\n" if color else f"{name}{rest}\n"


def _line(hit: Hit, color: bool) -> str:
    place = f"#{hit.message}" if hit.message is not None else ""
    time = (hit.timestamp or "")[:16].replace("T", " ")
    label = f"  {place:>6} {hit.kind:<8} {time:<16}  "
    if color:
        return f"{_DIM}{label}{_PLAIN}{hit.snippet.marked(_HIT, _PLAIN)}\n"
    return f"{label}{hit.snippet.marked(*MARKS)}\n"


def remainder(found: Found, offset: int) -> str | None:
    """What to say where there is more than was shown."""
    end = offset + len(found.hits)
    if found.total <= end or not found.hits:
        return None
    return f"clew: {offset + 1} to {end} of {found.total}; --offset {end} shows the next"


def complaint(error: BadQuery) -> str:
    """What is wrong with a query, and where."""
    from clew.render.text_safety import visible

    return visible(f"clew: {error}\n")


def _one_line(text: str) -> str:
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    from clew.render.text_safety import one_line

    return one_line(text)
