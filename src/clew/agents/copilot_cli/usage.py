"""Token usage of a session, each request counted once.

Since about version 1.0.90 every request leaves a `session.usage_record`, before the reply that it belongs to. Earlier
versions wrote the output tokens of a reply into it, and all counts by model into a shutdown event. What that states
beyond the requests counted so far goes to the last of them, or is reported as one request.
"""

from __future__ import annotations

from clew.agents import decoding
from clew.agents.copilot_cli.records import ModelMetric, Usage
from clew.model.events import UsageReport
from clew.model.usage import TokenUsage

_COUNTS = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens")
_MAX_WAITING_RECORDS = 1000
"""So many replies at most wait for a usage record: usage of an older one is reported with the last reply."""


def token_usage(usage: Usage) -> TokenUsage:
    """The counts as all agents have them: input apart from what was cached."""
    return decoding.token_usage(
        input=usage.inputTokens,
        output=usage.outputTokens,
        cache_read=usage.cacheReadTokens,
        cache_write=usage.cacheWriteTokens,
        reasoning=usage.reasoningTokens,
        is_cache_in_input=True,
    )


class SessionUsage:
    """Usage by request, and what only shutdown events state."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[Usage, str | None]] = {}
        """Usage, and its time, of requests whose reply did not come yet, by the id of the request."""
        self._messages: dict[str, int] = {}
        """The last messages without a usage record, by the id of their request."""
        self._last_call: dict[str, str] = {}
        """By model: the last request of which a reply states the output alone."""
        self._counted: dict[str, list[int]] = {}
        """The counts so far, by model, in the order of `_COUNTS`."""
        self._earlier: dict[str, list[int]] = {}
        """Of old versions, whose shutdown events state only the last run: the sum of the runs before it."""
        self._last_shutdown: dict[str, list[int]] = {}
        self._missing: dict[str, list[int]] = {}
        """What the last shutdown event states beyond the counts by then."""

    def add_request(self, usage: Usage, record: str, time: str | None) -> UsageReport | None:
        """Note the usage of a request from a record; returns a report where its reply stands before it."""
        self._count(usage.model, usage)
        call = usage.apiCallId or record
        message = self._messages.pop(call, None)
        if message is not None:
            return usage_report(call, usage, time, message)
        self._waiting[call] = usage, time
        return None

    def of_reply(self, call: str | None, index: int, model: str | None, output: int | None) -> TokenUsage | None:
        """The usage of the reply to a request, which is message `index`."""
        waiting = self._waiting.pop(call or "", None)
        if waiting is not None:
            return token_usage(waiting[0])
        if output is not None:
            own = Usage(outputTokens=output)
            self._count(model, own)
            if call is not None:
                self._last_call[model or ""] = call
            return token_usage(own)
        if call is not None:
            self._messages[call] = index
            if len(self._messages) > _MAX_WAITING_RECORDS:
                del self._messages[next(iter(self._messages))]
        return None

    def add_shutdown_totals(self, metrics: dict[str, ModelMetric]) -> None:
        """Note the counts of a shutdown event. Today they are of the whole session."""
        totals = {model: _counts(metric.usage) for model, metric in metrics.items() if metric.usage is not None}
        if any(sum(totals.get(model, ())) < sum(counts) for model, counts in self._last_shutdown.items()):
            for model, counts in self._last_shutdown.items():
                self._earlier[model] = _sum(self._earlier.get(model), counts)
        self._last_shutdown = totals
        self._missing = {}
        for model in {**self._earlier, **totals}:
            stated = _sum(self._earlier.get(model), totals.get(model))
            counted = self._counted.get(model)
            if len(totals) == 1:
                # Replies that do not name their model are of the only one.
                counted = _sum(counted, self._counted.get(""))
            counted = _sum(counted, None)
            self._missing[model] = [max(0, most - known) for most, known in zip(stated, counted, strict=True)]

    def finish(self, session: str, last_reply: int) -> list[UsageReport]:
        """Reports for the last reply: requests without a reply, and what only the last shutdown event states."""
        reports = [usage_report(call, usage, time, last_reply) for call, (usage, time) in self._waiting.items()]
        for model, counts in self._missing.items():
            if any(counts):
                # Where all output is counted, the input belongs to requests that are counted too.
                is_counted = not counts[_COUNTS.index("outputTokens")]
                call = self._last_call.get(model) if is_counted else None
                usage = Usage(model, None, *counts)
                reports.append(usage_report(call or f"{session} {model}", usage, None, last_reply))
        return reports

    def _count(self, model: str | None, usage: Usage) -> None:
        self._counted[model or ""] = _sum(self._counted.get(model or ""), _counts(usage))


def usage_report(call: str, usage: Usage, time: str | None, index: int) -> UsageReport:
    """The report of a request behind the message that it belongs to."""
    return UsageReport(call_id=call, usage=token_usage(usage), model=usage.model, timestamp=time, message_index=index)


def _counts(usage: Usage) -> list[int]:
    return [getattr(usage, name) or 0 for name in _COUNTS]


def _sum(left: list[int] | None, right: list[int] | None) -> list[int]:
    zero = [0] * len(_COUNTS)
    return [one + other for one, other in zip(left or zero, right or zero, strict=True)]
