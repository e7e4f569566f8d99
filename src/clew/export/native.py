"""A unified document back to an agent's own files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from clew.agents import registry
from clew.errors import InvalidDocument, WouldLose
from clew.export.reading import DocumentStream, exact_units
from clew.io.atomic import replacing
from clew.io.paths import safe_relative


def write_native(document: DocumentStream, home: Path, force: bool = False) -> list[Path]:
    """Write the session below `home`, in its agent's own layout; refuses to replace other content."""
    agent = registry.get(document.header.agent)
    with _refusing(), ExitStack() as stack:
        main = home / agent.target(document.header)
        files: dict[str, tuple[Path, IO[bytes]]] = {}
        for name, piece in agent.write(document.header, exact_units(agent, document)):
            if name not in files:
                path = main.parent / safe_relative(name) if name else main
                if path.exists() and not force:
                    raise WouldLose(f"{path} exists; --force replaces it")
                files[name] = (path, stack.enter_context(replacing(path)))
            files[name][1].write(piece)
        if "" not in files:
            stack.enter_context(replacing(main))
        return [path for path, _ in files.values()] or [main]


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
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise InvalidDocument(f"the document does not fit `clew schema`: {type(error).__name__}: {error}") from error
