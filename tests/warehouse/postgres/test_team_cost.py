"""Cost by person, team, project, branch and model on a server: persons are logins, and sums are those of `stats`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from tests.cli.running import clew
from tests.warehouse.postgres.company import BY_TEAM, PASSWORD, TEAMS, UNPRICED, Company, session_ids, write_session
from tests.warehouse.postgres.machines import ask, change
from tests.warehouse.postgres.server import Server


@pytest.fixture
def company(server: Server, database: str, tmp_path: Path) -> Company:
    return Company(server, database, tmp_path)


@pytest.fixture
def two(company: Company) -> Company:
    """Ada and Grace, in teams. Grace has a longer copy of a session of Ada's, and used a model without a price."""
    ids = iter(session_ids())
    shared, mine, hers, unpriced = (next(ids) for _ in range(4))
    ada, grace = company.add_person("ada", "tides"), company.add_person("grace", "kilns")
    write_session(ada, shared, day=2)
    write_session(grace, shared, day=2, count=15)
    write_session(ada, mine, "barge", branch="fix")
    write_session(grace, hers, day=3, count=25)
    write_session(grace, unpriced, "barge", model=UNPRICED)
    for person in ("ada", "grace"):
        company.push(person)
    return company


def test_the_login_is_the_person(two: Company) -> None:
    found = ask(two.admin, "SELECT DISTINCT person FROM batches ORDER BY 1")
    assert found == [(two.login("ada"),), (two.login("grace"),)]
    owners = "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'clew'"
    assert ask(two.admin, owners) == [(f"clew_push_{two.database}",)], "all act as one owner"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE batches SET person = '{grace}'",
        "INSERT INTO batches (batch, source_id, origin, agent, level, schema_version, redact_version, price_version,"
        " mtime_ns, size, day_utc, person) VALUES ('b', 's', 'o', 'a', 'raw', 1, '', '', 1, 1, '', '{grace}')",
        "UPDATE batches SET person = NULL",
        "SET ROLE {grace}; UPDATE batches SET size = 1",
        "SET SESSION AUTHORIZATION {grace}; UPDATE batches SET size = 1",
    ],
)
def test_nobody_pushes_as_somebody_else(two: Company, statement: str) -> None:
    query = "SELECT count(*) FROM batches WHERE person = '{}'".format(two.login("grace"))
    before = ask(two.admin, query)
    with suppress(psycopg.errors.InsufficientPrivilege):
        change(two.url(two.login("ada")), statement.format(grace=two.login("grace")))
    assert ask(two.admin, query) == before
    assert ask(two.admin, "SELECT count(*) FROM batches WHERE person IS NULL") == [(0,)]


@pytest.mark.parametrize(
    ("by", "view", "column"),
    [
        ("project", "usage_by_project", "project"),
        ("branch", "usage_by_branch", "git_branch"),
        ("model", "usage_by_model", "model"),
        ("day", "usage_by_person", "day_utc"),
        ("month", "usage_by_team", "month_utc"),
    ],
)
def test_sums_are_those_of_the_statistics(two: Company, by: str, view: str, column: str) -> None:
    homes = [word for machine in two.machines.values() for word in ("--home", str(machine.home))]
    found = clew("stats", *homes, "--by", by, "--json", "--timezone", "UTC").json
    expected = {
        row[by]: (row["calls"], row["input_tokens"], row["output_tokens"], row["cache_read_tokens"], row["cost_nano"])
        for row in found["rows"]
        if row["calls"]
    }
    sums = "sum(calls), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens), sum(cost_nano)"
    rows = ask(two.admin, f"SELECT {column}, {sums} FROM {view} GROUP BY 1")
    assert {name: tuple(values) for name, *values in rows} == expected
    unknown = sum(used["calls"] for used in found["by_model"].values() if used["cost_is_at_least"])
    assert ask(two.admin, f"SELECT sum(unknown_cost_calls) FROM {view}") == [(unknown,)]
    assert unknown > 0


def test_an_unknown_cost_is_not_zero(two: Company) -> None:
    query = f"SELECT sum(cost_nano), sum(unknown_cost_calls) > 0 FROM usage_by_model WHERE model = '{UNPRICED}'"
    assert ask(two.admin, query) == [(None, True)]


def test_a_call_of_two_people_counts_for_the_longer_copy(two: Company) -> None:
    query = "SELECT person FROM person_usage WHERE day_utc = '2026-10-02'"
    assert ask(two.admin, query) == [(two.login("grace"),)]


def test_teams_are_what_the_company_says(two: Company) -> None:
    change(two.admin, TEAMS.replace("'ada'", f"'{two.login('ada')}'").replace("'grace'", f"'{two.login('grace')}'"))
    ((team, month, dollars, unknown),) = ask(two.admin, BY_TEAM)
    assert (team, month, unknown > 0) == ("tides", "2026-10", True)
    assert dollars == sum(cost for (cost,) in ask(two.admin, "SELECT cost_nano / 1e9 FROM person_usage") if cost)


def test_whoever_reads_all_tables_reads_the_views(two: Company) -> None:
    reader = f"clew_read_{two.database}"
    change(two.admin, f"ALTER ROLE {reader} PASSWORD '{PASSWORD}'")
    assert len(ask(two.url(reader), "SELECT DISTINCT person FROM usage_by_person")) == 2


def test_batches_from_before_count_for_who_pushes_next(two: Company) -> None:
    change(
        two.admin,
        "ALTER TABLE batches DISABLE TRIGGER set_person",
        "UPDATE batches SET person = NULL",
        "ALTER TABLE batches ENABLE TRIGGER set_person",
    )
    assert ask(two.admin, "SELECT DISTINCT person, team FROM usage_by_person") == [("", "")]
    two.push("ada")
    found = {person for (person,) in ask(two.admin, "SELECT DISTINCT person FROM usage_by_person")}
    assert found == {"", two.login("ada")}
