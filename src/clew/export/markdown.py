"""A session as a Markdown file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO

from clew.model.json import JSON
from clew.render.branching import Forks
from clew.render.detail import Detail
from clew.render.markdown import markdown


def write_markdown(
    session: dict[str, JSON],
    messages: Iterable[dict[str, JSON]],
    out: IO[bytes],
    detail: Detail = "full",
    *,
    reminders: bool = True,
    forks: Forks | None = None,
) -> None:
    """Write the session, piece by piece: UTF-8, and LF on every system."""
    for piece in markdown(session, messages, detail=detail, reminders=reminders, forks=forks):
        out.write(piece.encode())
