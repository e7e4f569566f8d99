"""The parts of a session as HTML. All ids are made here, of a prefix and a number, and of nothing in the session.

What a part says is escaped where it is put in, and a look tells there whether anything in it cannot be seen. If so, it
is spelled out for the whole section at once, behind all else. Long texts are bytes from the beginning: a wide character
in one of them makes nothing else wide, and bytes are searched more quickly.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from clew.render.outline import decoded_size, subagent_note
from clew.render.page.ansi import MARK, coloured
from clew.render.page.escape import SHORT, attribute, content, escaped, line
from clew.render.page.picture import inlined
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
    Option,
    Output,
    Part,
    Picture,
    Prose,
    Question,
    Result,
    Section,
    Subagent,
    Task,
    Tasks,
    Thought,
)
from clew.render.safe import WITH_HALVES, encoded, is_visible, visible, visible_bytes
from clew.render.tables import size

LIMIT = 200_000
"""Characters of one text that a page shows; a person cannot read more, and a browser not show it quickly."""
BATCH = 1 << 17
"""So much HTML is gathered before it is put together."""
PEEK = 90
"""Characters of a thought that are shown while it is folded."""
OPEN_LINES, OPEN_LENGTH = 12, 1_000
"""A result that is no longer is shown open."""

_LANGUAGE = re.compile(r"[a-z0-9+#-]{1,20}")
_RUN = re.compile(r"\++|-+|[^+-]+")
_NAMES = {"user": "You", "agent": "Agent", "assistant": "Assistant", "tool": "Tool", "system": "System"}
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
    """The same in a page: another command prints it. Whoever copies that runs nothing else, whatever the id is."""
    reference = line(shlex.quote(session))
    return lambda cut: (
        f'<i class="more">… {cut.left:,} more characters are not in this page; '
        f"<code>clew show {reference}#{cut.message}</code> prints them.</i>"
    )


class Fragments:
    """Writes parts; knows which ids it has made and whether a message is open.

    `links` leads from session ids to addresses of their pages, `about` to what else there is to say of them.
    """

    def __init__(
        self,
        prefix: str = "m",
        *,
        links: Mapping[str, str] | None = None,
        about: Mapping[str, str] | None = None,
        nested: Nested | None = None,
        more: More = untold,
    ) -> None:
        self._prefix, self._links, self._nested, self._tell_more = prefix, links or {}, nested, more
        self._about = about or {}
        self.cuts: list[Cut] = []
        """Texts of the section written last that are longer than what is shown of them."""
        self._section_at = self._at = 0
        """The message that the section begins with, and the one that is being written."""
        self._open = False
        self._children = 0
        self._made: set[int] = set()
        """Messages whose id stands with a result."""
        self._out: list[bytes] = []
        """What the parts came to that were written last; nothing of it is put together before there is enough."""
        self._is_visible = True
        """Whether nothing in the section need be spelled out."""
        self._size = 0
        """About how much that is."""
        self._writers: dict[type, Callable[[Any], int | None]] = {
            Section: self._section, Continued: self._continued, Divider: self._divider, Fork: self._fork,
            Prose: self._prose, Thought: self._thought, Injected: self._injected, Call: self._call,
            Result: self._result, Note: self._note, Code: self._code, Picture: self._picture, Output: self._output,
            Command: self._command, Diff: self._diff, Fields: self._fields, Tasks: self._tasks,
            Question: self._question,
        }  # fmt: skip

    def write(self, shown: Sequence[Part]) -> Iterable[bytes]:
        """The HTML of the parts of the next section, or nothing as long as there is little; `end` gives the rest.

        What is put together once is copied once.
        """
        if self._nested is not None:
            return self._write_around(shown)
        self._begin(shown)
        out, writers = self._out, self._writers
        begin = len(out)
        for part in shown:
            writers[type(part)](part)
        if not self._is_visible:
            out[begin:] = [visible_bytes(b"".join(out[begin:]))]
            self._is_visible = True
        return (self._written(),) if self._size > BATCH else ()

    def _begin(self, shown: Sequence[Part]) -> None:
        self._section_at = self._at = getattr(shown[0], "index", 0)
        self.cuts = []

    def _write_around(self, shown: Sequence[Part]) -> Iterator[bytes]:
        """The same, with the sessions of sub-agents inside."""
        self._begin(shown)
        for part in shown:
            if type(part) is Call and part.subagents:
                self._called(part)
                for subagent in part.subagents:
                    yield from self.nested_session(subagent)
                self._returned(part)
            else:
                self._writers[type(part)](part)
        yield self._written()

    def _written(self) -> bytes:
        """What was put down since the last time."""
        written = b"".join(self._out)
        if not self._is_visible:
            written = visible_bytes(written)
            self._is_visible = True
        self._out.clear()
        self._size = 0
        return written

    def _put(self, html: str) -> None:
        self._size += len(html)
        self._out.append(html.encode())

    def end(self) -> bytes:
        """What closes the last message, and what was gathered before it."""
        self._put(self._closing())
        return self._written()

    def _closing(self) -> str:
        closing = "</article>\n" if self._open else ""
        self._open = False
        return closing

    def _section(self, part: Section) -> None:
        begin = "</article>\n" if self._open else ""
        self._open = True
        marks = "".join([f' <span class="k">{line(mark)}</span>' for mark in part.marks]) if part.marks else ""
        time = f"<time>{line(part.time)}</time>" if part.time else ""
        branch = f' data-b="{part.branch}"' if part.branch is not None else ""
        left = " left" if part.is_left else ""
        # What stands in the place of a user's words and is none comes from the agent.
        who = "agent" if part.who == "user" and part.voice != "prompt" else part.who
        index = part.index
        self._put(
            f'{begin}<article class="m {part.voice}{left}{_LEVELS[part.level]}"{self._id(index)}{branch}>'
            f"<header><h2>{_NAMES.get(who) or line(who)}</h2>{marks} {time} "
            f'<a class="n" href="#{self._prefix}{index}">{index}</a></header>\n'
        )

    def _continued(self, part: Continued) -> None:
        self._at = index = part.index
        self._out.append(f'<a class="at"{self._id(index)}></a>'.encode())

    def _id(self, index: int) -> str:
        """The id of a message; it is given once."""
        return "" if index in self._made else f' id="{self._prefix}{index}"'

    def _divider(self, part: Divider) -> None:
        begin = self._closing()
        time = f"<time>{line(part.time)}</time>" if part.time else ""
        self._put(
            f'{begin}<div class="divider{_LEVELS[part.level]}" role="separator" id="{self._prefix}{part.index}">'
            f"<span>The conversation was compacted here {time}</span></div>\n"
        )

    def _fork(self, part: Fork) -> None:
        ways = "".join([self._way(number, branch) for number, branch in enumerate(part.branches, 1)])
        label = f"Branches after message {part.index}"
        self._put(
            f'<nav class="fork{_LEVELS[part.level]}" aria-label="{label}"><p>The conversation forks here</p>'
            f"<ol>{ways}</ol></nav>\n"
        )

    def _way(self, number: int, branch: Branch) -> str:
        now, words = (' class="now"', ", which it went on with") if branch.is_active else ("", "")
        place = f'href="#{self._prefix}{branch.index}" data-go="{branch.index}"'
        return f"<li><a {place}{now}>Branch {number}, from message {branch.index}{words}</a></li>"

    def _thought(self, part: Thought) -> None:
        words = part.text.strip("\n")
        peek = line(words[:PEEK].replace("**", "")) + ("…" if len(words) > PEEK else "")
        self._put(
            f'<details class="th{_LEVELS[part.level]}"><summary>Thinking <span class="peek">{peek}</span></summary>'
            '<div class="pre">'
        )
        self._out += self._cut(words, printed=True)[0], b"</div></details>\n"

    def _injected(self, part: Injected) -> None:
        self._put(
            f'<details class="inj{_LEVELS[part.level]}"><summary>{line(part.what)}: not the user’s words</summary><pre>'
        )
        self._out += self._cut(part.text, printed=True)[0], b"</pre></details>\n"

    def _call(self, part: Call) -> None:
        self._called(part)
        for subagent in part.subagents:
            self._subagent(subagent)
        self._returned(part)

    def _called(self, part: Call) -> None:
        note, result, writers = part.note, part.result, self._writers
        about = f' <span class="note">{line(note)}</span>' if note else ""
        failed = " bad" if result is not None and result.is_error else ""
        self._put(
            f'<div class="c{failed}{_LEVELS[part.level]}" role="group" aria-label="Tool call"><div class="t">'
            f"<b>{line(part.name)}</b>{about}</div>\n"
        )
        for piece in part.pieces:
            writers[type(piece)](piece)

    def _returned(self, part: Call) -> None:
        if part.result is not None:
            self._result(part.result, True)
        self._out.append(b"</div>\n")

    def _subagent(self, part: Subagent) -> None:
        if part.session is not None and part.session in self._links:
            address = attribute(self._links[part.session])
            about = f", {line(self._about[part.session])}" if part.session in self._about else ""
            self._put(f'<p class="sub"><a href="{address}">Sub-agent’s session {line(part.session)}</a>{about}</p>\n')
        else:
            self._note(subagent_note(part))

    def nested_session(self, subagent: Subagent) -> Iterator[bytes]:
        """Write the session of a sub-agent inside this page, or a note on it where it cannot be read."""
        self._children += 1
        prefix = f"{self._prefix.removesuffix('m')}s{self._children}m"
        inside = self._nested(subagent.session, prefix) if self._nested and subagent.session else None
        if inside is None:
            self._subagent(subagent)
            return
        self._put(f'<details class="sub l3"><summary>Sub-agent {line(subagent.session or "")}</summary>\n')
        yield self._written()
        yield from inside
        self._out.append(b"</details>\n")

    def _result(self, part: Result, is_joined: bool = False) -> None:
        out, before, index = self._out, self._at, part.index
        self._at = index
        # How a result begins is known behind its pieces.
        begin = len(out)
        out.append(b"")
        lines = 0
        for piece in part.pieces:
            lines += self._writers[type(piece)](piece) or 0
        self._at = before
        # Of several results in one message, the first bears its id; one that stands alone is in a message that does.
        place = self._id(index) if is_joined else ""
        self._made.add(index)
        shown = " open" if part.is_error or (lines <= OPEN_LINES and _is_short(out[begin:])) else ""
        out[begin] = self._opening(part, lines, place + shown).encode()
        out.append(b"</details>\n")

    def _opening(self, part: Result, lines: int, attributes: str) -> str:
        """How a result begins that printed so many lines."""
        state = "Error" if part.is_error else "Result"
        if part.exit_code is not None:
            state += f", exit {part.exit_code}"
        about = f" <span>{lines} lines</span>" if lines > 1 else ""
        if part.call is not None:
            about += f' <a href="#{self._prefix}{part.call}">of call {part.call}</a>'
        kind = " err" if part.is_error else " ex" if part.exit_code else ""
        return f'<details class="r{kind}{_LEVELS[part.level]}"{attributes}><summary>{state}{about}</summary>'

    def _output(self, part: Output) -> int:
        """What a program printed; returns how many lines that is."""
        shown, lines = self._cut(part.text, printed=True)
        self._out += b'<pre class="o">', shown, b"</pre>\n"
        return lines + _is_open(part.text)

    def _code(self, part: Code) -> None:
        known = f' class="x-{part.language}"' if part.language and _LANGUAGE.fullmatch(part.language) else ""
        title = f'<div class="f">{line(part.title)}</div>' if part.title else ""
        self._put(f"{title}<pre><code{known}>")
        self._out += self._cut(part.text)[0], b"</code></pre>\n"

    def _diff(self, part: Diff) -> None:
        title = f'<div class="f">{line(part.path)}</div>' if part.path else ""
        html = encoded(f'{title}<div class="d">{self._runs(part.text)}</div>\n')
        self._is_visible &= is_visible(html)
        self._size += len(html)
        self._out.append(html)

    def _runs(self, lines: str) -> str:
        """Runs of removed and added lines side by side, with what stays between them."""
        shown, more = self._shortened(lines)
        signed = escaped(shown).split("\n")
        # One character for each line, so that runs are found by a pattern.
        signs = "".join([line[:1] or " " for line in signed])
        pieces: list[str] = []
        before = ""
        for run in _RUN.finditer(signs):
            begin, end = run.span()
            pieces.append(_run(signs[begin], signed[begin:end], before == "-", signs[end : end + 1]))
            before = signs[begin]
        return "".join(pieces) + more

    def _prose(self, part: Prose) -> None:
        shown, more = self._shortened(part.text)
        self._put(f'<div class="p{_LEVELS[part.level]}">{prose(shown)}{more and f"<p>{more}</p>"}</div>\n')

    def _note(self, part: Note) -> None:
        shown, more = self._shortened(part.value or "")
        value = f" <code>{line(shown)}</code>{more}" if shown else ""
        self._put(f'<p class="note{_LEVELS[part.level]}">{line(part.text)}{value}</p>\n')

    def _command(self, part: Command) -> None:
        folder = f'<div class="f">{line(part.folder)}</div>' if part.folder else ""
        shown, more = self._shortened(part.text)
        self._put(f'{folder}<pre class="cmd"><code class="x-sh">')
        html, _, is_seen = content(shown)
        self._is_visible &= is_seen
        self._size += len(html)
        self._out += html, b"</code>", more.encode(), b"</pre>\n"

    def _fields(self, part: Fields) -> None:
        pairs = "".join([f"<div><dt>{line(name)}</dt><dd>{line(value)}</dd></div>" for name, value in part.pairs])
        self._put(f"<dl>{pairs}</dl>\n")

    def _tasks(self, part: Tasks) -> None:
        bar = f'<progress max="{part.total}" value="{part.done}" aria-label="Tasks done"></progress>'
        head = f"<p>{bar if part.total else ''} {part.done} of {part.total} done</p>"
        self._put(f'<div class="todo">{head}<ul>{"".join(map(_task, part.tasks))}</ul></div>\n')

    def _question(self, part: Question) -> None:
        head = f'<span class="k">{line(part.header)}</span> ' if part.header else ""
        own = (Option(part.answer, None, True),) if part.answer else ()
        options = "".join(map(_option, (*part.options, *own)))
        self._put(f'<div class="q"><p>{head}{line(part.text)}</p><ul>{options}</ul></div>\n')

    def _picture(self, part: Picture) -> None:
        about = f"{line(part.media_type)}, {size(decoded_size(part.base64))}"
        source = inlined(part)
        if source is None:
            words = f"image, {about}, not shown; message {self._at} has it"
            self._put(f'<p class="note{_LEVELS[part.level]}">{words}</p>\n')
            return
        # Whatever an image holds, as the source of an <img> it can run nothing and load nothing.
        self._put(
            f'<figure class="pic{_LEVELS[part.level]}"><img alt="Image in the session, {about}" loading="lazy" '
            f'src="data:{part.media_type.lower()};base64,'
        )
        self._size += len(source)
        self._out += source, b'"></figure>\n'

    def _cut(self, value: str, *, printed: bool = False) -> tuple[bytes, int]:
        """As much of a text as is shown, and how many lines end in all of it."""
        if len(value) <= LIMIT:
            shown = value.strip("\n")
            html, lines, is_seen = content(shown)
            self._size += len(html)
            # Colours are written with what cannot be seen.
            if is_seen or not (printed and MARK in value):
                self._is_visible &= is_seen
                # Line ends around the text are not shown.
                return html, lines + len(value) - len(shown)
        self._is_visible = False
        shown, more = self._shortened(value, printed)
        coded = coloured(shown) if printed and MARK in value else escaped(shown)
        self._size += len(coded)
        return encoded(coded + more), value.count("\n")

    def _shortened(self, value: str, printed: bool = False) -> tuple[str, str]:
        """The part of a text that is shown, and the HTML that says how much is left out."""
        if len(value) <= LIMIT:
            return value.strip("\n"), ""
        cut = Cut(self._section_at, len(self.cuts), self._at, value, printed)
        self.cuts.append(cut)
        return value[:LIMIT], "\n" + self._tell_more(cut)


def _is_open(text: str) -> bool:
    """True for a text whose last line has no end, and is one more than there are line ends."""
    return text[-1:] != "\n"


def _is_short(html: list[bytes]) -> bool:
    """True for no more characters than a result has that is shown open; of one that holds wide ones there are fewer."""
    length = sum(map(len, html))
    if OPEN_LENGTH < length <= 4 * OPEN_LENGTH:
        return len(b"".join(html).decode(*WITH_HALVES)) <= OPEN_LENGTH
    return length <= OPEN_LENGTH


def _run(sign: str, lines: list[str], was_removed: bool, following: str) -> str:
    """One run of a change. Removed lines and the added ones behind them are a pair, which can stand side by side."""
    body = "\n".join(lines)
    if sign == "-":
        return f'<div class="ch"><del>{body}</del>' + ("" if following == "+" else "</div>")
    if sign == "+":
        return ("" if was_removed else '<div class="ch">') + f"<ins>{body}</ins></div>"
    return f'<div class="s">{body}</div>'


def _option(option: Option) -> str:
    kind, sign, state = (' class="now"', "☑", '<span class="vh">, chosen</span>') if option.is_chosen else ("", "☐", "")
    about = f' <span class="note">{line(option.about)}</span>' if option.about else ""
    return f'<li{kind}><span aria-hidden="true">{sign}</span> {line(option.label)}{state}{about}</li>'


def _task(task: Task) -> str:
    before, behind = (_usual if len(task.status) <= SHORT else _around)(task.status, task.change)
    return f"{before}{line(task.text)}{behind}"


def _around(status: str, change: str | None) -> tuple[str, str]:
    """What stands before and behind the words of a task."""
    kind = "gone" if change == "removed" else "done" if status == "completed" else "todo"
    became = f' <span class="k">{_CHANGES[change]}</span>' if change else ""
    return (
        f'<li class="{kind}"><span aria-hidden="true">{_SIGNS.get(status, "☐")}</span> ',
        f'<span class="vh">, {line(status.replace("_", " "))}</span>{became}</li>',
    )


_usual = lru_cache(256)(_around)
"""The same; there are few kinds of tasks."""
