"""The language of searches: what it means, and that nothing can upset it."""

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.catalog.query import (
    MAX_DEPTH,
    MAX_WORDS,
    And,
    BadQuery,
    Not,
    Or,
    Phrase,
    Query,
    matches,
    parse,
    required_phrases,
)

A, B, C = Phrase(("a",)), Phrase(("b",)), Phrase(("c",))


@pytest.mark.parametrize(
    ("query", "meaning"),
    [
        ("a", A),
        ("A", A),
        ("a b", And((A, B))),
        ("a AND b", And((A, B))),
        ("a and b", And((A, Phrase(("and",)), B))),
        ("a OR b c", Or((A, And((B, C))))),
        ("(a OR b) c", And((Or((A, B)), C))),
        ("a -b", And((A, Not(B)))),
        ("a NOT b", And((A, Not(B)))),
        ("NOT NOT a", Not(Not(A))),
        ("-(a b)", Not(And((A, B)))),
        ('"a b"', Phrase(("a", "b"))),
        ('-"a b"', Not(Phrase(("a", "b")))),
        ("a*", Phrase(("a",), True)),
        ('"a b"*', Phrase(("a", "b"), True)),
        ("a_b", Phrase(("a", "b"))),
        ("a.b/c", Phrase(("a", "b", "c"))),
        ("a_b*", Phrase(("a", "b"), True)),
        ("a_*", A),
        ("a-b", Phrase(("a", "b"))),
        ("--a", A),
        ("Año", Phrase(("ano",))),
        ("漢字", Phrase(("漢", "字"))),
        ("a\0b", And((A, B))),
        ("getUserName", Phrase(("getusername",))),
    ],
)
def test_what_a_query_means(query: str, meaning: Query) -> None:
    assert parse(query) == meaning


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("", 0),
        ("   ", 0),
        ("a OR", 4),
        ("OR a", 0),
        ("a AND OR b", 6),
        ("(a", 0),
        ("a)", 1),
        ("()", 1),
        ('a "b', 2),
        ("a NOT", 5),
        ("fo*o", 2),
        ("a 😀", 2),
        ("***", 0),
        ('""', 0),
        ("a (b OR (c)", 2),
    ],
)
def test_Q02_bad_syntax_shows_the_place(query: str, place: int) -> None:
    with pytest.raises(BadQuery) as caught:
        parse(query)
    assert caught.value.place == place
    why, shown, caret = str(caught.value).split("\n")
    assert why and shown.strip() == query.strip()
    assert caret == "  " + " " * place + "^"


LONG = {
    "(": "(" * 1_000_000,
    "words": "a " * 500_000,
    "dashes": "-" * 1_000_000,
    "quotes": '"' * 1_000_000,
    "one word": "x" * 1_000_000,
    "NOT": "NOT " * 250_000,
    "NUL": "\0" * 1_000_000,
    "emoji": "😀" * 250_000,
}


@pytest.mark.parametrize("name", LONG)
def test_Q02_a_query_of_a_megabyte_gets_a_short_answer(name: str) -> None:
    before = time.process_time()
    with pytest.raises(BadQuery) as caught:
        parse(LONG[name])
    assert len(str(caught.value)) < 400
    assert time.process_time() - before < 10


def test_what_is_allowed_is_parsed() -> None:
    assert len(list(required_phrases(parse("a " * MAX_WORDS)))) == MAX_WORDS
    assert parse("(" * MAX_DEPTH + "a" + ")" * MAX_DEPTH) == A
    assert parse(" ".join(["(a)"] * (MAX_DEPTH * 2)))


ALPHABET = [
    *'ab c"()-*:^~_./é漢😀\n',
    "\0",
    "\ud800",
    "NEAR(",
    "AND ",
    "OR ",
    "NOT ",
    '" ',
    "( ",
    ") ",
    "x ",
    "' OR 1=1 --",
]


def random_queries(seed: int, count: int) -> list[str]:
    dice = random.Random(seed)
    return ["".join(dice.choices(ALPHABET, k=dice.randrange(25))) for _ in range(count)]


def test_Q02_random_queries_are_parsed_or_refused() -> None:
    parsed = 0
    for query in random_queries(7, 20_000):
        try:
            parse(query)
            parsed += 1
        except BadQuery as error:
            assert 0 <= error.place <= len(query)
    assert 1_000 < parsed < 19_000


@given(st.text())
def test_Q02_any_text_is_a_query_or_bad(query: str) -> None:
    try:
        parse(query)
    except BadQuery as error:
        assert str(error).count("\n") == 2


@pytest.mark.parametrize(
    ("query", "expected"),
    [("a b", True), ("b* -c", True), ('"a bee"', True), ('"bee a"', False), ("NOT a", False), ("x OR d", False)],
)
def test_words_are_matched_without_an_index(query: str, expected: bool) -> None:
    assert matches(parse(query), [["a", "bee", "b"], ["c1"]]) is expected


def test_a_phrase_stays_inside_one_value() -> None:
    assert not matches(parse('"a b"'), [["a"], ["b"]])
    assert matches(parse("a b"), [["a"], ["b"]])
