"""The parts of a session as HTML. All ids are made here, of a prefix and a number, and of nothing in the session.

What a part says is escaped where it is put in. What cannot be seen is spelled out for a whole section at once, behind
all else: a look at one long text costs less than one at each of many.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from clew.render.outline import decoded_size, subagent_note
from clew.render.page.ansi import MARK, coloured
from clew.render.page.escape import attribute, escaped, line
from clew.render.page.prose import prose
from clew.render.parts import (
    Branch,
    Call,
    Code,
    Command,
    Continued,
    Diff,
    Divider,
    Fields,
    Fork,
    Injected,
    Note,
    Output,
    Part,
    Picture,
    Piece,
    Prose,
    Result,
    Section,
    Subagent,
    Tasks,
    Thought,
)
from clew.render.safe import visible, visible_bytes
from clew.render.tables import size

LIMIT = 200_000
"""Characters of one text that a page shows; a person cannot read more, and a browser not show it quickly."""
MAX_PICTURE = 8 << 20
PEEK = 90
"""Characters of a thought that are shown while it is folded."""
OPEN_LINES, OPEN_LENGTH = 12, 1_000
"""A result that is no longer is shown open."""

_PICTURES = frozenset(f"image/{kind}" for kind in ("png", "jpeg", "gif", "webp", "avif", "svg+xml"))
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]*={0,2}\s*")
_LANGUAGE = re.compile(r"[a-z0-9+#-]{1,20}")
_NAMES = {"user": "You", "assistant": "Assistant", "tool": "Tool", "system": "System"}
_LEVELS = ("", " l1", " l2", " l3")
_SIGNS = {"completed": "☑", "in_progress": "▣", "pending": "☐", "cancelled": "☒"}
_CHANGES = {"added": "new", "changed": "changed", "removed": "removed"}

Nested = Callable[[str, str], Iterator[bytes] | None]
"""Gives the HTML of the session of a sub-agent, in pieces: from its id, and the prefix its own ids get."""


class Cut(NamedTuple):
    """A text that is longer than what is shown of it: the `number`-th of its section."""

    section: int
    """The message that its section begins with."""
    number: int
    message: int
    """The message that it stands in."""
    text: str
    is_printed: bool
    """What a program printed; colours are escape sequences in it."""

    @property
    def left(self) -> int:
        """Characters that are not shown."""
        return len(self.text) - LIMIT

    def piece(self, start: int) -> str:
        """The HTML of as much of it as is shown at once, from a place on."""
        value = self.text[start : start + LIMIT]
        return visible(coloured(value) if self.is_printed and MARK in value else escaped(value))


More = Callable[[Cut], str]
"""Gives the HTML that stands where a text is cut: how much more there is, and how to get it."""


def untold(cut: Cut) -> str:
    """How much more there is, where nobody can say how to get it."""
    return f'<i class="more">… {cut.left:,} more characters are in the session itself.</i>'


def elsewhere(session: str) -> More:
    """The same in a page: another command prints it."""
    return lambda cut: (
        f'<i class="more">… {cut.left:,} more characters are not in this page; '
        f"<code>clew show {line(session)}#{cut.message}</code> prints them.</i>"
    )


class Fragments:
    """Writes parts; knows which ids it has made and whether a message is open.

    `links` leads from session ids to addresses of their pages.
    """

    def __init__(
        self,
        prefix: str = "m",
        *,
        links: Mapping[str, str] | None = None,
        nested: Nested | None = None,
        more: More = untold,
    ) -> None:
        self._prefix, self._links, self._nested, self._tell_more = prefix, links or {}, nested, more
        self.cuts: list[Cut] = []
        """Texts of the section written last that are longer than what is shown of them."""
        self._section_at = self._at = 0
        """The message that the section begins with, and the one that is being written."""
        self._open = False
        self._children = 0
        self._made: set[int] = set()
        """Messages whose id stands with a result."""
        self._writers: dict[type, Callable[[Any], str]] = {
            Section: self._section, Continued: self._continued, Divider: self._divider, Fork: self._fork,
            Prose: self._prose, Thought: self._thought, Injected: self._injected, Call: self._call,
            Result: self._result, Note: self._note, Code: self._code, Picture: self._picture, Output: self._output,
            Command: self._command, Diff: self._diff, Fields: _fields, Tasks: _tasks,
        }  # fmt: skip

    def write(self, shown: Sequence[Part]) -> Iterator[bytes]:
        """The HTML of the parts of the next section."""
        writers = self._writers
        self._section_at = self._at = getattr(shown[0], "index", 0)
        self.cuts = []
        if self._nested is None:
            yield visible_bytes([writers[type(part)](part) for part in shown])
            return
        for part in shown:
            if type(part) is Call and part.subagent is not None:
                yield from self._call_around(part, part.subagent)
            else:
                yield visible_bytes((writers[type(part)](part),))

    def end(self) -> bytes:
        """What closes the last message."""
        return self._closing().encode()

    def _closing(self) -> str:
        closing = "</article>\n" if self._open else ""
        self._open = False
        return closing

    def _section(self, part: Section) -> str:
        begin = self._closing()
        self._open = True
        marks = "".join([f' <span class="k">{line(mark)}</span>' for mark in part.marks]) if part.marks else ""
        time = f"<time>{line(part.time)}</time>" if part.time else ""
        branch = f' data-b="{part.branch}"' if part.branch is not None else ""
        who = _NAMES.get(part.who) or line(part.who)
        kind = f"m {part.voice}{' left' if part.is_left else ''}{_LEVELS[part.level]}"
        link = f'<a class="n" href="#{self._prefix}{part.index}">{part.index}</a>'
        return (
            f'{begin}<article class="{kind}"{self._id(part.index)}{branch}>'
            f"<header><h2>{who}</h2>{marks} {time} {link}</header>\n"
        )

    def _continued(self, part: Continued) -> str:
        self._at = part.index
        return f'<a class="at"{self._id(part.index)}></a>'

    def _id(self, index: int) -> str:
        """The id of a message; it is given once."""
        return "" if index in self._made else f' id="{self._prefix}{index}"'

    def _divider(self, part: Divider) -> str:
        begin = self._closing()
        time = f"<time>{line(part.time)}</time>" if part.time else ""
        return (
            f'{begin}<div class="divider{_LEVELS[part.level]}" role="separator" id="{self._prefix}{part.index}">'
            f"<span>The conversation was compacted here {time}</span></div>\n"
        )

    def _fork(self, part: Fork) -> str:
        ways = "".join([self._way(number, branch) for number, branch in enumerate(part.branches, 1)])
        label = f"Branches after message {part.index}"
        return (
            f'<nav class="fork{_LEVELS[part.level]}" aria-label="{label}"><p>The conversation forks here</p>'
            f"<ol>{ways}</ol></nav>\n"
        )

    def _way(self, number: int, branch: Branch) -> str:
        now, words = (' class="now"', ", which it went on with") if branch.is_active else ("", "")
        place = f'href="#{self._prefix}{branch.index}" data-go="{branch.index}"'
        return f"<li><a {place}{now}>Branch {number}, from message {branch.index}{words}</a></li>"

    def _thought(self, part: Thought) -> str:
        words = part.text.strip("\n")
        if not words.strip():
            return f'<p class="none{_LEVELS[part.level]}">Thinking, not recorded</p>\n'
        peek = line(words[:PEEK]) + ("…" if len(words) > PEEK else "")
        return (
            f'<details class="th{_LEVELS[part.level]}"><summary>Thinking <span class="peek">{peek}</span></summary>'
            f'<div class="pre">{self._cut(words, printed=True)}</div></details>\n'
        )

    def _injected(self, part: Injected) -> str:
        return (
            f'<details class="inj{_LEVELS[part.level]}"><summary>{line(part.what)}: not the user’s words</summary>'
            f"<pre>{self._cut(part.text, printed=True)}</pre></details>\n"
        )

    def _call(self, part: Call) -> str:
        inside = self._subagent(part.subagent) if part.subagent is not None else ""
        return f"{self._called(part)}{inside}{self._returned(part)}</div>\n"

    def _called(self, part: Call) -> str:
        note = f' <span class="note">{line(part.note)}</span>' if part.note else ""
        failed = " bad" if part.result is not None and part.result.is_error else ""
        return (
            f'<div class="c{failed}{_LEVELS[part.level]}" role="group" aria-label="Tool call"><div class="t">'
            f"<b>{line(part.name)}</b>{note}</div>\n{self._pieces(part.pieces)}"
        )

    def _returned(self, part: Call) -> str:
        return self._result(part.result, True) if part.result is not None else ""

    def _subagent(self, part: Subagent) -> str:
        if part.session is not None and part.session in self._links:
            address = attribute(self._links[part.session])
            return f'<p class="sub"><a href="{address}">Sub-agent’s session {line(part.session)}</a></p>\n'
        return self._note(subagent_note(part))

    def _call_around(self, part: Call, subagent: Subagent) -> Iterator[bytes]:
        """A call with the session of the sub-agent that it started inside."""
        self._children += 1
        prefix = f"{self._prefix.removesuffix('m')}s{self._children}m"
        inside = self._nested(subagent.session, prefix) if self._nested and subagent.session else None
        if inside is None:
            yield visible_bytes((self._call(part),))
            return
        yield visible_bytes((self._called(part),))
        yield f'<details class="sub l3"><summary>Sub-agent {line(subagent.session or "")}</summary>\n'.encode()
        yield from inside
        yield visible_bytes(("</details>\n", self._returned(part), "</div>\n"))

    def _result(self, part: Result, is_joined: bool = False) -> str:
        self._at, before = part.index, self._at
        pieces = self._pieces(part.pieces)
        self._at = before
        state = "Error" if part.is_error else "Result"
        if part.exit_code is not None:
            state += f", exit {part.exit_code}"
        lines = 0
        for piece in part.pieces:
            if type(piece) is Output:
                lines += piece.text.count("\n") + 1
        about = f" <span>{lines} lines</span>" if lines > 1 else ""
        if part.call is not None:
            about += f' <a href="#{self._prefix}{part.call}">of call {part.call}</a>'
        shown = part.is_error or (lines <= OPEN_LINES and len(pieces) <= OPEN_LENGTH)
        # Of several results in one message, the first bears its id; one that stands alone is in a message that does.
        place = self._id(part.index) if is_joined else ""
        self._made.add(part.index)
        kind = " err" if part.is_error else ""
        return (
            f'<details class="r{kind}{_LEVELS[part.level]}"{place}{" open" if shown else ""}>'
            f"<summary>{state}{about}</summary>{pieces}</details>\n"
        )

    def _pieces(self, pieces: tuple[Piece, ...]) -> str:
        writers = self._writers
        if len(pieces) == 1:
            return writers[type(pieces[0])](pieces[0])
        return "".join([writers[type(piece)](piece) for piece in pieces])

    def _output(self, part: Output) -> str:
        return f'<pre class="o">{self._cut(part.text, printed=True)}</pre>\n'

    def _code(self, part: Code) -> str:
        known = f' class="x-{part.language}"' if _LANGUAGE.fullmatch(part.language) else ""
        title = f'<div class="f">{line(part.title)}</div>' if part.title else ""
        return f"{title}<pre><code{known}>{self._cut(part.text)}</code></pre>\n"

    def _diff(self, part: Diff) -> str:
        title = f'<div class="f">{line(part.path)}</div>' if part.path else ""
        return f'{title}<div class="d">{self._runs(part.text)}</div>\n'

    def _runs(self, lines: str) -> str:
        """Runs of removed and added lines side by side, with what stays between them."""
        shown, more = self._shortened(lines)
        pieces: list[str] = []
        run: list[str] = []
        sign = ""
        was_removed = False
        for signed in [*escaped(shown).split("\n"), None]:
            kind = signed[:1] if signed is not None and signed[:1] in "+-" else ""
            if signed is not None and kind == sign:
                run.append(signed)
                continue
            if run:
                pieces.append(_run(sign, run, was_removed, kind))
            was_removed, sign, run = sign == "-" and bool(run), kind, [signed or ""]
        return "".join(pieces) + more

    def _prose(self, part: Prose) -> str:
        shown, more = self._shortened(part.text)
        return f'<div class="p{_LEVELS[part.level]}">{prose(shown)}{more and f"<p>{more}</p>"}</div>\n'

    def _note(self, part: Note) -> str:
        shown, more = self._shortened(part.value or "")
        value = f" <code>{line(shown)}</code>{more}" if shown else ""
        return f'<p class="note{_LEVELS[part.level]}">{line(part.text)}{value}</p>\n'

    def _command(self, part: Command) -> str:
        folder = f'<div class="f">{line(part.folder)}</div>' if part.folder else ""
        shown, more = self._shortened(part.text)
        return f'{folder}<pre class="cmd"><code class="x-sh">{escaped(shown)}</code>{more}</pre>\n'

    def _picture(self, part: Picture) -> str:
        kind, bytes_ = part.media_type.lower(), decoded_size(part.base64)
        about = f"{line(part.media_type)}, {size(bytes_)}"
        if kind not in _PICTURES or bytes_ > MAX_PICTURE or not _BASE64.fullmatch(part.base64):
            return f'<p class="note{_LEVELS[part.level]}">image, {about}, not shown; message {self._at} has it</p>\n'
        # Whatever an image holds, as the source of an <img> it can run nothing and load nothing.
        source = "".join(part.base64.split())
        return (
            f'<figure class="pic{_LEVELS[part.level]}"><img alt="Image in the session, {about}" loading="lazy" '
            f'src="data:{kind};base64,{source}"></figure>\n'
        )

    def _cut(self, value: str, *, printed: bool = False) -> str:
        if len(value) <= LIMIT:
            shown, more = value.strip("\n"), ""
        else:
            shown, more = self._shortened(value, printed)
        html = coloured(shown) if printed and MARK in shown else escaped(shown)
        return html + more if more else html

    def _shortened(self, value: str, printed: bool = False) -> tuple[str, str]:
        """The part of a text that is shown, and the HTML that says how much is left out."""
        if len(value) <= LIMIT:
            return value.strip("\n"), ""
        cut = Cut(self._section_at, len(self.cuts), self._at, value, printed)
        self.cuts.append(cut)
        return value[:LIMIT], "\n" + self._tell_more(cut)


def _run(sign: str, lines: list[str], was_removed: bool, following: str) -> str:
    """One run of a change. Removed lines and the added ones behind them are a pair, which can stand side by side."""
    body = "\n".join(lines)
    if sign == "-":
        return f'<div class="ch"><del>{body}</del>' + ("" if following == "+" else "</div>")
    if sign == "+":
        return ("" if was_removed else '<div class="ch">') + f"<ins>{body}</ins></div>"
    return f'<div class="s">{body}</div>'


def _fields(part: Fields) -> str:
    pairs = "".join([f"<div><dt>{line(name)}</dt><dd>{line(value)}</dd></div>" for name, value in part.pairs])
    return f"<dl>{pairs}</dl>\n"


def _tasks(part: Tasks) -> str:
    items = []
    for task in part.tasks:
        sign = _SIGNS.get(task.status, "☐")
        status = line(task.status.replace("_", " "))
        change = f' <span class="k">{_CHANGES[task.change]}</span>' if task.change else ""
        kind = "gone" if task.change == "removed" else "done" if task.status == "completed" else "todo"
        items.append(
            f'<li class="{kind}"><span aria-hidden="true">{sign}</span> {line(task.text)}'
            f'<span class="vh">, {status}</span>{change}</li>'
        )
    bar = f'<progress max="{part.total}" value="{part.done}" aria-label="Tasks done"></progress>' if part.total else ""
    return f'<div class="todo"><p>{bar} {part.done} of {part.total} done</p><ul>{"".join(items)}</ul></div>\n'
