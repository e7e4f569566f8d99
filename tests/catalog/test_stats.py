"""Statistics: filters, blocks, percentiles."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest

from clew.analysis.usage import UNNAMED_CALL_PREFIX, UsageLedger
from clew.catalog.stats import BY, PERIODS, change_row, percentile, ratio, report
from clew.catalog.tool_arguments import RequestedChange, requested_changes
from clew.cli.command_stats import print_stats
from clew.errors import UsageError
from clew.model.json import JSON
from clew.render.tables import cell_width
from tests.counting.homes import CODEX, OTHER, SESSION, SONNET, claude, codex, counts, meta, prompt, reply, said, spent
from tests.counting.homes import turn as turned
from tests.counting.ways import catalogued
from tests.demo_home import write_small_demo


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    write_small_demo(tmp_path / "demo")
    return tmp_path / "demo"


def test_a_filter_holds_for_every_call(tmp_path: Path) -> None:
    late = reply("m2", 10, 20, number=2, timestamp="2026-11-02T12:00:00.000Z", model="claude-opus-4-5")
    claude(tmp_path, prompt("a"), reply("m1", 1, 2), late)
    noon, instant = datetime(2026, 11, 2, 12, tzinfo=UTC), timedelta(microseconds=1)
    for since, calls in ((noon, 1), (noon + instant, 0), (noon - timedelta(days=3), 2)):
        assert catalogued([tmp_path], since=since).totals()["calls"] == calls
    assert catalogued([tmp_path], until=noon - instant).totals()["input_tokens"] == 1
    assert list(catalogued([tmp_path], model="opus").by_model()) == ["claude-opus-4-5"]


def test_days_without_a_time_are_of_no_day(tmp_path: Path) -> None:
    claude(tmp_path, prompt("a"), reply("m1", 1, 2, timestamp="soon"))
    stats = catalogued([tmp_path])
    (row,) = [row for row in stats.rows("day") if row["calls"]]
    assert (row["day"], row["calls"], row["first"]) == ("", 1, None)


def test_a_call_counts_where_it_was_first(tmp_path: Path) -> None:
    claude(tmp_path, prompt("a"), reply("m1", 1, 2, timestamp="2026-11-05T00:00:00.000Z"), session=OTHER)
    claude(tmp_path, prompt("a"), reply("m1", 1, 2, timestamp="2026-11-04T00:00:00.000Z"))
    stats = catalogued([tmp_path])
    assert [(row["session"], row["calls"]) for row in stats.rows("session") if row["calls"]] == [(SESSION, 1)]
    assert [row["day"] for row in stats.rows("day") if row["calls"]] == ["2026-11-04"]


def test_costs_stand_by_branch(tmp_path: Path) -> None:
    claude(tmp_path, prompt("a"), reply("m1", 1000, 0), reply("m2", 2000, 0, number=2, gitBranch="fix"))
    one = counts(3000, 0, 0)
    records = [meta(SESSION), turned(1), said(2, "user", "a"), said(3, "assistant", "b"), spent(4, one, one)]
    codex(tmp_path, SESSION, *records)
    stats = catalogued([tmp_path])
    found = {row["branch"]: row["cost_nano"] for row in stats.rows("branch") if row["calls"]}
    assert found == {"main": 3_000_000, "fix": 6_000_000, "trunk": 3_750_000}


def test_blocks_last_five_hours_and_begin_with_the_hour(tmp_path: Path) -> None:
    times = ["10:20:00", "14:59:59", "15:00:00", "23:00:00"]
    replies = [reply(f"m{n}", 1, 1, number=n, timestamp=f"2026-11-01T{time}.000Z") for n, time in enumerate(times, 1)]
    claude(tmp_path, prompt("a"), *replies)
    stats = catalogued([tmp_path])
    blocks = stats.blocks(1_793_577_600_000_000)
    found = [(block["block"], block["calls"], block["is_active"]) for block in blocks]
    assert found == [
        ("2026-11-01T10:00:00Z", 2, False),
        ("2026-11-01T15:00:00Z", 1, False),
        ("2026-11-01T23:00:00Z", 1, True),
    ]


def test_the_active_block_is_projected_to_its_end(tmp_path: Path) -> None:
    times = ["10:00:00", "12:00:00"]
    replies = [
        reply(f"m{n}", 1_000_000, 0, number=n, timestamp=f"2026-11-01T{time}.000Z") for n, time in enumerate(times, 1)
    ]
    claude(tmp_path, prompt("a"), *replies)
    stats = catalogued([tmp_path])
    half_past_twelve = 1_793_536_200_000_000
    (block,) = stats.blocks(half_past_twelve)
    assert (block["is_active"], block["end"]) == (True, "2026-11-01T15:00:00Z")
    assert block["remaining_seconds"] == 2.5 * 3600
    assert block["cost_per_hour"] == pytest.approx(block["cost"] / 2)
    assert block["projected_cost"] == pytest.approx(block["cost"] * (1 + 2.5 / 2))
    (ended,) = stats.blocks(half_past_twelve + 3 * 3_600_000_000)
    assert not ended["is_active"]
    assert ended["remaining_seconds"] is ended["cost_per_hour"] is ended["projected_cost"] is None


@pytest.mark.parametrize(
    ("hours", "now"),
    [
        ([0, 1, 2], 3),
        ([0, 6, 7], 8),
        (list(range(0, 40, 4)), 39),
        (list(range(0, 24 * 9, 4)), 24 * 9 - 3),
        ([0, 1], 30),
        ([], 3),
        ([0], 24 * 30),
        ([0, 24 * 30], 24 * 30 + 1),
    ],
)
def test_the_active_block_is_the_last_of_all_blocks(tmp_path: Path, hours: list[int], now: int) -> None:
    """Wherever its beginning is found: after a pause within a day, within a week, or by reading all calls."""
    start = datetime(2026, 9, 1, 10, tzinfo=UTC)
    stamps = [(start + timedelta(hours=hour)).strftime("%Y-%m-%dT%H:%M:%S.000Z") for hour in hours]
    claude(tmp_path, prompt("a"), *(reply(f"m{n}", 1, 1, number=n, timestamp=t) for n, t in enumerate(stamps, 1)))
    stats = catalogued([tmp_path])
    now_us = int((start + timedelta(hours=now)).timestamp() * 1e6)
    active = next((block for block in stats.blocks(now_us) if block["is_active"]), None)
    assert stats.active_block(now_us) == active


def test_activity_is_told_by_the_catalog(tmp_path: Path) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "false"}}
    asked = reply("m1", 1, 2)
    asked["message"]["content"].append(call)
    result = [{"type": "tool_result", "tool_use_id": "t1", "content": "no", "is_error": True}]
    failed = prompt("x", message={"role": "user", "content": result}, uuid="r", timestamp="2026-11-01T10:00:04.000Z")
    claude(tmp_path, prompt("a"), asked, failed)
    totals = catalogued([tmp_path]).totals()
    told = {name: totals[name] for name in ("sessions", "turns", "errors", "tool_calls", "tool_errors")}
    assert told == {"sessions": 1, "turns": 1, "errors": 1, "tool_calls": 1, "tool_errors": 1}
    assert totals["duration_seconds"] == 4.0
    (tool,) = catalogued([tmp_path]).rows("tool")
    assert (tool["tool"], tool["tool_calls"], tool["errors"], tool["median_seconds"]) == ("Bash", 1, 1, 3.0)


def a_session_with_a_failed_call() -> list[dict[str, JSON]]:
    """A prompt, a note that the client put there, and a call that fails."""
    asked = reply("m1", 1, 2, uuid=uuid_of(3))
    asked["message"]["content"].append({"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "false"}})
    result = [{"type": "tool_result", "tool_use_id": "t1", "content": "no", "is_error": True}]
    failed = prompt("x", message={"role": "user", "content": result}, uuid=uuid_of(4))
    return [prompt("a", uuid=uuid_of(1)), prompt("<system-reminder>b", uuid=uuid_of(2)), asked, failed]


def uuid_of(number: int) -> str:
    return f"{number:08}-0000-4000-8000-000000000000"


def test_turns_and_calls_that_a_fork_repeats_count_once(tmp_path: Path) -> None:
    before = a_session_with_a_failed_call()
    claude(tmp_path, *before)
    own = prompt("b", uuid=uuid_of(5), timestamp="2026-11-03T10:00:00.000Z")
    claude(tmp_path, *[record | {"sessionId": OTHER} for record in before], own | {"sessionId": OTHER}, session=OTHER)
    stats = catalogued([tmp_path])
    told = {name: stats.totals()[name] for name in ("sessions", "turns", "errors", "tool_calls", "tool_errors")}
    assert told == {"sessions": 2, "turns": 2, "errors": 1, "tool_calls": 1, "tool_errors": 1}
    assert {row["session"]: (row["turns"], row["errors"]) for row in stats.rows("session")} == {
        SESSION: (1, 1),
        OTHER: (1, 0),
    }
    assert {row["day"]: row["turns"] for row in stats.rows("day")} == {"2026-11-01": 1, "2026-11-03": 1}
    assert catalogued([tmp_path], since=datetime(2026, 11, 2, 1, 2, tzinfo=UTC)).totals()["turns"] == 1


@pytest.mark.parametrize("what", ["error", "edit", "thinking", "subagent"])
def test_has_chooses_sessions(what: str, demo: Path, tmp_path: Path) -> None:
    claude(tmp_path / "plain", prompt("a"), reply("m1", 1, 2))
    assert catalogued([tmp_path / "plain"], has=what).totals()["calls"] == 0
    everything, some = catalogued([demo]).totals(), catalogued([demo], has=what).totals()
    assert 0 < some["sessions"] < everything["sessions"]


def test_a_tool_chooses_sessions(demo: Path) -> None:
    everything, bash = catalogued([demo]).totals(), catalogued([demo], tool="bash").totals()
    assert 0 < bash["sessions"] < everything["sessions"]
    assert 0 < bash["calls"] < everything["calls"]


@pytest.mark.parametrize(
    ("counted", "percent", "value"),
    [
        ([], 50, None),
        ([(7, 1)], 50, 7),
        ([(1, 1), (2, 1)], 50, 1),
        ([(1, 99), (9, 1)], 95, 1),
        ([(1, 1), (9, 9)], 95, 9),
    ],
)
def test_percentiles_are_values_that_were_there(
    counted: Sequence[tuple[int, int]], percent: int, value: int | None
) -> None:
    assert percentile(counted, percent) == value


def test_a_share_of_nothing_is_unknown() -> None:
    assert ratio(None, 5) is ratio(1, 0) is ratio(1, None) is None
    assert ratio(1, 4) == 0.25


def test_hits_are_a_part_of_all_input(tmp_path: Path) -> None:
    claude(tmp_path, reply("m1", 10, 1, read=70, written=20))
    assert catalogued([tmp_path]).totals()["cache_hit_rate"] == 0.7


def test_lines_that_nobody_tells_are_unknown() -> None:
    assert requested_changes("replace", {"file_path": "a.py"}) == [RequestedChange("a.py", "edit", None, None)]
    assert requested_changes("write_file", {"file_path": "a.py"}) == [RequestedChange("a.py", "edit", None, 0)]
    assert requested_changes("delete_file", {"path": "a.py"}) == [RequestedChange("a.py", "delete", 0, None)]
    patch = "*** Begin Patch\n*** Delete File: a.py\n*** Add File: b.py\n+x\n*** End Patch"
    found = requested_changes("apply_patch", {"input": patch})
    assert found == [RequestedChange("a.py", "delete", 0, None), RequestedChange("b.py", "create", 1, 0)]
    unknown = {"lines_added": None, "lines_removed": None}
    assert change_row({"files_changed": 2, **unknown}) == {"files_changed": 2, **unknown}
    assert change_row({"files_changed": 0, **unknown}) == {"files_changed": 0, "lines_added": 0, "lines_removed": 0}


def test_a_file_that_a_patch_moves_is_changed_at_both_paths() -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n*** Move to: {}\n@@\n x\n-y\n+z\n+w\n"
    moved = [RequestedChange("a.py", "delete", 0, 0), RequestedChange("b.py", "create", 2, 1)]
    assert requested_changes("apply_patch", {"input": patch.format("b.py") + "*** End Patch"}) == moved
    assert requested_changes("apply_patch", {"input": patch.format("b.py")}) == moved
    for same_path in ("a.py", ""):
        found = requested_changes("apply_patch", {"input": patch.format(same_path)})
        assert found == [RequestedChange("a.py", "edit", 2, 1)]


def test_changes_of_cline_continue_pi_and_goose_are_counted() -> None:
    edit = {"path": "a.py", "old_text": "x\n", "new_text": "y\nz\n"}
    assert requested_changes("editor", edit) == [RequestedChange("a.py", "edit", 2, 1)]
    assert requested_changes("editor", {"path": "a.py", "new_text": "x"}) == [RequestedChange("a.py", "edit", 1, 0)]
    of_pi = {"path": "a.py", "edits": [{"oldText": "x", "newText": "y\nz"}]}
    of_goose = {"path": "a.py", "before": "x", "after": "y\nz"}
    for arguments in (of_pi, of_goose):
        assert requested_changes("edit", arguments) == [RequestedChange("a.py", "edit", 2, 1)]
    write = {"filepath": "a.py", "content": "x\ny\n"}
    assert requested_changes("Write", write) == [RequestedChange("a.py", "edit", 2, 0)]


def test_calls_without_a_name_are_their_sessions_own() -> None:
    one, all_calls = UsageLedger(), UsageLedger()
    one.note(f"{UNNAMED_CALL_PREFIX}3", SONNET, [1, 2, None, None, None, None, None])
    for session in ("a", "b", "b"):
        all_calls.absorb(one, session)
    assert all_calls.by_model()[SONNET].calls == 2


def test_a_table_that_is_too_wide_does_without_some_columns(
    demo: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = report(catalogued([demo]), "model")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    for width in (200, 100, 72, 60, 48):
        monkeypatch.setenv("COLUMNS", str(width))
        print_stats(found, "model")
        lines = click.unstyle(capsys.readouterr().out).splitlines()
        assert max(map(cell_width, lines)) <= width
        assert "cost" in lines[0] and "output" in lines[0]


def test_absent_is_not_zero(tmp_path: Path) -> None:
    claude(tmp_path, prompt("a"), reply("m1", 1, 2))
    one = counts(3, 0, 1)
    records = [meta(SESSION), turned(1), said(2, "user", "a"), said(3, "assistant", "b"), spent(4, one, one)]
    codex(tmp_path, SESSION, *records)
    stats = catalogued([tmp_path])
    models = stats.by_model()
    assert models[SONNET]["reasoning_tokens"] is None
    assert models[CODEX]["reasoning_tokens"] == 0
    assert models[CODEX]["cache_creation_tokens"] is None


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Kathmandu"])
def test_the_sessions_of_a_group_are_those_it_counts(demo: Path, zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEW_TIMEZONE", zone)
    for filters in (
        {},
        {"agent": "claude-code"},
        {"since": "2026-10-20T10:03"},
        {"model": "claude", "until": "2026-11"},
    ):
        stats = catalogued([demo], **filters)
        for by in BY:
            if by == "session":
                continue
            for row in stats.rows(by):
                assert len(stats.session_keys({by: row[by]})) == row["sessions_with_calls"], (filters, by, row[by])
        for (weekday, hour), used in stats.usage_by("weekday", "hour").items():
            assert len(stats.session_keys({"weekday": weekday, "hour": hour})) == used.sessions


def test_a_group_that_there_is_not_is_an_error(demo: Path) -> None:
    stats = catalogued([demo])
    for group in (
        {"hour": "24"},
        {"weekday": "Someday"},
        {"day": "x"},
        {"tide": "high"},
        {"tool": "Bash", "model": "x"},
    ):
        with pytest.raises(UsageError):
            stats.session_keys(group)


def test_hours_and_weekdays_are_local_and_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEW_TIMEZONE", "Europe/Berlin")
    # The clocks go back at 01:00 UTC on Sunday, 25 October: the hour from 2 to 3 comes twice.
    times = ["2026-10-24T21:59:00", "2026-10-25T00:30:00", "2026-10-25T01:30:00", "2026-10-26T00:30:00"]
    replies = [reply(f"m{n}", 1, 1, number=n, timestamp=f"{time}.000Z") for n, time in enumerate(times, 1)]
    claude(tmp_path, prompt("a"), *replies)
    stats = catalogued([tmp_path])
    assert [(row["hour"], row["calls"]) for row in stats.rows("hour") if row["calls"]] == [
        ("01", 1),
        ("02", 2),
        ("23", 1),
    ]
    weekdays = [(row["weekday"], row["calls"]) for row in stats.rows("weekday") if row["calls"]]
    assert weekdays == [("Monday", 1), ("Saturday", 1), ("Sunday", 2)]


def test_every_grouping_adds_up_to_the_total(demo: Path) -> None:
    stats = catalogued([demo])
    whole = stats.usage()
    for by in (*BY, *PERIODS):
        if by != "tool":
            found = list(stats.usage_by(by).values())
            assert sum(used.calls for used in found) == whole.calls, by
            assert sum(used.cost_nano for used in found) == whole.cost_nano, by
            amounts = stats.amounts_by(by, "model")
            assert sum(used.total_tokens or 0 for used in amounts.values()) == whole.total_tokens, by
            for group, used in stats.amounts_by(by).items():
                exact = stats.usage_by(by)[group]
                assert (used.calls, used.cost_nano, used.cache_hit_rate) == (
                    exact.calls,
                    exact.cost_nano,
                    exact.cache_hit_rate,
                ), (by, group)
    kinds = stats.usage_by_kind()
    both = kinds["sessions"] + kinds["subagents"]
    assert (both.calls, both.cost_nano, both.total_tokens) == (whole.calls, whole.cost_nano, whole.total_tokens)
    assert kinds["subagents"].calls and kinds["sessions"].calls


def test_a_cache_saves_what_its_tokens_would_have_cost_more(tmp_path: Path) -> None:
    """Input of this model costs $3 for a million tokens, read from the cache $0.30, written to it $3.75."""
    claude(tmp_path, prompt("a"), reply("m1", 10, 20, read=1_000_000, written=100_000))
    claude(tmp_path, prompt("b"), reply("m2", 1, 2, read=5, model="gemini-2.5-pro"), session=OTHER)
    claude(tmp_path, reply("m3", 1, 2, read=5, model="nobody-knows-9"), session=SESSION[:-1] + "9")
    found = catalogued([tmp_path]).cache_savings()
    assert found == {SONNET: 2_700_000_000 - 75_000_000, "gemini-2.5-pro": None, "nobody-knows-9": None}


def test_changes_of_cursor_roo_and_vs_code_are_counted() -> None:
    by_cursor = {"target_file": "a.py", "contents": "y\nz\n"}
    assert requested_changes("write", by_cursor) == [RequestedChange("a.py", "edit", 2, 0)]
    replaced = {"file_path": "a.py", "old_string": "x", "new_string": "y\nz"}
    assert requested_changes("search_replace", replaced) == [RequestedChange("a.py", "edit", 2, 1)]
    written = {"path": "a.py", "content": "y\nz\n"}
    assert requested_changes("write_to_file", written) == [RequestedChange("a.py", "edit", 2, 0)]
    diff = {"path": "a.py", "diff": "------- SEARCH\nx\n=======\ny\n+++++++ REPLACE"}
    assert requested_changes("replace_in_file", diff) == [RequestedChange("a.py", "edit", None, None)]
    several = [{"filePath": name, "oldString": "x", "newString": "y\nz"} for name in ("a.py", "b.py")]
    assert requested_changes("multi_replace_string_in_file", {"replacements": [*several, "odd", {}]}) == [
        RequestedChange("a.py", "edit", 2, 1),
        RequestedChange("b.py", "edit", 2, 1),
    ]
