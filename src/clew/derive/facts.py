"""What one pass over a session tells: header, links and counts, holding ids but never content."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from clew.derive.usage import UsageLedger
from clew.graph.links import Links
from clew.graph.tree import Tree
from clew.model import Subagent
from clew.model.json import JSON
from clew.model.time import is_later, parse_time


class Facts:
    """Collected while a source is read once; the header of the unified document is made from it."""

    def __init__(self) -> None:
        self.links = Links()
        self.ledger = UsageLedger()
        self.messages = 0
        self.records = 0
        self.prompts = 0
        self.user_messages = 0
        self.tool_calls = 0
        self.has_errors = False
        self.has_thinking = False
        self.first_time: str | None = None
        self.last_time: str | None = None
        self.cwd: str | None = None
        self.git_branch: str | None = None
        self.version: str | None = None
        self.slug: str | None = None
        self.first_prompt: str | None = None
        self.leaf_uuid: str | None = None
        self.leaf_seen: int | None = None
        """How many nodes there were when the leaf was named, if it is only where the conversation stood then."""
        self.titles: dict[str, str] = {}
        """Title by the kind of record that gave it; the last of a kind counts."""
        self.summaries: dict[str, str] = {}
        """Summary by the uuid of the leaf it names, which may be in another file."""
        self.sessions: Counter[str] = Counter()
        """How many messages claim which session id."""
        self.tools: Counter[str] = Counter()
        self.subagents: list[Subagent] = []
        self.models: Counter[str] = Counter()
        self.extra: dict[str, JSON] = {}
        """What only one agent needs between its two passes."""
        self._tree: Tree | None = None

    @property
    def tree(self) -> Tree:
        """The conversation's tree; computed once, after the pass."""
        if self._tree is None:
            self._tree = Tree(self.links, self.leaf_uuid, self.leaf_seen)
        return self._tree

    def saw_time(self, time: str | None) -> None:
        """Widen the span of the session; what only looks like a time does not."""
        if time is None:
            return
        if self.first_time is None or self.last_time is None:
            if parse_time(time) is not None:
                self.first_time = self.last_time = time
        elif is_later(time, self.last_time):
            self.last_time = time
        elif is_later(self.first_time, time) and parse_time(time) is not None:
            self.first_time = time

    @property
    def started(self) -> datetime | None:
        return parse_time(self.first_time)

    @property
    def ended(self) -> datetime | None:
        return parse_time(self.last_time)
