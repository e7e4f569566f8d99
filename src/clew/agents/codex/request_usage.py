"""Which token events are API requests, and which message each request ends with.

A token event (`token_count`) gives the running total of the thread and what the last request used. The same event is
repeated when rate limits are refreshed and when a turn ends, so one request is one change of the total.
"""

from __future__ import annotations

from binascii import b2a_base64
from hashlib import blake2b

from msgspec import UNSET
from msgspec.structs import astuple

from clew.agents.codex.records import NO_TOKENS, TokenCounts, TokenInfo
from clew.io.codec import dumps
from clew.model.events import UsageReport
from clew.model.usage import TokenUsage


class RequestTracker:
    """Follows prompts, items and token events, and puts each request down to the last item of its answer.

    Until late 2025 a token event stands before the items of its request, later behind them: an event with no item
    of its own before it waits for those that follow.
    """

    def __init__(self) -> None:
        self._before: TokenCounts | None = None
        """The total of the event before, or else its last request."""
        self._total: TokenCounts | None = None
        self._index, self._item = 0, ""
        self._model: str | None = None
        self._is_unclaimed = self._is_prompted = self._is_answered = False
        self._waiting: UsageReport | None = None

    def begin_turn(self) -> list[UsageReport]:
        """A turn begins; returns the request that waited for items."""
        self._is_unclaimed, self._is_prompted, self._is_answered = False, True, False
        return self.finish()

    def add_item(self, index: int, model: str | None, item: str) -> None:
        """The model gave an item."""
        self._index, self._model, self._item = index, model, item
        self._is_unclaimed, self._is_answered = True, self._is_prompted

    def add_event(self, info: TokenInfo, turn: str, model: str | None, is_inherited: bool) -> list[UsageReport]:
        """A token event; returns the request that waited for items, and that of the event unless it waits now.

        `turn` is the id of the turn. Rollouts before late 2025 have none: there it is the id of the thread.
        """
        total = None if info.total_token_usage == NO_TOKENS else info.total_token_usage
        last = None if info.last_token_usage == NO_TOKENS else info.last_token_usage
        used = self._used(total, last)
        if used is None:
            return []
        has_item = self._is_unclaimed and self._waiting is None
        reports = self.finish()
        self._is_unclaimed = self._is_prompted = self._is_answered = False
        if not is_inherited:
            # The id tells the request apart from all others, and is the same in every copy of the rollout, also in one
            # with another thread id. It is short, because the ids of all requests are kept.
            facts = dumps((turn, self._item, total, last))
            call_id = b2a_base64(blake2b(facts, digest_size=8).digest(), newline=False).decode()
            report = UsageReport(call_id=call_id, usage=unified(used), model=model)
            if has_item:
                reports.append(self._put(report))
            else:
                self._waiting = report
        return reports

    def _used(self, total: TokenCounts | None, last: TokenCounts | None) -> TokenCounts | None:
        """What the request behind an event used; None where the event repeats another one, or only estimates."""
        state = total or last
        # A counter that began anew may reach the same total again, once a new turn got an answer.
        if state is None or (state == self._before and not (self._is_answered and total == last)):
            return None
        before, self._before, self._total = self._total, state, total
        used = last
        if total is not None and (last is None or _has_unreported(total, before, last)):
            used = _growth(total, before)
        return used if used is not None and _size(used) > 0 else None

    def finish(self) -> list[UsageReport]:
        """Put the request that waits down to the last item."""
        waiting, self._waiting = self._waiting, None
        return [self._put(waiting)] if waiting is not None else []

    def _put(self, report: UsageReport) -> UsageReport:
        report.model = self._model or report.model
        report.message_index = self._index
        return report


def _size(counts: TokenCounts) -> int:
    return (counts.input or 0) + (counts.output or 0)


def _has_unreported(total: TokenCounts, before: TokenCounts | None, last: TokenCounts) -> bool:
    """True where a total grew by more than the last request.

    A turn that was aborted reports no request, but what it used is in the next total. A counter that began anew is
    smaller than before somewhere, and tells nothing of the time in between.
    """
    if before is None or _size(total) - _size(before) <= _size(last):
        return False
    return all((now or 0) >= (was or 0) for now, was in zip(astuple(total), astuple(before), strict=True))


def _growth(total: TokenCounts, before: TokenCounts | None) -> TokenCounts:
    """The difference of two totals; the whole of the later one after a restart."""
    if before is None or (total.total or 0) < (before.total or 0):
        return total
    pairs = zip(astuple(total), astuple(before), strict=True)
    return TokenCounts(*[None if now is None else max(0, now - (was or 0)) for now, was in pairs])


def unified(counts: TokenCounts) -> TokenUsage:
    """Counts in the convention of the model, where cached input stands apart from the input."""
    fresh = counts.input
    if fresh is not None:
        fresh = max(0, fresh - (counts.cached or 0) - (counts.written or 0))
    return TokenUsage(
        input_tokens=UNSET if fresh is None else fresh,
        output_tokens=UNSET if counts.output is None else counts.output,
        cache_creation_tokens=UNSET if counts.written is None else counts.written,
        cache_read_tokens=UNSET if counts.cached is None else counts.cached,
        reasoning_tokens=UNSET if counts.reasoning is None else counts.reasoning,
    )


_COUNTS = ("input_tokens", "output_tokens", "cache_creation_tokens", "cache_read_tokens", "reasoning_tokens")


def add_usage(one: TokenUsage, other: TokenUsage) -> TokenUsage:
    """The sum of two requests that end with the same message; unknown and known is known."""
    total = TokenUsage()
    for name in _COUNTS:
        counts = [count for count in (getattr(one, name), getattr(other, name)) if count is not UNSET]
        if counts:
            setattr(total, name, sum(counts))
    return total
