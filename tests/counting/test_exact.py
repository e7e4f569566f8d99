"""The catalog counts a generated home exactly as the generator did."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.counting.homes import SONNET, claude, prompt, reply
from tests.counting.ways import WAYS, from_catalog


def test_a_made_home_is_exact(shared: Path, tmp_path: Path) -> None:
    home, truth = tmp_path / "home", tmp_path / "truth.json"
    tool = [sys.executable, str(shared / "tools" / "make_corpus.py"), "--size", "8MB", "--seed", "3", "--jobs", "1"]
    subprocess.run([*tool, "--out", str(home), "--truth", str(truth)], check=True, capture_output=True)
    right = told(json.loads(truth.read_text()))
    found = from_catalog([home])
    assert {model: tuple(count or 0 for count in found[model][1:]) for model in found} == right


def told(truth: dict[str, dict[str, dict[str, dict[str, dict[str, int]]]]]) -> dict[str, tuple[int, ...]]:
    """The truth in our convention: each agent's is its own."""
    right: dict[str, tuple[int, ...]] = {}
    for agent, facts in truth["agents"].items():
        for model, tokens in facts["tokens"].items():
            cached, thoughts = tokens["cache_read"], tokens.get("reasoning", 0)
            given = tokens["input"] - (cached if agent != "claude" else 0)
            out = tokens["output"] + (thoughts if agent == "gemini" else 0)
            right[model] = (given, out, cached, tokens.get("cache_creation", 0), thoughts)
    return right


def test_a_call_that_many_sessions_repeat_counts_once(tmp_path: Path) -> None:
    for number in range(6):
        session = f"{number}1111111-1111-4111-8111-111111111111"
        own = reply(f"own{number}", number, 1, number=2)
        claude(tmp_path, prompt("a"), reply("shared", 10, 20), own, session=session)
    assert from_catalog([tmp_path]) == {SONNET: (7, 25, 26, 0, 0, None)}


ODD = [1.5, "3", True, [], {}, None, -1, 10**30]


@pytest.mark.parametrize("key", ["input_tokens", "cache_read_input_tokens", "cache_creation", "id", "model", "usage"])
def test_one_odd_value_costs_no_other(tmp_path: Path, key: str) -> None:
    for number, odd in enumerate(ODD):
        home = tmp_path / str(number)
        first = reply("m1", 10, 20, read=5)
        message = first["message"]
        (message if key in message else message["usage"])[key] = odd
        claude(home, prompt("hello"), first, reply("m2", 1, 2, number=2))
        for way in WAYS.values():
            found = way([home])[SONNET]
            assert found[0] >= 1 and (found[1] or 0) >= 1 and (found[2] or 0) >= 2, (odd, way)
