"""The quick tally and the first pass tell the same of every session there is."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from clew.agents.base import Agent, SourceFile, session_object
from clew.analysis.calls import UNKNOWN, Calls
from clew.analysis.usage import UsageLedger
from clew.catalog import tally as tallying
from clew.catalog.tally import general
from clew.demo import write_demo
from clew.errors import SourceUnreadable
from clew.host import Host
from clew.sources.local import at_path, in_homes
from tests.counting.homes import SONNET, claude, prompt, reply
from tests.counting.ways import from_catalog, from_tally


def ledger_of(calls: Calls) -> UsageLedger:
    ledger = UsageLedger()
    for key, (model, _, _, counts) in calls.by_key.items():
        ledger.note(key, model, [None if count == UNKNOWN else count for count in counts])
    return ledger


def differences(found: Iterable[tuple[Agent, SourceFile]]) -> list[str]:
    """What the tally tells otherwise than the facts and the header."""
    wrong = []
    for agent, source in found:
        try:
            facts = agent.facts(source)
        except SourceUnreadable:
            continue
        calls, header = agent.usage_calls(source), session_object(agent, source, facts)
        assert calls is not None
        ours, theirs = ledger_of(calls), facts.ledger
        if dict(ours.by_model()) != dict(theirs.by_model()):
            wrong.append(f"{source.path}: {ours.by_model()} is not {theirs.by_model()}")
        if (calls.session, calls.is_agent) != (header["id"], header["is_agent_session"]):
            wrong.append(f"{source.path}: {calls.session} is not {header['id']}")
        if calls.folder is not None and calls.by_key and calls.folder != header["workspace"]:
            wrong.append(f"{source.path}: {calls.folder} is not {header['workspace']}")
    return wrong


TALLYING = ["claude-code", "codex", "gemini"]


@pytest.mark.parametrize("name", TALLYING)
def test_the_demo_is_counted_alike(name: str, tmp_path: Path) -> None:
    write_demo(tmp_path / "demo")
    found = [each for each in in_homes([Host.at(tmp_path / "demo")]) if each.agent.id == name]
    assert found
    assert differences(found) == []


@pytest.mark.parametrize("name", TALLYING)
def test_the_corpus_is_counted_alike(name: str, shared: Path) -> None:
    found = [each for each in at_path(shared / "corpus" / name) if each.agent.id == name]
    assert len(found) > 10
    assert differences(found) == []


@pytest.mark.parametrize("name", ["claude-code", "gemini", "sage-agent", "sage-emacs"])
def test_the_way_for_any_agent_counts_alike(name: str, tmp_path: Path) -> None:
    write_demo(tmp_path / "demo")
    found = list(in_homes([Host.at(tmp_path / "demo")], [name]))
    assert found
    for agent, source in found:
        facts = agent.facts(source)
        assert dict(ledger_of(general(agent, source)).by_model()) == dict(facts.ledger.by_model())


def test_a_made_home_is_exact(shared: Path, tmp_path: Path) -> None:
    home, truth = tmp_path / "home", tmp_path / "truth.json"
    tool = [sys.executable, str(shared / "tools" / "make_corpus.py"), "--size", "8MB", "--seed", "3", "--jobs", "1"]
    subprocess.run([*tool, "--out", str(home), "--truth", str(truth)], check=True, capture_output=True)
    right = told(json.loads(truth.read_text()))
    for way in (from_tally, from_catalog):
        found = way([home])
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


def test_several_processes_count_as_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(6):
        session = f"{number}1111111-1111-4111-8111-111111111111"
        own = reply(f"own{number}", number, 1, number=2)
        claude(tmp_path, prompt("a"), reply("shared", 10, 20), own, session=session)
    alone = from_tally([tmp_path])
    monkeypatch.setattr(tallying, "WORTH_SPREADING", 0)
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    assert from_tally([tmp_path]) == alone == {SONNET: (7, 25, 26, 0, 0, None)}


ODD = [1.5, "3", True, [], {}, None, -1, 10**30]


@pytest.mark.parametrize("key", ["input_tokens", "cache_read_input_tokens", "cache_creation", "id", "model", "usage"])
@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_one_odd_value_costs_no_other(tmp_path: Path, key: str, odd: object) -> None:
    first = reply("m1", 10, 20, read=5)
    message = first["message"]
    (message if key in message else message["usage"])[key] = odd
    claude(tmp_path, prompt("hello"), first, reply("m2", 1, 2, number=2))
    found = ((each.agent, each.source) for each in in_homes([Host.at(tmp_path)], ["claude-code"]))
    assert differences(found) == []
