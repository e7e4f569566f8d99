"""What is wrong with sources, as the last sync found them."""

from __future__ import annotations

import json
import sqlite3

from clew.model import Problem
from clew.model.codes import CODES


def problems(db: sqlite3.Connection) -> list[Problem]:
    """Every problem that was noted, in the order of the files."""
    query = "SELECT path, problems FROM source WHERE problems NOT IN ('', '[]') AND state <> 'gone' ORDER BY path"
    return [_problem(path, noted) for path, text in db.execute(query) for noted in json.loads(text)]


def _problem(path: str, noted: dict[str, str | int]) -> Problem:
    code = CODES[str(noted["code"])]
    return Problem(
        code=str(noted["code"]),
        severity=code.severity,
        message=str(noted.get("message") or code.meaning),
        file=path,
        line=int(noted["line"]) or None,
        hint=code.hint,
    )
