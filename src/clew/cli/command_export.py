"""clew export: sessions as unified JSON, NDJSON, Markdown or HTML pages."""

from __future__ import annotations

import gc
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import click

from clew.cli.completion import complete_session
from clew.cli.options import OptionWithOldNames, common, filtering, open_library, take_filters
from clew.cli.output import open_output, print_message, refuse_stores
from clew.cli.redaction import DATA, STANDARD, TEXT, Redaction, redacting, redaction
from clew.cli.sessions import do_each, for_each_session
from clew.datadir import private_folder
from clew.errors import SourceUnreadable, UnknownReference, UsageError, WorkerDied
from clew.export.document import LINES, ONE_LINE, write_document
from clew.export.parallel import write_in_workers
from clew.io.compress import SUFFIXES
from clew.library import Library
from clew.model.json import JSON
from clew.model.time import spell_time
from clew.render.detail import DETAILS, Detail
from clew.render.tables import counted
from clew.stored_session import StoredSession

FORMATS = {"json": ".json", "ndjson": ".ndjson", "markdown": ".md", "html": ".html"}
_OTHER_NAMES = {"md": "markdown", "jsonl": "ndjson", "htm": "html"}
"""Other names of formats, for --format and as suffixes."""
_TEXT_FORMATS = ("markdown", "html")
_LAYOUTS = ("date", "project")
MAX_PART_BYTES = 64 << 20
"""A larger session is not written to a temporary file by a worker, but straight to the output by this process."""
_MAX_NAMED_SESSIONS = 20
"""An error names at most this many sessions."""
Masked = Counter[str]
"""How often each rule masked something."""


@click.command("export")
@click.argument("references", nargs=-1, metavar="[PATH|REF]...", shell_complete=complete_session)
@click.option(
    "--format",
    "form",
    cls=OptionWithOldNames,
    old_names=["--to"],
    type=click.Choice([*FORMATS, *_OTHER_NAMES]),
    metavar="FORMAT",
    help="json, ndjson, markdown (md) or html; default: from the suffix of -o, else json.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="A file, or a folder for several sessions; - for stdout.",
)
@click.option("--force", is_flag=True, help="Replace existing files.")
@click.option("--gz", is_flag=True, help="Compress with gzip.")
@click.option("--zst", is_flag=True, help="Compress with zstd.")
@click.option(
    "--detail",
    type=click.Choice(DETAILS),
    default="full",
    show_default=True,
    help="Markdown and HTML: how much to write.",
)
@click.option(
    "--site", type=click.Path(path_type=Path), metavar="DIR", help="Write HTML pages with an index to this folder."
)
@click.option("--carry", is_flag=True, help="HTML: include the JSON document in the page, for `clew import`.")
@click.option("--no-native", is_flag=True, help="JSON: only the messages, without the agent's own records.")
@click.option(
    "--layout", type=click.Choice(_LAYOUTS), help="With a folder: arrange native files by date or by project."
)
@redacting
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
    site: Path | None,
    carry: bool,
    no_native: bool,
    homes: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> int:
    """Write sessions as JSON, NDJSON, Markdown or HTML. Without a reference: all that pass the filters.

    A JSON file holds one session; several go to a folder, or to NDJSON with one document per line. Both hold everything
    and can be imported byte for byte, unless --redact is given; then the document says so. With --no-native they hold
    only the messages, not the agent's own records. Secrets in Markdown and HTML are masked unless --redact none is
    given. stderr says how much was masked, and that a JSON file is not.

    An HTML page is a single file. For one session it includes the sub-agents; in a folder each session has its own
    page, and --site adds an index.
    """
    output = None if output == STANDARD else output
    form = _OTHER_NAMES.get(form or "", form)
    form = _resolve_format(_format_of_file_name(form, output) if layout is None else form, site, carry, output)
    if as_json and form not in (None, "json"):
        raise UsageError(f"--json and --format {form} cannot be combined")
    if gz and zst:
        raise UsageError("--gz and --zst cannot be combined")
    if no_native and (form in _TEXT_FORMATS or layout is not None):
        raise UsageError("--no-native needs --format json or ndjson")
    library = open_library(context, homes)
    refuse_stores(library, site or output)
    found: list[StoredSession] = []
    unreadable = for_each_session(library, references, take_filters(options, library), found.append)
    if not found:
        raise UnknownReference("no session to export")
    if form is None and len(found) == 1 and layout is None:
        _refuse_unknown_suffix(output)
    if form not in (None, "ndjson") and len(found) > 1 and layout is None:
        _refuse_file_name(output)
    compression = "gzip" if gz else "zstd" if zst else None
    masking = redaction(context, TEXT if form in _TEXT_FORMATS and layout is None else DATA)
    if form == "html" and layout is None:
        return _write_pages(library, masking, found, site, output, detail, carry, compression, force) or (
            SourceUnreadable.exit_code if unreadable else 0
        )
    timestamp = spell_time(library.hosts[0].now())
    writer = Writer(form or "json", compression, detail, timestamp, force, masking, native=not no_native)
    with without_collector():
        if layout is not None:
            writer.copy_native_files(found, _folder(output), layout)
        elif form == "ndjson" or len(found) == 1:
            writer.write_to_one_file(found, output)
        else:
            writer.write_to_folder(found, _folder(output))
    if output is not None and not masking.is_on and not masking.was_asked:
        print_message("not masked; use --redact secrets to mask keys and passwords")
    return SourceUnreadable.exit_code if unreadable or writer.unreadable else 0


def _format_of_file_name(form: str | None, output: Path | None) -> str | None:
    """The format that the name of a file says, where nothing else does."""
    if output is None or output.is_dir():
        return form
    suffix = _suffix(output)
    suffix_format = next((name for name, known in FORMATS.items() if known == suffix), _OTHER_NAMES.get(suffix[1:]))
    if form is not None and suffix_format is not None and suffix_format != form:
        raise UsageError(f"{output.name} and --format {form} cannot be combined")
    return form or suffix_format


def _suffix(output: Path) -> str:
    return (output.with_suffix("") if output.suffix in SUFFIXES else output).suffix.lower()


def _refuse_file_name(output: Path | None) -> None:
    """Refuse to make a folder with the name of a file, such as sessions.html."""
    if output is not None and not output.is_dir() and _suffix(output):
        raise UsageError(f"{output.name}: several sessions go to a folder; name one without a suffix, or one session")


def _refuse_unknown_suffix(output: Path | None) -> None:
    """Refuse a file with an unknown suffix: the user does not expect JSON in it."""
    if output is not None and not output.is_dir() and _suffix(output):
        known = ", ".join(dict.fromkeys([*FORMATS.values(), *(f".{name}" for name in _OTHER_NAMES)]))
        raise UsageError(
            f"{output.name}: no format has the suffix {_suffix(output)}; known: {known}; or name one with --format"
        )


def _resolve_format(form: str | None, site: Path | None, carry: bool, output: Path | None) -> str | None:
    """The format that the options come to."""
    if site is not None and (form not in (None, "html") or output is not None):
        raise UsageError("--site writes HTML pages to a folder; it cannot be combined with another format or -o")
    if site is not None:
        return "html"
    if carry and form != "html":
        raise UsageError("--carry needs --format html or --site")
    return form


def _write_pages(
    library: Library,
    masking: Redaction,
    found: list[StoredSession],
    site: Path | None,
    output: Path | None,
    detail: Detail,
    carry: bool,
    compression: str | None,
    force: bool,
) -> int:
    from clew.cli.pages import Pages, Style

    pages = Pages(library, masking, Style(detail, carry, spell_time(library.hosts[0].now())))
    with without_collector():
        if site is None and len(found) == 1 and not (output is not None and output.is_dir()):
            with open_output(output, compression, force) as out:
                pages.one(found[0], out)
            return 0
        return pages.fill(found, _folder(site or output), force, with_index=site is not None)


@contextmanager
def without_collector() -> Iterator[None]:
    """Turn the garbage collector off.

    An export makes no reference cycles, and searching for them takes a tenth of the time.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _folder(output: Path | None) -> Path:
    if output is None:
        raise UsageError("several sessions: give a folder with -o, or use --format ndjson")
    private_folder(str(output))
    return output


class Writer:
    """Writes sessions in one format."""

    def __init__(
        self,
        form: str,
        compression: str | None,
        detail: Detail,
        timestamp: str,
        force: bool,
        masking: Redaction,
        *,
        native: bool = True,
    ) -> None:
        self.form, self.compression, self.detail, self.timestamp = form, compression, detail, timestamp
        self.force, self.masking, self.native = force, masking, native
        self.unreadable = 0

    def write(self, session: StoredSession, out: IO[bytes]) -> None:
        """One session."""
        with self.masking.counted_separately():
            session = self.masking.session(session)
            if self.form == "markdown":
                from clew.export.session_file import write_markdown_file

                write_markdown_file(session.agent, session.source, out, self.masking.masked, self.detail)
            else:
                layout = ONE_LINE if self.form == "ndjson" else LINES
                write_document(
                    session.agent, session.source, out, timestamp=self.timestamp, layout=layout, native=self.native
                )

    def write_to_one_file(self, sessions: list[StoredSession], target: Path | None) -> None:
        """All sessions into one file, or to stdout."""
        if target is not None and target.is_dir():
            return self.write_to_folder(sessions, target)

        done = 0
        with tempfile.TemporaryDirectory() as parts, open_output(target, self.compression, self.force) as out:

            def write_part(number: int) -> Masked | None:
                if sizes[number] >= MAX_PART_BYTES:
                    return None
                with self._separate_count(sessions[number]) as masked, Path(parts, str(number)).open("wb") as part:
                    self.write(sessions[number], part)
                return masked

            def append_part(session: StoredSession) -> None:
                nonlocal done
                number, masked = next(written)
                done = number + 1
                if masked is None:
                    return self.write(session, out)
                self.masking.masked.update(masked)
                with Path(parts, str(number)).open("rb") as part:
                    shutil.copyfileobj(part, out)
                return Path(parts, str(number)).unlink()

            sizes = self._sizes(sessions)
            with closing(write_in_workers(write_part, sizes)) as results:
                written = enumerate(results)
                try:
                    self.unreadable += do_each(sessions, append_part)
                except WorkerDied as error:
                    # A file is left as it was; stdout has the sessions before these.
                    raise _worker_died(error, sessions if target is not None else sessions[done:]) from error
            if self.unreadable == len(sessions):
                # Leaving this way, no empty file takes the place of what was there.
                raise click.exceptions.Exit(SourceUnreadable.exit_code)
        return None

    def write_to_folder(self, sessions: list[StoredSession], folder: Path) -> None:
        """Each session into a file of its own."""
        targets = list(self._targets(sessions, folder))

        def write(number: int) -> Masked:
            target = targets[number]
            if isinstance(target, SourceUnreadable):
                raise target
            with (
                self._separate_count(sessions[number]) as masked,
                open_output(target, self.compression, self.force, below=folder) as out,
            ):
                self.write(sessions[number], out)
            return masked

        def finish(_session: StoredSession) -> None:
            number, masked = next(written)
            self.masking.masked.update(write(number) if masked is None else masked)

        # Where a file is in the way, everything before it is written and nothing after.
        is_free = self.force or not any(isinstance(target, Path) and target.exists() for target in targets)
        sizes = self._sizes(sessions)
        before = [_inode(target) for target in targets]
        with closing(write_in_workers(write, sizes) if is_free else (None for _ in sizes)) as results:
            written = enumerate(results)
            try:
                self.unreadable += do_each(sessions, finish)
            except WorkerDied as error:
                inodes = zip(sessions, before, map(_inode, targets), strict=True)
                left = [session for session, old, new in inodes if new is None or new == old]
                raise _worker_died(error, left) from error
        print_message(
            f"{counted(len(sessions) - self.unreadable, 'file')} in {folder}, one for each session and sub-agent",
            mask=False,
        )

    def _targets(self, sessions: Sequence[StoredSession], folder: Path) -> Iterator[Path | SourceUnreadable]:
        """Where each session goes, or why it has no file name."""
        from clew.export.organise import free_name

        suffix = FORMATS[self.form] + {"gzip": ".gz", "zstd": ".zst", None: ""}[self.compression]
        taken: set[str] = set()
        for session in sessions:
            try:
                yield folder / (free_name(self.masking.file_name(session), taken) + suffix)
            except SourceUnreadable as error:
                yield error

    def _sizes(self, sessions: Sequence[StoredSession]) -> list[int]:
        """How much there is to do. The rules are loaded where processes may follow, which have them then."""
        if len(sessions) > 1:
            with suppress(SourceUnreadable):  # said when the first session needs them
                self.masking.prepare()
        return [session.source.size for session in sessions]

    @contextmanager
    def _separate_count(self, session: StoredSession) -> Iterator[Masked]:
        """Counts what is masked meanwhile, apart from the total: the parent never sees the total of a worker."""
        total, masked = self.masking.masked, Masked()
        self.masking.masked = masked
        try:
            yield masked
        finally:
            self.masking.masked = total
            session.forget()

    def copy_native_files(self, sessions: list[StoredSession], folder: Path, layout: str) -> None:
        """Copies of the native files, filed by date or by project."""
        from clew.export.organise import organise

        taken: set[str] = set()
        self.unreadable += do_each(
            sessions,
            lambda session: organise(
                session.source, self._header(session), folder, layout, taken, self.masking.files(session)
            ),
        )
        print_message(
            f"{counted(len(sessions) - self.unreadable, 'file')} in {folder}, one for each session and sub-agent",
            mask=False,
        )

    def _header(self, session: StoredSession) -> dict[str, JSON]:
        """What a session is filed under: its header as it may be seen. What is masked in it counts in its file."""
        if self.masking.is_on:
            session = session.redacted(self.masking.redactor(counted=False))
        return session.session_object


def _inode(target: Path | SourceUnreadable) -> int | None:
    """The inode of a file, which is another one once the file was replaced; None where there is no file."""
    try:
        return target.stat().st_ino if isinstance(target, Path) else None
    except OSError:
        return None


def _worker_died(error: WorkerDied, sessions: Sequence[StoredSession]) -> WorkerDied:
    """The error with the sessions that were not written."""
    names = [str(session.path) for session in sessions[:_MAX_NAMED_SESSIONS]]
    more = f" and {len(sessions) - len(names)} more" if len(sessions) > len(names) else ""
    return WorkerDied(f"{error}; {counted(len(sessions), 'session')} not written: {', '.join(names)}{more}")
