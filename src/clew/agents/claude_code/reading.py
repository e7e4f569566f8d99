"""The messages and records of a transcript through the two-way tables."""

from __future__ import annotations

from clew.agents.base import SourceFile
from clew.agents.claude_code import tables
from clew.agents.claude_code.orders import ORDERS
from clew.agents.jsonl import JsonlReading
from clew.agents.mapping import Values

AGENT = "claude-code"


class ClaudeReading(JsonlReading):
    """Messages and records of one transcript."""

    def __init__(self, source: SourceFile, shared: Values) -> None:
        self.shared = shared
        super().__init__(AGENT, source, tables.choose, shared, {"shared": shared}, hints=ORDERS)
