"""Read tables whose header names a secret: CSV, TSV, Markdown, and the columns of an SQL `INSERT`."""

from __future__ import annotations

import re
from functools import lru_cache

from clew.redact import secret_names
from clew.redact.lazy_pattern import lazy_compile
from clew.redact.matcher import Match
from clew.redact.value_checks import DIGITS, Written, count_of, count_random_chars, is_code, is_secret_value

# A header cell between separators, or the last of its line.
CONNECTION_PATTERNS = (r"[\"'`*\\]*(?:[ \t]*\||(?:[,;]|\t+)[A-Za-z\"'_\\]|[ \t|\\]*[\r\n])",)
CANDIDATE_PATTERNS = (r"\)[ \t\r\n]*(?i:values)[ \t\r\n]*\(",)
_MAX_LINE_BYTES = 1000
_MAX_TABLE_BYTES = 8000
_MAX_ROWS = 40
_MAX_COLUMNS_BYTES = 600
_MIN_RANDOM_BESIDE_TEXT = 16
_CACHED_LINES = 256
_HEADER_CELL = lazy_compile(rb"[\"'`* \t]*[A-Za-z_\x80-\xff][\w .()/\x80-\xff-]{0,40}[\"'`* \t]*")
_RULER = lazy_compile(rb"[ \t|:+=-]+")
_CELLS = {
    delimiter: lazy_compile(
        rb"(?:[ \t]*\\*\"((?:[^\"\\]|\"\")*)\\*\"[ \t]*|([^%b\r\n]*))(?:%b|\Z)" % (escaped, escaped)
    )
    for delimiter, escaped in ((b",", b","), (b";", b";"), (b"\t", rb"\t"), (b"|", rb"\|"))
}
_INSERT_COLUMNS = lazy_compile(rb"(?i)\(([^()]{3,500})\)[ \t\r\n]*values[ \t\r\n]*\Z")
_SQL_VALUE = lazy_compile(
    rb"[ \t\r\n]*[NnEe]?(?:'((?:[^'\\]|''|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"|([^,()'\"]*))[ \t\r\n]*(,|\))"
)


def match_name(text: bytes, name_start: int, name_end: int, meaning: str) -> tuple[tuple[Match, ...], int]:
    """Read the cells below a header cell, and the cell beside it in a Markdown table."""
    begin = max(
        0, name_start - _MAX_LINE_BYTES, text.rfind(b"\n", max(0, name_start - _MAX_LINE_BYTES), name_start) + 1
    )
    end = _end_of_line(text, name_end)
    delimiter = _delimiter(text, begin, name_start, name_end, end)
    if delimiter is None:
        return (), name_end
    hits = _cell_beside(text, begin, end, name_start, name_end, meaning) if delimiter == b"|" else []
    # Of a header that is cut off, or that no line follows, the columns cannot be compared with rows.
    is_whole_line = (begin == 0 or text[begin - 1] in b"\n\0") and text[end : end + 1] in (b"\r", b"\n", b"\\")
    header = _header_cells(text[begin:end], delimiter) if is_whole_line else ()
    name = name_start - begin, name_end - begin
    if name in header and len(header) > 1:
        hits += _cells_below(text, end, delimiter, len(header), header.index(name), meaning)
    return tuple(hits), hits[-1].end if hits else name_end


def _delimiter(text: bytes, begin: int, name_start: int, name_end: int, end: int) -> bytes | None:
    """Return what separates the cells of the line around a name."""
    after = text[name_end:end].lstrip(b"\"'`* \\")[:1]
    before = text[begin:name_start].rstrip(b"\"'`* \\")[-1:]
    return next((char for char in (after, before) if char in _CELLS), None)


def _end_of_line(text: bytes, position: int) -> int:
    limit = min(len(text), position + _MAX_LINE_BYTES)
    ends = [found for char in b"\r\n\0" if (found := text.find(char, position, limit)) >= 0]
    end = min(ends, default=limit)
    # JSON in JSON leaves a backslash before a line end.
    while end > position and text[end - 1] == 0x5C:
        end -= 1
    return end


@lru_cache(maxsize=_CACHED_LINES)
def _split(line: bytes, delimiter: bytes) -> tuple[tuple[int, int], ...]:
    """Return the spans of the cells of a line, without quotes and white space.

    Every name in a header reads the same lines, so each line is split once.
    """
    spans = []
    for match in _CELLS[delimiter].finditer(line):
        spans.append(_bare_span(line, *match.span(1 if match[1] is not None else 2)))
        if match.end() >= len(line):
            break
    return tuple(spans)


def _bare_span(text: bytes, start: int, stop: int) -> tuple[int, int]:
    """Return the span of a cell without white space and Markdown around it."""
    while start < stop and text[start] in b" \t`*\\":
        start += 1
    while stop > start and text[stop - 1] in b" \t`*\\":
        stop -= 1
    return start, stop


@lru_cache(maxsize=_CACHED_LINES)
def _header_cells(line: bytes, delimiter: bytes) -> tuple[tuple[int, int], ...]:
    """Return the spans of the cells of a header; none if a cell is not a name."""
    cells = _split(line, delimiter)
    names = (line[start:stop] for start, stop in cells)
    return cells if all(_HEADER_CELL.fullmatch(name) for name in names if name.strip()) else ()


def _cell_beside(text: bytes, begin: int, end: int, name_start: int, name_end: int, meaning: str) -> list[Match]:
    """Read the cell behind the one with the name, in a row of a Markdown table."""
    cell = _CELLS[b"|"].match(text, text.rfind(b"|", begin, name_start) + 1 or begin, end)
    beside = _CELLS[b"|"].match(text, cell.end(), end) if cell and cell.end() < end else None
    if cell is None or beside is None:
        return []
    start, stop = _bare_span(text, *beside.span(1 if beside[1] is not None else 2))
    word = text[start:stop]
    # Names are in rows too, without values.
    if b" " in word or not is_secret_value(meaning, word, Written.NEARBY):
        return []
    # The bar may be a pipe of a shell: `cat token | sha256sum | cut -c1-8`.
    is_whole_cell = _bare_span(text, *cell.span(1 if cell[1] is not None else 2)) == (name_start, name_end)
    if not is_whole_cell and count_random_chars(word) < _MIN_RANDOM_BESIDE_TEXT:
        return []
    return [_hit(start, stop, meaning)]


def _cells_below(text: bytes, position: int, delimiter: bytes, columns: int, column: int, meaning: str) -> list[Match]:
    hits: list[Match] = []
    limit = position + _MAX_TABLE_BYTES
    for _ in range(_MAX_ROWS):
        while text[position : position + 1] in (b"\r", b"\n", b"\\"):
            position += 1
        end = _end_of_line(text, position)
        if end == position or end > limit or text[position : position + 1] == b"\0":
            break
        row = text[position:end]
        if not _RULER.fullmatch(row):
            cells = _split(row, delimiter)
            if len(cells) != columns:
                break
            start, stop = cells[column]
            if _is_cell_secret(row[start:stop], meaning):
                hits.append(_hit(position + start, position + stop, meaning))
        position = end
    return hits


def _is_cell_secret(word: bytes, meaning: str) -> bool:
    if b" " in word or len(word) < 6 or is_code(word):
        return False
    has_mark = bool(count_of(DIGITS, word)) or word.upper() == word or not word.isalnum()
    return (
        has_mark and is_secret_value(meaning, word, Written.QUOTED) and not (meaning == "password" and word.isdigit())
    )


def match_insert(text: bytes, start: int, end: int) -> tuple[tuple[Match, ...], int]:
    """Read `INSERT INTO t (name, password) VALUES ('ada', 'x')`."""
    columns = _INSERT_COLUMNS.search(text, max(0, start - _MAX_COLUMNS_BYTES), end - 1)
    if columns is None:
        return (), end
    names = [name.strip(b" \t\r\n\"`[]'") for name in columns[1].split(b",")]
    meanings = [secret_names.meaning(name) for name in names]
    hits: list[Match] = []
    position, limit = end, end + _MAX_TABLE_BYTES
    for _ in range(_MAX_ROWS):
        for meaning in meanings:
            match = _SQL_VALUE.match(text, position, limit)
            if match is None:
                return tuple(hits), max(end, position)
            group = next((number for number in (1, 2) if match[number] is not None), 3)
            word = match[group].strip()
            if meaning and group != 3 and is_secret_value(meaning, word, Written.QUOTED):
                hits.append(_hit(match.start(group), match.end(group), meaning))
            position = match.end()
            if match[4] == b")":
                break
        following = re.compile(rb"[ \t\r\n]*,[ \t\r\n]*\(").match(text, position, limit)
        if following is None:
            break
        position = following.end()
    return tuple(hits), position


def _hit(start: int, end: int, meaning: str) -> Match:
    return Match(start, end, "assigned_password" if meaning == "password" else "assigned_secret", 0.8)
