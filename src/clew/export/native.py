"""A unified document back to an agent's own files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import IO

from clew.agents import registry
from clew.agents.base import main_file
from clew.errors import InvalidDocument, WouldLose
from clew.export.reading import DocumentStream, exact_units
from clew.io.atomic import replacing
from clew.io.paths import refuse_link_to_session, safe_relative
from clew.store.layout import refuse_copy


def write_native(document: DocumentStream, home: Path, force: bool = False) -> list[Path]:
    """Write the session below `home`, in its agent's own layout; refuses to replace what is there."""
    agent = registry.get(document.header.agent)
    refuse_copy(home)
    with _refusing(), ExitStack() as stack:
        main = main_file(agent, document.header, home)
        files: dict[str, IO[bytes]] = {}
        paths: dict[str, Path] = {}
        # The main file is written even where the session is empty.
        for name, piece in chain([("", b"")], agent.write(document.header, exact_units(agent, document))):
            if name not in files:
                paths[name] = _free(main.parent / safe_relative(name) if name else main, paths, force)
                refuse_link_to_session(paths[name], home)
                files[name] = stack.enter_context(replacing(paths[name]))
            files[name].write(piece)
        return list(paths.values())


def _free(path: Path, taken: Mapping[str, Path], force: bool) -> Path:
    """A path to write to; refuses one that is there, or that the document names twice."""
    if path in taken.values():
        raise InvalidDocument(f"the document holds two files called {path.name}")
    if path.exists() and not force:
        raise WouldLose(f"{path} exists; --force replaces it")
    return path


def native_bytes(document: DocumentStream) -> Iterator[bytes]:
    """The session's main file alone."""
    agent = registry.get(document.header.agent)
    with _refusing():
        for name, piece in agent.write(document.header, exact_units(agent, document)):
            if not name:
                yield piece


@contextmanager
def _refusing() -> Iterator[None]:
    """Documents come from anywhere: one whose parts are not of the types they must be is refused."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise InvalidDocument(f"the document does not fit `clew schema`: {type(error).__name__}: {error}") from error
