"""Shell completion, in the shells themselves."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from clew.cli.command_completion import SHELLS
from clew.host import data_dir
from tests.cli.running import clew, state

Complete = Callable[..., str]


def complete(*words: str, shell: str = "fish") -> list[str]:
    """Complete the last word, as the script of a shell asks for it."""
    asked = {"_CLEW_COMPLETE": f"{shell}_complete", "COMP_WORDS": " ".join(["clew", *words]), "COMP_CWORD": words[-1]}
    if shell != "fish":
        asked["COMP_CWORD"] = str(len(words))
    done = subprocess.run(
        [sys.executable, "-m", "clew"],
        env=os.environ | asked,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.strip().splitlines()


@pytest.fixture
def synced(demo: Path) -> Path:
    """The demo home, with its catalog."""
    assert clew("--home", demo, "sync").code == 0
    return demo


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_for_each_shell(shell: str) -> None:
    ran = clew("completion", shell)
    assert ran.code == 0 and "_CLEW_COMPLETE" in ran.out
    assert clew("completion", "tcsh").code == 2


def test_commands_are_completed_with_their_help() -> None:
    (found,) = complete("sea")
    assert "search" in found and "Search prompts" in found


def test_session_ids_are_completed_with_titles(synced: Path) -> None:
    (found,) = complete("--home", str(synced), "show", "f00")
    assert "f005c7db" in found and "new-moon-in-python" in found
    assert complete("--home", str(synced), "show", "f005c7db-", shell="bash") == [
        "plain,f005c7db-1dcc-4692-bc16-77f2521cfb4b"
    ]


@pytest.mark.parametrize(
    ("option", "start", "expected"),
    [
        ("--agent", "co", "codex"),
        ("--model", "claude-opus-4-6", "claude-opus-4-6"),
        ("--project", "moon", "moon.phase"),
    ],
)
def test_values_of_filters_are_completed(synced: Path, option: str, start: str, expected: str) -> None:
    assert complete("list", "--home", str(synced), option, start, shell="bash") == [f"plain,{expected}"]


def test_without_a_catalog_or_with_a_broken_one_nothing_is_said(tmp_path: Path, synced: Path) -> None:
    assert complete("--home", str(tmp_path), "show", "f") == []
    for database in data_dir().glob("catalog-*/*.sqlite*"):
        database.write_bytes(b"no database")
    assert complete("--home", str(synced), "show", "f") == []


def test_a_secret_in_a_title_is_masked(tmp_path: Path) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    path = tmp_path / ".claude" / "projects" / "-p" / "0a6c1f5e-0000-4000-8000-00000000000a.jsonl"
    path.parent.mkdir(parents=True)
    record = '{"type":"user","uuid":"u1","sessionId":"0a6c1f5e-0000-4000-8000-00000000000a",'
    record += '"timestamp":"2026-11-01T10:00:00Z","message":{"role":"user","content":"use %s now"}}\n'
    path.write_text(record % token)
    assert clew("--home", tmp_path, "sync").code == 0
    (found,) = complete("--home", str(tmp_path), "show", "0a6")
    assert "0a6c1f5e" in found and "use" in found and token not in found


SECRET = "sk-ant-api03-" + "a1B2c3D4e5F6g7H8" * 5 + "i9J0k1L2m3N4o-AA"
UNSAFE_NAMES = (
    "x\x1b[31mred",
    "x\nplain,forged",
    "`touch owned`",
    "x;touch$IFS'owned'",
    "$(touch owned)",
    "--allow-loss",
)


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_unsafe_ids_and_projects_are_not_completed(tmp_path: Path, shell: str) -> None:
    for name in (SECRET, *UNSAFE_NAMES):
        write_session(tmp_path, name, f"/srv/{name}")
    assert clew("--home", tmp_path, "sync").code == 0
    (found,) = complete("--home", str(tmp_path), "show", "", shell=shell)
    assert found.split("\t")[0] == f"plain,{SECRET[:8]}" and SECRET not in found
    assert complete("--home", str(tmp_path), "show", SECRET[:12], shell=shell) == []
    assert complete("list", "--home", str(tmp_path), "--project", "", shell=shell) == []


def test_a_name_with_a_space_is_quoted_for_bash(tmp_path: Path) -> None:
    write_session(tmp_path, "0a6c1f5e", "/srv/low tide")
    assert clew("--home", tmp_path, "sync").code == 0
    words = ("list", "--home", str(tmp_path), "--project", "low")
    assert complete(*words, shell="bash") == ["plain,'low tide'"]
    assert any("low tide" in line for line in complete(*words))


def test_a_message_of_a_session_is_not_completed_as_a_file(synced: Path) -> None:
    assert complete("--home", str(synced), "show", "f005#") == []


def test_completion_writes_nothing(synced: Path) -> None:
    before = state(data_dir())
    assert complete("--home", str(synced), "show", "f00")
    assert state(data_dir()).keys() == before.keys()


def test_named_sources_are_not_completed_from_another_catalog(synced: Path) -> None:
    assert complete("--source", "archive", "--home", str(synced), "show", "f00") == []


def write_session(home: Path, name: str, folder: str) -> None:
    """A session of Claude Code with this id, in this folder."""
    path = home / ".claude" / "projects" / "-p" / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {"type": "user", "uuid": "u1", "cwd": folder, "timestamp": "2026-11-01T10:00:00Z"}
    path.write_text(json.dumps(record | {"message": {"role": "user", "content": "Hello"}}) + "\n")


@pytest.fixture
def with_shell(tmp_path: Path) -> Complete:
    """Runs a script in a shell that finds `clew` on its path; skips where the shell is missing."""
    program = tmp_path / "bin" / "clew"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m clew "$@"\n')
    program.chmod(0o755)

    def run(shell: str, script: str, *options: str) -> str:
        found = shutil.which(shell)
        if found is None:
            pytest.skip(f"{shell} is not installed")
        env = os.environ | {"PATH": f"{program.parent}:{os.environ['PATH']}", "TERM": "dumb"}
        done = subprocess.run(
            [found, *options, "-c", script], env=env, capture_output=True, text=True, timeout=120, check=False
        )
        return done.stdout + done.stderr

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("show f00", "show f005c7db"),
        ("show @la", "show @last"),
        ("show claude:f00", "show claude:f005c7db"),
        ("show claude-code:@l", "show claude-code:@last"),
        ("list --agent=cod", "list --agent=codex"),
    ],
)
def test_bash_completes_the_line(synced: Path, with_shell: Complete, typed: str, expected: str) -> None:
    """In an interactive bash: what its line editor keeps of a word with `:`, `@` or `=` is seen nowhere else."""
    program = f"""
import os, pty, select, time
child, terminal = pty.fork()
if child == 0:
    os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
def type_until(keys, text):
    os.write(terminal, keys.encode())
    shown, deadline = "", time.monotonic() + 60
    while text not in shown and time.monotonic() < deadline:
        if select.select([terminal], [], [], 1)[0]:
            shown += os.read(terminal, 65536).decode()
    return shown
type_until('eval "$(clew completion bash)"; complete -F _clew_completion shown\\n', "\\n")
type_until("shown() {{ if [[ $_CLEW_COMPLETE ]]; then clew; else echo RAN [$*]; fi; }}\\n", "\\n")
type_until("echo rea''dy\\n", "ready")
print(type_until("shown --home {synced} {typed}\\t\\n", "RAN ["))
type_until("exit\\n", "exit")
"""
    assert f"RAN [--home {synced} {expected}]" in with_shell(sys.executable, program)


@pytest.mark.slow
def test_fish_completes_with_titles(synced: Path, with_shell: Complete) -> None:
    script = f"clew completion fish | source; complete -C 'clew --home {synced} show f00'"
    assert "f005c7db\tnew-moon-in-python · moon.phase" in with_shell("fish", script, "--no-config")


@pytest.mark.slow
def test_zsh_completes_with_titles(synced: Path, with_shell: Complete) -> None:
    # The builtins of completion run only inside a line editor, so that of a second zsh in a pseudo-terminal is used.
    script = f"""
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "autoload -U compinit; compinit -u -D; PS1=; zstyle ':completion:*' verbose yes; LISTMAX=0"
zpty -w z 'eval "$(clew completion zsh)"; echo rea''dy'
zpty -r -m z line '*ready*'
zpty -w -n z $'clew --home {synced} show f\\t'
zpty -r -m z line '*f005c7db*'
print -r -- $line
zpty -d z
"""
    assert "f005c7db" in with_shell("zsh", script, "-f")
    script = script.replace("show f\\t", "show \\t").replace("*f005c7db*", "*new-moon-in-python*")
    assert "new-moon-in-python" in with_shell("zsh", script, "-f")


@pytest.mark.slow
def test_the_lines_for_fzf_begin_with_an_id(synced: Path, with_shell: Complete) -> None:
    """`clew list | fzf --header-lines 1 | awk '{print $1}'`, with head in the place of fzf."""
    line = f"clew show --home {synced} $(clew list --home {synced} | sed 1d | grep moon.phase | awk '{{print $1}}')"
    assert "first new moon after" in with_shell("bash", line, "--norc")
