"""Foreign text inside our Markdown: it may use Markdown, but cannot change anything outside it.

The guarantee holds for every reading that CommonMark allows: no fence, HTML block or container stays open
behind the text, headings stay below ours, nothing becomes HTML, an image, or a link definition.
Where it is uncertain whether a line is code, it is treated as prose.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from clew.render.text_safety import one_line, visible

MAX_QUOTES = 8
"""Deeper nesting of quotations is shown as text."""

LOWEST_HEADING = 6
DEMOTION = 2
"""Our title and sections use the levels 1 and 2."""

_ITEM = r"(?:[-+*]|\d{1,9}[.)])"
_QUOTED = re.compile(r"( {0,3})>(\t| ?)")
_OPENER = re.compile(rf"(?P<mark>{_ITEM} {{1,4}})?(?P<run>`{{3,}}(?=[^`|]*$)|~{{3,}}(?=[^|]*$))")
# Fences after several marks, and with a bar, which some parsers take for the head of a table.
_DOUBTFUL_OPENER = re.compile(rf"(?P<marks>(?:(?:{_ITEM}|>)[ \t]*)*)(?P<run>`{{3,}}(?=[^`]*$)|~{{3,}})")
_HEADING = re.compile(rf"(?P<marks>(?:(?:{_ITEM}|>)[ \t]*)*)(?P<level>#{{1,6}})(?=[ \t]|$)")
_LISTED = re.compile(rf"{_ITEM}(?:[ \t]|$)")
_UNDERLINE = re.compile(r"(?:=+|-+)[ \t]*$")
_TABLE = re.compile(r"^(?=[^\n]*\|)(?=[^\n]*-)[ \t>|:+*-]++$", re.MULTILINE)
_INLINE = re.compile(r"\\[^\n]|`+|<https?://[^\s<>`|]*>|<(?=[A-Za-z/!?])|!(?=\[)|\](?=:)")
_TICKS = re.compile("`+")
_PUNCTUATION = re.compile(r"([\\`*_{}\[\]<>#|~&$])")
_LANGUAGE = re.compile(r"[A-Za-z0-9+#-]{1,30}")


class _Fence(NamedTuple):
    run: str
    indent: int


def safe_markdown(text: str, *, quoted: bool = False) -> str:
    """Make foreign Markdown safe, without a final newline. `quoted`: it will stand inside a quotation."""
    return "\n".join(_SafeMarkdown(visible(text).strip("\n"), quoted=quoted).lines()).strip("\n")


def fence(text: str, language: str = "") -> str:
    """A code block that its content cannot close."""
    text = visible(text)
    run = "`" * max(3, _longest_run(text) + 1)
    end = "" if text.endswith("\n") or not text else "\n"
    return f"{run}{language if _LANGUAGE.fullmatch(language) else ''}\n{text}{end}{run}"


def code(text: str) -> str:
    """A code span on one line that its content cannot close."""
    text = one_line(text)
    run = "`" * (_longest_run(text) + 1)
    pad = " " if not text or text.startswith("`") or text.endswith("`") else ""
    return f"{run}{pad}{text}{pad}{run}"


def plain(text: str) -> str:
    """Escape a text, on one line, so that nothing in it is Markdown."""
    return _PUNCTUATION.sub(r"\\\1", one_line(text))


def quote(markdown: str) -> str:
    """The same Markdown as a quotation."""
    return "\n".join(f"> {line}".rstrip() if not line.strip() else f"> {line}" for line in markdown.split("\n"))


def _longest_run(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)


class _SafeMarkdown:
    """Rewrites a text line by line. Quotations are rewritten by nested instances."""

    def __init__(self, text: str, depth: int = 0, *, quoted: bool = False) -> None:
        self.source = text.split("\n")
        self.out: list[str] = []
        self.depth = depth
        self.quoted = quoted
        self.fence: _Fence | None = None
        self.after_blank = depth == 0
        self.listed = depth > 0
        self.in_code = False
        self.open_span = False
        """This paragraph has an unpaired run of backticks, so it is uncertain what is a code span."""
        self.has_table = _TABLE.search(text) is not None

    def lines(self) -> list[str]:
        at = 0
        while at < len(self.source):
            at = self._quotation(at) if self._starts_quotation(at) else self._line(at)
        if self.fence:
            self._close()
        return self.out

    def _starts_quotation(self, at: int) -> bool:
        return self.fence is None and _QUOTED.match(self.source[at]) is not None

    def _quotation(self, at: int) -> int:
        match = _QUOTED.match(self.source[at])
        assert match
        if self.depth == MAX_QUOTES:
            self._emit(match[1] + "\\>" + self._inline(self.source[at][match.end(1) + 1 :]))
            return at + 1
        prefix, inner = match[1] + ">", []
        while at < len(self.source) and (match := _QUOTED.match(self.source[at])) and match[1] + ">" == prefix:
            inner.append(("  " if match[2] == "\t" else "") + self.source[at][match.end() :])
            at += 1
        nested = _SafeMarkdown("\n".join(inner), self.depth + 1, quoted=True)
        self.out += [f"{prefix} {line}".rstrip(" ") if not line else f"{prefix} {line}" for line in nested.lines()]
        self.after_blank = False
        if at < len(self.source) and self.source[at].strip(" \t"):
            # Without a blank line the next paragraph would continue the quotation.
            self._blank()
        return at

    def _line(self, at: int) -> int:
        line = self.source[at]
        rest = line.lstrip(" \t")
        indent = len(line[: len(line) - len(rest)].expandtabs(4))
        if self.quoted or self.fence is None or self.fence.indent:
            # How far a tab indents depends on what is put before it.
            line = " " * indent + rest
        if self.fence:
            if not self._inside(self.fence, line, rest, indent):
                return at
        elif not rest:
            self._emit("")
            self.after_blank, self.open_span = True, False
        elif indent >= 4 and not self.listed and (self.after_blank or self.in_code):
            self._emit(line)
            self.in_code = True
        else:
            self.in_code = False
            self._paragraph(rest, indent)
        return at + 1

    def _inside(self, fence: _Fence, line: str, rest: str, indent: int) -> bool:
        """Write a line inside a fence; False if its smaller indent closed the fence, and it is still to be written."""
        closes = rest.startswith(fence.run) and not rest.rstrip(" \t").strip(fence.run[0])
        if fence.indent == 0:
            self._emit(line)
            if closes and indent <= 3:
                self._left_fence()
        elif closes:
            self._close()
        elif rest and indent < fence.indent:
            # It may have left the list item that holds the fence, or not: closing makes both readings one.
            self._close()
            return False
        else:
            self._emit(line)
        return True

    def _paragraph(self, rest: str, indent: int) -> None:
        if opener := _OPENER.match(rest):
            self._open(opener, rest, indent)
            return
        if _UNDERLINE.match(rest) and not self.after_blank:
            # A rule below text would make a heading of it.
            if rest.startswith("="):
                rest = "\\" + rest
            else:
                self._blank()
        if _LISTED.match(rest):
            self.listed = True
        if doubtful := _DOUBTFUL_OPENER.match(rest):
            rest = doubtful["marks"] + "\\" + rest[doubtful.start("run") :]
        elif heading := _HEADING.match(rest):
            level = "#" * min(LOWEST_HEADING, len(heading["level"]) + DEMOTION)
            rest = heading["marks"] + level + rest[heading.end("level") :]
        self._emit(" " * indent + self._inline(rest))

    def _open(self, opener: re.Match[str], rest: str, indent: int) -> None:
        mark = opener["mark"] or ""
        if (mark or indent >= 4) and not self.after_blank:
            # Directly below a paragraph this could be read as more of it.
            self._blank()
        self.listed = self.listed or bool(mark)
        self.fence = _Fence(opener["run"], indent + len(mark))
        self._emit(" " * indent + rest)

    def _close(self) -> None:
        assert self.fence
        self._emit(" " * self.fence.indent + self.fence.run)
        self._left_fence()

    def _left_fence(self) -> None:
        self.fence, self.after_blank, self.open_span = None, False, False

    def _blank(self) -> None:
        if self.depth or (self.out and self.out[-1]):
            self.out.append("")
        self.after_blank, self.open_span = True, False

    def _emit(self, line: str) -> None:
        self.out.append(line)
        self.after_blank = False

    def _inline(self, line: str) -> str:
        pieces: list[str] = []
        at = 0
        while match := _INLINE.search(line, at):
            pieces.append(line[at : match.start()])
            token, at = match.group(), match.end()
            if token[0] == "`":
                end = self._span_end(line, token, at)
                pieces.append(line[match.start() : end])
                at = end
            elif token == "]":
                pieces.append("]\\")
            else:
                pieces.append("\\" + token if token in "<!" else token)
        return "".join(pieces) + line[at:]

    def _span_end(self, line: str, run: str, at: int) -> int:
        """The end of a code span; directly behind its backticks if it is uncertain."""
        if self.open_span:
            return at
        for match in _TICKS.finditer(line, at):
            if len(match.group()) == len(run):
                if self.has_table and "|" in line[at : match.start()]:
                    break
                return match.end()
        self.open_span = True
        return at
