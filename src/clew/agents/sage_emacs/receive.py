"""What sage-emacs can hold of other agents' sessions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from clew.agents.receiving import Capacity, Receiver
from clew.agents.sage_emacs import locate


def _goes_on(path: Path, _parts: Sequence[str]) -> bool:
    """True for a conversation whose records say which: an archive is not gone on with, and what has no id is older."""
    return not locate.is_archive(path) and locate.claimed_id(path) is not None


# It goes on with the conversation of the folder it is started in; a conversation has no other name.
RECEIVER = Receiver(
    Capacity(failures=True),
    (),
    ("session_id", "sessionId"),
    lambda _session: ["emacs", "--eval", "(sage)"],
    _goes_on,
)
