"""Text made harmless: what would steer a terminal or hide from the eye is shown instead of obeyed."""

from __future__ import annotations

import re

# One character class, because the search for it runs at full speed through plain text.
_UNSAFE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    r"\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    r"\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_EMOJI_OR_JOINED = re.compile(
    "[\u203c-\u3299\ufe0f\U0001f000-\U0001faff\u0600-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17ff\u1820-\u18af]"
)
_IDEOGRAPH = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_JOINERS = "\u200c\u200d"


def visible(text: str) -> str:
    """The text with every control and every invisible character spelled out; newline and tab stay."""
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
    return _UNSAFE.sub(_spell, text)


def one_line(text: str) -> str:
    """The same on one line, with single spaces."""
    return " ".join(visible(text).split())


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
        return bool(_EMOJI_OR_JOINED.match(before) and _EMOJI_OR_JOINED.match(behind))
    return "\U000e0100" <= char <= "\U000e01ef" and bool(_IDEOGRAPH.match(before))
