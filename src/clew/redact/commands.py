"""The credential file that a command prints, if that is all it does: then its output is what the file holds."""

from __future__ import annotations

import re
from functools import lru_cache

from clew.model.json import JSON
from clew.redact.credential_files import find_in_credential_file

_PROBE = b'A_NAME="some value that is long enough"\n{"a_name": "some value that is long enough"}\n'
_LONGEST = 4096
_WORD = re.compile(r"""[^\s'"<>()=,]+""")
_BETWEEN = re.compile(r"&&|\|\||[;\n|]")
_SHELLS = frozenset("bash sh zsh".split())
_READERS = frozenset(
    "cat head tail less more bat sed grep rg awk cut sort nl strings type gc get-content jq yq base64".split()
)
_QUIET = frozenset("cd pushd popd export set source . sudo wc uniq tr".split())


@lru_cache(maxsize=4096)
def is_credential_file(path: str) -> bool:
    """True for a file that holds secrets by its very name."""
    return len(path) < _LONGEST and bool(find_in_credential_file(_PROBE, path))


def read_by(command: JSON) -> str | None:
    """The credential file that a command, as text or as words, prints and nothing else."""
    if type(command) is list:
        command = " ".join(word for word in command if type(word) is str)
    if type(command) is not str or len(command) > _LONGEST:
        return None
    found = None
    for step in _BETWEEN.split(command):
        words = _own(_WORD.findall(step))
        if not words:
            continue
        if words[0].lower() in _READERS:
            found = found or next((word for word in words[1:] if is_credential_file(word)), None)
        elif words[0] not in _QUIET:
            return None
    return found


def _own(words: list[str]) -> list[str]:
    """The words without the shell or the `sudo` before them."""
    while words and (words[0].rpartition("/")[2] in _SHELLS or words[0] in ("sudo", "-c", "-lc")):
        words = words[1:]
    return words
