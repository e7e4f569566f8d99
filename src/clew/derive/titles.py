"""Short names for sessions."""

from __future__ import annotations

import re

LENGTH = 100
_WORD = re.compile(r"[!-~]+\Z")
_RUN = re.compile(r"[\w+~%-]+\Z", re.ASCII)


def short_title(text: str | None) -> str | None:
    """The beginning of a prompt on one line."""
    if text is None:
        return None
    begun = text[: LENGTH * 4]
    if len(begun) < len(text):
        begun = _WORD.sub("", begun) or begun
    line = " ".join(begun.split())
    if len(line) <= LENGTH:
        return line or None
    return _without_half_a_word(line).rstrip() + "…"


def _without_half_a_word(line: str) -> str:
    """The beginning of a line. Of what is cut in two, nobody could tell any more that it was a secret."""
    cut = line[: LENGTH - 1]
    if line[LENGTH - 1] in " …" or not line[LENGTH - 1].isascii():
        return cut
    return _WORD.sub("", cut).rstrip() or _RUN.sub("", cut)
