"""Tables, sizes, counts and times as people read them."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from clew.render.tables import Column, ago, cell_width, count, size, table, truncate

NOW = datetime(2026, 10, 2, 12, 0, tzinfo=UTC)
COLUMNS = [Column("id"), Column("title", flexible=True), Column("tokens", right=True)]


def test_columns_are_aligned() -> None:
    rows = [["a1", "Low water", "1.2k"], ["b22", "日本語", "7"]]
    assert "".join(table(COLUMNS, rows)) == (
        "id   title      tokens\n"
        "a1   Low water    1.2k\n"
        "b22  日本語          7\n"
    )  # fmt: skip


def test_a_flexible_column_gives_way() -> None:
    lines = list(table(COLUMNS, [["a", "x" * 100, "1"]], width=40))
    assert all(cell_width(line.rstrip("\n")) <= 40 for line in lines)
    assert "x…" in lines[1]


def test_a_column_never_falls_below_its_least_width() -> None:
    assert len(list(table(COLUMNS, [["a", "x" * 100, "1"]], width=3))[1].split()[1]) == 8


def test_H08_cells_cannot_break_the_table() -> None:
    lines = list(table(COLUMNS, [["a\nb", "x\x1b[2J\ry", "\u202e"]]))
    assert len(lines) == 2
    assert lines[1].startswith("a b  x␛[2J␍y")


def test_only_the_header_is_bold() -> None:
    lines = list(table(COLUMNS, [["a", "b", "c"]], color=True))
    assert lines[0].startswith("\x1b[1m") and lines[0].endswith("\x1b[0m\n")
    assert "\x1b" not in lines[1]


def test_an_empty_table_has_a_header() -> None:
    assert list(table(COLUMNS, [])) == ["id  title  tokens\n"]


@pytest.mark.parametrize(
    ("text", "width", "short"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("日本語", 5, "日本…"),
        ("日本語", 4, "日…"),
        ("e\u0301a", 2, "e\u0301a"),
        ("ab c", 4, "ab c"),
        ("abc", 0, ""),
        ("ab cd", 4, "ab…"),
    ],
)
def test_truncate(text: str, width: int, short: str) -> None:
    assert truncate(text, width) == short
    assert cell_width(short) <= width


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "just now"),
        (59, "just now"),
        (60, "1 min ago"),
        (3 * 3600 + 5, "3 h ago"),
        (2 * 86400, "2 d ago"),
        (40 * 86400, "2026-08-23"),
        (-7200, "in 2 h"),
    ],
)
def test_ago(seconds: int, words: str) -> None:
    assert ago(NOW - timedelta(seconds=seconds), NOW) == words


def test_unknown_is_not_zero() -> None:
    assert (ago(None, NOW), size(None), count(None)) == ("-", "-", "-")
    assert (size(0), count(0)) == ("0 B", "0")


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (999, "999"),
        (1000, "1.0k"),
        (1234567, "1.2M"),
        (999_949, "1.0M"),
        (999_499, "999k"),
        (99_949, "99.9k"),
        (12_345_678, "12.3M"),
        (10**15, "1000T"),
    ],
)
def test_count(number: int, words: str) -> None:
    assert count(number) == words
    assert size(number).split()[0] == words.rstrip("kMGT")


def test_plain_tables_and_terminal_text_load_no_rich() -> None:
    code = (
        "import sys; from clew.render.tables import *; from clew.render.terminal import show\n"
        "list(table([Column('a')], [['日本']])); list(show({'id': 'x'}, iter(()), 80, False))\n"
        "assert 'rich' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_columns_are_left_out_by_rank_where_the_terminal_is_narrow() -> None:
    columns = [
        Column("id"),
        Column("model", flexible=True, least=10, drop_rank=0),
        Column("n", drop_rank=2),
        Column("m", drop_rank=1),
    ]
    rows = [["12345678", "claude-opus-4-6", "1000", "2000"]]
    assert next(iter(table(columns, rows, width=100))).split() == ["id", "model", "n", "m"]
    assert next(iter(table(columns, rows, width=27))).split() == ["id", "model", "m"]
    narrow = list(table(columns, rows, width=20))
    assert narrow[0].split() == ["id", "model"]
    assert narrow[1] == "12345678  claude-op…\n"


def test_a_column_is_not_narrower_than_its_title() -> None:
    columns = [Column("moved project", flexible=True, least=4), Column("now", flexible=True, least=4)]
    assert list(table(columns, [["/home/ada/tide", "/srv/ada/tide"]], width=20)) == [
        "moved project  now\n",
        "/home/ada/ti…  /srv…\n",
    ]
