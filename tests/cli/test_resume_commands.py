"""The command that `clew resume` prints or starts: names from a session cannot change what it does."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from clew.render.shell import shell_word
from tests.cli.running import Ran, clew, run
from tests.redact.planted import Planter

SESSION = "11111111-2222-4333-8444-555555555555"

NAMES = {
    "escape sequence": "a\x1b]0;owned\x07b\x1b[2Jc",
    "C1 control": "a\x9b2Jb",
    "newline": "a\ntouch owned\n",
    "carriage return": "a\rtouch owned",
    "tab": "a\tb",
    "bidi override": "a\u202egnp.exe",
    "zero width": "a\u200b\u200c\ufeffb",
    "invisible letter": "a\u3164\u115fb",
    "tag characters": "a\U000e0041b",
    "apostrophes": "it's; touch owned; '",
    "backslash and apostrophe": "a\\'; touch owned; #",
    "backslash at the end": "a\\",
    "command substitution": "$(touch owned)`touch owned`${IFS}",
    "double quotes": '"; touch owned; "',
    "history": "a!!b\x1b!touch",
    "dash": "-P",
    "plain": "h\u00e9 \u6f22 \U0001f41a",
}


def home_of(folder: str, home: Path, name: str = SESSION) -> Path:
    path = home / ".claude" / "projects" / "x" / f"{name}.jsonl"
    path.parent.mkdir(parents=True)
    record = {"type": "user", "uuid": "u1", "cwd": folder, "message": {"role": "user", "content": "Hello"}}
    path.write_text(json.dumps(record) + "\n")
    return home


def printed(home: Path) -> Ran:
    done = clew("resume", SESSION, "--home", home, "--print")
    assert done.code == 0
    return done


@pytest.fixture
def agent(tmp_path: Path) -> dict[str, str]:
    """An environment in which `claude` writes down its folder and its arguments."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "claude").write_text('#!/bin/sh\npwd -P >"$HOME/folder"\nprintf "%s\\n" "$@" >"$HOME/arguments"\n')
    (programs / "claude").chmod(0o755)
    return {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}


def told(home: Path) -> tuple[bytes, list[str]]:
    folder = (home / "folder").read_bytes().removesuffix(b"\n")
    return folder, (home / "arguments").read_text().splitlines()


@pytest.mark.parametrize("shell", ["bash", "zsh"])
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_the_printed_command_enters_exactly_the_sessions_folder(
    tmp_path: Path, agent: dict[str, str], name: str, shell: str
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    folder = tmp_path / "project" / name
    folder.mkdir(parents=True)
    home = home_of(str(folder), tmp_path / "home")
    done = printed(home)
    line = done.out.removesuffix("\n")
    assert line.isprintable() and line.startswith("cd -- ")
    subprocess.run([shell, "-c", line], cwd=tmp_path, env=agent, check=True, timeout=30)
    assert told(home) == (os.fsencode(folder.resolve()), ["--resume", SESSION])
    assert not list(tmp_path.rglob("owned"))


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_the_printed_command_runs_nothing_else_in_a_plain_posix_shell(
    tmp_path: Path, agent: dict[str, str], name: str
) -> None:
    """Such a shell may not know `$'...'`; then it finds no such folder."""
    folder = tmp_path / "project" / name
    folder.mkdir(parents=True)
    home = home_of(str(folder), tmp_path / "home")
    subprocess.run(["sh", "-c", printed(home).out], cwd=tmp_path, env=agent, check=False, timeout=30)
    assert not list(tmp_path.rglob("owned"))


def test_variables_of_the_user_do_not_lead_the_agent_away_from_a_named_home(
    tmp_path: Path, agent: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = home_of(str(tmp_path), tmp_path / "home")
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "own"))
    program = Path(agent["PATH"].split(os.pathsep)[0], "claude")
    program.write_text(program.read_text() + 'printf "%s" "$CLAUDE_CONFIG_DIR" >"$HOME/configuration"\n')
    done = printed(home)
    assert f"&& env -u CLAUDE_CONFIG_DIR HOME={home} claude --resume" in done.out
    assert clew("resume", SESSION, "--home", home, "--json").json["unset"] == ["CLAUDE_CONFIG_DIR"]
    environment = {**agent, "CLAUDE_CONFIG_DIR": str(tmp_path / "own")}
    subprocess.run(["sh", "-c", done.out], cwd=tmp_path, env=environment, check=True, timeout=30)
    assert told(home)[1] == ["--resume", SESSION] and (home / "configuration").read_text() == ""
    (home / "configuration").unlink()
    assert run("resume", SESSION, "--home", home, env=environment, cwd=tmp_path).code == 0
    assert (home / "configuration").read_text() == ""


def test_a_recorded_folder_cannot_become_an_option_of_cd(tmp_path: Path) -> None:
    assert printed(home_of("-P/x", tmp_path)).out.startswith("cd -- -P/x && ")


@pytest.mark.slow
def test_what_cannot_be_a_folder_is_not_printed(tmp_path: Path) -> None:
    done = printed(home_of("/a\0b", tmp_path))
    assert "cd " not in done.out and done.out.endswith(f"claude --resume {SESSION}\n")
    assert "session's folder is known" in done.err
    assert clew("resume", SESSION, "--home", tmp_path, "--json").json["cwd"] is None
    assert run("resume", SESSION, "--home", tmp_path).code != 0


@pytest.mark.parametrize("name", ["-x", "--help", "a\x1bb", "a\nb", "a\u202eb", ".x"], ids=repr)
def test_an_id_that_could_steer_something_is_refused(tmp_path: Path, name: str) -> None:
    done = clew("resume", "@last", "--print", "--home", home_of("/", tmp_path, name))
    assert (done.code, done.out) == (2, "")
    assert "not a safe id for a command line" in done.err and "\x1b" not in done.err


def test_an_id_with_shell_syntax_is_one_argument(tmp_path: Path, agent: dict[str, str]) -> None:
    name = "a\\'; touch owned; $(touch owned) #"
    home = home_of(str(tmp_path), tmp_path / "home", name)
    done = clew("resume", "@last", "--print", "--home", home)
    subprocess.run(["bash", "-c", done.out], cwd=tmp_path, env=agent, check=True, timeout=30)
    assert told(home)[1] == ["--resume", name]
    assert not list(tmp_path.rglob("owned"))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_the_agent_is_started_without_a_shell(tmp_path: Path, agent: dict[str, str], name: str) -> None:
    folder = tmp_path / "project" / name
    folder.mkdir(parents=True)
    home = home_of(str(folder), tmp_path / "home")
    assert run("resume", SESSION, "--home", home, env=agent, cwd=tmp_path).code == 0
    assert told(home) == (os.fsencode(folder.resolve()), ["--resume", SESSION])
    assert not list(tmp_path.rglob("owned"))


@pytest.mark.slow
@pytest.mark.parametrize("entry", ["", "."])
def test_no_program_of_the_sessions_folder_is_started(tmp_path: Path, agent: dict[str, str], entry: str) -> None:
    """An entry of PATH that means the present folder does not mean the one that a session names."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "claude").write_text('#!/bin/sh\ntouch "$HOME/owned"\n')
    (folder / "claude").chmod(0o755)
    home = home_of(str(folder), tmp_path / "home")
    environment = {**agent, "PATH": f"{entry}{os.pathsep}{agent['PATH']}"}
    run("resume", SESSION, "--home", home, env=environment, cwd=tmp_path)
    assert told(home)[0] == os.fsencode(folder.resolve()) and not (home / "owned").exists()


@pytest.mark.slow
def test_a_session_without_a_folder_is_not_started(tmp_path: Path, agent: dict[str, str]) -> None:
    done = run("resume", SESSION, "--home", home_of("", tmp_path / "home"), env=agent, cwd=tmp_path)
    assert done.code != 0 and "does not record its folder; use --dry-run" in done.err


def test_the_session_that_a_hint_names_is_quoted(tmp_path: Path) -> None:
    parent = "x`touch owned`; touch owned"
    path = tmp_path / ".claude" / "projects" / "x" / "agent-a1.jsonl"
    path.parent.mkdir(parents=True)
    record = {"type": "user", "uuid": "u1", "cwd": "/", "isSidechain": True, "sessionId": parent, "agentId": "a1"}
    path.write_text(json.dumps({**record, "message": {"role": "user", "content": "Hello"}}) + "\n")
    done = clew("resume", "@last", "--print", "--home", tmp_path)
    assert done.code == 2 and f"`clew resume {shell_word(parent)}` continues" in done.err


@pytest.mark.parametrize("folder", ["/a\ud800b", "/a\udcff\udc9bb"], ids=["half of a character", "invalid UTF-8"])
def test_a_folder_that_is_no_text_is_printed_as_text(tmp_path: Path, folder: str) -> None:
    done = printed(home_of(folder, tmp_path))
    assert done.out.startswith("cd -- '/a\ufffd") and done.out.removesuffix("\n").isprintable()


def test_a_word_that_is_no_text_keeps_its_bytes() -> None:
    word = shell_word(os.fsdecode(b"a\xff\x9b'b"))
    assert word.isascii()
    assert subprocess.check_output(["bash", "-c", f"printf %s {word}"]) == b"a\xff\x9b'b"
    assert shell_word("\ud800").isascii()


def test_words_are_quoted_only_where_they_need_it() -> None:
    assert shell_word("/home/ada/src/tide-pool") == "/home/ada/src/tide-pool"
    assert shell_word("it's") == "'it'\"'\"'s'"
    assert shell_word("a b\x1b") == r"$'a b\x1b'"
    assert shell_word("C:\\src") == "'C:\\src'"
    assert shell_word("") == "''"


def test_a_masked_folder_is_one_quoted_word(tmp_path: Path) -> None:
    """A marker in brackets is a pattern for a shell, which could enter another folder."""
    home = home_of(f"/home/ada/{Planter('resume').github()}/bell", tmp_path)
    (place,) = re.findall(r"cd -- (\S+) && ", printed(home).out)
    assert place.startswith("'/home/ada/[REDACTED:") and place.endswith("]/bell'")
    convert, _ = clew("resume", SESSION, "--in", "codex", "--home", home, "--print").out.splitlines()
    assert shlex.split(convert)[-1] == "&&"


def test_a_word_of_the_command_is_not_taken_for_a_secret(tmp_path: Path) -> None:
    home = home_of("/home/ada/src/password", tmp_path)
    done = printed(home)
    assert done.err == "" and done.out.endswith(f"claude --resume {SESSION}\n")
    assert done.out.startswith("cd -- /home/ada/src/password && ")


def test_what_was_converted_with_losses_is_resumed_without_asking_again(demo: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(demo, home)
    assert clew("--home", home, "resume", "f005", "--in", "codex", "--json").code == 6
    assert clew("--home", home, "convert", "f005", "--to", "codex", "--allow-loss").code == 0
    done = clew("--home", home, "resume", "f005", "--in", "codex", "--print")
    assert done.code == 0 and "codex resume" in done.out and "clew convert" not in done.out


@pytest.mark.parametrize("program", ["opencode", "kilo", "goose"])
def test_a_session_is_imported_from_a_home_that_is_named_relative_to_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.chdir(tmp_path)
    project = tmp_path / "project"
    project.mkdir()
    home_of(str(project), tmp_path / "home")
    converted = clew("--home", "home", "convert", SESSION, "--to", program, "--home", "other", "--json").json
    (argv,) = converted["imports"]
    assert Path(argv[-1]).is_relative_to(tmp_path / "other") and Path(argv[-1]).is_file()
    (tmp_path / "bin").mkdir()
    script = '#!/bin/sh\nfor last; do :; done\ncase "$*" in *import*) test -f "$last";; esac\n'
    (tmp_path / "bin" / program).write_text(script)
    (tmp_path / "bin" / program).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    done = run("--home", "home", "resume", SESSION, "--to", program, env=environment, cwd=tmp_path)
    assert (done.code, done.err.count("failed")) == (0, 0)


def test_an_original_is_imported_from_a_home_that_is_named_relative_to_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    home_of(str(tmp_path), tmp_path / "home")
    goose = clew("--home", "home", "convert", SESSION, "--to", "goose", "--home", "one", "--json").json["session_id"]
    pi = clew("--home", "one", "convert", goose, "--to", "pi", "--home", "two", "--json").json["session_id"]
    (argv,) = clew("--home", "two", "convert", pi, "--to", "goose", "--home", "three", "--json").json["imports"]
    assert Path(argv[-1]).is_relative_to(tmp_path / "three") and Path(argv[-1]).is_file()
