"""Claude Code against the laws every agent must keep, on the demo's sessions."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import clew
from clew.agents.base import Agent
from clew.agents.claude_code import ClaudeCode
from clew.testing import AgentConformance

PROJECTS = Path(clew.__file__).parent / "demo" / "home" / "claude" / "projects"


class TestClaudeCode(AgentConformance):
    agent: ClassVar[Agent] = ClaudeCode()
    fixtures: ClassVar[list[Path]] = sorted(PROJECTS.rglob("*.jsonl"))
