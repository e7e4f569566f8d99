"""The order of keys, learned while reading: all records of one kind agree on it, or say where they do not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class Orders:
    """For each kind of object one order that every object seen so far follows."""

    def __init__(self, known: Mapping[str, Iterable[str]] | None = None) -> None:
        self._orders: dict[str, list[str]] = {name: list(keys) for name, keys in (known or {}).items()}
        self._admitted: dict[str, dict[tuple[str, ...], bool]] = {}

    def admits(self, name: str, keys: tuple[str, ...]) -> bool:
        """True when the keys follow the order of their kind, which learns new keys where that is possible."""
        admitted = self._admitted.get(name)
        if admitted is None:
            admitted = self._admitted[name] = {}
        known = admitted.get(keys)
        if known is None:
            known = admitted[keys] = self._learn(name, keys)
        return known

    def of(self, name: str) -> list[str]:
        """The order of a kind, empty where none was seen."""
        return self._orders.get(name, [])

    def all(self) -> dict[str, list[str]]:
        """Every order, for the document."""
        return self._orders

    def _learn(self, name: str, keys: tuple[str, ...]) -> bool:
        order = self._orders.get(name)
        if order is None:
            self._orders[name] = list(keys)
            return True
        places = {key: at for at, key in enumerate(order)}
        seen = [places[key] for key in keys if key in places]
        if seen != sorted(seen):
            return False
        if len(seen) < len(keys):
            self._orders[name] = _merge(order, keys, places)
        return True


def _merge(order: list[str], keys: tuple[str, ...], places: dict[str, int]) -> list[str]:
    """The order with the new keys put right before the known key that follows them."""
    merged: list[str] = []
    at = 0
    waiting: list[str] = []
    for key in keys:
        if key in places:
            merged += [*order[at : places[key]], *waiting, key]
            at, waiting = places[key] + 1, []
        else:
            waiting.append(key)
    return [*merged, *waiting, *order[at:]] if waiting and not order[at:] else [*merged, *order[at:], *waiting]
