"""What is known of an agent is in its package: no other package names an agent, and each is small."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import clew
from clew.agents import registry

SOURCE = Path(clew.__file__).parent
MAX_PACKAGE_LINES = 950
LONG_PACKAGES = {
    "claude_code": 1990,
    "cline": 1030,
    "codex": 3040,
    "copilot_cli": 1230,
    "gemini": 2400,
    "kimi_code": 1300,
    "opencode": 1420,
    "sage_agent": 2760,
    "sage_emacs": 1150,
}
"""Limits of packages that are longer; a limit only goes down."""
OWN_STORE = "sage-agent"
"""The agent whose format clew's own store writes: commands that write sessions name it."""
NAMING = {
    "cli/__init__.py": "the names that other tools have for commands, such as `continue`",
    "cli/command_statusline.py": "the status line of one program",
    "web/editor.py": "the editors that open files; one has the name of an agent",
    "io/paths.py": "the rules for folder names by their names",
    "store/": "reads other data of sage",
    "migrate/": "brings older data of sage to today's format",
    "demo/": "writes example sessions in the formats of agents",
}
"""Where an agent may be named, and why."""


def package(agent: str) -> str:
    return registry.OWN[agent].partition(":")[0].rpartition(".")[2]


def named_agents(path: Path) -> set[str]:
    """The agents that a module names by their id or imports."""
    packages = {package(agent): agent for agent in registry.OWN}
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and node.value in registry.OWN:
            found.add(str(node.value))
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        parts = (
            name.removeprefix("clew.agents.").partition(".")[0] for name in names if name.startswith("clew.agents.")
        )
        found |= {packages[part] for part in parts if part in packages}
    return found


def test_no_other_package_names_an_agent() -> None:
    named = {}
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE).as_posix()
        if not place.startswith(("agents/", *NAMING)) and (found := named_agents(path) - {OWN_STORE}):
            named[place] = found
    assert not named


def test_agents_do_not_name_each_other() -> None:
    packages = {package(agent) for agent in registry.OWN}
    shared = [path for path in (SOURCE / "agents").glob("*.py") if path.name != "registry.py"]
    named = {path.name: found for path in shared if (found := named_agents(path))}
    assert not named
    assert packages == {path.name for path in (SOURCE / "agents").iterdir() if (path / "__init__.py").exists()}


@pytest.mark.parametrize("name", sorted({package(agent) for agent in registry.OWN}))
def test_a_package_is_small(name: str) -> None:
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in (SOURCE / "agents" / name).glob("*.py"))
    assert lines <= LONG_PACKAGES.get(name, MAX_PACKAGE_LINES)
