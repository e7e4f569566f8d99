"""What requests used: which token events are requests, and which message each of them ends with."""

from __future__ import annotations

from array import array
from binascii import b2a_base64
from collections.abc import Sequence
from hashlib import blake2b

import msgspec

from clew.agents.codex.lines import NO_TOKENS, Tokens
from clew.derive.usage import UsageLedger
from clew.io.codec import dumps

COUNTS = ("input_tokens", "output_tokens", "cache_creation_tokens", "cache_read_tokens", "reasoning_tokens")
WIDTH = 1 + len(COUNTS)
"""A row of usage: index of the message, then the counts in the order of COUNTS."""
_UNKNOWN = -1
_SMALL = 2**31 - 1


def unified(tokens: Tokens) -> list[int | None]:
    """The counts in the order of COUNTS: Codex counts cached input inside the input."""
    fresh = tokens.input
    if fresh is not None:
        fresh = max(0, fresh - (tokens.cached or 0) - (tokens.written or 0))
    return [fresh, tokens.output, tokens.written, tokens.cached, tokens.reasoning]


class Meter:
    """Finds the requests among token events: one request is one change of the total."""

    def __init__(self) -> None:
        self._before: Tokens | None = None

    def read(self, total: Tokens | None, last: Tokens | None, answered: bool) -> Tokens | None:
        """What the request behind an event used; None where the event repeats another, or only estimates.

        A counter that began anew may reach the same total: `answered` tells that a new turn got an answer.
        """
        state = total or last
        if state is None or (state == self._before and not (answered and total == last)):
            return None
        before, self._before = self._before, state
        used = last if last is not None else _growth(state, before)
        return used if (used.input or 0) + (used.output or 0) > 0 else None


def _growth(total: Tokens, before: Tokens | None) -> Tokens:
    """The difference of two totals; the whole of the later one after a restart."""
    if before is None or (total.total or 0) < (before.total or 0):
        return total
    pairs = zip(msgspec.structs.astuple(total), msgspec.structs.astuple(before), strict=True)
    return Tokens(*[None if now is None else max(0, now - (was or 0)) for now, was in pairs])


class Spent:
    """What requests used, by the index of the message that ends each; in order, and small."""

    def __init__(self) -> None:
        self._rows: array[int] = array("i")
        self._next = 0

    def add(self, index: int, counts: Sequence[int | None]) -> None:
        """Note a request; a second one for the same message is added to the first."""
        row = [index, *(_UNKNOWN if count is None else count for count in counts)]
        if self._rows and self._rows[-WIDTH] == index:
            pairs = zip(row[1:], self._rows[1 - WIDTH :], strict=True)
            row = [index, *(new + max(old, 0) if new != _UNKNOWN else old for new, old in pairs)]
            del self._rows[-WIDTH:]
        if self._rows.typecode == "i" and max(row) > _SMALL:
            self._rows = array("q", self._rows)
        self._rows.extend(row)

    def rewind(self) -> None:
        """Begin to ask from the first message on again."""
        self._next = 0

    def at(self, index: int) -> dict[str, int] | None:
        """The usage of a message; to be asked in order."""
        rows, at = self._rows, self._next
        if at >= len(rows) or rows[at] > index:
            return None
        while at < len(rows) and rows[at] < index:
            at += WIDTH
        self._next = at
        if at >= len(rows) or rows[at] != index:
            return None
        return {name: rows[at + 1 + n] for n, name in enumerate(COUNTS) if rows[at + 1 + n] != _UNKNOWN}


_Waiting = tuple[str, list[int | None], str | None]
"""Key, counts and model of a request; a plain tuple, as there are many."""


class Requests:
    """Follows prompts, items and token events, and puts each request down to the last item of its answer.

    Until late 2025 a token event stands before the items of its request, later behind them: an event with no item
    of its own before it waits for those that follow. Without a ledger only the messages get to know, and without
    messages only the ledger.
    """

    def __init__(self, ledger: UsageLedger | None, spent: Spent | None) -> None:
        self._ledger, self._spent = ledger, spent
        self._meter = Meter()
        self._index, self._mark = 0, ""
        self._model: str | None = None
        self._unclaimed = self._prompted = self._answered = False
        self._waiting: _Waiting | None = None

    def prompt(self) -> None:
        """A turn begins."""
        self.settle()
        self._unclaimed, self._prompted, self._answered = False, True, False

    def item(self, index: int, model: str | None, mark: str) -> None:
        """The model gave an item; the mark tells it apart from others."""
        self._index, self._model, self._mark = index, model, mark
        self._unclaimed, self._answered = True, self._prompted

    def event(
        self, total: Tokens | None, last: Tokens | None, scope: tuple[str, str], model: str | None, inherited: bool
    ) -> None:
        """A token event; the scope is the same in all copies of it, and nowhere else."""
        total = None if total == NO_TOKENS else total
        last = None if last == NO_TOKENS else last
        used = self._meter.read(total, last, self._answered)
        if used is None:
            return
        claims = self._unclaimed and self._waiting is None
        self.settle()
        self._unclaimed = self._prompted = self._answered = False
        if inherited:
            return
        name = "" if self._ledger is None else key(*scope, self._mark, total, last)
        if claims:
            self._put(name, unified(used), model)
        else:
            self._waiting = name, unified(used), model

    def settle(self) -> None:
        """Put the request that waits down to the last item."""
        if self._waiting is not None:
            key, counts, model = self._waiting
            self._waiting = None
            self._put(key, counts, model)

    def _put(self, key: str, counts: list[int | None], model: str | None) -> None:
        if self._index and self._spent is not None:
            self._spent.add(self._index, counts)
        if self._ledger is not None:
            given, said, written, cached, reasoning = counts
            ordered = [given, said, written, cached, None, None, reasoning]
            self._ledger.note(key, self._model or model, ordered, self._index)


def key(*facts: str | Tokens | None) -> str:
    """A short name for a request: there are many of them, and they are held."""
    return b2a_base64(blake2b(dumps(facts), digest_size=8).digest(), newline=False).decode()
