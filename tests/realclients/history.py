"""What a client sent to its model, in words that are the same for every protocol."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

JSON = Any
"""Any JSON value: this is the raw boundary."""

Kind = Literal["user", "answer", "call", "result", "thinking", "image"]


class Entry(NamedTuple):
    """One thing that was said or done. A call has a name and an input; an image has its hash as text."""

    kind: Kind
    text: str = ""
    name: str = ""
    input: JSON = None


def image(data: str) -> Entry:
    """An image, by the hash of its bytes."""
    return Entry("image", hashlib.sha256(base64.b64decode(data)).hexdigest())


def without(entries: Iterable[Entry], marks: Sequence[str]) -> list[Entry]:
    """The entries without the words that a client puts into a user's mouth, told by how they begin."""
    return [entry for entry in entries if not (entry.kind == "user" and entry.text.lstrip().startswith(tuple(marks)))]


def texts(entries: Iterable[Entry], *kinds: Kind) -> list[str]:
    """The texts of the entries of these kinds, in order."""
    return [entry.text for entry in entries if entry.kind in kinds]
