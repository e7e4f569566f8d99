"""Which shell commands only read. Whatever is not plainly one of them may have changed any file."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from functools import lru_cache

_BETWEEN = frozenset({"&&", "||", ";", "|"})
_READERS = frozenset(
    "cat ls head tail wc grep egrep fgrep stat file pwd echo printf true false test [ which whoami date du df diff cmp "
    "cut nl md5sum sha1sum sha256sum basename dirname realpath readlink id uname hostname sleep cd type jq tr".split()
)
_FORBIDDEN = {
    "find": re.compile(r"-(?:exec|execdir|ok|okdir|delete|fls|fprint0?|fprintf)$"),
    "rg": re.compile(r"--(?:pre|hostname-bin)\b"),
    "tree": re.compile(r"-o|--output"),
    "sort": re.compile(r"-[a-zA-Z]*o|--(?:output|compress-program)|-[a-zA-Z]*T"),
    "date": re.compile(r"-s|--set"),
    "file": re.compile(r"-[a-zA-Z]*C|--compile"),
}
"""Readers with words that make them writers."""
_GIT = frozenset("status log diff show rev-parse ls-files ls-tree blame grep cat-file describe shortlog".split())
_GIT_FORBIDDEN = re.compile(r"--(?:output|ext-diff|textconv|open-files-in-pager)\b|-O")
_SED = re.compile(r"\d+(?:,(?:\d+|\$))?p")
_SPECIAL = re.compile(r"[`$(){}<>\n\\#]|(?<!&)&(?!&)")
_WILD = re.compile(r"[*?\[~]")
_QUOTED = re.compile(r"""\\.|'[^']*'|"(?:[^"$`\\]|\\[^$`\n])*\"""", re.DOTALL)
_QUIET = re.compile(r"(?<=\s)(?:2>&1|[12]?>\s?/dev/null)(?=\s|$)")


@lru_cache(maxsize=1024)
def is_read_only_command(command: str) -> bool:
    """True for commands in a row that each only read, without redirection, substitution or expansion."""
    command = _QUIET.sub("", command.strip())
    # Quoted text in which a shell expands nothing is left out.
    bare = _QUOTED.sub(lambda found: found[0] if found[0].startswith("\\") else "''", command)
    if not command or _SPECIAL.search(bare):
        return False
    # A name that a wildcard expands to could begin with a dash.
    wild = _WILD.search(bare) is not None
    try:
        words = shlex.shlex(command, posix=True, punctuation_chars=True)
        words.whitespace_split = True
        words.commenters = ""
        return all(_reads(one, wild) for one in _simple(list(words)))
    except ValueError:
        return False


def _simple(words: Sequence[str]) -> Iterator[list[str]]:
    one: list[str] = []
    for word in words:
        if word in _BETWEEN:
            yield one
            one = []
        else:
            one.append(word)
    yield one


def _reads(words: list[str], wild: bool) -> bool:
    if not words:
        return False
    name, rest = words[0], words[1:]
    if wild and (name in _FORBIDDEN or name in ("git", "sed")):
        return False
    forbidden = _FORBIDDEN.get(name)
    if forbidden is not None:
        return not any(forbidden.match(word) for word in rest)
    if name == "git":
        return _git_reads(rest)
    if name == "sed":
        has_options = any(word.startswith("-") for word in rest[2:])
        return len(rest) >= 2 and rest[0] == "-n" and _SED.fullmatch(rest[1]) is not None and not has_options
    return name in _READERS


def _git_reads(rest: list[str]) -> bool:
    while len(rest) >= 2 and rest[0] in ("-C", "--no-pager"):
        rest = rest[2:] if rest[0] == "-C" else rest[1:]
    return bool(rest) and rest[0] in _GIT and not any(_GIT_FORBIDDEN.match(word) for word in rest)
