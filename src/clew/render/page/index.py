"""The index of a site: every session by project, the latest first, with its sub-agents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from clew.render.page.escape import attribute, line
from clew.render.page.frame import banner, count, head, tail, theme


class Entry(msgspec.Struct, frozen=True):
    """A page of the site."""

    address: str
    id: str
    title: str
    agent: str
    project: str
    workspace: str
    time: str
    messages: int
    prompts: int
    parent: str | None = None


def index(entries: Sequence[Entry]) -> Iterator[str]:
    """The index, in pieces."""
    known = {entry.id for entry in entries}
    children: dict[str, list[Entry]] = {}
    projects: dict[str, list[Entry]] = {}
    for entry in sorted(entries, key=lambda entry: entry.time, reverse=True):
        if entry.parent in known and entry.parent != entry.id:
            children.setdefault(entry.parent or "", []).append(entry)
        else:
            projects.setdefault(entry.project or "unknown project", []).append(entry)
    yield head("Sessions", "index")
    agents = ", ".join(sorted({entry.agent for entry in entries}))
    yield banner("Sessions", [("Sessions", str(len(entries))), ("Projects", str(len(projects))), ("Agents", agents)])
    yield (
        '<div class="bar" role="region" aria-label="View"><div class="find" role="search">'
        '<input id="filter" type="search" placeholder="Filter sessions" aria-label="Filter sessions" hidden></div>'
        f"{theme()}</div>\n"
    )
    yield '<main id="talk" tabindex="-1">\n'
    if not entries:
        yield '<p class="none">There are no sessions here. `clew list` says which there are.</p>\n'
    for project, members in projects.items():
        yield f'<section><h2>{line(project)} <span>{len(members)}</span></h2>\n<ul class="list">\n'
        for entry in members:
            yield _item(entry, children.get(entry.id, []))
        yield "</ul></section>\n"
    yield "</main>\n" + tail(f"{count(len(entries), 'session')}. Written by clew.")


def _item(entry: Entry, children: Sequence[Entry]) -> str:
    about = f"{entry.agent} · {count(entry.prompts, 'prompt')}, {count(entry.messages, 'message')} · {entry.workspace}"
    subagents = ""
    if children:
        links = " ".join(
            f'<a href="{attribute(child.address)}">{number}</a>' for number, child in enumerate(children, 1)
        )
        subagents = f" · sub-agents {links}"
    return (
        f'<li><a href="{attribute(entry.address)}">{line(entry.title)}</a> <time>{line(entry.time)}</time>'
        f'<span class="about">{line(about)}{subagents}</span></li>\n'
    )
