"""Short names for sessions."""

from __future__ import annotations

LENGTH = 100


def short_title(text: str | None) -> str | None:
    """The beginning of a prompt on one line."""
    if text is None:
        return None
    line = " ".join(text[: LENGTH * 4].split())
    return line[: LENGTH - 1].rstrip() + "…" if len(line) > LENGTH else line or None
