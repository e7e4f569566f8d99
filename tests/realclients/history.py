"""The history that a client sent to its model, in one form for all protocols."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

JSON = Any
"""Any JSON value: this is the raw boundary."""

Kind = Literal["user", "answer", "call", "result", "thinking", "image"]


class Entry(NamedTuple):
    """One part of the history. A call has a name and an input; an image has the hash of its bytes as text."""

    kind: Kind
    text: str = ""
    name: str = ""
    input: JSON = None


def image(data: str) -> Entry:
    """An image, by the hash of its bytes."""
    return Entry("image", hashlib.sha256(base64.b64decode(data)).hexdigest())


def without_injected(entries: Iterable[Entry], prefixes: Sequence[str]) -> list[Entry]:
    """The entries without user texts that the client added itself, recognised by how they begin."""
    return [
        entry for entry in entries if not (entry.kind == "user" and entry.text.lstrip().startswith(tuple(prefixes)))
    ]


def texts(entries: Iterable[Entry], *kinds: Kind) -> list[str]:
    """The texts of the entries of these kinds, in order."""
    return [entry.text for entry in entries if entry.kind in kinds]
