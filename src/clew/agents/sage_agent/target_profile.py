"""What Sage Agent can hold of other agents' sessions."""

from __future__ import annotations

from clew.agents.target_profile import Capacity, TargetProfile

TARGET_PROFILE = TargetProfile(
    Capacity(failures=True, instructions=True, titles=True, todos=("user", "assistant")),
    (),
    ("sessionId", "id"),
    lambda session: ["sage", "-r", str(session["id"])],
)
