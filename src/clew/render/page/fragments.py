"""The parts of a session as HTML. All ids are made here, of a prefix and a number, and of nothing in the session.

What a part says is escaped where it is put in. What cannot be seen is spelled out for a whole section at once, behind
all else: a look at one long text costs less than one at each of many. Long texts are bytes from the beginning: a wide
character in one of them makes nothing else wide, and bytes are searched more quickly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from clew.render.outline import decoded_size, subagent_note
from clew.render.page.ansi import MARK, coloured
from clew.render.page.escape import attribute, escaped, escaped_bytes, line
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
from clew.render.safe import WITH_HALVES, encoded, visible, visible_bytes
from clew.render.tables import size

LIMIT = 200_000
"""Characters of one text that a page shows; a person cannot read more, and a browser not show it quickly."""
MAX_PICTURE = 8 << 20
PEEK = 90
"""Characters of a thought that are shown while it is folded."""
OPEN_LINES, OPEN_LENGTH = 12, 1_000
"""A result that is no longer is shown open."""

_PICTURES = frozenset(f"image/{kind}" for kind in ("png", "jpeg", "gif", "webp", "avif", "svg+xml"))
_DIGITS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_LANGUAGE = re.compile(r"[a-z0-9+#-]{1,20}")
_SIGNS_OF_CHANGE = {"+": "+", "-": "-"}
_RUN = re.compile(r"\++|-+| +")
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
        self._writers: dict[type, Callable[[Any], bytes]] = {
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
            yield visible_bytes(b"".join([writers[type(part)](part) for part in shown]))
            return
        for part in shown:
            if type(part) is Call and part.subagent is not None:
                yield from self._call_around(part, part.subagent)
            else:
                yield visible_bytes(writers[type(part)](part))

    def end(self) -> bytes:
        """What closes the last message."""
        return self._closing().encode()

    def _closing(self) -> str:
        closing = "</article>\n" if self._open else ""
        self._open = False
        return closing

    def _section(self, part: Section) -> bytes:
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
        ).encode()

    def _continued(self, part: Continued) -> bytes:
        self._at = part.index
        return f'<a class="at"{self._id(part.index)}></a>'.encode()

    def _id(self, index: int) -> str:
        """The id of a message; it is given once."""
        return "" if index in self._made else f' id="{self._prefix}{index}"'

    def _divider(self, part: Divider) -> bytes:
        begin = self._closing()
        time = f"<time>{line(part.time)}</time>" if part.time else ""
        return (
            f'{begin}<div class="divider{_LEVELS[part.level]}" role="separator" id="{self._prefix}{part.index}">'
            f"<span>The conversation was compacted here {time}</span></div>\n"
        ).encode()

    def _fork(self, part: Fork) -> bytes:
        ways = "".join([self._way(number, branch) for number, branch in enumerate(part.branches, 1)])
        label = f"Branches after message {part.index}"
        return (
            f'<nav class="fork{_LEVELS[part.level]}" aria-label="{label}"><p>The conversation forks here</p>'
            f"<ol>{ways}</ol></nav>\n"
        ).encode()

    def _way(self, number: int, branch: Branch) -> str:
        now, words = (' class="now"', ", which it went on with") if branch.is_active else ("", "")
        place = f'href="#{self._prefix}{branch.index}" data-go="{branch.index}"'
        return f"<li><a {place}{now}>Branch {number}, from message {branch.index}{words}</a></li>"

    def _thought(self, part: Thought) -> bytes:
        words = part.text.strip("\n")
        if not words or words.isspace():
            return f'<p class="none{_LEVELS[part.level]}">Thinking, not recorded</p>\n'.encode()
        peek = line(words[:PEEK]) + ("…" if len(words) > PEEK else "")
        head = (
            f'<details class="th{_LEVELS[part.level]}"><summary>Thinking <span class="peek">{peek}</span></summary>'
            '<div class="pre">'
        )
        return b"".join((head.encode(), self._cut(words, printed=True), b"</div></details>\n"))

    def _injected(self, part: Injected) -> bytes:
        head = (
            f'<details class="inj{_LEVELS[part.level]}"><summary>{line(part.what)}: not the user’s words</summary><pre>'
        )
        return b"".join((head.encode(), self._cut(part.text, printed=True), b"</pre></details>\n"))

    def _call(self, part: Call) -> bytes:
        called = self._called(part)
        inside = self._subagent(part.subagent) if part.subagent is not None else b""
        return b"".join((called, inside, self._returned(part), b"</div>\n"))

    def _called(self, part: Call) -> bytes:
        note = f' <span class="note">{line(part.note)}</span>' if part.note else ""
        failed = " bad" if part.result is not None and part.result.is_error else ""
        head = (
            f'<div class="c{failed}{_LEVELS[part.level]}" role="group" aria-label="Tool call"><div class="t">'
            f"<b>{line(part.name)}</b>{note}</div>\n"
        )
        return head.encode() + self._pieces(part.pieces)

    def _returned(self, part: Call) -> bytes:
        return self._result(part.result, True) if part.result is not None else b""

    def _subagent(self, part: Subagent) -> bytes:
        if part.session is not None and part.session in self._links:
            address = attribute(self._links[part.session])
            return encoded(f'<p class="sub"><a href="{address}">Sub-agent’s session {line(part.session)}</a></p>\n')
        return self._note(subagent_note(part))

    def _call_around(self, part: Call, subagent: Subagent) -> Iterator[bytes]:
        """A call with the session of the sub-agent that it started inside."""
        self._children += 1
        prefix = f"{self._prefix.removesuffix('m')}s{self._children}m"
        inside = self._nested(subagent.session, prefix) if self._nested and subagent.session else None
        if inside is None:
            yield visible_bytes(self._call(part))
            return
        yield visible_bytes(self._called(part))
        yield f'<details class="sub l3"><summary>Sub-agent {line(subagent.session or "")}</summary>\n'.encode()
        yield from inside
        yield visible_bytes(b"".join((b"</details>\n", self._returned(part), b"</div>\n")))

    def _result(self, part: Result, is_joined: bool = False) -> bytes:
        self._at, before = part.index, self._at
        pieces, lines = self._outcome(part.pieces)
        self._at = before
        state = "Error" if part.is_error else "Result"
        if part.exit_code is not None:
            state += f", exit {part.exit_code}"
        about = f" <span>{lines} lines</span>" if lines > 1 else ""
        if part.call is not None:
            about += f' <a href="#{self._prefix}{part.call}">of call {part.call}</a>'
        shown = " open" if part.is_error or (lines <= OPEN_LINES and _is_short(pieces)) else ""
        # Of several results in one message, the first bears its id; one that stands alone is in a message that does.
        place = self._id(part.index) if is_joined else ""
        self._made.add(part.index)
        kind = " err" if part.is_error else ""
        head = f'<details class="r{kind}{_LEVELS[part.level]}"{place}{shown}><summary>{state}{about}</summary>'
        return b"".join((head.encode(), pieces, b"</details>\n"))

    def _outcome(self, pieces: tuple[Piece, ...]) -> tuple[bytes, int]:
        """The pieces of a result, and how many lines were printed."""
        if len(pieces) == 1 and type(first := pieces[0]) is Output:
            return self._printed(first.text)
        lines = sum([piece.text.count("\n") + 1 for piece in pieces if type(piece) is Output])
        return self._pieces(pieces), lines

    def _printed(self, text: str) -> tuple[bytes, int]:
        """What a program printed, and how many lines that is."""
        shown = self._cut(text, printed=True)
        if len(text) > LIMIT or MARK in text:
            lines = text.count("\n")
        else:
            # What is deleted is found more quickly than counted. Line ends around the text are not shown.
            lines = len(shown) - len(shown.replace(b"\n", b"")) + len(text) - len(text.strip("\n"))
        return b"".join((b'<pre class="o">', shown, b"</pre>\n")), lines + 1

    def _pieces(self, pieces: tuple[Piece, ...]) -> bytes:
        writers = self._writers
        if len(pieces) == 1:
            return writers[type(pieces[0])](pieces[0])
        return b"".join([writers[type(piece)](piece) for piece in pieces])

    def _output(self, part: Output) -> bytes:
        return self._printed(part.text)[0]

    def _code(self, part: Code) -> bytes:
        known = f' class="x-{part.language}"' if part.language and _LANGUAGE.fullmatch(part.language) else ""
        title = f'<div class="f">{line(part.title)}</div>' if part.title else ""
        return b"".join((f"{title}<pre><code{known}>".encode(), self._cut(part.text), b"</code></pre>\n"))

    def _diff(self, part: Diff) -> bytes:
        title = f'<div class="f">{line(part.path)}</div>' if part.path else ""
        return encoded(f'{title}<div class="d">{self._runs(part.text)}</div>\n')

    def _runs(self, lines: str) -> str:
        """Runs of removed and added lines side by side, with what stays between them."""
        shown, more = self._shortened(lines)
        signed = escaped(shown).split("\n")
        # One character for each line, so that runs are found by a pattern.
        signs = "".join([_SIGNS_OF_CHANGE.get(line[:1], " ") for line in signed])
        pieces: list[str] = []
        before = ""
        for run in _RUN.finditer(signs):
            begin, end = run.span()
            pieces.append(_run(signs[begin], signed[begin:end], before == "-", signs[end : end + 1]))
            before = signs[begin]
        return "".join(pieces) + more

    def _prose(self, part: Prose) -> bytes:
        shown, more = self._shortened(part.text)
        return encoded(f'<div class="p{_LEVELS[part.level]}">{prose(shown)}{more and f"<p>{more}</p>"}</div>\n')

    def _note(self, part: Note) -> bytes:
        shown, more = self._shortened(part.value or "")
        value = f" <code>{line(shown)}</code>{more}" if shown else ""
        return encoded(f'<p class="note{_LEVELS[part.level]}">{line(part.text)}{value}</p>\n')

    def _command(self, part: Command) -> bytes:
        folder = f'<div class="f">{line(part.folder)}</div>' if part.folder else ""
        shown, more = self._shortened(part.text)
        return encoded(f'{folder}<pre class="cmd"><code class="x-sh">{escaped(shown)}</code>{more}</pre>\n')

    def _picture(self, part: Picture) -> bytes:
        kind, bytes_ = part.media_type.lower(), decoded_size(part.base64)
        about = f"{line(part.media_type)}, {size(bytes_)}"
        source = _base64(part.base64) if kind in _PICTURES and bytes_ <= MAX_PICTURE else None
        if source is None:
            note = f'<p class="note{_LEVELS[part.level]}">image, {about}, not shown; message {self._at} has it</p>\n'
            return note.encode()
        # Whatever an image holds, as the source of an <img> it can run nothing and load nothing.
        head = (
            f'<figure class="pic{_LEVELS[part.level]}"><img alt="Image in the session, {about}" loading="lazy" '
            f'src="data:{kind};base64,'
        )
        return b"".join((head.encode(), source, b'"></figure>\n'))

    def _cut(self, value: str, *, printed: bool = False) -> bytes:
        if len(value) <= LIMIT:
            shown, more = value.strip("\n"), ""
        else:
            shown, more = self._shortened(value, printed)
        html = coloured(shown).encode() if printed and MARK in shown else escaped_bytes(shown)
        return html + more.encode() if more else html

    def _shortened(self, value: str, printed: bool = False) -> tuple[str, str]:
        """The part of a text that is shown, and the HTML that says how much is left out."""
        if len(value) <= LIMIT:
            return value.strip("\n"), ""
        cut = Cut(self._section_at, len(self.cuts), self._at, value, printed)
        self.cuts.append(cut)
        return value[:LIMIT], "\n" + self._tell_more(cut)


def _is_short(html: bytes) -> bool:
    """True for no more characters than a result has that is shown open; of one that holds wide ones there are fewer."""
    return len(html) <= OPEN_LENGTH or (len(html) <= 4 * OPEN_LENGTH and len(html.decode(*WITH_HALVES)) <= OPEN_LENGTH)


def _base64(text: str) -> bytes | None:
    """Base64 without the space in it; None for what is none."""
    trimmed = text.rstrip()
    body = trimmed.removesuffix("=").removesuffix("=")
    padding = trimmed[len(body) :]
    if not _is_digits(body):
        body = "".join(body.split())
    return (body + padding).encode() if _is_digits(body) else None


def _is_digits(text: str) -> bool:
    return text.isascii() and not text.encode().translate(None, _DIGITS)


def _run(sign: str, lines: list[str], was_removed: bool, following: str) -> str:
    """One run of a change. Removed lines and the added ones behind them are a pair, which can stand side by side."""
    body = "\n".join(lines)
    if sign == "-":
        return f'<div class="ch"><del>{body}</del>' + ("" if following == "+" else "</div>")
    if sign == "+":
        return ("" if was_removed else '<div class="ch">') + f"<ins>{body}</ins></div>"
    return f'<div class="s">{body}</div>'


def _fields(part: Fields) -> bytes:
    pairs = "".join([f"<div><dt>{line(name)}</dt><dd>{line(value)}</dd></div>" for name, value in part.pairs])
    return encoded(f"<dl>{pairs}</dl>\n")


def _tasks(part: Tasks) -> bytes:
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
    return f'<div class="todo"><p>{bar} {part.done} of {part.total} done</p><ul>{"".join(items)}</ul></div>\n'.encode()
