"""clew redact: where secrets are, files without them, and sessions cleaned in place."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import click

from clew.agents.registry import load_all
from clew.agents.secret_scan import find_secrets
from clew.archive.records import archive_folder
from clew.catalog.database import DATABASE
from clew.catalog.memory import filter_sessions
from clew.cli.archive_holds import user_holds
from clew.cli.completion import complete_session
from clew.cli.options import (
    as_json_option,
    common,
    common_without_json,
    filtering,
    force_option,
    open_library,
    refuse_json,
    take_filters,
    wants_json,
    yes_option,
)
from clew.cli.output import open_output, print_json, print_message, print_table, refuse_stores
from clew.cli.redaction import STANDARD, Redaction, redacting, redaction
from clew.cli.sessions import for_each_session, print_unscanned
from clew.errors import Busy, ClewError, SourceUnreadable, UsageError
from clew.filters import Filters
from clew.host import ARCHIVED, REMOTES, data_dir, is_copy
from clew.io.paths import link_refusal, link_to_session, walk
from clew.library import Library
from clew.migrate.scrub import Dirty, carry_out, files_of, is_archived, leftovers, other_name, plan
from clew.model.json import JSON
from clew.redact.redactor import Redactor
from clew.stored_session import StoredSession

_JSON = "--json"


class _FilesUnlessNamed(click.Group):
    """A group whose first word may be a file: then it means `files`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        first = next((word for word in args if word != _JSON), None)
        if first is not None and first not in self.commands and first not in ctx.help_option_names:
            args = ["files", *args]
        return super().parse_args(ctx, args)


@click.group("redact", cls=_FilesUnlessNamed)
@as_json_option
@click.pass_context
def command(context: click.Context, /, as_json: bool) -> None:
    """Find secrets in sessions, mask them in files, or clean sessions in place.

    `clew redact FILE...` is short for `clew redact files FILE...`.
    """
    if as_json:
        context.find_root().obj["json"] = True


@command.command("files")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="A file, or a folder for several files; - is standard output.",
)
@force_option
@redacting
@common_without_json
@click.pass_context
def files_command(
    context: click.Context,
    /,
    files: tuple[Path, ...],
    output: Path | None,
    force: bool,
    homes: tuple[str, ...],
) -> None:
    """Print files with secrets masked, or what else --redact says.

    JSON and JSON Lines stay valid, with the order of their keys and all ids; lines without a match stay byte for byte
    the same. The files themselves are not changed. `-` means standard input, and after -o standard output.
    """
    refuse_json(context)
    output = None if output == STANDARD else output
    if len(files) > 1 and output is not None and not output.is_dir():
        raise UsageError(f"several files: {output} must be an existing folder")
    refuse_stores(open_library(context, homes), output)
    masking = redaction(context, for_programs=False)
    for file in files:
        if file != STANDARD and not file.exists() and file.name == str(file):
            raise SourceUnreadable(
                f"{file}: no such file; `clew redact scan` and `clew export --redact` take a session"
            )
        if output is not None and output.is_dir():
            target: Path | None = output / (file.name if file != STANDARD else "stdin")
            below: Path | None = output
        else:
            target, below = output, None
        with open_output(target, force=force, below=below) as out:
            for piece in masking.pieces(file):
                out.write(piece)


@command.command("scan")
@click.argument("references", nargs=-1, metavar="[PATH|REF]...", shell_complete=complete_session)
@click.option("--reveal", is_flag=True, help="Print the values too. Asks first; only on a terminal.")
@redacting
@filtering
@common
@click.pass_context
def scan_command(
    context: click.Context,
    /,
    references: tuple[str, ...],
    reveal: bool,
    homes: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> int:
    """List the secrets in sessions, without their values.

    Without a reference: all sessions that pass the filters. Equal values have equal markers. Exit code 1: something was
    found.
    """
    json = wants_json(context, as_json)
    report = Report(redaction(context, for_programs=False), as_json=json, reveal=reveal)
    library = open_library(context, homes)
    unreadable = for_each_session(library, references, take_filters(options, library), report.add)
    report.finish(unreadable)
    return 1 if report.count else SourceUnreadable.exit_code if unreadable else 0


@command.command("scrub")
@click.argument("references", nargs=-1, metavar="[PATH|REF]...", shell_complete=complete_session)
@yes_option("--write")
@redacting
@filtering
@common
@click.pass_context
def scrub_command(
    context: click.Context,
    /,
    references: tuple[str, ...],
    yes: bool,
    homes: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> int:
    """Mask secrets in the agents' own session files, in place. Without --yes, only list the changes.

    Each file is copied below clew's data folder first and then replaced as a whole; records keep their structure and
    ids, so the agent can continue the session. Close the agent before. Other places where the same values occur are
    listed, but not changed. A session is skipped and named if one of its files is a symbolic link or has other hard
    links, because those would keep the values. Name sessions, or choose them with filters. Exit code 1: nothing was
    found, or a session was skipped because of its links.
    """
    library = open_library(context, homes)
    admitted = take_filters(options, library)
    if not references and admitted == Filters():
        raise UsageError("name the sessions, or choose them with filters such as --agent or --since")
    scrub = Scrub(library, redaction(context, for_programs=False), write=yes)
    finish = partial(scrub.finish, as_json=wants_json(context, as_json), catalog=library.catalog_folder)
    try:
        scrub.unreadable = for_each_session(library, references, admitted, scrub.session)
    except (ClewError, OSError):
        # Earlier sessions have been changed: print that, and purge their old text from the catalog.
        if scrub.rows:
            finish()
        raise
    if not references:
        scrub.name_links(admitted)
    finish()
    return SourceUnreadable.exit_code if scrub.unreadable else 0 if scrub.rows and not scrub.refused else 1


class Report:
    """The findings of all sessions; printed at the end, because a table wants to know its widths."""

    def __init__(self, masking: Redaction, *, as_json: bool, reveal: bool) -> None:
        if reveal and (as_json or not (sys.stdin.isatty() and sys.stdout.isatty())):
            raise UsageError("--reveal prints to a terminal only, and asks there first")
        self._masking, self._as_json, self._reveal = masking, as_json, reveal
        self.count = 0
        self._rows: list[dict[str, JSON]] = []
        self._values: dict[int, str] = {}
        """What was found, by the number of its row."""

    def add(self, session: StoredSession) -> None:
        """Scan one session."""
        if not self._masking.is_on:
            return
        redactor = self._masking.redactor()
        found = list(find_secrets(session.agent, session.source, redactor))
        # The id and the path of a session may hold a secret, and neither is printed in clear.
        place = {"agent": session.agent.id, "session": redactor.text(session.id)}
        place["path"] = redactor.text(str(session.path))
        for secret in found:
            if self._reveal and secret.value is not None:
                self._values[len(self._rows)] = secret.value
            self._rows.append({**place, **secret.without_value()})
        self.count = len(self._rows)

    def finish(self, unreadable: int) -> None:
        """Print what was found, and how many sessions could not be scanned."""
        if self._as_json:
            print_json({"rules": self._masking.version, "findings": self._rows})
        elif self._rows:
            self._print()
        elif not unreadable:
            print_message("nothing found", mask=False)
        print_unscanned(unreadable)

    def _print(self) -> None:
        from clew.render.tables import Column
        from clew.render.text_safety import one_line

        shown = self._may_reveal()
        columns = [Column("where"), Column("line", right=True), Column("kind"), Column("found", flexible=True)]
        print_table(
            columns,
            [
                [
                    f"{row['agent']}:{row['session']}" + (f"#{row['message']}" if row["message"] is not None else ""),
                    str(row["line"]),
                    row["kind"],
                    one_line(self._values.get(number, str(row["masked"]))) if shown else str(row["masked"]),
                ]
                for number, row in enumerate(self._rows)
            ],
            None,
        )

    def _may_reveal(self) -> bool:
        """Whether the user confirmed at the terminal."""
        if not self._reveal:
            return False
        click.echo(f"Print {len(self._rows)} findings in clear? Type yes: ", nl=False, err=True)
        return sys.stdin.readline().strip() == "yes"


_LONGEST_NAME = 100
"""Characters of the name of a folder for copies."""
_PRUNE = "`clew archive`, then `clew archive prune --keep-versions 1 --yes`, lets older versions of all files go"


_SESSION_SUFFIXES = (".jsonl", ".json", ".gz", ".zst")


def _linked_files(root: Path) -> Iterator[Path]:
    """Symbolic links below a root that are named like files of sessions."""
    for below, _, names in walk(root):
        for name in sorted(names):
            path = Path(below) / name
            if path.suffix in _SESSION_SUFFIXES and path.is_symlink():
                yield path


def _passes(session: StoredSession, filters: Filters) -> bool:
    """True if a session passes the filters, or cannot be read to find out."""
    try:
        return not session.path.is_file() or any(filter_sessions([session], filters))
    except (SourceUnreadable, OSError):
        return True


def _linked_sides(path: Path) -> list[Path]:
    """Files that belong to a session and are symbolic links, so that they were not read with it."""
    names = ("metadata.json", "snapshots.jsonl", f"{path.stem}.meta.json")
    # A name that is too long for the file system is not a link.
    return [path.with_name(name) for name in names if os.path.islink(path.with_name(name))]  # noqa: PTH114


def _modified(path: Path) -> datetime:
    """When a session was written to last; the present where the file does not tell, so that it counts as new."""
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError:
        return datetime.now(UTC)


class Scrub:
    """The cleaning of some sessions."""

    def __init__(self, library: Library, masking: Redaction, *, write: bool) -> None:
        self._library, self._masking, self._write = library, masking, write
        self._holds = user_holds()
        self._kept = data_dir() / "rescue" / f"scrub-{library.hosts[0].now():%Y%m%dT%H%M%S%f}"
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
        """Plan one session, and clean it with --yes."""
        if not self._masking.is_on:
            return
        redactor = self._masking.redactor(counted=False)
        steps = plan(session.source, redactor)
        if not steps:
            return
        self._values |= redactor.values.keys()
        for host in self._library.hosts:
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
        held = self._holds.find(
            session.agent.id, session.id, session.path, _modified(session.path), self._library.now()
        )
        refusals = ((path, f"is held ({held})" if held else self._refusal(path)) for path in paths)
        files = [{"path": str(path), "reason": why} for path, why in refusals if why]
        if files:
            self.refused.append({"session": session.id, "agent": session.agent.id, "files": files})
        return bool(files)

    def name_links(self, filters: Filters) -> None:
        """Name session files that are symbolic links and pass the filters: their content is not read."""
        seen: set[Path] = set()
        for host, agent in product(self._library.hosts, load_all()):
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
        homes = [host.base or host.home for host in self._library.hosts]
        link = next(filter(None, (link_to_session(path, home) for home in homes)), None)
        if link is not None:
            return link_refusal(link)
        if is_copy(path):
            return "a copy of another machine's session or of an archived session; it is read-only"
        return other_name(path)

    def finish(self, *, as_json: bool, catalog: Path) -> None:
        """Say what was done, and where the same values still lie. The catalog is made to forget them."""
        if self._write and self.rows and (catalog / DATABASE).exists():
            _purge(self._library, catalog)
        left = sorted({str(path) for path in leftovers(self._values, self._folders)} - self._files())
        archive = archive_folder(None)
        archives = [str(archive)] if is_archived(archive, self._sessions()) else []
        if as_json:
            rows: dict[str, JSON] = {"sessions": self.rows, "refused": self.refused}
            result: dict[str, JSON] = {"written": self._write, **rows, "left": left + archives}
            # Programs use the paths to find the copies, so they are only masked on request.
            print_json(self._masked(result) if self._masking.was_asked else result)
            return
        from clew.render.text_safety import one_line, visible

        for row, redactor in zip(self.rows, self._redactors, strict=True):
            # The files are named without what was found in them.
            found = ", ".join(f"{count} {rule}" for rule, count in row["masked"].items())
            click.echo(visible(f"{row['agent']}:{redactor.learn_and_mask(row['session'])}  {found}"))
            for file in row["files"]:
                click.echo(f"  {one_line(redactor.learn_and_mask(file['path']))}  {file['records']} records")
        self._print_rest([*left, *(f"{folder}: {_PRUNE}" for folder in archives)])

    def _masked(self, value: JSON) -> JSON:
        """A value without what was found in any of the sessions."""
        for redactor in self._redactors:
            value = redactor.learn_and_mask(value)
        return self._masking.redactor(counted=False).learn_and_mask(value)

    def _sessions(self) -> list[tuple[str, str]]:
        """The agent and the id of each session in which something was found."""
        return [(row["agent"], row["session"]) for row in self.rows]

    def _files(self) -> set[str]:
        """The files that a run without --yes would clean."""
        return set() if self._write else {file["path"] for row in self.rows for file in row["files"]}

    def _print_rest(self, left: list[str]) -> None:
        for row in self.refused:
            for file in row["files"]:
                print_message(
                    self._masked(
                        f"clew: not scrubbed: {row['agent']}:{row['session']}: {file['path']} {file['reason']}"
                    )
                )
        for path in left:
            print_message(self._masked(f"clew: not removed from {path}"))
        print_unscanned(self.unreadable)
        if not self.rows:
            print_message("nothing was changed" if self.refused or self.unreadable else "nothing found", mask=False)
        elif not self._write:
            print_message("nothing was changed; use --yes to change the files", mask=False)
        else:
            print_message(f"clew: the original files, with the secrets, are kept in {self._kept}; remove them later")


def _folder_name(session: StoredSession) -> str:
    """The folder for copies of a session's files. Its id is what its records say, and may be any text."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", f"{session.agent.id}-{session.id}")[:_LONGEST_NAME]


def _purge(library: Library, catalog: Path) -> None:
    """Erase what was cleaned from a catalog: from its rows, its text index, and the pages that it no longer uses."""
    from clew.catalog.sync import erase_deleted, sync

    try:
        sync(library.hosts, catalog, full=True)
        erase_deleted(catalog)
    except Busy:
        print_message(f"clew: not removed from {catalog}: another sync is running; run `clew sync --full` later")
