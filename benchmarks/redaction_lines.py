"""The planted texts within lines of a transcript, masked as one session: what is gone, and what must have stayed."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Sequence
from functools import partial
from io import BytesIO
from typing import Any, NamedTuple

from clew.redact.masks import MARKER, Marker
from clew.redact.native_files import mask_file
from clew.redact.redactor import Redactor, Setting

Spans = list[list[tuple[int, int]]]
_MARKER = re.compile(MARKER.pattern)


class Masked(NamedTuple):
    """What masking did to the lines of one session."""

    spans: Spans
    """Of the text in each line, what was masked."""
    broken: int
    """Lines that are no JSON any more, or have other keys, ids or order."""
    touched: int
    """Lines that hold no marker, and yet are not the bytes they were."""
    seconds: float
    size: int


def mask_lines(lines: Sequence[dict[str, Any]], profile: str = "pii") -> Masked:
    """Mask lines as one session."""
    raw = [json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines]
    content = b"".join(raw)
    redactor = Redactor(Setting(profile, Marker(b"benchmark")))
    begin = time.process_time()
    whole = b"".join(mask_file(partial(BytesIO, content), redactor))
    seconds = time.process_time() - begin
    masked = list(BytesIO(whole))
    broken = touched = 0
    spans: Spans = []
    for line, old, new in zip(lines, raw, masked, strict=True):
        found = _parsed(new)
        broken += _outline(found) != _outline(line)
        touched += new != old and not MARKER.search(new.decode())
        spans.append(list(_between(_text(line), _text(found))) if found else [])
    return Masked(spans, broken, touched, seconds, len(content))


def _parsed(raw: bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _text(line: dict[str, Any]) -> str:
    content = line["message"]["content"]
    return str(content if isinstance(content, str) else content[0]["content"])


def _outline(value: Any, key: str = "") -> Any:
    """Keys in their order, and every value but the one text."""
    if isinstance(value, dict):
        return [(name, _outline(value[name], name)) for name in value]
    if isinstance(value, list):
        return [_outline(item) for item in value]
    return None if key == "content" else value


def _between(old: str, new: str) -> Iterator[tuple[int, int]]:
    """What markers stand for: all between the pieces that stayed."""
    pieces, place = _MARKER.split(new), 0
    if len(pieces) < 2:
        return
    place = len(pieces[0])
    for piece in pieces[1:-1]:
        stop = old.find(piece, place)
        stop = place if stop < 0 else stop
        yield place, stop
        place = stop + len(piece)
    yield place, len(old) - len(pieces[-1])
