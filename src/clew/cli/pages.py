"""HTML pages of sessions: one to a file, many to a folder on all cores, or a site with an index."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import IO, NamedTuple
from urllib.parse import quote

from clew.analysis.session import project_of
from clew.cli.output import open_output, print_message
from clew.cli.redaction import Redaction
from clew.cli.sessions import user_titles
from clew.datadir import private_folder
from clew.errors import SourceUnreadable, WouldLose
from clew.export.html import write_pieces
from clew.export.organise import free_name
from clew.export.session_file import FindSubagents, write_page
from clew.io.atomic import replacing
from clew.io.workers import run_in_workers
from clew.library import Library
from clew.model.json import JSON
from clew.render.detail import Detail
from clew.render.outline import session_title
from clew.render.page.index import Entry, index, session_counts
from clew.render.tables import counted
from clew.stored_session import StoredSession

INDEX = "index.html"


class Style(NamedTuple):
    """What pages hold."""

    detail: Detail
    carry: bool
    """The unified document goes along."""
    timestamp: str


class Pages:
    """Writes pages of sessions of a library."""

    def __init__(self, library: Library, masking: Redaction, style: Style) -> None:
        self._library, self._masking, self._style = library, masking, style
        self._index: str | None = None
        self._titles = user_titles()

    def one(self, session: StoredSession, out: IO[bytes]) -> None:
        """A page that holds the sub-agents of the session too."""
        session = self._masking.session(session)
        agent = session.agent
        self._write(session, out, {}, lambda source: self._library.subagents(StoredSession(agent, source)))

    def fill(self, sessions: Sequence[StoredSession], folder: Path, force: bool, *, with_index: bool) -> int:
        """A folder with a page for each session; says how many there are, and returns the exit code."""
        private_folder(str(folder))
        entries = self.many(sessions, folder, force, with_index=with_index)
        counts = ", ".join(counted(number, name) for name, number in session_counts(entries))
        print_message(f"{counts} in {folder}", mask=False)
        return SourceUnreadable.exit_code if len(entries) < len(sessions) else 0

    def many(self, sessions: Sequence[StoredSession], folder: Path, force: bool, *, with_index: bool) -> list[Entry]:
        """A page for each session, with links between them; returns the pages of those that could be read."""
        taken = {"index"}
        names: list[str] = []
        readable: list[StoredSession] = []
        for session in sessions:
            try:
                names.append(free_name(self._masking.file_name(session), taken) + ".html")
            except SourceUnreadable as error:
                print_message(f"clew: {error}")
            else:
                readable.append(session)
        if not readable:
            return []
        sessions = readable
        # In a folder that is empty, nothing can be in the way.
        for name in [*names, *[INDEX] * with_index] if not force and any(folder.iterdir()) else ():
            if (folder / name).exists():
                raise WouldLose(f"{folder / name} exists; use --force to replace it")
        self._index = INDEX if with_index else None
        addresses = list(map(quote, names))
        links = {session.id: address for session, address in zip(sessions, addresses, strict=True)}

        def work(number: int) -> JSON:
            return self._page(sessions[number], folder / names[number], addresses[number], links)

        self._masking.prepare()
        # The largest first: who is done early takes the next.
        *order, smallest = sorted(range(len(sessions)), key=lambda number: sessions[number].source.size, reverse=True)
        # Behind the first page all that is loaded on the way is there, for processes that are forked then too.
        done = {smallest: work(smallest)}
        done.update(zip(order, run_in_workers(work, order), strict=True))
        rows = [done[number] for number in range(len(sessions))]
        self._count(rows)
        entries = [Entry(**row["entry"]) for row in rows if row is not None]
        if with_index:
            # Like the pages, it can be generated again.
            with open_output(folder / INDEX, None, True, durable=False, below=folder) as out:
                write_pieces(index(entries), out)
        return entries

    def _page(self, session: StoredSession, target: Path, address: str, links: dict[str, str]) -> JSON:
        before = Counter(self._masking.masked) if self._masking.is_on else None
        try:
            with replacing(target, durable=False) as out:
                entry = self._write(session, out, links, None)
        except SourceUnreadable as error:
            print_message(f"clew: {error}")
            return None
        entry["address"] = address
        masked = dict(self._masking.masked - before) if before is not None else {}
        return {"entry": entry, "masked": masked, "process": os.getpid()}

    def _count(self, rows: Sequence[JSON]) -> None:
        """Add what other processes masked."""
        for row in rows:
            if row is not None and row["process"] != os.getpid():
                self._masking.masked.update(row["masked"])

    def _write(
        self, session: StoredSession, out: IO[bytes], links: dict[str, str], find_subagents: FindSubagents | None
    ) -> dict[str, JSON]:
        session = session if session.source.mask is not None else self._masking.session(session)
        header, contents = write_page(
            session.agent,
            session.source,
            out,
            self._masking.masked,
            detail=self._style.detail,
            find_subagents=find_subagents,
            links=links,
            index=self._index,
            carried_timestamp=self._style.timestamp if self._style.carry else None,
            title=self._titles.get((session.agent.id, session.id), ""),
        )
        return _entry(header, session.agent.title) | {"messages": contents.messages, "prompts": len(contents.prompts)}


def _entry(header: dict[str, JSON], agent: str) -> dict[str, JSON]:
    workspace = header.get("workspace") or ""
    return {
        "address": "",
        "id": header["id"],
        "title": session_title(header),
        "agent": agent,
        "project": project_of(workspace) or "",
        "workspace": workspace,
        "time": header.get("started_at") or "",
        "parent": header.get("parent_session_id"),
        "is_subagent": bool(header.get("is_agent_session")),
    }
