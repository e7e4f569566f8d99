"""The one place where raw JSON is untyped."""

from collections.abc import Iterator
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
