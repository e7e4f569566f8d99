"""Who may change published totals, and what their readers may read. What is not safe is refused."""

from __future__ import annotations

from psycopg import sql

from clew.errors import TargetRefused
from clew.warehouse.postgres.connection import Connection
from clew.warehouse.urls import display_server

SCHEMA = "clew_totals"
COUNTERS = "^pg_stat_get_|^pg_(total_relation|relation|table|indexes|database|tablespace)_size$"
"""Names of functions of the server that tell who is connected, and how much is written. The guide revokes the same."""
_PUBLISHERS = """
SELECT oid FROM pg_roles WHERE rolname = current_user
UNION SELECT nspowner FROM pg_namespace WHERE nspname = 'clew'
"""
"""The roles that write totals. Other roles that the user is a member of do not count: a superuser is a member of all
roles, and in PostgreSQL 15 a role can make others its members."""
_UNSAFE_OBJECTS = f"""
WITH owners AS (SELECT oid FROM pg_roles WHERE rolsuper UNION {_PUBLISHERS}),
  relations AS (SELECT oid, relname, relowner FROM pg_class WHERE relnamespace = '{SCHEMA}'::regnamespace)
SELECT format('it belongs to %s', pg_get_userbyid(nspowner)) FROM pg_namespace
  WHERE nspname = '{SCHEMA}' AND nspowner NOT IN (SELECT oid FROM owners)
UNION ALL SELECT format('%s in it belongs to %s', relname, pg_get_userbyid(relowner)) FROM relations
  WHERE relowner NOT IN (SELECT oid FROM owners)
UNION ALL SELECT format('%s in it has the trigger %s', relname, tgname) FROM relations
  JOIN pg_trigger ON tgrelid = relations.oid WHERE NOT tgisinternal
UNION ALL SELECT format('%s in it has the rule %s', relname, rulename) FROM relations
  JOIN pg_rewrite ON ev_class = relations.oid WHERE rulename <> '_RETURN'
UNION ALL SELECT 'all roles may use it' FROM pg_namespace, aclexplode(nspacl)
  WHERE nspname = '{SCHEMA}' AND grantee = 0
"""
_READERS = f"""
SELECT DISTINCT rolname FROM pg_namespace, aclexplode(nspacl) JOIN pg_roles ON pg_roles.oid = grantee
WHERE nspname = '{SCHEMA}' AND grantee <> nspowner AND grantee NOT IN ({_PUBLISHERS})
"""
_TOO_MANY_RIGHTS = {
    "it is a superuser, or may create roles or databases, replicate, or bypass row-level security": """
SELECT rolname FROM pg_roles WHERE rolname = %(role)s
  AND (rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls)""",
    "it is a member of another role": """
SELECT pg_get_userbyid(m.roleid) FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.member
WHERE r.rolname = %(role)s""",
    "it may use a schema of sessions": """
SELECT nspname FROM pg_namespace WHERE nspname = 'clew' AND has_schema_privilege(%(role)s, oid, 'USAGE, CREATE')""",
    "it has rights on a table of sessions, or on a view of one": """
WITH RECURSIVE of_sessions AS (
  SELECT oid FROM pg_class WHERE relnamespace = 'clew'::regnamespace
  UNION SELECT found.oid FROM of_sessions, LATERAL (
    SELECT r.ev_class AS oid FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid
    WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = of_sessions.oid AND d.classid = 'pg_rewrite'::regclass
    UNION ALL SELECT inhparent FROM pg_inherits WHERE inhrelid = of_sessions.oid) found
)
SELECT oid::regclass::text FROM pg_class JOIN of_sessions USING (oid) WHERE relkind IN ('r', 'p', 'v', 'm', 'f')
  AND (has_table_privilege(%(role)s, oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
    OR has_any_column_privilege(%(role)s, oid, 'SELECT, INSERT, UPDATE, REFERENCES'))""",
    "it may call a function that has the rights of another role": """
SELECT oid::regprocedure::text FROM pg_proc
WHERE prosecdef AND pronamespace <> 'pg_catalog'::regnamespace AND has_function_privilege(%(role)s, oid, 'EXECUTE')
  AND prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype)""",
    "it sees when others connect, or how many rows they write": f"""
SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace
  AND proname ~ '{COUNTERS}' AND has_function_privilege(%(role)s, oid, 'EXECUTE')""",
    "it may create schemas or temporary tables in this database": """
SELECT current_database() WHERE has_database_privilege(%(role)s, current_database(), 'CREATE, TEMPORARY')""",
    "it may create tables or functions in a schema": """
SELECT nspname FROM pg_namespace WHERE has_schema_privilege(%(role)s, oid, 'CREATE')""",
}
"""Reasons to refuse a role, each with a query for the names of what it applies to."""


def check_schema(db: Connection, url: str) -> None:
    """Raise TargetRefused if others could run code as the user who writes, or if all roles may read the totals."""
    found = db.execute(_UNSAFE_OBJECTS.encode()).fetchone()
    if found is not None:
        raise TargetRefused(f"{display_server(url)}: the schema {SCHEMA} cannot be used: {found[0]}")


def add_reader(db: Connection, url: str, reader: str) -> None:
    """Let a role read all totals. It is to be checked afterwards."""
    if db.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (reader,)).fetchone() is None:
        raise _refused(url, reader, "it does not exist")
    _check_reader(db, url, reader)
    schema, role = sql.Identifier(SCHEMA), sql.Identifier(reader)
    db.execute(sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(schema, role))
    db.execute(sql.SQL("GRANT SELECT ON ALL TABLES IN SCHEMA {} TO {}").format(schema, role))


def check_readers(db: Connection, url: str) -> None:
    """Raise TargetRefused if a role that may read the totals could read more, or create what helps to do so."""
    for (reader,) in db.execute(_READERS.encode()).fetchall():
        _check_reader(db, url, reader)


def _check_reader(db: Connection, url: str, reader: str) -> None:
    for reason, query in _TOO_MANY_RIGHTS.items():
        found = db.execute(query.encode(), {"role": reader}).fetchone()
        if found is not None:
            raise _refused(url, reader, f"{reason} ({found[0]})")


def _refused(url: str, reader: str, reason: str) -> TargetRefused:
    return TargetRefused(f"{display_server(url)}: {reader} cannot be the reader of totals: {reason}")
