"""docs/development/adding-an-agent.md: its files, written to a folder, make an agent that keeps every law."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from clew import Host, Library
from clew.agents import registry
from tests.docs.pages import ROOT, fences

PAGE = (ROOT / "docs" / "development" / "adding-an-agent.md").read_text(encoding="utf-8")
GROUP = "clew.agents"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for fence in fences(PAGE):
        if fence.title:
            target = tmp_path / fence.title
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(fence.text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in ("hello", "hello.events", "hello.records"):
        sys.modules.pop(name, None)
    registry.get.cache_clear()


@pytest.mark.slow
def test_the_example_keeps_every_law(package: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--override-ini=addopts=", str(package)]
    environment = {**os.environ, "PYTHONPATH": str(package)}
    done = subprocess.run(command, cwd=package, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split(" passed")[0].split()[-1]) > 20


def test_the_entry_point_leads_to_it(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))
    [(name, value)] = table["project"]["entry-points"][GROUP].items()
    entry = EntryPoint(name, value, GROUP)
    monkeypatch.setattr(registry, "_entries", lambda: {name: entry})
    registry.get.cache_clear()
    home = package / "home"
    (home / ".hello").mkdir(parents=True)
    for fixture in (package / "fixtures").iterdir():
        (home / ".hello" / fixture.name).write_bytes(fixture.read_bytes())
    helper, session = sorted(Library(Host.at(home)).sessions(), key=lambda one: one.id, reverse=True)
    assert session.agent.id == name
    assert session.header.title == "Ring the bell."
    assert [message.role for message in session.messages] == ["user", "assistant", "user"]
    assert [problem.code for problem in session.problems()] == ["unknown-type"]
    assert (session.usage.input_tokens, session.usage.output_tokens) == (12, 5)
    assert helper.is_subagent and helper.header.parent_session_id == session.id
    assert [link.session_id for link in session.header.subagents or ()] == [helper.id]


@pytest.mark.slow
def test_the_example_is_typed(package: Path) -> None:
    files = ("hello/__init__.py", "hello/events.py")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(package / "cache"), *files]
    done = subprocess.run(command, cwd=package, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_shows_a_whole_agent(package: Path) -> None:
    from clew.agents.base import Agent

    assert isinstance(import_module("hello").Hello(), Agent)
