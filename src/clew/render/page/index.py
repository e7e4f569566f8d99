"""The index page of a site: sessions by project, latest first, with their sub-agents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from clew.render.page.frame import banner, count, head, tail, theme
from clew.render.tables import clock
from clew.render.text_safety import escape, escape_line
from clew.timezone import zone_label


class Entry(msgspec.Struct, frozen=True):
    """A page of the site."""

    address: str
    id: str
    title: str
    agent: str
    project: str
    workspace: str
    time: str
    """When the session began, in UTC."""
    messages: int
    prompts: int
    parent: str | None = None
    is_subagent: bool = False


def session_counts(entries: Sequence[Entry]) -> list[tuple[str, int]]:
    """How many sessions and sub-agents there are; several pages of one session are copies of it."""
    kinds = {(entry.agent, entry.id): entry.is_subagent for entry in entries}
    subagents = sum(kinds.values())
    return [("session", len(kinds) - subagents), *([("sub-agent", subagents)] if subagents else [])]


def index(entries: Sequence[Entry]) -> Iterator[str]:
    """The index, in pieces."""
    yield head("Sessions", "index")
    yield from _listed(entries)
    counts = ", ".join(count(number, name) for name, number in session_counts(entries))
    yield tail(f"{counts}. Written by clew. Times are in {zone_label()}.")


def _listed(entries: Sequence[Entry]) -> Iterator[str]:
    projects: dict[str, list[tuple[Entry, list[Entry]]]] = {}
    for top, below in _families(entries):
        projects.setdefault(top.project or "unknown project", []).append((top, below))
    agents = ", ".join(sorted({entry.agent for entry in entries}))
    counts = [(f"{name.capitalize()}s", str(number)) for name, number in session_counts(entries)]
    yield banner("Sessions", [*counts, ("Projects", str(len(projects))), ("Agents", agents)])
    yield (
        '<div class="bar" role="region" aria-label="View"><div class="find" role="search">'
        '<input id="filter" type="search" placeholder="Filter sessions" aria-label="Filter sessions" hidden></div>'
        f"{theme()}</div>\n"
    )
    yield '<main id="talk" tabindex="-1">\n'
    if not entries:
        yield '<p class="none">There are no sessions here. `clew list` says which there are.</p>\n'
    for project, members in projects.items():
        yield f'<section><h2>{escape_line(project)} <span>{len(members)}</span></h2>\n<ul class="list">\n'
        for top, below in members:
            yield _item(top, below)
        yield "</ul></section>\n"
    yield "</main>\n"


def _families(entries: Sequence[Entry]) -> list[tuple[Entry, list[Entry]]]:
    """Sessions without a parent in the list, each with all sub-agents below it. A cycle begins with its latest."""
    ordered = sorted(entries, key=lambda entry: entry.time, reverse=True)
    known = {entry.id for entry in entries}
    children: dict[str | None, list[Entry]] = {}
    for entry in ordered:
        children.setdefault(entry.parent, []).append(entry)
    tops = [entry for entry in ordered if entry.parent not in known or entry.parent == entry.id]
    reached: set[str] = set()
    found = [(top, _below(top, children, reached)) for top in (*tops, *ordered) if top.address not in reached]
    return sorted(found, key=lambda family: family[0].time, reverse=True)


def _below(top: Entry, children: Mapping[str | None, Sequence[Entry]], reached: set[str]) -> list[Entry]:
    """All sub-agents below a session, each once."""
    reached.add(top.address)
    family = [top]
    for entry in family:
        fresh = [child for child in children.get(entry.id, ()) if child.address not in reached]
        reached.update(child.address for child in fresh)
        family += fresh
    return family[1:]


def _item(entry: Entry, children: Sequence[Entry]) -> str:
    about = f"{escape_line(entry.agent)} · {count(entry.prompts, 'prompt')}, {count(entry.messages, 'message')}"
    if entry.workspace:
        about += f" · {escape_line(entry.workspace)}"
    subagents = ""
    if children:
        links = " ".join(f'<a href="{escape(child.address)}">{number}</a>' for number, child in enumerate(children, 1))
        subagents = f" · sub-agents {links}"
    time = escape_line(clock(entry.time) or "")
    return (
        f'<li><a href="{escape(entry.address)}">{escape_line(entry.title)}</a> <time>{time}</time>'
        f'<span class="about">{about}{subagents}</span></li>\n'
    )
