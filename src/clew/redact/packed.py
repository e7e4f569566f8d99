"""Finds compressed data in base64, such as the original of a converted session. It cannot be scanned: it is masked."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import msgspec

from clew.model.record import ORIGIN as ORIGIN
from clew.redact.lazy_pattern import lazy_compile
from clew.redact.matcher import Match, compile_bytes

PACKED = "packed_data"
"""The rule of data that is masked because it is compressed."""
# Beginnings of the base64 of zstd (28 B5 2F FD) and gzip (1F 8B 08, then flags below 32).
_BEGINNINGS = r"KLUv[/_][Q-Za-f]|H4sI[A-H]"
# A record of an original that is not JSON any more: cut off, or within another text.
_IN_TEXT = r"clew-origin\\*[\"']\s*,\s*\\*[\"']data\\*[\"']\s*:\s*\\*[\"'][A-Za-z0-9+/_-]"
SIGNS = (_BEGINNINGS, _IN_TEXT)
BEGINNINGS = lazy_compile(_BEGINNINGS)
_SIGN = lazy_compile("|".join(SIGNS).encode())
FIRST_LETTERS = b"KHc"
_MIN_RUN_BYTES = 24
_LETTERS = rb"[A-Za-z0-9+/_-]"
_LINE_END = rb"(?:[\r\n]|\\{1,8}[rn]){1,4}[ \t]{0,12}"
_RUN = lazy_compile(rb"%b++={0,2}+(?:%b%b{16,}+={0,2}+)*+" % (_LETTERS, _LINE_END, _LETTERS))
_BASE64 = lazy_compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_NAME = ORIGIN.encode()
_LONG_RUN = lazy_compile(rb"[A-Za-z0-9+/_-]{1000,}+={0,2}+")
_MEDIA_BEGINNINGS = (b"iVBOR", b"/9j/", b"R0lGOD", b"UklGR", b"JVBERi")
"""Beginnings of the base64 of images and PDF files."""
_ORIGIN_SOMEWHERE = lazy_compile(rb'\{\s*"type"\s*:\s*"clew-origin"')


class _Typed(msgspec.Struct):
    type: str = ""


def is_sign(text: bytes, start: int, end: int) -> bool:
    """Tell whether a span is a candidate of packed data."""
    return _SIGN.fullmatch(text, start, end) is not None


def packed_at(text: bytes, start: int, end: int) -> Match | None:
    """Return the packed data that begins at a candidate, or behind it for an original; on one line or several."""
    run = _RUN.match(text, end - 1 if text[start] == 0x63 else start)
    if run is None or (len(run[0]) < _MIN_RUN_BYTES and text[start] != 0x63):
        return None
    return Match(run.start(), run.end(), PACKED, 0.95)


def is_packed(text: str) -> bool:
    """Tell whether a string is base64."""
    return _BASE64.fullmatch(text) is not None


def is_origin_line(line: bytes) -> bool:
    """Whether a line belongs to an original, even if it was encoded again or joined to the previous line."""
    return _NAME in line and (is_origin_record(line) or _ORIGIN_SOMEWHERE.search(line) is not None)


def is_origin_record(raw: bytes) -> bool:
    """Tell whether JSON text is a record of an original, however it is encoded."""
    try:
        return msgspec.json.decode(raw, type=_Typed).type == ORIGIN
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False


def names_origin(text: bytes) -> bool:
    """Tell whether a text may hold lines of an original, however they are encoded or damaged."""
    return _escaped_name().search(text) is not None


@cache
def _escaped_name() -> Any:
    """Compile an expression for the name, whichever of its letters are escaped."""
    return compile_bytes("".join(rf"(?:{re.escape(char)}|\\u00{ord(char):02x})" for char in ORIGIN), case=False)


def without_long_base64(text: bytes, marker: bytes) -> bytes:
    """Replace every long run of base64 by a marker, but for images and PDF files.

    For files with lines of an original: damaged lines are not always recognised, and all but the first have no
    beginning that marks compressed data.
    """
    return _LONG_RUN.sub(lambda run: run[0] if run[0].startswith(_MEDIA_BEGINNINGS) else marker, text)
