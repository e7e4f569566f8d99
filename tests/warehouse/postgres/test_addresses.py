"""Names of servers are looked at before anything is asked for them; no server is needed here."""

from __future__ import annotations

import importlib.util
from urllib.parse import quote

import pytest

from tests.cli.running import clew

WORD = "sesame" + "-4711"


@pytest.mark.parametrize("words", [("web", "--engine"), ("search", "word", "--engine"), ("push",)])
def test_a_name_that_is_none_is_told_before_anything_is_to_be_installed(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr("clew.extras.find_spec", lambda name: None if name == "psycopg" else real(name))
    done = clew(*words, f"nonsense://ada:{WORD}@h/d")
    assert done.code == 2
    assert "postgresql://USER@HOST:PORT/DATABASE" in done.err
    assert "pip install" not in done.err
    assert WORD not in done.err
    done = clew(*words, "postgresql://h/d")
    assert done.code == 2
    assert "pip install '.[postgres]' in a clone of clew" in done.err


@pytest.mark.parametrize("words", [("stats", "--engine"), ("search", "word", "--engine"), ("push",)])
def test_the_name_of_a_scheme_has_no_case(words: tuple[str, ...]) -> None:
    done = clew(*words, "PostgreSQL://ada@127.0.0.1:1/d")
    assert (done.code, "127.0.0.1:1/d" in done.err) == (7, True), done.err


def test_large_rows_are_spelled_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa

    from clew.warehouse.build import halve_until
    from clew.warehouse.postgres import push

    texts = ["x" * (100_000 if number == 700 else 100) for number in range(1000)]
    table = pa.table({"number": range(1000), "text": texts})
    monkeypatch.setattr(push, "CSV_BYTES", 20_000)
    monkeypatch.setattr(push, "CSV_ROWS", 90)
    pieces = list(halve_until(push._fits_csv, table))
    assert pa.concat_tables(pieces) == table
    assert max(piece.num_rows for piece in pieces) <= 90
    assert [piece.num_rows for piece in pieces if piece.nbytes > 20_000] == [1]
    assert list(halve_until(push._fits_csv, table[:0])) == [table[:0]]


@pytest.mark.parametrize("words", [("push",), ("stats", "--engine"), ("search", "word", "--engine")])
@pytest.mark.parametrize(
    "rest",
    [
        f"loom:p@{WORD}@127.0.0.1:1/demo",
        f"loom:ab@cd/{WORD}@127.0.0.1:1/demo",
        f"loom:ab/{WORD}@127.0.0.1:1/demo",
        f"loom:1?{WORD}@127.0.0.1:1/demo",
        f"loom:1#{WORD}@127.0.0.1:1/demo",
        f"loom:{WORD}",
        f"loom:{WORD}/demo",
    ],
)
def test_a_password_that_is_not_escaped_is_refused_and_not_told(words: tuple[str, ...], rest: str) -> None:
    done = clew(*words, f"postgresql://{rest}")
    assert done.code == 2, done.err
    assert WORD not in done.err
    assert "invalid server URL" in done.err


@pytest.mark.parametrize(
    "rest", ["127.0.0.1:abc/d", "127.0.0.1:99999/d", "127.0.0.1:1/d?sslmode=bogus", "127.0.0.1:1/d?connect_timeout=x"]
)
@pytest.mark.parametrize("words", [("push",), ("stats", "--engine")])
def test_an_address_that_asks_for_what_there_is_not_is_told_so(words: tuple[str, ...], rest: str) -> None:
    done = clew(*words, f"postgresql://{rest}")
    assert done.code == 2, done.err
    assert done.err.count("\n") == 1


def test_a_password_that_is_escaped_is_taken() -> None:
    escaped = quote("p@/?s", safe="")
    done = clew("stats", "--engine", f"postgresql://loom:{escaped}@127.0.0.1:1/demo?application_name=x")
    assert done.code == 7
