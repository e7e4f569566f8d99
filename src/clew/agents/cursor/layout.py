"""Which rows of the database hold a chat.

The database of the editor is one table of keys and values, of all extensions and of several gigabytes. A chat is the
row `composerData:<id>` and a row `bubbleId:<id>:<bubble>` for each of its messages. No other key is read.
"""

from __future__ import annotations

from collections.abc import Sequence

from clew.agents.database import Layout, Schema, Table

FILE_NAME = "state.vscdb"
TABLE = "cursorDiskKV"
CHAT_KEY, MESSAGE_KEY = "composerData:", "bubbleId:"
OTHER_TABLES = frozenset(("ItemTable", "sqlite_sequence"))
"""ItemTable holds the settings and the credentials of the editor."""
_VALUE = f"CAST({TABLE}.value AS TEXT)"
_WITHOUT_KEYS = (
    f"CASE WHEN json_valid({_VALUE}) THEN json_remove({_VALUE}, '$.speculativeSummarizationEncryptionKey',"
    f" '$.blobEncryptionKey') ELSE {_VALUE} END"
)
_HEADERS = (
    f"json_each((SELECT CASE WHEN json_valid(CAST(value AS TEXT)) THEN CAST(value AS TEXT) ELSE '{{}}' END"
    f" FROM {TABLE} WHERE key = '{CHAT_KEY}' || :session), '$.fullConversationHeadersOnly')"
)
_HEADER_KEY = f"'{MESSAGE_KEY}' || :session || ':' || json_extract(header.value, '$.bubbleId')"


def _sessions(schema: Schema) -> str:
    """Chats with messages; the editor makes an empty one whenever its panel is opened."""
    if TABLE not in schema:
        return ""
    value, name = "CAST(chat.value AS TEXT)", f"substr(chat.key, {len(CHAT_KEY) + 1})"
    bounds = f"m.key >= '{MESSAGE_KEY}' || {name} || ':' AND m.key < '{MESSAGE_KEY}' || {name} || ';'"

    def member(function: str, key: str) -> str:
        return f"CASE WHEN json_valid({value}) THEN {function}({value}, '$.{key}') END"

    updated, created = member("json_extract", "lastUpdatedAt"), member("json_extract", "createdAt")
    old_messages = member("json_array_length", "conversation")
    return (
        f"SELECT {name} AS id, coalesce({updated}, {created}),"
        f" (SELECT count(*) FROM {TABLE} m WHERE {bounds}) + coalesce({old_messages}, 0) AS messages,"
        f" length(chat.value), {member('json_extract', 'status')} FROM {TABLE} chat"
        f" WHERE chat.key >= '{CHAT_KEY}' AND chat.key < '{CHAT_KEY[:-1]};' AND messages > 0"
    )


def _tables(_schema: Schema) -> Sequence[Table]:
    """The chat, its messages in their order, and messages that the chat does not name any more."""
    bounds = f"{TABLE}.key >= '{MESSAGE_KEY}' || :session || ':' AND {TABLE}.key < '{MESSAGE_KEY}' || :session || ';'"
    columns = f"{TABLE}.key, {_WITHOUT_KEYS} AS value"
    named = f", {_HEADERS} header WHERE {TABLE}.key = {_HEADER_KEY} ORDER BY header.key"
    others = f"WHERE {bounds} AND {TABLE}.key NOT IN (SELECT {_HEADER_KEY} FROM {_HEADERS} header) ORDER BY {TABLE}.key"
    return (
        Table(TABLE, f"WHERE {TABLE}.key = '{CHAT_KEY}' || :session", columns=columns),
        Table(TABLE, named, columns=columns),
        Table(TABLE, others, columns=columns),
    )


LAYOUT = Layout((FILE_NAME,), _sessions, _tables, OTHER_TABLES)
