"""Foreign Markdown as safe HTML: raw HTML is shown as text, everything is sanitised by nh3, images are never loaded."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import nh3

from clew.render.text_safety import escape, visible

LT_PLACEHOLDER = "\ufdd0"
"""A character reserved by Unicode. It stands for "<" while the Markdown is rendered, so that there is no raw HTML."""
TAGS = set("p em strong code pre ul ol li h3 h4 h5 h6 blockquote hr br del table thead tbody tr th td a".split())
ATTRIBUTES: dict[str, set[str]] = {"*": set(), "a": {"href"}, "ol": {"start"}, "code": {"class"}}
URL_SCHEMES = {"http", "https", "mailto"}
ABSOLUTE_URL = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)
LANGUAGE_CLASS = re.compile(r"language-([a-z0-9+#-]{1,20})", re.IGNORECASE)
HEADING = re.compile(r"<(/?)h([1-6])>")
TAG = re.compile(r"<(/?)\w[^>]*?(/?)>")
MAX_NESTING = 100
"""Markdown with elements nested deeper is shown as its source. nh3 takes quadratic time for the depth."""
IMAGE = re.compile(r'<img src="[^"]*" alt="([^"]*)"[^>]*>')


def markdown_to_html(text: str) -> str:
    """Render Markdown to HTML that has no invisible characters and cannot do anything."""
    text = visible(text).replace(LT_PLACEHOLDER, "\\ufdd0").replace("<", LT_PLACEHOLDER)
    html = _renderer()(text)
    if _nesting(html) > MAX_NESTING:
        return f"<pre>{escape(text)}</pre>".replace(LT_PLACEHOLDER, "&lt;")
    html = IMAGE.sub(r"[image: \1]", HEADING.sub(_lower_heading, html))
    html = _sanitizer().clean(html)
    # A character reference such as &#8203; may have become an invisible character.
    return (visible(html) if "&" in text else html).replace(LT_PLACEHOLDER, "&lt;")


def _nesting(html: str) -> int:
    """The depth of the deepest element."""
    depth = deepest = 0
    for tag in TAG.finditer(html):
        is_end, is_empty = tag.groups()
        if not is_empty:
            depth += -1 if is_end else 1
            deepest = max(deepest, depth)
    return deepest


def _lower_heading(match: re.Match[str]) -> str:
    """Levels 1 and 2 are the title and the messages of the page."""
    return f"<{match[1]}h{min(6, int(match[2]) + 2)}>"


def _filter_attribute(tag: str, name: str, value: str) -> str | None:
    """Keep absolute links, which a local page cannot resolve to files, and the language of code."""
    if name == "href":
        return value if ABSOLUTE_URL.match(value) else None
    if tag == "code":
        language = LANGUAGE_CLASS.fullmatch(value)
        return f"x-{language[1].lower()}" if language else None
    return value


@lru_cache(1)
def _sanitizer() -> nh3.Cleaner:
    return nh3.Cleaner(
        tags=TAGS,
        attributes=ATTRIBUTES,
        attribute_filter=_filter_attribute,
        url_schemes=URL_SCHEMES,
        link_rel="noopener noreferrer",
    )


@lru_cache(1)
def _renderer() -> Any:
    import pyromark

    options = pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_STRIKETHROUGH
    return pyromark.Markdown(options=options).html
