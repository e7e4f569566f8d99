"""What a search prints. Loads neither click nor rich: a search is over before they would be there."""

from __future__ import annotations

from collections.abc import Iterator

from clew.catalog.query import BadQuery
from clew.catalog.search import Found, Hit

MARKS = "«", "»"
_ESCAPES = {ord('"'): '\\"', ord("\\"): "\\\\", **{code: f"\\u{code:04x}" for code in range(0x20)}}
_BOLD, _HIT, _DIM, _PLAIN = "\x1b[1m", "\x1b[1;33m", "\x1b[2m", "\x1b[0m"


def as_json(found: Found, readable: bool) -> str:
    """All hits of a page as one JSON value."""
    if readable:
        import json

        return (
            json.dumps({"total": found.total, "hits": [*map(_value, found.hits)]}, ensure_ascii=False, indent=2) + "\n"
        )
    hits = (",".join(f'"{name}":{_json(value)}' for name, value in _value(hit).items()) for hit in found.hits)
    return f'{{"total":{found.total},"hits":[{",".join(f"{{{hit}}}" for hit in hits)}]}}\n'


def _json(value: str | int | None) -> str:
    """A value as JSON; the library that knows more takes as long to load as the whole search."""
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPES)}"'
    return "null" if value is None else str(value)


def _value(hit: Hit) -> dict[str, str | int | None]:
    return {
        "session": hit.session,
        "message": hit.message,
        "agent": hit.agent,
        "kind": hit.kind,
        "timestamp": hit.timestamp,
        "snippet": hit.snippet.marked(*MARKS),
    }


def as_text(found: Found, color: bool) -> Iterator[str]:
    """The hits of a page, those of a session together, each session where its first hit stands."""
    sessions: dict[tuple[str, str], list[Hit]] = {}
    for hit in found.hits:
        sessions.setdefault((hit.agent, hit.session), []).append(hit)
    for number, hits in enumerate(sessions.values()):
        if number:
            yield "\n"
        yield _head(hits[0], color)
        for hit in hits:
            yield _line(hit, color)


def _head(hit: Hit, color: bool) -> str:
    words = [_one_line(word) for word in (hit.title, hit.project) if word]
    name = _one_line(f"{hit.agent}:{hit.session}")
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
    from clew.render.safe import visible

    return visible(f"clew: {error}\n")


def _one_line(text: str) -> str:
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    from clew.render.safe import one_line

    return one_line(text)
