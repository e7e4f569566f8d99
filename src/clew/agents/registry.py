"""The agents that are installed, by entry point. Names cost nothing; an adapter is imported when it is asked for."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING
from warnings import warn

from clew.agents.base import Agent, Claim
from clew.errors import SourceUnreadable, UsageError
from clew.io.compress import open_source
from clew.io.paths import escape_controls

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "clew.agents"
OWN = {
    "claude-code": "clew.agents.claude_code:ClaudeCode",
    "cline": "clew.agents.cline:Cline",
    "codex": "clew.agents.codex:Codex",
    "continue": "clew.agents.continue_dev:Continue",
    "copilot-cli": "clew.agents.copilot_cli:CopilotCli",
    "cursor": "clew.agents.cursor:Cursor",
    "gemini": "clew.agents.gemini:Gemini",
    "goose": "clew.agents.goose:Goose",
    "harbor": "clew.agents.harbor:Harbor",
    "kilo": "clew.agents.opencode:Kilo",
    "kilo-code": "clew.agents.cline:KiloCode",
    "kimi-code": "clew.agents.kimi_code:KimiCode",
    "mistral-vibe": "clew.agents.mistral_vibe:MistralVibe",
    "opencode": "clew.agents.opencode:OpenCode",
    "pi": "clew.agents.pi:Pi",
    "qwen-code": "clew.agents.qwen_code:QwenCode",
    "roo-code": "clew.agents.cline:RooCode",
    "sage-agent": "clew.agents.sage_agent:SageAgent",
    "sage-emacs": "clew.agents.sage_emacs:SageEmacs",
    "vscode-chat": "clew.agents.vscode_chat:VSCodeChat",
}
"""The agents that come with clew; one of them is found without reading the entry points of all packages."""
_HEAD_BYTES = 16 << 10


@cache
def _entries() -> dict[str, EntryPoint | None]:
    if _is_alone():
        return dict.fromkeys(sorted(OWN))
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)}


def _is_alone() -> bool:
    """True where no other package on the path can bring an agent.

    Reading the lists of entry points by hand takes a few milliseconds; `entry_points` takes some forty.
    """
    try:
        for folder in dict.fromkeys(sys.path):
            if not Path(folder).exists():
                continue
            with os.scandir(folder or ".") as entries:
                names = [entry.name for entry in entries if entry.name.endswith((".dist-info", ".egg-info", ".egg"))]
            for name in names:
                with suppress(FileNotFoundError, NotADirectoryError):
                    text = Path(folder, name, "entry_points.txt").read_bytes()
                    if GROUP.encode() in text and not name.startswith("clew-"):
                        return False
        return True
    except OSError:
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
        raise _unknown_agent(name)
    agent = entry.load()()
    return agent


def match(name: str) -> str:
    """The id of the agent that a person names by its id, or by the beginning of only one id.

    Raises UsageError for a name that no agent or that several agents have.
    """
    if is_known(name):
        return name
    found = [known for known in names() if name and known.startswith(name.casefold())]
    if len(found) > 1:
        raise UsageError(f"agent {name!r} is ambiguous: {', '.join(found)}")
    if not found:
        raise _unknown_agent(name)
    return found[0]


def _unknown_agent(name: str) -> UsageError:
    from difflib import get_close_matches

    close = get_close_matches(name.casefold(), names(), n=1, cutoff=0.5)
    hint = f"did you mean {close[0]}? " if close else ""
    return UsageError(f"unknown agent {name!r}; {hint}known: {', '.join(names())}")


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
        head = stream.read(_HEAD_BYTES)
    claims = [(agent.claims(path, head), agent) for agent in load_all()]
    best = max(claims, key=lambda claim: claim[0], default=None)
    return best if best is not None and best[0] > Claim.NO else (Claim.NO, None)


def required_claimant(path: Path) -> Agent:
    """The agent a file belongs to; an error where there is none."""
    agent = claimant(path)
    if agent is None:
        raise SourceUnreadable(f"{escape_controls(str(path))}: not a session file of a known agent")
    return agent
