"""A unified document back to an agent's own files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import IO

import msgspec

from clew.agents import registry
from clew.agents.base import Unit, main_file
from clew.errors import InvalidDocument, WouldLose
from clew.export.document import canonical
from clew.export.reading import DocumentStream, NativeFile
from clew.io.atomic import replacing
from clew.io.paths import refuse_link_to_session, safe_below
from clew.model import Message, Record
from clew.redact.stamping import stamp_of
from clew.store.layout import refuse_copy


class Restored(msgspec.Struct):
    """The files that were written, and how they relate to the original."""

    files: list[Path]
    inexact: list[str] = []
    """Files that another tool has spelled anew: equal as JSON, but not byte for byte."""
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
    with _invalid_types(), ExitStack() as stack:
        main = main_file(agent, document.header, home)
        files: dict[str, IO[bytes]] = {}
        paths: dict[str, Path] = {}
        composed = from_messages or not document.native_files
        pieces = agent.encode(document.header, _units(document)) if composed else _native_pieces(document, inexact)
        # The main file is written even where the session is empty.
        for name, piece in chain([("", b"")], pieces):
            if name not in files:
                paths[name] = _free_path(main.parent / safe_below(name) if name else main, paths, force)
                refuse_link_to_session(paths[name], home)
                files[name] = stack.enter_context(replacing(paths[name]))
            files[name].write(piece)
    return Restored(list(paths.values()), inexact, not composed and _is_edited(document))


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
    for number, file in enumerate(document.native_files):
        name = file.path if number else ""
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


def _free_path(path: Path, taken: Mapping[str, Path], force: bool) -> Path:
    """A path to write to; refuses one that is there, or that the document names twice."""
    if path in taken.values():
        raise InvalidDocument(f"the document holds two files called {path.name}")
    if path.exists() and not force:
        raise WouldLose(f"{path} exists; --force replaces it")
    return path


@contextmanager
def _invalid_types() -> Iterator[None]:
    """Documents come from anywhere: one whose parts are not of the types they must be is refused."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise InvalidDocument(f"the document does not fit `clew schema`: {type(error).__name__}: {error}") from error
