"""A unified document back to an agent's own files."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

import msgspec

from clew.agents import registry
from clew.agents.base import Agent, Header, Unit, main_file, open_main, session_object
from clew.agents.source import SourceFile
from clew.errors import InvalidDocument, WouldLose
from clew.export.document import canonical
from clew.export.reading import DocumentStream, NativeFile
from clew.io.atomic import replacing
from clew.io.paths import refuse_link_to_session, safe_below
from clew.model import SCHEMA_VERSION, Message, Record
from clew.redact.document_stamp import stamp_of
from clew.store.layout import refuse_copy


class Restored(msgspec.Struct):
    """The files that were written, and how they relate to the original."""

    files: list[Path]
    inexact: list[str] = []
    """Files that another tool has serialized again: equal as JSON, but not byte for byte."""
    is_edited: bool = False
    """The messages were edited; the native files were written as they are."""


def write_native(document: DocumentStream, home: Path, force: bool = False, *, from_messages: bool = False) -> Restored:
    """Write the session below `home`, in its agent's own layout; refuses to replace what is there.

    The native files that the document carries are written. Without them, or with `from_messages`, native records are
    composed from the messages.
    """
    agent = registry.get(document.header.agent)
    refuse_copy(home)
    inexact: list[str] = []
    composed = from_messages or not document.native_files
    with _invalid_types(), TemporaryDirectory(prefix="clew-") as staging, ExitStack() as stack:
        pieces = agent.encode(document.header, _units(document)) if composed else _native_pieces(document, inexact)
        staged = main_file(agent, document.header, Path(staging))
        names = _write_below(staged, pieces)
        if not composed:
            _refuse_other_files(agent, staged, names)
        main = main_file(agent, document.header, home)
        paths = {name: main.parent / name if name else main for name in names}
        for path in paths.values():
            _refuse_existing(path, home, force)
        for name, path in paths.items():
            written = stack.enter_context(replacing(path))
            with (staged.parent / name if name else staged).open("rb") as stream:
                shutil.copyfileobj(stream, written)
    return Restored(list(paths.values()), inexact, not composed and _is_edited(document))


def copy_session_file(agent: Agent, source: SourceFile, home: Path, force: bool = False) -> tuple[Header, Path]:
    """Copy the file of a session that is in no agent's folder to where the agent's sessions are below `home`."""
    refuse_copy(home)
    session = session_object(agent, source, agent.facts(source))
    header = Header(SCHEMA_VERSION, "", agent.id, session, {})
    path = main_file(agent, header, home)
    _refuse_existing(path, home, force)
    with open_main(source) as stream, replacing(path) as copy:
        shutil.copyfileobj(stream, copy)
    return header, path


def _refuse_existing(path: Path, home: Path, force: bool) -> None:
    """Refuse to replace a file without `force`, and a folder or the link to a session in any case."""
    if path.is_dir() or (path.exists() and not force):
        raise WouldLose(f"{path} exists" + ("; it is a folder" if path.is_dir() else "; use --force to replace it"))
    refuse_link_to_session(path, home)


def _write_below(main: Path, pieces: Iterator[tuple[str, bytes]]) -> list[str]:
    """Write the files of a session, the main one even where the session is empty; returns their names."""
    files: dict[str, IO[bytes]] = {}
    with ExitStack() as stack:
        for name, piece in chain([("", b"")], pieces):
            if name not in files:
                path = main.parent / safe_below(name) if name else main
                if path.exists():
                    raise InvalidDocument(f"the document holds two files called {path.name}")
                path.parent.mkdir(parents=True, exist_ok=True)
                files[name] = stack.enter_context(path.open("wb"))
            files[name].write(piece)
    return list(files)


def _refuse_other_files(agent: Agent, main: Path, names: list[str]) -> None:
    """Refuse files that do not belong to a session of the agent: they might take effect where they lie."""
    source = agent.locate(main)
    for name in names:
        if name and name not in (*source.parts, *source.sides):
            raise InvalidDocument(f"{name!r} is no file of a session of {agent.title}")


def native_bytes(document: DocumentStream) -> Iterator[bytes]:
    """The session's main file alone."""
    agent = registry.get(document.header.agent)
    with _invalid_types():
        if document.native_files:
            yield from _exact_lines(document, document.native_files[0], [])
            return
        for name, piece in agent.encode(document.header, _units(document)):
            if not name:
                yield piece


def _units(document: DocumentStream) -> Iterator[Unit]:
    for is_message, value in document.units():
        # Documents come from anywhere: encoders may rely on the types.
        msgspec.convert(value, Message if is_message else Record)
        yield Unit(is_message, value, 0, 0, 0, ())


def _native_pieces(document: DocumentStream, inexact: list[str]) -> Iterator[tuple[str, bytes]]:
    seen: set[str] = set()
    for number, file in enumerate(document.native_files):
        name = file.path if number else ""
        if name in seen:
            raise InvalidDocument(f"the document holds two files called {name or 'nothing'}")
        seen.add(name)
        yield name, b""
        for line in _exact_lines(document, file, inexact):
            yield name, line


def _exact_lines(document: DocumentStream, file: NativeFile, inexact: list[str]) -> Iterator[bytes]:
    lines, is_exact = document.restored_lines(file)
    if not is_exact:
        inexact.append(file.path)
    return lines


def _is_edited(document: DocumentStream) -> bool:
    """True where the messages of a document are not those that it was written with, and not for being masked."""
    if stamp_of(document.header.extensions) is not None:
        return False
    digest = hashlib.sha256()
    for message in document.messages():
        digest.update(canonical(message))
    return document.messages_sha256 is not None and digest.hexdigest() != document.messages_sha256


@contextmanager
def _invalid_types() -> Iterator[None]:
    """Documents come from anywhere: one whose parts are not of the types they must be is refused."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise InvalidDocument(f"the document does not fit `clew schema`: {type(error).__name__}: {error}") from error
