"""What Sage Agent can represent of other agents' sessions, and how it resumes them."""

from __future__ import annotations

from clew.agents.target_profile import Capacity, TargetProfile

TARGET_PROFILE = TargetProfile(
    Capacity(failures=True, instructions=True, titles=True, todos=("user", "assistant")),
    (),
    ("sessionId", "id"),
    lambda session: ["sage", "-r", str(session["id"])],
)
