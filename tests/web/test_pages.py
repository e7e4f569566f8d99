"""Every page of the app over the demo home, from a real server: what it holds; its numbers are the catalog's."""

from __future__ import annotations

import csv
import io
import json
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree.ElementTree import Element

import pytest

from clew.catalog import database
from clew.catalog.stats import UsageTotals
from clew.catalog.sync import sync
from clew.catalog.sync_level import SyncLevel
from clew.host import Host
from clew.web.templates import format_cost
from clew.web.transcript import WINDOW_MESSAGES as WINDOW
from tests.counting.homes import claude, prompt, reply
from tests.demo_home import write_small_demo
from tests.unit.samples import claude_line
from tests.web.live_session import ADDRESS, line, session_file
from tests.web.shown import Shown, links, named, shown, words

MEAN = "/session/claude-code/71960fc3-4cec-4060-adfc-a6068f5d859b"
FORKED = "/session/claude-code/f005c7db-1dcc-4692-bc16-77f2521cfb4b"
PREDICT = "/home/ada/src/tidepool/tidepool/predict.py"
PAGES = [
    "/",
    "/sessions",
    "/sessions?agent=codex&has=error",
    MEAN,
    f"{MEAN}?window=1",
    f"{MEAN}/outline",
    f"{FORKED}/graph",
    *(f"{MEAN}/panel/{name}" for name in ("timeline", "files", "todos", "usage", "record?message=3", "problems")),
    "/search",
    "/search?q=tide",
    "/usage",
    *(f"/usage?by={name}" for name in ("week", "month", "model", "agent", "project", "tool")),
    "/files",
    f"/files/history?path={quote(PREDICT)}",
    f"/files/blame?path={quote(PREDICT)}",
    "/secrets",
    "/sources",
]


@pytest.fixture(scope="module")
def rows(demo: Shown) -> Iterator[sqlite3.Connection]:
    db = database.open_reader(demo.context.folder)
    assert db is not None
    with closing(db):
        yield db


@pytest.mark.parametrize("path", PAGES)
def test_every_page_has_its_landmarks(demo: Shown, path: str) -> None:
    tree = demo.page(path)
    for tag in ("main", "h1", "title", "footer"):
        assert len(list(tree.iter(tag))) == 1, tag
    assert named(tree, "nav") and named(tree, "header", "site")
    assert [named(tree, "a", "skip")[0].get("href"), tree.get("lang")] == ["#talk", "en"]
    areas = [*named(tree, "nav"), *named(tree, "dialog")]
    assert all(one.get("aria-label") or one.get("aria-labelledby") for one in areas)
    every = {element.get("id") for element in tree.iter() if element.get("id")}
    wanted = {element.get("aria-labelledby") for element in tree.iter() if element.get("aria-labelledby")}
    assert "talk" in every and wanted <= every


def test_the_footer_names_where_the_rows_come_from(demo: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    assert words(demo.page("/sources").iter("footer")).startswith("Read from this machine. Times are in ")
    monkeypatch.setattr(demo.context, "engine", "postgresql://box/clew")
    assert words(demo.page("/sources").iter("footer")).startswith("Read from postgresql://box/clew. Times are in ")


@pytest.mark.slow
def test_S03_no_page_changes_anything_below_the_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write_small_demo(home)
    before = _state(home)
    with shown(home, tmp_path / "catalog") as app:
        for path in PAGES:
            app.page(path)
        app.get(f"{MEAN}/print")
        app.get("/usage.csv")
    assert _state(home) == before and len(before) > 40


def _state(home: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every file and folder: its mode, when it was written, and what is in it."""
    found = {}
    for path in sorted(home.rglob("*")):
        about = path.lstat()
        found[str(path)] = about.st_mode, about.st_mtime_ns, path.read_bytes() if path.is_file() else b""
    return found


@pytest.mark.slow
def test_every_link_leads_somewhere(demo: Shown) -> None:
    known: dict[str, None] = dict.fromkeys(PAGES)
    waiting = list(PAGES)
    while waiting and len(known) < 90:
        path = waiting.pop()
        if ".csv" in path or "/export/" in path:
            assert demo.get(path).status == 200, path
            continue
        for found in links(demo.page(path)):
            plain = found.partition("#")[0]
            if plain and plain not in known:
                known[plain] = None
                waiting.append(plain)
    assert len(known) > 60


@pytest.mark.slow
def test_home_says_what_the_catalog_comes_to(demo: Shown, rows: sqlite3.Connection) -> None:
    sums = "sum(calls), sum(input_tokens) + sum(output_tokens)"
    calls, tokens = rows.execute(f"SELECT {sums} FROM usage_days").fetchone()
    counts = "sum(1 - is_agent_session), sum(is_agent_session), sum(message_count)"
    sessions, subagents, messages = rows.execute(f"SELECT {counts} FROM sessions").fetchone()
    tree = demo.page("/")
    facts = {words(one.findall("dt")): words(one.findall("dd")) for one in named(tree, "dl", "totals")[0]}
    assert facts["Sessions"] == f"{sessions:,}" and facts["Sub-agents"] == f"{subagents:,}"
    assert facts["Messages"] == f"{messages:,}"
    assert facts["Model calls"] == f"{calls:,}" and facts["Tokens, input + output"] == f"{tokens:,}"
    (day,) = rows.execute("SELECT max(day_utc) FROM usage_days").fetchone()
    (used,) = rows.execute("SELECT sum(calls) FROM usage_days WHERE day_utc = ?", (day,)).fetchone()
    assert f"{day}: {used} model calls" in words(named(tree, "svg", "heat"))
    assert f"{day}{used} model calls" in words(named(tree, "tr"))


@pytest.mark.slow
def test_one_session_is_no_more_than_one(demo: Shown) -> None:
    said = words(demo.page("/"))
    assert re.search(r"\b1 session started", said) and not re.search(r"\b1 sessions started", said)


def test_a_cost_that_nobody_knows_is_named_once(demo: Shown) -> None:
    assert [format_cost(used) for used in (UsageTotals(), UsageTotals(calls=2))] == ["", "unknown"]
    assert format_cost(UsageTotals(calls=2, priced_calls=1, cost_nano=10**9)) == "≥ $1.00"
    assert "cost cost" not in words(demo.page("/sessions")).lower()


def test_a_cost_that_nobody_knows_has_neither_bound_nor_chart(tmp_path: Path) -> None:
    claude(tmp_path / "home", prompt("Sail"), reply("m1", 10, 20, model="a-model-without-price"))
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        for path in ("/", "/usage"):
            tree = app.page(path)
            assert "≥" not in words(tree) and "Unknown for all models" in words(tree), path
            assert [one.get("aria-label", "").partition(" ")[0] for one in named(tree, "svg", "bars")] == ["Tokens"]


def test_no_page_advises_an_option_of_the_command_line(demo: Shown, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    with shown(tmp_path / "home", tmp_path / "catalog", "secrets") as empty:
        for path in ("/", "/sessions", "/search?q=tide", "/usage", "/files", "/sources"):
            assert " --" not in empty.get(path).body.decode(), path
    for path in ("/search?q=a*b", "/search?q=%23", "/search?q=" + "x" * 1_000, "/search?q=(", "/search?q=tide&has=x"):
        assert "--" not in words(named(demo.page(path), "p", "bad")), path
    for path in ("/sessions?has=x", "/usage?since=x"):
        assert "--" not in words(named(demo.page(path, 400), "p", "bad")), path


@pytest.mark.slow
def test_only_what_is_going_on_is_said_to_run(tmp_path: Path) -> None:
    # The demo is written just now, and tells of weeks ago.
    write_small_demo(tmp_path / "home")
    path = session_file(tmp_path / "home")
    with path.open("a") as out:
        out.write(line(2, "Second.", datetime.now(UTC)))
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        assert links(app.part("/running")) == [ADDRESS]


def test_sessions_are_listed_with_their_subagents(demo: Shown, rows: sqlite3.Connection) -> None:
    (tops, every) = rows.execute("SELECT sum(parent_session_id = ''), count(*) FROM sessions").fetchone()
    tree = demo.page("/sessions")
    assert words(named(tree, "p", "count")) == f"{tops} sessions, {every - tops} sub-agents"
    assert len(named(tree, "li")) == every
    assert len(named(tree, "li", "below")) == every - tops
    query = "SELECT native_id FROM sessions WHERE parent_session_id = '' ORDER BY ended_us DESC, started_us DESC"
    shown_ids = [href.rpartition("/")[2] for href in links(tree) if href.startswith("/session/")]
    assert [one for one in shown_ids if not one.startswith("agent-")][:3] == [row[0] for row in rows.execute(query)][:3]


def test_sessions_are_sorted_by_what_their_rows_show(tmp_path: Path) -> None:
    costly, long, late = (f"{number}0000000-1111-4111-8111-111111111111" for number in (1, 2, 3))
    home = tmp_path / "home"
    for identity, tokens, times in (
        (costly, 9_000, ["10:00", "10:01"]),
        (long, 5, ["08:00", "08:05", "11:00"]),
        (late, 70, ["12:00", "12:02"]),
    ):
        place: list[dict[str, Any]] = [
            {"sessionId": identity, "timestamp": f"2026-11-01T{time}:00.000Z"} for time in times
        ]
        replies = [reply(f"{identity} {number}", tokens, 1, **more) for number, more in enumerate(place[1:])]
        claude(home, prompt(identity, **place[0]), *replies, session=identity)
    orders = {
        "": [late, long, costly],
        "?sort=time": [late, long, costly],
        "?sort=messages": [long, late, costly],
        "?sort=tokens": [costly, late, long],
        "?sort=cost": [costly, late, long],
        "?sort=duration": [long, late, costly],
        "?sort=duration&min_prompts=1": [long, late, costly],
    }
    with shown(home, tmp_path / "catalog") as app:
        for query, expected in orders.items():
            page = app.page(f"/sessions{query}")
            found = [href.rpartition("/")[2] for href in links(page) if href.startswith("/session/")]
            assert found == expected, query
        (chosen,) = [each for each in named(page, "option") if each.get("value") == "duration"]
        assert chosen.get("selected") is not None
        assert "3.0 h" in words(named(page, "ul", "list"))
        assert "unknown order 'size'" in words(app.page("/sessions?sort=size", 400))


@pytest.mark.slow
def test_a_call_leads_to_its_sub_agent_and_the_sub_agent_back(demo: Shown, rows: sqlite3.Connection) -> None:
    query = "SELECT s.native_id, s.title, s.message_count, p.native_id, p.title FROM sessions s"
    query += " JOIN sessions p ON p.session_id = s.parent_session_id WHERE s.agent = 'claude-code'"
    told = 0
    for child, task, messages, parent, title in rows.execute(query).fetchall():
        calls = named(demo.page(f"/session/claude-code/{parent}"), "p", "sub")
        mine = [call for call in calls if links(call) == [f"/session/claude-code/{child}"]]
        told += len(mine)
        assert all(f"{task}, {messages} message" in words(call) and "still running" not in words(call) for call in mine)
        (back,) = [one for one in named(demo.page(f"/session/claude-code/{child}"), "a") if one.get("id") == "parent"]
        assert back.get("href") == f"/session/claude-code/{parent}" and words(back) == title
    assert told


@pytest.mark.parametrize(
    ("query", "where"),
    [
        ("agent=codex", "agent = 'codex'"),
        ("agent=codex&agent=gemini", "agent IN ('codex', 'gemini')"),
        ("project=TIDEPOOL", "project = 'tidepool'"),
        ("has=error", "error_count > 0"),
        ("since=2026-10-20", "ended_us >= 1792454400000000"),
        ("tool=edit", "session_id IN (SELECT session_id FROM tool_calls WHERE name LIKE '%edit%')"),
        ("file=predict.py", "session_id IN (SELECT session_id FROM file_changes WHERE path LIKE '%predict.py')"),
        ("branch=mean", "git_branch LIKE '%mean%'"),
    ],
)
def test_filters_stand_in_the_address(demo: Shown, rows: sqlite3.Connection, query: str, where: str) -> None:
    wanted = {row[0] for row in rows.execute(f"SELECT native_id FROM sessions WHERE {where}")}
    tree = demo.page(f"/sessions?{query}")
    assert {href.rpartition("/")[2] for href in links(tree) if href.startswith("/session/")} == wanted
    verb = "matches" if len(wanted) == 1 else "match"
    assert wanted and f" {verb} the filters" in words(named(tree, "p", "count"))


def test_a_filter_that_makes_no_sense_is_said_to(demo: Shown) -> None:
    tree = demo.page("/sessions?since=some+day", status=400)
    assert "unknown time" in words(named(tree, "p", "bad"))
    assert "no session matches" in words(demo.page("/sessions?text=xyzzyxyzzy")).lower()


def test_a_session_shows_head_outline_and_messages(demo: Shown, rows: sqlite3.Connection) -> None:
    tree = demo.page(MEAN)
    facts = {words(one.findall("dt")): words(one.findall("dd")) for one in named(tree, "dl", "facts")[0]}
    count, tokens = rows.execute(
        "SELECT message_count, (SELECT sum(input_tokens) + sum(output_tokens) FROM usage_days u"
        " WHERE u.session_id = s.session_id) FROM sessions s WHERE native_id LIKE '71960fc3%'"
    ).fetchone()
    assert (facts["Messages"], facts["Tokens, input + output"], facts["Errors"]) == (str(count), f"{tokens:,}", "1")
    assert {"m1", "m2", "m14"} <= {element.get("id") for element in tree.iter()}
    outline = demo.part(f"{MEAN}/outline")
    assert [one.get("href") for one in outline.iter("a")] == ["#m1", "#m19"]
    window = demo.get(f"{MEAN}/window/0").body.decode()
    assert window in demo.get(MEAN).body.decode()
    assert demo.get(f"{MEAN}/window/1").status == 404


def test_branches_are_told_to_the_script(demo: Shown) -> None:
    (outline,) = named(demo.part(f"{FORKED}/outline"), "div", "outline")
    assert json.loads(outline.get("data-forks") or "") == [[0, [3, 5]]]
    assert json.loads(outline.get("data-active") or "") == [5]
    graph = demo.page(f"{FORKED}/graph")
    assert [href for href in links(graph) if "#m" in href] == [f"{FORKED}#m{index}" for index in (1, 3, 5)]
    assert [one.get("class") for one in named(graph, "circle")] == ["went", "other", "went"]


def test_the_panels_say_what_the_records_say(demo: Shown) -> None:
    assert "+3 −3" in words(demo.part(f"{MEAN}/panel/files"))
    todos = words(demo.part(f"{MEAN}/panel/todos"))
    assert todos.index("added Add the mean level") < todos.index("completed Add the mean level")
    record = demo.part(f"{MEAN}/panel/record?message=1")
    assert "Low water at Saint-Malo" in words(named(record, "pre"))
    assert json.loads(words(named(record, "pre")))["type"] == "user"
    assert "prompts 2" in words(demo.part(f"{MEAN}/panel/timeline"))
    torn = demo.part("/session/claude-code/3c986c27-53f1-40e2-a98b-1094b4993bdb/panel/problems")
    assert "torn-tail" in words(torn)
    assert demo.get(f"{MEAN}/panel/nothing").status == 404
    assert demo.get(f"{MEAN}/panel/record?message=99999").status == 404


def test_usage_by_turn_adds_up(demo: Shown) -> None:
    table = named(demo.part(f"{MEAN}/panel/usage"), "table")[0]
    turns = [[words(cell) for cell in row] for row in table.iter("tr")][1:]
    for column in (1, 2, 3):
        numbers = [int(row[column].replace(",", "")) for row in turns if row[column]]
        assert sum(numbers[:-1]) == numbers[-1]


def test_search_finds_marks_and_narrows(demo: Shown) -> None:
    found = demo.part("/search?q=amplitudes")
    assert "amplitudes" in {words(one) for one in found.iter("mark")}
    assert any(href.startswith(f"{MEAN}?find=amplitudes#m") for href in links(found))
    files = links(named(demo.part("/search?q=predict.py&in=files"), "ol", "hits")[0])
    assert files and all("?find=predict.py" in href for href in files)
    every, narrowed = (words(named(demo.page(f"/search?q=tide{more}"), "p", "count")) for more in ("", "&agent=gemini"))
    assert int(every.split()[0]) > int(narrowed.split()[0]) > 0
    assert "nothing was found" in words(demo.part("/search?q=xyzzyxyzzy")).lower()
    sessions = [links(one)[0] for one in named(demo.part("/search?q=tide"), "section", "group")]
    assert len(set(sessions)) == len(sessions) > 3
    assert named(demo.part("/search?q=%22open"), "p", "bad")
    assert "showing facets" not in words(demo.part("/search?q=tide"))


def hit_count(demo: Shown, address: str) -> int:
    counts = named(demo.part(address), "p", "count")
    return int(words(counts).split()[0].replace(",", "")) if counts else 0


def test_an_address_has_the_same_hits_typed_and_loaded(demo: Shown) -> None:
    for query in ("tidep", "tide", "tide+tab", "tide+-tab", "tide+NOT+tab"):
        loaded = words(named(demo.page(f"/search?q={query}"), "p", "count"))
        for more in ("", "&order=newest"):
            assert words(named(demo.part(f"/search?q={query}{more}"), "p", "count")) == loaded
    whole, excluded = hit_count(demo, "/search?q=%22tide%22"), hit_count(demo, "/search?q=tide+-tidepool")
    assert hit_count(demo, "/search?q=tide") > whole > 0, "quotation marks find the word alone"
    assert hit_count(demo, "/search?q=tide+-tidep") > excluded, "an excluded word is never completed"
    without = {name: hit_count(demo, f"/search?q=tide+-{name}") for name in ("xyzzy", "tide.tables", "tide.tabl")}
    assert without["xyzzy"] == without["tide.tabl"] > without["tide.tables"], "nor one of several words"
    assert "missing" in words(demo.part("/search?q=tide+AND"))


def test_the_number_of_a_facet_is_the_number_of_hits_behind_it(demo: Shown) -> None:
    seen = set()
    for query in ("/search?q=tide", "/search?q=tide&agent=claude-code"):
        for facet in named(named(demo.part(query), "nav", "facets")[0], "a"):
            if facet.get("aria-current") is None:
                address = str(facet.get("href"))
                assert hit_count(demo, address) == int(words(facet).split()[-1]), address
                seen.add(address.partition("=")[2].rpartition("&")[2].partition("=")[0])
    assert seen >= {"agent", "exact_project", "in", "model"}


def test_a_call_names_the_task_of_its_sub_agent(demo: Shown, rows: sqlite3.Connection) -> None:
    query = "SELECT p.agent, p.native_id FROM session c JOIN session p ON p.session_id = c.parent_session_id"
    for agent, session in rows.execute(f"{query} WHERE p.is_visible = 1 GROUP BY p.id").fetchall():
        page = demo.page(f"/session/{agent}/{session}")
        tasks = {one.get("href"): words(one) for part in named(page, "details", "subs") for one in named(part, "a")}
        called = {one.get("href"): words(one) for part in named(page, "p", "sub") for one in named(part, "a")}
        if called:
            assert called == {href: f"Sub-agent: {tasks[href]}" for href in called}
            return
    pytest.fail("no call of a sub-agent")


def test_one_session_is_searched_alone_with_its_sub_agents(demo: Shown, rows: sqlite3.Connection) -> None:
    (key,) = rows.execute("SELECT session_id FROM sessions WHERE native_id LIKE '38ed9768%'").fetchone()
    parent = "/session/claude-code/38ed9768-3187-478b-a81f-4c75a5724c22"
    form = named(demo.page(parent), "form", "in-session")[0]
    assert [one.get("value") for one in form.iter("input")] == [key, None]
    found = demo.page(f"/search?q=UTC&session={key}")
    sessions = {re.split("[?#]", href)[0] for href in links(found) if href.startswith("/session/")}
    agents = {href for href in links(demo.page(parent)) if "/agent-" in href}
    assert parent in sessions and sessions <= {parent, *agents} and sessions & agents
    assert "and its sub-agents" in words(named(found, "p", "within"))
    everywhere = demo.page("/search?q=UTC")
    assert len([href for href in links(everywhere) if href.startswith("/session/")]) > len(sessions)
    assert "Nothing was found" in words(demo.part(f"/search?q=UTC&session={key}&agent=codex"))
    demo.page("/search?q=UTC&session=nobody", status=404)


def pager_labels(tree: Element) -> list[str]:
    return [words(link) for pager in named(tree, "nav", "pager") for link in named(pager, "a")]


def test_a_pager_speaks_of_time_only_in_lists_by_time(demo: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.web.pages.search.HITS_PER_PAGE", 2)
    monkeypatch.setattr("clew.web.pages.files.FILES_PER_PAGE", 2)
    monkeypatch.setattr("clew.web.pages.sessions.SESSIONS_PER_PAGE", 2)
    assert pager_labels(demo.page("/sessions?page=2")) == ["Newer", "Older"]
    assert pager_labels(demo.page("/search?q=tide&order=newest&page=2")) == ["Newer", "Older"]
    assert pager_labels(demo.page("/search?q=tide&page=2")) == ["Previous", "Next"]
    assert pager_labels(demo.page("/files?page=2")) == ["Previous", "Next"]


def test_times_are_in_the_zone_of_the_user(demo: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    def time_of_session() -> str:
        facts = {words(one.findall("dt")): words(one.findall("dd")) for one in named(demo.page(MEAN), "dl", "facts")[0]}
        return facts["Time"]

    assert " UTC" in time_of_session()
    monkeypatch.setenv("CLEW_TIMEZONE", "Asia/Kathmandu")
    assert " UTC+05:45" in time_of_session()
    assert "Times are in UTC+05:45." in words(demo.page("/sources"))


def test_where_not_all_hits_are_counted_it_is_said(demo: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.web.pages.search.MAX_HITS", 20)
    found = demo.part("/search?q=tide")
    total = int(words(named(found, "p", "count")).split()[0])
    assert total > 20 and f"{total} hits; showing facets and pages for the first 20" in words(found)


def test_usage_is_exact_and_a_sheet(demo: Shown, rows: sqlite3.Connection) -> None:
    for by, column in (("day", "day_utc"), ("model", "model"), ("agent", "agent"), ("project", "project")):
        known = dict(rows.execute(f"SELECT {column}, sum(input_tokens) FROM usage_days GROUP BY {column}"))
        sheet = list(csv.DictReader(io.StringIO(demo.get(f"/usage.csv?by={by}").body.decode())))
        assert {row[by]: row["input_tokens"] for row in sheet if row["calls"] != "0"} == {
            name: "" if tokens is None else str(tokens) for name, tokens in known.items()
        }
        tree = demo.page(f"/usage?by={by}")
        shown_rows = [[words(cell) for cell in row] for row in named(tree, "table", "wide")[0].iter("tr")]
        for name, tokens in known.items():
            row = next(row for row in shown_rows if row[0] == (name or "unknown"))
            assert row[2] == ("" if tokens is None else f"{tokens:,}")
    assert demo.get("/usage.csv").headers["content-type"].startswith("text/csv")


def test_what_has_no_price_is_unknown_and_not_nothing(tmp_path: Path) -> None:
    claude(tmp_path / "home", reply("m1", 1000, 10, model="nobody-knows-9"))
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        for path in ("/", "/usage", "/usage?by=model"):
            page = app.page(path)
            legends = [words(one) for one in (*named(page, "ul", "legend"), *named(page, "ol", "ranked"))]
            assert any(legend.startswith("nobody-knows-9") and legend.endswith("unknown") for legend in legends), path
            assert "$0.00" not in words(page)
        (row,) = [words(row) for row in named(page, "tr") if words(row).startswith("nobody-knows-9 1")]
        assert row.endswith("unknown")
        (sheet,) = csv.DictReader(io.StringIO(app.get("/usage.csv?by=model").body.decode()))
        assert (sheet["cost"], sheet["cost_nano"]) == ("", "")


def test_a_file_has_its_history_diffs_and_blame(demo: Shown) -> None:
    assert PREDICT in words(demo.page("/files?text=predict"))
    tree = demo.page(f"/files/history?path={quote(PREDICT)}")
    (lazy,) = [one.get("data-load") for one in named(tree, "details", "lazy")]
    changes = demo.part(lazy or "")
    assert "z0 is the mean level" in words(named(changes, "ins")) and "exact" in words(changes)
    asked = {(words(one), *links(one)) for one in named(changes, "p", "asked")}
    blame = demo.page(f"/files/blame?path={quote(PREDICT)}")
    lines = {words(row[2]): row for row in named(blame, "tr")}
    assert words(lines["6"][0]) == "Add the missing mean level to tide heig… #20" and words(lines["7"][0]) == "#20"
    prompt_text = "Call it mean_level instead of z0, please."
    assert words(lines["6"][1]) == prompt_text and words(lines["8"]).endswith("total = mean_level")
    assert (f"Prompt: {prompt_text}", *links(lines["6"][1])) in asked


@pytest.mark.parametrize("path", ["/etc/passwd", "../../etc/passwd", "%00", "", "/home/ada", "file:///etc/passwd"])
def test_W05_a_path_is_looked_up_and_never_opened(demo: Shown, path: str) -> None:
    for page in ("history", "blame", "changes"):
        answer = demo.get(f"/files/{page}?path={quote(path, safe='%')}")
        assert answer.status == 404 and b"root:" not in answer.body


MISSING = ["/session/codex/nothing", "/session/../x", "/session/claude-code/%2e%2e", "/x", "/session/a/b/live"]


@pytest.mark.parametrize("path", MISSING)
def test_what_is_not_there_is_said_kindly(demo: Shown, path: str) -> None:
    assert demo.get(path).status == 404
    assert "Traceback" not in demo.get(path).body.decode()


def until(holds: Callable[[], bool], seconds: float = 60) -> None:
    """Wait for something that happens by itself."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.slow
def test_secrets_are_masked_and_found(tmp_path: Path) -> None:
    write_small_demo(tmp_path / "home")
    secret = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z" + "Qa"
    project = tmp_path / "home" / ".claude" / "projects" / "-home-ada-keys"
    project.mkdir(parents=True)
    line = {
        "type": "user",
        "uuid": "0f6a1c52-0000-4000-8000-000000000001",
        "parentUuid": None,
        "sessionId": "0f6a1c52-0000-4000-8000-0000000000aa",
        "timestamp": "2026-11-01T10:00:00.000Z",
        "cwd": "/home/ada/keys",
        "message": {"role": "user", "content": f"The key is GITHUB_TOKEN={secret} and it works"},
    }
    (project / "0f6a1c52-0000-4000-8000-0000000000aa.jsonl").write_text(json.dumps(line) + "\n")
    address = "/session/claude-code/0f6a1c52-0000-4000-8000-0000000000aa"
    inside = ("", "/outline", "/graph", "/window/0", "/panel/record?message=1")
    shown_at = ("/", "/sessions", "/search?q=key", *(address + more for more in inside))
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        assert secret in app.get(address).body.decode()
        for path in shown_at:
            assert secret not in app.get(path + ("&" if "?" in path else "?") + "redact=secrets").body.decode(), path
        app.get("/secrets")
        until(lambda: not app.context.scan.is_running)
        found = app.get("/secrets").body.decode()
        assert address + "#m1" in found and secret not in found
    with shown(tmp_path / "home", tmp_path / "catalog", profile="secrets") as app:
        for path in shown_at:
            assert secret not in app.get(path).body.decode(), path


@pytest.mark.slow
def test_a_secret_leads_to_its_tool_result_in_a_session_with_its_title(tmp_path: Path) -> None:
    secret = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z" + "Qa"
    identity = "0f6a1c52-0000-4000-8000-0000000000bb"
    project = tmp_path / "home" / ".claude" / "projects" / "-home-ada-keys"
    project.mkdir(parents=True)
    calls = [{"type": "tool_use", "id": f"t{n}", "name": "Read", "input": {"file_path": f"/f{n}"}} for n in (1, 2)]
    results = [
        {"type": "tool_result", "tool_use_id": "t1", "content": "nothing"},
        {"type": "tool_result", "tool_use_id": "t2", "content": f"GITHUB_TOKEN={secret}"},
    ]
    lines = [
        claude_line("user", "u1", None, f"Does {secret} work"),
        claude_line("assistant", "u2", "u1", calls),
        claude_line("user", "u3", "u2", results),
    ]
    source = project / f"{identity}.jsonl"
    source.write_text("".join(json.dumps({**line, "sessionId": identity}) + "\n" for line in lines))
    address = f"/session/claude-code/{identity}"
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        app.get("/secrets")
        until(lambda: not app.context.scan.is_running)
        page = app.page("/secrets")
        assert secret not in app.get("/secrets").body.decode()
        rows = {link: words(named(row, "a")) for row in named(page, "tr") for link in links(row)}
        assert rows[f"{address}#m1"].startswith("Does [REDACTED:") and rows[f"{address}#m1"].endswith(" work #1")
        assert rows[f"{address}#m3-2"].endswith(" work #3")
        (result,) = [each for each in named(app.page(address), "details") if each.get("id") == "m3-2"]
        assert secret in words(result)


def test_an_empty_home_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        assert "clew demo" in words(app.page("/"))
        said = {"/sessions": "no sessions yet", "/files": "No session changed", "/usage": "No session has recorded"}
        for path, text in said.items():
            assert text in words(app.page(path))
        assert "unknown" not in words(app.page("/usage"))
        assert "No usage matches these filters" in words(app.page("/usage?agent=codex"))
        assert "clew sources add" in words(app.page("/sources"))


def test_before_the_first_sync_pages_wait(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        (tmp_path / "catalog" / database.DATABASE).rename(tmp_path / "away")
        tree = app.page("/")
        assert named(tree, "main")[0].get("data-reload") == "2"
        (tmp_path / "away").rename(tmp_path / "catalog" / database.DATABASE)
        assert "clew demo" in words(app.page("/"))


@pytest.mark.slow
def test_a_session_whose_source_is_gone_is_shown_from_the_catalog(tmp_path: Path) -> None:
    write_small_demo(tmp_path / "home")
    with shown(tmp_path / "home", tmp_path / "catalog"):
        pass
    next((tmp_path / "home").rglob("71960fc3*.jsonl")).unlink()
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        tree = app.page(MEAN)
        assert "source file of this session is missing" in words(tree) and "Low water at Saint-Malo" in words(tree)
        for panel in ("timeline", "files", "todos", "usage", "record?message=1", "problems"):
            assert app.get(f"{MEAN}/panel/{panel}").status == 200
        assert app.get(f"{MEAN}/graph").status == 200


def test_a_session_that_was_deleted_before_its_messages_were_read_says_so(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "catalog"
    path = session_file(home)
    path.write_text(line(1, "Low tide"))
    sync([Host.at(home)], folder, SyncLevel.SESSIONS)
    path.unlink()
    with shown(home, folder) as app:
        tree = app.page(ADDRESS, 410)
        assert "was deleted before its messages were read" in words(tree)


def test_a_session_that_was_deleted_before_all_messages_were_read_says_so(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "catalog"
    path = session_file(home)
    path.write_text(line(1, "Low tide"))
    sync([Host.at(home)], folder)
    path.write_text(line(1, "Low tide") + line(2, "High tide"))
    sync([Host.at(home)], folder, SyncLevel.SESSIONS)
    path.unlink()
    with shown(home, folder) as app:
        text = words(app.page(ADDRESS))
        assert "Low tide" in text and "some are not shown here" in text


@pytest.mark.slow
def test_H11_a_huge_message_is_cut_and_the_rest_can_be_had(tmp_path: Path) -> None:
    path, text = session_file(tmp_path / "home"), "".join(f"Word {number} <&>. " for number in range(40_000))
    path.write_text(line(1, text))
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        answer = app.get(ADDRESS)
        assert answer.status == 200 and len(answer.body) < 600_000
        found = [words(named(app.page(ADDRESS), "div", "p")[0]).partition("Show more")[0].strip()]
        links = named(app.page(ADDRESS), "a", "more")
        while links:
            (link,) = links
            tree = app.page(link.get("href") or "")
            found.append("".join(named(tree, "pre", "whole")[0].itertext()))
            links = named(tree, "a", "more")
        assert "".join("".join(found).split()) == "".join(text.split())
        part = app.get(f"{ADDRESS}/more/1/0?from=200000", X_Clew="1").body
        assert part.startswith(b'<span class="rest"') and b"&lt;&amp;&gt;" in part and b"<main" not in part
        for nothing in ("more/1/1", "more/2/0", "more/1/0?from=99999999"):
            assert app.get(f"{ADDRESS}/{nothing}").status == 404
        rest = app.page(f"{ADDRESS}/panel/record?message=1")
        (link,) = named(rest, "a", "more")
        assert "characters are left" in words(link) and "from=200000" in (link.get("href") or "")
        assert len(app.get(f"{ADDRESS}/panel/record?message=1").body) < 600_000
        assert len(app.get("/sessions").body) + len(app.get("/search?q=words").body) < 100_000


@pytest.mark.slow
def test_a_view_for_paper_has_every_message_and_every_row_can_be_had(demo: Shown, rows: sqlite3.Connection) -> None:
    for agent, session, count in rows.execute("SELECT agent, native_id, message_count FROM sessions").fetchall():
        address = f"/session/{agent}/{session}"
        whole = [one.get("id") for one in demo.page(f"{address}/print").iter() if one.tag == "article"]
        first = [one.get("id") for one in demo.page(address).iter() if one.tag == "article"]
        assert whole[: len(first)] == first and (count > WINDOW or whole == first)
    for panel in ("files", "todos", "problems"):
        few, every = (demo.page(f"{MEAN}/panel/{panel}?rows={most}") for most in (1, 10**9))
        shown_all = [link for link in named(few, "a", "more") if "rows=" in (link.get("href") or "")]
        assert bool(shown_all) == (len(words(few)) < len(words(every)))


@pytest.mark.slow
def test_long_sessions_come_in_windows(tmp_path: Path) -> None:
    project = tmp_path / "home" / ".claude" / "projects" / "-home-ada-long"
    project.mkdir(parents=True)
    session, count = "0f6a1c52-0000-4000-8000-0000000000bb", 1050
    with (project / f"{session}.jsonl").open("w") as out:
        for number in range(count):
            who = "user" if number % 2 == 0 else "assistant"
            content = f"Word {number + 1}." if who == "user" else [{"type": "text", "text": f"Word {number + 1}."}]
            line = {
                "type": who,
                "uuid": f"0f6a1c52-0000-4000-8000-{number + 1:012}",
                "parentUuid": f"0f6a1c52-0000-4000-8000-{number:012}" if number else None,
                "sessionId": session,
                "timestamp": f"2026-11-01T10:{number // 60:02}:{number % 60:02}.000Z",
                "cwd": "/home/ada/long",
                "message": {"role": who, "content": content},
            }
            out.write(json.dumps(line) + "\n")
    address = f"/session/claude-code/{session}"
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        tree = app.page(address)
        assert len(named(tree, "div", "w")) == -(-count // WINDOW)
        assert len(named(tree, "article", "m")) == WINDOW
        seen = [
            article.get("id")
            for number in range(-(-count // WINDOW))
            for article in named(app.part(f"{address}/window/{number}"), "article", "m")
        ]
        assert seen == [f"m{number + 1}" for number in range(count)]
        last = -(-count // WINDOW)
        assert len(named(app.page(f"{address}?window={last}"), "article", "m")) == count - (last - 1) * WINDOW


def test_pages_say_what_is_still_being_indexed(tmp_path: Path) -> None:
    write_small_demo(tmp_path / "home")
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        for path in ("/", "/search?q=tide", "/usage"):
            text = words(app.page(path))
            assert "indexed yet" not in text and "still running" not in text, path
        for path in ("/files", f"{MEAN}/panel/timeline", f"{MEAN}/panel/files"):
            assert "not read yet" not in words(app.page(path)), path
        with closing(database.open_writer(tmp_path / "catalog")) as db:
            db.execute("INSERT INTO unindexed_text SELECT first FROM text_chunk LIMIT 1")
            db.execute("INSERT INTO unread_messages SELECT id FROM source")
        for path in ("/", "/search?q=tide", "/usage", "/files", f"{MEAN}/panel/timeline", f"{MEAN}/panel/files"):
            assert re.search(r"The messages of .* not read yet", words(app.page(path))), path
        app.context.updater.state = "working"
        for path in ("/", "/search?q=tide", "/usage"):
            text = words(app.page(path))
            assert re.search(r"[1-9][\d,]* texts? (is|are) not indexed yet", text), path
            assert "The first sync is still running" in text, path


def test_the_links_to_the_next_sessions_say_where_they_lead(demo: Shown) -> None:
    address = demo.page("/sessions").findall(".//ul[@class='list']/li/a")[1].get("href")
    assert address is not None
    links = {link.get("id"): "".join(link.itertext()) for link in demo.page(address).iter("a")}
    assert (links["newer"], links["older"]) == ("‹ Newer session", "Older session ›")
