"""Short names for sessions and commands."""

from __future__ import annotations

LENGTH = 100
_COMMAND_LENGTH = 60
_IN_WORDS = "".join(map(chr, range(ord("!"), ord("~") + 1)))
_IN_RUNS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+~%-"


def short_title(text: str | None) -> str | None:
    """The beginning of a prompt on one line."""
    return None if text is None else _short(text, LENGTH) or None


def short_command(text: str) -> str:
    """The beginning of a command on one line."""
    return _short(text, _COMMAND_LENGTH)


def _short(text: str, length: int) -> str:
    begun = text[: length * 4]
    if len(begun) < len(text):
        begun = begun.rstrip(_IN_WORDS) or begun
    line = " ".join(begun.split())
    return line if len(line) <= length else _without_half_a_word(line, length).rstrip() + "…"


def _without_half_a_word(line: str, length: int) -> str:
    """The beginning of a line. It is not cut inside of a word: half a secret is not recognized as a secret."""
    cut = line[: length - 1]
    if line[length - 1] in " …" or not line[length - 1].isascii():
        return cut
    return cut.rstrip(_IN_WORDS).rstrip() or cut.rstrip(_IN_RUNS)
