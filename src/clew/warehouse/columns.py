"""The tables and their columns. DDL and loaders of all engines are made from these definitions.

All rows of one source in one state are a *batch*; every table begins with its name. Names and values of columns are
those of the catalog's views. `number` counts the rows of a table within a batch, so (batch, number) is a key; `seq` is
the position of the message in its source, and 0 for rows that belong to the session as a whole.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from clew.analysis.usage import TOKEN_FIELDS

SCHEMA_VERSION = 3
"""Of these tables and their content. A batch of a greater version replaces one of a smaller version.

Version 2 added `sessions.has_subagent_records`. Since version 3, messages of the kind `user` are those of a person, or
of the agent that asks a sub-agent.
"""
LEVELS = ("metrics", "redacted", "raw")
"""How much of a session is published, from least to most."""
STATE = ("schema_version", "redact_version", "price_version", "mtime_ns", "size")
"""The state of a source, and the versions of the rules it was read with. The batch with the greatest values is current;
of equal ones the one whose level has more content."""
COPIES = "_copies"
"""Suffix of a table as it was written, with copies. The merged table has the plain name."""


class Column(NamedTuple):
    """A column. Strings are never NULL; integers only if `may_be_null`."""

    name: str
    type: Literal["int", "str"]
    is_prose: bool = False
    """True for what a person, an agent or a tool wrote: prose, code, output."""
    may_be_null: bool = False
    added_in: int = 1
    """The schema version that has it first; NULL in rows that were written before."""


class Table(NamedTuple):
    """A table. Every table has a column `day_utc`, which it can be partitioned by."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(column.name for column in self.columns)


RATES = (
    *("rate_input", "rate_output", "rate_cache_read", "rate_5m", "rate_1h", "rate_limit"),
    *("above_input", "above_output", "above_cache_read", "above_5m", "above_1h"),
)
"""The price of a token of each kind, in 10^-12 dollars, and the price in a call with more input tokens than the limit;
NULL without a price, or without a limit. Copies of a call may have different counts, so that its cost is computed after
they are merged."""


def _table(name: str, key: str, columns: str) -> Table:
    """Columns are strings, unless followed by `:int`, `:int?` (may be NULL) or `:prose`; `@2`: added in version 2."""
    found = []
    for definition in columns.split():
        definition, _, version = definition.partition("@")
        column, _, kind = definition.partition(":")
        is_int = kind.startswith("int")
        found.append(Column(column, "int" if is_int else "str", kind == "prose", kind == "int?", int(version or 1)))
    return Table(name, tuple(found), tuple(key.split()))


TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        _table(
            "batches",
            "source_id batch",
            "batch source_id origin agent level schema_version:int redact_version price_version mtime_ns:int size:int "
            "day_utc",
        ),
        _table(
            "sessions",
            "batch",
            "batch session_id agent native_id parent_session_id is_agent_session:int title:prose workspace project "
            "git_branch agent_version started_us:int ended_us:int day_utc message_count:int turn_count:int "
            "error_count:int active_us:int has_subagent_records:int?@2",
        ),
        _table(
            "messages",
            "batch seq",
            "batch seq:int event_id session_id agent native_uuid parent_event_id ts_us:int day_utc gap_us:int kind "
            "role model git_branch is_sidechain:int is_meta:int text_chars:int",
        ),
        _table(
            "blocks",
            "batch number",
            "batch number:int seq:int event_id session_id idx:int type kind chars:int call_id ts_us:int day_utc "
            "text:prose",
        ),
        _table(
            "tool_calls",
            "batch number",
            "batch number:int seq:int call_id session_id event_id result_event_id agent project name is_error:int "
            "ts_us:int day_utc duration_us:int",
        ),
        _table(
            "usage",
            "batch number",
            "batch number:int seq:int usage_id session_id event_id agent model project git_branch ts_us:int day_utc "
            f"week_utc month_utc {' '.join(f'{name}:int?' for name in TOKEN_FIELDS)} cost_nano:int is_priced:int "
            f"{' '.join(f'{name}:int?' for name in RATES)}",
        ),
        _table(
            "file_changes",
            "batch number",
            "batch number:int seq:int event_id session_id agent project path op lines_added:int? lines_removed:int? "
            "ts_us:int day_utc",
        ),
        _table(
            "todos",
            "batch number",
            "batch number:int seq:int event_id session_id idx:int content:prose status day_utc",
        ),
    )
}
"""Every table, `batches` first: rows count when `batches` names their batch."""
DATA_TABLES = tuple(name for name in TABLES if name != "batches")
"""The tables of rows, in the order in which they are written. A row counts when `batches` names its batch."""
