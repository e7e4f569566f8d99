"""Short names for sessions."""

from __future__ import annotations

LENGTH = 100
_IN_WORDS = "".join(map(chr, range(ord("!"), ord("~") + 1)))
_IN_RUNS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+~%-"


def short_title(text: str | None) -> str | None:
    """The beginning of a prompt on one line."""
    if text is None:
        return None
    begun = text[: LENGTH * 4]
    if len(begun) < len(text):
        begun = begun.rstrip(_IN_WORDS) or begun
    line = " ".join(begun.split())
    if len(line) <= LENGTH:
        return line or None
    return _without_half_a_word(line).rstrip() + "…"


def _without_half_a_word(line: str) -> str:
    """The beginning of a line. Of what is cut in two, nobody could tell any more that it was a secret."""
    cut = line[: LENGTH - 1]
    if line[LENGTH - 1] in " …" or not line[LENGTH - 1].isascii():
        return cut
    return cut.rstrip(_IN_WORDS).rstrip() or cut.rstrip(_IN_RUNS)
