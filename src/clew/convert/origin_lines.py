"""Which lines of a file bring an original along, and what the file says without them."""

from __future__ import annotations

import hashlib
from pathlib import Path

from clew.io.compress import open_source
from clew.redact.packed import is_origin_line

MARK = b'{"type":"clew-origin",'
"""How every such line begins: as we spell it, so that no line need be decoded to tell."""


def is_marked(line: bytes) -> bool:
    """True for a line of an original, also where another program spelled it anew or glued it to the line before."""
    return line.startswith(MARK) or is_origin_line(line)


def content_hash(path: Path) -> str:
    """The hash of a file without the lines of an original."""
    digest = hashlib.sha256()
    with open_source(path) as stream:
        for line in stream:
            if not is_marked(line):
                digest.update(line)
    return digest.hexdigest()
