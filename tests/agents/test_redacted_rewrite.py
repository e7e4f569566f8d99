"""A session that is rewritten between the two passes over it: what is read the second time is masked, too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clew.agents.base import skim
from clew.agents.redacted import redacted
from clew.redact.marks import Marker
from clew.redact.tree import Redactor, Setting
from clew.sources.local import at_path
from tests.redact.planted import Planter

TOKEN = Planter("rewrite").github()
SESSION = "0b0e2d8c-5a0f-4a5e-9d53-0d5a4f3c2b11"


def _line(text: str) -> str:
    own = {"type": "user", "uuid": SESSION, "parentUuid": None, "sessionId": SESSION, "cwd": "/srv/app"}
    own |= {"timestamp": "2026-01-01T00:00:00Z", "version": "2.0.0"}
    return json.dumps(own | {"message": {"role": "user", "content": text}}) + "\n"


@pytest.mark.parametrize("shown", [False, True])
def test_what_was_rewritten_with_as_many_bytes_is_masked(tmp_path: Path, shown: bool) -> None:
    path = tmp_path / ".claude" / "projects" / "-srv-app" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(_line("x" * len(TOKEN)))
    [(agent, source)] = list(at_path(path))
    reader = redacted(agent, Redactor(Setting("secrets", Marker())))
    facts = skim(agent, source, tree=True, counts=False)
    reader.session(source, facts)  # learns the file
    path.write_text(_line(TOKEN))
    values = reader.shown(source, facts) if shown else (unit.value for unit in reader.read(source, facts))  # type: ignore[attr-defined]
    text = json.dumps(list(values))
    assert "[REDACTED]" in text
    assert TOKEN not in text
