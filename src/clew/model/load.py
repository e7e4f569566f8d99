"""Unified documents as typed values, in and out. Documents of any minor version load, and lose nothing."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from clew.errors import InvalidDocument
from clew.model.document import Document
from clew.model.fields import move_unknown_to_extensions, to_builtins
from clew.model.json import JSON
from clew.model.version import SCHEMA_VERSION, check_version

_MARK = b"\xef\xbb\xbf"


def load_document(source: bytes | dict[str, JSON]) -> Document:
    """The document in a JSON text or value; raises InvalidDocument with the place of what is wrong."""
    value = _parse(source) if isinstance(source, bytes) else source
    if not isinstance(value, dict):
        raise InvalidDocument("$: a document is an object")
    if "schema_version" not in value:
        raise InvalidDocument("$: the required field `schema_version` is missing")
    check_version(value["schema_version"])
    try:
        return msgspec.convert(move_unknown_to_extensions(value, Document), Document)
    except msgspec.ValidationError as error:
        raise InvalidDocument(explain(error)) from error


def dump_document(document: Document) -> bytes:
    """The document as JSON text, with the fields of a newer version back in their places."""
    return msgspec.json.encode(to_builtins(document))


def _parse(text: bytes) -> JSON:
    try:
        return msgspec.json.decode(text.removeprefix(_MARK))
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise InvalidDocument(f"$: not JSON: {error}") from error


def explain(error: msgspec.ValidationError) -> str:
    """The error message, after the JSON path of the value."""
    what, _, where = str(error).partition(" - at `")
    return f"{where.rstrip('`') or '$'}: {what[:1].lower()}{what[1:]}"


def _unchanged(document: Document) -> Document:
    return document


# 1.1 and 1.2 only add optional fields and kinds of blocks.
_STEPS: list[tuple[tuple[int, int], Callable[[Document], Document]]] = [((1, 2), _unchanged)]


def migrate(document: Document, to: str = SCHEMA_VERSION) -> Document:
    """The document in a later version of the schema; an earlier one might not hold it, and is refused."""
    current, wanted = check_version(document.schema_version), check_version(to)
    if wanted < current or wanted > check_version(SCHEMA_VERSION):
        raise InvalidDocument(f"a document of version {document.schema_version} cannot be made one of {to}")
    for version, step in _STEPS:
        if current < version <= wanted:
            document = step(document)
    return msgspec.structs.replace(document, schema_version=to if wanted != current else document.schema_version)
