"""clew export: sessions as unified JSON, NDJSON, Markdown or HTML pages, and in formats of other tools."""

from __future__ import annotations

import gc
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

import click

from clew import __version__
from clew.cli.completion import complete_session
from clew.cli.losses import print_losses, print_summary_of_losses
from clew.cli.options import OptionWithOldNames, common, filtering, force_option, open_library, take_filters
from clew.cli.output import open_output, print_message, refuse_stores
from clew.cli.redaction import STANDARD, Redaction, redacting, redaction
from clew.cli.sessions import do_each, for_each_session, user_titles
from clew.convert.losses import Loss
from clew.datadir import private_folder
from clew.errors import SourceUnreadable, UnknownReference, UsageError, WorkerDied, WouldLose
from clew.export.document import LINES, ONE_LINE, write_document
from clew.export.parallel import write_in_workers
from clew.interchange.formats import FORMATS, format_of_name, write_session
from clew.io.compress import SUFFIXES
from clew.library import Library
from clew.model.json import JSON
from clew.model.time import spell_time
from clew.render.detail import DETAILS, Detail
from clew.render.tables import counted
from clew.stored_session import StoredSession

_OTHER_NAMES = {other: name for name, form in FORMATS.items() for other in form.other_names}
_LAYOUTS = ("date", "project")
MAX_PART_BYTES = 64 << 20
"""A larger session is not written to a temporary file by a worker, but straight to the output by this process."""
_FOR_EACH = "one for each session and sub-agent"
_MAX_NAMED_SESSIONS = 20
"""An error names at most this many sessions."""


class Written(NamedTuple):
    """What is known of sessions that were written."""

    masked: Counter[str]
    """How often each rule masked something."""
    losses: list[list[Loss]]
    """What the format could not hold of each session."""


@click.command("export")
@click.argument("references", nargs=-1, metavar="[PATH|REF]...", shell_complete=complete_session)
@click.option(
    "--format",
    "form",
    cls=OptionWithOldNames,
    old_names=["--to"],
    type=click.Choice([*FORMATS, *_OTHER_NAMES]),
    metavar="FORMAT",
    help="json, ndjson, markdown (md), html, atif, otel or hf; default: from the suffix of -o, else json.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="A file, or a folder for several sessions; - for stdout.",
)
@force_option
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
@click.option("--with-content", is_flag=True, help="otel: include messages, arguments and results.")
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
    with_content: bool,
    homes: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> int:
    """Write sessions as JSON, Markdown, HTML or for other tools. Without a reference: all that pass the filters.

    A JSON file holds one session; several go to a folder, or to NDJSON with one document per line. Both hold everything
    and can be imported byte for byte, unless --redact is given; then the document says so. With --no-native they hold
    only the messages, not the agent's own records. Secrets in all other formats are masked unless --redact none is
    given. stderr says how much was masked, and that a JSON file is not.

    An HTML page is a single file. For one session it includes the sub-agents; in a folder each session has its own
    page, and --site adds an index.

    atif writes trajectories of the Agent Trajectory Interchange Format, otel spans of OpenTelemetry without content, hf
    a folder with a dataset for the Hugging Face Hub. stderr says what these formats cannot hold.
    """
    output = None if output == STANDARD else output
    form = _OTHER_NAMES.get(form or "", form)
    form = _resolve_format(_format_of_file_name(form, output) if layout is None else form, site, carry, output)
    if as_json and form not in (None, "json"):
        raise UsageError(f"--json and --format {form} cannot be combined")
    if gz and zst:
        raise UsageError("--gz and --zst cannot be combined")
    _check_format_options(form, output, layout, no_native=no_native, with_content=with_content, compress=gz or zst)
    library = open_library(context, homes)
    refuse_stores(library, site or output)
    found: list[StoredSession] = []
    unreadable = for_each_session(library, references, take_filters(options, library), found.append)
    if not found:
        raise UnknownReference("no session to export")
    if form is None and len(found) == 1 and layout is None:
        _refuse_unknown_suffix(output)
    selected = FORMATS[form or "json"]
    if selected.module:
        found = _without_embedded_subagents(found)
    if form is not None and not selected.is_one_per_line and layout is None and (len(found) > 1 or selected.is_dataset):
        _refuse_file_name(output, "a dataset is" if selected.is_dataset else "several sessions go to")
    compression = "gzip" if gz else "zstd" if zst else None
    if layout is None and (selected.is_one_per_line or len(found) == 1):
        _refuse_wrong_compression_suffix(output, compression)
    masking = redaction(context, for_programs=not selected.is_masked or layout is not None)
    if form == "html" and layout is None:
        return _write_pages(library, masking, found, site, output, detail, carry, compression, force) or (
            SourceUnreadable.exit_code if unreadable else 0
        )
    timestamp = spell_time(library.hosts[0].now())
    writer = Writer(library, form or "json", compression, detail, timestamp, force, masking, native=not no_native)
    writer.options = {"clew_version": __version__, **({"with_content": True} if with_content else {})}
    with without_collector():
        if layout is not None:
            writer.copy_native_files(found, _folder(output), layout)
        elif selected.is_dataset:
            writer.write_dataset(found, _folder(output))
        elif selected.is_one_per_line or len(found) == 1:
            writer.write_to_one_file(found, output)
        else:
            writer.write_to_folder(found, _folder(output))
    if selected.module and layout is None:
        if len(found) == 1:
            losses = [loss for losses in writer.losses for loss in losses]
            print_losses(losses, "the file lists all" if selected.lists_losses else "--format atif lists all")
        else:
            print_summary_of_losses(writer.losses)
        if len(found) > 1 and selected.lists_losses:
            print_message("each file lists what it cannot hold")
    if output is not None and not masking.is_on and not masking.was_asked:
        print_message("not masked; use --redact secrets to mask keys and passwords")
    return SourceUnreadable.exit_code if unreadable or writer.unreadable else 0


def _check_format_options(
    form: str | None, output: Path | None, layout: str | None, *, no_native: bool, with_content: bool, compress: bool
) -> None:
    """Refuse options that the format does not have."""
    if form == "hf" and (output is None or compress):
        raise UsageError("--format hf writes a folder: name one with -o, and do not compress it")
    if no_native and (form not in (None, "json", "ndjson") or layout is not None):
        raise UsageError("--no-native needs --format json or ndjson")
    if layout is not None and form is not None and FORMATS[form].module:
        raise UsageError(f"--layout arranges native files; it cannot be combined with --format {form}")
    if with_content and form != "otel":
        raise UsageError("--with-content needs --format otel")


def _without_embedded_subagents(sessions: list[StoredSession]) -> list[StoredSession]:
    """The sessions without those that are written with the session that started them."""
    embedded: set[tuple[str, str]] = set()
    for session in sessions if len(sessions) > 1 else ():
        with suppress(SourceUnreadable):
            links = session.session_object.get("subagents") or ()
            embedded |= {(session.agent.id, link["session_id"]) for link in links if link.get("session_id")}
        session.forget()
    return [session for session in sessions if (session.agent.id, session.id) not in embedded] or sessions


def _format_of_file_name(form: str | None, output: Path | None) -> str | None:
    """The format that the name of a file says, where nothing else does."""
    if output is None or output.is_dir():
        return form
    named = format_of_name(_plain_name(output))
    if form is not None and named is not None and named != form and not FORMATS[form].suffix.endswith(_suffix(output)):
        raise UsageError(f"{output.name} and --format {form} cannot be combined")
    return form or named


def _plain_name(output: Path) -> str:
    """The name of a file in small letters, without the suffix of a compression."""
    return (output.with_suffix("") if output.suffix in SUFFIXES else output).name.lower()


def _suffix(output: Path) -> str:
    return Path(_plain_name(output)).suffix


def _refuse_file_name(output: Path | None, what_is: str) -> None:
    """Refuse to make a folder with the name of a file, such as sessions.html."""
    if output is not None and not output.is_dir() and _suffix(output):
        raise UsageError(f"{output.name}: {what_is} a folder; name one without a suffix")


def _refuse_wrong_compression_suffix(output: Path | None, compression: str | None) -> None:
    """Refuse to write a compressed file whose suffix says otherwise."""
    if output is None or output.is_dir() or not output.suffix or compression is None:
        return
    if SUFFIXES.get(output.suffix) != compression:
        suffix = next(suffix for suffix, name in SUFFIXES.items() if name == compression)
        plain = output.stem if output.suffix in SUFFIXES else output.name
        raise UsageError(f"{output.name}: with --{suffix[1:]}, name the file {plain}{suffix}")


def _refuse_unknown_suffix(output: Path | None) -> None:
    """Refuse a file with an unknown suffix: the user does not expect JSON in it."""
    if output is not None and not output.is_dir() and _suffix(output):
        suffixes = (form.suffix for form in FORMATS.values())
        known = ", ".join(dict.fromkeys([*suffixes, *(f".{name}" for name in _OTHER_NAMES)]))
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
        library: Library,
        form: str,
        compression: str | None,
        detail: Detail,
        timestamp: str,
        force: bool,
        masking: Redaction,
        *,
        native: bool = True,
    ) -> None:
        self.library, self.form, self.compression = library, form, compression
        self.detail, self.timestamp = detail, timestamp
        self.force, self.masking, self.native = force, masking, native
        self.unreadable = 0
        self.titles = user_titles() if form == "markdown" else {}
        self.options: dict[str, Any] = {}
        """For `write` of the module of the format."""
        self.losses: list[list[Loss]] = []
        """What the format could not hold of each session that was written."""

    def write(self, session: StoredSession, out: IO[bytes]) -> None:
        """Write one session, and add what the format could not hold of it to the losses."""
        with self.masking.counted_separately():
            session = self.masking.session(session)
            if self.form == "markdown":
                from clew.export.session_file import write_markdown_file

                title = self.titles.get((session.agent.id, session.id), "")
                write_markdown_file(session.agent, session.source, out, self.masking.masked, self.detail, title=title)
            elif FORMATS[self.form].module:
                find = self.library.subagents(session)
                form = FORMATS[self.form]
                self.losses.append(write_session(form, session.agent, session.source, find, out, self.options))
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

            def write_part(number: int) -> Written | None:
                if sizes[number] >= MAX_PART_BYTES:
                    return None
                with self._counted_separately(sessions[number]) as counts, Path(parts, str(number)).open("wb") as part:
                    self.write(sessions[number], part)
                return counts

            def append_part(session: StoredSession) -> None:
                nonlocal done
                number, counts = next(written)
                done = number + 1
                if counts is None:
                    return self.write(session, out)
                self._add(counts)
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

        def write(number: int) -> Written:
            target = targets[number]
            if isinstance(target, SourceUnreadable):
                raise target
            with (
                self._counted_separately(sessions[number]) as counts,
                open_output(target, self.compression, self.force, below=folder) as out,
            ):
                self.write(sessions[number], out)
            return counts

        def finish(_session: StoredSession) -> None:
            number, counts = next(written)
            self._add(write(number) if counts is None else counts)

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
        each = "one for each session, with its sub-agents" if FORMATS[self.form].module else _FOR_EACH
        print_message(f"{counted(len(sessions) - self.unreadable, 'file')} in {folder}, {each}", mask=False)

    def write_dataset(self, sessions: list[StoredSession], folder: Path) -> None:
        """A dataset of agent traces: each session below the folder of its agent, and a dataset card."""
        from clew.export.organise import free_name
        from clew.interchange.hugging_face import CARD, dataset_card, find_traces
        from clew.interchange.thread import Thread

        taken: set[str] = set()
        done: set[tuple[Path, str]] = set()
        """The file and the id of each trace: two sessions can have a sub-agent in common."""
        counts: Counter[str] = Counter()
        if (folder / CARD).exists() and not self.force:
            raise WouldLose(f"{folder / CARD} exists; use --force to replace it")

        def write(session: StoredSession) -> None:
            masked, agent, losses = self.masking.session(session), session.agent.id, list[Loss]()
            for trace in find_traces(Thread(masked.agent, masked.source, self.library.subagents(session))):
                if (key := (trace.thread.source.path, trace.id)) in done:
                    continue
                done.add(key)
                name = free_name(f"{agent}-{trace.id}", taken).removeprefix(f"{agent}-")
                with open_output(folder / "sessions" / agent / f"{name}.jsonl", None, self.force, below=folder) as out:
                    found = trace.write(out)
                losses += [loss.in_subagent(trace.id) for loss in found] if trace.is_subagent else found
                counts[agent] += 1
            self.losses.append(losses)
            masked.forget()

        self.unreadable += do_each(sessions, write)
        with open_output(folder / CARD, None, self.force, below=folder) as out:
            out.write(dataset_card(counts, self.masking.profile))
        print_message(f"{counted(counts.total(), 'file')} in {folder}, {_FOR_EACH}, and {CARD}", mask=False)

    def _targets(self, sessions: Sequence[StoredSession], folder: Path) -> Iterator[Path | SourceUnreadable]:
        """Where each session goes, or why it has no file name."""
        from clew.export.organise import free_name

        suffix = FORMATS[self.form].suffix + {"gzip": ".gz", "zstd": ".zst", None: ""}[self.compression]
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
    def _counted_separately(self, session: StoredSession) -> Iterator[Written]:
        """Count what is masked and lost apart from the total: the parent never sees the total of a worker."""
        total, losses = self.masking.masked, self.losses
        counts = Written(Counter(), [])
        self.masking.masked, self.losses = counts
        try:
            yield counts
        finally:
            self.masking.masked, self.losses = total, losses
            session.forget()

    def _add(self, counts: Written) -> None:
        self.masking.masked.update(counts.masked)
        self.losses += counts.losses

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
        print_message(f"{counted(len(sessions) - self.unreadable, 'file')} in {folder}, {_FOR_EACH}", mask=False)

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
