"""The one place where raw JSON is untyped."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

JSON: TypeAlias = Any
Extensions: TypeAlias = dict[str, Any]


def strings_in(value: JSON) -> Iterator[str]:
    """Every string and number inside a value as text, in its order, without recursion."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            waiting.extend(reversed(item.values()))
        elif isinstance(item, list):
            waiting.extend(reversed(item))
        elif type(item) in (int, float):
            yield str(item)


def object_at(value: JSON, *keys: str) -> Mapping[str, JSON]:
    """The object that keys lead to, one inside the other; an empty one where there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}
