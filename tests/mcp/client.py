"""The SDK's own client, connected to `clew mcp` over its standard input and output."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the extra clew[mcp] is not installed")

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import ClientSession, StdioServerParameters, stdio_client

COMMAND = "from clew.cli.main import run; run()"


class ToolFailed(Exception):
    """A tool answered with an error."""


class Client:
    """A client that waits for every answer."""

    def __init__(self, portal: BlockingPortal, session: ClientSession) -> None:
        self._portal, self.session = portal, session

    def ask(self, method: str, *arguments: Any) -> Any:
        """Call a method of the SDK's session."""
        return self._portal.call(getattr(self.session, method), *arguments)

    def text(self, tool: str, /, **arguments: Any) -> str:
        """The text of an answer; raises ToolFailed with the text of an error."""
        result = self.ask("call_tool", tool, arguments)
        (content,) = result.content
        if result.is_error:
            raise ToolFailed(content.text)
        text: str = content.text
        return text

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The answer of a tool."""
        answer: dict[str, Any] = json.loads(self.text(tool, **arguments))
        return answer

    def pages(self, tool: str, /, **arguments: Any) -> Iterator[dict[str, Any]]:
        """All pages of an answer."""
        answer = self.call(tool, **arguments)
        yield answer
        while "next_cursor" in answer:
            answer = self.call(tool, **arguments, cursor=answer["next_cursor"])
            yield answer

    def results(self, tool: str, /, **arguments: Any) -> list[dict[str, Any]]:
        """The results of all pages."""
        return [row for page in self.pages(tool, **arguments) for row in page["results"]]


@asynccontextmanager
async def _session(parameters: StdioServerParameters, errors: Path) -> AsyncIterator[ClientSession]:
    with errors.open("w") as stream:
        async with (
            stdio_client(parameters, stream) as (read_stream, write_stream),
            ClientSession(read_stream, write_stream) as session,
        ):
            await session.initialize()
            yield session


@contextmanager
def connect(home: Path, *options: str, errors: Path = Path(os.devnull), cwd: Path | None = None) -> Iterator[Client]:
    """Start `clew mcp` on a home, as clients do. Its messages go to the file `errors`."""
    arguments = ["-c", COMMAND, "--home", str(home), "mcp", *options]
    parameters = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ), cwd=cwd)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(_session(parameters, errors)) as session,
    ):
        yield Client(portal, session)
