"""The page of one session as a self-contained HTML file, written while the messages are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from clew.analysis.session import project_of
from clew.model.json import JSON
from clew.model.time import parse_time
from clew.render.branching import Forks
from clew.render.detail import PROMPTS, Detail
from clew.render.outline import by_section, session_notes, session_title, subagents_without_call
from clew.render.page.fragments import Fragments, Nested, cli_notice
from clew.render.page.frame import banner, branches, contents, count, head, tail, toolbar
from clew.render.parts import Call, Fork, Injected, Note, Part, Picture, Prose, Result, Section
from clew.render.tables import time_range
from clew.render.text_safety import escape, escape_line

CONTENTS_CHARS = 90
"""Characters of a prompt in the table of contents."""


def page(
    session: dict[str, JSON],
    messages: Iterable[dict[str, JSON]],
    *,
    detail: Detail = "full",
    agent: str | None = None,
    forks: Forks | None = None,
    links: Mapping[str, str] | None = None,
    nested: Nested | None = None,
    index: str | None = None,
    carried: Iterable[str] = (),
    masked: str = "",
    remark: Callable[[], str] = str,
    table: Contents | None = None,
) -> Iterator[str]:
    """The page in pieces. `detail` is the highest detail level in it; readers may choose a lower one.

    `index` is the address of a list of all pages, `links` are those of other sessions by their ids, `nested` gives
    sub-agents to be shown inside, and `carried` is more in pieces that stands at the end of the page, to be read by
    programs. `masked` is the profile by which the session was masked, if it was. `remark` is asked at the end for what
    else there is to say; `table` is filled on the way.
    """
    title = session_title(session)
    yield head(title, "session")
    yield banner(title, [*_facts(session, agent), ("Masked", masked)], _notes(session, links or {}, index))
    yield toolbar(detail)
    yield '<main id="talk" tabindex="-1">\n'
    table = table or Contents()
    fragments = Fragments(links=links, nested=nested, more=cli_notice(session["id"]))
    for shown in by_section(session, table.counted(messages), detail=detail, forks=forks):
        table.add_section(shown)
        yield from fragments.write(shown)
    yield from _end(session, fragments, nested)
    if not table.sections:
        yield '<p class="none">This session has no messages to show.</p>\n'
    yield "</main>\n" + contents(table.prompts, branches(table.forks, table.labels))
    yield from carried
    counts = f"{count(table.messages, 'message')}, {count(len(table.prompts), 'prompt')}."
    yield tail(" ".join(filter(None, (counts, remark(), "Written by clew."))))


def inside(
    session: dict[str, JSON], messages: Iterable[dict[str, JSON]], prefix: str, nested: Nested | None, detail: Detail
) -> Iterator[str]:
    """The messages of a session inside the page of another."""
    fragments = Fragments(prefix, nested=nested, more=cli_notice(session["id"]))
    for shown in by_section(session, messages, detail=detail):
        yield from fragments.write(shown)
    yield from _end(session, fragments, nested)


def _end(session: dict[str, JSON], fragments: Fragments, nested: Nested | None) -> Iterator[str]:
    """Close the last message, and add the sub-agents that belong to no tool call."""
    yield fragments.end()
    if nested is not None:
        for subagent in subagents_without_call(session):
            yield from fragments.nested_session(subagent)
        yield fragments.end()


class Contents:
    """Collects the table of contents while sections are written. Without forks, branches are not looked for."""

    def __init__(self, is_forked: bool = True) -> None:
        self._is_forked = is_forked
        self.prompts: list[tuple[int, str]] = []
        self.messages = self.sections = 0
        self.forks: list[tuple[int | None, Fork]] = []
        """Each with the branch that it is on."""
        self.labels: dict[int, str] = {}
        """The start of the first message of each branch."""
        self._branch: int | None = None

    def counted(self, messages: Iterable[dict[str, JSON]]) -> Iterator[dict[str, JSON]]:
        """Pass on the messages and count them."""
        for message in messages:
            self.messages += 1
            yield message

    def add_section(self, shown: Sequence[Part]) -> None:
        """Add the next section; a prompt is listed by its first words."""
        first = shown[0]
        if type(first) is Section:
            self.sections += 1
            if first.speaker == "prompt" and first.level == PROMPTS:
                self.prompts.append((first.index, _first_words(shown)))
        if self._is_forked:
            self._add_branch(first, shown)

    def _add_branch(self, first: Part, shown: Sequence[Part]) -> None:
        if type(first) is Section:
            self._branch = first.branch
            if first.branch == first.index:
                self.labels[first.index] = _first_words(shown)
        self.forks += [(self._branch, part) for part in shown if type(part) is Fork]


_NAMES_WITHOUT_TEXT: dict[type, str] = {
    Call: "(tool call)", Result: "(tool result)", Injected: "(injected text)", Note: "(command)", Picture: "(image)",
}  # fmt: skip
"""The name of a message without text."""


def _first_words(section: Sequence[Part]) -> str:
    """The start of a message's text, or its kind."""
    text = next((part.text for part in section if type(part) is Prose), None)
    if text is None:
        kinds = (_NAMES_WITHOUT_TEXT[type(part)] for part in section if type(part) in _NAMES_WITHOUT_TEXT)
        text = next(kinds, "(no text)")
    words = " ".join(text[: CONTENTS_CHARS * 4].split())
    return words if len(words) <= CONTENTS_CHARS else words[: CONTENTS_CHARS - 1] + "…"


def _facts(session: dict[str, JSON], agent: str | None) -> list[tuple[str, str]]:
    began, ended = parse_time(session.get("started_at")), parse_time(session.get("ended_at"))
    workspace = session.get("workspace") or ""
    host = (session.get("source") or {}).get("host")
    return [
        ("Agent", agent or ""),
        ("Project", project_of(workspace) or ""),
        ("Folder", workspace),
        ("Time", time_range(began, ended) if began and ended else ""),
        ("Host", host if isinstance(host, str) else ""),
        ("Session", session["id"]),
    ]


def _notes(session: dict[str, JSON], links: Mapping[str, str], index: str | None) -> Iterator[str]:
    if index is not None:
        yield f'<p class="note all"><a href="{escape(index)}">All sessions</a></p>\n'
    for note in session_notes(session):
        value = escape_line(note.value or "")
        if note.value is not None and note.value in links:
            value = f'<a href="{escape(links[note.value])}">{value}</a>'
        yield f'<p class="note">{escape_line(note.text)} {value}</p>\n'
