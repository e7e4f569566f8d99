"""Prices: the names of models, exact sums, tiers, and the user's own table."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from clew.analysis import pricing as table
from clew.analysis.pricing import PriceTable, plain_name, prices
from clew.errors import UsageError
from tests.cli.running import clew
from tests.counting.homes import HAIKU, SONNET, claude, reply
from tests.counting.ways import catalogued


@pytest.mark.parametrize(
    "written",
    [
        "claude-sonnet-4-5",
        "claude-sonnet-4-5-20250929",
        "claude-sonnet-4-5-20250929[1m]",
        "anthropic/claude-sonnet-4.5",
        "openrouter/anthropic/claude-sonnet-4.5",
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "claude-sonnet-4-5@20250929",
        "Claude-Sonnet-4-5-latest",
    ],
)
def test_a_model_is_known_by_every_name_it_goes_by(written: str) -> None:
    assert plain_name(written) == "claude-sonnet-4-5"
    assert prices().price(written) == prices().price("claude-sonnet-4-5") is not None


@pytest.mark.parametrize("model", ["gpt-5", "gpt-5-codex", "gpt-5-mini", "gpt-5.2-codex", "gemini-2.5-pro", "o3"])
def test_models_of_one_family_are_not_taken_for_each_other(model: str) -> None:
    assert plain_name(model) == model
    assert prices().price(model) is not None


def test_costs_are_exact() -> None:
    table = PriceTable("2026-01-01", {"m": {"input": 3_000_000, "output": 15_000_000, "cache_read": 300_000}}, {})
    assert table.cost("m", 1, 1, 1) == 3000 + 15000 + 300
    assert table.cost("m", input=10**12) == 3 * 10**15


def test_half_a_nano_dollar_is_rounded_up_once() -> None:
    table = PriceTable("2026-01-01", {"m": {"input": 500, "output": 499}}, {})
    assert table.cost("m", input=1) == 1
    assert table.cost("m", output=1) == 0
    assert table.costs("m", [[1, 1], [0, 0], [0, 0], [0, 0], [0, 0]], [2, 0, 0, 0, 0]) == 2


def test_long_inputs_cost_more() -> None:
    above = {"tokens": 200_000, "input": 2000, "output": 4000}
    table = PriceTable("2026-01-01", {"m": {"input": 1000, "output": 3000, "cache_read": 1000, "above": above}}, {})
    assert table.cost("m", 100_000, 10, 100_000) == 200_000 + 30
    assert table.cost("m", 100_001, 10, 100_000) == 200_002 + 40 + 100_000


@pytest.mark.parametrize(
    "models",
    [
        {"m": {"input": 1000, "output": 3001}},
        {"m": {"input": 1000, "output": 3000, "cache_read": 100}},
        {"n": {"input": 1000, "output": 3000}},
        {"m": {"input": 1000, "output": 3000, "above": {"tokens": 5, "input": 2000}}},
    ],
)
def test_a_table_with_another_price_is_another_version(models: dict[str, dict[str, Any]]) -> None:
    before = PriceTable("2026-01-01", {"m": {"input": 1000, "output": 3000}}, {})
    assert PriceTable("2026-01-01", {"m": {"output": 3000, "input": 1000}}, {}).version == before.version
    assert PriceTable("2026-01-01", models, {}).version != before.version
    assert PriceTable("2026-01-01", {}, models).version != PriceTable("2026-01-01", models, {}).version


def test_a_corrected_price_prices_the_catalog_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    claude(home, reply("m1", 1_000_000, 0, model=HAIKU))
    monkeypatch.setattr(table, "TABLE_PATH", str(tmp_path / "prices.json"))
    for dollars in (1, 70):
        models = {HAIKU: {"input": dollars * 1_000_000, "output": 0}}
        (tmp_path / "prices.json").write_text(json.dumps({"date": "2026-01-01", "models": models}))
        monkeypatch.setattr(table, "_tables", {})
        assert catalogued([home]).totals()["cost_nano"] == dollars * 10**9


def test_a_model_without_a_price_has_none() -> None:
    assert prices().cost("nobody-knows-9", 1000, 1000) is None


def test_an_hour_in_the_cache_costs_more_than_five_minutes() -> None:
    table = prices()
    short, long = table.cost(SONNET, cache_creation_5m=1000), table.cost(SONNET, cache_creation_1h=1000)
    assert short is not None and long is not None and long > short > 0


@pytest.mark.parametrize("kept", [{}, {"ephemeral_5m_input_tokens": 0}, {"ephemeral_5m_input_tokens": 10}])
@pytest.mark.parametrize("hour", [{}, {"ephemeral_1h_input_tokens": 0}, {"ephemeral_1h_input_tokens": 400}])
def test_what_is_counted_as_written_to_the_cache_is_what_is_paid_for(
    tmp_path: Path, kept: dict[str, int], hour: dict[str, int]
) -> None:
    claude(tmp_path, reply("m1", 0, 0, written=1000, usage={"cache_creation": {**kept, **hour}}))
    totals = catalogued([tmp_path]).totals()
    short, long = totals["cache_creation_5m_tokens"], totals["cache_creation_1h_tokens"]
    assert short == kept.get("ephemeral_5m_input_tokens", 1000 - (long or 0))
    paid = prices().cost(SONNET, cache_creation_5m=short, cache_creation_1h=long or 0)
    assert totals["cost_nano"] == paid


def own(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    (folder / "prices.json").write_text(text)
    monkeypatch.setenv("CLEW_PRICES", str(folder / "prices.json"))


def test_the_users_prices_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = prices().version
    text = '{"claude-sonnet-4-5": {"input": 0.1, "output": 0.25}, "mine": {"input": 1, "output": 2}}'
    own(tmp_path, monkeypatch, text)
    assert prices().version != before
    assert prices().cost(SONNET, 1000, 1000) == 100_000 + 250_000
    assert prices().cost("mine", 1_000_000) == 10**9


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"m": 3}',
        '{"m": null}',
        '{"m": "cheap"}',
        '{"m": {"input": 1}}',
        '{"m": {"input": -1, "output": 1}}',
        '{"m": {"in": 1, "output": 1}}',
        '{"m": {"input": "1", "output": 1}}',
        '{"m": {"input": null, "output": 1}}',
        '{"m": {"input": true, "output": 1}}',
        '{"m": {"input": NaN, "output": 1}}',
        '{"m": {"input": 1, "output": -Infinity}}',
        '{"m": {"input": 1, "output": 1, "cache_read": []}}',
        '{"m": {"input": 1, "output": 1e99999}}',
        '{"m": {"input": 1, "output": 1e999999}}',
        '{"m": {"input": 1, "output": 1, "above": null}}',
        '{"m": {"input": 1, "output": 1, "above": {"input": 2}}}',
        '{"m": {"input": 1, "output": 1, "above": {"tokens": "many"}}}',
        '{"m": {"input": 1, "output": 1, "above": {"tokens": 5, "input": "2"}}}',
        '{"m": {"input": 1, "output": 1, "above": {"tokens": 5, "in": 2}}}',
    ],
)
def test_a_table_that_is_none_is_refused_by_name(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own(tmp_path, monkeypatch, text)
    with pytest.raises(UsageError, match=r"prices\.json"):
        prices()


def test_totals_say_at_least_where_a_model_has_no_price(tmp_path: Path) -> None:
    claude(tmp_path, reply("m1", 1000, 10), reply("m2", 1000, 10, number=2, model="nobody-knows-9"))
    for stats in (catalogued([tmp_path]),):
        totals, models = stats.totals(), stats.by_model()
        assert totals["cost_nano"] == 3_000_000 + 150_000
        assert totals["cost_is_at_least"] is True
        assert totals["unpriced_models"] == ["nobody-knows-9"]
        assert models["nobody-knows-9"]["cost"] is None
        assert models[SONNET]["cost_is_at_least"] is False


def test_other_prices_price_the_catalog_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    claude(home, reply("m1", 1_000_000, 0, model=HAIKU))
    assert catalogued([home]).totals()["cost_nano"] == 10**9
    own(tmp_path, monkeypatch, json.dumps({HAIKU: {"input": 7, "output": 9}}))
    assert catalogued([home]).totals()["cost_nano"] == 7 * 10**9


def test_other_prices_price_a_fresh_catalog_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    claude(home, reply("m1", 1_000_000, 0, model=HAIKU))
    time.sleep(0.2)
    assert clew("sync", "--home", home).code == 0
    own(tmp_path, monkeypatch, json.dumps({HAIKU: {"input": 7, "output": 9}}))
    totals = clew("stats", "--home", home, "--json").json["totals"]
    assert (totals["cost_nano"], totals["turns"]) == (7 * 10**9, 0)


@pytest.mark.parametrize(
    ("model", "input", "output", "cache_read"),
    [
        ("gemini-3-pro-preview", 2, 12, 0.2),
        ("gemini-2.5-pro-preview-05-06", 1.25, 10, 0.3125),
        ("claude-3-7-sonnet-20250219", 3, 15, 0.3),
        ("claude-3-5-sonnet-20241022", 3, 15, 0.3),
        ("claude-3-5-haiku-20241022", 0.8, 4, 0.08),
        ("claude-3-opus-20240229", 15, 75, 1.5),
    ],
)
def test_retired_models_keep_the_price_that_their_maker_asked(
    model: str, input: float, output: float, cache_read: float
) -> None:
    price = prices().price(model)
    assert price is not None
    dollars = [rate / 1_000_000 for rate in price.rates[:3]]
    assert dollars == [input, output, cache_read]
    assert price.rates.cache_creation_1h in (price.rates.input, 2 * price.rates.input)


def test_a_call_without_counts_has_no_cost() -> None:
    assert prices().cost_of_call(SONNET, [None] * 7) is None
    assert prices().cost_of_call(SONNET, [0, 0, None, None, None, None, None]) == 0
