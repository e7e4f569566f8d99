"""Who may own and change clew's schemas, and what readers of totals may read. What is not safe is refused."""

from __future__ import annotations

from psycopg import sql

from clew.errors import TargetRefused
from clew.warehouse.postgres.connection import Connection
from clew.warehouse.urls import display_server

SESSIONS, TOTALS = "clew", "clew_totals"
"""The schemas of sessions and of published totals."""
REVEALING_FUNCTIONS = (
    "^pg_(stat_get_|control_|current_(wal|xact|snapshot)|last_(wal|committed)|(total_relation|relation|table|indexes"
    "|database|tablespace)_size$|lock_status$|blocking_pids$|prepared_xact$|get_replication_slots$)"
    "|^txid_|^lo_(creat|from_bytea)"
)
"""Names of functions of the server that tell who is connected and how much is written, or that create large objects.

docs/guides/team-cost.md revokes the right to execute them.
"""
# Roles that the user is a member of are not trusted: a superuser is a member of all roles, and in PostgreSQL 15 a role
# can make others its members.
_UNSAFE_SCHEMA = """
WITH trusted AS (SELECT oid FROM pg_roles WHERE rolsuper OR rolname = current_user),
  schema AS (SELECT oid, nspowner, nspacl FROM pg_namespace WHERE nspname = %(schema)s),
  relations AS (SELECT c.oid, relname FROM pg_class c JOIN schema ON schema.oid = relnamespace),
  objects AS (
    SELECT d.classid, d.objid, s.refobjid AS owner
    FROM pg_depend d JOIN schema ON d.refclassid = 'pg_namespace'::regclass AND d.refobjid = schema.oid
      JOIN pg_shdepend s ON s.classid = d.classid AND s.objid = d.objid AND s.deptype = 'o'
        AND s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
  )
SELECT current_user, 'it belongs to ' || pg_get_userbyid(nspowner) FROM schema
  WHERE nspowner NOT IN (SELECT oid FROM trusted)
UNION ALL SELECT current_user, coalesce(pg_roles.rolname, 'every role') || ' may create objects in it'
  FROM schema, aclexplode(nspacl) LEFT JOIN pg_roles ON pg_roles.oid = grantee
  WHERE privilege_type = 'CREATE' AND grantee <> nspowner AND grantee NOT IN (SELECT oid FROM trusted)
UNION ALL SELECT current_user, pg_describe_object(classid, objid, 0) || ' belongs to ' || pg_get_userbyid(owner)
  FROM objects WHERE owner NOT IN (SELECT oid FROM trusted)
UNION ALL SELECT current_user, format('%%s has the trigger %%s of %%s', relname, tgname, pg_get_userbyid(proowner))
  FROM relations JOIN pg_trigger ON tgrelid = relations.oid JOIN pg_proc ON pg_proc.oid = tgfoid
  WHERE proowner NOT IN (SELECT oid FROM trusted)
LIMIT 1
"""
_USED_BY_ALL = f"""
SELECT 1 FROM pg_namespace, aclexplode(nspacl) WHERE nspname = '{TOTALS}' AND grantee = 0
"""
# From PostgreSQL 16 on, a membership may give no rights: neither inherited ones, nor by SET ROLE.
_READERS = f"""
WITH RECURSIVE readers AS (
  SELECT grantee AS oid, ''::name AS group_name FROM pg_namespace, aclexplode(nspacl)
    WHERE nspname = '{TOTALS}' AND grantee NOT IN (nspowner, (SELECT oid FROM pg_roles WHERE rolname = current_user))
  UNION SELECT oid, ''::name FROM pg_roles WHERE rolname = %(reader)s
  UNION SELECT m.member, pg_get_userbyid(m.roleid) FROM pg_auth_members m JOIN readers ON readers.oid = m.roleid
    WHERE coalesce((to_jsonb(m) ->> 'inherit_option')::boolean, true)
      OR coalesce((to_jsonb(m) ->> 'set_option')::boolean, true)
)
SELECT rolname, min(group_name::text) FROM readers JOIN pg_roles USING (oid) GROUP BY rolname
"""
"""Roles that may read the totals, each with the role that it is a member of; '' if it may read them itself."""
_TOO_MANY_RIGHTS = {
    "it is a superuser, or may create roles or databases, replicate, or bypass row-level security": """
SELECT role, role FROM readers JOIN pg_roles ON rolname = role
WHERE rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls""",
    "it is a member of another role": """
SELECT role, pg_get_userbyid(m.roleid) FROM readers JOIN pg_roles r ON r.rolname = role
  JOIN pg_auth_members m ON r.oid = m.member
WHERE pg_get_userbyid(m.roleid) NOT IN (SELECT role FROM readers)""",
    "it may use a schema of sessions": f"""
SELECT role, nspname FROM readers, pg_namespace
WHERE nspname = '{SESSIONS}' AND has_schema_privilege(role, oid, 'USAGE, CREATE')""",
    "it has rights on a table of sessions, or on a view of one": f"""
SELECT role, c.oid::regclass::text FROM readers, pg_class c WHERE c.oid IN (
  WITH RECURSIVE of_sessions AS (
    SELECT oid FROM pg_class WHERE relnamespace = '{SESSIONS}'::regnamespace
    UNION SELECT found.oid FROM of_sessions, LATERAL (
      SELECT r.ev_class AS oid FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid
      WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = of_sessions.oid AND d.classid = 'pg_rewrite'::regclass
      UNION ALL SELECT inhparent FROM pg_inherits WHERE inhrelid = of_sessions.oid) found
  ) SELECT oid FROM of_sessions
) AND relkind IN ('r', 'p', 'v', 'm', 'f')
  AND (has_table_privilege(role, c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
    OR has_any_column_privilege(role, c.oid, 'SELECT, INSERT, UPDATE, REFERENCES'))""",
    "it may call a function that has the rights of another role": """
SELECT role, oid::regprocedure::text FROM readers, pg_proc
WHERE prosecdef AND pronamespace <> 'pg_catalog'::regnamespace AND has_function_privilege(role, oid, 'EXECUTE')
  AND prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype)""",
    "it sees when others connect or what they write, or may create large objects": f"""
SELECT role, oid::regprocedure::text FROM readers, pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace
  AND proname ~ '{REVEALING_FUNCTIONS}' AND has_function_privilege(role, oid, 'EXECUTE')""",
    "it may create schemas or temporary tables in this database": """
SELECT role, current_database() FROM readers
WHERE has_database_privilege(role, current_database(), 'CREATE, TEMPORARY')""",
    "it may create tables or functions in a schema": """
SELECT role, nspname FROM readers, pg_namespace WHERE has_schema_privilege(role, oid, 'CREATE')""",
}
"""Reasons to refuse readers, each with a query for a role and the name of what it applies to."""


def check_schema(db: Connection, url: str, schema: str) -> None:
    """Raise TargetRefused if a role other than the user and superusers could run code as the user.

    Such a role owns the schema, may create objects in it, or has an object or a trigger in it. A schema that does not
    exist is safe.
    """
    found = db.execute(_UNSAFE_SCHEMA, {"schema": schema}).fetchone()
    if found is not None:
        user, reason = found
        raise TargetRefused(
            f"{display_server(url)}: the schema {schema} cannot be used: {reason}. Only superusers and {user}, the "
            "role that you act as, may own it and create objects in it"
        )


def add_reader(db: Connection, url: str, reader: str) -> None:
    """Let a role read all totals. It is to be checked afterwards."""
    if db.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (reader,)).fetchone() is None:
        raise _refused(url, reader, "it does not exist")
    schema, role = sql.Identifier(TOTALS), sql.Identifier(reader)
    db.execute(sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(schema, role))
    db.execute(sql.SQL("GRANT SELECT ON ALL TABLES IN SCHEMA {} TO {}").format(schema, role))


def check_readers(db: Connection, url: str, reader: str | None) -> None:
    """Raise TargetRefused if a role that may read the totals could read more, or create what helps to do so.

    That includes all members of such roles, and `reader`, even if it owns the schema.
    """
    if db.execute(_USED_BY_ALL.encode()).fetchone() is not None:
        raise TargetRefused(f"{display_server(url)}: the schema {TOTALS} cannot be used: every role may use it")
    groups: dict[str, str] = dict(db.execute(_READERS.encode(), {"reader": reader}).fetchall())
    for reason, query in _TOO_MANY_RIGHTS.items():
        readers = "WITH readers AS (SELECT unnest(%s::name[]) AS role)"
        found = db.execute(f"{readers}{query} LIMIT 1".encode(), (list(groups),)).fetchone()
        if found is not None:
            role, name = found
            member = f", a member of {groups[role]}," if groups[role] else ""
            raise _refused(url, f"{role}{member}", f"{reason} ({name})")


def _refused(url: str, role: str, reason: str) -> TargetRefused:
    return TargetRefused(f"{display_server(url)}: {role} cannot be a reader of totals: {reason}")
