"""What tokens cost: a dated table of prices, the user's own prices over it, and exact sums in whole nano-dollars.

Reads the table when the first price is needed.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any, NamedTuple
from zlib import crc32

from clew.datadir import config_path
from clew.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_BRACKET = re.compile(r"\[[^\]]*\]$")
"""`claude-sonnet-4-5[1m]`: the size of the context."""
_REGION = re.compile(r"^(?:[a-z]{2,6}\.)?(?:anthropic|openai|google|meta|mistral|deepseek|qwen|moonshot|zai)\.")
"""`us.anthropic.claude-...`: where a cloud runs it, and whose it is."""
_VERSION = re.compile(r"(?:-v\d+)?(?::\d+|:[a-z]+)$|-v\d+$")
"""`-v1:0`, `:free`: a cloud's own version or plan."""
_DATE = re.compile(r"[-@](?:20\d{6}|20\d\d-\d\d-\d\d)$")
_LATEST = re.compile(r"[-@](?:latest|default)$")
_DOTTED = re.compile(r"^(claude-.*\d)\.(\d)")

OVERRIDE = "prices.json"
"""The user's own prices, in the folder for settings."""
TABLE_PATH = f"{__file__.removesuffix('pricing.py')}prices.json"
NANO_DOLLARS = 10**9
"""Nano-dollars in a dollar."""
_NANO = 1000
"""Trillionths of a dollar in a nano-dollar."""
_KINDS = ("input", "output", "cache_read", "cache_creation_5m", "cache_creation_1h")
_PER_MILLION = 1_000_000
_MOST = 10**18
"""No price is larger; one with a great exponent would fill the memory."""


class Rates(NamedTuple):
    """Trillionths of a dollar for one token of each kind."""

    input: int
    output: int
    cache_read: int
    cache_creation_5m: int
    cache_creation_1h: int


class Price(NamedTuple):
    """What a model costs, and what it costs when the input of a call is longer than `limit`."""

    rates: Rates
    limit: int | None = None
    above: Rates | None = None


class PriceTable:
    """Prices by model. A model without a price has none: its cost is unknown, never zero."""

    def __init__(self, date: str, models: Mapping[str, dict[str, Any]], own: Mapping[str, dict[str, Any]]) -> None:
        self.date = date
        self._models, self._own = models, own
        self._found: dict[str, Price | None] = {}
        # hashlib takes longer to load than all else here.
        mark = crc32(json.dumps([date, models, own], sort_keys=True).encode())
        self.version = f"{date} {mark:08x}"
        """Another version may give other costs."""

    def price(self, model: str) -> Price | None:
        """The price of a model as an agent names it; None where there is none.

        The user's prices come first, by the name as it is and then by its plain name; then the table's likewise.
        """
        if model not in self._found:
            plain = plain_name(model)
            names = [(self._own, model), (self._own, plain), (self._models, model), (self._models, plain)]
            facts = next((table[name] for table, name in names if name in table), None)
            self._found[model] = _price(facts) if facts is not None else None
        return self._found[model]

    def cost(
        self,
        model: str,
        input: int = 0,
        output: int = 0,
        cache_read: int = 0,
        cache_creation_5m: int = 0,
        cache_creation_1h: int = 0,
    ) -> int | None:
        """What one call cost in nano-dollars, rounded half up once; None for a model without a price.

        Output includes reasoning. All input counts towards the limit of a tier, cached or not.
        """
        price = self.price(model)
        if price is None:
            return None
        rates = price.rates
        if price.above is not None and price.limit is not None:
            given = input + cache_read + cache_creation_5m + cache_creation_1h
            rates = price.above if given > price.limit else rates
        exact = (
            input * rates.input
            + output * rates.output
            + cache_read * rates.cache_read
            + cache_creation_5m * rates.cache_creation_5m
            + cache_creation_1h * rates.cache_creation_1h
        )
        return (exact + _NANO // 2) // _NANO

    def cache_savings(self, model: str, cache_read: int, cache_creation_5m: int, cache_creation_1h: int) -> int | None:
        """The nano-dollars that calls cost less than if all cached tokens had been plain input; below zero: more.

        None for a model without a price, and for one whose price depends on the length of each call.
        """
        price = self.price(model)
        if price is None or price.above is not None:
            return None
        rates = price.rates
        exact = (
            cache_read * (rates.input - rates.cache_read)
            + cache_creation_5m * (rates.input - rates.cache_creation_5m)
            + cache_creation_1h * (rates.input - rates.cache_creation_1h)
        )
        return (exact + _NANO // 2) // _NANO

    def cost_of_call(self, model: str, counts: Sequence[int | None]) -> int | None:
        """The cost of one call from its counts as recorded: input, output, cache creation, cache read, cache creation
        for 5 minutes and for 1 hour, reasoning.

        None without a price, and where no count is recorded. Cache creation that is not recorded as living for an hour
        lives for five minutes.
        """
        fresh, output, created, read, created_5m, created_1h, _ = counts
        if all(count is None for count in counts):
            return None
        if created_5m is None:
            created_5m = max(0, (created or 0) - (created_1h or 0))
        return self.cost(model, fresh or 0, output or 0, read or 0, created_5m, created_1h or 0)

    def costs(self, model: str, columns: Sequence[Sequence[int]], sums: Sequence[int | None]) -> int | None:
        """What many calls of one model cost, each rounded by itself; a count below zero is unknown, and costs nothing.

        The columns are those of `cost`, in its order; `sums` are theirs.
        """
        price = self.price(model)
        if price is None:
            return None
        if price.above is None and not any(rate % _NANO for rate in price.rates):
            # Nothing is rounded, so the sum of the costs is the cost of the sums.
            return sum((total or 0) * (rate // _NANO) for total, rate in zip(sums, price.rates, strict=True))
        return sum(self.cost(model, *[max(0, count) for count in counts]) or 0 for counts in zip(*columns, strict=True))


def _price(facts: Mapping[str, Any]) -> Price:
    rates = _rates(facts, None)
    above = facts.get("above")
    if above is None:
        return Price(rates)
    return Price(rates, above["tokens"], _rates(above, rates))


def _rates(facts: Mapping[str, Any], base: Rates | None) -> Rates:
    """Rates from those that are given.

    Defaults: cached input costs what input does, an hour in the cache twice the input where five minutes cost more than
    input, and a tier what the one below it costs.
    """
    given = facts.get("input", base.input if base else 0)
    short = facts.get("cache_creation_5m", base.cache_creation_5m if base else given)
    long = facts.get("cache_creation_1h", 2 * given if short > given else short)
    output = facts.get("output", base.output if base else 0)
    return Rates(given, output, facts.get("cache_read", base.cache_read if base else given), short, long)


def prices() -> PriceTable:
    """The package's table with the user's own prices over it."""
    place = override_path()
    state = _state(place)
    if (place, state) not in _tables:
        _tables.clear()
        _tables[place, state] = _load(place if state is not None else None)
    return _tables[place, state]


_tables: dict[tuple[str, int | None], PriceTable] = {}
"""The table that was read last: it is the same until the user's file changes."""


def _load(place: str | None) -> PriceTable:
    with open(TABLE_PATH, "rb") as file:
        table = json.loads(file.read())
    return PriceTable(table["date"], table["models"], _own(place) if place is not None else {})


def _state(path: str) -> int | None:
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - pathlib is not light
    except OSError:
        return None


def override_path() -> str:
    """Where the user's own prices are looked for; `CLEW_PRICES` names another file."""
    return os.environ.get("CLEW_PRICES") or f"{config_path()}/{OVERRIDE}"


def _own(path: str) -> dict[str, dict[str, Any]]:
    """The user's prices: dollars for a million tokens, by model and kind."""
    try:
        # A price is read as it is spelled, so that no float comes between.
        with open(path, encoding="utf-8") as file:
            given = json.loads(file.read(), parse_float=_exact, parse_int=_exact)
        return {name: _checked(facts) for name, facts in given.items()}
    except (OSError, ValueError, ArithmeticError, AttributeError, TypeError, KeyError) as error:
        raise UsageError(f"{path}: not a price table: {error}") from error


def _checked(facts: Mapping[str, Any]) -> dict[str, Any]:
    checked: dict[str, Any] = _numbers({kind: fact for kind, fact in facts.items() if kind != "above"}, *_KINDS)
    if "input" not in checked or "output" not in checked:
        raise ValueError("a price needs input and output")
    if "above" in facts:
        above = _numbers(dict(facts["above"]), "tokens", *_KINDS)
        checked["above"] = {**above, "tokens": above["tokens"] // _PER_MILLION}
    return checked


def _numbers(facts: dict[str, Any], *known: str) -> dict[str, int]:
    """The facts, each of which has a known name and is a number."""
    unknown = set(facts) - set(known)
    if unknown:
        raise ValueError(f"unknown {', '.join(sorted(unknown))}; known: {', '.join(sorted([*known, 'above']))}")
    for kind, fact in facts.items():
        if type(fact) is not int:
            raise ValueError(f"{kind}: {fact!r} is no number")
    return facts


def _exact(text: str) -> int:
    """Dollars for a million tokens are millionths of a dollar for one: a million trillionths."""
    from decimal import Decimal

    exact = Decimal(text) * _PER_MILLION
    if not 0 <= exact <= _MOST or exact != exact.to_integral_value():
        raise ValueError(f"{text} is no price")
    return int(exact)


def plain_name(model: str) -> str:
    """A model's name without provider, region, version, date and brackets, in small letters.

    `anthropic/claude-sonnet-4.5`, `us.anthropic.claude-sonnet-4-5-20250929-v1:0`, `claude-sonnet-4-5@20250929` and
    `claude-sonnet-4-5-20250929[1m]` are all `claude-sonnet-4-5`.
    """
    name = _BRACKET.sub("", model.strip().lower()).rpartition("/")[2]
    name = _REGION.sub("", name)
    for pattern in (_VERSION, _DATE, _LATEST):
        name = pattern.sub("", name)
    return _DOTTED.sub(r"\1-\2", name)
