"""docs/agents: a page for each agent, and the comparison of two schemas, field by field."""

import re

import pytest

from clew.agents import registry
from tests.docs.pages import ROOT

FOLDER = ROOT / "docs" / "agents"
PAGE = (FOLDER / "index.md").read_text(encoding="utf-8")
COMPARISON = "## sage-emacs and Claude Code, field by field"

CLAUDE = (
    "type uuid parentUuid sessionId cwd gitBranch version timestamp userType isSidechain message requestId usage "
    "thinkingMetadata todos"
).split()
SAGE = "role content timestamp uuid session_id tool_calls name args result duration_ms success tokens estimated".split()
SAGE_METADATA = "project_dir created_at updated_at message_count total_size".split()


def rows() -> list[list[str]]:
    """The cells of the comparison, below its head."""
    lines = [line for line in PAGE.partition(COMPARISON)[2].splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def named(cells: list[str]) -> set[str]:
    return {name for cell in cells for name in re.findall("`([^`]+)`", cell)}


@pytest.mark.seed("S0-50")
def test_the_comparison_names_every_field_of_both() -> None:
    assert len(CLAUDE) == 15
    assert set(CLAUDE) <= named([row[0] for row in rows()])
    assert {*SAGE, *SAGE_METADATA} <= named([f"{row[1]} {row[3]}" for row in rows()])


@pytest.mark.seed("S0-50")
def test_each_field_of_the_comparison_has_a_place_in_the_document() -> None:
    for row in rows():
        assert len(row) == 4
        assert row[0] and row[1] and row[2]


@pytest.mark.parametrize("name", registry.names())
def test_every_agent_has_a_page_with_its_evidence(name: str) -> None:
    page = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {registry.get(name).title}\n")
    assert f"({name}.md)" in PAGE
    assert re.search(rf"\b{registry.get(name).title}\b", (ROOT / "README.md").read_text(encoding="utf-8"))
    headings = re.findall("^## (.+)$", page, re.MULTILINE)
    assert headings == [
        "Where sessions are",
        "Format versions",
        "Mapping",
        "Not read",
        "Evidence",
        "Sessions from other agents",
    ]
    assert re.search(r"Last checked\s\d{4}-\d\d-\d\d\.", page)


def test_the_guide_says_what_each_agent_can_hold() -> None:
    guide = (ROOT / "docs" / "guides" / "another-agent.md").read_text(encoding="utf-8")
    for agent in registry.load_all():
        profile = agent.target_profile()
        if profile is None:
            continue
        can = profile.capacity
        failures = "yes" if can.failures else "`[failed]` in the text"
        held = [can.images, can.documents, can.thinking, failures, can.todos, can.titles, can.subagents]
        cells = [each if isinstance(each, str) else "yes" if each else "no" for each in held]
        assert f"| {agent.title} | {' | '.join(cells)} |" in guide


@pytest.mark.parametrize("name", registry.names())
def test_the_table_says_which_agents_continue_sessions_of_others(name: str) -> None:
    (row,) = [line for line in PAGE.splitlines() if line.startswith("| [") and f"({name}.md)" in line]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[4] == ("no" if registry.get(name).target_profile() is None else "yes")
