"""The quick way through a session in which each record follows the one before it, for who only looks at it.

Such a session has no forks, and whoever looks for these alone need not know its tree, nor all that was said: what a
header is made of stands in a few columns. Nobody counts on this way, and the tree stays empty.
"""

from __future__ import annotations

from collections.abc import Sequence

from clew.agents.claude_code.lines import Line, Result
from clew.agents.claude_code.scan import LINKED, PROGRESS, Scanner


def see_straight(scanner: Scanner, lines: Sequence[Line]) -> bool:
    """See records as far as a header goes; False, and nothing seen, where one does not follow the one before it."""
    linked = [line for line in lines if line.type in LINKED]
    uuids = [line.uuid for line in linked]
    if not _is_straight(uuids, [line.parentUuid for line in linked]):
        return False
    facts = scanner.facts
    scanner.claim(line.sessionId for line in lines)
    _see_beside(scanner, lines)
    if facts.summaries:
        facts.links.extend_names(uuids)
    spoken = [line for line in linked if line.type != PROGRESS]
    if spoken:
        scanner.settle(spoken)
        scanner.times += [line.timestamp for line in spoken if line.timestamp]
    _introduce(scanner, spoken)
    return True


def _is_straight(uuids: Sequence[str | None], parents: Sequence[str | None]) -> bool:
    """True where each follows the one before it, and all have names of their own. Nothing forks before the first."""
    names = set(uuids)
    return len(names) == len(uuids) and None not in names and parents[1:] == uuids[:-1]


def _see_beside(scanner: Scanner, lines: Sequence[Line]) -> None:
    """See the records that are no messages. Where they stand matters to trees alone."""
    for line in lines:
        if line.type not in LINKED:
            scanner.bookkeeping(line, 0)
        elif line.type == PROGRESS:
            scanner.progress(line)


def _introduce(scanner: Scanner, spoken: Sequence[Line]) -> None:
    """See what was said up to the first prompt; all of it where agents were started."""
    results = [line.toolUseResult for line in spoken]
    has_agents = any(type(result) is Result and result.agentId for result in results if result is not None)
    for line in spoken:
        kind, message = line.type, line.message
        # What a sub-agent is told further on is no prompt, and begins none.
        if (kind == "user" or kind == "assistant") and (has_agents or not (line.isSidechain and line.parentUuid)):
            content = message.content if message is not None else None
            scanner.said(line, kind, line.isSidechain, None, content, line.toolUseResult)
            if scanner.facts.first_prompt is not None and not has_agents:
                return
