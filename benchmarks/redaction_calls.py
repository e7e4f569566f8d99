"""Calls that are built to be slow: lines, texts and values that are handed over, rather than a file."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Callable
from functools import partial
from typing import Any

from clew.redact import Marker
from clew.redact.redactor import Redactor, Setting

_LETTERS = string.ascii_letters + string.digits
Make = Callable[[random.Random, int], str]


def _word(chance: random.Random, length: int) -> str:
    return "".join(chance.choices(_LETTERS, k=length))


def _until(size: int, one: Callable[[], str]) -> str:
    pieces, length = [], 0
    while length < size:
        pieces.append(one())
        length += len(pieces[-1])
    return "".join(pieces)


def nested(chance: random.Random, size: int) -> str:
    """JSON in a string in JSON, eight times, around a password."""

    def one() -> str:
        text = json.dumps({"password": _word(chance, 8)})
        for _ in range(8):
            text = json.dumps({"a": text})
        return text + "\n"

    return _until(size, one)


def surrogates(chance: random.Random, size: int) -> str:
    """Passwords beside halves of characters."""
    return _until(size, lambda: json.dumps({"a": f"\ud800 password={_word(chance, 8)} " * 20}) + "\n")


def same_keys(chance: random.Random, size: int) -> str:
    """Objects that name the same member again and again."""
    return _until(size, lambda: "{" + ", ".join(f'"token": "{_word(chance, 8)}"' for _ in range(100)) + "}\n")


def one_word(chance: random.Random, size: int) -> str:
    """One text without a space, full of names of secrets."""
    return _until(size, lambda: f"token={_word(chance, 9)}")


def known(chance: random.Random, size: int) -> str:
    """Four thousand short values, which then stand everywhere."""
    values = [_word(chance, 8) for _ in range(4000)]
    head = "".join(
        json.dumps({"a": "\n".join(f"DB_PASSWORD={v}" for v in values[n : n + 40])}) + "\n" for n in range(0, 4000, 40)
    )
    return head + _until(size - len(head), lambda: json.dumps({"b": " ".join(chance.choices(values, k=60))}) + "\n")


def scripts(chance: random.Random, size: int) -> str:
    """Words in many alphabets, each with a sign beside it."""
    letters = "абвгдежз日本語中文한국어עבריתالعربيةहिन्दी"
    return _until(
        size,
        lambda: (
            json.dumps(
                {
                    "a": " ".join(
                        "".join(chance.choices(letters, k=6)) + "token: " + _word(chance, 3) for _ in range(40)
                    )
                },
                ensure_ascii=False,
            )
            + "\n"
        ),
    )


KINDS: dict[str, Make] = {each.__name__: each for each in (nested, surrogates, same_keys, one_word, known, scripts)}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _pieces(text: str) -> list[str]:
    return [text[place : place + 4000] for place in range(0, len(text), 4000)]


def _values(text: str) -> list[object]:
    return list(map(_parsed, text.splitlines()))


def _parsed(line: str) -> object:
    try:
        return json.loads(line)
    except ValueError:
        return line


def by_lines(lines: list[str], redactor: Redactor) -> object:
    """All lines at once."""
    return redactor.lines(lines)


def by_texts(texts: list[str], redactor: Redactor) -> object:
    """Texts one by one."""
    return list(map(redactor.text, texts))


def by_values(values: list[object], redactor: Redactor) -> object:
    """Values that are learned from, then masked."""
    redactor.learn(values)
    return list(map(redactor.value, values))


def by_findings(values: list[object], redactor: Redactor) -> object:
    """Values that are learned from, then asked for what they hold."""
    redactor.learn(values)
    return list(map(redactor.findings, values))


WAYS: dict[str, tuple[Callable[[str], list[Any]], Callable[[list[Any], Redactor], object]]] = {
    "lines": (_lines, by_lines),
    "text": (lambda text: [text], by_texts),
    "texts": (_pieces, by_texts),
    "values": (_values, by_values),
    "findings": (_values, by_findings),
}
"""How a text is handed over: what is made of it before, and the calls."""


def called(way: str, text: str, profile: str) -> Callable[[], object]:
    """The calls, ready to be made by a redactor of its own."""
    prepared, call = WAYS[way]
    return partial(call, prepared(text), Redactor(Setting(profile, Marker(b"benchmark"))))
