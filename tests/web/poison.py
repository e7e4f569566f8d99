"""Hostile text in every field of every session of a home."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

from tests.render.hostile import HOSTILE

KEPT = frozenset(
    "type role uuid parentUuid logicalParentUuid leafUuid timestamp startTime lastUpdated sessionId id parent_id "
    "created_at updated_at tool_use_id call_id subtype kind status version schema_version".split()
)
"""What says what something is, which record belongs to which, and when it was."""


def _poisoned(value: Any, poison: Iterator[str], key: str = "") -> Any:
    if isinstance(value, str):
        return value if key in KEPT else next(poison)
    if isinstance(value, list):
        return [_poisoned(item, poison, key) for item in value]
    if isinstance(value, dict):
        return {name: _poisoned(item, poison, name) for name, item in value.items()}
    return value


def poison_home(home: Path) -> None:
    """Put hostile strings into every record below a home."""
    poison = cycle(HOSTILE)
    for path in sorted(home.rglob("*.json*")):
        pieces = []
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.suffix == ".jsonl" else ():
            try:
                pieces.append(json.dumps(_poisoned(json.loads(line), poison)))
            except ValueError:
                pieces.append(line)
        if path.suffix == ".json":
            pieces.append(json.dumps(_poisoned(json.loads(path.read_text(encoding="utf-8")), poison)))
        path.write_text("\n".join(pieces) + "\n", encoding="utf-8")
