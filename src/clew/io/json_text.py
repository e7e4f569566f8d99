"""JSON text with changed values, in which everything that did not change keeps its bytes."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any, NamedTuple

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")
_FIRST_INDENT = re.compile(r"\s*\{\r?\n([ \t]+)\"")
_MARGIN = re.compile(r"[ \t]*")


class _Member(NamedTuple):
    """A member of an object, or an element of an array, by its offsets in the text."""

    key: str | None
    start: int
    value_start: int
    end: int


class _Kept(NamedTuple):
    """A member that stays, with the value it had and the value it gets."""

    member: _Member
    before: Any
    after: Any


def replace_values(text: str, after: dict[str, Any]) -> str:
    """The text of a JSON object with these values instead of its own, in the layout of the text."""
    if not text.strip():
        return json.dumps(after, ensure_ascii=False, indent=2) + "\n"
    start = _skip_space(text, 0)
    before, end = _DECODER.raw_decode(text, start)
    patched = text[:start] + _Patch(text).value(start, end, before, after) + text[end:]
    if _is_same(json.loads(patched), after):
        return patched
    return json.dumps(after, ensure_ascii=False, indent=2) + "\n"


class _Patch:
    def __init__(self, text: str) -> None:
        self._text = text
        body = text.strip()
        self._newline = "\r\n" if "\r\n" in text else "\n"
        found = _FIRST_INDENT.match(text)
        is_one_line = "\n" not in body and body not in ("{}", "{ }")
        self._indent = None if is_one_line else found[1] if found else "  "

    def value(self, start: int, end: int, before: Any, after: Any) -> str:
        """The text of a value from `start` to `end`, changed to another value."""
        if _is_same(before, after):
            return self._text[start:end]
        if isinstance(before, dict) and isinstance(after, dict):
            members = _members(self._text, start)
            kept = [_Kept(one, before[one.key], after[one.key]) for one in members if one.key in after]
            return self._container(start, end, kept, {key: after[key] for key in after if key not in before})
        if isinstance(before, list) and isinstance(after, list):
            kept = _aligned(_members(self._text, start), before, after)
            return self._container(start, end, kept, dict(enumerate(after[len(kept) :])))
        return self._dumps(after, self._margin(start))

    def _container(self, start: int, end: int, kept: list[_Kept], added: dict[Any, Any]) -> str:
        """An object or an array with some of its members, and new ones at its end."""
        text, members = self._text, _members(self._text, start)
        if not kept and not added:
            return text[start] + text[end - 1]
        if members:
            opening, closing = text[start : members[0].start], text[members[-1].end : end]
        else:
            margin = self._margin(start)
            opening, closing = text[start] + self._line(margin, 1), self._line(margin, 0) + text[end - 1]
        separators = {one.start: text[last.end : one.start] for last, one in pairwise(members)}
        new_separator = "," + (opening[1:] or " ")
        parts: list[str] = []
        for one in kept:
            parts.append((separators.get(one.member.start) or new_separator) if parts else "")
            parts.append(text[one.member.start : one.member.value_start])
            parts.append(self.value(one.member.value_start, one.member.end, one.before, one.after))
        margin = opening.rpartition("\n")[2] if "\n" in opening else self._margin(start)
        for key, value in added.items():
            name = f"{json.dumps(key, ensure_ascii=False)}: " if isinstance(key, str) else ""
            parts.append(new_separator if parts else "")
            parts.append(name + self._dumps(value, margin))
        return opening + "".join(parts) + closing

    def _dumps(self, value: Any, margin: str) -> str:
        text = json.dumps(value, ensure_ascii=False, indent=self._indent)
        return text.replace("\n", self._newline + margin)

    def _line(self, margin: str, depth: int) -> str:
        return self._newline + margin + self._indent * depth if self._indent is not None else ""

    def _margin(self, at: int) -> str:
        """The indentation of the line at this offset."""
        found = _MARGIN.match(self._text, self._text.rfind("\n", 0, at) + 1)
        return found[0] if found else ""


def _is_same(value: Any, other: Any) -> bool:
    """True for equal JSON values. Python also takes 1, 1.0 and true for equal."""
    return json.dumps(value, sort_keys=True) == json.dumps(other, sort_keys=True)


def _members(text: str, start: int) -> list[_Member]:
    """The members of the object or the array that begins at this offset of valid JSON."""
    is_object, at, found = text[start] == "{", _skip_space(text, start + 1), []
    while text[at] not in "}]":
        begin, key = at, None
        if is_object:
            key, at = _DECODER.raw_decode(text, at)
            at = _skip_space(text, _skip_space(text, at) + len(":"))
        value_start = at
        _, at = _DECODER.raw_decode(text, at)
        found.append(_Member(key, begin, value_start, at))
        at = _skip_space(text, at)
        if text[at] == ",":
            at = _skip_space(text, at + 1)
    return found


def _skip_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _aligned(members: list[_Member], before: list[Any], after: list[Any]) -> list[_Kept]:
    """The elements that stay: equal ones, and changed ones if no more elements were removed than the lengths differ."""
    kept: list[_Kept] = []
    removable = len(before) - len(after)
    for member, value in zip(members, before, strict=True):
        if len(kept) < len(after) and (_is_same(value, after[len(kept)]) or removable <= 0):
            kept.append(_Kept(member, value, after[len(kept)]))
        else:
            removable -= 1
    return kept
