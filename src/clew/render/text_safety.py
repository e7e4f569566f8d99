"""Makes text from sessions safe to show: control and invisible characters become visible, HTML is escaped."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

import markupsafe

from clew.errors import UsageError

UNSAFE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    r"\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    r"\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Controls, and characters that have no width or change the direction of text."""
EMOJI_OR_JOINING_SCRIPT = (
    "[\u203c-\u3299\ufe0f\U0001f000-\U0001faff\u0600-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17ff\u1820-\u18af]"
)
IDEOGRAPH = "[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
JOINERS = "\u200c\u200d"
PLAIN_ASCII = bytes([0x09, 0x0A, *range(0x20, 0x7F)])


def visible(text: str) -> str:
    """Show every control and invisible character of a text; newline and tab stay."""
    return text if is_visible(text) else UNSAFE.sub(_show_char, text.replace("\r\n", "\n"))


def is_visible(text: str) -> bool:
    """True if the text has no control or invisible characters.

    Plain ASCII is deleted first, which is many times faster than to search all of a text.
    """
    unusual = text.encode("utf-8", "surrogatepass").translate(None, PLAIN_ASCII)
    return not unusual or UNSAFE.search(unusual.decode("utf-8", "surrogatepass")) is None


def one_line(text: str) -> str:
    """The visible text on one line, with single spaces."""
    return " ".join(visible(text).split())


def checked_line(text: str, what: str, max_chars: int) -> str:
    """A name or label that a user gives to something, as it is stored: NFC, on one line, with single spaces.

    Raises UsageError if it is empty or too long, or has characters that people cannot see.
    """
    line = " ".join(unicodedata.normalize("NFC", text).split())
    if not line:
        raise UsageError(f"a {what} needs at least one character")
    if len(line) > max_chars:
        raise UsageError(f"a {what} has at most {max_chars} characters; this one has {len(line)}")
    if visible(line) != line:
        raise UsageError(f"a {what} has no control or invisible characters")
    return line


def mask_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where the masks of secrets begin and end in a text."""
    if "[REDACTED" in text:
        from clew.redact.masks import MARKER

        yield from (match.span() for match in MARKER.finditer(text))


def unmasked_parts(text: str) -> Iterator[str]:
    """What a masked text still shows: the parts before, between and after the masks."""
    start = 0
    for first, last in mask_spans(text):
        yield text[start:first]
        start = last
    yield text[start:]


def escape(text: str) -> str:
    """The visible text as HTML, for the content of an element and for attributes in quotes."""
    return str(markupsafe.escape(visible(text)))


def escape_line(text: str) -> str:
    """The visible text as HTML on one line, with single spaces."""
    return str(markupsafe.escape(one_line(text)))


def _show_char(match: re.Match[str]) -> str:
    char = match.group()
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    if code < 0x100:
        return f"\\x{code:02x}"
    if _has_meaning(char, match.string, match.start()):
        return char
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _has_meaning(char: str, text: str, at: int) -> bool:
    """True for a joiner between emoji or joining letters, and for a variation selector after an ideograph."""
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if char in JOINERS:
        return bool(re.match(EMOJI_OR_JOINING_SCRIPT, before) and re.match(EMOJI_OR_JOINING_SCRIPT, after))
    return "\U000e0100" <= char <= "\U000e01ef" and bool(re.match(IDEOGRAPH, before))
