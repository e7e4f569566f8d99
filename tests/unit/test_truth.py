"""A made home with sessions of three agents: every token counted once, by model, whatever the sources repeat."""

import json
import subprocess
import sys
from pathlib import Path

from clew import Host, Library
from clew.analysis.usage import Usage


def in_its_own_words(agent: str, usage: Usage) -> dict[str, int | None]:
    """The sums as the agent itself counts: Codex and Gemini hold cached input for input, Gemini thoughts apart."""
    counts = {"input": usage.input_tokens, "output": usage.output_tokens, "cache_read": usage.cache_read_tokens}
    if agent == "claude":
        return {**counts, "cache_creation": usage.cache_creation_tokens}
    counts["input"] = (usage.input_tokens or 0) + (usage.cache_read_tokens or 0)
    if agent == "gemini":
        counts["output"] = (usage.output_tokens or 0) - (usage.reasoning_tokens or 0)
    return {**counts, "reasoning": usage.reasoning_tokens}


def test_tokens_of_all_agents_together_are_exact(shared: Path, tmp_path: Path) -> None:
    truth = tmp_path / "truth.json"
    tool = [sys.executable, str(shared / "tools" / "make_corpus.py"), "--size", "16MB", "--seed", "11", "--jobs", "1"]
    subprocess.run([*tool, "--out", tmp_path / "home", "--truth", truth], check=True, capture_output=True)
    agents = json.loads(truth.read_text())["agents"]
    expected = {model: (name, counts) for name, each in agents.items() for model, counts in each["tokens"].items()}
    assert {name for name, _ in expected.values()} == {"claude", "codex", "gemini"}
    found = Library(Host.at(tmp_path / "home")).usage()
    assert found.keys() == expected.keys()
    for model, (name, counts) in expected.items():
        counted = in_its_own_words(name, found[model])
        assert {key: counted[key] for key in counts} == counts, model
