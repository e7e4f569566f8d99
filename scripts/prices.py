"""Write src/clew/analysis/prices.json from the price file of the PyPI package litellm.

    python scripts/prices.py [FILE [OLDER_FILE]...]

Without a file, that of the installed litellm is used. litellm removes retired models, but old sessions name them: their
prices come from the files of older versions (1.95, 1.90, 1.83, 1.80, 1.78, 1.76, 1.74,
1.72, 1.67 and 1.61 hold nearly all). Only facts are taken over: dollars per token for the models that coding agents
use, as whole trillionths of a dollar.
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
MAKERS = (
    "anthropic openai gemini vertex_ai-language-models vertex_ai-anthropic_models xai deepseek moonshot mistral zai "
    "dashscope minimax"
).split()
CLOUDS = "bedrock bedrock_converse azure openrouter vercel_ai_gateway".split()
"""The first provider that knows a model decides its price. A maker's old price comes before a cloud's new one."""
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
    sources = [Path(name) for name in sys.argv[1:]] or [Path(str(distribution("litellm").locate_file(FILE)))]
    files = [json.loads(source.read_text(encoding="utf-8"), parse_float=Decimal) for source in sources]
    table = {
        "date": datetime.fromtimestamp(sources[0].stat().st_mtime, UTC).date().isoformat(),
        "from": f"litellm {_version()}",
        "unit": "trillionths of a dollar for one token",
        "models": dict(sorted(_models(files).items())),
    }
    TARGET.write_text(json.dumps(table, indent=0) + "\n", encoding="utf-8")
    print(f"{TARGET.name}: {len(table['models'])} models")


def _version() -> str:
    try:
        return version("litellm")
    except PackageNotFoundError:
        return "of an unknown version"


def _models(files: list[dict[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    offers = [(provider, file) for provider in MAKERS for file in files]
    for provider, file in [*offers, *((provider, files[0]) for provider in CLOUDS)]:
        found = _offered(file, provider) | found
    return found


def _offered(file: dict[str, dict[str, Any]], provider: str) -> dict[str, dict[str, Any]]:
    """The prices of one provider in one file, by the plain names of models."""
    known: dict[str, dict[str, Any]] = {}
    offered = {name: _prices(facts) for name, facts in file.items() if facts.get("litellm_provider") == provider}
    # Of several names that mean one model, the one with most prices comes first, then the shortest. The price of
    # `-latest` comes last: it is not always updated.
    for name, prices in sorted(
        offered.items(), key=lambda each: (-len(each[1]), each[0].endswith("-latest"), len(each[0]), each[0])
    ):
        if prices and file[name].get("mode") in _MODES and not name.startswith("ft:"):
            known.setdefault(plain_name(name), prices)
    return known


def _prices(facts: dict[str, Any]) -> dict[str, Any]:
    prices: dict[str, Any] = dict(_tier(facts, ""))
    if "input" not in prices or "output" not in prices or not any(prices.values()):
        return {}
    if prices.get("cache_creation_1h") != 2 * prices["input"]:
        # Some versions have the price of Sonnet for every model; without a price, twice the input is assumed.
        prices.pop("cache_creation_1h", None)
    limits = [int(match[1]) for key in facts if (match := _TIER.fullmatch(key))]
    for limit in sorted(limits)[:1]:
        above = _tier(facts, f"_above_{limit}k_tokens")
        prices["above"] = {"tokens": limit * 1000, **above}
    return prices


def _tier(facts: dict[str, Any], suffix: str) -> dict[str, int]:
    """The prices of one tier that the file has."""
    return {name: _trillionths(facts[key + suffix]) for name, key in COLUMNS.items() if key + suffix in facts}


def _trillionths(dollars: Any) -> int:
    return int((Decimal(str(dollars)) * 10**12).to_integral_value())


if __name__ == "__main__":
    main()
