"""clew convert and clew resume, as a person meets them."""

from __future__ import annotations

import json
import os
import shlex
import stat
from pathlib import Path

import pytest

from clew.host import Host
from clew.library import Library
from tests.cli.running import FORKED, LATEST, Ran, clew, run, state
from tests.demo_home import write_small_demo

PLAIN = "4e27a2d4-d285-4d42-9f9d-f3fa74062c23"
"""A session of the demo that every agent can hold whole."""


def test_the_outcome_as_json(demo: Path, tmp_path: Path) -> None:
    done = clew("--home", demo, "convert", PLAIN, "--to", "sage-agent", "--home", tmp_path, "--json")
    assert done.code == 0
    assert done.json.keys() == {"session_id", "files", "resume", "losses", "imports"}
    assert [loss["what"] for loss in done.json["losses"]] == ["4 messages before the compaction"]
    assert all(loss["is_note"] for loss in done.json["losses"])
    assert all(Path(file).is_relative_to(tmp_path) and Path(file).is_file() for file in done.json["files"])
    assert done.json["resume"] == ["sage", "-r", done.json["session_id"]]


def test_the_converted_session_is_listed(demo: Path, tmp_path: Path) -> None:
    converted = clew("--home", demo, "convert", PLAIN, "--to", "sage-agent", "--home", tmp_path, "--json").json
    (row,) = clew("list", "--home", tmp_path, "--json").json
    assert (row["agent"], row["id"]) == ("sage-agent", converted["session_id"])


def test_losses_are_refused_with_code_6_and_the_list(demo: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    done = clew("--home", demo, "convert", FORKED, "--to", "sage-agent", "--home", home, "--json")
    assert done.code == 6
    assert done.json["losses"] == [
        {
            "message": None,
            "what": "2 messages on other branches",
            "why": "only one branch is converted; --branch selects another",
            "is_note": False,
        }
    ]
    assert done.json["files"] == []
    assert not home.exists()
    plain = clew("--home", demo, "convert", FORKED, "--to", "sage-agent", "--home", home)
    assert plain.code == 6
    assert "2 messages on other branches" in plain.err and "--allow-loss" in plain.err
    assert not home.exists()


def test_allowed_losses_are_still_told(demo: Path, tmp_path: Path) -> None:
    done = clew("--home", demo, "convert", FORKED, "--to", "sage-agent", "--home", tmp_path, "--allow-loss")
    assert done.code == 0
    assert "2 messages on other branches" in done.err
    assert Path(done.out.splitlines()[0]).is_file()


def test_a_dry_run_writes_nothing(demo: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    done = clew("--home", demo, "convert", FORKED, "--to", "sage-agent", "--home", home, "--dry-run", "--json")
    assert done.code == 0
    assert len(done.json["losses"]) == 1
    assert not home.exists()


def test_a_session_in_the_targets_own_home_is_found(demo: Path, tmp_path: Path) -> None:
    clew("--home", demo, "convert", PLAIN, "--to", "sage-agent", "--home", tmp_path)
    (row,) = clew("list", "--home", tmp_path, "--json").json
    done = clew("convert", row["id"], "--to", "claude-code", "--home", tmp_path, "--json")
    assert done.code == 0
    assert done.json["session_id"] == PLAIN


@pytest.mark.slow
def test_unknown_words_get_one_clear_line(demo: Path, tmp_path: Path) -> None:
    unknown = run("--home", demo, "convert", PLAIN, "--to", "nobody", "--home", tmp_path)
    assert unknown.code == 2
    assert "unknown agent 'nobody'" in unknown.err and "Traceback" not in unknown.err
    missing = run("--home", demo, "convert", "zzz", "--to", "sage-agent", "--home", tmp_path)
    assert missing.code == 1
    assert missing.err.count("\n") == 1


def test_resume_prints_the_command_and_the_folder(demo: Path) -> None:
    done = clew("resume", PLAIN, "--home", demo, "--print")
    assert done.code == 0
    assert done.out.startswith("cd ") and done.out.endswith(f"claude --resume {PLAIN}\n")
    assert f"HOME={demo}" in done.out


def test_resume_in_another_agent_converts_first(demo: Path, tmp_path: Path) -> None:
    clew("--home", demo, "convert", PLAIN, "--to", "claude-code", "--home", tmp_path)
    (row,) = clew("list", "--home", tmp_path, "--json").json
    done = clew("resume", row["id"], "--in", "sage-agent", "--home", tmp_path, "--json")
    assert done.code == 0
    assert done.json["argv"][:2] == ["sage", "-r"]
    assert len(clew("list", "--home", tmp_path, "--json").json) == 2


def test_resume_starts_no_other_conversation_than_the_one_that_was_named(tmp_path: Path) -> None:
    write_small_demo(tmp_path / "home")
    (archive,) = (tmp_path / "home/.emacs.d").rglob("history/*.jsonl")
    session = Library(Host.at(tmp_path / "home")).get(str(archive))
    done = clew("resume", session.id, "--home", tmp_path / "home", "--print")
    assert (done.code, done.out) == (6, "") and "exists already" in done.err


def test_resume_brings_a_form_that_its_agent_has_forgotten_to_the_present_one(tmp_path: Path) -> None:
    folder = tmp_path / "home/.codex/sessions"
    folder.mkdir(parents=True)
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Where is the tide?"}]}
    head = {"id": "5c1c7f0e-0000-4000-8000-00000000000a", "timestamp": "2025-05-01T10:00:00.000Z", "instructions": ""}
    (folder / f"rollout-2025-05-01-{head['id']}.json").write_text(json.dumps({"session": head, "items": [said]}))
    done = clew("resume", "5c1c", "--home", tmp_path / "home", "--print")
    convert, resume = done.out.splitlines()
    assert done.code == 0 and " convert 5c1c --to codex " in convert and str(head["id"]) not in resume
    done = clew("resume", "5c1c", "--home", tmp_path / "home", "--json")
    assert done.code == 0 and "converted: " in done.err and str(head["id"]) not in done.out


def follow(printed: Ran) -> str:
    """Run the conversion of the two commands that `resume --print` printed; returns the second."""
    convert, resume = printed.out.splitlines()
    program, *words, joined = shlex.split(convert)
    assert (program, joined) == ("clew", "&&")
    done = clew(*words)
    assert done.code == 0, done
    return resume


@pytest.mark.parametrize(
    "words",
    [
        (PLAIN, "--in", "gemini"),
        ("@last", "--in", "codex", "--allow-loss"),
        ("f005", "--branch", "3", "--allow-loss"),
        ("019c57",),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("is_json", [False, True])
def test_resume_with_print_writes_nothing(tmp_path: Path, words: tuple[str, ...], is_json: bool) -> None:
    home = tmp_path / "home"
    write_small_demo(home)
    clew("list", "--home", home)
    before = state(tmp_path)
    printed = clew("resume", *words, "--home", home, "--print")
    again = clew("resume", *words, "--home", home, "--print", "--json")
    assert (printed.code, again.code, state(tmp_path)) == (0, 0, before)
    if is_json:
        assert clew(*again.json["convert"][1:]).code == 0
    else:
        assert follow(printed).endswith(shlex.join(again.json["argv"]))
    # What is converted now is what the second command goes on with.
    done = clew("resume", *words, "--home", home, "--json").json
    assert done == {**again.json, "convert": None}
    assert clew("resume", *words, "--home", home, "--print").out.splitlines() == printed.out.splitlines()[1:]


def test_resume_refuses_losses(demo: Path, tmp_path: Path) -> None:
    words = ("--home", demo, "resume", LATEST, "--to", "sage-agent", "--home", tmp_path)
    done = clew(*words, "--json")
    assert done.code == 6
    assert "a picture" in done.err
    assert not list(tmp_path.iterdir())
    dry = clew(*words, "--dry-run")
    assert dry.code == 0 and "a picture" in dry.err
    assert "--allow-loss" not in dry.out
    assert "--allow-loss" in clew(*words, "--dry-run", "--allow-loss").out


@pytest.mark.slow
def test_resume_becomes_the_agent(demo: Path, tmp_path: Path) -> None:
    project, programs = tmp_path / "project", tmp_path / "bin"
    project.mkdir()
    programs.mkdir()
    agent = programs / "claude"
    agent.write_text('#!/bin/sh\necho "$PWD $HOME $@"\n')
    agent.chmod(agent.stat().st_mode | stat.S_IXUSR)
    home = tmp_path / "home" / ".claude" / "projects" / "x"
    home.mkdir(parents=True)
    session = "11111111-2222-4333-8444-555555555555"
    record = f'{{"type":"user","uuid":"u1","cwd":"{project}","message":{{"role":"user","content":"Hello"}}}}\n'
    (home / f"{session}.jsonl").write_text(record)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    done = run("resume", session, "--home", tmp_path / "home", env={**os.environ, "PATH": path})
    assert done.out == f"{project} {tmp_path / 'home'} --resume {session}\n"


@pytest.mark.slow
def test_resume_says_what_is_missing(demo: Path, tmp_path: Path) -> None:
    empty = {**os.environ, "PATH": str(tmp_path)}
    assert "not installed" in run("resume", PLAIN, "--home", demo, env=empty).err


@pytest.mark.slow
def test_resume_writes_nothing_where_the_agent_is_not_installed(tmp_path: Path) -> None:
    write_small_demo(tmp_path / "home")
    before = sorted((tmp_path / "home").rglob("*"))
    done = run("resume", PLAIN, "--in", "gemini", "--home", tmp_path / "home", env={**os.environ, "PATH": "/nowhere"})
    assert done.code == 2
    assert sorted((tmp_path / "home").rglob("*")) == before


def test_resume_twice_goes_on_with_what_was_converted_once(tmp_path: Path) -> None:
    write_small_demo(tmp_path / "home")
    first, second = (
        clew("resume", PLAIN, "--in", "gemini", "--home", tmp_path / "home", "--json") for _ in ("once", "again")
    )
    assert first.code == second.code == 0
    assert first.json == second.json


def test_a_source_is_only_read(tmp_path: Path, home: Path) -> None:
    write_small_demo(tmp_path / "attic")
    clew("sources", "add", tmp_path / "attic")
    before = sorted((tmp_path / "attic").rglob("*"))
    done = clew("--source", "attic", "resume", PLAIN, "--print")
    assert done.code == 0 and not (home / ".claude").exists()
    follow(done)
    assert sorted((tmp_path / "attic").rglob("*")) == before
    assert list((home / ".claude").rglob("*.jsonl"))


def test_W01_an_id_cannot_become_an_option(tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "projects" / "x"
    folder.mkdir(parents=True)
    record = '{"type":"user","uuid":"u1","cwd":"/","message":{"role":"user","content":"Hello"}}\n'
    (folder / "--dangerously-skip-permissions.jsonl").write_text(record)
    done = clew("resume", "@last", "--home", tmp_path, "--print")
    assert done.code == 2
    assert "not a safe id" in done.err


def test_a_registry_that_cannot_be_read_is_not_replaced(demo: Path, tmp_path: Path) -> None:
    registry = tmp_path / ".gemini" / "projects.json"
    registry.parent.mkdir()
    registry.write_text('{"projects": {"/home/ada/a": "a",}}')
    done = clew("--home", demo, "convert", PLAIN, "--to", "gemini", "--home", tmp_path)
    assert done.code == 6
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [registry]


def test_a_chosen_branch_goes_over_and_the_others_are_named(demo: Path, tmp_path: Path) -> None:
    words = ("--home", demo, "convert", FORKED, "--to", "codex", "--home", tmp_path, "--branch", "3", "--json")
    refused, done = clew(*words), clew(*words, "--allow-loss")
    assert (refused.code, done.code) == (6, 0)
    assert [loss["what"] for loss in done.json["losses"]] == ["4 messages on other branches"]


def test_nothing_said_is_nothing_to_convert(tmp_path: Path) -> None:
    path = tmp_path / "11111111-2222-4333-8444-555555555555.jsonl"
    path.write_text('{"type":"summary","summary":"Nothing","leafUuid":"x"}\n')
    done = clew("convert", path, "--to", "codex", "--home", tmp_path / "home")
    assert done.code == 1
    assert "the session has no messages to convert" in done.err
    assert not (tmp_path / "home").exists()


def test_a_recorded_folder_that_cannot_be_a_file_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "11111111-2222-4333-8444-555555555555.jsonl"
    message = {"role": "user", "content": "Hello"}
    path.write_text(json.dumps({"type": "user", "uuid": "u1", "cwd": f"/{'x' * 300}", "message": message}) + "\n")
    done = clew("convert", path, "--to", "pi", "--home", tmp_path / "home")
    assert done.code == 4 and "not a safe file name" in done.err
    assert not (tmp_path / "home").exists()


def test_a_rollout_written_anew_is_named_by_its_new_id(demo: Path, tmp_path: Path) -> None:
    (row, *_) = clew("--home", demo, "list", "--agent", "codex", "--json").json
    done = clew("--home", demo, "convert", row["id"], "--to", "codex", "--home", tmp_path, "--allow-loss", "--json")
    assert done.json["session_id"] in Path(done.json["files"][0]).name


def test_every_session_of_the_demo_shows_its_raw_records(demo: Path) -> None:
    for row in clew("--home", demo, "list", "--json").json:
        done = clew("--home", demo, "show", f"{row['agent']}:{row['id']}", "--raw")
        assert done.code == 0
        assert done.raw


def test_resume_names_what_the_agent_itself_finds(tmp_path: Path) -> None:
    """A list of prompts and a thread that was put away are converted first; a sub-agent goes on with its session."""
    home = tmp_path / "home"
    write_small_demo(home)
    for reference, program in (("b292", "gemini"), ("019c57", "codex")):
        done = clew("resume", reference, "--home", home, "--json")
        assert done.code == 0 and done.json["argv"][0] == program
        assert "converted: " in done.err and reference not in done.out
    for reference, parent in (("agent-a6d4", "38ed"), ("b8d9", "7c1e")):
        done = clew("resume", reference, "--home", home, "--print")
        assert done.code == 2 and f"`clew resume {parent}" in done.err


def test_resume_knows_no_folder_where_there_is_only_a_hash(demo: Path) -> None:
    done = clew("resume", "2e9f", "--home", demo, "--print")
    assert done.code == 0 and "cd " not in done.out and "session's folder is known" in done.err
    assert clew("resume", "2e9f", "--home", demo, "--json").json["cwd"] is None


def test_resume_goes_on_with_another_branch(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write_small_demo(home)
    done = clew("resume", "f005", "--branch", "3", "--allow-loss", "--home", home, "--json")
    assert done.code == 0 and "converted: " in done.err and "f005" not in done.out


@pytest.mark.parametrize("words", [("list", "--home", ""), ("--home", "", "list"), ("--home", "", "stats", "--json")])
def test_a_home_without_a_name_is_refused(words: tuple[str, ...]) -> None:
    done = clew(*words)
    assert done.code == 2 and "the path is empty" in done.err


def test_nothing_is_converted_into_a_home_without_a_name(demo: Path) -> None:
    assert clew("--home", demo, "convert", PLAIN, "--to", "codex", "--home", "").code == 2


@pytest.mark.slow
def test_P11_a_pipe_in_the_place_of_the_names_of_threads_does_not_block(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write_small_demo(home)
    (home / ".codex/session_index.jsonl").unlink(missing_ok=True)
    os.mkfifo(home / ".codex/session_index.jsonl")
    assert run("--home", home, "list", "--agent", "codex").code == 0


def sessions_of(home: Path, agent: str) -> int:
    return len(clew("--home", home, "list", "--agent", agent, "--json").json or []) if home.is_dir() else 0


@pytest.mark.parametrize("words", [("convert", PLAIN, "--to", "gemini"), ("resume", PLAIN, "--in", "gemini")])
def test_a_session_is_written_below_your_own_home_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    write_small_demo(tmp_path / "own")
    monkeypatch.setenv("HOME", str(tmp_path / "own"))
    before = sessions_of(tmp_path / "own", "gemini")
    done = clew(*words, "--json")
    assert done.code == 0, done.err
    assert sessions_of(tmp_path / "own", "gemini") == before + 1


@pytest.mark.parametrize("words", [("convert", PLAIN, "--to", "gemini"), ("resume", PLAIN, "--in", "gemini")])
def test_the_home_before_the_command_is_read_and_the_one_after_it_is_written(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    write_small_demo(source)
    target.mkdir()
    before = sessions_of(source, "gemini")
    done = clew("--home", source, *words, "--home", target, "--json")
    assert done.code == 0, done.err
    assert (sessions_of(source, "gemini"), sessions_of(target, "gemini")) == (before, 1)
    done = clew("--home", source, *words, "--json")
    assert done.code == 0, done.err
    assert sessions_of(source, "gemini") == before + 1


def thinking_session(home: Path) -> None:
    thought = {"type": "thinking", "thinking": "The tide turns at six.", "signature": "s"}
    records: list[dict[str, object]] = [
        {"type": "user", "uuid": "u1", "parentUuid": None, "message": {"role": "user", "content": "When?"}},
        {
            "type": "assistant",
            "uuid": "u2",
            "parentUuid": "u1",
            "message": {"role": "assistant", "content": [thought, {"type": "text", "text": "At six."}]},
        },
    ]
    common = {"sessionId": THINKING, "cwd": "/home/ada/src/bell", "timestamp": "2026-11-01T10:00:00.000Z"}
    path = home / ".claude/projects/-home-ada-src-bell" / f"{THINKING}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps({**common, **record}) + "\n" for record in records))


THINKING = "5a5a5a5a-1111-4111-8111-111111111111"


def test_the_thinking_of_another_model_is_noted_and_needs_no_consent(tmp_path: Path) -> None:
    thinking_session(tmp_path)
    printed = clew("--home", tmp_path, "resume", THINKING, "--in", "sage-agent", "--print")
    assert printed.code == 0 and "--allow-loss" not in printed.out
    done = clew("--home", tmp_path, "convert", THINKING, "--to", "sage-agent")
    assert done.code == 0, done.err
    assert "thinking: Sage Agent cannot hold what another model thought" in done.err
