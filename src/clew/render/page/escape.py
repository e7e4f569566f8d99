"""Foreign text in HTML: every character of it is text, in content and in attributes."""

from __future__ import annotations

from functools import lru_cache

from clew.render.safe import PLAIN, encoded, is_visible, one_line, visible

_SIGNS = (b"&", b"&amp;"), (b"<", b"&lt;"), (b">", b"&gt;")
_ORDINARY = PLAIN.translate(None, b"&<>\n")
SHORT = 40
"""Names and times are no longer, and come again and again."""


def text(value: str) -> str:
    """Text as the content of an element; what is invisible is spelled out."""
    return escaped(visible(value))


def line(value: str) -> str:
    """The same on one line."""
    return _short(value) if len(value) <= SHORT else _line(value)


def _line(value: str) -> str:
    # Nearly all are on one line, which is seen at a glance.
    if not (value.isascii() and value.isprintable()) or "  " in value or value[:1] == " " or value[-1:] == " ":
        value = one_line(value)
    return escaped(value) if "&" in value or "<" in value or ">" in value else value


_short = lru_cache(4096)(_line)


def attribute(value: str) -> str:
    """Text as the value of an attribute in double quotes."""
    return _line(value).replace('"', "&quot;")


def escaped(value: str) -> str:
    """Text as content, for who makes all of what it goes into visible at once."""
    if "&" in value:
        value = value.replace("&", "&amp;")
    if "<" in value:
        value = value.replace("<", "&lt;")
    # A look costs a fraction of a copy.
    return value.replace(">", "&gt;") if ">" in value else value


def content(value: str) -> tuple[bytes, int, bool]:
    """Text as content in UTF-8, how many lines end in it, and whether it is visible already.

    What is left of it without all that is ordinary tells each.
    """
    try:
        # As nearly always, and without another call.
        html = value.encode()
    except UnicodeEncodeError:
        html = encoded(value)
    left = html.translate(None, _ORDINARY)
    lines = left.count(b"\n")
    if lines == len(left):
        return html, lines, True
    for sign, name in _SIGNS:
        if sign in left:
            html = html.replace(sign, name)
    return html, lines, is_visible(left)
