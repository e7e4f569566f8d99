"""The parts of a session as HTML.

Every text is made visible and escaped where it is put in. Ids are made of a prefix and a number, never of anything in
the session.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from clew.render.outline import decoded_size, subagent_note
from clew.render.page.ansi import ESCAPE_CHAR, ansi_to_html
from clew.render.page.call_line import call_line, output_lines
from clew.render.page.markdown_html import markdown_to_html
from clew.render.page.picture import inline_base64
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
from clew.render.tables import size
from clew.render.text_safety import escape, escape_line

MAX_TEXT_CHARS = 200_000
"""Longer texts are truncated, because browsers become slow."""
PREVIEW_CHARS = 90
"""Characters of a folded thought that are shown."""
MAX_OPEN_LINES, MAX_OPEN_CHARS = 12, 1_000
"""A longer result is folded."""

LANGUAGE = re.compile(r"[a-z0-9+#-]{1,20}")
DIFF_RUN = re.compile(r"\++|-+|[^+-]+")
SPEAKER_NAMES = {"user": "You", "agent": "Agent", "assistant": "Assistant", "tool": "Tool", "system": "System"}
LEVEL_CLASSES = ("", " l1", " l2", " l3")
STATUS_SIGNS = {"completed": "☑", "in_progress": "▣", "pending": "☐", "cancelled": "☒"}
CHANGE_LABELS = {"added": "new", "changed": "changed", "removed": "removed"}

Nested = Callable[[str, str], Iterator[str] | None]
"""Gives the HTML of a sub-agent's session, from its id and the prefix of its ids; None if it cannot be read."""


class TruncatedText(NamedTuple):
    """A text that is longer than what is shown of it."""

    section: int
    """The first message of its section."""
    number: int
    """Its number among the truncated texts of the section."""
    message: int
    text: str
    is_output: bool
    """Output of a program, which may have colours."""

    @property
    def left(self) -> int:
        """Characters that are not shown."""
        return len(self.text) - MAX_TEXT_CHARS

    def piece(self, start: int) -> str:
        """The HTML of as much as is shown at once, from a character on."""
        return _text_html(self.text[start : start + MAX_TEXT_CHARS], self.is_output)


More = Callable[[TruncatedText], str]
"""Gives the HTML that stands where a text is truncated."""


def plain_notice(text: TruncatedText) -> str:
    """Say how much is missing."""
    return f'<i class="more">… {text.left:,} more characters are in the session itself.</i>'


def cli_notice(session: str) -> More:
    """Say how much is missing, and which command prints it. The id is quoted, so that a copied command is safe."""
    reference = escape_line(shlex.quote(session))
    return lambda text: (
        f'<i class="more">… {text.left:,} more characters are not in this page; '
        f"<code>clew show {reference}#{text.message}</code> prints them.</i>"
    )


class FileLink(NamedTuple):
    """A link that opens a file."""

    url: str
    title: str


def no_file_link(_path: str) -> FileLink | None:
    """Files are not linked, as in exported pages."""
    return None


class Fragments:
    """Writes the sections of a session as HTML.

    `links` are addresses of other sessions by their ids, `names` and `about` their names and descriptions. With
    `are_calls_folded`, a tool call is one line until the reader opens it. `file_link` gives the link to a file that a
    tool call names.
    """

    def __init__(
        self,
        prefix: str = "m",
        *,
        links: Mapping[str, str] | None = None,
        names: Mapping[str, str] | None = None,
        about: Mapping[str, str] | None = None,
        nested: Nested | None = None,
        more: More = plain_notice,
        are_calls_folded: bool = False,
        file_link: Callable[[str], FileLink | None] = no_file_link,
    ) -> None:
        self._are_calls_folded, self._file_link = are_calls_folded, file_link
        self._prefix, self._nested = prefix, nested
        self._links, self._names, self._about = links or {}, names or {}, about or {}
        self._truncation_notice = more
        self.truncated: list[TruncatedText] = []
        """The truncated texts of the last section."""
        self._section_start = self._message = 0
        """The first message of the section, and the current one."""
        self._is_article_open = False
        self._nested_count = 0
        self._messages_with_id: set[int] = set()
        """Messages whose id was given to a result."""
        self._writers: dict[type, Callable[[Any], str]] = {
            Section: self._section, Continued: self._continued, Divider: self._divider, Fork: self._fork,
            Prose: self._prose, Thought: self._thought, Injected: self._injected, Call: self._call,
            Result: self._result, Note: self._note, Code: self._code, Picture: self._picture, Output: self._output,
            Command: self._command, Diff: self._diff, Fields: self._fields, Tasks: self._tasks,
            Question: self._question,
        }  # fmt: skip

    def write(self, section: Sequence[Part]) -> Iterator[str]:
        """The HTML of the next section. The sessions of sub-agents stand inside it if the page nests them."""
        self._section_start = self._message = getattr(section[0], "index", 0)
        self.truncated = []
        if self._nested is None:
            yield "".join([self._writers[type(part)](part) for part in section])
            return
        for part in section:
            if type(part) is Call and part.subagents:
                yield self._call_start(part)
                for subagent in part.subagents:
                    yield from self.nested_session(subagent)
                yield self._call_end(part)
            else:
                yield self._writers[type(part)](part)

    def end(self) -> str:
        """The HTML that closes the last message."""
        html = "</article>\n" if self._is_article_open else ""
        self._is_article_open = False
        return html

    def _section(self, part: Section) -> str:
        end = self.end()
        self._is_article_open = True
        marks = "".join([f' <span class="k">{escape_line(mark)}</span>' for mark in part.marks])
        time = f"<time>{escape_line(part.time)}</time>" if part.time else ""
        branch = f' data-b="{part.branch}"' if part.branch is not None else ""
        abandoned = " left" if part.on_abandoned_branch else ""
        # A message of the user that is no prompt was written by the agent.
        who = "agent" if part.who == "user" and part.speaker != "prompt" else part.who
        index = part.index
        return (
            f'{end}<article class="m {part.speaker}{abandoned}{LEVEL_CLASSES[part.level]}"{self._id(index)}{branch}>'
            f"<header><h2>{SPEAKER_NAMES.get(who) or escape_line(who)}</h2>{marks} {time} "
            f'<a class="n" href="#{self._prefix}{index}">{index}</a></header>\n'
        )

    def _continued(self, part: Continued) -> str:
        self._message = part.index
        return f'<a class="at"{self._id(part.index)}></a>'

    def _id(self, index: int) -> str:
        """The id attribute of a message, unless a result has it."""
        return "" if index in self._messages_with_id else f' id="{self._prefix}{index}"'

    def _divider(self, part: Divider) -> str:
        time = f"<time>{escape_line(part.time)}</time>" if part.time else ""
        kind = f"divider{LEVEL_CLASSES[part.level]}"
        return (
            f'{self.end()}<div class="{kind}" role="separator" id="{self._prefix}{part.index}">'
            f"<span>The conversation was compacted here {time}</span></div>\n"
        )

    def _fork(self, part: Fork) -> str:
        branches = "".join([self._branch(number, branch) for number, branch in enumerate(part.branches, 1)])
        label = f"Branches after message {part.index}"
        return (
            f'<nav class="fork{LEVEL_CLASSES[part.level]}" aria-label="{label}"><p>{part.title}</p>'
            f"<ol>{branches}</ol></nav>\n"
        )

    def _branch(self, number: int, branch: Branch) -> str:
        active, remark = (' class="now"', " (active branch)") if branch.is_active else ("", "")
        target = f'href="#{self._prefix}{branch.index}" data-go="{branch.index}"'
        return f"<li><a {target}{active}>Branch {number}, from message {branch.index}{remark}</a></li>"

    def _thought(self, part: Thought) -> str:
        text = part.text.strip("\n")
        preview = escape_line(text[:PREVIEW_CHARS].replace("**", "")) + ("…" if len(text) > PREVIEW_CHARS else "")
        return (
            f'<details class="th{LEVEL_CLASSES[part.level]}"><summary>Thinking <span class="peek">{preview}</span>'
            f'</summary><div class="pre">{self._text(text, is_output=True)}</div></details>\n'
        )

    def _injected(self, part: Injected) -> str:
        return (
            f'<details class="inj{LEVEL_CLASSES[part.level]}"><summary>{escape_line(part.what)}: not the user’s words'
            f"</summary><pre>{self._text(part.text, is_output=True)}</pre></details>\n"
        )

    def _call(self, part: Call) -> str:
        subagents = "".join([self._subagent(subagent) for subagent in part.subagents])
        return f"{self._call_start(part)}{subagents}{self._call_end(part)}"

    def _call_start(self, part: Call) -> str:
        failed = " bad" if part.result is not None and part.result.is_error else ""
        opened = "" if self._are_calls_folded else " open"
        return (
            f'<details class="c{failed}{LEVEL_CLASSES[part.level]}" aria-label="Tool call"{opened}>'
            f"<summary>{call_line(part)}</summary>\n"
            + "".join([self._writers[type(piece)](piece) for piece in part.pieces])
        )

    def _call_end(self, part: Call) -> str:
        result = self._result(part.result, is_in_call=True) if part.result is not None else ""
        return f"{result}</details>\n"

    def _subagent(self, part: Subagent) -> str:
        session = part.session
        if session is None or session not in self._links:
            return self._note(subagent_note(part))
        about = f", {escape_line(self._about[session])}" if session in self._about else ""
        name = escape_line(self._names.get(session, session))
        link = f'<a href="{escape(self._links[session])}">Sub-agent: {name}</a>'
        return f'<p class="sub">{link}{about}</p>\n'

    def nested_session(self, subagent: Subagent) -> Iterator[str]:
        """Write the session of a sub-agent inside this page, or a note on it if it cannot be read."""
        self._nested_count += 1
        prefix = f"{self._prefix.removesuffix('m')}s{self._nested_count}m"
        inner = self._nested(subagent.session, prefix) if self._nested and subagent.session else None
        if inner is None:
            yield self._subagent(subagent)
            return
        yield f'<details class="sub l3"><summary>Sub-agent {escape_line(subagent.session or "")}</summary>\n'
        yield from inner
        yield "</details>\n"

    def _result(self, part: Result, is_in_call: bool = False) -> str:
        outer_message, self._message = self._message, part.index
        html = "".join([self._writers[type(piece)](piece) for piece in part.pieces])
        self._message = outer_message
        # Of several results in one message the first has its id; a result outside a call is in a message that has it.
        identity = (self._id(part.index) or f' id="{self._prefix}{part.index}-{part.block}"') if is_in_call else ""
        self._messages_with_id.add(part.index)
        lines = output_lines(part)
        is_short = lines <= MAX_OPEN_LINES and len(html) <= MAX_OPEN_CHARS
        opened = " open" if part.is_error or is_short else ""
        state = "Error" if part.is_error else "Result"
        if part.exit_code is not None:
            state += f", exit {part.exit_code}"
        about = f" <span>{lines} lines</span>" if lines > 1 else ""
        if part.call is not None:
            about += f' <a href="#{self._prefix}{part.call}">of call {part.call}</a>'
        kind = " err" if part.is_error else " ex" if part.exit_code else ""
        return (
            f'<details class="r{kind}{LEVEL_CLASSES[part.level]}"{identity}{opened}><summary>{state}{about}</summary>'
            f"{html}</details>\n"
        )

    def _output(self, part: Output) -> str:
        return f'<pre class="o">{self._text(part.text, is_output=True)}</pre>\n'

    def _code(self, part: Code) -> str:
        language = f' class="x-{part.language}"' if part.language and LANGUAGE.fullmatch(part.language) else ""
        return f"{self._file_title(part.title)}<pre><code{language}>{self._text(part.text)}</code></pre>\n"

    def _diff(self, part: Diff) -> str:
        return f'{self._file_title(part.path)}<div class="d">{self._diff_runs(part.text)}</div>\n'

    def _diff_runs(self, text: str) -> str:
        """Runs of removed and added lines side by side, with unchanged lines between them."""
        shown, notice = self._truncate(text)
        lines = escape(shown).split("\n")
        # One character for each line, so that a pattern finds the runs.
        signs = "".join([line[:1] or " " for line in lines])
        runs: list[str] = []
        previous = ""
        for run in DIFF_RUN.finditer(signs):
            start, end = run.span()
            runs.append(_diff_run(signs[start], lines[start:end], previous == "-", signs[end : end + 1]))
            previous = signs[start]
        return "".join(runs) + notice

    def _prose(self, part: Prose) -> str:
        shown, notice = self._truncate(part.text)
        notice = f"<p>{notice}</p>" if notice else ""
        return f'<div class="p{LEVEL_CLASSES[part.level]}">{markdown_to_html(shown)}{notice}</div>\n'

    def _note(self, part: Note) -> str:
        shown, notice = self._truncate(part.value or "")
        value = f" <code>{escape_line(shown)}</code>{notice}" if shown else ""
        return f'<p class="note{LEVEL_CLASSES[part.level]}">{escape_line(part.text)}{value}</p>\n'

    def _command(self, part: Command) -> str:
        shown, notice = self._truncate(part.text)
        return f'{_title(part.folder)}<pre class="cmd"><code class="x-sh">{escape(shown)}</code>{notice}</pre>\n'

    def _fields(self, part: Fields) -> str:
        shown = [(name, self._path(value) if name == "file" else escape_line(value)) for name, value in part.pairs]
        pairs = [f"<div><dt>{escape_line(name)}</dt><dd>{html}</dd></div>" for name, html in shown]
        return f"<dl>{''.join(pairs)}</dl>\n"

    def _file_title(self, name: str | None) -> str:
        """The title of a text: the path of its file, or the name of an argument."""
        if not name or not ("/" in name or "\\" in name):
            return _title(name)
        return f'<div class="f">{self._path(name)}</div>'

    def _path(self, path: str) -> str:
        link = self._file_link(path)
        if link is None:
            return escape_line(path)
        return (
            f'<a class="in-editor" href="{escape(link.url)}" title="{escape_line(link.title)}">{escape_line(path)}</a>'
        )

    def _tasks(self, part: Tasks) -> str:
        bar = f'<progress max="{part.total}" value="{part.done}" aria-label="Tasks done"></progress>'
        head = f"<p>{bar if part.total else ''} {part.done} of {part.total} done</p>"
        return f'<div class="todo">{head}<ul>{"".join(map(_task, part.tasks))}</ul></div>\n'

    def _question(self, part: Question) -> str:
        head = f'<span class="k">{escape_line(part.header)}</span> ' if part.header else ""
        own_answer = (Option(part.answer, None, True),) if part.answer else ()
        options = "".join(map(_option, (*part.options, *own_answer)))
        return f'<div class="q"><p>{head}{escape_line(part.text)}</p><ul>{options}</ul></div>\n'

    def _picture(self, part: Picture) -> str:
        about = f"{escape_line(part.media_type)}, {size(decoded_size(part.base64))}"
        base64 = inline_base64(part)
        if base64 is None:
            text = f"image, {about}, not shown; message {self._message} has it"
            return f'<p class="note{LEVEL_CLASSES[part.level]}">{text}</p>\n'
        # Whatever an image holds, as the source of an <img> it can run nothing and load nothing.
        return (
            f'<figure class="pic{LEVEL_CLASSES[part.level]}"><img alt="Image in the session, {about}" loading="lazy" '
            f'src="data:{part.media_type.lower()};base64,{base64}"></figure>\n'
        )

    def _text(self, text: str, *, is_output: bool = False) -> str:
        """The HTML of a text, truncated if it is long. Empty lines around it are left out."""
        shown, notice = self._truncate(text, is_output)
        return _text_html(shown, is_output) + notice

    def _truncate(self, text: str, is_output: bool = False) -> tuple[str, str]:
        """The part of a text that is shown, and the HTML that says how much is missing."""
        if len(text) <= MAX_TEXT_CHARS:
            return text.strip("\n"), ""
        truncated = TruncatedText(self._section_start, len(self.truncated), self._message, text, is_output)
        self.truncated.append(truncated)
        return text[:MAX_TEXT_CHARS], "\n" + self._truncation_notice(truncated)


def _text_html(text: str, is_output: bool) -> str:
    return ansi_to_html(text) if is_output and ESCAPE_CHAR in text else escape(text)


def _title(name: str | None) -> str:
    return f'<div class="f">{escape_line(name)}</div>' if name else ""


def _diff_run(sign: str, lines: list[str], follows_removed: bool, next_sign: str) -> str:
    """One run of a diff. Removed lines and added lines behind them are one element, shown side by side."""
    body = "\n".join(lines)
    if sign == "-":
        return f'<div class="ch"><del>{body}</del>' + ("" if next_sign == "+" else "</div>")
    if sign == "+":
        return ("" if follows_removed else '<div class="ch">') + f"<ins>{body}</ins></div>"
    return f'<div class="s">{body}</div>'


def _option(option: Option) -> str:
    kind, sign, state = (' class="now"', "☑", '<span class="vh">, chosen</span>') if option.is_chosen else ("", "☐", "")
    about = f' <span class="note">{escape_line(option.about)}</span>' if option.about else ""
    return f'<li{kind}><span aria-hidden="true">{sign}</span> {escape_line(option.label)}{state}{about}</li>'


def _task(task: Task) -> str:
    kind = "gone" if task.change == "removed" else "done" if task.status == "completed" else "todo"
    change = f' <span class="k">{CHANGE_LABELS[task.change]}</span>' if task.change else ""
    return (
        f'<li class="{kind}"><span aria-hidden="true">{STATUS_SIGNS.get(task.status, "☐")}</span> '
        f"{escape_line(task.text)}"
        f'<span class="vh">, {escape_line(task.status.replace("_", " "))}</span>{change}</li>'
    )
