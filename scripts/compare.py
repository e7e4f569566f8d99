"""Run clew and the tools it is compared with on the same homes, and print what docs/compare.md states.

    python -m scripts.compare HOME:TRUTH [--rounds N] [--ccusage PATH] [--agentsview PATH] ...

HOME and TRUTH come from one run of a generator, as for `python -m benchmarks.peers`. Peers are taken from PATH or from
the options; a missing one is left out. Every tool runs with folders of its own, without telemetry and price downloads.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shutil
import string
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks import agentsview
from benchmarks.truth import Truth, read_truth
from tests.counting.homes import claude, prompt, reply
from tests.counting.test_traps import TRAPS

PEERS = ("ccusage", "agentsview", "claude-code-log", "claude-code-transcripts")
SESSION = "11111111-1111-4111-8111-111111111111"
"""The session that `tests.counting.homes` writes."""


class Totals(NamedTuple):
    """Tokens of all models: input without cache reads, output with reasoning."""

    input: int
    output: int
    cache_read: int
    cache_creation: int


class Run(NamedTuple):
    """What a command printed, and what it took."""

    output: str
    seconds: float
    cpu_seconds: float

    def __str__(self) -> str:
        return f"{self.seconds:.2f} s ({self.cpu_seconds:.2f} s CPU)"


class Workspace:
    """A home with the tools' own data folders beside it. Sessions are linked, never written."""

    def __init__(self, commands: dict[str, str], home: Path, folder: Path) -> None:
        self.commands, self.home, self.folder = commands, home, folder
        self.projects = home / ".claude" / "projects"
        linked = agentsview.link_home(home, folder / "home")
        self.environment = {
            **agentsview.environment(linked, folder / "agentsview"),
            "CLEW_DATA_DIR": str(folder / "clew"),
        }

    def run(self, tool: str, *arguments: str | Path) -> Run:
        """Run a tool; a failure ends the comparison. Exit code 1 of clew means that nothing was found."""
        start, before = time.perf_counter(), os.times()
        command = [self.commands[tool], *map(str, arguments)]
        done = subprocess.run(command, env=self.environment, cwd=self.folder, capture_output=True, text=True)
        after = os.times()
        if done.returncode != 0 and not (tool == "clew" and done.returncode == 1):
            raise SystemExit(f"{' '.join(command)} failed: {done.stderr[-500:]}")
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        return Run(done.stdout, time.perf_counter() - start, cpu)

    def clew(self, *arguments: str | Path) -> Run:
        """Run clew on the home."""
        return self.run("clew", "--home", self.home, *arguments)

    def agentsview_server(self) -> AbstractContextManager[agentsview.Server]:
        """Serve agentsview, which its search and its export need."""
        return agentsview.serving(self.commands["agentsview"], self.environment)


# Tokens


def clew_totals(workspace: Workspace) -> Totals:
    """Count with `clew stats`."""
    row = json.loads(workspace.clew("stats", "--json").output)["totals"]
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens")
    return Totals(*(row[name] or 0 for name in names))


def ccusage_totals(workspace: Workspace) -> Totals:
    """Count with `ccusage daily`, whose total includes the thinking of Gemini CLI but whose output does not."""
    row = json.loads(workspace.run("ccusage", "daily", "--offline", "--json").output).get("totals") or {}
    names = ("inputTokens", "cacheReadTokens", "cacheCreationTokens")
    given, read, created = (row.get(name, 0) for name in names)
    return Totals(given, row.get("totalTokens", 0) - given - read - created, read, created)


def agentsview_totals(workspace: Workspace) -> Totals:
    """Count with `agentsview usage daily`."""
    row = json.loads(agentsview_usage(workspace).output)["totals"]
    return Totals(*(row[f"{name}Tokens"] for name in ("input", "output", "cacheRead", "cacheCreation")))


def agentsview_usage(workspace: Workspace) -> Run:
    """Sync, then run `agentsview usage daily`."""
    workspace.run("agentsview", "sync")
    return workspace.run("agentsview", "usage", "daily", "--all", "--offline", "--json", "--no-sync")


def claude_code_log_totals(workspace: Workspace) -> Totals:
    """Count with the summary that claude-code-log writes; Claude Code alone."""
    copied, output = workspace.folder / "projects", workspace.folder / "json"
    shutil.copytree(workspace.projects, copied)  # It writes its cache there.
    workspace.run("claude-code-log", "--all-projects", "--projects-dir", copied, "-o", output, "-f", "json")
    projects = json.loads((output / "all-projects-summary.json").read_text())["projects"]
    names = (f"total_{name}_tokens" for name in Totals._fields)
    return Totals(*(sum(project[name] for project in projects) for name in names))


COUNTERS: dict[str, Callable[[Workspace], Totals]] = {
    "clew": clew_totals,
    "ccusage": ccusage_totals,
    "agentsview": agentsview_totals,
    "claude-code-log": claude_code_log_totals,
}


def compare_totals(commands: dict[str, str], truth: Truth, scratch: Path) -> None:
    """Compare token totals of a home with the truth."""
    for name in filter(commands.__contains__, COUNTERS):
        reads_all = name != "claude-code-log"
        models = [counts for model, counts in truth.tokens.items() if reads_all or model.startswith("claude")]
        right = Totals(*map(sum, zip(*(counts[:4] for counts in models), strict=True)))
        found = COUNTERS[name](Workspace(commands, truth.home, scratch / f"totals-{name}"))
        columns = zip(Totals._fields, found, right, strict=True)
        wrong = [f"{column} {counted / true:.1%}" for column, counted, true in columns if counted != true]
        print(f"{name}: token totals {', '.join(wrong) or 'exact'}")


def compare_traps(commands: dict[str, str], scratch: Path) -> None:
    """Count the homes of tests/counting/test_traps.py whose totals a tool gets right."""
    for name in filter(commands.__contains__, COUNTERS):
        wrong, tried = [], 0
        for trap, build in TRAPS.items():
            home = scratch / f"traps-{name}" / trap / "agents"
            home.mkdir(parents=True)
            counts = build(home)
            if name == "claude-code-log" and {entry.name for entry in home.iterdir()} != {".claude"}:
                continue
            tried += 1
            # The first count of a model is that of its calls.
            right = Totals(*(sum(model[column] or 0 for model in counts.values()) for column in range(1, 5)))
            try:
                found = COUNTERS[name](Workspace(commands, home, home.with_name("work")))
            except (SystemExit, OSError, KeyError, ValueError):
                found = None
            if found != right:
                wrong.append(trap)
        print(f"{name}: {tried - len(wrong)} of {tried} counting traps right; wrong: {', '.join(wrong) or 'none'}")


# Search


def compare_search(commands: dict[str, str], truth: Truth, scratch: Path) -> None:
    """Search for every planted word: in prompts, answers and tool output."""
    workspace = Workspace(commands, truth.home, scratch / "search")
    workspace.clew("sync")
    words = sorted(set(truth.needles))
    found = [bool(json.loads(workspace.clew("search", word, "--json").output)["hits"]) for word in words]
    again = workspace.clew("search", words[0])
    print(f"clew: {sum(found)} of {len(found)} planted words found; one search {again}")
    if "agentsview" in commands:
        workspace.run("agentsview", "sync")
        with workspace.agentsview_server():
            everything = ("--include-children", "--include-one-shot", "--include-automated")
            for options in ((), everything, (*everything, "--fts")):
                runs = [workspace.run("agentsview", "session", "search", w, "--json", *options) for w in words]
                number = sum(bool(json.loads(run.output)["matches"]) for run in runs)
                best = min(run.seconds for run in runs)
                label = " ".join(("agentsview", *options))
                print(f"{label}: {number} of {len(runs)} planted words found; fastest search {best:.2f} s")


# Secrets


def compare_secrets(commands: dict[str, str], scratch: Path) -> None:
    """Show which outputs contain a key that stands in a prompt, with default options."""
    alphabet = string.ascii_letters + string.digits
    key = "ghp_" + "".join(secrets.choice(alphabet) for _ in range(36))
    home = scratch / "secrets" / "agents"
    claude(home, prompt(f"Push with {key} please"), reply("m1", 1, 2))
    workspace = Workspace(commands, home, scratch / "secrets" / "work")
    for name, output in outputs_with_text(workspace):
        print(f"{name}: {'key shown' if key in output else 'key masked' if 'Push with' in output else 'prompt absent'}")


def outputs_with_text(workspace: Workspace) -> Iterator[tuple[str, str]]:
    """Print or export the only session with every tool, as it does by default."""
    folder, projects = workspace.folder, workspace.folder / "projects"
    shutil.copytree(workspace.projects, projects)
    yield "clew show", workspace.clew("show", SESSION).output
    yield "clew search", workspace.clew("search", "push").output
    for form in ("markdown", "html", "json"):
        yield f"clew export --format {form}", workspace.clew("export", SESSION, "--format", form).output
    if "claude-code-log" in workspace.commands:
        for form in ("html", "md"):
            options = ("--all-projects", "--projects-dir", projects, "-f", form)
            workspace.run("claude-code-log", *options, "-o", folder / form)
            yield f"claude-code-log -f {form}", read_all(folder / form)
    if "claude-code-transcripts" in workspace.commands:
        workspace.run("claude-code-transcripts", "all", "-q", "-s", projects, "-o", folder / "transcripts")
        yield "claude-code-transcripts all", read_all(folder / "transcripts")
    if "agentsview" in workspace.commands:
        workspace.run("agentsview", "sync")
        with workspace.agentsview_server() as server:
            yield "agentsview session messages", workspace.run("agentsview", "session", "messages", SESSION).output
            search = ("session", "search", "push", "--include-one-shot")
            yield "agentsview session search", workspace.run("agentsview", *search).output
            for form in ("export", "md"):
                with urllib.request.urlopen(f"{server.address}/api/v1/sessions/{SESSION}/{form}") as answer:
                    yield f"agentsview web app, {form}", answer.read().decode()


def read_all(folder: Path) -> str:
    """The text of all files below a folder."""
    return "".join(path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file())


# Speed


def compare_speed(commands: dict[str, str], truth: Truth, scratch: Path, rounds: int) -> None:
    """Measure the first answer, a later one, and pages of all sessions of Claude Code."""

    def measure(label: str, tool: str, run: Callable[[Workspace], Run], *, times: int = rounds) -> None:
        """Print the fastest of some runs, each in a workspace of its own."""
        if tool in commands:
            folders = [scratch / f"speed-{label.replace(' ', '-')}-{number}" for number in range(times)]
            runs = [run(Workspace(commands, truth.home, folder)) for folder in folders]
            print(f"{label}: {min(runs, key=lambda run: run.seconds)}")

    def again(workspace: Workspace) -> Run:
        workspace.clew("stats", "--json")
        return workspace.clew("stats", "--json")

    measure("ccusage daily", "ccusage", lambda w: w.run("ccusage", "daily", "--offline", "--json"))
    measure("clew stats, first", "clew", lambda w: w.clew("stats", "--json"))
    measure("clew stats, again", "clew", again)
    measure("clew sync, first", "clew", lambda w: w.clew("sync"))
    measure("agentsview sync, first", "agentsview", lambda w: w.run("agentsview", "sync"))
    measure("agentsview usage, after sync", "agentsview", agentsview_usage)
    measure("clew pages", "clew", lambda w: w.clew("export", "--agent", "claude", "--site", w.folder / "site"), times=1)
    for name in ("claude-code-log", "claude-code-transcripts"):
        measure(f"{name} pages", name, partial(write_pages, name), times=1)


def write_pages(tool: str, workspace: Workspace) -> Run:
    """Write pages of all Claude Code sessions with a peer."""
    projects, pages = workspace.folder / "projects", workspace.folder / "pages"
    shutil.copytree(workspace.projects, projects)
    if tool == "claude-code-log":
        return workspace.run(tool, "--all-projects", "--projects-dir", projects, "-o", pages)
    return workspace.run(tool, "all", "-q", "--include-agents", "-s", projects, "-o", pages)


def main() -> None:
    """Print every measured fact."""
    parser = argparse.ArgumentParser(prog="python -m scripts.compare", description=__doc__.partition("\n")[0])
    parser.add_argument("home", metavar="HOME:TRUTH")
    parser.add_argument("--rounds", type=int, default=3, help="the best of this many runs counts; default: 3")
    parser.add_argument("--only", choices=("totals", "traps", "search", "secrets", "speed"), action="append")
    parser.add_argument("--scratch", metavar="DIR", help="folder for temporary files; several gigabytes")
    for name in PEERS:
        parser.add_argument(f"--{name}", metavar="PATH", default=shutil.which(name))
    options = parser.parse_args()
    commands = {"clew": str(Path(sys.executable).with_name("clew"))}
    for name in PEERS:
        if path := getattr(options, name.replace("-", "_")):
            commands[name] = str(Path(path).absolute())
    truth = read_truth(*options.home.split(":", 1))
    truth = truth._replace(home=truth.home.absolute())
    with tempfile.TemporaryDirectory(prefix="clew-compare-", dir=options.scratch) as folder:
        scratch = Path(folder)
        parts: dict[str, Callable[[], None]] = {
            "totals": lambda: compare_totals(commands, truth, scratch),
            "traps": lambda: compare_traps(commands, scratch),
            "search": lambda: compare_search(commands, truth, scratch),
            "secrets": lambda: compare_secrets(commands, scratch),
            "speed": lambda: compare_speed(commands, truth, scratch, options.rounds),
        }
        for name, command in commands.items():
            version = subprocess.run([command, "--version"], capture_output=True, text=True, env={"HOME": folder})
            print(f"{name}: {version.stdout.splitlines()[0] if version.stdout else 'version unknown'}")
        for part in options.only or parts:
            print(f"\n## {part}", flush=True)
            parts[part]()


if __name__ == "__main__":
    main()
