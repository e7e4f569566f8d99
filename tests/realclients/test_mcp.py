"""Real agents use `clew mcp`: the server is added to their configuration, and a scripted model calls its tools."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="the extra clew[mcp] is not installed")

from tests.cli.running import clew
from tests.realclients.client import Client
from tests.realclients.lab import Run, run
from tests.realclients.recording import Recording, Recordings
from tests.realclients.script import Call, Say, Script, Turn, turn
from tests.realclients.wire_openai import TOOL_SEARCH

PROMPT = "What do we know about the bell?"
START_SECONDS = 8
AGENTS = ("claude", "codex", "gemini")


def call(client: Client, tool: str, **arguments: object) -> Call:
    """A call of a tool of the server, as each client names it."""
    if client.name == "codex":
        return Call(tool, dict(arguments), space="mcp__clew")
    return Call(f"mcp_clew_{tool}" if client.name == "gemini" else f"mcp__clew__{tool}", dict(arguments))


def ask(recording: Recording, home: Path, *turns: Turn) -> Run:
    """Run the client with the server in its configuration, on a new session in the recorded project."""
    client = recording.client
    done = clew("mcp", "install", "--agent", client.agent, "--home", home)
    assert done.code == 0, done.err
    if client.name == "codex":
        # It asks the model before the server has started, and offers tools of servers only on request.
        wait = turn(Call("exec_command", {"cmd": f"sleep {START_SECONDS}", "yield_time_ms": 30_000}))
        turns = (wait, turn(Call(TOOL_SEARCH, {"query": "clew search sessions"})), *turns)
    if client.name == "claude":
        turns = (
            turn(Call("ToolSearch", {"query": "select:mcp__clew__search,mcp__clew__blame,mcp__clew__show"})),
            *turns,
        )
    return run(client, home, recording.project, PROMPT, Script(turns=turns, answers_forever=True)).check()


@pytest.mark.parametrize("name", AGENTS)
def test_a_search_finds_an_earlier_session(name: str, recordings: Recordings, tmp_path: Path) -> None:
    recording = recordings.recording(name)
    client = recording.client
    home = client.copy_home(recording.home, tmp_path / "home")
    found = f"{client.agent}:{recording.session}#"
    done = ask(
        recording,
        home,
        turn(call(client, "search", query="bell ring twice", places=["prompts"])),
        turn(Say("We made it ring twice."), after=found),
    )
    assert "We made it ring twice." in done.output


def test_blame_and_show_name_who_wrote_a_line_and_why(recordings: Recordings, tmp_path: Path) -> None:
    recording = recordings.recording("claude")
    client = recording.client
    home = client.copy_home(recording.home, tmp_path / "home")
    bell = recording.project / "bell.py"
    (line,) = [line for line in clew("--home", home, "blame", bell, "--json").json if "dong dong" in line["text"]]
    assert line["session"] == recording.session
    written, prompt = (
        f"claude-code:{recording.session}#{number}" for number in (line["message"], line["prompt"]["message"])
    )
    answer = f"{written} wrote it, because {prompt} asked: Make the bell ring twice."
    done = ask(
        recording,
        home,
        turn(call(client, "blame", path=str(bell), containing="dong dong")),
        turn(call(client, "show", session=prompt), after=written),
        turn(Say(answer), after="Make the bell ring twice."),
    )
    assert answer in done.output
