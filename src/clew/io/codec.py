"""JSON text in and out, and the question whether a value would be spelled again byte for byte.

A *dialect* is a way of spelling JSON that we can reproduce. A line that no dialect reproduces
must travel with its raw bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import msgspec

from clew.model.json import JSON

MAX_DEPTH = 200
"""Deepest nesting of a record; deeper ones are kept as fragments."""

COMPACT = "compact"

loads = msgspec.json.Decoder().decode
dumps = msgspec.json.Encoder().encode

NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What `loads` raises when it cannot read the text."""


_INT_DIGITS = 4000
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def _stdlib(**options: JSON) -> Callable[[JSON], bytes]:
    @cache
    def encoder() -> Callable[[JSON], str]:
        import json  # most lines are spelled compactly, and need none

        return json.JSONEncoder(check_circular=False, allow_nan=False, **options).encode

    return lambda value: encoder()(value).encode()


DIALECTS: dict[str, Callable[[JSON], bytes]] = {
    COMPACT: dumps,
    "spaced": _stdlib(ensure_ascii=False),
    "ascii": _stdlib(ensure_ascii=True, separators=(",", ":")),
    "spaced-ascii": _stdlib(ensure_ascii=True),
}


class Decoded(NamedTuple):
    """A value read the careful way. `dialect` None: only the raw bytes give the bytes back."""

    value: JSON
    dialect: str | None
    findings: tuple[str, ...]


class TooDeep(ValueError):
    """The nesting exceeds MAX_DEPTH."""


def decode_text(raw: bytes) -> tuple[str, tuple[str, ...]]:
    """The text of the bytes, with replacement characters where they are not UTF-8."""
    try:
        return raw.decode(), ()
    except UnicodeDecodeError:
        return raw.decode(errors="replace"), ("invalid-utf8",)


def decode(raw: bytes) -> Decoded:
    """Read one JSON value the careful way; raises ValueError when the bytes are no JSON at all."""
    text, findings = decode_text(raw)
    reader = CarefulReader()
    value, end = reader.read(text, _skip_space(text, 0))
    if _skip_space(text, end) != len(text):
        raise ValueError("more than one value")
    return reader.finish(value, raw, findings)


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


class CarefulReader:
    """A JSON reader that notices what fast ones change silently."""

    def __init__(self) -> None:
        import json

        self.findings: set[str] = set()
        self._decoder = json.JSONDecoder(
            object_pairs_hook=self._object,
            parse_int=self._int,
            parse_float=self._float,
            parse_constant=self._constant,
            strict=False,
        )

    def read(self, text: str, at: int) -> tuple[JSON, int]:
        """The value that starts at `at`, and where it ends."""
        try:
            value, end = self._decoder.raw_decode(text, at)
            return self._clean(value, 0), end
        except (RecursionError, TooDeep):
            raise TooDeep("nested too deeply") from None

    def finish(self, value: JSON, raw: bytes, findings: tuple[str, ...] = ()) -> Decoded:
        """Name the dialect that spells `value` as `raw`, if there is one."""
        found = (*findings, *sorted(self.findings))
        exact = not (found and set(found) - {"duplicate-key"})
        return Decoded(value, dialect_of(value, raw) if exact else None, found)

    def _object(self, pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
        result = dict(pairs)
        if len(result) != len(pairs):
            self.findings.add("duplicate-key")
        return result

    def _int(self, digits: str) -> JSON:
        if len(digits) < _INT_DIGITS:
            return int(digits)
        self.findings.add("number-range")
        return digits

    def _float(self, digits: str) -> JSON:
        value = float(digits)
        return value if math.isfinite(value) else self._constant(digits)

    def _constant(self, name: str) -> str:
        self.findings.add("number-range")
        return name

    def _clean(self, value: JSON, depth: int) -> JSON:
        if isinstance(value, str):
            return self._clean_text(value)
        if isinstance(value, dict | list) and depth >= MAX_DEPTH:
            raise TooDeep
        if isinstance(value, dict):
            return {self._clean_text(key): self._clean(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list):
            return [self._clean(item, depth + 1) for item in value]
        return value

    def _clean_text(self, text: str) -> str:
        if text.isascii():
            return text
        try:
            text.encode()
        except UnicodeEncodeError:
            self.findings.add("lone-surrogate")
            return _mend(text)
        return text


def _mend(text: str) -> str:
    return "".join(_REPLACEMENT if "\ud800" <= char <= "\udfff" else char for char in text)


def dialect_of(value: JSON, raw: bytes) -> str | None:
    """The first dialect that spells the value exactly as the bytes, or None."""
    for name, spell in DIALECTS.items():
        try:
            if spell(value) == raw:
                return name
        except (TypeError, ValueError, RecursionError):
            continue
    return None
