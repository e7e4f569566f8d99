"""The order of keys: the records of one kind agree on one order, or on very few, known beforehand or learned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

MAX_ALTERNATIVES = 8
"""A kind may change its order so often inside one source; then each odd record says its own."""

MAX_KEYS = 500
"""An order grows no longer than this; no kind of record has so many keys."""

Order = tuple[str, ...]
State = tuple[tuple[Order, ...], ...]
Known = Mapping[str, Iterable[Iterable[str]]]


class Orders:
    """For each kind of object the orders that the objects seen so far follow; number 0 is the usual one.

    `hints` are orders that are known to occur: the first that fits is taken whole, so that a few orders serve
    most sources. A kind with a single known order is expected to follow it.
    """

    def __init__(self, known: Known | None = None, hints: Mapping[str, list[Order]] | None = None) -> None:
        self._hints = hints or {}
        self._orders = {name: list(orders) for name, orders in self._hints.items() if len(orders) == 1}
        self._orders.update({name: [tuple(order) for order in orders] for name, orders in (known or {}).items()})

    def learn(self, name: str, keys: Order) -> int | list[str]:
        """The number of an order that the keys follow, or the keys themselves where there is none."""
        orders = self._orders.setdefault(name, [])
        for number, order in enumerate(orders):
            if follows(keys, order) == len(keys):
                return number
        hint = next((hint for hint in self._hints.get(name, ()) if follows(keys, hint) == len(keys)), None)
        if hint is None:
            for number, order in enumerate(orders):
                if follows(keys, order) >= 0 and len(order) < MAX_KEYS:
                    orders[number] = _merge(order, keys)
                    return number
        if len(orders) >= MAX_ALTERNATIVES:
            return list(keys)
        orders.append(hint or keys)
        return len(orders) - 1

    def state(self, names: Iterable[str]) -> State:
        """The orders of some kinds, to be compared or set again."""
        return tuple([tuple(self._orders.get(name, ())) for name in names])

    def restore(self, names: Iterable[str], state: State) -> None:
        """Set the orders of some kinds to a state in which they were, here or in another source."""
        for name, orders in zip(names, state, strict=True):
            if orders:
                self._orders[name] = list(orders)

    def of(self, name: str, number: int | list[str] = 0) -> Iterable[str]:
        """An order of a kind, empty where none was seen."""
        if isinstance(number, list):
            return number
        orders = self._orders.get(name, [])
        return orders[number] if number < len(orders) else ()

    def all(self) -> dict[str, list[Order]]:
        """Every order, for the document."""
        return self._orders


@lru_cache(4096)
def follows(keys: Order, order: Order) -> int:
    """How many of the keys the order knows, if they stand in it in their order; else -1."""
    places = {key: at for at, key in enumerate(order)}
    seen = [places[key] for key in keys if key in places]
    return len(seen) if seen == sorted(seen) else -1


def _merge(order: Order, keys: Order) -> Order:
    """The order with each new key put right before the known key that follows it."""
    places = {key: at for at, key in enumerate(order)}
    merged: list[str] = []
    waiting: list[str] = []
    at = 0
    for key in keys:
        if key in places:
            merged += [*order[at : places[key]], *waiting, key]
            at, waiting = places[key] + 1, []
        else:
            waiting.append(key)
    return (*merged, *order[at:], *waiting)
