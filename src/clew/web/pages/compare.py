"""Two sessions, or two branches of one session, side by side."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import unquote

from markupsafe import Markup
from starlette.responses import Response

from clew.catalog import queries
from clew.catalog.queries import Entry, RecordedChange
from clew.catalog.sessions import find_session
from clew.catalog.stats import UsageTotals
from clew.errors import AmbiguousReference, UnknownReference, UsageError
from clew.references import Reference
from clew.render.page.fragments import Fragments
from clew.render.page.session import Contents
from clew.render.parts import Call, Fork
from clew.web.comparison import Row, ShownSection, aligned_rows, branch_sections, count_common, messages_of
from clew.web.pages.compare_links import reference_of
from clew.web.pages.session import more_link, subagent_links
from clew.web.request import PageRequest, respond
from clew.web.templates import session_name, session_url
from clew.web.transcript import SubagentLinks

ROWS_PER_PAGE = 12
MAX_SHOWN_COMMON = 6
"""Sections of the common beginning that are shown: the last, before the conversations part."""
MAX_CANDIDATES = 20
MAX_TOOLS = 8
MAX_FILES = 200

SESSION_ADDRESS = re.compile(r"(?:https?://[^/]+)?/session/([^/]+)/([^/?#]+)(?:[?#].*)?")
BRANCH = re.compile(r"(.+)@(\d{1,9})", re.DOTALL)


class Side(NamedTuple):
    """One of the two conversations."""

    reference: str
    entry: Entry
    branch: int | None
    title: str
    """Masked."""
    contents: Contents
    sections: list[ShownSection]
    messages: set[int]
    """Those that are shown."""
    session_messages: int
    """All messages of the session."""
    subagents: SubagentLinks

    @property
    def is_whole(self) -> bool:
        """True if the session has no other branch."""
        return not self.contents.forks


class Summary(NamedTuple):
    """Figures of one conversation, masked."""

    messages: int
    own_messages: int
    """Those behind the common beginning."""
    first_us: int
    last_us: int
    used: UsageTotals
    models: list[str]
    tools: list[tuple[str, int]]
    other_tools: int
    errors: int
    changes: dict[str, list[RecordedChange]]
    """Changes of files by path, not masked."""


class FileRow(NamedTuple):
    """A file that one or both changed."""

    path: str
    left: str
    right: str


class Cells(NamedTuple):
    """A row as HTML."""

    left: Markup
    right: Markup
    left_first: int
    right_first: int
    """The first message on each side; 0 where a side is empty."""
    same: int
    """The number of messages, where both sides are equal."""


def view(request: PageRequest) -> Response:
    """The comparison; without one of the two sessions, a page to choose it."""
    left, right = request.param("left"), request.param("right")
    if left is None or right is None:
        return _choose(request, left or right)
    sides = _open(request, left), _open(request, right)
    common = count_common(sides[0].sections, sides[1].sections)
    rows = aligned_rows(sides[0].sections[common:], sides[1].sections[common:])
    pages = max(1, -(-len(rows) // ROWS_PER_PAGE))
    page_number = min(pages, max(1, request.number("page", 1)))
    first = (page_number - 1) * ROWS_PER_PAGE
    summaries = [_summarize(request, side, common) for side in sides]
    files = _file_rows(request, sides, summaries)
    shown_common = sides[0].sections[max(0, common - MAX_SHOWN_COMMON) : common]
    return respond(
        request,
        "compare.html",
        sides=sides,
        summaries=summaries,
        is_same_session=sides[0].entry.number == sides[1].entry.number,
        files=files[:MAX_FILES],
        files_left_out=max(0, len(files) - MAX_FILES),
        common=len(messages_of(sides[0].sections[:common])),
        common_html=_html(sides[0], shown_common, "cm"),
        last_common=max(messages_of(shown_common), default=0),
        rows=[_cells(sides, row) for row in rows[first : first + ROWS_PER_PAGE]],
        page_number=page_number,
        pages=pages,
    )


def _open(request: PageRequest, reference: str) -> Side:
    """The conversation that a reference or an address of a session names."""
    entry, branch = _find(request, reference)
    transcript = request.context.transcript(entry, request.profile)
    contents = transcript.contents()
    if branch is not None and not any(branch == each.index for _, fork in contents.forks for each in fork.branches):
        raise UnknownReference("no branch begins at this message")
    sections = branch_sections(transcript.sections(), contents.forks, branch)
    with request.masking_of(entry):
        title = request.masking.text(session_name(entry, request.masking.text))
    return Side(
        reference_of(entry, branch),
        entry,
        branch,
        title,
        contents,
        sections,
        messages_of(sections),
        transcript.messages,
        subagent_links(request, entry),
    )


def _find(request: PageRequest, reference: str) -> tuple[Entry, int | None]:
    """The session that a reference or an address names, and the message that the named branch of it begins with."""
    context, address = request.context, SESSION_ADDRESS.fullmatch(reference)
    text, branch = reference if address is None else f"{unquote(address[1])}:{address[2]}", None
    with suppress(UnknownReference):
        return context.entry(*_agent_and_id(text)), None
    if match := BRANCH.fullmatch(text):
        text, branch = match[1], int(match[2])
        with suppress(UnknownReference):
            return context.entry(*_agent_and_id(text)), branch
    try:
        session = find_session(context.db, Reference.parse(text), context.host, missing=True)
    except AmbiguousReference:
        raise
    except UsageError:
        raise UnknownReference("no such session") from None
    return context.entry(session.agent.id, session.id), branch


def _agent_and_id(reference: str) -> tuple[str, str]:
    agent, _, identity = reference.partition(":")
    return agent, identity


def _summarize(request: PageRequest, side: Side, common: int) -> Summary:
    db, entry = request.context.db, side.entry
    used, models, times = entry.used, list(entry.models), [entry.started_us, entry.ended_us]
    changes: dict[str, list[RecordedChange]] = {}
    for change in queries.recorded_changes(db, entry.number):
        if change.message in side.messages:
            changes.setdefault(change.path, []).append(change)
    if not side.is_whole:
        used = sum((own for at, own in queries.calls_of(db, entry.number) if at in side.messages), UsageTotals())
        of_message = queries.models_of_messages(db, entry.number)
        models = list(dict.fromkeys(of_message[at] for at in sorted(side.messages) if at in of_message))
        moments = queries.moments(db, entry.number)
        times = [moment.time_us for moment in moments if moment.message in side.messages] or [0]
    calls = [part for section in side.sections for part in section if isinstance(part, Call)]
    tools = Counter(call.name for call in calls).most_common()
    with request.masking_of(entry):
        models = list(map(request.masking.text, models))
    return Summary(
        *_count_messages(side, common),
        min(times),
        max(times),
        used,
        models,
        tools[:MAX_TOOLS],
        len(tools[MAX_TOOLS:]),
        sum(call.result is not None and call.result.is_error for call in calls),
        changes,
    )


def _count_messages(side: Side, common: int) -> tuple[int, int]:
    """All messages, and those behind the common beginning; of a whole session also those that show nothing."""
    own = messages_of(side.sections[common:])
    if not side.is_whole:
        return len(side.messages), len(own)
    return side.session_messages, side.session_messages - min(own) + 1 if own else 0


def _file_rows(request: PageRequest, sides: Sequence[Side], summaries: Sequence[Summary]) -> list[FileRow]:
    """The files that either changed; those that only one changed first."""
    rows: dict[str, FileRow] = {}
    for side, summary in zip(sides, summaries, strict=True):
        with request.masking_of(side.entry):
            for path in summary.changes.keys() - rows.keys():
                left, right = (_describe_changes(each.changes.get(path, [])) for each in summaries)
                rows[path] = FileRow(request.masking.text(path), left, right)
    return [rows[path] for path in sorted(rows, key=lambda path: (bool(rows[path].left and rows[path].right), path))]


def _describe_changes(changes: Sequence[RecordedChange]) -> str:
    if not changes:
        return ""
    times = "1 change" if len(changes) == 1 else f"{len(changes)} changes"
    added, removed = (sum(getattr(change, name) or 0 for change in changes) for name in ("added", "removed"))
    return f"{times}, +{added} −{removed}" if added or removed else times


def _cells(sides: Sequence[Side], row: Row) -> Cells:
    left_first, right_first = (min(messages_of(sections), default=0) for sections in (row.left, row.right))
    if row.is_same:
        return Cells(Markup(), Markup(), left_first, right_first, len(messages_of(row.left)))
    left, right = _html(sides[0], row.left, "lm"), _html(sides[1], row.right, "rm")
    return Cells(left, right, left_first, right_first, 0)


def _html(side: Side, sections: Sequence[ShownSection], prefix: str) -> Markup:
    """Sections as HTML, without the links of forks, which lead to messages that are not on this page."""
    links = side.subagents
    fragments = Fragments(
        prefix,
        links=links.urls,
        names=links.names,
        about=links.descriptions,
        more=more_link(side.entry),
        are_calls_folded=True,
    )
    without_forks = ([part for part in section if not isinstance(part, Fork)] for section in sections)
    pieces = [piece for section in without_forks if section for piece in fragments.write(section)]
    return Markup("".join([*pieces, fragments.end()]))


class Candidate(NamedTuple):
    """What a session may be compared with."""

    label: str
    about: str
    reference: str


def _choose(request: PageRequest, reference: str | None) -> Response:
    """A page to choose the other conversation."""
    side = _open(request, reference) if reference is not None else None
    return respond(
        request,
        "compare_choose.html",
        side=side,
        url=session_url(side.entry) if side is not None else "",
        branches=_branches(side) if side is not None else [],
        sessions=_sessions_of_project(request, side.entry) if side is not None else [],
        now=request.context.now(),
        reference_of=reference_of,
    )


def _branches(side: Side) -> list[Candidate]:
    """The other branches of a session, and the one that it is on."""
    current = [Candidate("The current branch", "", reference_of(side.entry))] if side.branch is not None else []
    return current + [
        Candidate(side.contents.labels.get(each.index, ""), f"from message {each.index}", reference)
        for _, fork in side.contents.forks
        for each in fork.branches
        if (reference := reference_of(side.entry, each.index)) != side.reference
        and (side.branch is not None or not each.is_active)
    ]


def _sessions_of_project(request: PageRequest, entry: Entry) -> list[Entry]:
    """The latest other sessions of the same project."""
    db = request.context.db
    admitted = queries.numbers_in_project(db, entry.project) if entry.project else None
    found = queries.page(db, admitted, MAX_CANDIDATES + 1).entries
    return [one for one in found if one.number != entry.number][:MAX_CANDIDATES]
