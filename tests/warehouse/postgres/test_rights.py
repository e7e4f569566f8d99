"""Roles that could run code as the user who pushes or publishes: their schemas, objects and triggers are refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from clew.errors import TargetRefused
from clew.warehouse.postgres.connection import connect
from clew.warehouse.postgres.totals import publish_totals
from tests.warehouse.postgres.company import PASSWORD, Company, session_ids, write_session
from tests.warehouse.postgres.machines import ask, change
from tests.warehouse.postgres.server import Server

MONTH = "2026-10"
SPY = (
    "CREATE TABLE seen.roles (role text)",
    "GRANT INSERT ON seen.roles TO PUBLIC",
    """CREATE FUNCTION seen.note_role() RETURNS text LANGUAGE plpgsql AS $$
BEGIN INSERT INTO seen.roles VALUES (current_user); RETURN '5'; END $$""",
    """CREATE FUNCTION seen.spy() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM seen.note_role(); RETURN NEW; END $$""",
)
META = "CREATE VIEW clew.meta AS SELECT 'version' AS key, seen.note_role() AS value; GRANT ALL ON clew.meta TO PUBLIC"
TOUCHED = (
    "CREATE TABLE clew.touched_messages (event_id text)",
    "CREATE TRIGGER spy BEFORE INSERT ON clew.touched_messages EXECUTE FUNCTION seen.spy()",
    "GRANT ALL ON clew.touched_messages TO PUBLIC",
)
"""It has the name of a temporary table of a push, and comes before it in the search path."""
MONTHS = (
    "CREATE TABLE clew_totals.months (month_utc text PRIMARY KEY, published_at timestamptz DEFAULT now())",
    "CREATE TRIGGER spy BEFORE INSERT ON clew_totals.months EXECUTE FUNCTION seen.spy()",
    "GRANT ALL ON clew_totals.months TO PUBLIC",
)


class Attacked:
    """A company of five, and mallory, a role that may create schemas only."""

    def __init__(self, company: Company) -> None:
        self.company = company
        self.mallory, self.owner = company.login("mallory"), company.named("clew_push")
        self.url = company.url(self.mallory)
        """The address for mallory."""
        self.person = company.url(company.login("p0"))

    def admin(self, *statements: str) -> None:
        change(self.company.admin, *statements)

    def assert_push_is_refused(self, reason: str, url: str | None = None) -> None:
        for dry_run in (True, False):
            with pytest.raises(TargetRefused, match=f"the schema clew cannot be used: {reason}"):
                self.company.machines["p0"].push(url or self.person, dry_run=dry_run)

    def assert_totals_are_refused(self, reason: str) -> None:
        with pytest.raises(TargetRefused, match=f"the schema clew_totals cannot be used: {reason}"):
            publish_totals(self.person, MONTH)


@pytest.fixture
def attacked(server: Server, database: str, tmp_path: Path) -> Iterator[Attacked]:
    company = Company(server, database, tmp_path)
    ids = iter(session_ids())
    for number in range(5):
        write_session(company.add_person(f"p{number}"), next(ids))
        company.push(f"p{number}")
    write_session(company.machines["p0"], next(ids))
    found = Attacked(company)
    found.admin(f"CREATE ROLE {found.mallory} LOGIN PASSWORD '{PASSWORD}'")
    found.admin(f"GRANT CREATE ON DATABASE {database} TO {found.mallory}")
    found.admin(f"CREATE SCHEMA seen AUTHORIZATION {found.mallory}; GRANT USAGE ON SCHEMA seen TO PUBLIC")
    change(found.url, *SPY)
    yield found
    assert ask(company.admin, "SELECT * FROM seen.roles") == [], "nothing of mallory ran as somebody else"


def test_a_schema_of_another_role_is_refused(attacked: Attacked) -> None:
    attacked.admin("DROP SCHEMA clew CASCADE")
    change(attacked.url, "CREATE SCHEMA clew; GRANT ALL ON SCHEMA clew TO PUBLIC", META)
    attacked.assert_push_is_refused(f"it belongs to {attacked.mallory}. Only superusers and {attacked.owner}")
    attacked.assert_push_is_refused(f"it belongs to {attacked.mallory}", attacked.company.admin)
    with pytest.raises(TargetRefused, match="the schema clew cannot be used"):
        publish_totals(attacked.person, MONTH)


def test_a_member_must_act_as_the_owner(attacked: Attacked) -> None:
    """In PostgreSQL 15 any role can make others its members."""
    attacked.admin(f"ALTER ROLE {attacked.company.login('p0')} RESET role")
    attacked.assert_push_is_refused(f"it belongs to {attacked.owner}")


@pytest.mark.parametrize("grantee", ["mallory", "PUBLIC"])
def test_a_schema_that_another_role_may_create_in_is_refused(attacked: Attacked, grantee: str) -> None:
    role = attacked.mallory if grantee == "mallory" else grantee
    attacked.admin(f"GRANT USAGE, CREATE ON SCHEMA clew TO {role}")
    attacked.assert_push_is_refused(
        f"{attacked.mallory if grantee == 'mallory' else 'every role'} may create objects in it"
    )
    change(attacked.url, *TOUCHED)
    attacked.admin(f"REVOKE CREATE ON SCHEMA clew FROM {role}")
    attacked.assert_push_is_refused(f"table touched_messages belongs to {attacked.mallory}")
    attacked.admin("DROP TABLE clew.touched_messages")
    assert attacked.company.machines["p0"].push(attacked.person).pushed.sources == 1


@pytest.mark.parametrize(
    ("planted", "kind"),
    [
        ("FUNCTION clew.sum(text) RETURNS text LANGUAGE sql AS 'SELECT 1'", "function"),
        ("OPERATOR clew.= (LEFTARG = text, RIGHTARG = name, FUNCTION = texteqname)", "operator"),
        ("DOMAIN clew.bigint AS text CHECK (seen.note_role() = '5')", "type"),
        ("VIEW clew.spy AS SELECT seen.note_role()", "view"),
        ('COLLATION clew."C" FROM "POSIX"', "collation"),
    ],
)
def test_objects_of_another_role_are_refused(attacked: Attacked, planted: str, kind: str) -> None:
    attacked.admin(f"GRANT USAGE, CREATE ON SCHEMA clew TO {attacked.mallory}")
    change(attacked.url, f"CREATE {planted}")
    attacked.admin(f"REVOKE CREATE ON SCHEMA clew FROM {attacked.mallory}")
    attacked.assert_push_is_refused(f"{kind} .* belongs to {attacked.mallory}")


def test_a_trigger_of_another_role_is_refused(attacked: Attacked) -> None:
    attacked.admin(
        f"GRANT USAGE ON SCHEMA clew TO {attacked.mallory}; GRANT TRIGGER ON clew.loaded TO {attacked.mallory}"
    )
    change(attacked.url, "CREATE TRIGGER spy BEFORE INSERT ON clew.loaded EXECUTE FUNCTION seen.spy()")
    attacked.assert_push_is_refused(f"loaded has the trigger spy of {attacked.mallory}")


@pytest.mark.parametrize("owns_schema", [True, False])
def test_totals_in_a_schema_of_another_role_are_refused(attacked: Attacked, owns_schema: bool) -> None:
    if owns_schema:
        change(attacked.url, f"CREATE SCHEMA clew_totals; GRANT ALL ON SCHEMA clew_totals TO {attacked.owner}")
    else:
        attacked.admin(f"CREATE SCHEMA clew_totals AUTHORIZATION {attacked.owner}")
        attacked.admin(f"GRANT USAGE, CREATE ON SCHEMA clew_totals TO {attacked.mallory}")
        attacked.assert_totals_are_refused(f"{attacked.mallory} may create objects in it")
    change(attacked.url, *MONTHS)
    if owns_schema:
        attacked.assert_totals_are_refused(f"it belongs to {attacked.mallory}")
    else:
        attacked.admin(f"REVOKE CREATE ON SCHEMA clew_totals FROM {attacked.mallory}")
        attacked.assert_totals_are_refused(f"table clew_totals.months belongs to {attacked.mallory}")


def test_a_trigger_of_another_role_on_totals_is_refused(attacked: Attacked) -> None:
    attacked.admin(f"CREATE SCHEMA clew_totals AUTHORIZATION {attacked.owner}")
    publish_totals(attacked.person, "2026-09")
    attacked.admin(f"GRANT USAGE ON SCHEMA clew_totals TO {attacked.mallory}")
    attacked.admin(f"GRANT TRIGGER ON clew_totals.months TO {attacked.mallory}")
    change(attacked.url, MONTHS[1])
    attacked.assert_totals_are_refused(f"months has the trigger spy of {attacked.mallory}")


def test_a_superuser_runs_no_code_of_the_owner(attacked: Attacked) -> None:
    attacked.assert_push_is_refused(f"it belongs to {attacked.owner}. Only superusers and loom", attacked.company.admin)
    with pytest.raises(TargetRefused, match="the schema clew cannot be used"):
        publish_totals(attacked.company.admin, MONTH)


def test_every_function_sets_its_search_path(attacked: Attacked) -> None:
    attacked.admin(f"CREATE SCHEMA clew_totals AUTHORIZATION {attacked.owner}")
    publish_totals(attacked.person, MONTH)
    query = """SELECT proname, prosecdef, proconfig FROM pg_proc
        WHERE pronamespace IN ('clew'::regnamespace, 'clew_totals'::regnamespace)"""
    assert ask(attacked.company.admin, query) == [("set_person", False, ["search_path=pg_catalog, pg_temp"])]


def test_no_setting_changes_where_names_are_looked_up(attacked: Attacked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Statements name tables without a schema: neither the role, the URL nor the environment chooses another one."""
    change(attacked.url, "CREATE TABLE seen.loaded (batch text)", "GRANT ALL ON seen.loaded TO PUBLIC")
    attacked.admin(f"ALTER ROLE {attacked.company.login('p0')} SET search_path = seen, pg_catalog")
    monkeypatch.setenv("PGOPTIONS", "-c search_path=seen,pg_catalog")
    url = f"{attacked.person}?options=-c%20search_path%3Dseen,pg_catalog"
    for address in (attacked.person, url):
        with closing(connect(address)) as db:
            assert db.execute("SHOW search_path").fetchone() == ("clew, pg_temp",)
    assert attacked.company.machines["p0"].push(url).pushed.sources == 1
    assert ask(attacked.company.admin, "SELECT count(*) FROM seen.loaded") == [(0,)]
