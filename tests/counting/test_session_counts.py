"""How many sessions there are: every place that says so says the same number."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from clew.host import Host
from clew.library import Library
from tests.cli.running import LATEST, clew
from tests.counting.homes import claude
from tests.demo_home import write_small_demo
from tests.web.shown import named, shown, words


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The demo with sub-agents, a copy of a session, an empty session, and one whose file is gone."""
    monkeypatch.setenv("CLEW_DATA_DIR", str(tmp_path / "data"))
    home = tmp_path / "home"
    write_small_demo(home)
    (path,) = home.glob(f".claude/projects/*/{LATEST}.jsonl")
    (home / ".claude/projects/-copy").mkdir()
    shutil.copy(path, home / ".claude/projects/-copy" / path.name)
    claude(
        home, {"type": "summary", "summary": "nothing", "leafUuid": "x"}, session="0e0e0e0e-0000-4000-8000-000000000000"
    )
    gone = claude(
        home,
        {
            "type": "user",
            "uuid": "u",
            "timestamp": "2026-11-01T10:00:00.000Z",
            "message": {"role": "user", "content": "a"},
        },
        session="0f0f0f0f-0000-4000-8000-000000000000",
    )
    assert clew("--home", home, "sync").code == 0
    gone.unlink()
    return home


def test_sessions_are_counted_alike_everywhere(home: Path, tmp_path: Path) -> None:
    summaries = clew("--home", home, "--json").json["agents"].values()
    counts = tuple(sum(agent[name] for agent in summaries) for name in ("sessions", "subagents"))
    assert counts == (23 + 2, 5)
    for by in ("day", "agent", "project", "session", "month", "branch"):
        found = clew("--home", home, "stats", "--by", by, "--json").json
        assert (found["totals"]["sessions"], found["totals"]["subagents"]) == counts
        rows = [(row["sessions"], row["subagents"]) for row in found["rows"]]
        assert tuple(map(sum, zip(*rows, strict=True))) == counts, by
    totals = Library(Host.at(home)).totals()
    assert (totals["sessions"], totals["subagents"]) == counts
    with shown(home, tmp_path / "web") as app:
        assert f"{counts[0] - 1} sessions, {counts[1]} sub-agents" in words(named(app.page("/sessions"), "p", "count"))
        assert f"Sessions{counts[0] - 1} Sub-agents{counts[1]}" in words(app.page("/"))


def test_a_site_counts_the_sessions_whose_files_are_there(home: Path, tmp_path: Path) -> None:
    done = clew("--home", home, "export", "--site", tmp_path / "site")
    assert done.code == 0 and "24 sessions, 5 sub-agents in" in done.err
    index = (tmp_path / "site" / "index.html").read_text()
    assert re.search(r"24 sessions, 5 sub-agents\. Written by clew", index)
