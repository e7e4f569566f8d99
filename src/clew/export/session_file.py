"""One session as text to read: a Markdown file, or an HTML page that can hold its sub-agents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import IO, NamedTuple

from clew.agents.base import Agent, show
from clew.agents.masking import learn_subagents
from clew.agents.source import SourceFile, with_current_size
from clew.export.document import write_document
from clew.export.html import write_html
from clew.export.markdown import write_markdown
from clew.model.json import JSON
from clew.redact.findings import masked_summary
from clew.render.branching import Forks
from clew.render.detail import Detail
from clew.render.page.fragments import Nested
from clew.render.page.session import Contents, inside

MAX_NESTED_SUBAGENTS = 4
"""Sub-agents of sub-agents that are shown inside a page."""

FindSubagents = Callable[[SourceFile], Callable[[str], SourceFile | None]]
"""Gives a function that finds the sub-agents of a session by their ids."""


def write_markdown_file(
    agent: Agent, source: SourceFile, out: IO[bytes], masked: Counter[str], detail: Detail = "full", *, title: str = ""
) -> None:
    """Write a session as Markdown. `masked` counts what the mask of the source hides; the file says so at its end.

    `title` is the title that the user gave the session, if any.
    """
    header, tree, messages = show(agent, source)
    write_markdown(with_user_title(header, source, title), messages, out, detail, forks=Forks.of_tree(tree))
    if masked:
        out.write(f"\n---\n\n*Redacted by clew: {masked_summary(masked)}.*\n".encode())


def with_user_title(header: dict[str, JSON], source: SourceFile, title: str) -> dict[str, JSON]:
    """The header of a session with the title that the user gave it, masked as the session is."""
    if not title:
        return header
    return {**header, "title": title if source.mask is None else source.mask.value(title)}


class Page(NamedTuple):
    """A page that was written."""

    header: dict[str, JSON]
    contents: Contents


def write_page(
    agent: Agent,
    source: SourceFile,
    out: IO[bytes],
    masked: Counter[str],
    *,
    detail: Detail = "full",
    find_subagents: FindSubagents | None = None,
    links: Mapping[str, str] | None = None,
    index: str | None = None,
    carried_timestamp: str | None = None,
    title: str = "",
) -> Page:
    """Write a session as an HTML page. `masked` counts what the mask of the source hides; the page says so.

    With `find_subagents` the page holds its sub-agents. With `carried_timestamp` it carries the unified document, which
    has this time of export. `title` is the title that the user gave the session, if any.
    """
    # All passes over a session that still grows see the same of it.
    source = with_current_size(source)
    count_before = masked.total()
    if find_subagents is not None:
        learn_subagents(agent, source, find_subagents(source))
    header, tree, messages = show(agent, source)
    header = with_user_title(header, source, title)

    def document(packed: IO[bytes]) -> object:
        return write_document(agent, source, packed, timestamp=carried_timestamp or "")

    def remark() -> str:
        count = masked.total() - count_before
        return f"Redacted: {count} values are masked." if count else ""

    contents = write_html(
        header,
        messages,
        out,
        detail=detail,
        agent=agent.title,
        forks=Forks.of_tree(tree) if tree is not None else None,
        links=links,
        nested=_nested(agent, source, find_subagents, detail) if find_subagents is not None else None,
        index=index,
        document=document if carried_timestamp is not None else None,
        masked=str(source.mask.stamp()["profile"]) if source.mask is not None else "",
        remark=remark,
    )
    return Page(header, contents)


def _nested(
    agent: Agent, source: SourceFile, find_subagents: FindSubagents, detail: Detail, depth: int = 1
) -> Nested | None:
    """Gives the sub-agents of a session, as deep as it is sensible."""
    if depth > MAX_NESTED_SUBAGENTS:
        return None
    find = find_subagents(source)

    def nested(identity: str, prefix: str) -> Iterator[str] | None:
        child = find(identity)
        if child is None or child.path == source.path:
            return None
        child = with_current_size(child)
        child = child if source.mask is None else source.mask.cover(child)
        deeper = _nested(agent, child, find_subagents, detail, depth + 1)
        header, _, messages = show(agent, child)
        return inside(header, messages, prefix, deeper, detail)

    return nested
