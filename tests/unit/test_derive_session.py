"""Figures of a session, and the surroundings of its messages."""

from pathlib import Path

import pytest

from clew.analysis.facts import Facts, as_event, collect_facts
from clew.analysis.session import Context, context_at, context_changes, derived, project_of
from tests.unit.samples import Record, call, chain, claude_line, demo_transcripts, read_lines, result, say, seed

USAGE = {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 10}


def facts_of(*messages: Record) -> Facts:
    return collect_facts(as_event(True, message) for message in messages)


def reply(uuid: str, parent: str, call_id: str, model: str = "opus", **usage: int) -> Record:
    message = {"id": call_id, "role": "assistant", "model": model, "content": [], "usage": USAGE | usage}
    return claude_line("assistant", uuid, parent, timestamp="2026-01-01T10:00:30.000Z", message=message)


@pytest.mark.seed("S4-22", "S3-2")
@pytest.mark.parametrize(
    ("cwd", "project"),
    [
        ("/home/ada/src/tide", "tide"),
        ("/home/ada/src/tide/", "tide"),
        ("C:\\Users\\ada\\tide", "tide"),
        ("C:\\Users\\ada\\tide\\", "tide"),
        ("C:/Users/ada/tide", "tide"),
        ("\\\\server\\share\\tide", "tide"),
        ("/home/ada/odd\\name", "odd\\name"),
        ("tide", "tide"),
        ("/", None),
        ("C:\\", None),
        ("", None),
        (None, None),
    ],
)
def test_project_is_the_last_component(cwd: str | None, project: str | None) -> None:
    assert project_of(cwd) == project


@pytest.mark.seed("S2-16", "S4-20", "S4-21", "S4-23", "S4-24", "S4-25", "S4-26", "S4-27", "S3-15", "S3-20", "S3-31")
def test_figures_of_a_session(tmp_path: Path) -> None:
    failed = [{"type": "tool_result", "tool_use_id": "t1", "content": "no", "is_error": True}]
    read = read_lines(
        tmp_path,
        claude_line("user", "u1", None, cwd="/home/ada/tide", gitBranch="main", slug="calm-blue-sea"),
        reply("a1", "u1", "msg_1"),
        reply("a2", "a1", "msg_1", output_tokens=9),
        reply("a3", "a2", "msg_2", "haiku"),
        claude_line("user", "u2", "a3", failed, cwd="/elsewhere", timestamp="2026-01-01T10:01:00.500Z"),
        claude_line("user", "u3", "u2", "caveat", isMeta=True),
    )
    found = derived(read.session, read.facts)
    assert (found.id, found.slug, found.cwd, found.git_branch) == (
        read.session["id"],
        "calm-blue-sea",
        "/home/ada/tide",
        "main",
    )
    assert (found.started_at, found.ended_at) == ("2026-01-01T10:00:00.000Z", "2026-01-01T10:01:00.500Z")
    assert found.duration == 60.5
    assert (found.turn_count, found.prompt_count) == (3, 1)
    assert (found.usage.calls, found.usage.input_tokens, found.usage.output_tokens) == (2, 20, 14)
    assert found.total_tokens == 34
    assert found.cache_hit_rate == 60 / 80
    assert found.has_errors
    assert {name: usage.output_tokens for name, usage in found.usage_by_model.items()} == {"opus": 9, "haiku": 5}


@pytest.mark.seed("S4-23", "S4-25", "S4-26", "S4-27")
def test_unknown_is_not_zero() -> None:
    found = derived({"id": "x", "workspace": ""}, facts_of(say(1, "user", "hi")))
    assert (found.duration, found.total_tokens, found.cache_hit_rate, found.project) == (None, None, None, None)
    assert not found.has_errors
    nothing = facts_of(say(1, "assistant", token_usage={"cache_read_tokens": 0, "cache_creation_tokens": 0}))
    assert derived({"id": "x", "workspace": ""}, nothing).cache_hit_rate is None


@pytest.mark.seed("S4-23")
def test_duration_is_never_negative_and_spans_unordered_times() -> None:
    times = ("2026-01-01T10:00:30Z", "2026-01-01T10:00:00.250Z", "not a time", "2026-01-01T10:00:30.5Z")
    facts = facts_of(*(say(at, timestamp=time) for at, time in enumerate(times, 1)))
    found = derived({"id": "x", "workspace": "/a"}, facts)
    assert (found.started_at, found.ended_at) == ("2026-01-01T10:00:00.250Z", "2026-01-01T10:00:30.5Z")
    assert found.duration == 30.25


@pytest.mark.parametrize("time", ["9999-99-99T99:99:99.999Z", "0000-00-00T00:00:00.000Z", "0000-00-00T00:00:00Z"])
def test_P13_what_only_looks_like_a_time_bounds_no_session(tmp_path: Path, time: str) -> None:
    odd = claude_line("user", "u2", "u1", timestamp=time)
    for lines in ([claude_line("user", "u1", None), odd], [odd, claude_line("user", "u1", None)]):
        session = read_lines(tmp_path, *lines).session
        assert session["started_at"] == session["ended_at"] == "2026-01-01T10:00:00.000Z"


@pytest.mark.seed("S4-24", "S3-24")
def test_both_turn_counts_are_given() -> None:
    facts = facts_of(
        *chain(
            say(1, "user", "do it"),
            say(2, "assistant", call("t1")),
            say(3, "user", result("t1")),
            say(4, "user", "injected", is_meta=True),
            say(5, "user", "<command-name>/x</command-name>"),
        )
    )
    found = derived({"id": "x", "workspace": "/a"}, facts)
    assert (found.turn_count, found.prompt_count) == (4, 1)


def test_the_task_of_a_sub_agent_is_no_prompt_of_a_person() -> None:
    facts = facts_of(*chain(say(1, "user", "look for the harbour"), say(2, "assistant", "there")))
    found = derived({"id": "x", "workspace": "/a", "is_agent_session": True}, facts)
    assert (found.turn_count, found.prompt_count) == (1, 0)


@pytest.mark.seed("S1-39")
def test_changes_of_the_surroundings_are_visible() -> None:
    messages = [
        say(1, cwd="/a", git_branch="main", platform="linux", agent_version="1"),
        say(2, "assistant", cwd="/a", git_branch="main", agent_version="2"),
        say(3, cwd="/side", is_sidechain=True),
        say(4, cwd="/b", git_branch="topic", platform="macos"),
        say(5, "assistant"),
        say(6, cwd="/b", git_branch=None),
    ]
    assert [(change.index, change.name, change.before, change.after) for change in context_changes(messages)] == [
        (2, "agent_version", "1", "2"),
        (4, "cwd", "/a", "/b"),
        (4, "git_branch", "main", "topic"),
        (4, "platform", "linux", "macos"),
    ]


@pytest.mark.seed("S1-37", "S1-2")
def test_the_surroundings_of_any_message() -> None:
    messages = [
        say(1, cwd="/a", git_branch="main", platform="linux", user_type="external"),
        say(2, cwd="/side", is_sidechain=True),
        say(3, "user", result("t1")),
        say(4, cwd="/b"),
    ]
    assert context_at(messages, 3) == Context(cwd="/a", git_branch="main", platform="linux", user_type="external")
    assert context_at(messages, 2) == Context(cwd="/side")
    assert context_at(messages, 4).cwd == "/b"
    with pytest.raises(IndexError):
        context_at(messages, 5)


@pytest.mark.seed("S4-14", "S4-20", "S4-32")
def test_the_three_examples_make_a_session(tmp_path: Path) -> None:
    names = ("user", "assistant-thinking", "assistant-tool")
    read = read_lines(tmp_path, *(seed(f"seed-004/{name}") for name in names))
    found = derived(read.session, read.facts)
    assert (found.slug, found.project, found.git_branch) == ("async-roaming-allen", "project", "main")
    assert (found.duration, found.turn_count, found.total_tokens) == (60.0, 1, 1800)
    assert found.cache_hit_rate == 1.0


def test_every_demo_session_has_figures(tmp_path: Path) -> None:
    found = [derived(read.session, read.facts) for read in demo_transcripts(tmp_path / "demo")]
    assert found
    assert all(figures.duration is None or figures.duration >= 0 for figures in found)
    assert any(figures.total_tokens for figures in found)
