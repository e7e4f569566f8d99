"""What sage-emacs can hold of other agents' sessions."""

from __future__ import annotations

from clew.agents.receiving import Capacity, Receiver

# It goes on with the conversation of the folder it is started in; a conversation has no other name.
RECEIVER = Receiver(
    Capacity(failures=True), (), ("session_id", "sessionId"), lambda _session: ["emacs", "--eval", "(sage)"]
)
