"""The app over a home, and what its pages hold, as an HTML5 parser sees it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from clew.catalog import database
from clew.catalog.sync import sync
from clew.host import Host
from clew.model.json import JSON
from clew.web.app import static_url
from clew.web.context import AppContext
from clew.web.editor import EDITORS
from clew.web.routes import pages
from tests.render.pages import parse
from tests.web.served import Answer, Served, served

TAGS = frozenset(
    "html head meta title link script body a header nav form input button fieldset legend label main h1 h2 h3 h4 h5 h6 "
    "p footer dialog dl div dt dd section aside figure figcaption ul ol li details summary span time b i em "
    "strong code pre kbd table thead tbody tfoot tr th td select option datalist mark article del ins blockquote hr "
    "br img textarea progress noscript svg text tspan rect line path circle".split()
)
ATTRIBUTES = re.compile(
    r"class|id|href|rel|src|alt|loading|open|type|name|checked|hidden|placeholder|aria-[a-z]+|role|tabindex|lang|charset"
    r"|content|http-equiv|for|max|value|start|method|data-[a-z]+|action|selected|list|defer|title|download|disabled|required|scope|autofocus"
    r"|inputmode|size|maxlength|rows|readonly|autocomplete|accept|formnovalidate|viewbox|x|y|rx|x1|x2|y1|y2|cx|cy|r|d|width|height|text-anchor",
    re.IGNORECASE,
)
_EDITOR = rf"(?:{'|'.join(EDITORS)})://(?:file/|open\?file=/|open\?url=file:///)[^\s\\\"'<>]+"
"""An address that opens an absolute path in a known editor."""
_ADDRESS = re.compile(rf"/(?!/)[^\s\\]*|#m?[\w-]*|https?://[^\s]+|mailto:[^\s]+|{_EDITOR}")
_IMAGE = re.compile(r"data:image/(?:png|jpeg|gif|webp|avif|svg\+xml);base64,[A-Za-z0-9+/=]*")
OWN_SCRIPTS = [static_url(name) for name in ("code.js", "view.js", "app.js")]
LAYOUT_SCRIPT = static_url("layout.js")
"""On session pages alone."""


class Shown(Served):
    """The app, asked by somebody who was let in."""

    context: AppContext
    _cookie: str | None = None

    def get(self, path: str, **headers: str) -> Answer:
        """A page."""
        if self._cookie is None:
            self._cookie = self.cookie()
        return self.ask(path, "GET", None, Cookie=self._cookie, **headers)

    def post(self, path: str, body: JSON, **headers: str) -> Answer:
        """Post JSON, as the app's own scripts do."""
        if self._cookie is None:
            self._cookie = self.cookie()
        sent = {"Content_Type": "application/json", "X_Clew": "1", **headers}
        return self.ask(path, "POST", json.dumps(body).encode(), Cookie=self._cookie, **sent)

    def catalog_row(self, query: str) -> tuple[Any, ...]:
        """One row of the catalog."""
        db = database.open_reader(self.context.folder)
        assert db is not None
        row: tuple[Any, ...] = db.execute(query).fetchone()
        db.close()
        return row

    def page(self, path: str, status: int = 200) -> Element:
        """A page that must be there, and must be one."""
        answer = self.get(path)
        assert answer.status == status, (path, answer.status, answer.body[:500])
        html = answer.body.decode()
        assert faults(html) == [], path
        return parse(html)

    def part(self, path: str) -> Element:
        """A part of a page, as the app's own script asks for it."""
        answer = self.get(path, X_Clew="1")
        assert answer.status == 200, (path, answer.status)
        assert b"<html" not in answer.body
        return parse(answer.body.decode())


@contextmanager
def shown(home: Path, folder: Path, profile: str = "none") -> Iterator[Shown]:
    """The app over a home whose catalog is fresh."""
    host = Host.at(home)
    sync([host], folder)
    with shown_context(AppContext([host], folder, profile=profile)) as app:
        yield app


@contextmanager
def shown_context(context: AppContext) -> Iterator[Shown]:
    """The app with this context, which is closed at the end."""
    try:
        with served(pages(context)) as running:
            app = Shown(running.port, running.tokens)
            app.context = context
            yield app
    finally:
        context.close()


def faults(html: str) -> list[str]:
    """What stands in a page and must not: foreign script, handlers, tags, attributes, addresses, ids twice."""
    tree = parse(html)
    found: list[str] = []
    seen: set[str] = set()
    for element in tree.iter():
        tag = local(element)
        if tag not in TAGS:
            found.append(f"tag {element.tag!r}")
        found += _faults_of(tag, element)
        identity = element.get("id")
        if identity in seen:
            found.append(f"id {identity!r} twice")
        seen.add(identity or "")
        seen.discard("")
    scripts = [element.get("src") for element in tree.iter("script")]
    if scripts and scripts not in (OWN_SCRIPTS, [*OWN_SCRIPTS, LAYOUT_SCRIPT]):
        found.append(f"scripts {scripts}")
    return found


def _faults_of(tag: str, element: Element) -> Iterator[str]:
    if tag == "script" and (element.text or "").strip():
        yield "a script inside the page"
    for name, value in element.attrib.items():
        if not ATTRIBUTES.fullmatch(name):
            yield f"attribute {name!r} of {tag}"
        elif name in ("href", "action", "data-load") and not _ADDRESS.fullmatch(value):
            yield f"address {value[:60]!r}"
        elif name == "href" and value.startswith(("http", "mailto")) and element.get("rel") != "noopener noreferrer":
            yield f"link {value[:60]!r} without its rel"
        elif name == "src" and not (value.startswith("/static/") or _IMAGE.fullmatch(value)):
            yield f"source {value[:60]!r}"


def words(elements: Element | Iterable[Element]) -> str:
    """The text of elements, on one line."""
    found = [elements] if isinstance(elements, Element) else list(elements)
    return " ".join(" ".join("".join(element.itertext()).split()) for element in found)


def named(tree: Element, tag: str, kind: str = "") -> list[Element]:
    """The elements with a tag, and a class."""
    found = [element for element in tree.iter() if local(element) == tag]
    return [element for element in found if not kind or kind in element.get("class", "").split()]


def local(element: Element) -> str:
    """The tag of an element, of HTML or of SVG."""
    return str(element.tag).rpartition("}")[2]


def links(tree: Element) -> list[str]:
    """Where a page leads, on this server."""
    return [href for element in named(tree, "a") if (href := element.get("href", "")).startswith("/")]
