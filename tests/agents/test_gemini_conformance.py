"""Gemini CLI: the demo sessions and a saved chat, taken through every law for agents."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from clew.agents.base import Agent
from clew.agents.gemini import Gemini
from clew.testing import AgentConformance

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "src" / "clew" / "demo" / "home" / "gemini" / "tmp"
SAVED = ROOT / "tests" / "fixtures" / "gemini" / "tmp"


class TestGemini(AgentConformance):
    agent: ClassVar[Agent] = Gemini()
    fixtures: ClassVar[list[Path]] = sorted(
        [*DEMO.rglob("chats/**/*.json*"), *SAVED.rglob("checkpoint-*.json"), *DEMO.rglob("logs.json")]
    )
