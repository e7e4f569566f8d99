"""What reading costs, in units of some 20 microseconds, and how many of them so many bytes bring."""

from __future__ import annotations

from collections.abc import Iterable

from clew.redact.finding import Spans
from clew.redact.jsontext import may_be_json
from clew.redact.leaves import Collected
from clew.redact.searching import ESCAPE

PRICE, SAVED = 240, 1500
"""One unit, in bytes of text, and how many are saved up."""
RECORD, AGAIN = 1, 2
"""To read a record, and to look at it again; there is more to pay for its bytes, members and texts."""
CROWDS, CROWD = 300, 8
"""What is forfeited for each crowd of signs, as far as there is something left, and what it costs."""
# To search for one more value, wherever it may stand: one that is spelled alike everywhere, or another.
_ALIKE, _OTHER = 2, 4
KNOWN = 24
"""What must be left to search a record for known values, and to look at it where it holds one."""
FEW = 100
"""So many findings of a record are masked in any case."""
FEWEST_LEAVES = 64
"""So many texts of a record are met in any case."""
LEAVES = 8
"""So many texts are worth one unit."""
CLOSE = 1 << 14
"""Bytes of a credential file that are read whatever it costs; where there are more at once, all are hidden."""
# So many bytes, and so many quotes, commas and brackets, of a record; so many bytes of JSON in its texts; so many looks
# at numbers and places, which are quicker than those at secrets; so much as is spent on escapes.
_BYTES, _ELEMENTS, _NESTED, _NUMBERS, _STRIPPED = 1024, 96, 400, 3, 12 * ESCAPE
_FOUND = 2
_FEW_CROWDS, _CROWD_BYTES, _COMPARED = 64, 4096, 12
_STRUCTURE = b'",[{'
_MORE_LEAVES, _MEMBER, _ASKED, _SEARCHED, _SIFTING = 16, 5, 100, 1024, 8


def is_closed(text: bytes, path: str | None) -> bool:
    """True for so much of a credential file that it is hidden without a look: all of it may be secret."""
    return path is not None and len(text) > CLOSE


def for_reading(raw: bytes, is_read: bool) -> tuple[int, int]:
    """What it costs to read a record, or half of it, and how much there must be left besides for its texts."""
    cost = RECORD + len(raw) // _BYTES
    if not may_be_json(raw):
        return cost, 0
    elements = _elements(raw)
    # Of a large object, only few may be met.
    cost += elements // _ELEMENTS
    return cost // 2 if is_read else cost, min(for_leaves(elements // _MEMBER), _ASKED)


def _elements(raw: bytes) -> int:
    return len(raw) - len(raw.translate(None, _STRUCTURE))


def for_hiding(raw: bytes) -> int:
    """What it costs to hide the texts of records."""
    return 1 + 2 * _elements(raw) // _ELEMENTS


def for_leaves(leaves: int, nested: int = 0) -> int:
    """What looking at the texts of a record is worth, of which so many bytes are JSON.

    Where there are many, few of them were met before.
    """
    return leaves // LEAVES + max(0, leaves - FEWEST_LEAVES) // _MORE_LEAVES + nested // _NESTED


def for_nested(texts: Collected) -> int:
    """What it costs to put the JSON within a record together again."""
    return sum(map(len, texts.nested)) // _NESTED


def for_search(raw: bytes) -> int:
    """What it costs to search a record for known values, but for comparing."""
    return 1 + len(raw) // _BYTES


def for_known(raw: bytes) -> int:
    """The same for the texts of a record that holds some."""
    return len(raw) // _SEARCHED


def for_looks(looks: int, numbers: int, sifting: int, stripped: int, compared: int) -> int:
    """What looks were worth: at secrets, at numbers, at those in JSON text, which go over a stretch.

    Escapes are paid for as well, and comparing with what is known.
    """
    return looks + (numbers + _SIFTING * sifting) // _NUMBERS + stripped // _STRIPPED + compared // _COMPARED


def for_values(values: Iterable[str]) -> int:
    """What it costs to search for some more values."""
    return sum([_ALIKE if value.isalnum() and value.isascii() else _OTHER for value in values])


def most_crowds(values: Iterable[Collected]) -> int:
    """How many crowds there may be in the texts of some values: with more, all of them are hidden whole."""
    return _FEW_CROWDS + sum(len(leaf[0]) for texts in values for leaf in texts.found) // _CROWD_BYTES


def for_seams(size: int) -> int:
    """What it costs to search the edges of texts that follow each other, of so many bytes."""
    return size // _BYTES


def for_found(spans: Spans, before: int = 0) -> int:
    """What it costs to mask what was found, but for so much as was paid for before."""
    return (count_of(spans) - before) // _FOUND


def count_of(spans: Spans) -> int:
    """How much was found."""
    return sum(map(len, spans.values()))
