"""Codex CLI against the laws every agent must keep, on the demo's sessions."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import clew
from clew.agents.base import Agent
from clew.agents.codex import Codex
from clew.testing import AgentConformance

HOME = Path(clew.__file__).parent / "demo" / "home" / "codex"
FIXTURES = Path(__file__).parents[1] / "fixtures" / "codex"


class TestCodex(AgentConformance):
    agent: ClassVar[Agent] = Codex()
    fixtures: ClassVar[list[Path]] = sorted(path for folder in (HOME, FIXTURES) for path in folder.rglob("rollout-*"))
