"""The agents that take converted sessions."""

from __future__ import annotations

from clew.agents import registry

RECEIVERS = [agent.id for agent in registry.load_all() if agent.target_profile() is not None]
