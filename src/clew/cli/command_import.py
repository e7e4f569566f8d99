"""clew import: a unified document back to an agent's own files."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import click

from clew.agents.base import Agent, Header
from clew.agents.registry import claimant
from clew.agents.source import archive_damage
from clew.cli.options import common, force_option, wants_json
from clew.cli.output import print_json, print_message
from clew.convert.losses import Damage
from clew.errors import InvalidDocument, SourceUnreadable, UsageError
from clew.export.html import carried_document, is_page
from clew.export.native import Restored, copy_session_file, native_bytes, write_native
from clew.export.reading import read_documents
from clew.io.compress import open_source
from clew.io.unpacking import is_archive, unpack
from clew.model.json import JSON
from clew.redact.document_stamp import stamp_of
from clew.sources.local import at_path

_HEAD = 64


@click.command("import")
@click.argument("documents", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Home folder to write to, in the agent's own layout.",
)
@click.option("--stdout", is_flag=True, help="Print the session's main file instead of writing it.")
@force_option
@click.option("--from-messages", is_flag=True, help="Write new records from the messages instead of the original ones.")
@common
@click.pass_context
def command(
    context: click.Context,
    /,
    documents: tuple[Path, ...],
    output: Path | None,
    stdout: bool,
    force: bool,
    from_messages: bool,
    homes: tuple[str, ...],
    as_json: bool,
) -> int:
    """Restore the agent's own files from exported documents (.json, .ndjson, .html, also .gz and .zst).

    The files are the same as the originals, byte for byte, unless the document was masked or rewritten by another tool;
    stderr says so. Exit code 1: bytes or messages differ, or a part of a trajectory cannot be read.

    A trajectory of ATIF is copied as it is to .harbor/trajectories, where clew finds it. One without a message that can
    be read is refused.

    An archive (.tar, also .gz and .zst, and .zip) of a home folder, or of any folder with sessions, is unpacked into a
    new folder. An archive with links, or with names that lead outside of the folder, is refused as a whole. If one of
    several files cannot be imported, none is, unless --force is given.
    """
    for path in documents:
        if not path.exists():
            raise SourceUnreadable(f"{path}: no such file")
    if output is None and not stdout:
        raise UsageError("give a folder with -o, or use --stdout")
    written: list[dict[str, JSON]] = []
    is_unpacked = False
    try:
        for path in documents:
            if is_archive(path):
                if output is None:
                    raise UsageError(f"{path}: an archive needs a folder; give one with -o")
                files = unpack(path, output)
                is_unpacked = True
                print_message(f"{path}: {len(files)} files -> {output}")
                written += _sessions_in(output) if files else []
            else:
                for row in _imported(path, None if stdout else output, force, from_messages):
                    written.append(row)
    except BaseException:
        if not force and output is not None:
            _remove_written(output, is_unpacked, written)
        raise
    exact = all(row.pop("exact", True) for row in written)
    if wants_json(context, as_json):
        print_json(written)
    else:
        for row in written:
            print_message(f"{row['agent']}:{row['session_id']} -> {row['files'][0]}")
    return 0 if exact else 1


def _imported(path: Path, output: Path | None, force: bool, from_messages: bool) -> Iterator[dict[str, JSON]]:
    """Write the sessions of a file of documents below a home, or their main files to stdout."""
    found = False
    if (agent := claimant(path)) is not None and agent.export_format:
        # The file is itself a session, in a format that other tools exchange.
        yield _import_session_file(agent, path, output, force)
        return
    with _named_in_errors(path), _opened(path) as stream:
        for document in read_documents(stream):
            found = True
            if stamp_of(document.header.extensions) is not None:
                print_message(f"clew: {path}: was masked; the restored files are not the originals")
            if output is None:
                sys.stdout.buffer.writelines(native_bytes(document))
                continue
            restored = write_native(document, output, force, from_messages=from_messages)
            _warn(path, restored)
            yield {**_row(document.header, restored), "exact": not restored.inexact and not restored.is_edited}
    if not found:
        raise InvalidDocument(f"{path}: no unified document")


def _import_session_file(agent: Agent, path: Path, output: Path | None, force: bool) -> dict[str, JSON]:
    if output is None:
        raise UsageError(f"{path}: a session of {agent.title} is copied to a folder; give one with -o")
    source, damage, messages = agent.locate(path), Damage(), 0
    for unit in damage.seen(agent.units(source)):
        messages += unit.is_message
    losses = damage.losses(archive_damage(source) is not None)
    if not messages:
        raise InvalidDocument(f"{path}: no message can be read" + (f": {losses[0].why}" if losses else ""))
    header, copy = copy_session_file(agent, source, output, force)
    for loss in losses:
        print_message(f"clew: {path}: cannot read {loss.what}: {loss.why}")
    return {**_row(header, Restored([copy])), "exact": not losses}


def _row(header: Header, restored: Restored) -> dict[str, JSON]:
    return {
        "session_id": header.session["id"],
        "agent": header.agent,
        "files": [str(file) for file in restored.files],
        "inexact": restored.inexact,
        "edited": restored.is_edited,
    }


def _warn(path: Path, restored: Restored) -> None:
    for name in restored.inexact:
        print_message(
            f"clew: {path}: {name} was rewritten by another tool; the records are equal as JSON, but not byte for byte"
        )
    if restored.is_edited:
        print_message(
            f"clew: {path}: the messages were edited; the original records were restored (see --from-messages)"
        )


def _sessions_in(folder: Path) -> list[dict[str, JSON]]:
    """The sessions of a folder that an archive was unpacked into."""
    return [
        {"session_id": one.agent.session_id(one.source), "agent": one.agent.id, "files": [str(one.source.path)]}
        for one in at_path(folder)
    ]


def _remove_written(output: Path, is_unpacked: bool, written: list[dict[str, JSON]]) -> None:
    """Remove what was written; none of these files was there before."""
    if is_unpacked:
        # An archive is only unpacked into a new or empty folder.
        shutil.rmtree(output, ignore_errors=True)
        return
    for row in written:
        for file in row["files"]:
            Path(file).unlink(missing_ok=True)


@contextmanager
def _named_in_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except InvalidDocument as error:
        if str(error).startswith(f"{path}: "):
            raise
        raise InvalidDocument(f"{path}: {error}") from error


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """A file of documents, or the document that a page carries."""
    with open_source(path) as stream:
        carries = is_page(stream.read(_HEAD))
    with open_source(path) as stream:
        if not carries:
            yield stream
            return
        with carried_document(stream, str(path)) as document:
            yield document
