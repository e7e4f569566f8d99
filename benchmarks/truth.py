"""What is true of a home that a generator made: tokens and needles. Run as a module, it looks for the needles."""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

NEEDLES = "benchmarks.truth"
QUERIES: dict[str, list[str]] = {
    "rare": [],
    "common": ["error", "file", "test", "return", "value"],
    "phrase": ['"velvet anchor paradox"', '"of the"', '"in the"'],
    "prefix": ["retr*", "conf*", "velv*", "comp*"],
}
ROUNDS = 20
Tokens = dict[str, tuple[int, ...]]


class Needle(NamedTuple):
    """A word that stands in one session alone."""

    word: str
    session: str
    where: str


class Truth(NamedTuple):
    """What is true of a home."""

    home: Path
    path: Path
    files: int
    size: int
    tokens: Tokens
    needles: list[Needle]


def read_truth(home: str, path: str) -> Truth:
    """The truth as the generator wrote it, with tokens in our convention: each agent's is its own."""
    told = json.loads(Path(path).read_text())
    tokens: Tokens = {}
    needles = []
    for agent, facts in told["agents"].items():
        for model, counts in facts["tokens"].items():
            cached, thoughts = counts["cache_read"], counts.get("reasoning", 0)
            given = counts["input"] - (cached if agent != "claude" else 0)
            out = counts["output"] + (thoughts if agent == "gemini" else 0)
            tokens[model] = (given, out, cached, counts.get("cache_creation", 0), thoughts)
        needles += [Needle(each["needle"], each["session"], each["where"]) for each in facts["needles"]]
    return Truth(Path(home), Path(path), told["total"]["files"], told["total"]["bytes"], tokens, needles)


def tokens_of(by_model: dict[str, dict[str, Any]]) -> Tokens:
    """What `clew stats --json` says, to be compared with the truth."""
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens", "reasoning_tokens")
    return {model: tuple(row[name] or 0 for name in names) for model, row in by_model.items()}


def main() -> None:
    """How many needles a search in this process finds, and how long queries take."""
    from clew.catalog.place import catalog_folder
    from clew.catalog.search import Request, Searcher

    home, folder, path = sys.argv[1:]
    truth = read_truth(home, path)
    searcher = Searcher(Path(folder) / catalog_folder([home]).name)

    def took(query: str) -> float:
        began = time.perf_counter()
        searcher.search(Request(query=query))
        return (time.perf_counter() - began) * 1000

    # No other session has the word, unless it copied it from there.
    found = sum(searcher.search(Request(query=needle.word)).total > 0 for needle in truth.needles)
    queries = QUERIES | {"rare": [needle.word for needle in truth.needles[:20]]}
    p95 = {}
    for name, words in queries.items():
        times = sorted(took(word) for _ in range(ROUNDS) for word in words)
        p95[name] = statistics.quantiles(times, n=20)[-1]
    print(json.dumps({"found": found, "p95_ms": p95}))


if __name__ == "__main__":
    main()
