"""The tables as plain facts. What an engine needs of them, from its DDL to its loader, is made from these.

All rows of one source in one state are a *batch*; every table begins with its name. Names and values are those of the
catalog's views. `number` counts the rows of a table within a batch, so that (batch, number) is a key; `seq` is the
message's place in its source, and 0 for what belongs to the session as a whole.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

SCHEMA_VERSION = 1
"""Of these tables, and of what stands in them: greater ones come before smaller ones."""
LEVELS = ("metrics", "redacted", "raw")
"""How much of a session may leave, from little to everything."""
STATE = ("schema_version", "redact_version", "price_version", "mtime_ns", "size")
"""What a source was like, and by which rules it was read. Of its batches the one with the greatest of these, then of
the level that tells most, is current."""
COPIES = "_copies"
"""What the name of a table of copies ends with in an engine; the merged table has the plain name."""


class Column(NamedTuple):
    """One column. Texts are never NULL, and neither are numbers that do not say so."""

    name: str
    type: Literal["int", "str"]
    text: bool = False
    """True for what somebody wrote: prose, code, output."""
    may_be_null: bool = False


class Table(NamedTuple):
    """One table, its key, and the column that tells the day a row belongs to."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    day: str = "day_utc"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns in their order."""
        return tuple(column.name for column in self.columns)


COUNTS = (
    "input_tokens output_tokens cache_creation_tokens cache_read_tokens cache_creation_5m_tokens "
    "cache_creation_1h_tokens reasoning_tokens"
).split()
"""What a call used, in the order of the catalog's rows; NULL where nobody told."""
RATES = (
    "rate_input rate_output rate_cache_read rate_5m rate_1h rate_limit "
    "above_input above_output above_cache_read above_5m above_1h"
).split()
"""What a token of each kind costs with this model, in trillionths of a dollar, and what it costs in a call with more
input than the limit; NULL where there is no price, or no other one above. Copies of a call may each know a part of what
it used: its cost is worked out when they have met."""
_INTS = frozenset(
    "seq number idx is_agent_session started_us ended_us message_count turn_count error_count active_us ts_us gap_us "
    "is_sidechain is_meta text_chars chars is_error duration_us cost_nano is_priced schema_version "
    "mtime_ns size".split()
)


_LINES = ("lines_added", "lines_removed")
"""How much a change came to; NULL where nobody told."""


def _table(name: str, key: str, columns: str) -> Table:
    found = []
    for word in columns.split():
        plain = word.rstrip("*")
        may_be_null = plain in (*COUNTS, *RATES, *_LINES)
        is_int = may_be_null or plain in _INTS
        found.append(Column(plain, "int" if is_int else "str", plain != word, may_be_null))
    return Table(name, tuple(found), tuple(key.split()))


TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        _table(
            "batches",
            "source_id batch",
            "batch source_id origin agent level schema_version redact_version price_version mtime_ns size day_utc",
        ),
        _table(
            "sessions",
            "batch",
            "batch session_id agent native_id parent_session_id is_agent_session title* workspace project git_branch "
            "agent_version started_us ended_us day_utc message_count turn_count error_count active_us",
        ),
        _table(
            "messages",
            "batch seq",
            "batch seq event_id session_id agent native_uuid parent_event_id ts_us day_utc gap_us kind role model "
            "git_branch is_sidechain is_meta text_chars",
        ),
        _table(
            "blocks",
            "batch number",
            "batch number seq event_id session_id idx type kind chars call_id ts_us day_utc text*",
        ),
        _table(
            "tool_calls",
            "batch number",
            "batch number seq call_id session_id event_id result_event_id agent project name is_error ts_us day_utc "
            "duration_us",
        ),
        _table(
            "usage",
            "batch number",
            "batch number seq usage_id session_id event_id agent model project git_branch ts_us day_utc week_utc "
            f"month_utc {' '.join(COUNTS)} cost_nano is_priced {' '.join(RATES)}",
        ),
        _table(
            "file_changes",
            "batch number",
            "batch number seq event_id session_id agent project path op lines_added lines_removed ts_us day_utc",
        ),
        _table("todos", "batch number", "batch number seq event_id session_id idx content* status day_utc"),
    )
}
"""Every table, `batches` first: what is not in it does not count."""
