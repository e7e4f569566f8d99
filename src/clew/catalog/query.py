"""Parses search queries: words, "phrases", pre*, AND, OR, NOT, -word, parentheses.

This is the only parser of queries: indices get the parsed words, never the text of a user. Adjacent words must all
occur; OR binds less tightly than that. Words joined by punctuation are a phrase: `snake_case` finds exactly that, while
`case` finds it too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from clew.catalog.tokenizer import MAX_WORD_BYTES, words
from clew.errors import UsageError

MAX_WORDS = 500
MAX_DEPTH = 50
_SHOWN = 60
"""Characters of a query that an error shows."""
_OPERATORS = ("AND", "OR", "NOT")
_ENDS = frozenset('()"')


class Phrase(NamedTuple):
    """Adjacent words. With `is_prefix`, the last one may be the beginning of a word."""

    words: tuple[str, ...]
    is_prefix: bool = False


class And(NamedTuple):
    """Every part must match."""

    parts: tuple[Query, ...]


class Or(NamedTuple):
    """At least one part must match."""

    parts: tuple[Query, ...]


class Not(NamedTuple):
    """The part must not match."""

    part: Query


Query: TypeAlias = Phrase | And | Or | Not


class BadQuery(UsageError):
    """A query with a syntax error; the message shows where."""

    def __init__(self, query: str, place: int, why: str) -> None:
        start = max(0, place - _SHOWN // 2)
        shown = "".join(char if char.isprintable() else " " for char in query[start : start + _SHOWN])
        before, behind = "…" * (start > 0), "…" * (start + _SHOWN < len(query))
        caret = " " * (len(before) + place - start) + "^"
        super().__init__(f"{why}\n  {before}{shown}{behind}\n  {caret}")
        self.place, self.why = place, why


class _Token(NamedTuple):
    kind: str
    """`(`, `)`, `-`, one of the operators, or "" for words to look for."""
    place: int
    text: str = ""
    is_prefix: bool = False


def parse(query: str) -> Query:
    """Parse a query; raises BadQuery."""
    return _Parser(query).parse()


class _Parser:
    def __init__(self, query: str) -> None:
        self._query = query
        self._tokens = _tokens(query)
        self._next: _Token | None = next(self._tokens, None)
        self._depth = self._count = 0

    def parse(self) -> Query:
        if self._next is None:
            raise BadQuery(self._query, 0, "the query is empty")
        found = self._some()
        rest = self._take()
        if rest is not None:
            raise BadQuery(self._query, rest.place, "unexpected `)`: no matching `(`")
        return found

    def _take(self) -> _Token | None:
        token, self._next = self._next, next(self._tokens, None)
        return token

    def _comes(self, *kinds: str) -> bool:
        return self._next is not None and self._next.kind in kinds

    def _some(self) -> Query:
        parts = [self._all()]
        while self._comes("OR"):
            self._take()
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _all(self) -> Query:
        parts = [self._one()]
        while self._next is not None and not self._comes("OR", ")"):
            if self._comes("AND"):
                self._take()
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _one(self) -> Query:
        token = self._take()
        if token is None:
            raise BadQuery(self._query, len(self._query), "a word to search for is missing at the end")
        if token.kind in ("NOT", "-", "("):
            return self._nested(token)
        if token.kind:
            raise BadQuery(self._query, token.place, f"a word to search for is missing before {token.kind}")
        return self._phrase(token)

    def _nested(self, token: _Token) -> Query:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise BadQuery(self._query, token.place, f"nested more than {MAX_DEPTH} times")
        if token.kind == "(":
            found = self._some()
            if self._take() is None:
                raise BadQuery(self._query, token.place, "this parenthesis is never closed")
        else:
            found = Not(self._one())
        self._depth -= 1
        return found

    def _phrase(self, token: _Token) -> Phrase:
        found = tuple(words(token.text))
        if not found:
            why = "this word is too long" if len(token.text) > MAX_WORD_BYTES // 4 else "no letter or digit to look for"
            raise BadQuery(self._query, token.place, why)
        self._count += len(found)
        if self._count > MAX_WORDS:
            raise BadQuery(self._query, token.place, f"more than {MAX_WORDS} words")
        # After punctuation there is no word that the star could complete.
        return Phrase(found, token.is_prefix and token.text[-1].isalnum())


def _tokens(query: str) -> Iterator[_Token]:
    at, end = 0, len(query)
    while at < end:
        char = query[at]
        if char.isspace() or char == "\0":
            at += 1
        elif char in "()":
            yield _Token(char, at)
            at += 1
        elif char == "-" and at + 1 < end and not query[at + 1].isspace() and query[at + 1] not in "-)":
            yield _Token("-", at)
            at += 1
        elif char == '"':
            token, at = _quoted(query, at)
            yield token
        else:
            token, at = _bare(query, at)
            yield token


def _quoted(query: str, at: int) -> tuple[_Token, int]:
    close = query.find('"', at + 1)
    if close < 0:
        raise BadQuery(query, at, "this quotation is never closed")
    is_prefix = query[close + 1 : close + 2] == "*"
    return _Token("", at, query[at + 1 : close], is_prefix), close + 1 + is_prefix


def _bare(query: str, at: int) -> tuple[_Token, int]:
    start = at
    while at < len(query) and not query[at].isspace() and query[at] not in _ENDS and query[at] != "\0":
        at += 1
    text = query[start:at]
    if text in _OPERATORS:
        return _Token(text, start), at
    star = text.find("*")
    if 0 <= star < len(text.rstrip("*")):
        raise BadQuery(query, start + star, "`*` is only allowed at the end of a word")
    return _Token("", start, text.rstrip("*"), star >= 0), at


def required_phrases(query: Query) -> Iterator[Phrase]:
    """The phrases of a query that are not negated."""
    if isinstance(query, Phrase):
        yield query
    elif isinstance(query, And | Or):
        for part in query.parts:
            yield from required_phrases(part)


def without_negations(query: Query) -> Query:
    """A query that finds all that this one finds, and is not affected by the words that it excludes."""
    if isinstance(query, Not):
        return And(())
    if isinstance(query, And):
        return And(tuple(without_negations(part) for part in query.parts if not isinstance(part, Not)))
    return Or(tuple(map(without_negations, query.parts))) if isinstance(query, Or) else query


def has_alternatives(query: Query) -> bool:
    """True if a text may match without one of the words that the query does not exclude."""
    return isinstance(query, Or) or (isinstance(query, And) and any(map(has_alternatives, query.parts)))


def matches(query: Query, values: list[list[str]]) -> bool:
    """True where a text with these lists of words matches. A phrase must match within one list."""
    if isinstance(query, Not):
        return not matches(query.part, values)
    if isinstance(query, And):
        return all(matches(part, values) for part in query.parts)
    if isinstance(query, Or):
        return any(matches(part, values) for part in query.parts)
    return any(_occurs_in(query, value) for value in values)


def _occurs_in(phrase: Phrase, value: list[str]) -> bool:
    size, (*full, last) = len(phrase.words), phrase.words
    for at in range(len(value) - size + 1):
        ending = value[at + size - 1]
        if (ending.startswith(last) if phrase.is_prefix else ending == last) and value[at : at + size - 1] == full:
            return True
    return False
