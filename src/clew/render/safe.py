"""Text made harmless: what would steer a terminal or hide from the eye is shown instead of obeyed."""

from __future__ import annotations

import re

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
# How controls are spelled, whatever stands around them.
_CONTROLS = {chr(code): chr(0x2400 + code).encode() for code in range(0x20)} | {"\x7f": "␡".encode()}
WITH_HALVES = "utf-8", "surrogatepass"
# What is left of a text when plain ASCII is deleted is next to nothing, so that looking there is many times quicker
# than to look at every character.
PLAIN = bytes([0x09, 0x0A, *range(0x20, 0x7F)])
# Whether that is nothing is told more quickly still by a table that changes all else.
_CHANGES = bytes(code if code in PLAIN else (code + 1) % 256 for code in range(256))


def visible(text: str) -> str:
    """The text with every control and every invisible character spelled out; newline and tab stay."""
    return text if is_plain(text) else _spelled(text)


def visible_bytes(text: bytes) -> bytes:
    """The same of a text in UTF-8 that `encoded` made."""
    if text.isascii() and text.translate(_CHANGES) == text:
        return text
    left = text.translate(None, PLAIN)
    unsafe = set(_UNSAFE.findall(left.decode(*WITH_HALVES))) if left else None
    if not unsafe:
        return text
    if not unsafe <= _CONTROLS.keys():
        return _spelled(text.decode(*WITH_HALVES)).encode()
    text = text.replace(b"\r\n", b"\n")
    for control in unsafe:
        text = text.replace(control.encode(), _CONTROLS[control])
    return text


def is_visible(text: bytes) -> bool:
    """True where nothing need be spelled out in a text in UTF-8 that `encoded` made."""
    left = text.translate(None, PLAIN)
    return not left or _UNSAFE.search(left.decode(*WITH_HALVES)) is None


def encoded(text: str) -> bytes:
    """A text in UTF-8; halves of characters, which no UTF-8 has, go over as they are."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode(*WITH_HALVES)


def is_plain(text: str) -> bool:
    """True where nothing in the text need be spelled out."""
    raw = encoded(text)
    if text.isascii() and raw.translate(_CHANGES) == raw:
        return True
    return is_visible(raw)


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
