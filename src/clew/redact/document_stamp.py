"""Adds `redacted` to the extensions of a unified document that was masked: it is no longer the original."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO

from clew.errors import InvalidDocument
from clew.io.codec import NOT_JSON, dumps, loads
from clew.io.jsonstream import Scanner
from clew.model.json import JSON

OWN = "clew"
"""The key of clew itself in a document's extensions."""
BEGINNING = b'{"schema_version":'


def stamp_of(extensions: dict[str, JSON]) -> JSON:
    """Return what a document states about its redaction; None if nothing."""
    own = extensions.get(OWN)
    return own.get("redacted") if isinstance(own, dict) else None


def stamped(text: bytes, stamp: dict[str, JSON]) -> bytes:
    """Add the stamp to the text of a document; return any other text as it is."""
    return stamper(stamp)(text)


def stamper(stamp: dict[str, JSON]) -> Callable[[bytes], bytes]:
    """Return a function that adds the stamp to texts of documents."""
    member = b',"extensions":' + dumps({OWN: {"redacted": stamp}})

    def put(text: bytes) -> bytes:
        if not text.startswith(BEGINNING):
            return text
        try:
            if b"extensions" not in text and b"\\u" not in text and type(loads(text)) is dict:
                return _with_member(text, member)
            return _stamped(text, stamp, member)
        except NOT_JSON:
            return text
        except InvalidDocument:
            return text

    return put


def _stamped(text: bytes, stamp: dict[str, JSON], member: bytes) -> bytes:
    scanner = Scanner(BytesIO(text))
    for key in scanner.members():
        scanner.key_done()
        if key == "extensions" and scanner.peek() == b"{":
            start = scanner.offset
            own = scanner.value()
            masked = own.get(OWN) if isinstance(own.get(OWN), dict) else {}
            new = dumps({OWN: {**masked, "redacted": stamp}})[1:-1]
            if OWN in own:
                return text[:start] + dumps({**own, OWN: {**masked, "redacted": stamp}}) + text[scanner.offset :]
            return text[: start + 1] + new + (b"," if own else b"") + text[start + 1 :]
        scanner.skip()
    return _with_member(text, member)


def _with_member(text: bytes, member: bytes) -> bytes:
    end = text.rindex(b"}")
    return text[:end] + member + text[end:]
