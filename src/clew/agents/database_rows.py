"""The lines that `clew.agents.database` makes of rows, and the JSON that agents keep in their columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from clew.agents.database import DUMP_VERSION, HEADER_KEY
from clew.io.codec import NOT_JSON, dumps, loads
from clew.io.database_paths import FILE_SUFFIX
from clew.io.typed_records import RecordDecoder, decode_leniently, decode_value
from clew.model.json import JSON

T = TypeVar("T", bound=msgspec.Struct)


class Line(msgspec.Struct):
    """A line of the file: the header, a row, or one of an original that a converted session carries."""

    clew_rows: JSON = None
    agent: JSON = None
    schema: JSON = None
    session: JSON = None
    table: JSON = None
    row: JSON = None
    type: JSON = None


LINES = RecordDecoder(Line)


def decode_row(row: JSON, kind: type[T]) -> T:
    """A struct from the columns of a row; columns of other types are left out."""
    return decode_value(row, kind) if isinstance(row, dict) else kind()


def decode_json(text: str | None, kind: type[T]) -> T | None:
    """A struct from JSON text; fields of other types are left out. None for text that is not a JSON object."""
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        pass
    value = parse_json(text)
    return decode_leniently(value, kind) if isinstance(value, dict) else None


def parse_json(text: JSON) -> JSON:
    """The value of JSON text; None for anything else."""
    try:
        return loads(text.encode("utf-8", "surrogatepass")) if isinstance(text, str) else None
    except NOT_JSON:
        return None


def json_in_column(native: Mapping[str, JSON], column: str) -> JSON:
    """The value of the JSON text in a column of a native row; None where there is none."""
    row = native.get("row")
    return parse_json(row.get(column)) if isinstance(row, dict) else None


# Rows for a session that the agent imports: clew writes nothing into a database.

IMPORT_SUFFIX = ".json"


def header_line(agent: str, schema: str, session: JSON) -> bytes:
    """The first line of a file of rows."""
    return dumps({HEADER_KEY: DUMP_VERSION, "agent": agent, "schema": schema, "session": session}) + b"\n"


def row_line(table: str, row: Mapping[str, JSON]) -> bytes:
    """The line of a row."""
    return dumps({"table": table, "row": row}) + b"\n"


def import_file(main_file: str) -> str:
    """The file that the agent imports, beside the rows of a session."""
    return main_file.removesuffix(FILE_SUFFIX) + IMPORT_SUFFIX
