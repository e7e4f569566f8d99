"""Files are masked before they are decoded, in one pass or two, also where they are rewritten in between."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clew.agents import source as source_module
from clew.agents.base import show
from clew.agents.masking import masked_source
from clew.host import Host
from clew.redact.masks import Marker
from clew.redact.redactor import MaskSettings, Redactor
from clew.sources.local import at_path, in_homes
from tests.demo_home import write_small_demo
from tests.redact.planted import Planter
from tests.render.pages import page

TOKEN = Planter("rewrite").github()
SESSION = "0b0e2d8c-5a0f-4a5e-9d53-0d5a4f3c2b11"


def write_session(folder: Path, text: str) -> Path:
    path = folder / ".claude" / "projects" / "-srv-app" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    own = {"type": "user", "uuid": SESSION, "parentUuid": None, "sessionId": SESSION, "cwd": "/srv/app"}
    own |= {"timestamp": "2026-01-01T00:00:00Z", "version": "2.0.0"}
    path.write_text(json.dumps(own | {"message": {"role": "user", "content": text}}) + "\n")
    return path


def redactor() -> Redactor:
    return Redactor(MaskSettings("secrets", Marker()))


def test_what_was_rewritten_with_as_many_bytes_is_masked(tmp_path: Path) -> None:
    path = write_session(tmp_path, "x" * len(TOKEN))
    [(agent, source)] = list(at_path(path))
    masked = masked_source(agent, source, redactor())
    assert agent.facts(masked).messages == 1  # learns the file
    write_session(tmp_path, TOKEN)
    text = json.dumps([unit.value for unit in agent.units(masked)])
    assert "[REDACTED]" in text
    assert TOKEN not in text


@pytest.mark.parametrize("words", ["nothing to hide", "password=" + "hunter2-Zq81xTtPw"])
def test_P01_one_pass_masks_what_two_passes_mask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    [(agent, source)] = list(at_path(write_session(tmp_path, words)))
    found = list(show(agent, masked_source(agent, source, redactor())).messages)
    monkeypatch.setattr(source_module, "SINGLE_PASS_BYTES", 0)
    assert list(show(agent, masked_source(agent, source, redactor())).messages) == found
    assert "hunter2" not in str(found)
    assert ("REDACTED" in str(found)) is ("password" in words)


def test_a_larger_source_is_read_twice_and_shows_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_small_demo(tmp_path)
    found = list(in_homes([Host.at(tmp_path)]))
    pages = [page(show(agent, source).messages) for agent, source in found]
    monkeypatch.setattr(source_module, "SINGLE_PASS_BYTES", 0)
    assert [page(show(agent, source).messages) for agent, source in found] == pages
