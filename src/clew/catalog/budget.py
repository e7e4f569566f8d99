"""Compare the costs in a report of statistics with a budget. A cost that is only a lower bound is never within it.

Sessions without recorded usage make the total a lower bound. Which groups they would be in is not always known.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from clew.analysis.pricing import NANO_DOLLARS
from clew.catalog.stats import Row
from clew.errors import UsageError

ABOVE, WARNING, UNKNOWN, WITHIN = "above", "warning", "unknown", "within"
"""The values of `budget_state`. Unknown: what is known of the cost is within the budget, but not all of it is known."""


class Budget(NamedTuple):
    """An amount, and the share of it from which groups are reported."""

    amount_nano: int
    warn_at: float | None = None

    @classmethod
    def parse(cls, amount: str, warn_at: str | None) -> Budget:
        """A budget from an amount in dollars, such as `10` or `$2.50`, and a percentage, such as `80%` or `80`."""
        try:
            dollars = float(amount.removeprefix("$"))
        except ValueError:
            dollars = 0.0
        if not math.isfinite(dollars * NANO_DOLLARS) or round(dollars * NANO_DOLLARS) <= 0:
            raise UsageError(f"--budget {amount}: write an amount in dollars, such as 10 or 2.50")
        return cls(round(dollars * NANO_DOLLARS), None if warn_at is None else _parse_percent(warn_at))

    def compare(self, row: Row, sessions_without_usage: int = 0) -> Row:
        """The row with its share of the budget, what remains of it, and its state."""
        cost_nano = row["cost_nano"]
        if cost_nano is None:
            return {**row, "budget_share": None, "budget_remaining": None, "budget_state": UNKNOWN}
        share = cost_nano / self.amount_nano
        if cost_nano > self.amount_nano:
            state = ABOVE
        elif self.warn_at is not None and share >= self.warn_at:
            state = WARNING
        else:
            state = UNKNOWN if row["cost_is_at_least"] or sessions_without_usage else WITHIN
        remaining = (self.amount_nano - cost_nano) / NANO_DOLLARS
        return {**row, "budget_share": share, "budget_remaining": remaining, "budget_state": state}


def _parse_percent(text: str) -> float:
    try:
        percent = float(text.removesuffix("%"))
    except ValueError:
        percent = 0.0
    if not 1 <= percent <= 100:
        raise UsageError(f"--warn-at {text}: write a percentage of the budget, such as 80%")
    return percent / 100


def with_budget(found: Row, budget: Budget, by: str | None, sessions_without_usage: int) -> Row:
    """A report whose groups are compared with a budget, or without `by` its total."""
    totals = found["totals"] if by else budget.compare(found["totals"], sessions_without_usage)
    rows = [budget.compare(row) for row in found["rows"]] if by else found["rows"]
    states = {row["budget_state"] for row in (rows if by else [totals])}
    summary = {
        "amount": budget.amount_nano / NANO_DOLLARS,
        "warn_at": budget.warn_at,
        "by": by,
        "is_exceeded": ABOVE in states,
        "has_unknown_costs": found["totals"]["cost_is_at_least"] or UNKNOWN in states or sessions_without_usage > 0,
        "sessions_without_usage": sessions_without_usage,
    }
    return {**found, "totals": totals, "rows": rows, "budget": summary}
