"""The page around a session: head, toolbar, table of contents, style and script.

The table of contents stands behind the messages, where it is known; the style sheet moves it beside them.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from clew.render.detail import DETAILS, Detail
from clew.render.parts import Branch, Fork
from clew.render.text_safety import escape_line

DOCUMENT = "clew-document"
"""The id of the element that carries the unified document."""
CARRIED = f'<script type="application/vnd.clew.document+zstd" id="{DOCUMENT}">'
"""How that element begins: its content is zstd in base64, so that nothing in it can end it."""

Theme = Literal["auto", "light", "dark"]
THEMES: tuple[Theme, ...] = get_args(Theme)

_HERE = Path(__file__).parent


class Assets(NamedTuple):
    """Style and script, and the content security policy that allows these two only."""

    style: str
    script: str
    policy: str


@lru_cache(1)
def assets() -> Assets:
    """Read the files that every page contains."""
    style = (_HERE / "page.css").read_text(encoding="utf-8")
    script = "".join((_HERE / name).read_text(encoding="utf-8") for name in ("code.js", "view.js", "page.js"))
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return Assets(style, script, policy)


def _digest(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def head(title: str, kind: str) -> str:
    """Everything before the content of the page; `kind` is a class for the style sheet."""
    style, _, policy = assets()
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="generator" content="clew">\n'
        f"<title>{escape_line(title)}</title>\n<style>{style}</style>\n</head>\n"
        f'<body class="{kind}">\n<a class="skip" href="#talk">Skip to content</a>\n'
    )


def banner(title: str, facts: Sequence[tuple[str, str]], notes: Iterable[str] = ()) -> str:
    """Title and facts of the session."""
    shown = [(escape_line(name), escape_line(value)) for name, value in facts if value]
    rows = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in shown)
    heading = f"<h1>{escape_line(title)}</h1>"
    return f'<header class="top">{heading}\n<dl class="facts">{rows}</dl>\n{"".join(notes)}</header>\n'


def toolbar(deepest: Detail) -> str:
    """Search, detail level, diff layout and colours. All but the search work without a script."""
    return (
        '<div class="bar" role="region" aria-label="View"><div class="find" role="search">'
        '<input id="q" type="search" placeholder="Search this session" aria-label="Search this session" hidden>'
        '<output id="hits" aria-live="polite"></output></div>'
        f'{views(deepest)}{theme()}<button id="fold" type="button" hidden>Open all</button></div>\n'
    )


def views(deepest: Detail, chosen: Detail | None = None) -> str:
    """The choices of detail level and diff layout; the deepest level is chosen, or another one."""
    levels = DETAILS[: DETAILS.index(deepest) + 1]
    options = [(f"d{DETAILS.index(name)}", name) for name in levels]
    details = choice("detail", "Detail", options, levels.index(chosen or deepest))
    return details + choice("diff", "Changes", [("v0", "unified"), ("v1", "side by side")], 0)


def theme(chosen: Theme = "auto") -> str:
    """The choice of colours."""
    return choice("theme", "Colours", [(f"t{n}", name) for n, name in enumerate(THEMES)], THEMES.index(chosen))


def choice(name: str, legend: str, options: Sequence[tuple[str, str]], chosen: int) -> str:
    """Radio buttons, which the style sheet reads without a script; `options` are ids and labels."""
    radios = "".join(
        f'<input type="radio" name="{name}" id="{key}"{" checked" if number == chosen else ""}>'
        f'<label for="{key}">{label}</label>'
        for number, (key, label) in enumerate(options)
    )
    return f'<fieldset class="pick {name}"><legend>{legend}</legend>{radios}</fieldset>'


def count(number: int, thing: str) -> str:
    """A number with its noun."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def contents(prompts: Iterable[tuple[int, str]], tree: str = "") -> str:
    """The table of contents: every prompt by its first words, and the tree of branches."""
    items = "".join(f'<li><a href="#m{index}">{escape_line(words)}</a></li>\n' for index, words in prompts)
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
            words = escape_line(labels.get(step.index) or f"message {step.index}")
            pieces.append(f'<li><a href="#m{step.index}" data-go="{step.index}">{words}</a>{mark}<ul>')
            waiting += ["</ul></li>\n", *reversed(inside.pop(step.index, []))]
    return f'<h2>Branches</h2><ul class="tree">{"".join(pieces)}</ul>' if pieces else ""


def tail(about: str) -> str:
    """The end of a page."""
    help_dialog = (
        '<dialog id="keys" aria-label="Keys"><h2>Keys</h2><dl><div><dt>j k</dt><dd>next, previous message</dd></div>'
        "<div><dt>J K</dt><dd>next, previous prompt</dd></div><div><dt>/</dt><dd>search; Enter, Shift Enter go on</dd>"
        "</div><div><dt>1 2 3 4</dt><dd>level of detail</dd></div><div><dt>d</dt><dd>kind of diff</dd></div>"
        "<div><dt>t</dt><dd>colours</dd></div><div><dt>o</dt><dd>open or close all</dd></div></dl>"
        '<form method="dialog"><button>Close</button></form></dialog>\n'
    )
    return f"<footer>{escape_line(about)}</footer>\n{help_dialog}<script>{assets().script}</script>\n</body>\n</html>\n"
