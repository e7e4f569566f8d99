"""Quotes values from sessions in shell commands that users read and paste."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable

from clew.render.text_safety import is_visible


def shell_word(text: str) -> str:
    """One word of a shell command, every character of it visible.

    Words with control or invisible characters become `$'...'`, which bash, zsh and ksh understand. It holds neither
    an apostrophe nor a backslash of the text's own, so a shell that does not understand it reads one wrong word and
    runs nothing.
    """
    if all(_is_shown(char) for char in text) and not _is_escape_in_fish(text):
        return shlex.quote(text)
    return "$'" + "".join(char if _is_kept(char) else _escaped(char) for char in text) + "'"


def shell_line(words: Iterable[str]) -> str:
    """A command of several words."""
    return " ".join(shell_word(word) for word in words)


def _is_shown(char: str) -> bool:
    return char.isprintable() and is_visible(char)


def _is_kept(char: str) -> bool:
    return _is_shown(char) and char not in "\\'!"


def _is_escape_in_fish(text: str) -> bool:
    """Inside single quotes fish takes a backslash before an apostrophe for an escape; other shells do not."""
    return "\\" in text and ("'" in text or text.endswith("\\"))


def _escaped(char: str) -> str:
    try:
        raw = os.fsencode(char)
    except UnicodeEncodeError:  # half of a character, which no file name holds
        raw = char.encode("utf-8", "surrogatepass")
    return "".join(f"\\x{byte:02x}" for byte in raw)
