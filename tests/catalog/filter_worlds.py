"""Homes with sessions, every filter, and each way to ask which sessions of a home pass it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlencode

import pytest

from clew.filters import Filters
from clew.host import Host
from clew.library import Library
from tests.cli.running import clew
from tests.demo_home import write_small_demo
from tests.web.shown import Shown

FILTERS: list[dict[str, Any]] = [
    {},
    {"agent": "codex"},
    {"agent": ["claude-code", "gemini"]},
    {"project": "TIDE"},
    {"project": "-src-"},
    {"project": "/home/ada/src"},
    {"agent": "claude"},
    {"branch": "MAIN"},
    {"model": "sonnet"},
    {"model": "gpt"},
    {"since": "2026-10-13"},
    {"until": "2026-10-25T10:30"},
    {"tool": "bash"},
    {"tool": "edit"},
    {"file": ".py"},
    {"has": "error"},
    {"has": "thinking"},
    {"has": "subagent"},
    {"has": "edit"},
    {"has": ["edit", "error"]},
    {"text": "tide"},
    {"text": "the", "agent": "codex", "since": "2026-01-01"},
    {"project": "no such project"},
    {"label": "Sea"},
    {"label": ["sea", "salt"]},
    {"label": "no such label"},
    {"starred": True},
    {"starred": True, "label": "salt", "agent": "claude"},
    {"min_prompts": 1},
    {"min_prompts": 2},
    {"min_prompts": 3, "agent": "claude"},
    {"min_prompts": 1000},
]


class World:
    """A home, and the ways to ask its catalog for sessions."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._annotate()
        self.with_text = {f"{hit['agent']}:{hit['session']}" for hit in self._hits([])}

    def _annotate(self) -> None:
        """Add stars and labels to some sessions and messages."""
        library = Library(Host.at(self.home))
        for number, session in enumerate(library.sessions(), 1):
            if number % 3 == 0:
                library.annotate(session, starred=True, add_labels=["sea"])
            if number % 4 == 0 and any(True for _ in session.messages):
                library.annotate(session, 1, starred=number % 8 == 0, add_labels=["Salt", "SEA"])

    def _hits(self, options: list[str]) -> list[dict[str, Any]]:
        ran = clew("--home", self.home, "search", "--regex", ".", "-n", "99999", "--json", *options)
        hits: list[dict[str, Any]] = ran.json["hits"]
        return hits

    def listed(self, filters: dict[str, Any]) -> set[str]:
        rows = clew("--home", self.home, "list", "--json", *as_options(filters)).json
        return {f"{row['agent']}:{row['id']}" for row in rows}

    def searched(self, filters: dict[str, Any]) -> set[str]:
        return {f"{hit['agent']}:{hit['session']}" for hit in self._hits(as_options(filters))}

    def counted(self, filters: dict[str, Any], engine: str = "sqlite") -> set[str]:
        options = ["--by", "session", "--engine", engine, "--json", *as_options(filters)]
        rows = clew("--home", self.home, "stats", *options).json["rows"]
        return {f"{row['agent']}:{row['session']}" for row in rows if row["sessions"] or row["subagents"]}

    def exported(self, filters: dict[str, Any]) -> set[str]:
        ran = clew("--home", self.home, "export", "--to", "ndjson", "--no-native", *as_options(filters))
        return {f"{one['agent']}:{one['session']['id']}" for one in ran.lines}

    def of_library(self, filters: dict[str, Any]) -> set[str]:
        sessions = Library(Host.at(self.home)).sessions(Filters.of(**filters))
        return {f"{session.agent.id}:{session.id}" for session in sessions}


def paged(app: Shown, filters: dict[str, Any]) -> set[str]:
    """The sessions on all pages of the list in the web app."""
    found, number = set[str](), 1
    while True:
        query = urlencode([*as_pairs(filters), ("page", number)])
        body = app.get(f"/sessions?{query}", X_Clew="1").body.decode()
        links = {unquote(link).replace("/", ":", 1) for link in re.findall(r'href="/session/([^"?#]+)', body)}
        if not links - found:
            return found
        found, number = found | links, number + 1


def as_pairs(filters: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (name, str(value))
        for name, values in filters.items()
        for value in (values if isinstance(values, list) else [values])
    ]


def as_options(filters: dict[str, Any]) -> list[str]:
    named = [(f"--{name.replace('_', '-')}", value) for name, value in as_pairs(filters)]
    return [word for pair in named for word in pair if word != "True"]


def corpus_home(home: Path, shared: Path) -> None:
    """Recorded sessions, in the folders where their agents would keep them."""
    places = {"claude-code": ".claude/projects/-recorded", "codex": ".codex/sessions/2026/01/01"}
    for agent, place in places.items():
        (home / place).mkdir(parents=True)
        for path in sorted((shared / "corpus" / agent).rglob("*.jsonl"))[:60]:
            shutil.copyfile(path, home / place / path.name)


def generated_home(home: Path, shared: Path) -> None:
    tool = [sys.executable, str(shared / "tools" / "make_corpus.py"), "--size", "3MB", "--seed", "5", "--jobs", "1"]
    subprocess.run([*tool, "--out", str(home)], check=True, capture_output=True)


HOMES = ("demo", *(pytest.param(name, marks=pytest.mark.slow) for name in ("corpus", "generated")))


def make_home(kind: str, home: Path, request: pytest.FixtureRequest) -> None:
    """Write the sessions of a home. Two kinds need the folder `shared`; the test skips without it."""
    if kind == "demo":
        write_small_demo(home)
    elif kind == "corpus":
        corpus_home(home, request.getfixturevalue("shared"))
    else:
        generated_home(home, request.getfixturevalue("shared"))


def name_of(filters: dict[str, Any]) -> str:
    """The name of a test with these filters."""
    return " ".join(as_options(filters)) or "none"
