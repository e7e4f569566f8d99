"""Run named statements on an engine, one line of JSON each: `python -m tests.cluster.ask_engine ENGINE NAME...`."""

from __future__ import annotations

import json
import sys

from clew.catalog import database
from clew.catalog.stats import Ask
from clew.warehouse.engines import open_engine
from tests.every_statement import every_statement

TEN = (
    "usage by day",
    "usage by model",
    "usage by model, filtered",
    "usage by day and model",
    "usage in total",
    "sessions by agent",
    "sessions in total",
    "tools by tool",
    "durations of tools",
    "changes by day",
)
"""Ten of the statements: every table, sums, distinct counts, conditions and orders."""


def main(engine: str, *names: str) -> None:
    texts = dict(every_statement())
    ask = _catalog() if engine == "sqlite" else open_engine(engine).ask
    for name in names:
        print(json.dumps([name, ask(texts[name])]), flush=True)


def _catalog() -> Ask:
    db = database.open_reader(database.catalog_folder())
    assert db is not None
    return lambda statement: db.execute(*statement).fetchall()


if __name__ == "__main__":
    main(*sys.argv[1:])
