"""Foreign text in HTML: every character of it is text, in content and in attributes."""

from __future__ import annotations

from functools import lru_cache

from clew.render.safe import encoded, one_line, visible

_AMPERSAND, _LESS, _MORE = b"&<>"
SHORT = 40
"""Names and times are no longer, and come again and again."""


def text(value: str) -> str:
    """Text as the content of an element; what is invisible is spelled out."""
    return escaped(visible(value))


def line(value: str) -> str:
    """The same on one line."""
    return _short(value) if len(value) <= SHORT else _line(value)


def _line(value: str) -> str:
    return escaped(value if _is_one_line(value) else one_line(value))


def _is_one_line(value: str) -> bool:
    """True for what nearly all are, and what is so at a glance."""
    return value.isascii() and value.isprintable() and "  " not in value and value[:1] != " " != value[-1:]


_short = lru_cache(4096)(lambda value: escaped(one_line(value)))


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


def escaped_bytes(value: str) -> bytes:
    """The same in UTF-8, for long texts: bytes are searched many times quicker."""
    text = encoded(value)
    if _AMPERSAND in text:
        text = text.replace(b"&", b"&amp;")
    if _LESS in text:
        text = text.replace(b"<", b"&lt;")
    return text.replace(b">", b"&gt;") if _MORE in text else text
