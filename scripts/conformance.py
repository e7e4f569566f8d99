"""Record a session with each real client, and write what clew and other tools say is in it: docs/agents/conformance.md.

    python -m scripts.conformance [--agentsview PATH] [--claude-code-log PATH] [--ccusage PATH]
        [--session-migrate PATH] [CLIENT...]

It needs the lab (`make test-real` installs it). The scripted model of the lab knows what it was asked and what it
answered, so every figure has a truth. Tools are taken from PATH or from the options; a missing one is left out. Those
that write run on a copy of the home, with folders of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from clew.agents import registry
from tests.realclients.clients import CLIENTS, STORIES
from tests.realclients.install import install_failure
from tests.realclients.recording import Recording, record
from tests.realclients.script import Call

PAGE = Path(__file__).resolve().parents[1] / "docs" / "agents" / "conformance.md"
MISSING = ("no-such-folder", "missing.py")
"""What the stories ask for that does not exist: such a call fails."""
TOOL_SECONDS = 120
INTRODUCTION = """\
# Counted and compared

<!-- Written by scripts/conformance.py; do not edit. -->

Each real client recorded one session with a scripted model, which knows the truth: how many requests it answered, how
many tokens it said they took, and which calls it asked for. The tables show what each tool says about that home. A
wrong figure is **bold**, ours too; a dash means that the tool does not say.

Recorded {date} on Linux with {tools}.

- **sub-agents** have a session of their own, or their messages are in the file of the session that started them, as
  those of GitHub Copilot CLI are.
- **branches** are ways that a conversation went. No story goes back, so there is one; calls that a model makes at the
  same time are no branches.
- **input** is without what was read from a cache; **output** is with reasoning. Sub-agents are included.
- **prompts** were typed by a person. **failed** calls asked for something that does not exist.
- clew: `clew stats --json`; branches, and sub-agents in the file of their session, from `clew export`. agentsview:
  `usage daily`, and the tables of its database after one `sync`. claude-code-log, which reads Claude Code and Codex:
  its JSON, and the tables of its cache. ccusage: `daily`. session-migrate: `inspect` of the main session, without
  sub-agents that are in other files.
- Mistral Vibe removes older requests and keeps the sum of their tokens, so that clew knows how many requests there were
  and what all of them took, but not each of them.
- All requests take the same number of tokens, so that a tool which drops what looks like a repetition drops requests.
- What a client does not write, no tool can read: the page of each agent says what its format does not tell.

Make this page with `python -m scripts.conformance`.
"""


class Figures(NamedTuple):
    """What is in a home; None where a tool does not say."""

    sessions: int | None = None
    subagents: int | None = None
    branches: int | None = None
    requests: int | None = None
    input: int | None = None
    cache_read: int | None = None
    output: int | None = None
    prompts: int | None = None
    calls: int | None = None
    failed: int | None = None


HEADINGS = (
    "sessions",
    "sub-agents",
    "branches",
    "requests",
    "input",
    "cache read",
    "output",
    "prompts",
    "calls",
    "failed",
)


class Tools:
    """Runs the installed tools, each on a copy of a home."""

    def __init__(self, commands: dict[str, str], folder: Path) -> None:
        self.commands, self._folder = commands, folder

    def run(self, tool: str, home: Path, *arguments: str | Path) -> str:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "CLEW_DATA_DIR": str(home.parent / "clew"),
            "AGENTSVIEW_DATA_DIR": str(home.parent / "agentsview"),
            "AGENTSVIEW_NO_DAEMON": "1",
            "AGENTSVIEW_TELEMETRY_ENABLED": "0",
        }
        command = [self.commands[tool], *map(str, arguments)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TOOL_SECONDS)
        # 1: clew found nothing; 2: session-migrate does not know the file.
        if done.returncode not in (0, 1, 2):
            raise RuntimeError(f"{' '.join(command)} failed: {done.stderr[-300:]}")
        return done.stdout

    def copy(self, tool: str, recording: Recording) -> Path:
        return shutil.copytree(recording.home, self._folder / tool / recording.story.name / "home", symlinks=True)


def truth(recording: Recording) -> Figures:
    """What the scripted model knows."""
    parts = recording.story.parts(recording.project)
    turns = [turn for part in parts for turn in (*part.turns, *part.subagent_turns)]
    calls = [step for turn in turns for step in turn.steps if isinstance(step, Call)]
    return Figures(
        sessions=1,
        subagents=sum(bool(part.subagent_turns) for part in parts),
        branches=1,
        requests=len(turns),
        input=sum(turn.usage.input for turn in turns),
        cache_read=sum(turn.usage.cached for turn in turns),
        output=sum(turn.usage.output for turn in turns),
        prompts=len(parts),
        calls=len(calls),
        failed=sum(_fails(calls, number) for number in range(len(calls))),
    )


def _fails(calls: list[Call], number: int) -> bool:
    """True for a call of what is not there, and for a patch that was applied before."""
    text = str(calls[number].input)
    return any(name in text for name in MISSING) or (text.startswith("***") and calls[number] in calls[:number])


def ask_clew(tools: Tools, recording: Recording) -> Figures:
    home = tools.copy("clew", recording)
    row = json.loads(tools.run("clew", home, "stats", "--home", home, "--json"))["totals"]
    document = json.loads(tools.run("clew", home, "export", recording.session, "--no-native", "--home", home))
    links, forks = document["session"].get("subagents") or (), document["graph"]["fork_points"]
    return Figures(
        sessions=row["sessions"],
        subagents=row["subagents"] + sum(link["session_id"] is None for link in links),
        branches=1 + sum(len(fork["branches"]) - 1 for fork in forks),
        requests=row["calls"],
        input=row["input_tokens"],
        cache_read=row["cache_read_tokens"],
        output=row["output_tokens"],
        prompts=row["turns"],
        calls=row["tool_calls"],
        failed=row["tool_errors"],
    )


def ask_agentsview(tools: Tools, recording: Recording) -> Figures:
    home = tools.copy("agentsview", recording)
    tools.run("agentsview", home, "sync")
    usage = tools.run("agentsview", home, "usage", "daily", "--all", "--offline", "--json", "--no-sync")
    row = json.loads(usage)["totals"]
    is_subagent = "relationship_type = 'subagent' AND parent_session_id IS NOT NULL"
    is_fork = "relationship_type = 'fork'"
    query = f"""SELECT sum(NOT ({is_subagent}) AND NOT ({is_fork})), sum({is_subagent}), sum({is_fork}),
        sum(tool_failure_signal_count), sum(CASE WHEN {is_subagent} THEN 0 ELSE user_message_count END) FROM sessions"""
    with closing(sqlite3.connect(home.parent / "agentsview" / "sessions.db")) as database:
        main, below, forks, failed, prompts = database.execute(query).fetchone()
        (calls,) = database.execute("SELECT count(*) FROM tool_calls").fetchone()
    if not main:
        return Figures(0)
    given, read, output = (row[f"{name}Tokens"] for name in ("input", "cacheRead", "output"))
    return Figures(main, below, 1 + forks, None, given, read, output, prompts, calls, failed)


def ask_claude_code_log(tools: Tools, recording: Recording) -> Figures | None:
    """It reads Claude Code, and sessions of Codex that it is given, but no token counts of those."""
    if recording.client.agent not in ("claude-code", "codex"):
        return None
    home = tools.copy("claude-code-log", recording)
    given = read = output = None
    if recording.client.agent == "codex":
        path = home / "claude-code-log.json"
        chosen = ("--provider", "codex", "--session-id", recording.session)
        tools.run("claude-code-log", home, "convert", *chosen, "--format", "json", "-o", path)
    else:
        tools.run("claude-code-log", home, "convert", "--all-projects", "--format", "json")
        (path,) = home.glob(".claude/projects/*/combined_transcripts.json")
        query = "SELECT sum(total_input_tokens), sum(total_cache_read_tokens), sum(total_output_tokens) FROM projects"
        with closing(sqlite3.connect(home / ".claude" / "projects" / "claude-code-log-cache.db")) as database:
            given, read, output = database.execute(query).fetchone()
    document = json.loads(path.read_text(encoding="utf-8"))
    messages = list(_with_children(document["messages"]))
    kinds = Counter(message["type"] for message in messages)
    subagents = {message["session_id"] for message in messages if "#agent-" in (message["session_id"] or "")}
    forks = sum(session["parent_session_id"] is not None for session in document["sessions"])
    main = len(document["sessions"]) - forks
    return Figures(main, len(subagents), 1 + forks, None, given, read, output, kinds["user"], kinds["tool_use"])


def _with_children(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for message in messages:
        yield message
        yield from _with_children(message.get("children") or [])


def ask_ccusage(tools: Tools, recording: Recording) -> Figures:
    """Its total includes the thinking of Gemini CLI, but its output does not."""
    home = tools.copy("ccusage", recording)
    row = json.loads(tools.run("ccusage", home, "daily", "--offline", "--json")).get("totals") or {}
    given, read, created = (row.get(name, 0) for name in ("inputTokens", "cacheReadTokens", "cacheCreationTokens"))
    output = row.get("totalTokens", 0) - given - read - created
    return Figures(input=given, cache_read=read, output=output) if output else Figures(0)


def ask_session_migrate(tools: Tools, recording: Recording) -> Figures:
    """It reads files that it is given, and those of some clients only where they were written."""
    own = [path for path in recording.files if recording.client.id_of(path) == recording.session]
    for path in own:
        # A session that is a folder is named by it.
        for place in (path, path.parent):
            found = tools.run("session-migrate", recording.home, "inspect", "--json", place)
            if found.startswith("{"):
                return Figures(1, calls=json.loads(found)["tool_calls"])
    return Figures(0)


TOOLS: dict[str, Callable[[Tools, Recording], Figures | None]] = {
    "clew": ask_clew,
    "agentsview": ask_agentsview,
    "claude-code-log": ask_claude_code_log,
    "ccusage": ask_ccusage,
    "session-migrate": ask_session_migrate,
}


def table(tools: Tools, recording: Recording) -> Iterator[str]:
    """The rows of one recording."""
    right = truth(recording)
    client = recording.client
    version = next(iter((*client.npm.items(), *client.pip.items())))
    yield f"\n## {registry.get(client.agent).title}\n\nRecorded with `{version[0]}` {version[1]}.\n"
    yield f"| | {' | '.join(HEADINGS)} |"
    yield f"|---|{'---:|' * len(HEADINGS)}"
    yield _row("truth", right, right)
    for name, ask in TOOLS.items():
        if name not in tools.commands:
            continue
        found = ask(tools, recording)
        if found is None:
            continue
        if found.sessions == 0:
            yield f"| {name} | finds no session |{' |' * (len(HEADINGS) - 1)}"
        else:
            is_main = name == "session-migrate" and found.calls != right.calls
            yield _row(name, found, _without_subagents(recording, right) if is_main else right)


def _without_subagents(recording: Recording, right: Figures) -> Figures:
    """The truth for a tool that reads the main session alone."""
    turns = [turn for part in recording.story.parts(recording.project) for turn in part.turns]
    return right._replace(calls=sum(isinstance(step, Call) for turn in turns for step in turn.steps))


def _row(name: str, found: Figures, right: Figures) -> str:
    cells = (
        "–" if have is None else f"{have:,}" if have == want else f"**{have:,}**"
        for have, want in zip(found, right, strict=True)
    )
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("clients", nargs="*", metavar="CLIENT")
    for name in TOOLS:
        found = Path(sys.executable).with_name(name)
        parser.add_argument(f"--{name}", default=str(found) if found.exists() else shutil.which(name))
    options = vars(parser.parse_args())
    commands = {name: options[name.replace("-", "_")] for name in TOOLS if options[name.replace("-", "_")]}
    with tempfile.TemporaryDirectory() as scratch:
        tools = Tools(commands, Path(scratch))
        sections: list[str] = []
        for name in options["clients"] or CLIENTS:
            if reason := install_failure(CLIENTS[name]):
                print(f"{name} is left out: {reason}")
                continue
            print(f"{name} ...", flush=True)
            sections += table(tools, record(STORIES[name], Path(scratch) / "recordings" / name))
        versions = [_version(tools, name, Path(scratch)) for name in commands]
        text = INTRODUCTION.format(date=f"{datetime.now(UTC):%Y-%m-%d}", tools=", ".join(versions))
        PAGE.write_text("\n".join([text.rstrip(), *sections, ""]), encoding="utf-8")


def _version(tools: Tools, name: str, home: Path) -> str:
    words = tools.run(name, home, "--version").replace("v", "").split()
    return f"{name} {next((word.strip(',') for word in words if word[:1].isdigit()), '')}".strip()


if __name__ == "__main__":
    main()
