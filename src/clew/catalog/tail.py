"""What was appended to a source, taken in by itself: its cost is that of the new bytes, whatever stands before them.

Loads nothing heavy: the lines are few. Whatever is not regular is refused, and the source is read anew from its start.
"""

from __future__ import annotations

import json
import os
from collections import namedtuple

from clew.agents.told import Odd, merged
from clew.catalog.fresh import PRINT, print_of, prints_of, settled_time
from clew.catalog.header import names, session_row
from clew.catalog.rows import RowMaker, microseconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from typing import Any

    from clew.catalog.writing import RowWriter

MOST = 64 << 20
"""More than this is read as any other source."""


class Grown(namedtuple("Grown", "id path agent read_to carry prefix")):
    """A source that grew, as it is known."""

    __slots__ = ()


def grown(db: sqlite3.Connection, number: int, found: os.stat_result) -> Grown | None:
    """The source, where it is what it was and more; None where it must be read anew."""
    row = db.execute(
        "SELECT id, path, agent, read_to, carry, prefix, inode, size FROM source WHERE id = ?", (number,)
    ).fetchone()
    *known, inode, size = row
    source = Grown(*known)
    if not source.carry or source.agent not in _TAKES or inode != found.st_ino or found.st_size <= size or size < 0:
        return None
    try:
        is_same = print_of(source.path, source.read_to) == source.prefix[:PRINT]
    except OSError:
        return None
    return source if is_same and found.st_size - source.read_to <= MOST else None


def take(db: sqlite3.Connection, writer: RowWriter, source: Grown, now: int) -> tuple[int, int]:
    """Add what is new of a source. Returns the number of lines, and of characters of text. Raises `Odd`."""
    with open(source.path, "rb") as file:
        found = os.fstat(file.fileno())
        file.seek(source.read_to)
        text = file.read(max(0, found.st_size - source.read_to))
    end = text.rfind(b"\n") + 1
    problems = [] if end == len(text) else _torn(text[end:])
    try:
        return _TAKES[source.agent](db, writer, source, text[:end], found, now, problems)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        # What was carried over is not what it should be: nothing was written, and all is read anew.
        raise Odd from error


def _torn(rest: bytes) -> list[dict[str, Any]]:
    """What stands behind the last line end must be the beginning of a line, and no more than that."""
    try:
        json.loads(rest)
    except (ValueError, RecursionError):
        if rest.strip():
            return [{"code": "torn-tail", "line": 0}]
    raise Odd


def _claude(
    db: sqlite3.Connection,
    writer: RowWriter,
    source: Grown,
    text: bytes,
    found: os.stat_result,
    now: int,
    problems: list[dict[str, Any]],
) -> tuple[int, int]:
    from clew.agents.lean.claude_code import Line, Transcript

    carry = json.loads(source.carry)
    transcript = Transcript(source.path, carry["state"])
    maker = RowMaker(source.agent, carry["header"]["id"], source.id, carry["rows"])
    messages, used = maker.seq, maker.used
    lines = [Line(record) for record in _records(text)]
    maker.add(transcript.add(lines))
    header = transcript.header()
    if header["workspace"] != carry["workspace"]:
        raise Odd
    header = {**carry["header"], **header}
    for call in merged(transcript.calls):
        maker.use(call, header["git_branch"] or "")
    if names(header) != carry["title"]:
        maker.set_title(names(header), microseconds(header["ended_at"]))
    rows = maker.take_rows()
    uses, rows.uses = rows.uses, []
    writer.write(rows)
    writer.add_uses(source.id, uses)
    writer.session(source.id, session_row(source.agent, header, maker), messages, used)
    db.executemany("INSERT OR REPLACE INTO pending VALUES (?, ?)", [(doc, words) for doc, _, _, words in rows.texts])
    carry.update(state=transcript.state(), rows=maker.carry(), title=names(header), lines=carry["lines"] + len(lines))
    for problem in problems:
        problem["line"] = carry["lines"] + 1
    read_to = source.read_to + len(text)
    db.execute(
        "UPDATE source SET size = ?, mtime_ns = ?, ctime_ns = ?, read_to = ?, prefix = ?, carry = ?, problems = ?"
        " WHERE id = ?",
        (
            found.st_size,
            settled_time(found.st_mtime_ns, now),
            found.st_ctime_ns,
            read_to,
            prints_of(source.path, read_to, found.st_size),
            json.dumps(carry),
            json.dumps([*carry["problems"], *problems]),
            source.id,
        ),
    )
    return len(lines), sum(len(words) for _, _, _, words in rows.texts)


def _records(text: bytes) -> list[dict[str, Any]]:
    """The records of plain lines; a line that needs more care is refused."""
    try:
        lines = text.decode().split("\n")
    except UnicodeDecodeError:
        raise Odd from None
    records = []
    for line in lines[:-1]:
        # A half of a surrogate pair is text for one reader and none for another.
        if "\\ud" in line or "\\uD" in line:
            raise Odd
        try:
            record = json.loads(line, parse_constant=_refuse)
        except (ValueError, RecursionError):
            raise Odd from None
        if type(record) is not dict:
            raise Odd
        records.append(record)
    return records


def _refuse(_: str) -> None:
    raise Odd


_TAKES = {"claude-code": _claude}
