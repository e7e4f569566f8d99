"""Each agent names the version of its client that tests run, or is listed here with the reason why there is none."""

from __future__ import annotations

import pytest

from clew.agents import registry
from tests.realclients.clients import CLIENTS, claude_code

WITHOUT_CLIENT = {
    "cursor": "an editor that needs an account and Cursor's own servers",
    "harbor": "a format that many programs write; Harbor's own models check what clew writes in it",
    "kilo": "descends from OpenCode and has the same tables; tests run OpenCode",
    "kilo-code": "an extension of VS Code, which tests do not run",
    "roo-code": "an extension of VS Code, which tests do not run",
    "sage-agent": "no package of it can be installed; clew's own store writes the same format",
    "sage-emacs": "no package of it can be installed",
    "vscode-chat": "an editor that needs an account and GitHub's own servers",
}
TESTED = {client.agent: client for client in CLIENTS.values()}


@pytest.mark.parametrize("agent", registry.names())
def test_an_agent_names_the_version_of_the_client_that_tests_run(agent: str) -> None:
    version = registry.get(agent).newest_tested_version
    if agent in WITHOUT_CLIENT:
        assert version == "" and agent not in TESTED, f"{agent} has a tested client: remove it from the table"
        return
    assert version, f"{agent} names no tested version: add one, or list the agent with the reason"
    client = TESTED[agent]
    if client.name == "claude":
        assert f"version {version}." in (claude_code.__doc__ or "")
    else:
        assert version == (client.program_version or next(iter((client.npm or client.pip).values())))


def test_the_table_names_agents_and_every_client_has_an_agent() -> None:
    assert WITHOUT_CLIENT.keys() <= set(registry.names())
    assert TESTED.keys() <= set(registry.names())
