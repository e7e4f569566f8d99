"""Findings dealt out to the texts of a value, and the value put together again with the texts that changed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate

from clew.model.json import JSON
from clew.redact.finding import Finding
from clew.redact.leaves import LEAST_NUMBER, Joint, is_count
from clew.redact.untouched import is_left, picture


def whole(joint: Joint) -> str:
    """The text that joined texts make."""
    return joint.between.join(text[start:stop] for text, start, stop in joint.windows)


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
    merged: list[Finding] = []
    for finding in sorted([*spans.get(text, ()), *found]):
        if merged and finding.start < merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(merged[-1].end, finding.end))
        else:
            merged.append(finding)
    spans[text] = merged


def rebuilt(value: JSON, changes: Mapping[str, str], key: str = "") -> JSON:
    """The value with some of its texts replaced; the same where there is none."""
    kind = type(value)
    if kind is str:
        return value if is_left(key, value) else changes.get(value, value)
    if kind is list:
        items = [rebuilt(item, changes, key) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if kind is int and value >= LEAST_NUMBER and not is_count(key):
        return changes.get(str(value), value)
    return _rebuilt_object(value, changes, key) if kind is dict else value


def _rebuilt_object(value: dict[str, JSON], changes: Mapping[str, str], own: str) -> dict[str, JSON]:
    members: dict[str, JSON] = {}
    is_new = False
    body = picture(value)
    for key, item in value.items():
        name = changes.get(key, key)
        while name != key and name in members:
            name += "'"  # plain markers are alike, keys must not be
        members[name] = (
            item if key == body else rebuilt(item, changes, own if type(item) is int and is_count(own) else key)
        )
        is_new = is_new or name != key or members[name] is not item
    return members if is_new else value
