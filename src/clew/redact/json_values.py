"""Rebuilds JSON values with masked strings. No recursion: values may be nested however deep."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from clew.model.json import JSON
from clew.redact.json_text import FORMAT_NAMES, number_text
from clew.redact.json_walk import MIN_SCANNED_NUMBER, SCANNED_NUMBERS_BELOW, is_count, is_plain_id
from clew.redact.lazy_pattern import lazy_compile

_CONTAINERS = frozenset({dict, list, tuple})
_TYPE_KEYS = frozenset({"type", "role"})
_TYPE = lazy_compile(r"[a-z][a-z_-]{0,23}")
# The name of a member, as formats have it.
_NAME = lazy_compile(r"[A-Za-z_$][A-Za-z_$-]{0,30}[0-9]{0,2}")


def strings_of(value: JSON) -> Iterator[str]:
    """Yield every string of a value, keys included, and every number as text."""
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


def replace_strings(value: JSON, changes: Mapping[str, str]) -> JSON:
    """Replace some strings of a value; return the same object if it has none of them."""
    todo, met, new = [value], [], dict[int, JSON]()
    while todo:
        item = todo.pop()
        if type(item) in _CONTAINERS:
            met.append(item)
            todo += item.values() if type(item) is dict else item
    for item in reversed(met):  # inner ones first
        new[id(item)] = _object(item, changes, new) if type(item) is dict else _list(item, changes, new)
    return _replaced(value, changes, new)


def _replaced(value: JSON, changes: Mapping[str, str], new: Mapping[int, JSON]) -> JSON:
    """Return the replacement of a value; `new` has those of objects and lists, by id."""
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
            name = _unused_name(name, members, numbers)
        members[name] = _replaced(item, changes, new)
        is_new = is_new or name != key or members[name] is not item
    return members if is_new else value


def _unused_name(name: str, members: Mapping[str, JSON], numbers: dict[str, int]) -> str:
    """Return the name, with a number if a member has it already: plain markers are equal, keys must not be."""
    other = name
    while other in members:
        numbers[name] = numbers.get(name, 1) + 1
        other = f"{name}'{numbers[name]}"
    return other


def strings_to_keep(value: JSON) -> set[str]:
    """Return the keys, ids and numbers that a value keeps when all its other strings are masked."""
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


def mask_all_strings(value: JSON, marker: str, kept: Container[str]) -> JSON:
    """Replace every string and long number by a marker, but for ids, times and the type of a record.

    Of these, and of keys and other numbers, only those in `kept` stay.
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
            is_long = kind is int and MIN_SCANNED_NUMBER <= item < SCANNED_NUMBERS_BELOW and not is_count(key)
            digits = number_text(item)
            return item if digits in kept and (not is_long or is_plain_id(key, digits)) else marker
        return item

    for item, key in reversed(met):  # inner ones first
        if type(item) is dict:
            members: dict[str, JSON] = {}
            numbers: dict[str, int] = {}
            for name, own in item.items():
                shown = name if name in kept and _NAME.fullmatch(name) else _unused_name(marker, members, numbers)
                members[shown] = masked(own, name)
            new[id(item)] = members
        else:
            new[id(item)] = [masked(own, key) for own in item]
    return masked(value, "")
