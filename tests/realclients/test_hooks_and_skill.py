"""Real agents run the hook of clew at the end of a session, and load its skill."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from clew.agents import registry
from clew.archive.archive import open_archive
from clew.archive.records import archive_folder
from clew.config_file_edits import BACKUPS_FILE, Backup
from clew.hooks.install import hook_addition
from clew.hooks.log import load_runs, log_path
from clew.host import Host, data_dir
from clew.io.json_file import load
from clew.skill.install import skill_text
from tests.cli.running import clew
from tests.realclients.client import Client
from tests.realclients.clients import CLIENTS
from tests.realclients.install import client_folder
from tests.realclients.lab import Run, offline_command, require, run
from tests.realclients.project import build_project
from tests.realclients.script import Script

AGENTS = ("claude", "codex", "gemini")
PROMPT = "Does the bell ring?"


def ask(client: Client, home: Path, project: Path, *, wait_for: Path | None = None) -> Run:
    """Run the client on a new session, with clew's own files where the test looks for them."""
    environment = {"CLEW_DATA_DIR": str(data_dir())}
    script = Script(answers_forever=True)
    return run(client, home, project, PROMPT, script, environment=environment, wait_for=wait_for).check()


def approve_hooks(client: Client, home: Path, project: Path) -> None:
    """Approve all hooks of Codex, by the requests that its own screen sends."""
    binary = next(client_folder(client).glob(client.binary))
    with subprocess.Popen(
        [*offline_command(), str(binary), "app-server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=project,
        env={"PATH": os.environ["PATH"], "HOME": str(home)},
    ) as server:
        assert server.stdin is not None and server.stdout is not None
        replies = (json.loads(line) for line in server.stdout)

        def request(number: int, method: str, **parameters: Any) -> Any:
            message = {"id": number, "method": method, "params": parameters}
            server.stdin.write(json.dumps(message).encode() + b"\n")  # type: ignore[union-attr]
            server.stdin.flush()  # type: ignore[union-attr]
            return next(reply["result"] for reply in replies if reply.get("id") == number)

        request(1, "initialize", clientInfo={"name": "test", "version": "1"}, capabilities={"experimentalApi": True})
        (listed,) = request(2, "hooks/list", cwds=[str(project)])["data"]
        assert not listed["warnings"] and not listed["errors"]
        state = {hook["key"]: {"trusted_hash": hook["currentHash"]} for hook in listed["hooks"]}
        edit = {"keyPath": "hooks.state", "value": state, "mergeStrategy": "upsert"}
        request(3, "config/batchWrite", edits=[edit], reloadUserConfig=True)
        server.kill()


@pytest.mark.parametrize("name", AGENTS)
def test_a_session_is_archived_when_it_ends(name: str, tmp_path: Path) -> None:
    client, home, project = CLIENTS[name], tmp_path / "home", tmp_path / "harbour"
    require(client)
    build_project(project)
    home.mkdir()
    client.write_settings(home)
    addition = hook_addition(registry.get(client.agent), Host.at(home))
    assert addition is not None
    file = addition.file.path
    before = file.read_bytes() if file.exists() else None
    assert clew("hook", "install", "--agent", client.agent, "--home", home).code == 0
    if name == "codex":
        approve_hooks(client, home, project)
    ask(client, home, project, wait_for=log_path())
    (session,) = client.session_ids(home)
    ((_, hook_run),) = load_runs()
    assert (hook_run.agent, hook_run.outcome, hook_run.session) == (client.agent, "archived", session)
    (path,) = client.files(home)
    with open_archive(archive_folder(None)) as archive:
        (version,) = [version for version in archive.newest() if version.role == "main"]
        assert Path(version.path.decode()) == path
        # The agent may add a last record after the hook was started.
        assert path.read_bytes().startswith(archive.content(version))
        assert PROMPT.encode() in archive.content(version)
    assert PROMPT not in log_path().read_text()
    assert clew("hook", "uninstall", "--agent", client.agent, "--home", home).code == 0
    assert (file.read_bytes() if file.exists() else None) == before
    assert load(data_dir() / BACKUPS_FILE, Backup) == {}


def test_codex_does_not_run_a_hook_that_was_not_approved(tmp_path: Path) -> None:
    client, home, project = CLIENTS["codex"], tmp_path / "home", tmp_path / "harbour"
    build_project(project)
    home.mkdir()
    assert "/hooks" in clew("hook", "install", "--agent", client.agent, "--home", home).err
    ask(client, home, project)
    assert load_runs() == []


@pytest.mark.parametrize("name", AGENTS)
def test_the_skill_is_offered_to_the_model(name: str, tmp_path: Path) -> None:
    client, home, project = CLIENTS[name], tmp_path / "home", tmp_path / "harbour"
    build_project(project)
    home.mkdir()
    description = skill_text().partition("description: ")[2].partition("\n")[0][:100]
    needle = json.dumps(description)[1:-1]

    def is_offered() -> bool:
        requests = ask(client, home, project).outcome.requests
        return any(needle in json.dumps(request.body) for request in requests)

    assert clew("skill", "install", "--agent", client.agent, "--home", home).code == 0
    assert is_offered()
    assert clew("skill", "uninstall", "--agent", client.agent, "--home", home).code == 0
    assert not is_offered()
    assert not list(home.rglob("skills/clew"))
