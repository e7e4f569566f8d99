"""The agents that are installed, by entry point. Names cost nothing; an adapter is imported when it is asked for."""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING
from warnings import warn

from clew.agents.base import Agent, Claim
from clew.errors import SourceUnreadable, UsageError
from clew.io.compress import open_source

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "clew.agents"
OWN = {
    "claude-code": "clew.agents.claude_code:ClaudeCode",
    "codex": "clew.agents.codex:Codex",
    "gemini": "clew.agents.gemini:Gemini",
    "sage-agent": "clew.agents.sage_agent:SageAgent",
    "sage-emacs": "clew.agents.sage_emacs:SageEmacs",
}
"""The agents that come with clew: who asks for one of them need not wait for a look at all that is installed."""
_HEAD = 16 << 10


@cache
def _entries() -> dict[str, EntryPoint | None]:
    if _is_alone():
        return dict.fromkeys(sorted(OWN))
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)}


def _is_alone() -> bool:
    """True where it is plain that no other package brings an agent: a look at all that is installed takes long."""
    try:
        return not any(_brings_agents(folder) for folder in dict.fromkeys(sys.path) if Path(folder).exists())
    except OSError:
        return False


def _brings_agents(folder: str) -> bool:
    """True where a package in a folder may bring an agent, and is not clew itself."""
    with os.scandir(folder or ".") as entries:
        names = [entry.name for entry in entries if entry.name.endswith((".dist-info", ".egg-info", ".egg"))]
    for name in names:
        if name.startswith("clew-"):
            continue
        try:
            with open(f"{folder or '.'}/{name}/entry_points.txt", "rb") as text:
                if GROUP.encode() in text.read():
                    return True
        except (FileNotFoundError, NotADirectoryError):
            continue
    return False


def names() -> list[str]:
    """The ids of all installed agents, in order."""
    return list(_entries())


@cache
def get(name: str) -> Agent:
    """The agent of this id; the error lists those there are."""
    if name in OWN:
        module, _, kind = OWN[name].partition(":")
        agent: Agent = getattr(import_module(module), kind)()
        return agent
    entry = _entries().get(name)
    if entry is None:
        raise UsageError(f"unknown agent {name!r}; known: {', '.join(names())}")
    agent = entry.load()()
    return agent


def is_known(name: str) -> bool:
    """True where there is an agent of this id."""
    return name in OWN or name in _entries()


def load_all() -> list[Agent]:
    """Every agent that can be loaded; a broken plug-in is a warning, never a crash."""
    agents = []
    for name in names():
        try:
            agents.append(get(name))
        except Exception as error:
            warn(f"agent {name} cannot be loaded: {error}", RuntimeWarning, stacklevel=2)
    return agents


def claimant(path: Path) -> Agent | None:
    """The agent a file belongs to, from its place and its first bytes."""
    return best_claim(path)[1]


def best_claim(path: Path) -> tuple[Claim, Agent | None]:
    """The agent a file belongs to, and how sure that is."""
    with open_source(path) as stream:
        head = stream.read(_HEAD)
    claims = [(agent.claims(path, head), agent) for agent in load_all()]
    best = max(claims, key=lambda claim: claim[0], default=None)
    return best if best is not None and best[0] > Claim.NO else (Claim.NO, None)


def required_claimant(path: Path) -> Agent:
    """Like claimant, but a file of nobody's is an error."""
    agent = claimant(path)
    if agent is None:
        raise SourceUnreadable(f"{path}: no agent knows this kind of file")
    return agent
