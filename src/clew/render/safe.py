"""Text made harmless: what would steer a terminal or hide from the eye is shown instead of obeyed."""

from __future__ import annotations

import re
from collections.abc import Iterable

# One character class, because the search for it runs at full speed through plain text.
_UNSAFE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    r"\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    r"\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# These are compiled when they are asked for the first time: large classes take long, and few texts need them.
_EMOJI_OR_JOINED = (
    "[\u203c-\u3299\ufe0f\U0001f000-\U0001faff\u0600-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17ff\u1820-\u18af]"
)
_IDEOGRAPH = "[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
_JOINERS = "\u200c\u200d"
# How unsafe characters begin in UTF-8. What is left of a text when plain ASCII is deleted is next to nothing, so that
# looking there first is many times quicker than to look at every character.
_PLAIN = bytes([0x09, 0x0A, *range(0x20, 0x7F)])
_MAYBE_UNSAFE = re.compile(
    rb"[\x00-\x7f\xed\xf3]|\xc2[\x80-\x9f\xad]|\xcd\x8f|\xd8\x9c|\xe1(?:\x85|\x9e[\xb4\xb5]|\xa0)|\xe3\x85\xa4"
    rb"|\xe2(?:\x80[\x8b-\x8f\xa8-\xae]|\x81[\xa0-\xaf])|\xef(?:\xb8[\x80-\x8d]|\xbb\xbf|\xbe\xa0|\xbf[\xb0-\xbb])"
    rb"|\xf0(?:\x9b\xb2|\x9d\x85)"
)


def visible(text: str) -> str:
    """The text with every control and every invisible character spelled out; newline and tab stay."""
    return text if is_plain(text) else _spelled(text)


def visible_bytes(texts: Iterable[str]) -> bytes:
    """The same of many texts together, in UTF-8; a text with wide characters does not make the others wide."""
    pieces = list(texts)
    try:
        encoded = b"".join([piece.encode() for piece in pieces])
    except UnicodeEncodeError:
        return _spelled("".join(pieces)).encode()
    left = encoded.translate(None, _PLAIN)
    return encoded if not left or _MAYBE_UNSAFE.search(left) is None else _spelled("".join(pieces)).encode()


def is_plain(text: str) -> bool:
    """True where a quick look shows that nothing in the text need be spelled out; False leaves it open."""
    try:
        left = text.encode().translate(None, _PLAIN)
    except UnicodeEncodeError:
        return False
    return not left or _MAYBE_UNSAFE.search(left) is None


def one_line(text: str) -> str:
    """The same on one line, with single spaces."""
    return " ".join(visible(text).split())


def _spelled(text: str) -> str:
    return _UNSAFE.sub(_spell, text.replace("\r\n", "\n"))


def _spell(match: re.Match[str]) -> str:
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
    """Joiners belong to emoji and to scripts that join letters, variation selectors to ideographs."""
    before, behind = text[at - 1 : at], text[at + 1 : at + 2]
    if char in _JOINERS:
        return bool(re.match(_EMOJI_OR_JOINED, before) and re.match(_EMOJI_OR_JOINED, behind))
    return "\U000e0100" <= char <= "\U000e01ef" and bool(re.match(_IDEOGRAPH, before))
