"""Values that were found once are found everywhere: as they are, escaped, encoded."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

from clew.redact.flat import to_bytes
from clew.redact.searching import Find, Hit, each, finder

# Shorter values stand in texts by chance.
SHORTEST = 8


class Known:
    """The values of a session, ready to be searched for. Build it once, after the first pass."""

    def __init__(self, values: Iterable[str]) -> None:
        spellings = {form for value in values if len(value) >= SHORTEST for form in spellings_of(value)}
        # Neighbours that begin alike share their states, however many values there are; of two, the longer comes first.
        ordered = sorted(spellings, reverse=True)
        self.find: Find = finder(_escape(form) for form in ordered) if ordered else _nothing
        self._any = bool(ordered)

    def __bool__(self) -> bool:
        return self._any

    def hits(self, text: bytes) -> list[Hit]:
        """Where the values stand in some bytes."""
        return [Hit(start, end, "known_value", 0.9) for start, end in each(self.find, text)]


def _nothing(text: bytes, start: int, end: int) -> tuple[int, int]:
    return -1, -1


def spellings_of(value: str) -> set[bytes]:
    """The forms in which a value travels: plain, in JSON of two depths, in addresses, base64, hex, \\u escapes."""
    raw = to_bytes(value)
    forms = {raw, *_in_json(value)}
    if value.isprintable():
        plain = value.encode("utf-8", "replace")
        forms |= {quote(plain, safe="").encode(), quote_plus(plain).encode(), quote(plain).encode()}
        forms |= {form.lower() for form in forms if b"%" in form}
    if len(raw) >= SHORTEST:
        forms |= {raw.hex().encode(), raw.hex().upper().encode(), *_in_base64(raw)}
    return {form for form in forms if len(form) >= SHORTEST}


def _in_json(value: str) -> set[bytes]:
    once = json.dumps(value)[1:-1]
    twice = json.dumps(once)[1:-1]
    kept = json.dumps(value, ensure_ascii=False)[1:-1]
    slashes = kept.replace("/", "\\/")
    spelled = "".join(f"\\u{unit:04x}" for unit in _units(value))
    return {to_bytes(form) for form in (once, twice, kept, slashes, spelled, spelled.upper().replace("\\U", "\\u"))}


def _units(value: str) -> list[int]:
    raw = value.encode("utf-16-be", "surrogatepass")
    return [raw[place] << 8 | raw[place + 1] for place in range(0, len(raw), 2)]


def _in_base64(raw: bytes) -> set[bytes]:
    """The characters that a value determines at each of the three places it can have in a group."""
    forms = set()
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + raw)
        # What neighbours share is left out: the first 2 or 3 characters, and the last group if it is not full.
        start = (0, 2, 3)[shift]
        full = (len(raw) + shift) // 3 * 4 + ((len(raw) + shift) % 3)
        core = encoded[start:full]
        if len(core) >= SHORTEST:
            forms |= {core, core.translate(_ADDRESS)}
    return forms


_ADDRESS = bytes.maketrans(b"+/", b"-_")


def _escape(form: bytes) -> str:
    return re.escape(form.decode("latin-1"))
