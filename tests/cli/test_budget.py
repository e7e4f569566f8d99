"""clew stats --budget: costs beside a budget, the exit code, and costs that are not wholly known."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import clew
from tests.counting.homes import OTHER, claude, prompt, reply


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Two calls in October for 0.30 dollars each, one in November for 0.60."""
    for month, day, tokens in (("10", 1, 100_000), ("10", 2, 100_000), ("11", 3, 200_000)):
        session, time = f"{month}{day:06}-1111-4111-8111-111111111111", f"2026-{month}-{day:02}T10:00:00.000Z"
        asked = prompt(f"{day}", sessionId=session, timestamp=time)
        claude(tmp_path, asked, reply(f"c{day}", tokens, 0, sessionId=session, timestamp=time), session=session)
    return tmp_path


def stats(home: Path, *words: str) -> Any:
    return clew("stats", "--home", home, "--timezone", "UTC", *words)


def test_the_total_is_compared(home: Path) -> None:
    done = stats(home, "--budget", "2")
    assert (done.code, done.err) == (0, "")
    assert done.out.split() == [
        "cost",
        "of",
        "$2.00",
        "remaining",
        "budget",
        "total",
        "$1.20",
        "60.0%",
        "$0.80",
        "within",
    ]


def test_above_the_budget_is_an_exit_code(home: Path) -> None:
    done = stats(home, "--budget", "1", "--json")
    assert done.code == 1
    totals = done.json["totals"]
    assert (totals["budget_state"], totals["budget_share"]) == ("above", pytest.approx(1.2))
    assert totals["budget_remaining"] == pytest.approx(-0.2)
    assert done.json["budget"] == {
        "amount": 1.0,
        "warn_at": None,
        "by": None,
        "is_exceeded": True,
        "has_unknown_costs": False,
        "sessions_without_usage": 0,
    }


@pytest.mark.parametrize(("amount", "state", "code"), [("1.2", "within", 0), ("1.199999999", "above", 1)])
def test_the_amount_itself_is_within(home: Path, amount: str, state: str, code: int) -> None:
    done = stats(home, "--budget", amount, "--json")
    assert (done.json["totals"]["budget_state"], done.code) == (state, code)
    assert (">100%" if state == "above" else "100.0%") in stats(home, "--budget", amount).out


@pytest.mark.parametrize("amount", ["abc", "0", "-1", "nan", "inf", "1e300", "0.0000000001", "$"])
def test_an_amount_that_is_none_is_refused(home: Path, amount: str) -> None:
    done = stats(home, "--budget", amount)
    assert (done.code, "write an amount in dollars" in done.err) == (2, True)


def test_an_amount_may_have_a_dollar_sign(home: Path) -> None:
    assert stats(home, "--budget", "$2", "--json").json["budget"]["amount"] == 2.0


@pytest.mark.parametrize("percent", ["0.8", "0", "200%", "nan", "x"])
def test_a_share_that_is_no_percentage_is_refused(home: Path, percent: str) -> None:
    assert stats(home, "--budget", "2", "--warn-at", percent).code == 2


def test_each_group_is_compared(home: Path) -> None:
    done = stats(home, "--by", "month", "--budget", "0.7", "--warn-at", "80%", "--json")
    assert done.code == 0, "no month is above, the total is not compared"
    assert [row["budget_state"] for row in done.json["rows"]] == ["warning", "warning"]
    assert "budget_state" not in done.json["totals"]
    done = stats(home, "--by", "day", "--budget", "0.5", "--warn-at", "50")
    assert done.code == 1
    assert [line.split()[4] for line in done.out.splitlines()[1:-1]] == ["warning", "warning", "above"]
    assert done.out.splitlines()[-1].split() == ["total", "$1.20"]


def test_filters_apply(home: Path) -> None:
    assert stats(home, "--budget", "0.65").code == 1
    assert stats(home, "--budget", "0.65", "--since", "2026-11").code == 0
    assert stats(home, "--budget", "0.65", "--until", "2026-11").code == 0
    assert stats(home, "--budget", "9", "--project", "nowhere").code == 1, "nothing was found"


def test_csv_has_the_columns(home: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(stats(home, "--by", "month", "--budget", "1", "--csv").out)))
    assert [row["budget_state"] for row in rows] == ["within", "within"]


def test_a_lower_bound_is_not_within(home: Path) -> None:
    unpriced = reply("c9", 5, 5, model="loom-model-of-our-own", sessionId=OTHER)
    claude(home, prompt("y", sessionId=OTHER), unpriced, session=OTHER)
    done = stats(home, "--budget", "50")
    assert done.code == 0
    assert "≥ $1.20" in done.out
    assert "unknown" in done.out
    assert "within" not in done.out
    assert "costs are lower bounds: no price is known for: loom-model-of-our-own" in done.err
    found = stats(home, "--budget", "50", "--by", "model", "--json").json
    states = {row["model"]: row["budget_state"] for row in found["rows"]}
    assert states == {"claude-sonnet-4-5-20250929": "within", "loom-model-of-our-own": "unknown"}
    assert found["budget"]["has_unknown_costs"]
    assert stats(home, "--budget", "1").code == 1, "above is above, whatever else there was"


def test_sessions_without_usage_are_named(home: Path) -> None:
    silent = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "yes"}]}
    answer = {**reply("c8", 0, 0, sessionId=OTHER), "message": silent}
    claude(home, prompt("z", sessionId=OTHER), session=OTHER)
    assert stats(home, "--budget", "50").err == "", "what was never answered cost nothing"
    claude(home, prompt("z", sessionId=OTHER), answer, session=OTHER)
    done = stats(home, "--budget", "50")
    assert done.code == 0
    assert "their cost is unknown: 1 session without recorded usage" in done.err
    assert "within" not in done.out
    found = stats(home, "--budget", "50", "--json").json
    assert found["budget"]["has_unknown_costs"]
    assert found["totals"]["budget_state"] == "unknown"
    assert stats(home, "--budget", "1.3", "--warn-at", "90%", "--json").json["totals"]["budget_state"] == "warning"
    assert stats(home, "--budget", "1", "--json").json["totals"]["budget_state"] == "above"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--budget", "5", "--warn-at", "0"), "a percentage of the budget"),
        (("--budget", "5", "--warn-at", "120%"), "a percentage of the budget"),
        (("--budget", "5", "--warn-at", "soon"), "a percentage of the budget"),
        (("--warn-at", "80%"), "--warn-at needs --budget"),
        (("--budget", "5", "--by", "tool"), "the cost of a tool is not known"),
        (("--budget", "5", "--csv"), "--csv has no row of the total; add --by"),
    ],
)
def test_wrong_usage_is_refused(home: Path, words: tuple[str, ...], message: str) -> None:
    done = stats(home, *words)
    assert done.code == 2
    assert message in done.err
