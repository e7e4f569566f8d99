"""The page around a session: head, toolbar, table of contents, and the one style and script it may use.

The contents stand behind the session in the file, because only then are they known; the style puts them beside it.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from clew.render.detail import DETAILS, Detail
from clew.render.page.escape import line
from clew.render.parts import Branch, Fork

DOCUMENT = "clew-document"
"""The id of the element that carries the unified document."""
CARRIED = f'<script type="application/vnd.clew.document+zstd" id="{DOCUMENT}">'
"""How that element begins: its content is zstd in base64, so that nothing in it can end it."""

_HERE = Path(__file__).parent


class Assets(NamedTuple):
    """The style and the script, and the rule that lets a page use these alone."""

    style: str
    script: str
    policy: str


@lru_cache(1)
def assets() -> Assets:
    """Both as they go into a page."""
    style = (_HERE / "page.css").read_text(encoding="utf-8")
    script = "".join((_HERE / name).read_text(encoding="utf-8") for name in ("code.js", "view.js", "page.js"))
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return Assets(style, script, policy)


def _digest(content: str) -> str:
    return "sha256-" + binascii.b2a_base64(_sha256(content.encode()).digest(), newline=False).decode()


def _sha256(content: bytes) -> Any:
    """With hashlib come all algorithms of OpenSSL, which take long to load; Python has this one on its own too."""
    for name in ("_sha2", "_sha256"):
        with suppress(ImportError):
            return import_module(name).sha256(content)
    import hashlib

    return hashlib.sha256(content)


def head(title: str, kind: str) -> bytes:
    """Everything before the first words of the page; `kind` is a class for the style."""
    before, behind = _around_title(kind)
    return b"".join((before, line(title).encode(), behind))


@lru_cache(4)
def _around_title(kind: str) -> tuple[bytes, bytes]:
    """The head of every page of a kind."""
    style, _, policy = assets()
    before = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="generator" content="clew">\n<title>'
    )
    behind = (
        f"</title>\n<style>{style}</style>\n</head>\n"
        f'<body class="{kind}">\n<a class="skip" href="#talk">To the text</a>\n'
    )
    return before.encode(), behind.encode()


def banner(title: str, facts: Sequence[tuple[str, str]], notes: Iterable[str] = ()) -> str:
    """The title, and what there is to know of the session as a whole."""
    rows = "".join(f"<div><dt>{line(name)}</dt><dd>{line(value)}</dd></div>" for name, value in facts if value)
    return f'<header class="top"><h1>{line(title)}</h1>\n<dl class="facts">{rows}</dl>\n{"".join(notes)}</header>\n'


@lru_cache(4)
def toolbar(deepest: Detail) -> bytes:
    """Search, level of detail, kind of diff, colours: all but the search work without a script."""
    return (
        '<div class="bar" role="region" aria-label="View"><div class="find" role="search">'
        '<input id="q" type="search" placeholder="Search this session" aria-label="Search this session" hidden>'
        '<output id="hits" aria-live="polite"></output></div>'
        f'{views(deepest)}{theme()}<button id="fold" type="button" hidden>Open all</button></div>\n'
    ).encode()


def views(deepest: Detail) -> str:
    """The choices of detail and kind of diff."""
    levels = DETAILS[: DETAILS.index(deepest) + 1]
    details = choice("detail", "Detail", [(f"d{DETAILS.index(name)}", name) for name in levels], len(levels) - 1)
    return details + choice("diff", "Changes", [("v0", "unified"), ("v1", "side by side")], 0)


def theme() -> str:
    """The choice of colours."""
    return choice("theme", "Colours", [("t0", "auto"), ("t1", "light"), ("t2", "dark")], 0)


def choice(name: str, legend: str, options: Sequence[tuple[str, str]], chosen: int) -> str:
    """One of several, which works without a script; `options` are ids and labels."""
    radios = "".join(
        f'<input type="radio" name="{name}" id="{key}"{" checked" if number == chosen else ""}>'
        f'<label for="{key}">{label}</label>'
        for number, (key, label) in enumerate(options)
    )
    return f'<fieldset class="pick {name}"><legend>{legend}</legend>{radios}</fieldset>'


def count(number: int, thing: str) -> str:
    """So many things."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def contents(prompts: Iterable[tuple[int, str]], tree: str = "") -> str:
    """The table of contents: every prompt by its first words, and the tree of branches."""
    items = "".join(f'<li><a href="#m{index}">{line(words)}</a></li>\n' for index, words in prompts)
    empty = "" if items else "<p>No prompts.</p>"
    return f'<nav class="toc" aria-label="Prompts" id="toc"><h2>Prompts</h2>{empty}<ol>{items}</ol>{tree}</nav>\n'


def branches(forks: Sequence[tuple[int | None, Fork]], labels: Mapping[int, str]) -> str:
    """The tree of a forked conversation: every fork, with its branches and the forks that these lead to.

    Nothing recurses, so no depth is too deep.
    """
    inside: dict[int | None, list[Fork]] = {}
    for branch, fork in forks:
        inside.setdefault(branch, []).append(fork)
    pieces: list[str] = []
    waiting: list[str | Fork | Branch] = list(reversed(inside.pop(None, [])))
    while waiting:
        step = waiting.pop()
        if isinstance(step, str):
            pieces.append(step)
        elif isinstance(step, Fork):
            pieces.append(f'<li><a href="#m{step.index}">fork after {step.index}</a><ul>')
            waiting += ["</ul></li>\n", *reversed(step.branches)]
        else:
            mark = ' <span class="k">current</span>' if step.is_active else ""
            words = line(labels.get(step.index) or f"message {step.index}")
            pieces.append(f'<li><a href="#m{step.index}" data-go="{step.index}">{words}</a>{mark}<ul>')
            waiting += ["</ul></li>\n", *reversed(inside.pop(step.index, []))]
    return f'<h2>Branches</h2><ul class="tree">{"".join(pieces)}</ul>' if pieces else ""


def tail(about: str) -> bytes:
    """The end of a page."""
    return b"".join((b"<footer>", line(about).encode(), _behind_footer()))


@lru_cache(1)
def _behind_footer() -> bytes:
    """The end of every page."""
    help_ = (
        '<dialog id="keys" aria-label="Keys"><h2>Keys</h2><dl><div><dt>j k</dt><dd>next, previous message</dd></div>'
        "<div><dt>J K</dt><dd>next, previous prompt</dd></div><div><dt>/</dt><dd>search; Enter, Shift Enter go on</dd>"
        "</div><div><dt>1 2 3 4</dt><dd>level of detail</dd></div><div><dt>d</dt><dd>kind of diff</dd></div>"
        "<div><dt>t</dt><dd>colours</dd></div><div><dt>o</dt><dd>open or close all</dd></div></dl>"
        '<form method="dialog"><button>Close</button></form></dialog>\n'
    )
    return f"</footer>\n{help_}<script>{assets().script}</script>\n</body>\n</html>\n".encode()
