"""The sessions on a server that pass filters."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from clew.catalog.filters import POSTGRESQL_COPIES, session_condition
from clew.filters import Filters

if TYPE_CHECKING:
    from clew.warehouse.postgres.connection import Connection

Holding = Callable[[str, frozenset[str] | None], set[str]]
"""The batches with a text of some kinds that contains a piece of text."""


def chosen(db: Connection, filters: Filters, holding: Holding) -> set[str]:
    """The batches whose sessions pass all filters."""
    with_file = holding(filters.file, frozenset({"file"})) if filters.file is not None else None
    with_text = holding(filters.text, None) if filters.text is not None else None
    condition = session_condition(filters, POSTGRESQL_COPIES, with_file=with_file, with_text=with_text)
    query = f"SELECT batch FROM sessions_copies WHERE {condition.text.replace('?', '%s')}"
    return {batch for (batch,) in db.execute(query.encode(), condition.values).fetchall()}
