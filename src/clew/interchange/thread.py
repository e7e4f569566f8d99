"""One session as the formats of other tools want it: a single line of messages, its usage, its sub-agents, its losses.

These formats know no branches, so the active path is read. Messages of other branches are counted as a loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from clew.agents.base import Agent, session_object
from clew.agents.masking import learn_subagents
from clew.agents.source import SourceFile, archive_damage, with_current_size
from clew.analysis.facts import Facts
from clew.analysis.pricing import NANO_DOLLARS, prices
from clew.analysis.usage import TOKEN_FIELDS
from clew.convert.history import SessionWithHistory
from clew.convert.losses import Damage, Loss, Losses
from clew.model.json import JSON
from clew.model.unit import Unit

FindSubagentSource = Callable[[str], SourceFile | None]
"""Gives the session of a sub-agent by its id."""
_CACHE_LIFETIMES = ("cache_creation_5m_tokens", "cache_creation_1h_tokens")


class ModelCall(NamedTuple):
    """Token usage of one call of a model. A count that is None was not recorded."""

    id: str
    model: str
    counts: dict[str, int]
    """Recorded counts by the names of TOKEN_FIELDS."""
    cost_dollars: float | None

    @property
    def prompt_tokens(self) -> int | None:
        """All input, cached or not; None where no input is recorded."""
        names = ("input_tokens", "cache_read_tokens", "cache_creation_tokens")
        known = [self.counts[name] for name in names if name in self.counts]
        return sum(known) if known else None


class SubagentThread(NamedTuple):
    """A sub-agent of a thread, and the call that started it."""

    id: str
    """Unique among the sub-agents of one thread."""
    tool_id: str | None
    thread: Thread


class Thread:
    """The active path of a session, or the messages of a sub-agent that stand in the file of another session."""

    def __init__(
        self,
        agent: Agent,
        source: SourceFile,
        find: FindSubagentSource | None = None,
        *,
        ancestor_ids: frozenset[str] = frozenset(),
        sidechain: frozenset[int] | None = None,
    ) -> None:
        """Without `find`, sub-agents that have sessions of their own are left out.

        `ancestor_ids` are of the sessions that led here. `sidechain`: the indexes of the messages of a sub-agent.
        """
        self.agent, self.source = agent, with_current_size(source)
        self._find, self._ancestor_ids, self._sidechain = find, ancestor_ids, sidechain
        if find is not None and not ancestor_ids:
            learn_subagents(agent, self.source, find)
        self._history = SessionWithHistory(agent, self.source)
        self.facts = self._history.facts
        self.session: dict[str, JSON] = session_object(agent, self.source, self.facts)
        self.id: str = self.session["id"]
        self._path = self._history.select(None)
        self.calls = self._own_calls()
        """Calls of models by the index of their message; 0: of no message."""
        self.losses = Losses()
        self._unreadable_lines: list[Loss] = []

    @property
    def is_sidechain(self) -> bool:
        """True for a sub-agent in the file of another session."""
        return self._sidechain is not None

    def units(self) -> Iterator[Unit]:
        """The messages of the thread in order, and the records of its session between them."""
        damage = Damage(self._history.lines_before)
        for unit in self._path.in_order(damage.seen(self._history.units())):
            if self._sidechain is not None:
                if unit.is_message and unit.value["index"] in self._sidechain:
                    yield unit
            elif not unit.is_message or self._path.contains(unit.value["index"]):
                yield unit
        if self._sidechain is None:
            self._unreadable_lines = damage.losses(archive_damage(self.source) is not None)

    def is_copied(self, unit: Unit) -> bool:
        """True for a message that was copied from another session, or that summarises messages before a compaction."""
        if (unit.value.get("metadata") or {}).get("is_compact_summary"):
            return True
        if self.is_in_history(unit):
            return True
        claimed, known = unit.claimed_session, self.facts.sessions
        is_own = claimed in (None, self.id, self.session.get("parent_session_id"))
        return not is_own and self.id in known

    def is_in_history(self, unit: Unit) -> bool:
        """True for a message of another session's file, to which this session only refers."""
        return 1 < unit.line <= self._history.lines_before + 1

    def all_losses(self) -> list[Loss]:
        """The losses that were added, unreadable lines and messages on other branches, once all units were read."""
        return [*self.losses.listed(), *self._unreadable_lines, *self._left_out()]

    def _left_out(self) -> Iterator[Loss]:
        """The messages on other branches."""
        if self._sidechain is None and (count := len(self._path.left_out)):
            what = "1 message" if count == 1 else f"{count} messages"
            yield Loss(
                self._path.left_out[0],
                f"{what} on other branches",
                "the format has one line of messages",
                kind="a message on another branch",
                count=count,
            )

    def subagents(self) -> Iterator[SubagentThread]:
        """The sub-agents whose messages are known; those that are missing are added to the losses."""
        if self._sidechain is not None:
            return
        named: set[str | None] = set()
        known = {*self._ancestor_ids, self.id}
        for link in self.session.get("subagents") or ():
            identity, root = link.get("session_id"), link.get("root_uuid")
            if identity:
                if identity in known:
                    continue
                known.add(identity)
                child = self._child(identity)
                if child is None:
                    name = link.get("agent_id") or identity
                    self.losses.append(
                        Loss(None, f"the sub-agent {name}", "its session is missing", kind="a sub-agent")
                    )
                else:
                    yield SubagentThread(identity, link.get("tool_id"), child)
            elif root in self._path.sidechain_messages and root not in named:
                named.add(root)
                yield SubagentThread(f"{self.id}#{root}", link.get("tool_id"), self._sidechain_thread(root))
        for number, root in enumerate(self._path.sidechain_messages):
            if root not in named:
                yield SubagentThread(f"{self.id}#{root or number}", None, self._sidechain_thread(root))

    def _own_calls(self) -> Mapping[int, list[ModelCall]]:
        """The calls of models, without those of sub-agents in the same file; of such a sub-agent only its own."""
        in_sidechains = {index for indexes in self._path.sidechain_messages.values() for index in indexes}
        return {
            index: calls
            for index, calls in _calls_by_message(self.facts).items()
            if (index in self._sidechain if self._sidechain is not None else index not in in_sidechains)
        }

    def _child(self, identity: str) -> Thread | None:
        """The session of a sub-agent, masked where this one is."""
        source = self._find(identity) if self._find is not None else None
        if source is None or source.path == self.source.path:
            return None
        if self.source.mask is not None:
            source = self.source.mask.cover(source)
        return Thread(self.agent, source, self._find, ancestor_ids=self._ancestor_ids | {self.id})

    def _sidechain_thread(self, root: str | None) -> Thread:
        return Thread(self.agent, self.source, sidechain=frozenset(self._path.sidechain_messages[root]))


def _calls_by_message(facts: Facts) -> Mapping[int, list[ModelCall]]:
    table, found = prices(), dict[int, list[ModelCall]]()
    for name, model, counts, index in facts.ledger.each():
        cost = table.cost_of_call(model, counts)
        recorded = {field: count for field, count in zip(TOKEN_FIELDS, counts, strict=True) if count is not None}
        parts = [recorded[field] for field in _CACHE_LIFETIMES if field in recorded]
        if parts:
            recorded["cache_creation_tokens"] = max(sum(parts), recorded.get("cache_creation_tokens", 0))
        call = ModelCall(name, model, recorded, None if cost is None else cost / NANO_DOLLARS)
        found.setdefault(index, []).append(call)
    return found
