"""What must not leave does not: secrets planted everywhere in a home are in no row, index or log of the server."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.catalog.worlds import claude_lines, claude_path, spelled
from tests.cli.running import run
from tests.warehouse.postgres.machines import Machine, ask
from tests.warehouse.postgres.server import Server, binaries

SESSION, OTHER = "aaaaaaaa-0000-4000-8000-000000000000", "bbbbbbbb-0000-4000-8000-000000000000"
SECRETS = {
    "prompt": "ghp_" + "9aZ8yX7wV6uT5sR4qP3oN2mL1kJ0iH9gF8eD",
    "answer": "sk-ant-api03-" + "Qw3rTyU1oP4sDfGh7JkLzXcVbNm09876" * 2 + "AA",
    "thinking": "AKIA" + "ZX3QWERTY7PLMNKO",
    "input": "xoxb-" + "482913756012-910283746512-Zx9Qv7Lm2Kp4Rt6Wy8Bn0Cd1",
    "output": "glpat-" + "Zx9Qv7Lm2Kp4Rt6Wy8Bn",
    "branch": "ghp_" + "1bY2xW3vU4tS5rQ6pO7nM8lK9jI0hG1fE2dC",
    "model": "ghp_" + "5cV6uT7sR8qP9oN0mL1kJ2iH3gF4eD5cB6aZ",
    "tool": "ghp_" + "7dU8tS9rQ0pO1nM2lK3jI4hG5fE6dC7bA8zY",
    "path": "ghp_" + "3eT4sR5qP6oN7mL8kJ9iH0gF1eD2cB3aZ4yX",
    "todo": "ghp_" + "2fS3rQ4pO5nM6lK7jI8hG9fE0dC1bA2zY3xW",
    "title": "ghp_" + "6gR7qP8oN9mL0kJ1iH2gF3eD4cB5aZ6yX7wV",
}


def plant(machine: Machine) -> None:
    """Sessions with a secret in every place that a row is made from."""
    lines = claude_lines(SESSION, 0, 15)
    lines[0]["message"]["content"] = f"use {SECRETS['prompt']} and weave"
    lines[1]["message"]["content"] = [{"type": "thinking", "thinking": f"so {SECRETS['thinking']}", "signature": ""}]
    lines[2]["message"]["content"] = [{"type": "text", "text": f"I take {SECRETS['answer']}"}]
    lines[3]["message"]["content"][0]["input"]["new_string"] = f"token = '{SECRETS['input']}'"
    lines[4]["message"]["content"][0]["content"] = f"printed {SECRETS['output']}"
    lines[5]["gitBranch"] = f"fix/{SECRETS['branch']}"
    lines[6]["message"]["model"] = SECRETS["model"]
    lines[8]["message"]["content"][0]["name"] = SECRETS["tool"]
    call: dict[str, Any] = lines[13]["message"]["content"][0]
    call["input"]["file_path"] = f"/home/mira/loom/{SECRETS['path']}.py"
    todos = [{"content": f"rotate {SECRETS['todo']}", "status": "pending", "activeForm": "x"}]
    given = {"type": "tool_use", "id": "toolu_t", "name": "TodoWrite", "input": {"todos": todos}}
    lines[11]["message"]["content"] = [given]
    title = {"type": "summary", "summary": f"About {SECRETS['title']}", "leafUuid": lines[14]["uuid"]}
    path = claude_path(machine.home, SESSION)
    path.parent.mkdir(parents=True)
    path.write_bytes(spelled([*lines, title]))
    # A copy that goes on: the same secrets stand in several batches.
    claude_path(machine.home, OTHER).write_bytes(spelled([*lines, *claude_lines(OTHER, 15, 5, seed=1)]))


def dumped(server: Server, database: str) -> str:
    """Everything in a database, as text."""
    place = binaries()
    assert place is not None
    command = [str(place / "pg_dump"), "--dbname", server.url(database).replace(f":{server.password}@", "@")]
    env = {**os.environ, "PGPASSWORD": server.password}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout


def leaked(text: str) -> list[str]:
    return [name for name, secret in SECRETS.items() if secret in text or secret.lower() in text.lower()]


@pytest.mark.parametrize("level", ["metrics", "redacted"])
def test_no_secret_reaches_the_server(server: Server, database: str, url: str, tmp_path: Path, level: str) -> None:
    machine = Machine(tmp_path)
    plant(machine)
    before = len(server.log)
    done = run("push", url, "--home", machine.home, "--level", level, "--json")
    assert done.code == 0, done
    assert json.loads(done.out)["unreadable"] == 0
    there = dumped(server, database)
    assert "COPY clew.messages_copies" in there
    assert leaked(there) == []
    assert leaked(server.log[before:] + done.out + done.err) == []
    assert "mira" not in there, "who works here is nobody's business"
    words = [word for (word,) in ask(url, "SELECT DISTINCT unnest(tsvector_to_array(words)) FROM blocks_copies")]
    assert leaked(" ".join(words)) == []


def test_at_metrics_no_text_leaves_at_all(server: Server, database: str, url: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    plant(machine)
    assert run("push", url, "--home", machine.home).code == 0
    there = dumped(server, database)
    for word in ("weave", "shuttle", "rotate", "About", "part0", "loom/"):
        assert word not in there, word
    assert ask(url, "SELECT count(*) FROM blocks_copies WHERE text <> '' OR words IS NOT NULL") == [(0,)]


def test_the_search_for_secrets_can_fail(server: Server, database: str, url: str, tmp_path: Path) -> None:
    """At level raw everything is there: what looks for secrets finds them."""
    machine = Machine(tmp_path)
    plant(machine)
    assert run("push", url, "--home", machine.home, "--level", "raw").code == 0
    assert set(leaked(dumped(server, database))) == set(SECRETS)
