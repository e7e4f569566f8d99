"""The three clients: how each is started, where it keeps sessions, which protocol it speaks."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.realclients.history import JSON
from tests.realclients.model import PORT
from tests.realclients.wire import Wire
from tests.realclients.wire_anthropic import Anthropic
from tests.realclients.wire_gemini import Gemini
from tests.realclients.wire_openai import OpenAI

LATEST = "latest"
"""In place of a session's id: the one that the client wrote last."""
BASE = f"http://127.0.0.1:{PORT}"

CODEX_SETTINGS = f"""\
model = "gpt-5.5"
model_provider = "lab"
approval_policy = "never"
sandbox_mode = "danger-full-access"

[model_providers.lab]
name = "lab"
base_url = "{BASE}/v1"
env_key = "LAB_KEY"
wire_api = "responses"

[tools.update_plan]
enabled = true

# Both ask for addresses on start and wait seconds for an answer.
[analytics]
enabled = false
[features]
plugins = false
"""

GEMINI_SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "general": {"enableAutoUpdate": False, "checkpointing": {"enabled": True}},
}


@dataclass(frozen=True)
class Client:
    """One client."""

    name: str
    agent: str
    """The id of the agent in clew."""
    wire: Wire
    binary: str
    """Where it is below the lab's folder."""
    words: Callable[[str, str | None], list[str]]
    """Its arguments for a prompt and the session to resume, if any."""
    environment: dict[str, str]
    settings: tuple[str, str] | None
    """The settings file it needs below home, and what it says."""
    sessions: tuple[str, ...]
    """Where its sessions are below home."""
    id_of: Callable[[Path], str | None]
    """The id of a session by its file; None for a sub-agent's."""
    caches: tuple[str, ...] = ()
    """Files that lead back to the home they were written in; the client makes them anew."""

    def prepare(self, home: Path) -> None:
        """Give the home the settings, unless it has some."""
        if self.settings is not None and not (home / self.settings[0]).exists():
            path = home / self.settings[0]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.settings[1], encoding="utf-8")

    def copy(self, home: Path, target: Path) -> Path:
        """Another home with the same sessions."""
        shutil.copytree(home, target, symlinks=True, ignore=shutil.ignore_patterns(*self.caches))
        return target

    def files(self, home: Path) -> list[Path]:
        """The session files below home, sub-agents' too."""
        return sorted(path for pattern in self.sessions for path in home.glob(pattern))

    def session_ids(self, home: Path) -> list[str]:
        """The ids of the sessions below home, without sub-agents."""
        ids = (self.id_of(path) for path in self.files(home))
        return sorted({found for found in ids if found is not None})


def _claude(prompt: str, session: str | None) -> list[str]:
    resume = ["--continue"] if session == LATEST else ["--resume", session] if session else []
    return [*resume, "-p", prompt, "--dangerously-skip-permissions"]


def _codex(prompt: str, session: str | None) -> list[str]:
    resume = ["resume", "--last"] if session == LATEST else ["resume", session] if session else []
    return ["exec", "--skip-git-repo-check", *resume, prompt]


def _gemini(prompt: str, session: str | None) -> list[str]:
    resume = ["--resume", session] if session else []
    return [*resume, "--yolo", "--skip-trust", "-m", "gemini-2.5-pro", "-p", prompt]


def _claude_id(path: Path) -> str | None:
    return None if path.stem.startswith("agent-") else path.stem


def _codex_id(path: Path) -> str | None:
    meta = _first_record(path)["payload"]
    return None if meta.get("parent_thread_id") else str(meta["id"])


def _gemini_id(path: Path) -> str | None:
    header = _first_record(path)
    return str(header["sessionId"]) if header.get("kind", "main") == "main" else None


def _first_record(path: Path) -> JSON:
    with path.open(encoding="utf-8") as lines:
        return json.loads(next(lines))


CLAUDE = Client(
    name="claude",
    agent="claude-code",
    wire=Anthropic(),
    binary="python/lib/python3*/site-packages/claude_agent_sdk/_bundled/claude",
    words=_claude,
    environment={
        "ANTHROPIC_BASE_URL": BASE,
        "ANTHROPIC_API_KEY": "sk-lab",
        "IS_SANDBOX": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
    },
    settings=None,
    sessions=(".claude/projects/*/*.jsonl", ".claude/projects/*/*/subagents/*.jsonl"),
    id_of=_claude_id,
)
CODEX = Client(
    name="codex",
    agent="codex",
    wire=OpenAI(),
    binary="node_modules/.bin/codex",
    words=_codex,
    environment={"LAB_KEY": "lab"},
    settings=(".codex/config.toml", CODEX_SETTINGS),
    sessions=(".codex/sessions/*/*/*/rollout-*.jsonl",),
    id_of=_codex_id,
    caches=("*.sqlite*",),
)
GEMINI = Client(
    name="gemini",
    agent="gemini",
    wire=Gemini(),
    binary="node_modules/.bin/gemini",
    words=_gemini,
    environment={"GEMINI_API_KEY": "lab", "GOOGLE_GEMINI_BASE_URL": BASE},
    settings=(".gemini/settings.json", json.dumps(GEMINI_SETTINGS)),
    sessions=(".gemini/tmp/*/chats/**/*.jsonl", ".gemini/tmp/*/chats/**/*.json"),
    id_of=_gemini_id,
)
CLIENTS = {client.name: client for client in (CLAUDE, CODEX, GEMINI)}
