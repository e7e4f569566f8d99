"""Output: results on stdout, messages on stderr, files written completely or not at all.

Every command loads this, so what only some of its functions need is imported there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from clew.errors import ClewError, UsageError, WouldLose
from clew.io.paths import refuse_link_on_way

if TYPE_CHECKING:
    from clew.cli.redaction import Redaction
    from clew.library import Library
    from clew.model.json import JSON
    from clew.render.tables import Column


def print_json(value: JSON) -> None:
    """One JSON value, readable on a terminal and compact in a pipe."""
    import msgspec

    from clew.io.codec import dumps

    text = dumps(value)
    if sys.stdout.isatty():
        text = msgspec.json.format(text, indent=2)
    sys.stdout.buffer.write(text + b"\n")


def print_line(value: JSON) -> None:
    """One JSON value on one line."""
    from clew.io.codec import dumps

    sys.stdout.buffer.write(dumps(value) + b"\n")


class CsvOutput:
    """Where CSV goes: stdout. On a terminal, control sequences are shown and not obeyed; a pipe or file gets them."""

    def write(self, text: str) -> int:
        """Write some text."""
        from clew.render.text_safety import visible

        return sys.stdout.write(visible(text) if sys.stdout.isatty() else text)


def print_table(columns: Sequence[Column], cells: Sequence[Sequence[str]], masking: Redaction | None) -> None:
    """A table: fitted to a terminal, as wide as it needs to be in a pipe.

    Cells are masked before they are cut to fit. Without masking no cell may come from a session.
    """
    import click

    from clew.render.tables import table

    if masking is not None:
        # Cells are masked separately: a project called `password` does not make the next number a secret.
        known = list(dict.fromkeys(cell for row in cells for cell in row))
        shown = dict(zip(known, masking.names(known), strict=True))
        cells = [[shown[cell] for cell in row] for row in cells]
    for line in table(columns, cells, width=terminal_width(), color=use_color()):
        click.echo(line, nl=False)


def terminal_width() -> int | None:
    """The width of the terminal; None where stdout is not a terminal, so that nothing is cut in a pipe."""
    import shutil

    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def use_color() -> bool:
    """True where stdout is a terminal and NO_COLOR is not set."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def print_message(text: str, *, mask: bool = True) -> None:
    """Print a message to stderr. It is masked, unless `mask` is false: then it must hold nothing of a session."""
    from clew.render.text_safety import visible

    if mask:
        from clew.cli.redaction import masked_for_people

        try:
            text = masked_for_people(text)
        except ClewError as error:
            # A command must not fail because a message of it cannot be masked.
            from clew.redact.scanner import redact

            text = f"clew: a message is not shown, because it cannot be masked: {redact(str(error))}"
    if sys.stderr is not None:
        sys.stderr.write(f"{visible(text)}\n")
        sys.stderr.flush()


@contextmanager
def open_output(
    target: Path | None,
    compression: str | None = None,
    force: bool = False,
    *,
    durable: bool = True,
    below: Path | None = None,
) -> Iterator[IO[bytes]]:
    """Stdout, or a file that appears when it is complete; compressed on demand or by its suffix.

    A link that the user names is followed. One that stands in the place of a file below a folder that the user named
    (`below`) is refused: it may have come with a repository.
    """
    from clew.io.compress import SUFFIXES

    if target is not None:
        if below is not None:
            refuse_link_on_way(below, target)
        compression = compression or SUFFIXES.get(target.suffix)
        with _replaced(target.resolve(), force, durable) as raw, _packed(raw, compression) as out:
            yield out
        return
    with _packed(sys.stdout.buffer, compression) as out:
        yield out
    sys.stdout.flush()


@contextmanager
def _replaced(target: Path, force: bool, durable: bool) -> Iterator[IO[bytes]]:
    """A device or a pipe is written to; a file that is there is only replaced by force."""
    if target.exists() and not target.is_file():
        with target.open("wb") as raw:
            yield raw
        return
    if target.exists() and not force:
        raise WouldLose(f"{target} exists; use --force to replace it")
    from clew.io.atomic import replacing

    with replacing(target, durable=durable) as raw:
        yield raw


def refuse_stores(library: Library, output: Path | None) -> None:
    """Refuse to write into a folder that an agent keeps its sessions in."""
    from clew.agents import registry

    if output is None:
        return
    for host in library.hosts:
        for agent in registry.load_all():
            for root in agent.roots(host):
                if root.is_dir() and output.resolve().is_relative_to(root.resolve()):
                    raise UsageError(f"{output} is in the folder of {agent.title}'s sessions; choose another place")


@contextmanager
def _packed(raw: IO[bytes], compression: str | None) -> Iterator[IO[bytes]]:
    if compression is None:
        yield raw
        return
    from clew.io.compress import packer

    out = packer(compression)(raw)
    yield out
    out.close()
