"""No tool and no resource of `clew mcp` gives a canary to an agent, in any page of its answers."""

import json
import shlex
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

pytest.importorskip("mcp", reason="the extra clew[mcp] is not installed")

from mcp import Client, MCPError

from clew.catalog.database import folder_of
from clew.catalog.stats import BY
from clew.host import Host
from clew.library import Library
from clew.mcp.freshness import Freshness
from clew.mcp.masking import Masking
from clew.mcp.server import make_server
from clew.mcp.tools import TOOLS, Tools
from clew.redact.settings import load_settings
from tests.redact.test_canaries import Subject, every_home, subject

__all__ = ["subject"]
MAX_PAGES = 20
DETAILS = ("prompts", "conversation", "actions", "full")
SESSIONS_EACH = 3
"""For so many sessions of a home all tools are called."""


def tools_over(subject: Subject, profile: str) -> Tools:
    host = Host.at(subject.planted.home)
    folder = folder_of([host])
    library = Library(host, catalog_folder=folder, sync=False)
    settings = load_settings(profile) if profile != "none" else None
    return Tools(library, Masking(settings), Freshness([host], folder), target_host=host)


def questions(subject: Subject) -> list[tuple[str, dict[str, Any]]]:
    """Calls of every tool."""
    asked: list[tuple[str, dict[str, Any]]] = [
        ("search", {"query": ".", "mode": "regex", "limit": 100}),
        ("search", {"query": "a* OR t* OR s*", "newest": True}),
        ("list_sessions", {"subagents": True, "limit": 100}),
        *(("stats", {"by": by, "limit": 100}) for by in (*BY, "block")),
    ]
    asked += [("todos", {"session": f"{session.agent.id}:{session.id}"}) for session in subject.sessions]
    for session in subject.sessions[:SESSIONS_EACH]:
        ref = f"{session.agent.id}:{session.id}"
        facts = subject._facts_of(ref)
        asked += [("show", {"session": ref, "detail": detail}) for detail in DETAILS]
        asked += [(tool, {"session": ref}) for tool in ("files", "resume_command")]
        asked += [("show", {"session": f"{ref}#{facts.last}"}), ("todos", {"session": f"{ref}#{facts.last}"})]
        asked += [("resume_command", {"session": ref, "to": subject.words["other"]})]
        for file, disk in facts.files.items():
            asked += [("file_at", {"session": ref, "message": facts.last, "path": file, "unproved": True})]
            asked += [("blame", {"path": str(disk), "recorded_path": file})]
    return asked


async def texts_of(client: Client, tool: str, arguments: dict[str, Any]) -> AsyncIterator[str]:
    """The pages of an answer, or the error."""
    for _ in range(MAX_PAGES):
        result = await client.call_tool(tool, arguments)
        text = result.content[0].text  # type: ignore[union-attr]
        yield text
        cursor = None if result.is_error else json.loads(text).get("next_cursor")
        if cursor is None:
            return
        arguments = {**arguments, "cursor": cursor}


async def ask_everything(subject: Subject, profile: str) -> set[str]:
    """Call every tool and read every resource; the names of those that had an answer."""
    answered = set()
    executor = ThreadPoolExecutor(max_workers=1)  # its thread ends with the test run
    async with Client(make_server(tools_over(subject, profile), executor)) as client:
        for tool, arguments in questions(subject):
            name = f"{tool} by {arguments['by']}" if "by" in arguments else tool
            async for text in texts_of(client, tool, arguments):
                answered.add(tool)
                assert "internal error" not in text, (tool, arguments, text)
                subject.see(f"mcp {name}", text.encode())
        listed = await client.list_resources()
        subject.see("mcp resources", listed.model_dump_json().encode())
        for resource in listed.resources:
            try:
                read = await client.read_resource(str(resource.uri))
            except MCPError as error:
                subject.see("mcp resource", str(error).encode())
                continue
            subject.see("mcp resource", read.model_dump_json().encode())
    return answered


def answers(subject: Subject, profile: str) -> set[str]:
    """As `ask_everything`, in a thread of its own: a browser test may have left an event loop in this one."""
    with start_blocking_portal() as portal:
        return portal.call(ask_everything, subject, profile)


@pytest.mark.slow
@every_home
def test_no_answer_to_an_agent_holds_a_canary(subject: Subject) -> None:
    assert answers(subject, "secrets") >= {tool.name for tool in TOOLS} - {"file_at", "blame"}
    assert not subject.leaks, subject.told()


@pytest.mark.slow
@pytest.mark.parametrize("subject", [("claude-code", "valid")], indirect=True, ids="-".join)
def test_every_tool_can_give_out_a_canary(subject: Subject) -> None:
    """Without masking, each tool gives one out: else to look at its answers proves nothing."""
    answers(subject, "none")
    leaking = {leak.output.removeprefix("mcp ").split(" ")[0] for leak in subject.leaks}
    assert leaking >= {tool.name for tool in TOOLS} | {"resources", "resource"}, shlex.join(sorted(leaking))
