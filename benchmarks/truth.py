"""The truth about a generated home: its token totals, and the words that were planted in its sessions."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from clew.catalog.database import catalog_folder
from clew.catalog.search import Request, Searcher

NEEDLE_PREFIX = b"needle"
"""All planted words begin with it."""
TOKEN_COLUMNS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens", "reasoning_tokens")
TokenTotals = dict[str, tuple[int, ...]]
"""For each model, the totals in the order of `TOKEN_COLUMNS`."""


class Truth(NamedTuple):
    """What the generator wrote about a home."""

    home: Path
    files: int
    size: int
    tokens: TokenTotals
    needles: list[str]


def read_truth(home: str, path: str) -> Truth:
    """Read the truth, with token counts as clew defines them: input without cache reads, output with reasoning."""
    written = json.loads(Path(path).read_text())
    tokens: TokenTotals = {}
    needles = []
    for agent, facts in written["agents"].items():
        for model, counts in facts["tokens"].items():
            cached, reasoning = counts["cache_read"], counts.get("reasoning", 0)
            input_tokens = counts["input"] - (cached if agent != "claude" else 0)
            output_tokens = counts["output"] + (reasoning if agent == "gemini" else 0)
            tokens[model] = input_tokens, output_tokens, cached, counts.get("cache_creation", 0), reasoning
        needles += [needle["needle"] for needle in facts["needles"]]
    return Truth(Path(home), written["total"]["files"], written["total"]["bytes"], tokens, needles)


def tokens_of(by_model: dict[str, dict[str, Any]]) -> TokenTotals:
    """The token totals in the output of `clew stats --json`."""
    return {model: tuple(row[name] or 0 for name in TOKEN_COLUMNS) for model, row in by_model.items()}


def count_found_needles(truth: Truth, data: Path) -> int:
    """Search for every planted word; one counts if all its hits are in files that contain it."""
    files_with = _files_with_needles(truth)
    searcher = Searcher(data / catalog_folder([truth.home]).name)
    found = 0
    for word in truth.needles:
        hits = searcher.search(Request(query=word)).hits
        # A resumed session copies the word, and may be the one that is shown.
        found += bool(hits) and all(any(_is_named(hit.session, name) for name in files_with[word]) for hit in hits)
    return found


def _files_with_needles(truth: Truth) -> dict[str, set[str]]:
    names: dict[str, set[str]] = {word: set() for word in truth.needles}
    pattern = re.compile(b"|".join(re.escape(word.encode()) for word in names))
    for path in filter(Path.is_file, truth.home.rglob("*")):
        content = path.read_bytes()
        if NEEDLE_PREFIX in content:
            for word in pattern.findall(content):
                names[word.decode()].add(path.name)
    return names


def _is_named(session: str, file_name: str) -> bool:
    """True if a file name contains the session's id, or its first eight characters as Gemini CLI writes them."""
    return session in file_name or (not session.startswith("agent-") and session[:8] in file_name)
