"""Questions that a call asks a person, with the options it offers, and the answers from its result.

A call is recognized by its shape: a list of questions. Results have the answers in a sentence, or as JSON by the text
or the id of the question.
"""

from __future__ import annotations

import re

import msgspec

from clew.model.json import JSON

_COMMA = ", "
_END = re.compile(r'"(?=, "|\. You can |\s(?:selected preview|user notes)\b|\Z)')


class Option(msgspec.Struct, frozen=True, gc=False):
    """One of the answers that are offered; `preview` shows what it would lead to."""

    label: str
    description: str | None = None
    preview: str | None = None


class Asked(msgspec.Struct, frozen=True, gc=False):
    """A question, as a call asks it."""

    question: str
    id: str | None = None
    header: str | None = None
    options: tuple[Option, ...] = ()
    is_many: bool = msgspec.field(default=False, name="multiSelect")


def as_questions(value: JSON) -> tuple[Asked, ...]:
    """The questions of a list that holds nothing else."""
    try:
        return msgspec.convert(value, tuple[Asked, ...]) if value else ()
    except msgspec.ValidationError:
        return ()


def answers(questions: tuple[Asked, ...], result: JSON) -> list[list[str]]:
    """What was answered to each question; several words where several could be chosen."""
    if isinstance(result, list):
        result = next((item.get("text") for item in result if isinstance(item, dict)), None)
    if isinstance(result, str) and result.startswith("{"):
        try:
            result = msgspec.json.decode(result)
        except (msgspec.DecodeError, UnicodeEncodeError):
            return [[] for _ in questions]
    if isinstance(result, dict):
        known = result.get("answers")
        known = known if isinstance(known, dict) else {}
        return [_given(known.get(one.id, known.get(one.question))) for one in questions]
    return [_said(one, result) if isinstance(result, str) else [] for one in questions]


def _given(value: JSON) -> list[str]:
    if isinstance(value, dict):
        value = value.get("answers")
    if isinstance(value, str):
        return [value]
    return [word for word in value if isinstance(word, str)] if isinstance(value, list) else []


def _said(asked: Asked, text: str) -> list[str]:
    """The answer in a sentence that repeats the question."""
    head = f'"{asked.question}"="'
    begin = text.find(head)
    end = _END.search(text, begin + len(head)) if begin >= 0 else None
    return [text[begin + len(head) : end.start()]] if end is not None else []


def chosen(asked: Asked, said: list[str]) -> tuple[frozenset[str], str | None]:
    """The options that an answer names, and what it says besides.

    Where one alone could be chosen, an answer that begins with one and goes on is in words of its own.
    """
    labels, own = set[str](), list[str]()
    for words in said:
        named, others = _named(asked, words)
        is_own = others and not asked.is_many
        labels |= set() if is_own else named
        own += [words] if is_own else others
    return frozenset(labels), ", ".join(own) or None


def _named(asked: Asked, words: str) -> tuple[set[str], list[str]]:
    """The options that words are made of, with a comma between two, and the words between commas that are none."""
    found, others = set[str](), list[str]()
    known, text, at = _by_first(asked), f"{words}{_COMMA}", 0
    while at < len(words):
        piece = text[at : text.index(_COMMA, at)]
        label = next((label for label in known.get(piece, ()) if text.startswith(f"{label}{_COMMA}", at)), None)
        if label is None:
            others.append(piece)
        else:
            found.add(label)
        at += len(piece if label is None else label) + len(_COMMA)
    return found, others


def _by_first(asked: Asked) -> dict[str, list[str]]:
    """The options by what stands before their first comma, the longest first."""
    found: dict[str, list[str]] = {}
    for label in sorted({option.label for option in asked.options if option.label}, key=len, reverse=True):
        found.setdefault(label.partition(_COMMA)[0], []).append(label)
    return found
