"""clew export: sessions as unified JSON, NDJSON or Markdown."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import click

from clew.cli.each import UNREADABLE, chosen, each
from clew.cli.options import common, filtering, library, take_filters
from clew.cli.output import opened, refuse_stores, say
from clew.errors import UnknownReference, UsageError
from clew.export.document import LINES, ONE_LINE, write_document
from clew.export.markdown import write_markdown
from clew.filters import Filters
from clew.library import StoredSession
from clew.model.time import spell_time
from clew.render.detail import DETAILS, Detail

FORMATS = {"json": ".json", "ndjson": ".ndjson", "markdown": ".md"}
_LAYOUTS = ("date", "project")


@click.command("export")
@click.argument("references", nargs=-1, metavar="[PATH|REF]...")
@click.option("--to", "form", type=click.Choice(list(FORMATS)), help="The format; json unless you say otherwise.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="A file, or a folder for several sessions.")
@click.option("--force", is_flag=True, help="Replace files that are there.")
@click.option("--gz", is_flag=True, help="Compress with gzip.")
@click.option("--zst", is_flag=True, help="Compress with zstd.")
@click.option(
    "--detail", type=click.Choice(DETAILS), default="full", show_default=True, help="Markdown: how much of it."
)
@click.option("--layout", type=click.Choice(_LAYOUTS), help="With a folder: native files filed by date or by project.")
@filtering
@common
@click.pass_context
def command(
    context: click.Context,
    /,
    references: tuple[str, ...],
    form: str | None,
    output: Path | None,
    force: bool,
    gz: bool,
    zst: bool,
    detail: Detail,
    layout: str | None,
    homes: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> int:
    """Write sessions out. Without a reference: all that pass the filters.

    JSON holds one session; several go to a folder, or to NDJSON, one document a line.
    """
    if as_json and form not in (None, "json"):
        raise UsageError(f"--json and --to {form} contradict each other")
    if gz and zst:
        raise UsageError("--gz and --zst contradict each other")
    shelf = library(context, homes)
    refuse_stores(shelf, output)
    found: list[StoredSession] = []
    unreadable = each(chosen(shelf, references), take_filters(options, shelf), found.append)
    if not found:
        raise UnknownReference("no session to export")
    compression = "gzip" if gz else "zstd" if zst else None
    writer = Writer(form or "json", compression, detail, spell_time(shelf.hosts[0].now()), force)
    with without_collector():
        if layout is not None:
            writer.file_away(found, _folder(output), layout)
        elif form == "ndjson" or len(found) == 1:
            writer.to_one(found, output)
        else:
            writer.to_folder(found, _folder(output))
    return UNREADABLE if unreadable or writer.unreadable else 0


@contextmanager
def without_collector() -> Iterator[None]:
    """Nothing here makes circles, and looking for them costs a tenth of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _folder(output: Path | None) -> Path:
    if output is None:
        raise UsageError("several sessions: name a folder with -o, or use --to ndjson")
    output.mkdir(parents=True, exist_ok=True)
    return output


class Writer:
    """Writes sessions in one format."""

    def __init__(self, form: str, compression: str | None, detail: Detail, timestamp: str, force: bool) -> None:
        self.form, self.compression, self.detail, self.timestamp = form, compression, detail, timestamp
        self.force = force
        self.unreadable = 0

    def write(self, session: StoredSession, out: IO[bytes]) -> None:
        """One session."""
        if self.form == "markdown":
            messages = (unit.value for unit in session.units() if unit.is_message)
            write_markdown(session.session_object, messages, out, self.detail)
            return
        layout = ONE_LINE if self.form == "ndjson" else LINES
        write_document(session.agent, session.source, out, timestamp=self.timestamp, layout=layout)

    def to_one(self, sessions: list[StoredSession], target: Path | None) -> None:
        """All sessions into one file, or to stdout."""
        if target is not None and target.is_dir():
            return self.to_folder(sessions, target)
        with opened(target, self.compression, self.force) as out:
            self.unreadable += each(sessions, Filters(), lambda session: self.write(session, out))
            if self.unreadable == len(sessions):
                # Leaving this way, no empty file takes the place of what was there.
                raise click.exceptions.Exit(UNREADABLE)
        return None

    def to_folder(self, sessions: list[StoredSession], folder: Path) -> None:
        """Each session into a file of its own."""
        from clew.export.organise import free_name

        suffix = FORMATS[self.form] + {"gzip": ".gz", "zstd": ".zst", None: ""}[self.compression]
        taken: set[str] = set()

        def write(session: StoredSession) -> None:
            target = folder / (free_name(f"{session.agent.id}-{session.id}", taken) + suffix)
            with opened(target, self.compression, self.force) as out:
                self.write(session, out)

        self.unreadable += each(sessions, Filters(), write)
        say(f"{len(sessions) - self.unreadable} sessions in {folder}")

    def file_away(self, sessions: list[StoredSession], folder: Path, layout: str) -> None:
        """Copies of the native files, filed by date or by project."""
        from clew.export.organise import organise

        taken: set[str] = set()
        self.unreadable += each(
            sessions,
            Filters(),
            lambda session: organise(session.source, session.session_object, folder, layout, taken),
        )
        say(f"{len(sessions) - self.unreadable} sessions in {folder}")
