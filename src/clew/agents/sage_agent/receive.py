"""What Sage Agent can hold of other agents' sessions."""

from __future__ import annotations

from clew.agents.receiving import Capacity, Receiver

RECEIVER = Receiver(
    Capacity(failures=True, instructions=True, titles=True, todos=("user", "assistant")),
    (),
    ("sessionId", "id"),
    lambda session: ["sage", "-r", str(session["id"])],
)
