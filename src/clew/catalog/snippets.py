"""Cuts a snippet out of a text: one line around the first match, with the matches marked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from clew.catalog.query import Phrase
from clew.catalog.tokenizer import normalize_text
from clew.render.text_safety import mask_spans

SNIPPET_CHARS = 160
_CHARS_BEFORE_MATCH = 40
_WORD_START, _WORD_END, _BETWEEN_WORDS = r"(?<![^\W_])", r"(?![^\W_])", r"[\W_]+"

Find = Callable[[str], list[tuple[int, int]]]


class Snippet(NamedTuple):
    """Part of a text, and the spans of the matches in it."""

    text: str
    marks: list[tuple[int, int]]

    def marked(self, before: str, behind: str) -> str:
        """The text with a string before and after each match."""
        pieces, last = list[str](), 0
        for start, end in self.marks:
            pieces += [self.text[last:start], before, self.text[start:end], behind]
            last = end
        return "".join([*pieces, self.text[last:]])


def snippet(text: str, find: Find, shown: Callable[[str], str]) -> Snippet:
    """The text around the first match. `shown` makes text safe to print. Matches inside of a mask are not marked."""
    places = find(text)
    begin = max(0, places[0][0] - _CHARS_BEFORE_MATCH) if places else 0
    end = min(len(text), begin + SNIPPET_CHARS)
    begin = max(0, min(begin, end - SNIPPET_CHARS))
    pieces, marks, length = list[str](), list[tuple[int, int]](), 0
    at = begin
    masks = list(mask_spans(text))
    for start, stop in places:
        if start < begin or stop > end or any(first < stop and start < last for first, last in masks):
            continue
        for piece, is_mark in ((text[at:start], False), (text[start:stop], True)):
            piece = _one_line(piece, shown, pieces)
            if is_mark and piece:
                marks.append((length, length + len(piece)))
            pieces.append(piece)
            length += len(piece)
        at = stop
    pieces.append(_one_line(text[at:end], shown, pieces).rstrip())
    return _with_ellipses("".join(pieces), marks, begin > 0, end < len(text))


def _one_line(piece: str, shown: Callable[[str], str], before: list[str]) -> str:
    """Replace every run of white space by one space, also across pieces."""
    line = shown(re.sub(r"\s+", " ", piece))
    return line.lstrip() if not before or before[-1].endswith(" ") or not any(before) else line


def _with_ellipses(text: str, marks: list[tuple[int, int]], is_behind: bool, is_before: bool) -> Snippet:
    lead = "…" if is_behind else ""
    moved = [(start + len(lead), end + len(lead)) for start, end in marks]
    return Snippet(lead + text + ("…" if is_before else ""), moved)


def finder(phrases: Iterable[Phrase], *, everywhere: bool = False) -> Find:
    """Make a function that finds the phrases of a query in an original text, and returns spans of it.

    They are those of one snippet, or with `everywhere` of the whole text.
    """
    found = list(phrases)
    pattern = "|".join(_pattern(phrase) for phrase in sorted(found, key=lambda phrase: -len(phrase.words)))
    expression = re.compile(pattern) if pattern else None
    parts = re.compile("|".join(re.escape(word) for phrase in found for word in phrase.words)) if found else None

    def find(text: str) -> list[tuple[int, int]]:
        folded, origin = _folded(text)
        for wanted in (expression, parts):
            # A part of a camelCase identifier begins inside of a word: then any occurrence of its letters counts.
            places = _places(wanted, folded, everywhere) if wanted is not None else []
            if places:
                return places if origin is None else [(origin[start], origin[end - 1] + 1) for start, end in places]
        return []

    return find


def spellings(text: str, find: Find) -> Iterator[str]:
    """The matches in a text as it spells them. A match of a part of a word is the whole word."""
    masks = list(mask_spans(text))
    for start, end in find(text):
        if any(first < end and start < last for first, last in masks):
            continue
        while start and _is_ascii_word_char(text[start - 1]):
            start -= 1
        while end < len(text) and _is_ascii_word_char(text[end]):
            end += 1
        yield text[start:end]


def _is_ascii_word_char(char: str) -> bool:
    return char.isascii() and char.isalnum()


def _pattern(phrase: Phrase) -> str:
    words = [re.escape(word) for word in phrase.words]
    return _WORD_START + _BETWEEN_WORDS.join(words) + (r"[^\W_]*" if phrase.is_prefix else _WORD_END)


def _places(wanted: re.Pattern[str], text: str, everywhere: bool) -> list[tuple[int, int]]:
    """The spans of the first match, and of those within the same snippet or of all others."""
    first = wanted.search(text)
    if first is None or first.end() == first.start():
        return []
    others = wanted.finditer(text, first.end(), len(text) if everywhere else first.start() + SNIPPET_CHARS)
    return [first.span(), *(match.span() for match in others if match.end() > match.start())]


def _folded(text: str) -> tuple[str, list[int] | None]:
    """The normalized text, and the offset in the original of each of its characters; None where offsets are equal."""
    whole = normalize_text(text)
    if len(whole) == len(text) and (text.isascii() or whole == text.lower()):
        return whole, None
    pieces, origin = list[str](), list[int]()
    for place, char in enumerate(text):
        piece = char.lower() if char.isascii() else normalize_text(char)
        pieces.append(piece)
        origin += [place] * len(piece)
    return "".join(pieces), origin
