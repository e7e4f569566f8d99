"""What is true of a home that a generator made: tokens and needles. Run as a module, it looks for the needles."""

from __future__ import annotations

import json
import re
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
ALIKE = b"needle"
"""So all planted words begin, and nearly no file has one."""
Tokens = dict[str, tuple[int, ...]]


class Needle(NamedTuple):
    """A word that stands in one session alone, and in copies of it."""

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


def holders_of(truth: Truth) -> dict[str, set[str]]:
    """The names of the files that hold each word: a session that was resumed copied it, and may be the one shown."""
    found: dict[str, set[str]] = {needle.word: set() for needle in truth.needles}
    words = re.compile(b"|".join(re.escape(word.encode()) for word in found))
    for path in filter(Path.is_file, truth.home.rglob("*")):
        text = path.read_bytes()
        if ALIKE in text:
            for word in set(words.findall(text)):
                found[word.decode()].add(path.name)
    return found


def is_in(session: str, name: str) -> bool:
    """True where a file is the session's by its name, which may hold the beginning of the id alone."""
    return session in name or (not session.startswith("agent-") and session[:8] in name)


def main() -> None:
    """How many needles a search in this process finds, and how long queries take."""
    from clew.catalog.database import catalog_folder
    from clew.catalog.search import Request, Searcher

    home, folder, path = sys.argv[1:]
    truth = read_truth(home, path)
    searcher = Searcher(Path(folder) / catalog_folder([home]).name)

    def took(query: str) -> float:
        began = time.perf_counter()
        searcher.search(Request(query=query))
        return (time.perf_counter() - began) * 1000

    holders = holders_of(truth)

    def is_right(word: str) -> bool:
        hits = searcher.search(Request(query=word)).hits
        return bool(hits) and all(any(is_in(hit.session, name) for name in holders[word]) for hit in hits)

    found = sum(is_right(needle.word) for needle in truth.needles)
    queries = QUERIES | {"rare": [needle.word for needle in truth.needles[:20]]}
    p95 = {}
    for name, words in queries.items():
        times = sorted(took(word) for _ in range(ROUNDS) for word in words)
        p95[name] = statistics.quantiles(times, n=20)[-1]
    print(json.dumps({"found": found, "p95_ms": p95}))


if __name__ == "__main__":
    main()
