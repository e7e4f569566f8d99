"""Published totals on a server: their numbers, and a reader who tries to learn more from the real server.

Bob is alone in his team, in a project, on a branch, with a model and on a Sunday; nobody may learn what he spent.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from itertools import chain, combinations, permutations
from pathlib import Path
from typing import Any

import psycopg
import pytest

from clew.errors import TargetRefused, UsageError
from clew.warehouse.postgres.rights import REVEALING_FUNCTIONS
from clew.warehouse.postgres.totals import TABLES, PublishReport, check_month, last_month, publish_totals
from tests.cli.running import clew
from tests.warehouse.postgres.company import (
    BY_TEAM_TOTALS,
    READER,
    UNPRICED,
    Company,
    session_ids,
    write_session,
)
from tests.warehouse.postgres.machines import ask, change
from tests.warehouse.postgres.server import Server

MONTH = "2026-10"
CANARY = "canarytext"
BOB_MODEL = "claude-opus-4-5-20251101"
SUNDAY = 4
INPUT_BITS = 25
"""Of the number of a session; the others are in its output tokens. Greater counts would not be plausible."""
TOKENS = f"sum(input_tokens) + sum(output_tokens) * {1 << INPUT_BITS}"
DENIED = psycopg.errors.InsufficientPrivilege


class Published:
    """A company of twelve people whose totals were published, and the address of their reader."""

    def __init__(self, company: Company, report: PublishReport, people_by_bit: dict[int, str]) -> None:
        self.company, self.report = company, report
        self._people_by_bit = people_by_bit
        self.url = company.url(company.reader_role)
        self.owner = company.url(company.login("bob"))

    def read(self, query: str) -> list[tuple[Any, ...]]:
        """The answer that the reader gets."""
        with closing(psycopg.connect(self.url, autocommit=True)) as db:
            return db.execute(query.encode()).fetchall()

    def people_behind(self, tokens: int) -> set[str]:
        """The people whose sessions have these tokens together."""
        return {person for bit, person in self._people_by_bit.items() if tokens >> bit & 1}


@pytest.fixture(scope="module")
def published(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Published]:
    psycopg.connect(server.url(), autocommit=True).execute("CREATE DATABASE totals").connection.close()
    company = Company(server, "totals", tmp_path_factory.mktemp("company"))
    ids, bits = iter(session_ids()), iter(range(60))
    people_by_bit: dict[int, str] = {}

    def work(person: str, project: str = "loom", **details: Any) -> None:
        """A session whose tokens are a power of two of its own: sums of them tell which sessions they are of."""
        bit = next(bits)
        people_by_bit[bit] = person
        details["tokens"] = ((1 << bit) % (1 << INPUT_BITS), 1 << bit >> INPUT_BITS)
        write_session(company.machines[person], next(ids), project, words=f"{CANARY} {person}", **details)

    teams = {"tides": [f"t{number}" for number in range(6)], "kilns": [f"k{number}" for number in range(5)]}
    for team, people in {**teams, "solo": ["bob"]}.items():
        for number, person in enumerate(people):
            company.add_person(person, team)
            for day in (1, 5):
                work(person, day=day, count=10 + 5 * number)
            if person != "bob":
                work(person, f"of-{team}", day=6, model=UNPRICED)
    work("bob", branch="bobs-branch", day=1, count=35)
    work("bob", "bobs-project", day=5, count=35)
    work("bob", model=BOB_MODEL, day=5, count=35)
    work("bob", day=SUNDAY, count=35)
    for person in company.machines:
        company.push(person)
    company.create_reader()
    report = publish_totals(company.url(company.login("bob")), MONTH, company.reader_role)
    yield Published(company, report, people_by_bit)


def rows_of(published: Published, table: str) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    names = ", ".join(TABLES[table])
    found = published.read(f"SELECT {names}, people, calls, unknown_cost_calls, cost_nano FROM {table}")
    return {row[:-4]: row[-4:] for row in found}


def test_rows_are_about_five_people_or_more(published: Published) -> None:
    assert published.report.is_new
    assert published.report.rows == {table: len(rows_of(published, table)) for table in TABLES}
    assert rows_of(published, "by_team").keys() == {("tides",), (None,)}, "bob is merged with the next larger team"
    assert ("2026-10-04",) not in rows_of(published, "by_day")
    text = json.dumps([list(rows_of(published, table)) for table in TABLES])
    assert "bob" not in text
    assert BOB_MODEL not in text
    assert all(people >= 5 for table in TABLES for people, *_ in rows_of(published, table).values())


@pytest.mark.parametrize("table", TABLES)
def test_every_table_has_all_of_the_month(published: Published, table: str) -> None:
    sums = "sum(calls), sum(unknown_cost_calls), sum(input_tokens), sum(output_tokens), sum(cost_nano)"
    expected = ask(published.owner, f"SELECT {sums} FROM clew.person_usage WHERE month_utc = '{MONTH}'")
    assert published.read(f"SELECT {sums} FROM {table}") == expected
    assert expected[0][1] > 0


def test_the_query_of_the_guide(published: Published) -> None:
    rows = published.read(BY_TEAM_TOTALS)
    assert {team for team, *_ in rows} == {"tides", "(smaller teams)"}


def test_a_row_minus_rows_of_another_table_is_about_five_people_or_nobody(published: Published) -> None:
    """All sums of rows that lie within a row of another table: the tokens tell exactly what is left of it."""
    tokens = {}
    for table, names in TABLES.items():
        rows = published.read(f"SELECT {TOKENS} FROM {table} GROUP BY {', '.join(names)}")
        tokens[table] = [int(sum_) for (sum_,) in rows]
    for one, other in permutations(TABLES, 2):
        for whole in tokens[one]:
            assert len(published.people_behind(whole)) >= 5
            within = [part for part in tokens[other] if part & ~whole == 0]
            for parts in chain.from_iterable(combinations(within, size) for size in range(len(within) + 1)):
                assert len(published.people_behind(whole - sum(parts))) not in range(1, 5), (one, other)


def test_the_search_for_small_differences_can_fail(published: Published) -> None:
    query = f"SELECT {TOKENS} FROM clew.usage_by_branch WHERE project = 'loom'"
    whole, main = (int(ask(published.owner, query + part)[0][0]) for part in ("", " AND git_branch = 'main'"))
    assert published.people_behind(whole - main) == {"bob"}


def test_a_month_is_published_once(published: Published) -> None:
    """A new push does not change it: the difference would be what one person did."""
    before = {table: rows_of(published, table) for table in TABLES}
    change(published.owner, "UPDATE clew.usage_days_sums SET cost_nano = cost_nano + 1")
    try:
        again = publish_totals(published.owner, MONTH)
        assert not again.is_new
        assert again.rows == published.report.rows
        assert {table: rows_of(published, table) for table in TABLES} == before
    finally:
        change(published.owner, "UPDATE clew.usage_days_sums SET cost_nano = cost_nano - 1")


def test_people_push_as_before(published: Published) -> None:
    """The setup of the reader takes rights from everyone; those that a push needs are given to its role."""
    machine = published.company.machines["bob"]
    for path in machine.home.rglob("*.jsonl"):
        os.utime(path, ns=(time.time_ns(), time.time_ns()))
    report = machine.push(published.owner)
    assert (report.pushed.sources, report.unchanged) == (report.sources, 0)


def test_a_month_of_few_people_is_not_published(server: Server, database: str, tmp_path: Path) -> None:
    company = Company(server, database, tmp_path)
    ids = iter(session_ids())
    for number in range(4):
        write_session(company.add_person(f"p{number}"), next(ids))
        company.push(f"p{number}")
    url = company.url(company.login("p0"))
    change(company.admin, "CREATE SCHEMA clew_totals AUTHORIZATION " + company.named("clew_push"))
    report = publish_totals(url, MONTH)
    assert not report.is_new
    assert not any(report.rows.values())
    done = clew("totals", url, "--month", "2025-01")
    assert (done.code, "fewer than five people" in done.err) == (1, True)
    write_session(company.add_person("p4"), next(ids))
    company.push("p4")
    assert publish_totals(url, MONTH).is_new, "when a fifth has pushed, it is"


def test_only_months_that_are_over(published: Published) -> None:
    now = datetime(2026, 11, 18, tzinfo=UTC)
    assert check_month("2026-10", now) == last_month(now) == "2026-10"
    assert last_month(datetime(2027, 1, 31, tzinfo=UTC)) == "2026-12"
    for month in (
        "2026-11",
        "2027-01",
        "October",
        "2026-13",
        "",
        "2026-9",
        "2026-1",
        "226-10",
        "٢٠٢٦-١٠",
        "2026-09\n",
        "0000-01",
    ):
        with pytest.raises(UsageError):
            check_month(month, now)
    done = clew("totals", published.owner, "--month", "9999-12")
    assert (done.code, done.raw) == (2, b"")


def test_the_command_reports_what_it_did(published: Published, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.warehouse.postgres.totals.last_month", lambda _: MONTH)
    done = clew("totals", published.owner, "--json")
    assert done.code == 0
    assert done.json == {"month": MONTH, "published": False, "rows": published.report.rows}
    assert "was published before" in clew("totals", published.owner).err


RIGHTS = [
    ("GRANT SELECT ON clew.usage TO {0}", "REVOKE SELECT ON clew.usage FROM {0}"),
    ("GRANT SELECT (title) ON clew.sessions TO {0}", "REVOKE SELECT (title) ON clew.sessions FROM {0}"),
    ("GRANT SELECT ON clew.batches TO PUBLIC", "REVOKE SELECT ON clew.batches FROM PUBLIC"),
    ("GRANT USAGE ON SCHEMA clew TO {0}", "REVOKE USAGE ON SCHEMA clew FROM {0}"),
    ("GRANT pg_read_all_data TO {0}", "REVOKE pg_read_all_data FROM {0}"),
    ("GRANT clew_push_totals TO {0}", "REVOKE clew_push_totals FROM {0}"),
    ("ALTER ROLE {0} BYPASSRLS", "ALTER ROLE {0} NOBYPASSRLS"),
    ("ALTER ROLE {0} SUPERUSER", "ALTER ROLE {0} NOSUPERUSER"),
    ("ALTER ROLE {0} CREATEROLE", "ALTER ROLE {0} NOCREATEROLE"),
    ("GRANT TEMPORARY ON DATABASE totals TO {0}", "REVOKE TEMPORARY ON DATABASE totals FROM {0}"),
    (
        "GRANT EXECUTE ON FUNCTION pg_stat_get_activity(int) TO {0}",
        "REVOKE EXECUTE ON FUNCTION pg_stat_get_activity(int) FROM {0}",
    ),
    (
        "GRANT EXECUTE ON FUNCTION pg_stat_get_db_tuples_inserted(oid) TO {0}",
        "REVOKE EXECUTE ON FUNCTION pg_stat_get_db_tuples_inserted(oid) FROM {0}",
    ),
    ("GRANT EXECUTE ON FUNCTION pg_table_size(regclass) TO {0}", "REVOKE ALL ON FUNCTION pg_table_size FROM {0}"),
    ("GRANT CREATE ON SCHEMA public TO {0}", "REVOKE CREATE ON SCHEMA public FROM {0}"),
    (
        "CREATE VIEW public.everyone AS SELECT * FROM clew.usage_by_person; GRANT SELECT ON public.everyone TO PUBLIC",
        "DROP VIEW public.everyone",
    ),
    (
        "CREATE VIEW public.hidden AS SELECT * FROM clew.usage_by_person;"
        "CREATE MATERIALIZED VIEW public.shown AS SELECT * FROM public.hidden;"
        "GRANT SELECT (person) ON public.shown TO {0}",
        "DROP VIEW public.hidden CASCADE",
    ),
    (
        "CREATE VIEW clew_totals.people AS SELECT person FROM clew.batches;"
        "ALTER VIEW clew_totals.people OWNER TO clew_push_totals",
        "DROP VIEW clew_totals.people",
    ),
    (
        "CREATE FUNCTION public.ask() RETURNS bigint LANGUAGE sql SECURITY DEFINER"
        " AS 'SELECT count(*) FROM clew.batches'",
        "DROP FUNCTION public.ask",
    ),
    ("SELECT 1", "SELECT 1"),
]


@pytest.mark.parametrize(("give", "take"), RIGHTS)
def test_a_reader_with_other_rights_is_refused(published: Published, give: str, take: str) -> None:
    role = published.company.reader_role
    change(published.company.admin, give.format(role))
    try:
        reader = role if give != take else "nobody_of_this_name"
        with pytest.raises(TargetRefused, match="cannot be a reader of totals"):
            publish_totals(published.owner, MONTH, reader)
        if give != take and "VIEW clew_totals" not in give:
            with pytest.raises(TargetRefused, match=f"{role} cannot be a reader of totals"):
                publish_totals(published.owner, MONTH)
    finally:
        change(published.company.admin, take.format(role))
    publish_totals(published.owner, MONTH, role)


OTHER_RIGHTS = [
    ("GRANT SELECT ON clew.usage TO {0}", "usage"),
    ("GRANT SELECT (title) ON clew.sessions TO {0}", "sessions"),
    ("GRANT clew_read_totals TO {0}", "clew_read_totals"),
    ("ALTER ROLE {0} NOINHERIT; GRANT clew_read_totals TO {0}", "clew_read_totals"),
    ("GRANT clew_push_totals TO {0}", "clew_push_totals"),
    ("ALTER SCHEMA public OWNER TO {0}", "public"),
    ("ALTER ROLE {0} SUPERUSER", "superuser"),
]


@pytest.mark.parametrize(("grant", "named"), OTHER_RIGHTS)
@pytest.mark.parametrize("group", ["clew_totals_reader_totals", "analysts"])
def test_a_member_of_a_reader_with_other_rights_is_refused(
    published: Published, grant: str, named: str, group: str
) -> None:
    """Of the reader itself, or of a group that is a member of it; also if the rights came after the membership."""
    reader = published.company.reader_role
    create = ["CREATE ROLE analysts", f"GRANT {reader} TO analysts", f"CREATE ROLE ivo; GRANT {group} TO ivo"]
    change(published.company.admin, *create)
    try:
        publish_totals(published.owner, MONTH, reader)
        change(published.company.admin, grant.format("ivo"))
        for role in (reader, None):
            message = rf"ivo, a member of {group}, cannot be a reader of totals: .*{named}"
            with pytest.raises(TargetRefused, match=message):
                publish_totals(published.owner, MONTH, role)
    finally:
        restore = ["ALTER SCHEMA public OWNER TO pg_database_owner", "DROP OWNED BY ivo", "DROP ROLE ivo, analysts"]
        change(published.company.admin, *restore)
    publish_totals(published.owner, MONTH, reader)


def test_the_owner_of_the_tables_is_no_reader(published: Published) -> None:
    with pytest.raises(TargetRefused, match=r"clew_push_totals,? cannot be a reader of totals"):
        publish_totals(published.owner, MONTH, "clew_push_totals")


def test_the_guide_hides_all_counters_that_are_checked() -> None:
    assert f"'{REVEALING_FUNCTIONS}'" in READER


def test_totals_that_all_roles_may_read_are_refused(published: Published) -> None:
    change(published.company.admin, "GRANT USAGE ON SCHEMA clew_totals TO PUBLIC")
    try:
        with pytest.raises(TargetRefused, match="every role may use it"):
            publish_totals(published.owner, MONTH)
    finally:
        change(published.company.admin, "REVOKE USAGE ON SCHEMA clew_totals FROM PUBLIC")


FORBIDDEN = {
    "tables": "SELECT * FROM clew.usage_copies",
    "a partition": "SELECT * FROM clew.usage_copies_2026_10",
    "views": "SELECT * FROM clew.sessions",
    "views of persons": "SELECT * FROM clew.usage_by_person",
    "persons": "SELECT person FROM clew.batches",
    "teams": "SELECT * FROM clew.team_members",
    "system columns": "SELECT ctid, xmin, tableoid FROM clew.usage_copies",
    "a count": "SELECT count(*) FROM clew.sessions_copies",
    "existence": "SELECT EXISTS (SELECT 1 FROM clew.usage_copies WHERE project = 'bobs-project')",
    "copying a table": "COPY clew.usage_copies TO STDOUT",
    "copying a query": "COPY (SELECT * FROM clew.blocks) TO STDOUT",
    "copying to a program": "COPY clew_totals.by_team TO PROGRAM 'cat'",
    "copying from a file": "COPY clew_totals.by_team FROM '/etc/passwd'",
    "another role": "SET ROLE clew_push_totals",
    "the reading role": "SET ROLE clew_read_totals",
    "another login": "SET SESSION AUTHORIZATION bob_totals",
    "membership": "GRANT clew_push_totals TO clew_totals_reader_totals",
    "a function": "CREATE FUNCTION leak(text) RETURNS bool LANGUAGE sql COST 0.0001 AS 'SELECT true'",
    "a function in the schema of totals": "CREATE FUNCTION clew_totals.f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "a temporary table": "CREATE TEMP TABLE t AS SELECT * FROM clew_totals.by_team",
    "a temporary function": "CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "an operator": "CREATE OPERATOR public.<<< (LEFTARG = text, RIGHTARG = text, FUNCTION = texteq)",
    "a schema": "CREATE SCHEMA mine",
    "an extension": "CREATE EXTENSION dblink",
    "a foreign server": "CREATE SERVER s FOREIGN DATA WRAPPER postgres_fdw",
    "a block": "DO $$ BEGIN PERFORM 1 FROM clew.usage_copies; END $$",
    "a block with errors as an oracle": "DO $$ BEGIN PERFORM 1 / (SELECT count(*) FROM clew.sessions); END $$",
    "a prepared statement": "PREPARE p AS SELECT * FROM clew.usage; EXECUTE p",
    "a plan": "EXPLAIN SELECT * FROM clew.usage_copies WHERE project = 'bobs-project'",
    "a plan of a view": "EXPLAIN ANALYZE SELECT * FROM clew.person_usage",
    "a rule": "CREATE RULE r AS ON SELECT TO clew_totals.by_team DO INSTEAD SELECT 1",
    "a trigger": "CREATE TRIGGER t BEFORE INSERT ON clew.batches EXECUTE FUNCTION clew.set_person()",
    "the trigger's function": "SELECT clew.set_person()",
    "a lock": "BEGIN; LOCK TABLE clew.usage_copies IN ACCESS SHARE MODE",
    "writing": "SET transaction_read_only = off; INSERT INTO clew_totals.months VALUES ('2026-11')",
    "deleting": "SET transaction_read_only = off; DELETE FROM clew_totals.by_team",
    "a policy": "ALTER TABLE clew.usage_copies DISABLE ROW LEVEL SECURITY",
    "files": "SELECT pg_read_file('postgresql.conf')",
    "folders": "SELECT pg_ls_dir('base')",
    "a large object from a file": "SELECT lo_import('/etc/passwd')",
    "large objects": "SELECT * FROM pg_largeobject",
    "statistics": "SELECT * FROM pg_statistic",
    "extended statistics": "SELECT * FROM pg_statistic_ext_data",
    "hashes of logins": "SELECT * FROM pg_authid",
    "who is connected": "SELECT usename, query FROM pg_stat_activity",
    "who is connected, by function": "SELECT pg_stat_get_backend_userid(1)",
    "rows that are written": "SELECT relname, n_tup_ins FROM pg_stat_all_tables",
    "rows that are written, by function": "SELECT pg_stat_get_tuples_inserted(oid) FROM pg_class",
    "rows that are written in a transaction": "SELECT n_tup_ins FROM pg_stat_xact_all_tables",
    "rows that are written to the database": "SELECT tup_inserted FROM pg_stat_database",
    "progress of a copy": "SELECT * FROM pg_stat_progress_copy",
    "pages that are read": "SELECT * FROM pg_statio_all_tables",
    "what is written to the log": "SELECT pg_current_wal_lsn()",
    "what was written to the log": "SELECT checkpoint_lsn FROM pg_control_checkpoint()",
    "locks": "SELECT relation FROM pg_locks",
    "numbers of transactions": "SELECT txid_current()",
    "transactions that run": "SELECT pg_current_snapshot()",
    "a new large object": "SELECT lo_create(0)",
    "sizes of tables": "SELECT pg_total_relation_size(oid) FROM pg_class",
    "sizes of a database": "SELECT pg_database_size(current_database())",
    "connecting elsewhere": "SELECT * FROM dblink('host=127.0.0.1', 'SELECT 1') AS t (a int)",
    "query_to_xml": "SELECT query_to_xml('SELECT * FROM clew.sessions', true, true, '')",
    "table_to_xml": "SELECT table_to_xml('clew.sessions', true, true, '')",
    "currtid": "SELECT currtid2('clew.usage_copies', '(0,1)')",
    "logical decoding": "SELECT pg_create_logical_replication_slot('s', 'pgoutput')",
    "the pages of a table": "SELECT get_raw_page('clew.usage_copies', 0)",
    "settings of the server": "SET log_statement = 'none'",
}


@pytest.mark.parametrize("statement", FORBIDDEN.values(), ids=FORBIDDEN)
def test_what_the_reader_may_not_do(published: Published, statement: str) -> None:
    with (
        closing(psycopg.connect(published.url, autocommit=True)) as db,
        pytest.raises(psycopg.Error) as refused,
    ):
        db.execute("SET default_transaction_read_only = off")
        db.execute(statement.encode())
    error = refused.value
    unknown = (psycopg.errors.UndefinedFunction, psycopg.errors.UndefinedObject, psycopg.errors.FeatureNotSupported)
    assert isinstance(error, (DENIED, *unknown)), error
    assert CANARY not in str(error)


VISIBLE = {
    "statistics of columns": "SELECT * FROM pg_stats WHERE schemaname = 'clew'",
    "extended statistics of columns": "SELECT * FROM pg_stats_ext WHERE schemaname = 'clew'",
    "tables": "SELECT * FROM information_schema.tables WHERE table_schema = 'clew'",
    "columns": "SELECT * FROM information_schema.columns WHERE table_schema = 'clew'",
    "definitions of views": "SELECT view_definition FROM information_schema.views WHERE table_schema = 'clew'",
    "prepared statements": "SELECT * FROM pg_prepared_statements",
    "cursors": "SELECT * FROM pg_cursors WHERE NOT is_holdable",
    "large objects": "SELECT oid FROM pg_largeobject_metadata",
    "extensions": "SELECT extname FROM pg_extension WHERE extname <> 'plpgsql'",
}


@pytest.mark.parametrize("query", VISIBLE.values(), ids=VISIBLE)
def test_what_the_reader_asks_in_vain(published: Published, query: str) -> None:
    """Catalogs that any role may ask show nothing of other roles' tables."""
    change(published.owner, "ANALYZE clew.usage_copies", "ANALYZE clew.batches")
    assert ask(published.owner, "SELECT count(*) > 0 FROM pg_stats WHERE schemaname = 'clew'") == [(True,)]
    assert published.read(query) == []


def test_a_careless_grant_opens_nothing(published: Published) -> None:
    """Rights on tables do not help without a right on their schema, and the next publication names them."""
    role = published.company.reader_role
    change(published.company.admin, f"GRANT SELECT ON ALL TABLES IN SCHEMA clew TO {role}")
    try:
        with pytest.raises(DENIED):
            published.read("SELECT * FROM clew.sessions")
    finally:
        change(published.company.admin, f"REVOKE ALL ON ALL TABLES IN SCHEMA clew FROM {role}")


@pytest.mark.parametrize(
    "condition",
    [
        "1 / (people - people) = 0",
        "CAST(project AS int) = 1",
        "CAST(project || git_branch AS date) > now()",
        "(SELECT set_config('a.b', project, false)) IS NOT NULL AND 1 / (calls - calls) = 0",
        "project ~ repeat('(', people::int)",
    ],
)
def test_errors_tell_nothing_but_published_rows(published: Published, condition: str) -> None:
    """Conditions are evaluated on stored totals: no row of a person exists where they run."""
    with pytest.raises(psycopg.Error) as failed:
        published.read(f"SELECT * FROM by_branch WHERE {condition}")
    assert "bob" not in str(failed.value)
    assert CANARY not in str(failed.value)


@pytest.mark.parametrize("table", TABLES)
def test_plans_show_published_rows_alone(published: Published, table: str) -> None:
    plan = "\n".join(line for (line,) in published.read(f"EXPLAIN (ANALYZE, VERBOSE, BUFFERS) SELECT * FROM {table}"))
    assert f"Seq Scan on clew_totals.{table}" in plan
    assert f"rows={published.report.rows[table]} " in plan
    assert "clew.usage" not in plan
    assert "batches" not in plan


def test_hidden_columns_and_rows_tell_nothing(published: Published) -> None:
    """Rows are written once, in one transaction: their places and numbers say nothing about pushes."""
    found = published.read(
        "SELECT DISTINCT xmin::text, cmax::text FROM by_team UNION SELECT xmin::text, '' FROM by_day"
    )
    assert len({transaction for transaction, _ in found}) == 1
    assert published.read("SELECT count(*) FROM pg_stats WHERE schemaname = 'clew_totals' AND tablename <> 'months'")


def test_names_of_tables_are_all_that_is_seen_of_them(published: Published) -> None:
    """A known limit: any role of a database sees names and estimated sizes in pg_class, but no value of a row."""
    found = published.read(
        "SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = 'clew'"
    )
    assert "bob" not in repr(list(chain.from_iterable(found)))
