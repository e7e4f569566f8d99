"""Foreign Markdown as HTML that cannot do anything.

No raw HTML reaches the renderer: every "<" is a stand-in until the HTML is made, so all tags are its own. Those that
bear nothing from the text pass as they are; anything else goes through the cleaner. Pictures are never loaded.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from clew.render.safe import visible

_LESS = "\ufdd0"
"""A character that no text has: it stands for "<"."""
_BARE = "p|em|strong|code|pre|ul|ol|li|h[3-6]|blockquote|hr /|br /|del|table|thead|tbody|tr|th|td"
_UNPROVED = re.compile(
    rf'<(?!/?(?:{_BARE})>|code class="x-[a-z0-9+#-]{{1,20}}">|ol start="\d{{1,9}}">|/a>'
    r'|a href="(?:https?://|mailto:)[^"<>\s]*" rel="noopener noreferrer">)'
)
_LANGUAGE = re.compile(r'<code class="language-([^"]*)">')
_KNOWN = re.compile(r"[a-z0-9+#-]{1,20}", re.IGNORECASE)
_MORE = re.compile("<(?!/?p>)")
"""Where there is more than paragraphs."""
_HEADING = re.compile(r"<(/?)h([1-6])>")
_LINK = re.compile(r'<a href="((?:https?://|mailto:)[^"<>\s]*)"(?: title="[^"<>]*")?>', re.IGNORECASE)
_OUTWARD = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)
_IMAGE = re.compile(r'<img src="[^"]*" alt="([^"]*)"[^>]*>')
_ALIGNED = re.compile(r'<(t[hd]) style="text-align: \w+">')
_TAGS = frozenset("p em strong code pre ul ol li h3 h4 h5 h6 blockquote hr br del table thead tbody tr th td a".split())
_ATTRIBUTES: dict[str, set[str]] = {"a": {"href"}, "ol": {"start"}, "code": {"class"}}


def prose(value: str) -> str:
    """The HTML of Markdown; nothing in it is invisible."""
    value = visible(value)
    if _LESS in value:
        value = value.replace(_LESS, "\\ufdd0")
    html: str = _markdown()(value.replace("<", _LESS) if "<" in value else value)
    if _MORE.search(html) is not None:
        html = _harmless(html)
    if "&" in value:
        # A character may be spelled by its number.
        html = visible(html)
    return html.replace(_LESS, "&lt;") if _LESS in html else html


def _harmless(html: str) -> str:
    """The same with our headings, languages and links, and nothing else that bears anything from the text."""
    if "<h" in html:
        html = _HEADING.sub(_demoted, html)
    if _UNPROVED.search(html) is None:
        return html
    if 'class="language' in html:
        html = _LANGUAGE.sub(_marked, html)
    if "<a " in html:
        html = _LINK.sub(r'<a href="\1" rel="noopener noreferrer">', html)
    if "<img" in html:
        html = _IMAGE.sub(r"[image: \1]", html)
    if ' style="' in html:
        html = _ALIGNED.sub(r"<\1>", html)
    return _cleaned(html) if _UNPROVED.search(html) else html


def _demoted(match: re.Match[str]) -> str:
    """Our own title and sections use the levels 1 and 2."""
    return f"<{match[1]}h{min(6, int(match[2]) + 2)}>"


def _marked(match: re.Match[str]) -> str:
    return f'<code class="x-{match[1].lower()}">' if _KNOWN.fullmatch(match[1]) else "<code>"


def _cleaned(html: str) -> str:
    import nh3

    return nh3.clean(
        html,
        tags=set(_TAGS),
        attributes=_ATTRIBUTES,
        attribute_filter=_allowed,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer",
    )


def _allowed(_tag: str, name: str, value: str) -> str | None:
    """A link that names no scheme would lead to a file of this machine."""
    return value if name != "href" or _OUTWARD.match(value) else None


@lru_cache(1)
def _markdown() -> Any:
    """The renderer, loaded when it is needed."""
    import pyromark

    options = pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_STRIKETHROUGH
    return pyromark.Markdown(options=options).html
