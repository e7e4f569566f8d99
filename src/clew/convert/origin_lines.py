"""Which lines of a file bring an original along, and what the file says without them."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import msgspec

from clew.agents.target_profile import ORIGIN
from clew.io.compress import open_source

MARK = b'{"type":"clew-origin",'
"""How every such line begins: as we spell it, so that no line need be decoded to tell."""
_NAME = b'"clew-origin"'
_SOMEWHERE = re.compile(rb'\{\s*"type"\s*:\s*"clew-origin"')
"""Inside a text quotation marks are escaped, so this meets no words."""


class _Typed(msgspec.Struct):
    type: str = ""


def is_marked(line: bytes) -> bool:
    """True for a line of an original, also where another program spelled it anew or glued it to the line before."""
    if line.startswith(MARK):
        return True
    if _NAME not in line:
        return False
    try:
        return msgspec.json.decode(line, type=_Typed).type == ORIGIN
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _SOMEWHERE.search(line) is not None


def content_hash(path: Path) -> str:
    """The hash of a file without the lines of an original."""
    digest = hashlib.sha256()
    with open_source(path) as stream:
        for line in stream:
            if not is_marked(line):
                digest.update(line)
    return digest.hexdigest()
