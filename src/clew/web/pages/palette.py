"""What the command palette finds while the user types: sessions, projects, labels, files, and a search for the text."""

from __future__ import annotations

from itertools import chain, islice
from typing import NamedTuple

from markupsafe import Markup
from starlette.responses import Response

from clew.catalog import queries
from clew.catalog.queries import Entry
from clew.catalog.session_index import SessionIndex
from clew.web.context import AppContext
from clew.web.pages.session_list import session_index
from clew.web.request import PageRequest, respond
from clew.web.templates import format_clock, link, session_name, session_url

MAX_SESSIONS = 7
MAX_PROJECTS = 4
MAX_LABELS = 4
MAX_FILES = 5


class Option(NamedTuple):
    """A place to go to."""

    url: Markup
    name: str
    about: str = ""


def view(request: PageRequest) -> Response:
    """The options for a text; without one, the latest sessions."""
    context, text = request.context, request.param("q") or ""
    index = session_index(context).sessions
    words = text.casefold().split()
    groups = [("Sessions" if words else "Latest sessions", _sessions(request, index, text))]
    if words:
        groups.append(("Projects", _projects(request, index, words)))
        groups.append(("Labels", _labels(request, words)))
        groups.append(("Files", _files(request, words)))
        groups.append(("Search", [Option(link("/search", request.profile, q=text), f"Search everything for “{text}”")]))
    else:
        # Ready when the user has typed.
        context.run_in_background(_changed_files)
    return respond(request, "palette.html", groups=[(title, options) for title, options in groups if options])


def _sessions(request: PageRequest, index: SessionIndex, text: str) -> list[Option]:
    latest = (session for session in index.sessions if not session.is_subagent)
    found = index.find(text, request.annotations.marks) if text else latest
    entries = queries.entries(request.context.db, [session.number for session in islice(found, MAX_SESSIONS)])
    return [Option(session_url(entry), session_name(entry, request.masking.text), _about(entry)) for entry in entries]


def _about(entry: Entry) -> str:
    kind = f"sub-agent of {entry.agent}" if entry.is_subagent else entry.agent
    return " · ".join(filter(None, (kind, entry.project, format_clock(entry.ended_us)[:10])))


def _projects(request: PageRequest, index: SessionIndex, words: list[str]) -> list[Option]:
    names = dict.fromkeys(session.project for session in index.sessions if session.project)
    found = [name for name in names if _has_words(name, words)]
    return [Option(link("/sessions", request.profile, exact_project=name), name) for name in found[:MAX_PROJECTS]]


def _labels(request: PageRequest, words: list[str]) -> list[Option]:
    found = [label for label in request.annotations.labels if _has_words(label, words)]
    return [Option(link("/sessions", request.profile, label=label), label) for label in found[:MAX_LABELS]]


def _files(request: PageRequest, words: list[str]) -> list[Option]:
    """The files with all words in their path; those with all of them in their name first, then the latest first."""
    found = _changed_files(request.context)
    for word in words:
        found = [file for file in found if word in file.folded]
    by_name = (file.path for file in found if _has_words(file.path.rpartition("/")[2], words))
    by_path = (file.path for file in found)
    paths = dict.fromkeys(chain(islice(by_name, MAX_FILES), islice(by_path, MAX_FILES)))
    return [Option(link("/files/history", request.profile, path=path), path) for path in islice(paths, MAX_FILES)]


def _has_words(text: str, words: list[str]) -> bool:
    folded = text.casefold()
    return all(word in folded for word in words)


class NamedFile(NamedTuple):
    """The path of a file, and the same case-folded."""

    path: str
    folded: str


def _changed_files(context: AppContext) -> list[NamedFile]:
    def load() -> list[NamedFile]:
        return [NamedFile(file.path, file.path.casefold()) for file in queries.files(context.db)]

    return context.recent("file names", load)
