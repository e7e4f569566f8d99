"""What Sage Agent can represent of other agents' sessions, and how it resumes them."""

from __future__ import annotations

from clew.agents.target_profile import Capacity, TargetProfile

TARGET_PROFILE = TargetProfile(
    capacity=Capacity(failures=True, instructions=True, titles=True, todos=("user", "assistant")),
    tools=(),
    id_keys=("sessionId", "id"),
    resume=lambda session: ["sage", "-r", str(session["id"])],
)
