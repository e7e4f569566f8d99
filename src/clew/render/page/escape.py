"""Foreign text in HTML: every character of it is text, in content and in attributes."""

from __future__ import annotations

from functools import lru_cache

from clew.render.safe import one_line, visible

SHORT = 40
"""Names and times are no longer, and come again and again."""


def text(value: str) -> str:
    """Text as the content of an element; what is invisible is spelled out."""
    return _escaped(visible(value))


def line(value: str) -> str:
    """The same on one line."""
    return _short(value) if len(value) <= SHORT else _escaped(one_line(value))


@lru_cache(4096)
def _short(value: str) -> str:
    return _escaped(one_line(value))


def attribute(value: str) -> str:
    """Text as the value of an attribute in double quotes."""
    return _escaped(one_line(value)).replace('"', "&quot;")


def _escaped(value: str) -> str:
    if "&" in value:
        value = value.replace("&", "&amp;")
    if "<" in value:
        value = value.replace("<", "&lt;")
    return value.replace(">", "&gt;")
