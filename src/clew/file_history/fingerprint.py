"""Fingerprints of file contents, to compare any number of versions without keeping them."""

from __future__ import annotations

import hashlib
from typing import Literal, NamedTuple

from clew.agents.file_evidence import Absent, FileContent, KnownContent

Certainty = Literal["exact", "text", "unproved", "unknown"]
"""exact: every byte is proved. text: every character is, but not the line ends. unproved: it was so once. unknown: no
evidence.
"""
RANK: dict[Certainty, int] = {"exact": 3, "text": 2, "unproved": 1, "unknown": 0}


class Fingerprint(NamedTuple):
    """What is kept of one version of a file."""

    digest: str
    """SHA-256 of its bytes, in hex; "" where there was no file."""
    text: str
    """The same of its characters, whatever ends its lines."""
    size: int
    certainty: Certainty

    @property
    def is_absent(self) -> bool:
        return not self.digest


def fingerprint_of(state: KnownContent, certainty: Certainty = "exact") -> Fingerprint:
    """Return the fingerprint of a content; the certainty of inexact content is `text` at most."""
    if isinstance(state, Absent):
        return Fingerprint("", "", 0, certainty)
    if not state.exact and RANK[certainty] > RANK["text"]:
        certainty = "text"
    digest, characters = _hex(state.body), _characters(state.body)
    return Fingerprint(digest, digest if characters is state.body else _hex(characters), len(state.body), certainty)


def _hex(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def _characters(body: bytes) -> bytes:
    """Return the text of a file for comparison: as UTF-8, without a byte order mark, with "\\n" as line end.

    Agents record no more than that.
    """
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            body = body.decode("utf-16").encode()
        except UnicodeError:
            return body
    if body.startswith(b"\xef\xbb\xbf"):
        body = body[3:]
    return body.replace(b"\r\n", b"\n") if b"\r" in body else body


def agree(one: Fingerprint, other: Fingerprint) -> bool:
    """Return whether both can be fingerprints of the same content."""
    if one.certainty == other.certainty == "exact":
        return one.digest == other.digest
    return one.text == other.text


def weakened(state: KnownContent, certainty: Certainty) -> KnownContent:
    """Return the content, marked as inexact unless the certainty is exact."""
    if isinstance(state, FileContent) and certainty != "exact":
        return FileContent(state.body, False)
    return state
