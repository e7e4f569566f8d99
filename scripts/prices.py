"""Make src/clew/analysis/prices.json anew from the price file that the PyPI package litellm ships.

    python scripts/prices.py [FILE]

Without a file, the one of the installed litellm is taken. Only facts are taken over: dollars per token for the models
that coding agents use, as whole trillionths of a dollar.
"""

from __future__ import annotations

import json
import re
import sys
from datetime import UTC, datetime
from decimal import Decimal
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any

from clew.analysis.pricing import plain_name

TARGET = Path(__file__).parent.parent / "src" / "clew" / "analysis" / "prices.json"
FILE = "litellm/model_prices_and_context_window_backup.json"
PROVIDERS = (
    "anthropic openai gemini vertex_ai-language-models vertex_ai-anthropic_models xai deepseek moonshot mistral zai "
    "dashscope bedrock bedrock_converse minimax azure openrouter vercel_ai_gateway"
).split()
"""Whose prices are taken, the first that knows a model first."""
COLUMNS = {
    "input": "input_cost_per_token",
    "output": "output_cost_per_token",
    "cache_read": "cache_read_input_token_cost",
    "cache_creation_5m": "cache_creation_input_token_cost",
    "cache_creation_1h": "cache_creation_input_token_cost_above_1hr",
}
_TIER = re.compile(r"input_cost_per_token_above_(\d+)k_tokens")
_MODES = ("chat", "responses", "completion")


def main() -> None:
    """Write the table."""
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(str(distribution("litellm").locate_file(FILE)))
    with open(source, encoding="utf-8", newline="") as text:
        given = json.load(text, parse_float=Decimal)
    table = {
        "date": datetime.fromtimestamp(source.stat().st_mtime, UTC).date().isoformat(),
        "from": f"litellm {_version()}",
        "unit": "trillionths of a dollar for one token",
        "models": dict(sorted(_models(given).items())),
    }
    TARGET.write_text(json.dumps(table, indent=0) + "\n", encoding="utf-8")
    print(f"{TARGET.name}: {len(table['models'])} models")


def _version() -> str:
    try:
        return version("litellm")
    except PackageNotFoundError:
        return "of an unknown version"


def _models(given: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for provider in PROVIDERS:
        known: dict[str, dict[str, Any]] = {}
        offered = {name: _prices(facts) for name, facts in given.items() if facts.get("litellm_provider") == provider}
        # Of several names that mean one model, the one that tells most comes first, then the shortest.
        for name, prices in sorted(offered.items(), key=lambda each: (-len(each[1]), len(each[0]), each[0])):
            if prices and given[name].get("mode") in _MODES and not name.startswith("ft:"):
                known.setdefault(plain_name(name), prices)
        found = known | found
    return found


def _prices(facts: dict[str, Any]) -> dict[str, Any]:
    prices: dict[str, Any] = dict(_tier(facts, ""))
    if "input" not in prices or "output" not in prices or not any(prices.values()):
        return {}
    limits = [int(match[1]) for key in facts if (match := _TIER.fullmatch(key))]
    for limit in sorted(limits)[:1]:
        above = _tier(facts, f"_above_{limit}k_tokens")
        prices["above"] = {"tokens": limit * 1000, **above}
    return prices


def _tier(facts: dict[str, Any], suffix: str) -> dict[str, int]:
    """The prices of one tier; only what is told."""
    return {name: _trillionths(facts[key + suffix]) for name, key in COLUMNS.items() if key + suffix in facts}


def _trillionths(dollars: Any) -> int:
    return int((Decimal(str(dollars)) * 10**12).to_integral_value())


if __name__ == "__main__":
    main()
