"""Findings dealt out to the texts of a value, and the value put together again with the texts that changed."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import accumulate

from clew.model.json import JSON
from clew.redact.findings import Finding
from clew.redact.json_text import number_text
from clew.redact.json_walk import LEAST_NUMBER, MOST_NUMBER, Joint, is_count
from clew.redact.matcher import TOO_MANY
from clew.redact.skip_rules import FORMAT_NAMES, is_plain_id

_CONTAINERS = frozenset({dict, list, tuple})
_TYPE_KEYS = frozenset({"type", "role"})
_TYPE = re.compile(r"[a-z][a-z_-]{0,23}")
# The name of a member, as formats have it.
_NAME = re.compile(r"[A-Za-z_$][A-Za-z_$-]{0,30}[0-9]{0,2}")


def whole(joint: Joint) -> str:
    """The text that joined texts make."""
    return joint.between.join([text[start:stop] for text, start, stop in joint.windows])


def near(joint: Joint, reach: int) -> Joint:
    """The same texts, but of the first and the last one only so much as lies next to the others."""
    (first, start, stop), *inner, (last, begin, end) = joint.windows
    windows = (first, max(start, stop - reach), stop), *inner, (last, begin, min(end, begin + reach))
    return joint._replace(windows=windows)


def dealt(joint: Joint, found: Iterable[Finding], least: float) -> dict[str, list[Finding]]:
    """Findings in joined texts, as findings in each of them; across a seam, those that are sure at `least`."""
    ends = list(accumulate((stop - start + len(joint.between) for _, start, stop in joint.windows)))
    spans: dict[str, list[Finding]] = {}
    for finding in found:
        parts = list(_parts(joint, ends, finding))
        if not joint.is_seam or (len(parts) > 1 and finding.confidence >= least):
            for text, part in parts:
                spans.setdefault(text, []).append(part)
    return spans


def _parts(joint: Joint, ends: list[int], finding: Finding) -> Iterator[tuple[str, Finding]]:
    first = bisect_right(ends, finding.start)
    for number in range(first, len(ends)):
        at = ends[number - 1] if number else 0
        if at >= finding.end:
            return
        text, begin, stop = joint.windows[number]
        start, end = max(finding.start - at, 0), min(finding.end - at, stop - begin)
        if start < end:
            yield text, finding._replace(start=begin + start, end=begin + end)


def within(found: list[Finding], start: int, length: int) -> list[Finding]:
    """The part of findings that lies in a text which begins at `start`."""
    if not start:
        return found
    moved = (
        finding._replace(start=max(finding.start - start, 0), end=min(finding.end - start, length)) for finding in found
    )
    return [finding for finding in moved if finding.start < finding.end]


def add(spans: dict[str, list[Finding]], text: str, found: list[Finding]) -> None:
    """Add findings to those of a text; where they overlap, they become one."""
    if len(found) == 1 and text not in spans:
        spans[text] = found
        return
    merged: list[Finding] = []
    for finding in sorted([*spans.get(text, ()), *found]):
        if merged and finding.start < merged[-1].end:
            # A value and what was not checked behind it are no value together.
            is_unchecked = finding.rule == TOO_MANY and finding.end > merged[-1].end
            rule = TOO_MANY if is_unchecked else merged[-1].rule
            merged[-1] = merged[-1]._replace(end=max(merged[-1].end, finding.end), rule=rule)
        else:
            merged.append(finding)
    spans[text] = merged


def texts_of(value: JSON) -> Iterator[str]:
    """Every string of a value, keys included, and every number as text."""
    todo = [value]
    while todo:
        item = todo.pop()
        kind = type(item)
        if kind is str:
            yield item
        elif kind is dict:
            yield from item
            todo += item.values()
        elif kind in _CONTAINERS:
            todo += item
        elif kind is int or kind is float:
            yield number_text(item)


def rebuilt(value: JSON, changes: Mapping[str, str]) -> JSON:
    """The value with some of its texts replaced; the same where there is none. However deep it is."""
    todo, met, new = [value], [], dict[int, JSON]()
    while todo:
        item = todo.pop()
        if type(item) in _CONTAINERS:
            met.append(item)
            todo += item.values() if type(item) is dict else item
    for item in reversed(met):  # what is within comes first
        new[id(item)] = _object(item, changes, new) if type(item) is dict else _list(item, changes, new)
    return _replaced(value, changes, new)


def _replaced(value: JSON, changes: Mapping[str, str], new: Mapping[int, JSON]) -> JSON:
    """A value as it is to be; `new` has the objects and lists."""
    kind = type(value)
    if kind is str:
        return changes.get(value, value)
    if kind is int or kind is float:
        return changes.get(number_text(value), value)
    return new[id(value)] if kind in _CONTAINERS else value


def _list(value: list[JSON], changes: Mapping[str, str], new: Mapping[int, JSON]) -> JSON:
    items = [_replaced(item, changes, new) for item in value]
    return items if any(now is not old for now, old in zip(items, value, strict=True)) else value


def _object(value: dict[str, JSON], changes: Mapping[str, str], new: Mapping[int, JSON]) -> JSON:
    members: dict[str, JSON] = {}
    numbers: dict[str, int] = {}
    is_new = False
    for key, item in value.items():
        name = key if key in FORMAT_NAMES else changes.get(key, key)
        if name != key:
            name = _other_name(name, members, numbers)
        members[name] = _replaced(item, changes, new)
        is_new = is_new or name != key or members[name] is not item
    return members if is_new else value


def _other_name(name: str, members: Mapping[str, JSON], numbers: dict[str, int]) -> str:
    """The name, or one that no member has yet: plain markers are alike, keys must not be."""
    other = name
    while other in members:
        numbers[name] = numbers.get(name, 1) + 1
        other = f"{name}'{numbers[name]}"
    return other


def kept_texts(value: JSON) -> set[str]:
    """The keys and ids that stay where all else in a value is masked, if they hold nothing."""
    kept = set[str]()
    todo = [(value, "")]
    while todo:
        item, key = todo.pop()
        if type(item) is dict:
            kept.update(name for name in item if _NAME.fullmatch(name))
            todo += ((own, name) for name, own in item.items())
        elif type(item) in _CONTAINERS:
            todo += ((own, key) for own in item)
        elif type(item) is str and _is_kept(item, key):
            kept.add(item)
        elif type(item) is int or type(item) is float:
            kept.add(number_text(item))
    return kept


def _is_kept(text: str, key: str) -> bool:
    return (key in _TYPE_KEYS and _TYPE.fullmatch(text) is not None) or is_plain_id(key, text)


def masked_whole(value: JSON, marker: str, kept: Container[str]) -> JSON:
    """The value with a marker for every string and long number but ids, times, and what names the type of a record.

    Of these, and of keys and numbers, only those in `kept` stay.
    """
    todo, met, new = [(value, "")], [], dict[int, JSON]()
    while todo:
        item, key = todo.pop()
        if type(item) in _CONTAINERS:
            met.append((item, key))
            todo += ((own, name) for name, own in item.items()) if type(item) is dict else ((own, key) for own in item)

    def masked(item: JSON, key: str) -> JSON:
        kind = type(item)
        if kind in _CONTAINERS:
            return new[id(item)]
        if kind is str:
            return item if item in kept and _is_kept(item, key) else marker
        if kind is int or kind is float:
            is_long = kind is int and LEAST_NUMBER <= item < MOST_NUMBER and not is_count(key)
            digits = number_text(item)
            return item if digits in kept and (not is_long or is_plain_id(key, digits)) else marker
        return item

    for item, key in reversed(met):  # what is within comes first
        if type(item) is dict:
            members: dict[str, JSON] = {}
            numbers: dict[str, int] = {}
            for name, own in item.items():
                shown = name if name in kept and _NAME.fullmatch(name) else _other_name(marker, members, numbers)
                members[shown] = masked(own, name)
            new[id(item)] = members
        else:
            new[id(item)] = [masked(own, key) for own in item]
    return masked(value, "")
