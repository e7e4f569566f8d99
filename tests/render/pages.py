"""Pages for tests: made from messages, and read by an HTML5 parser that sees what a browser would."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import html5lib

from clew.export.html import write_html
from clew.host import Host
from clew.library import Library, StoredSession
from clew.render.branching import Forks
from clew.render.page.frame import assets

TAGS = frozenset(
    "html head meta title style body a header h1 h2 h3 h4 h5 h6 dl div dt dd p span fieldset legend input label button "
    "main article time details summary section pre code del ins b i figure img nav ol ul li footer dialog form script "
    "em strong blockquote hr br table thead tbody tr th td progress output".split()
)
ATTRIBUTES = frozenset(
    "class id href rel src alt loading open type name checked hidden placeholder aria-label aria-live aria-hidden role "
    "tabindex lang charset http-equiv content for max value start method data-b data-go".split()
)
OWN_IDS = frozenset("talk toc q hits fold keys filter clew-document d0 d1 d2 d3 v0 v1 t0 t1 t2".split())
_MADE = re.compile(r"(?:s\d+)*m\d+(?:-\d+)?")
_ADDRESS = re.compile(r"#(?:(?:s\d+)*m\d+|talk)|https?://[^\s]+|mailto:[^\s]+")
_IMAGE = re.compile(r"data:image/(?:png|jpeg|gif|webp|avif|svg\+xml);base64,[A-Za-z0-9+/=]*")


def page(messages: Iterable[dict[str, Any]], session: dict[str, Any] | None = None, **options: Any) -> str:
    """The page of a session."""
    out = io.BytesIO()
    write_html(session or {"id": "s"}, iter(messages), out, **options)
    return out.getvalue().decode()


def page_of(session: StoredSession, **options: Any) -> str:
    """The page of a session on disk."""
    messages = [unit.value for unit in session.units() if unit.is_message]
    forks = Forks.of_tree(session.facts.tree)
    return page(messages, session.session_object, agent=session.agent.title, forks=forks, **options)


def reply(*blocks: dict[str, Any], index: int = 1, role: str = "assistant") -> dict[str, Any]:
    """A message."""
    return {"index": index, "role": role, "content": list(blocks)}


def sessions(home: Path) -> list[StoredSession]:
    """Every session of a home."""
    return list(Library(Host.at(home)).sources())


def parse(html: str) -> Element:
    """The tree that a browser makes of it."""
    tree: Element = html5lib.parse(html, namespaceHTMLElements=False)
    return tree


def elements(tree: Element, *, kind: str | None = None, tag: str | None = None) -> Iterator[Element]:
    """The elements of a class, or with a tag."""
    for element in tree.iter():
        if (kind is None or kind in element.get("class", "").split()) and (tag is None or element.tag == tag):
            yield element


def words(element: Element) -> str:
    """The text of an element."""
    return "".join(element.itertext())


def faults(html: str, links: Iterable[str] = ()) -> list[str]:
    """What stands in a page and must not: foreign script, handlers, tags, attributes, addresses, ids."""
    tree = parse(html)
    found: list[str] = []
    seen: set[str] = set()
    known = set(links)
    for element in tree.iter():
        if not str(element.tag).isalnum():
            found.append(f"tag {element.tag}")
            continue
        found += _faults_of(element, known)
        identity = element.get("id")
        if identity is not None:
            if identity in seen or not (identity in OWN_IDS or _MADE.fullmatch(identity)):
                found.append(f"id {identity!r}")
            seen.add(identity)
    scripts = [element for element in elements(tree, tag="script") if not element.get("type")]
    styles = list(elements(tree, tag="style"))
    if [element.text for element in scripts] != [assets().script] or [e.text for e in styles] != [assets().style]:
        found.append("script or style that is not ours")
    return found


def _faults_of(element: Element, links: set[str]) -> Iterator[str]:
    if element.tag not in TAGS:
        yield f"tag {element.tag!r}"
    for name, value in element.attrib.items():
        if name not in ATTRIBUTES:
            yield f"attribute {name!r} of {element.tag}"
        elif name == "href" and value not in links and not _ADDRESS.fullmatch(value):
            yield f"address {value[:60]!r}"
        elif name == "src" and not _IMAGE.fullmatch(value):
            yield f"source {value[:60]!r}"
