"""Packed data in base64, such as the original of a converted session: it cannot be examined, so it is masked."""

from __future__ import annotations

import re

import msgspec

from clew.redact.matcher import Hit

PACKED = "packed_data"
"""The rule of data that is masked because it is compressed."""
ORIGIN = "clew-origin"
"""The type of the records that bring the original of a converted session along."""
# How the base64 of zstd (28 B5 2F FD) and gzip (1F 8B 08, then flags below 32) begins.
_BEGINNINGS = r"KLUv[/_][Q-Za-f]|H4sI[A-H]"
# A record of an original that is no JSON any more, be it cut off or within another text.
_IN_TEXT = r"clew-origin\\*[\"']\s*,\s*\\*[\"']data\\*[\"']\s*:\s*\\*[\"'][A-Za-z0-9+/_-]"
SIGNS = (_BEGINNINGS, _IN_TEXT)
BEGINNINGS = re.compile(_BEGINNINGS)
_SIGN = re.compile("|".join(SIGNS).encode())
FIRST_LETTERS = b"KHc"
_SHORTEST = 24
_LETTERS = rb"[A-Za-z0-9+/_-]"
_LINE_END = rb"(?:[\r\n]|\\{1,8}[rn]){1,4}[ \t]{0,12}"
_RUN = re.compile(rb"%b++={0,2}+(?:%b%b{16,}+={0,2}+)*+" % (_LETTERS, _LINE_END, _LETTERS))
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_NAME = b"clew-origin"
_NAME_SPELLED = re.compile("".join(rf"(?:{re.escape(char)}|\\u00{ord(char):02x})" for char in ORIGIN).encode(), re.I)
"""The name, whichever of its letters are escaped."""
_LONG_RUN = re.compile(rb"[A-Za-z0-9+/_-]{1000,}+={0,2}+")
_MEDIA_BEGINNINGS = (b"iVBOR", b"/9j/", b"R0lGOD", b"UklGR", b"JVBERi")
"""How the base64 of pictures and PDF files begins."""
_ORIGIN_SOMEWHERE = re.compile(rb'\{\s*"type"\s*:\s*"clew-origin"')


class _Typed(msgspec.Struct):
    type: str = ""


def is_sign(text: bytes, start: int, end: int) -> bool:
    """True where one of these signs stands."""
    return _SIGN.fullmatch(text, start, end) is not None


def packed_at(text: bytes, start: int, end: int) -> Hit | None:
    """The packed data that begins at a sign, or, of an original, behind it; on one line or on several."""
    run = _RUN.match(text, end - 1 if text[start] == 0x63 else start)
    if run is None or (len(run[0]) < _SHORTEST and text[start] != 0x63):
        return None
    return Hit(run.start(), run.end(), PACKED, 0.95)


def is_packed(text: str) -> bool:
    """True for a string of base64."""
    return _BASE64.fullmatch(text) is not None


def is_origin_line(line: bytes) -> bool:
    """True for a line of an original, also where another program spelled it anew or glued it to the line before."""
    return _NAME in line and (is_origin_record(line) or _ORIGIN_SOMEWHERE.search(line) is not None)


def is_origin_record(raw: bytes) -> bool:
    """True for JSON of the type of an original, however it is spelled."""
    try:
        return msgspec.json.decode(raw, type=_Typed).type == ORIGIN
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False


def names_origin(text: bytes) -> bool:
    """True for a text that may hold lines of an original, however they are spelled or damaged."""
    return _NAME_SPELLED.search(text) is not None


def without_long_base64(text: bytes, marker: bytes) -> bytes:
    """The text with a marker for every long run of base64 but pictures and PDF files.

    For files with lines of an original: these are not always recognised, and all but the first of them have no
    beginning by which compressed data is known.
    """
    return _LONG_RUN.sub(lambda run: run[0] if run[0].startswith(_MEDIA_BEGINNINGS) else marker, text)
