"""Codex CLI: rollbacks, forks, reverts and sub-agents, tokens counted once, names, places, and what is wrong."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import zstandard

import clew
from clew.agents.checking import check_source
from clew.agents.codex.locate import THREAD_INDEX
from clew.agents.codex.thread_names import DATABASE
from clew.analysis.usage import Usage
from clew.export.verify import verify
from clew.host import Host
from clew.library import Library
from tests.agents.rollouts import (
    AGENT,
    CWD,
    OTHER,
    THIRD,
    THREAD,
    Value,
    answered,
    asked,
    context,
    event,
    item,
    line,
    meta,
    place,
    read,
    rollout,
    spelled,
    tokens,
    used,
    words,
    write,
)

FIXTURES = Path(__file__).parents[1] / "fixtures" / "codex"
CONTEXT = "<environment_context>\n</environment_context>"


def library(home: Path) -> Library:
    return Library(Host.at(home), agents=["codex"])


def codes(path: Path) -> list[str]:
    return [problem.code for problem in check_source(AGENT, AGENT.locate(path))]


def turn(number: int, second: float = 1) -> list[Value]:
    start = event("task_started", second, turn_id=f"t{number}")
    return [start, *asked(f"ask {number}", second), *answered(f"answer {number}", second)]


# Who follows whom


@pytest.mark.seed("S2-42")
def test_turns_that_were_rolled_back_are_branches(tmp_path: Path) -> None:
    back = event("thread_rolled_back", num_turns=2)
    found = rollout(
        tmp_path,
        meta(),
        *turn(1),
        *turn(2),
        *turn(3),
        back,
        *turn(4),
        event("thread_rolled_back", num_turns=1),
        *turn(5),
    )
    assert found.active == ["ask 1", "answer 1", "ask 5", "answer 5"]
    (fork,) = found.facts.tree.graph().fork_points
    assert fork.index == 2
    assert [found.messages[branch.index - 1]["content"][0]["text"] for branch in fork.branches] == [
        "ask 2",
        "ask 4",
        "ask 5",
    ]


def test_rolling_back_everything_keeps_what_stands_before_the_first_turn(tmp_path: Path) -> None:
    back = event("thread_rolled_back", num_turns=9)
    found = rollout(tmp_path, meta(), words("developer", "rules"), *turn(1), *turn(2), back, *turn(3))
    assert found.active == ["rules", "ask 3", "answer 3"]


def test_context_right_before_a_turn_goes_with_it(tmp_path: Path) -> None:
    back = event("thread_rolled_back", num_turns=1)
    found = rollout(tmp_path, meta(), *turn(1), words("user", CONTEXT), *turn(2), back, *turn(3))
    assert found.active == ["ask 1", "answer 1", "ask 3", "answer 3"]


def test_a_rollback_at_the_end_moves_where_the_conversation_stands(tmp_path: Path) -> None:
    found = rollout(tmp_path, meta(), *turn(1), *turn(2), event("thread_rolled_back", num_turns=1))
    assert found.active == ["ask 1", "answer 1"]


@pytest.mark.parametrize("turns", [1, 2, 9])
def test_where_everything_was_rolled_back_the_conversation_stands_nowhere(tmp_path: Path, turns: int) -> None:
    found = rollout(tmp_path, meta(), *turn(1), event("thread_rolled_back", num_turns=turns))
    assert found.active == []
    again = rollout(tmp_path, meta(), *turn(1), event("thread_rolled_back", num_turns=turns), *turn(2))
    assert again.active == ["ask 2", "answer 2"]


@pytest.mark.parametrize("turns", [0, -3, None, "2", 1.5])
def test_a_rollback_of_nothing_changes_nothing(tmp_path: Path, turns: Any) -> None:
    found = rollout(tmp_path, meta(), *turn(1), event("thread_rolled_back", num_turns=turns), *turn(2))
    assert found.facts.tree.is_linear


def test_a_conversation_goes_on_across_a_compaction(tmp_path: Path) -> None:
    summary = line("compacted", {"message": "short", "replacement_history": [words("user", "ask 1")["payload"]]})
    found = rollout(tmp_path, meta(), *turn(1), summary, event("context_compacted"), *turn(2))
    assert found.active == ["ask 1", "answer 1", "ask 2", "answer 2"]


# Forks and sub-agents


def copied(burst: bool = True) -> list[Value]:
    """The lines of a thread with one turn and its tokens."""
    step = 0.001 if burst else 40
    lines = [meta(), *turn(1), tokens(used(1000, 400, 50), used(1000, 400, 50))]
    return [each | {"timestamp": line("x", {}, 100 + step * at)["timestamp"]} for at, each in enumerate(lines)]


def fork(*parent: Value) -> list[Value]:
    own = [*turn(2, 900), tokens(used(2000, 800, 100), used(1000, 400, 50), 901)]
    return [meta(OTHER, forked_from_id=THREAD), *parent, *own]


@pytest.mark.parametrize("burst", [True, False])
def test_copied_history_is_not_counted_where_the_parent_is_at_hand(tmp_path: Path, burst: bool) -> None:
    write(tmp_path, *copied(), *turn(9), tokens(used(2000, 800, 100), used(1000, 400, 50)))
    child = read(write(tmp_path, *fork(*copied(burst)), thread=OTHER))
    assert child.session["id"] == OTHER
    assert child.session["extensions"]["codex"]["forked_from"] == THREAD
    inherited = [message.get("extensions", {}).get("codex", {}).get("inherited") for message in child.messages]
    assert inherited == [True, True, None, None]
    assert child.facts.ledger.total().input_tokens == 600
    assert library(tmp_path).usage() == {"": Usage(3, 1800, 150, None, 1200, None, None, 0)}


def test_without_the_parent_what_was_written_at_once_is_the_copy(tmp_path: Path) -> None:
    child = rollout(tmp_path, *fork(*copied()), thread=OTHER)
    assert child.facts.ledger.total().input_tokens == 600
    assert [bool(m.get("extensions", {}).get("codex", {}).get("inherited")) for m in child.messages] == [
        True,
        True,
        False,
        False,
    ]


def test_a_later_head_of_the_same_thread_only_updates_it(tmp_path: Path) -> None:
    found = rollout(tmp_path, meta(), *turn(1), meta(cwd="/other", memory_mode="disabled"), *turn(2))
    assert found.session["id"] == THREAD
    assert found.session["workspace"] == CWD
    assert found.messages[2]["metadata"] == {"cwd": "/other"}


def test_lines_before_the_first_ordinal_of_a_sub_agent_are_its_parents(tmp_path: Path) -> None:
    lines = [meta(OTHER, parent_thread_id=THREAD, subagent_history_start_ordinal=3), *asked("old"), *asked("own", 50)]
    found = rollout(tmp_path, *(each | {"ordinal": at} for at, each in enumerate(lines)), thread=OTHER)
    assert [bool(m.get("extensions", {}).get("codex", {}).get("inherited")) for m in found.messages] == [True, False]


@pytest.mark.seed("S2-20", "S2-21")
def test_sub_agents_are_linked_both_ways(tmp_path: Path) -> None:
    spawned = {"parent_thread_id": THREAD, "depth": 1, "agent_nickname": "Kepler", "agent_role": "explorer"}
    parent = rollout(
        tmp_path,
        meta(),
        item("function_call", name="spawn_agent", arguments='{"message":"go"}', call_id="c1"),
        item("function_call_output", call_id="c1", output=json.dumps({"agent_id": OTHER, "nickname": "Kepler"})),
        event("collab_agent_spawn_end", call_id="c2", new_thread_id=THIRD, new_agent_nickname="Euler"),
        event("sub_agent_activity", event_id="c2", agent_thread_id=THIRD, agent_path="/main/e", kind="started"),
    )
    child = rollout(tmp_path, meta(OTHER, source={"subagent": {"thread_spawn": spawned}}), *turn(1), thread=OTHER)
    assert parent.session["subagents"] == [
        {"session_id": OTHER, "agent_id": "Kepler", "tool_id": "c1"},
        {"session_id": THIRD, "agent_id": "Euler", "tool_id": "c2"},
    ]
    header = child.session
    assert (header["is_agent_session"], header["parent_session_id"], header["agent_id"]) == (True, THREAD, "Kepler")
    assert not parent.session["is_agent_session"]


@pytest.mark.parametrize(
    ("source", "is_agent", "name"),
    [
        ("cli", False, None),
        ({"custom": "x"}, False, None),
        ({"subagent": "review"}, True, "review"),
        ({"subagent": {"other": "y"}}, True, "y"),
        ({"internal": "guardian"}, True, "guardian"),
        (7, False, None),
    ],
)
def test_sessions_that_codex_runs_for_itself(tmp_path: Path, source: Any, is_agent: bool, name: str | None) -> None:
    header = rollout(tmp_path, meta(source=source), *turn(1)).session
    assert (header["is_agent_session"], header["agent_id"]) == (is_agent, name)


def test_a_reverted_thread_keeps_its_older_rollout_apart(tmp_path: Path) -> None:
    base = {"thread_id": THREAD, "end_ordinal_exclusive": 1, "end_byte_offset": 10}
    write(tmp_path, meta(history_mode="paginated"), *turn(1))
    path = write(tmp_path, meta(history_mode="paginated", history_base=base), *turn(2), thread=f"{THREAD}_{OTHER}")
    found = read(path)
    assert found.session["id"] == f"{THREAD}_{OTHER}"
    assert found.session["extensions"]["codex"]["thread"] == THREAD
    assert found.session["extensions"]["codex"]["history_base"] == base
    assert found.messages[0]["uuid"].startswith(f"{OTHER}:")
    assert len({session.id for session in library(tmp_path).sources()}) == 2
    assert codes(path) == []


# Tokens


def spent(found: Any) -> list[int | None]:
    return [message.get("metadata", {}).get("token_usage", {}).get("input_tokens") for message in found.messages]


@pytest.mark.seed("S2-36")
def test_one_request_is_one_change_of_the_total(tmp_path: Path) -> None:
    one, two = used(1000, 400, 50, 20), used(500, 300, 30, 10, cache_write_input_tokens=50)
    total = used(1500, 700, 80, 30)
    found = rollout(
        tmp_path,
        meta(),
        context(),
        *asked("a"),
        event("token_count", info=None, rate_limits={}),
        *answered("b"),
        tokens(one, one),
        tokens(one, one),
        *answered("c"),
        tokens(total, two),
        tokens(total, two),
    )
    assert found.facts.ledger.by_model() == {"gpt-5.3-codex": Usage(2, 750, 80, 50, 700, None, None, 30)}
    assert found.messages[1]["metadata"]["token_usage"] == {
        "input_tokens": 600,
        "output_tokens": 50,
        "cache_read_tokens": 400,
        "reasoning_tokens": 20,
    }
    assert spent(found) == [None, 600, 150]


def test_events_that_stand_before_their_items_belong_to_them(tmp_path: Path) -> None:
    call = item("function_call", name="f", arguments="{}", call_id="c")
    result = item("function_call_output", call_id="c", output="ok")
    found = rollout(
        tmp_path,
        meta(),
        context(),
        *asked("a"),
        tokens(used(10, 0, 1), used(10, 0, 1)),
        item("reasoning", summary=[]),
        call,
        result,
        context(),
        tokens(used(10, 0, 1), used(10, 0, 1)),
        tokens(used(30, 0, 2), used(20, 0, 1)),
        *answered("b"),
    )
    assert spent(found) == [None, None, 10, None, 20]


def test_a_counter_that_begins_anew_is_counted(tmp_path: Path) -> None:
    one = used(1000, 400, 50)
    lower = used(900, 0, 40)
    found = rollout(
        tmp_path, meta(), *turn(1), tokens(one, one), meta(), *turn(2), tokens(one, one), *turn(3), tokens(lower, lower)
    )
    assert found.facts.ledger.total().input_tokens == 600 + 600 + 900


def test_estimates_are_no_usage(tmp_path: Path) -> None:
    none = used(0, 0, 0)
    found = rollout(
        tmp_path,
        meta(),
        *turn(1),
        tokens(used(9, 0, 1), none | {"total_tokens": 4000}),
        tokens(none | {"total_tokens": 272000}, none),
    )
    assert found.facts.ledger.total() == Usage()


def test_without_a_last_request_the_growth_of_the_total_counts(tmp_path: Path) -> None:
    found = rollout(tmp_path, meta(), *turn(1), tokens(used(10, 0, 1), None), *turn(2), tokens(used(25, 0, 2), None))
    assert found.facts.ledger.total().input_tokens == 25
    assert found.facts.ledger.total().output_tokens == 2


def test_unknown_counts_stay_unknown(tmp_path: Path) -> None:
    found = rollout(tmp_path, meta(), *turn(1), tokens({"output_tokens": 5}, {"output_tokens": 5}))
    assert found.facts.ledger.total() == Usage(1, None, 5)


def test_a_session_in_two_places_counts_once(tmp_path: Path) -> None:
    lines = [meta(), *turn(1), tokens(used(10, 0, 1), used(10, 0, 1))]
    write(tmp_path, *lines)
    write(tmp_path, *lines, folder="archived_sessions")
    assert library(tmp_path).usage()[""].input_tokens == 10


def test_tokens_of_a_made_home_are_exact(shared: Path, tmp_path: Path) -> None:
    make: list[str | Path] = [sys.executable, shared / "tools" / "make_corpus.py", "--size", "6MB", "--seed", "7"]
    subprocess.run(
        [*make, "--out", tmp_path / "home", "--truth", tmp_path / "truth.json"], check=True, capture_output=True
    )
    truth = json.loads((tmp_path / "truth.json").read_text())["agents"]["codex"]
    for model, found in library(tmp_path / "home").usage().items():
        known = truth["tokens"][model]
        assert (found.input_tokens or 0) + (found.cache_read_tokens or 0) == known["input"]
        assert (found.cache_read_tokens, found.output_tokens) == (known["cache_read"], known["output"])
        assert found.reasoning_tokens == known["reasoning"]
    assert sum(session.facts.prompts for session in library(tmp_path / "home").sources()) == truth["user_prompts"]


# Names


def database(home: Path, **columns: str) -> sqlite3.Connection:
    made = sqlite3.connect(home / ".codex" / DATABASE)
    made.execute(f"CREATE TABLE threads (id TEXT, {', '.join(columns)})")
    made.execute(f"INSERT INTO threads VALUES ({', '.join('?' * (len(columns) + 1))})", [THREAD, *columns.values()])
    made.commit()
    return made


def test_titles_in_their_order(tmp_path: Path) -> None:
    path = write(tmp_path, meta(), *asked("The prompt"))
    assert read(path).session["title"] == "The prompt"
    database(tmp_path, title="Made by Codex").close()
    assert read(path).session["title"] == "Made by Codex"
    index = tmp_path / ".codex" / THREAD_INDEX
    listed = [{"id": THREAD, "thread_name": name} for name in ("First", "Listed")]
    index.write_text("no json\n".join(json.dumps(each) + "\n" for each in listed))
    assert read(path).session["title"] == "Listed"
    (tmp_path / ".codex" / DATABASE).unlink()
    database(tmp_path, title="Made by Codex", name="By hand").close()
    assert read(path).session["title"] == "By hand"


def test_names_in_a_database_that_is_being_written_to(tmp_path: Path) -> None:
    path = write(tmp_path, meta(), *asked("The prompt"))
    with closing(database(tmp_path, name="Old")) as made:
        made.execute("PRAGMA journal_mode=WAL")
        made.execute("UPDATE threads SET name = 'New'")
        made.commit()
        before = sorted((tmp_path / ".codex").iterdir())
        assert read(path).session["title"] == "New"
        assert sorted((tmp_path / ".codex").iterdir()) == before


def test_a_broken_database_names_nobody(tmp_path: Path) -> None:
    path = write(tmp_path, meta(), *asked("The prompt"))
    (tmp_path / ".codex" / DATABASE).write_bytes(b"no database at all" * 99)
    assert read(path).session["title"] == "The prompt"


# Places


@pytest.mark.seed("S2-17", "S2-18", "S2-19")
def test_the_source_is_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, meta(), *asked("a"))
    header = read(path).session
    assert header["source"] == {"type": "local", "host": None, "path": str(path)}
    assert (header["workspace"], header["workspace_encoded"]) == (CWD, "sessions/2026/03/02")
    assert (header["started_at"], header["ended_at"]) == ("2026-03-02T10:00:01.000Z",) * 2


def test_sessions_are_found_in_both_folders(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(home, meta(), *turn(1))
    write(home, meta(OTHER), *turn(1), thread=OTHER, folder="archived_sessions")
    for name in (".rollout-x.jsonl.paginated.tmp", "notes.jsonl", "rollout-x.txt"):
        (place(home).parent / name).write_bytes(spelled(meta()))
    assert sorted(session.id for session in clew.sessions()) == [THREAD, OTHER]
    assert library(home).get(OTHER).session_object["extensions"]["codex"]["archived"]
    monkeypatch.setenv("CODEX_HOME", str(home / "elsewhere"))
    assert list(clew.sessions()) == []


def test_a_packed_rollout_is_read_unless_a_plain_one_is_there(tmp_path: Path) -> None:
    path = write(tmp_path, meta(), *turn(1))
    packed = path.with_name(f"{path.name}.zst")
    packed.write_bytes(zstandard.compress(path.read_bytes()))
    assert [session.path for session in library(tmp_path).sources()] == [path]
    path.unlink()
    (session,) = library(tmp_path).sources()
    assert (session.path, session.id) == (packed, THREAD)
    assert verify(AGENT, session.source).different == []


def test_the_first_head_decides_whose_rollout_it_is(tmp_path: Path) -> None:
    path = write(tmp_path, meta(OTHER), *turn(1), thread=THREAD)
    assert read(path).session["id"] == AGENT.session_id(AGENT.locate(path)) == OTHER


def test_a_file_without_a_head_is_known_by_its_name(tmp_path: Path) -> None:
    path = write(tmp_path, *turn(1))
    assert read(path).session["id"] == AGENT.session_id(AGENT.locate(path)) == THREAD


def test_a_session_that_was_never_used(tmp_path: Path) -> None:
    found = rollout(tmp_path, meta())
    assert (found.messages, found.session["started_at"]) == ([], "2026-03-02T09:59:58Z")
    assert codes(found.source.path) == ["empty-session"]


# Older generations


def test_bare_lines(tmp_path: Path) -> None:
    (path,) = FIXTURES.glob("sessions/2025/08/10/*.jsonl")
    found = read(path)
    assert found.session["workspace"] == "/home/ada/src/bell"
    assert found.session["title"] == "How many bells are there?"
    assert [message["role"] for message in found.messages] == [
        "system",
        "user",
        "assistant",
        "assistant",
        "user",
        "assistant",
    ]
    assert found.session["started_at"] == "2025-08-10T08:00:00Z"
    assert set(codes(path)) == {"time-missing"}


def test_the_oldest_sessions_are_one_document(tmp_path: Path) -> None:
    (path,) = FIXTURES.glob("sessions/*.json")
    found = read(path)
    assert found.session["id"] == AGENT.session_id(found.source) == "5c1c7f0e-8a3b-4d2c-9e1f-445566778899"
    assert [message["uuid"] for message in found.messages][1::2] == ["fc_1", "msg_1"]
    assert found.texts == ["Which bells are there?", "A great one and a small one."]
    assert found.messages[2]["content"][0]["is_error"] is False


# Problems


def test_a_base_that_is_not_here(tmp_path: Path) -> None:
    base = {"thread_id": THREAD, "end_ordinal_exclusive": 8, "end_byte_offset": 100}
    path = write(tmp_path, meta(OTHER, history_base=base), *turn(1), thread=OTHER)
    assert codes(path) == ["missing-base"]
    write(tmp_path, meta())
    assert codes(path) == []
    far = {**base, "end_byte_offset": 10**9}
    assert codes(write(tmp_path, meta(OTHER, history_base=far), *turn(1), thread=OTHER)) == ["missing-base"]


def test_bases_that_build_upon_each_other(tmp_path: Path) -> None:
    base = {"thread_id": OTHER, "end_byte_offset": 1}
    path = write(tmp_path, meta(history_base=base), *turn(1))
    write(tmp_path, meta(OTHER, history_base={**base, "thread_id": THREAD}), thread=OTHER)
    assert codes(path) == ["missing-base"]


def test_numbers_modes_and_results_that_do_not_fit(tmp_path: Path) -> None:
    lines = [meta(history_mode="scattered"), *asked("a"), item("function_call_output", call_id=None, output="x")]
    numbered = [each | {"ordinal": at} for at, each in zip((0, 1, 3, 4), lines, strict=True)]
    assert codes(write(tmp_path, *numbered)) == ["unknown-history-mode", "bad-ordinal", "orphan-result"]


def test_calls_without_results_and_the_other_way_round(tmp_path: Path) -> None:
    call = item("function_call", name="f", arguments="{}", call_id="c1")
    search = item("web_search_call", status="completed", action={})
    path = write(tmp_path, meta(), call, search, item("function_call_output", call_id="c2", output="x"))
    assert sorted(codes(path)) == ["orphan-result", "unanswered-call"]


def test_a_torn_line_before_a_good_one(tmp_path: Path) -> None:
    torn = spelled(words("user", "half"))[:70]
    found = rollout(tmp_path, meta(), torn, *turn(1))
    assert found.texts == ["ask 1", "answer 1"]
    assert found.messages[0]["uuid"] == f"{THREAD}:4"


@pytest.mark.parametrize(
    "schema",
    [
        f"CREATE VIEW threads AS SELECT '{THREAD}' AS id, 'Made up' AS title",
        "CREATE VIRTUAL TABLE threads USING fts5(id, title)",
        "CREATE TABLE threads (id TEXT, title TEXT AS (hex(zeroblob(2000000))))",
    ],
)
def test_a_database_that_is_not_plain_names_nobody(schema: str, tmp_path: Path) -> None:
    """A view can run for ever, and a computed column can fill the memory."""
    path = write(tmp_path, meta(), *asked("The prompt"))
    with closing(sqlite3.connect(tmp_path / ".codex" / DATABASE)) as made:
        made.execute(schema)
        if "VIRTUAL" in schema:
            made.execute("INSERT INTO threads VALUES (?, 'Made up')", [THREAD])
        elif "TABLE" in schema:
            made.execute("INSERT INTO threads VALUES (?)", [THREAD])
        made.commit()
    assert read(path).session["title"] == "The prompt"


def test_names_are_not_read_through_links(tmp_path: Path) -> None:
    path = write(tmp_path, meta(), *asked("The prompt"))
    database(tmp_path, title="Elsewhere").close()
    (tmp_path / "index").write_text(json.dumps({"id": THREAD, "thread_name": "Elsewhere"}) + "\n")
    (tmp_path / ".codex" / DATABASE).rename(tmp_path / "database")
    (tmp_path / ".codex" / DATABASE).symlink_to(tmp_path / "database")
    (tmp_path / ".codex" / THREAD_INDEX).symlink_to(tmp_path / "index")
    assert read(path).session["title"] == "The prompt"
