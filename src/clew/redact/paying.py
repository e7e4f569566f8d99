"""What reading costs, in units of some 20 microseconds, and how many of them so many bytes bring."""

from __future__ import annotations

from clew.redact.jsontext import may_be_json
from clew.redact.looking import Spans
from clew.redact.searching import ESCAPE

PRICE, SAVED = 160, 2000
"""One unit, in bytes of text, and how many are saved up."""
RECORD = 2
"""To read a record; there is more to pay for its bytes, members and texts."""
FOUND = 1
"""To mask what was found."""
VALUE = 4
"""To search for one more value, wherever it may stand."""
CROWDS = 300
"""What is forfeited for each crowd of signs."""
ONE_DOCUMENT = 10_000 * PRICE
"""A file that is one document may cost some more: to hide all of it for one secret would be worse."""
FEWEST_LEAVES = 64
"""So many texts of a record are met in any case."""
LEAVES = 3.5
"""So many texts are worth one unit."""
# So many bytes, and so many quotes, commas and brackets, of a record; so many looks; so much as is spent on escapes.
_BYTES, _ELEMENTS, _LOOKS, _STRIPPED = 1024, 48, 3, 12 * ESCAPE
_STRUCTURE = b'",[{'
_MORE_LEAVES, _MEMBER, _ASKED, _SEARCHED, _SIFTING = 6, 5, 100, 768, 8


def for_reading(raw: bytes, is_read: bool) -> tuple[int, int]:
    """What it costs to read a record, or half of it, and how much there must be left besides for its texts."""
    cost = RECORD + len(raw) // _BYTES
    if not may_be_json(raw):
        return cost, 0
    elements = len(raw) - len(raw.translate(None, _STRUCTURE)) + 2 * (raw.count(b"[") + raw.count(b"{"))
    # Of a large object, only few may be met.
    cost += elements // _ELEMENTS
    return cost // 2 if is_read else cost, min(for_leaves(elements // _MEMBER), _ASKED)


def for_leaves(leaves: int) -> int:
    """What looking at the texts of a record is worth. Where there are many, few of them were met before."""
    return int(leaves / LEAVES) + max(0, leaves - FEWEST_LEAVES) // _MORE_LEAVES


def for_search(raw: bytes) -> int:
    """What it costs to search a record for known values, which it hardly holds."""
    return len(raw) // _BYTES


def for_known(raw: bytes) -> int:
    """The same for the texts of a record that holds some."""
    return len(raw) // _SEARCHED


def for_looks(looks: int, sifting: int, stripped: int) -> int:
    """What looks were worth, those at numbers in JSON text, which go over all of a stretch, and taking off escapes."""
    return (looks + _SIFTING * sifting) // _LOOKS + stripped // _STRIPPED


def count(spans: Spans) -> int:
    """How much was found."""
    return sum(map(len, spans.values()))
