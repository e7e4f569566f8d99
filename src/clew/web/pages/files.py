"""Files that sessions changed: their history across sessions, what each change was, and who wrote which line.

A path is looked for in the catalog and shown from records; no file is opened because somebody asked for its path.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup
from starlette.responses import Response

from clew.agents.file_evidence import FileContent, KnownContent, absolute
from clew.catalog import queries
from clew.catalog.ids import session_key
from clew.catalog.queries import Change, Entry
from clew.errors import SourceUnreadable, UnknownReference
from clew.file_history.blame import Line, Version, blame, versions
from clew.file_history.history import FileHistory
from clew.file_history.timeline import OBSERVATIONS
from clew.render.page.escape import line
from clew.render.page.fragments import Cut, Fragments
from clew.render.parts import Diff
from clew.web.asking import Asked, page
from clew.web.drawing import session_address

SHOWN = 100
MOST_LINES = 5_000
MOST_SESSIONS = 40
"""Sessions that are read for one blame: the latest."""


def page_of(asked: Asked) -> Response:
    """All files, or those with a text in their path."""
    every = asked.shelf.kept("files", lambda: queries.files(asked.shelf.db))
    wanted = (asked.word("text") or "").casefold()
    found = [file for file in every if wanted in file.path.casefold()]
    at = max(1, asked.number("page", 1))
    return page(
        asked,
        "files.html",
        files=found[(at - 1) * SHOWN : at * SHOWN],
        total=len(found),
        wanted=asked.word("text"),
        at=at,
        pages=max(1, -(-len(found) // SHOWN)),
    )


def _known(asked: Asked) -> tuple[str, list[tuple[Entry, list[Change]]]]:
    """The path that is asked for, and the sessions that changed it."""
    path = asked.word("path") or ""
    found = queries.sessions_of_file(asked.shelf.db, path)
    if not found:
        raise UnknownReference("no session changed such a file")
    return path, found


def history(asked: Asked) -> Response:
    """The sessions that changed a file, and when."""
    path, found = _known(asked)
    return page(asked, "file.html", path=path, found=found)


class Step(NamedTuple):
    """One change of a file, with what it did to its lines."""

    message: int
    action: str
    certainty: str
    time: str
    prompt: tuple[int, str] | None
    html: Markup


def changes(asked: Asked) -> Response:
    """What one session did to a file, as diffs."""
    path, found = _known(asked)
    key = asked.word("session")
    entry = next((one for one, _ in found if one.key == key), None)
    if entry is None:
        raise UnknownReference("that session did not change it")
    return page(asked, "changes.html", path=path, entry=entry, steps=_steps(asked, entry, path))


def _history(asked: Asked, entry: Entry) -> FileHistory | None:
    if entry.state == "gone":
        return None
    session = asked.shelf.session(entry, "none")
    return FileHistory(session.agent, session.source) if session.agent.has_file_changes else None


def _spellings(history: FileHistory, path: str) -> list[str]:
    """How the time machine spells a path that the catalog has as it was recorded."""
    wanted = {absolute(path, None), absolute(path, history.workspace or None), path}
    ending = "/" + path.strip("/")
    return [name for name in history.timelines if name in wanted or name.endswith(ending)]


def _steps(asked: Asked, entry: Entry, path: str) -> list[Step] | None:
    history = _history(asked, entry)
    if history is None:
        return None
    names = _spellings(history, path)
    all_evidence = [
        evidence
        for name in names
        for evidence in history.timelines[name].all_evidence
        if evidence.action not in OBSERVATIONS
    ]
    contents = history.contents_of((evidence.number, after) for evidence in all_evidence for after in (False, True))
    masking = asked.shelf.masking(asked.profile)
    mask = _mask_of(asked, entry, path)
    steps = []
    for evidence in sorted(all_evidence, key=lambda evidence: (evidence.call, evidence.number)):
        before, after = contents.get((evidence.number, False)), contents.get((evidence.number, True))
        prompt = history.prompt(evidence.call)
        steps.append(
            Step(
                evidence.call,
                evidence.action,
                evidence.after.certainty if evidence.after is not None else "unknown",
                (history.times.get(evidence.call) or "")[:16].replace("T", " "),
                (prompt[0], masking.text(prompt[1])) if prompt is not None else None,
                _diff(mask(_text(before)), mask(_text(after)), f"{masking.text(entry.id)}#{evidence.call}")
                if after is not None or before is not None
                else Markup(),
            )
        )
    return steps


def _mask_of(asked: Asked, entry: Entry, path: str) -> Callable[[str], str]:
    """Masks what a session tells of a file. Of a credential file everything is masked."""
    masking = asked.shelf.masking(asked.profile)
    if not masking.is_on:
        return str
    redactor = masking.learned(asked.shelf.session(entry, "none"))
    return lambda text: redactor.text(text, path)


def _text(state: KnownContent | None) -> str:
    return state.body.decode("utf-8", "replace") if isinstance(state, FileContent) else ""


def _diff(before: str, after: str, reference: str) -> Markup:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=3)
    body = "\n".join(list(lines)[2:])
    fragments = Fragments(more=lambda cut: _more(cut, reference))
    shown = [*fragments.write([Diff(body)]), fragments.end()] if body else []  # type: ignore[list-item]
    return Markup(b"".join(shown).decode())


def _more(cut: Cut, reference: str) -> str:
    command = f"<code>clew diff {line(reference)}</code>"
    return f'<i class="more">… {cut.left:,} more characters are not shown here; {command} prints them.</i>'


def blamed(asked: Asked) -> Response:
    """Which message wrote each line of a file, as records know it last."""
    path, found = _known(asked)
    told: list[tuple[str, Version]] = []
    unread = 0
    most = asked.number("rows", 0)
    for entry, _ in found[: most or MOST_SESSIONS]:
        try:
            told += _versions(asked, entry, path)
        except SourceUnreadable:
            unread += 1
    told.sort(key=lambda pair: pair[0])
    bodies = [body for _, version in told for body in (version.before, version.after) if body is not None]
    lines = blame(bodies[-1], [version for _, version in told]) if bodies else []
    return page(
        asked,
        "blame.html",
        path=path,
        lines=_rows(asked, lines[: most or MOST_LINES], path),
        left_out=max(0, len(lines) - (most or MOST_LINES)),
        unread=unread + max(0, len(found) - (most or MOST_SESSIONS)),
    )


def _versions(asked: Asked, entry: Entry, path: str) -> list[tuple[str, Version]]:
    history = _history(asked, entry)
    return list(versions(history, entry.id, set(_spellings(history, path)))) if history is not None else []


def _rows(asked: Asked, lines: Sequence[Line], path: str) -> list[dict[str, Any]]:
    texts = asked.shelf.masking(asked.profile).texts([line.text.rstrip("\r\n") for line in lines], path)
    return [_row(asked, line, text) for line, text in zip(lines, texts, strict=True)]


def _row(asked: Asked, line: Line, text: str) -> dict[str, Any]:
    mask = asked.shelf.masking(asked.profile).text
    row: dict[str, Any] = {"number": line.number, "text": text, "origin": None}
    if line.origin is not None:
        origin = line.origin
        row |= {
            "origin": origin,
            "address": session_address(
                origin.agent, origin.session, session_key(origin.agent, origin.session), origin.message
            ),
            "prompt": mask(origin.prompt[1]) if origin.prompt is not None else "",
        }
    return row
