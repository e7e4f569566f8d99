"""A company: people with logins of their own push from their machines, and roles as the guide creates them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from tests.catalog.worlds import claude_lines, spelled
from tests.conftest import ROOT
from tests.warehouse.postgres.machines import Machine, change
from tests.warehouse.postgres.server import Server

GUIDES = ROOT / "docs" / "guides"
PASSWORD = "x4711"
PRICED, UNPRICED = "claude-sonnet-4-5-20250929", "loom-model-of-our-own"


def sql_blocks(page: str) -> list[str]:
    """The SQL of a guide."""
    return re.findall(r"```sql\n(.*?)```", (GUIDES / page).read_text(), re.DOTALL)


LOGIN, TEAMS, BY_TEAM, READER, BY_TEAM_TOTALS = sql_blocks("team-cost.md")
ROLES = sql_blocks("postgresql.md")[0]


class Company:
    """A database, and the people who push to it. Names of roles end with that of the database: a server shares them."""

    def __init__(self, server: Server, database: str, folder: Path) -> None:
        self.server, self.database, self.folder = server, database, folder
        self.admin = server.url(database)
        self.reader_role = f"clew_totals_reader_{database}"
        self.machines: dict[str, Machine] = {}
        change(self.admin, self.named(ROLES))

    def named(self, text: str) -> str:
        """SQL of a guide, with the names of this company."""
        text = re.sub(r"\b(clew_push|clew_read|clew_totals_reader)\b", rf"\1_{self.database}", text)
        return re.sub(r"\bON DATABASE sessions\b", f"ON DATABASE {self.database}", text)

    def login(self, person: str) -> str:
        """The role of a person."""
        return f"{person}_{self.database}"

    def url(self, role: str) -> str:
        """The address for a role."""
        return self.server.url(self.database, role, PASSWORD)

    def add_person(self, person: str, team: str = "") -> Machine:
        """Give a person a login as the guide says, a machine and a team."""
        change(self.admin, re.sub(r"\bada\b", self.login(person), self.named(LOGIN)))
        change(self.admin, f"ALTER ROLE {self.login(person)} PASSWORD '{PASSWORD}'")
        self.machines[person] = Machine(self.folder / person)
        self.push(person)
        if team:
            change(self.admin, f"INSERT INTO clew.team_members VALUES ('{self.login(person)}', '{team}')")
        return self.machines[person]

    def push(self, person: str) -> None:
        """Push what a person has, under their login."""
        self.machines[person].push(self.url(self.login(person)))

    def create_reader(self) -> str:
        """Create the reader of totals as the guide says. Returns its address."""
        change(self.admin, self.named(READER), f"ALTER ROLE {self.reader_role} PASSWORD '{PASSWORD}'")
        return self.url(self.reader_role)


def write_session(
    machine: Machine,
    session: str,
    project: str = "loom",
    *,
    day: int = 1,
    branch: str = "main",
    model: str = PRICED,
    words: str = "weave",
    count: int = 10,
    tokens: tuple[int, int] = (3, 10),
) -> Path:
    """A session of a day in October, with words in its first prompt and tokens (input, output) in its first reply."""
    lines = claude_lines(session, 0, count, branch=branch)
    for line in lines:
        line["cwd"] = f"/home/mira/{project}"
        line["timestamp"] = line["timestamp"].replace("2026-10-01", f"2026-10-{day:02}")
        if "model" in line["message"]:
            line["message"]["model"] = model
            counts = zip(("input_tokens", "output_tokens"), tokens if line in lines[:5] else (0, 0), strict=True)
            line["message"]["usage"].update(counts)
    lines[0]["message"]["content"] = words
    path = machine.home / ".claude" / "projects" / f"-home-mira-{project}" / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(spelled(lines))
    return path


def session_ids() -> Iterable[str]:
    """Ids of sessions, without end."""
    number = 0
    while True:
        number += 1
        yield f"{number:08x}-0000-4000-8000-000000000000"
