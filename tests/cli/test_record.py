"""clew record: any program, in any language, writes into the store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clew.store import Store
from tests.cli.running import Ran, clew, run
from tests.redact.planted import Planter
from tests.store.support import assert_whole, lines, log_of


def record(place: Path, *messages: dict[str, Any] | bytes, more: tuple[str, ...] = ()) -> Ran:
    given = b"".join(m if isinstance(m, bytes) else json.dumps(m).encode() + b"\n" for m in messages)
    return run("record", "--store", place, "--session", "s", *more, input=given)


@pytest.mark.slow
def test_each_message_is_answered_when_it_is_safe(tmp_path: Path) -> None:
    done = record(tmp_path, {"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"})
    assert (done.code, done.err) == (0, "")
    assert [answer["seq"] for answer in done.lines] == [1, 2]
    assert [list(answer) for answer in done.lines] == [["uuid", "seq"]] * 2
    assert [r["uuid"] for r in lines(log_of(tmp_path))] == [answer["uuid"] for answer in done.lines]
    assert_whole(tmp_path)
    assert clew("list", "--home", tmp_path, "--json").json[0]["messages"] == 2


@pytest.mark.slow
@pytest.mark.seed("S1-56", "S1-49", "S1-5")
def test_everything_that_a_message_can_say(tmp_path: Path) -> None:
    done = record(
        tmp_path,
        {
            "role": "user",
            "content": "look",
            "uuid": "u",
            "timestamp": "2026-11-01T10:00:00Z",
            "context": {"cwd": "/home/ada", "git_branch": "tides", "user_type": "internal"},
            "thinking": {"level": "low", "disabled": True, "triggers": ["think"]},
            "version": "7",
        },
        {
            "role": "assistant",
            "content": None,
            "uuid": "a",
            "parentUuid": "u",
            "tool_calls": [{"id": "c1", "name": "ls", "args": {"path": "."}}, {"id": "c2", "name": "ls", "input": {}}],
            "usage": {"input_tokens": 10, "cache_creation_input_tokens": 3, "outputTokens": 2},
            "todos": [{"content": "look", "status": "in_progress", "active_form": "looking"}],
            "model": "tide-2",
            "mood": "calm",
        },
        {"role": "tool", "tool_call_id": "c1", "name": "ls", "content": ["a", "b"]},
        {"role": "user", "tool_results": [{"tool_call_id": "c2", "name": "ls", "content": "", "success": False}]},
        {"role": "system", "content": "a note", "isSidechain": True},
    )
    assert (done.code, done.err) == (0, "")
    user, reply, one, two, note = lines(log_of(tmp_path))
    assert user["context"]["gitBranch"] == "tides"
    assert (user["context"]["userType"], user["version"]) == ("internal", "7")
    assert user["thinkingMetadata"] == {"level": "low", "disabled": True, "triggers": ["think"]}
    assert reply["parentUuid"] == "u"
    assert reply["message"]["content"] == ""
    assert reply["usage"] == {"inputTokens": 10, "outputTokens": 2, "cacheWriteTokens": 3}
    assert reply["metadata"] == {"clew": {"seq": 2}, "model": "tide-2", "mood": "calm"}
    assert one["toolResults"][0]["content"] == '["a","b"]'
    assert two["toolResults"][0]["success"] is False
    assert note["isSidechain"] is True
    assert_whole(tmp_path)


@pytest.mark.slow
def test_bad_lines_are_named_and_the_others_recorded(tmp_path: Path) -> None:
    bad: list[dict[str, Any] | bytes] = [
        b"not json\n",
        b"[1]\n",
        {"content": "x"},
        {"role": "robot", "content": "x"},
        {"role": "user"},
        {"role": "user", "content": 5},
        {"role": "user", "content": [1, None]},
        {"role": "user", "content": "x", "parent": "nobody"},
        {"role": "user", "content": "x", "timestamp": "noon"},
        {"role": "user", "content": "x", "todos": [{"content": "x", "status": "done"}]},
        {"role": "user", "content": "x", "todos": [{"content": "x", "colour": "red"}]},
        {"role": "user", "content": "x", "uuid": 5},
        {"role": "assistant", "content": "x", "thinking": {"level": "ultra"}},
        {"role": "assistant", "content": "x", "tool_calls": ["ls"]},
        {"role": "tool", "content": "x"},
    ]
    good = {"role": "user", "content": "fine"}
    done = record(tmp_path, good, *bad, b"\n", good, b'{"role":"user","content":"no line end"}')
    assert done.code == 4
    assert len(done.lines) == len(lines(log_of(tmp_path))) == 3
    complaints = done.err.splitlines()
    assert [line.split(":")[1] for line in complaints] == [f" line {number}" for number in range(2, len(bad) + 2)]
    assert_whole(tmp_path)


@pytest.mark.slow
def test_the_same_message_twice_is_recorded_once(tmp_path: Path) -> None:
    message = {"role": "user", "content": "x", "uuid": "mine"}
    first, again = record(tmp_path, message, message), record(tmp_path, message)
    assert first.lines == [{"uuid": "mine", "seq": 1}] * 2
    assert again.lines == [{"uuid": "mine", "seq": 1}]
    assert len(lines(log_of(tmp_path))) == 1


@pytest.mark.slow
def test_an_older_parent_makes_a_branch(tmp_path: Path) -> None:
    record(tmp_path, *({"role": "user", "content": name, "uuid": name} for name in "abc"))
    record(tmp_path, {"role": "user", "content": "d", "parent": "a"}, {"role": "user", "content": "e", "parent": None})
    assert len(Store(tmp_path).get("s").branches()) == 3


@pytest.mark.slow
def test_the_store_may_be_named_itself_and_the_level_chosen(tmp_path: Path) -> None:
    message = {"role": "user", "content": "x"}
    assert record(tmp_path / ".sage", message, more=("--durability", "system")).code == 0
    assert len(lines(log_of(tmp_path))) == 1
    assert run("record", "--store", tmp_path, "--session", "../x", input=b"").code == 2
    assert run("record", "--session", "x").code == 2


def test_nothing_in_nothing_out(tmp_path: Path) -> None:
    done = record(tmp_path)
    assert (done.code, done.raw, done.err) == (0, b"", "")
    assert not log_of(tmp_path).exists()


@pytest.mark.slow
@pytest.mark.parametrize("asked", [("--redact", "secrets"), ()], ids=["option", "settings"])
def test_every_call_with_redaction_records_and_masks(tmp_path: Path, asked: tuple[str, ...]) -> None:
    secret = Planter("record").github()
    if not asked:
        (tmp_path / ".sage").mkdir()
        (tmp_path / ".sage" / "config.json").write_text('{"clew": {"redact": "secrets"}}')
    todos = [{"content": f"use {secret}", "status": "pending"}]
    said: list[dict[str, Any]] = [{"todos": todos}, {}, {"todos": []}, {}]
    for more in said:
        done = record(tmp_path, {"role": "user", "content": f"the key is {secret}", **more}, more=asked)
        assert done.code == 0, done.err
    assert [len(line["todos"]) for line in lines(log_of(tmp_path))] == [1, 1, 0, 0]
    assert not any(secret.encode() in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


@pytest.mark.slow
def test_a_store_may_lie_in_the_data_folder_beside_copies(own_home: Path) -> None:
    data = own_home / ".local/share/clew"
    done = record(data / "mystore", {"role": "user", "content": "hello"})
    assert (done.code, done.err) == (0, "")
    for name in ("remotes", "archived"):
        done = record(data / name / "box" / "store", {"role": "user", "content": "hello"})
        assert done.code == 5 and "it is read-only" in done.err
