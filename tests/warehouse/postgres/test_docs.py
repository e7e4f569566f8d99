"""The SQL that the documentation gives does what it says."""

from __future__ import annotations

import re
from pathlib import Path

from tests.catalog.worlds import write_claude
from tests.conftest import ROOT
from tests.warehouse.postgres.machines import Machine, ask, change, statistics
from tests.warehouse.postgres.server import Server

PAGE = (ROOT / "docs" / "guides" / "postgresql.md").read_text()
ROLES, EVERYTHING, ONLY_TEXT = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
SESSION = "aaaaaaaa-0000-4000-8000-000000000000"


def months(url: str, table: str) -> list[str]:
    query = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'clew.{0}'::regclass ORDER BY 1"
    return [name.removeprefix(f"{table}_") for (name,) in ask(url, query.format(table))]


def test_months_are_dropped_as_a_whole(url: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    write_claude(machine.home, SESSION, 10)
    machine.push(url)
    before = statistics(url)
    change(url, EVERYTHING)
    assert statistics(url) == before, "nothing is so old"
    later = ONLY_TEXT.replace("2026_01", "2026_11")
    change(url, later)
    assert months(url, "blocks_copies") == ["default"]
    assert statistics(url)["usage in total, one by one"] == before["usage in total, one by one"]
    change(url, EVERYTHING.replace("2026_01", "2026_11"))
    assert months(url, "messages_copies") == ["default"]
    assert statistics(url)["calls"] == []


def test_one_role_pushes_and_another_reads(server: Server, database: str, url: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    write_claude(machine.home, SESSION, 10)
    change(url, ROLES)
    change(url, *(f"ALTER ROLE {role} PASSWORD 'x4711'" for role in ("clew_push", "clew_read")))
    machine.push(server.url(database, "clew_push", "x4711"))
    assert statistics(server.url(database, "clew_read", "x4711")) == machine.statistics()
