"""A real client commits with its shell tool: `clew commits` finds the session by the hash that git printed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import clew
from tests.commits.git_sessions import GitRepository
from tests.realclients.client import Client
from tests.realclients.clients import CLIENTS
from tests.realclients.conversion import is_readable
from tests.realclients.lab import run
from tests.realclients.script import Call, Say, Script, turn

COMMAND = "git add -A && git -c user.name=Ada -c user.email=ada@example.org commit -m 'Ring the bell'"


def _shell(tool: str, **more: Any) -> Callable[[str], Call]:
    return lambda command: Call(tool, {"command": command, **more})


SHELLS: dict[str, Callable[[str], Call]] = {
    "claude": _shell("Bash", description="Commit"),
    "cline": lambda command: Call("run_commands", {"commands": [command]}),
    "codex": lambda command: Call("exec_command", {"cmd": command}),
    "continue": _shell("Bash"),
    "copilot-cli": _shell("bash", description="Commit", mode="sync"),
    "gemini": _shell("run_shell_command"),
    "goose": _shell("shell"),
    "kimi": _shell("Bash", description="Commit"),
    "mistral-vibe": _shell("bash"),
    "opencode": _shell("bash", description="Commit"),
    "pi": _shell("bash"),
    "qwen": _shell("run_shell_command", description="Commit", is_background=False),
}
"""The call of each client that runs a command."""
TRIED = [client for client in CLIENTS.values() if client.name in SHELLS and is_readable(client)]


@pytest.mark.parametrize("client", TRIED, ids=lambda client: client.name)
def test_a_commit_of_a_real_client_is_certain(client: Client, tmp_path: Path) -> None:
    home, repository = tmp_path / "home", GitRepository.create(tmp_path / "harbour")
    repository.commit("Begin", 0, {"README.md": "a harbour\n"})
    repository.write("bell.py", "print('dong')\n")
    script = Script((turn(Say("I commit it."), SHELLS[client.name](COMMAND)), turn(Say("Done."))))
    run(client, home, repository.folder, "Commit the bell, please.", script).check()
    (session,) = client.session_ids(home)
    found = clew("commits", "--home", home, "--repo", repository.folder, "--json").json["commits"]
    assert [row["subject"] for row in found] == ["Ring the bell", "Begin"]
    (link,) = found[0]["sessions"]
    assert (link["id"], link["agent"], link["certainty"], link["evidence"]) == (
        session,
        client.agent,
        "certain",
        "call",
    )
