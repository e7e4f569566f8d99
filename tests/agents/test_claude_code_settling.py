"""What the first record that says it says for a whole transcript, however far behind the others it stands."""

from __future__ import annotations

from pathlib import Path

import pytest
from clew.agents.claude_code.lines import Line
from clew.agents.claude_code.scan import SETTLED, Scanner

from clew.derive.facts import Facts

ASIDE, PLACED = Line(cwd="/aside", isSidechain=True), Line(cwd="/here", gitBranch="main")
NAMED = Line(cwd="/there", slug="so-it-goes", agentId="a1")


def settled(lines: list[Line], size: int) -> tuple[object, ...]:
    """What is known after so many records at a time."""
    scanner = Scanner(Facts(), Path("x.jsonl"), tree=False, counts=False)
    for at in range(0, len(lines), size):
        if scanner.unsettled:
            scanner.settle(lines[at : at + size])
    facts = scanner.facts
    return facts.cwd, facts.git_branch, facts.slug, facts.extra.get("cwd"), facts.extra.get("agent_id")


@pytest.mark.parametrize("size", [1, 7, SETTLED, SETTLED + 1, 1_000])
def test_where_a_session_was_is_waited_for_and_nothing_behind_it_counts(size: int) -> None:
    waited = [*[ASIDE] * (SETTLED + 5), PLACED, NAMED]
    assert settled(waited, size) == ("/here", "main", None, "/aside", None)


@pytest.mark.parametrize("size", [1, 7, SETTLED, SETTLED + 1, 1_000])
def test_what_stands_between_is_learned_as_long_as_it_is_not_known_where(size: int) -> None:
    aside = Line(isSidechain=True, slug="so-it-goes")
    assert settled([*[ASIDE] * SETTLED, aside, PLACED], size) == ("/here", "main", "so-it-goes", "/aside", None)
    assert settled([ASIDE] * (SETTLED + 3), size) == (None, None, None, "/aside", None)
    assert settled([*[PLACED] * SETTLED, NAMED], size) == ("/here", "main", None, "/here", None)
