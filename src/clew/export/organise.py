"""Native session files filed in plain folders: by date or by project."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import BinaryIO

from clew.agents.base import SourceFile, open_main
from clew.analysis.session import project_of
from clew.io.atomic import replacing
from clew.io.compress import SUFFIXES
from clew.io.paths import file_name, refuse_link_on_way
from clew.model.json import JSON

Mask = Callable[[Callable[[], BinaryIO]], Iterable[bytes]]
"""Gives the masked bytes of a file, which it may open several times."""
_UNDATED = "undated"
_PIECE = 1 << 20


def free_name(text: str, taken: set[str]) -> str:
    """A file name made of untrusted text that no other session has taken; names may differ in case alone."""
    name = plain = file_name(text)
    number = 1
    while name.casefold() in taken:
        number += 1
        name = f"{plain}-{number}"
    taken.add(name.casefold())
    return name


def organise(
    source: SourceFile, session: dict[str, JSON], folder: Path, layout: str, taken: set[str], mask: Mask | None = None
) -> Path:
    """Copy a session's main file below `folder/sessions`, masked on demand; returns the copy."""
    day = (session["started_at"] or _UNDATED)[:10]
    name = free_name(session["id"], taken)
    plain = source.path.with_suffix("") if source.path.suffix in SUFFIXES else source.path
    if layout == "date":
        target = folder / "sessions" / day / f"session-{name}{plain.suffix}"
    else:
        target = folder / "sessions" / project_name(session["workspace"]) / f"{day}-{name}{plain.suffix}"
    refuse_link_on_way(folder, target)
    with open_main(source) as original, replacing(target) as copy:
        pieces = mask(partial(open_main, source)) if mask is not None else iter(lambda: original.read(_PIECE), b"")
        for piece in pieces:
            copy.write(piece)
    return target


def project_name(workspace: str) -> str:
    """The last component of a path, safe as the name of a folder."""
    last = project_of(workspace)
    return file_name(last) if last else "unknown"
