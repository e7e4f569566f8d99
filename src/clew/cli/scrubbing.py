"""What `clew redact scrub` does, session by session, and what it says of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path

import click

from clew.agents.registry import load_all
from clew.archive.records import archive_folder
from clew.catalog.database import DATABASE
from clew.cli.each import say_unscanned
from clew.cli.output import print_json, say
from clew.cli.redacting import Redaction
from clew.errors import Busy, SourceUnreadable
from clew.filters import Filters
from clew.host import ARCHIVED, REMOTES, data_dir, is_copy
from clew.io.paths import link_refusal, link_to_session, walk
from clew.library import Library, StoredSession
from clew.migrate.scrub import Dirty, carry_out, files_of, is_archived, leftovers, other_name, plan
from clew.model.json import JSON
from clew.redact.redactor import Redactor

_LONGEST_NAME = 100
"""Characters of the name of a folder for copies."""
_PRUNE = "`clew archive`, then `clew archive prune --keep-versions 1 --apply`, lets older versions of all files go"


_SESSION_SUFFIXES = (".jsonl", ".json", ".gz", ".zst")


def _linked_files(root: Path) -> Iterator[Path]:
    """Symbolic links below a root that are named like files of sessions."""
    for below, _, names in walk(root):
        for name in sorted(names):
            path = Path(below) / name
            if path.suffix in _SESSION_SUFFIXES and path.is_symlink():
                yield path


def _passes(session: StoredSession, filters: Filters) -> bool:
    """True where a session passes the filters, and where it cannot be read, so that nobody knows."""
    try:
        return not session.path.is_file() or filters.admits(session)
    except (SourceUnreadable, OSError):
        return True


def _linked_sides(path: Path) -> list[Path]:
    """Files that belong to a session and are symbolic links, so that they were not read with it."""
    names = ("metadata.json", "snapshots.jsonl", f"{path.stem}.meta.json")
    # A name that is too long for the file system is no link.
    return [path.with_name(name) for name in names if os.path.islink(path.with_name(name))]  # noqa: PTH114


class Scrub:
    """The cleaning of some sessions."""

    def __init__(self, shelf: Library, masking: Redaction, *, write: bool) -> None:
        self._shelf, self._masking, self._write = shelf, masking, write
        self._kept = data_dir() / "rescue" / f"scrub-{shelf.hosts[0].now():%Y%m%dT%H%M%S%f}"
        self.rows: list[dict[str, JSON]] = []
        self.refused: list[dict[str, JSON]] = []
        """Sessions that hold something and were left as they are, with the reason for each file."""
        self.unreadable = 0
        """Sessions that could not be scanned."""
        self._values: set[str] = set()
        self._redactors: list[Redactor] = []
        """For each row, one that knows what was found in the session."""
        self._folders = dict.fromkeys(data_dir() / name for name in (ARCHIVED, REMOTES))
        self._cleaned: set[Path] = set()

    def session(self, session: StoredSession) -> None:
        """Plan one session, and clean it where that was asked for."""
        if not self._masking.is_on:
            return
        redactor = self._masking.redactor(counted=False)
        steps = plan(session.source, redactor)
        if not steps:
            return
        self._values |= redactor.values.keys()
        for host in self._shelf.hosts:
            self._folders |= dict.fromkeys(root.parent for root in session.agent.roots(host))
        if self._refuses(session, steps):
            return
        copies: list[Path] = []
        if self._write:
            copies = carry_out(session.source, steps, redactor, self._kept / _folder_name(session))
        self._cleaned |= set(files_of(session.source)) if self._write else set()
        self._redactors.append(redactor)
        self.rows.append(
            {
                "session": session.id,
                "agent": session.agent.id,
                "files": [{"path": str(step.path), "records": step.changes} for step in steps],
                "masked": dict(sorted(redactor.masked.items())),
                "backups": [str(copy) for copy in copies],
            }
        )

    def _refuses(self, session: StoredSession, steps: list[Dirty]) -> bool:
        """Leave a session as it is where replacing one of its files would keep the values under another name."""
        paths = [*(step.path for step in steps), *_linked_sides(session.path)]
        files = [{"path": str(path), "reason": why} for path in paths if (why := self._refusal(path))]
        if files:
            self.refused.append({"session": session.id, "agent": session.agent.id, "files": files})
        return bool(files)

    def name_links(self, filters: Filters) -> None:
        """Name session files that are symbolic links and pass the filters: what they hold is not looked at."""
        seen: set[Path] = set()
        for host, agent in product(self._shelf.hosts, load_all()):
            for root in agent.roots(host) if not filters.agent or agent.id in filters.agent else ():
                for path in _linked_files(root):
                    if path in seen:
                        continue  # the folders of two agents may lie in one another
                    seen.add(path)
                    with suppress(SourceUnreadable):
                        session = StoredSession(agent, agent.locate(path), host)
                        if not _passes(session, filters):
                            continue
                        files = [{"path": str(path), "reason": other_name(path)}]
                        self.refused.append({"session": session.id, "agent": agent.id, "files": files})

    def _refusal(self, path: Path) -> str | None:
        """Why a file is not replaced; None where it may be."""
        homes = [host.base or host.home for host in self._shelf.hosts]
        link = next(filter(None, (link_to_session(path, home) for home in homes)), None)
        if link is not None:
            return link_refusal(link)
        if is_copy(path):
            return "a copy of another machine's or of an archived session, which clew only reads"
        return other_name(path)

    def finish(self, *, as_json: bool, catalog: Path) -> None:
        """Say what was done, and where the same values still lie. The catalog is made to forget them."""
        if self._write and self.rows and (catalog / DATABASE).exists():
            _purge(self._shelf, catalog)
        left = sorted({str(path) for path in leftovers(self._values, self._folders)} - self._files())
        archive = archive_folder(None)
        archives = [str(archive)] if is_archived(archive, self._sessions()) else []
        if as_json:
            rows: dict[str, JSON] = {"sessions": self.rows, "refused": self.refused}
            result: dict[str, JSON] = {"written": self._write, **rows, "left": left + archives}
            # Paths lead programs to the copies, so they are whole unless somebody asked.
            print_json(self._masked(result) if self._masking.was_asked else result)
            return
        from clew.render.text_safety import one_line, visible

        for row, redactor in zip(self.rows, self._redactors, strict=True):
            # The files are named without what was found in them.
            found = ", ".join(f"{count} {rule}" for rule, count in row["masked"].items())
            click.echo(visible(f"{row['agent']}:{redactor.learn_and_mask(row['session'])}  {found}"))
            for file in row["files"]:
                click.echo(f"  {one_line(redactor.learn_and_mask(file['path']))}  {file['records']} records")
        self._say_rest([*left, *(f"{folder}: {_PRUNE}" for folder in archives)])

    def _masked(self, value: JSON) -> JSON:
        """A value without what was found in any of the sessions."""
        for redactor in self._redactors:
            value = redactor.learn_and_mask(value)
        return self._masking.redactor(counted=False).learn_and_mask(value)

    def _sessions(self) -> list[tuple[str, str]]:
        """The agent and the id of each session in which something was found."""
        return [(row["agent"], row["session"]) for row in self.rows]

    def _files(self) -> set[str]:
        """The files that a run without --write would clean."""
        return set() if self._write else {file["path"] for row in self.rows for file in row["files"]}

    def _say_rest(self, left: list[str]) -> None:
        for row in self.refused:
            for file in row["files"]:
                say(
                    self._masked(
                        f"clew: not scrubbed: {row['agent']}:{row['session']}: {file['path']} {file['reason']}"
                    )
                )
        for path in left:
            say(self._masked(f"clew: not removed from {path}"))
        say_unscanned(self.unreadable)
        if not self.rows:
            say("nothing was changed" if self.refused or self.unreadable else "nothing found")
        elif not self._write:
            say("nothing was changed; --write does it")
        else:
            say(f"clew: the files as they were, secrets and all, are kept below {self._kept}; remove it in time")


def _folder_name(session: StoredSession) -> str:
    """The folder for copies of a session's files. Its id is what its records say, and may be any text."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", f"{session.agent.id}-{session.id}")[:_LONGEST_NAME]


def _purge(shelf: Library, catalog: Path) -> None:
    """Take what was cleaned out of a catalog: its rows, its text index, and the pages that it no longer uses."""
    from clew.catalog.database import open_writer
    from clew.catalog.sync import rebuild_text_index, sync

    try:
        sync(shelf.hosts, catalog, full=True)
        rebuild_text_index(catalog)
        rows = open_writer(catalog)
    except Busy:
        say(f"clew: not removed from {catalog}: another sync is at work; `clew sync --full` does it")
        return
    try:
        rows.execute("VACUUM")
        rows.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        rows.close()
