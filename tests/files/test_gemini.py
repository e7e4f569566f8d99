"""What sessions of Gemini CLI prove about files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clew.agents import registry
from clew.file_history.history import FileHistory
from clew.host import data_dir
from tests.cli.running import clew
from tests.files.asking import is_absent, known

FOLDER = "/home/ada/bell"
BELL, HORN = f"{FOLDER}/bell.py", f"{FOLDER}/horn.py"
SESSION = "0c5f8e21-7b3a-4d96-a1e4-52d7c9f08b63"


class Chat:
    """A chat that grows. A call and its result are one record, and two messages."""

    def __init__(self) -> None:
        time = "2026-10-20T09:14:00.000Z"
        header = {"sessionId": SESSION, "projectHash": "0" * 64, "startTime": time, "lastUpdated": time}
        self.records: list[dict[str, Any]] = [header]
        self.index = 0
        self._calls = 0
        self.user("Go.")

    def user(self, text: str) -> int:
        self.index += 1
        time = "2026-10-20T09:15:00.000Z"
        self.records.append({"id": f"m-{self.index}", "timestamp": time, "type": "user", "content": text})
        return self.index

    def tool(
        self, name: str, args: dict[str, Any], display: Any = "", output: str = "ok", status: str = "success"
    ) -> int:
        self.index += 2
        self._calls += 1
        key = f"c-{self._calls}"
        word = "output" if status == "success" else "error"
        result = [{"functionResponse": {"id": key, "name": name, "response": {word: output}}}]
        call = {"id": key, "name": name, "args": args, "result": result, "status": status, "resultDisplay": display}
        message = {"id": f"m-{self.index}", "timestamp": "2026-10-20T09:15:05.000Z", "type": "gemini", "content": ""}
        self.records.append({**message, "toolCalls": [call]})
        return self.index

    def change(self, name: str, path: str, old: str, new: str, is_new: bool = False) -> int:
        display = {"fileDiff": "", "filePath": path, "originalContent": old, "newContent": new, "isNewFile": is_new}
        return self.tool(name, {"file_path": path, "content": new}, display)

    def write(self, home: Path) -> FileHistory:
        project = home / ".gemini" / "tmp" / "bell"
        path = project / "chats" / "session-2026-10-20T09-14-0c5f8e21.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        (project / ".project_root").write_text(FOLDER)
        path.write_text("".join(json.dumps(record) + "\n" for record in self.records), encoding="utf-8")
        agent = registry.get("gemini")
        return FileHistory(agent, agent.locate(path))


def test_a_new_file_is_exact(tmp_path: Path) -> None:
    chat = Chat()
    done = chat.change("write_file", BELL, "", "one\r\n", is_new=True)
    history = chat.write(tmp_path)
    assert known(history, done, BELL) == ("exact", b"one\r\n")
    assert is_absent(history, 1, BELL)


def test_a_replacement_is_known_as_text_and_exact_in_a_file_that_is(tmp_path: Path) -> None:
    chat = Chat()
    first = chat.change("replace", BELL, "one\n", "two\n")
    chat.change("write_file", HORN, "", "a\r\nb\r\n", is_new=True)
    second = chat.change("replace", HORN, "a\nb\n", "a\nB\n")
    history = chat.write(tmp_path)
    assert known(history, first, BELL) == ("text", b"two\n")
    assert known(history, second, HORN) == ("exact", b"a\r\nB\r\n")


def test_what_write_file_found_is_exact_and_what_it_left_too_where_no_line_can_end_otherwise(tmp_path: Path) -> None:
    chat = Chat()
    plain = chat.change("write_file", BELL, "one\n", "two\n")
    other = chat.change("write_file", HORN, "one\r\n", "two\n")
    history = chat.write(tmp_path)
    assert known(history, 1, BELL) == ("exact", b"one\n")
    assert known(history, plain, BELL) == ("exact", b"two\n")
    assert known(history, 1, HORN) == ("exact", b"one\r\n")
    assert known(history, other, HORN) == ("text", b"two\n")


def test_what_was_read_is_known_as_text_if_it_is_all(tmp_path: Path) -> None:
    chat = Chat()
    whole = chat.tool("read_file", {"file_path": BELL}, output="one\n")
    chat.tool("read_file", {"file_path": HORN, "offset": 5}, output="five\n")
    cut = "\nIMPORTANT: The file content has been truncated.\nStatus: ..."
    part = chat.tool("read_file", {"file_path": HORN}, output=cut)
    history = chat.write(tmp_path)
    assert known(history, whole, BELL) == ("text", b"one\n")
    assert known(history, part, HORN) == ("unknown", None)


def test_a_tool_that_failed_changed_nothing(tmp_path: Path) -> None:
    chat = Chat()
    chat.change("write_file", BELL, "", "one\n", is_new=True)
    done = chat.tool("replace", {"file_path": BELL}, "Error", "no match", status="error")
    assert known(chat.write(tmp_path), done, BELL) == ("exact", b"one\n")


def test_commands_and_agents_disturb_but_not_those_that_read(tmp_path: Path) -> None:
    chat = Chat()
    chat.change("write_file", BELL, "", "one\n", is_new=True)
    looked = chat.tool("run_shell_command", {"command": "git log"})
    ran = chat.tool("run_shell_command", {"command": "make"})
    history = chat.write(tmp_path)
    assert known(history, looked, BELL)[0] == "exact"
    assert known(history, ran, BELL)[0] == "unproved"


def test_a_message_written_anew_keeps_what_was_displayed(tmp_path: Path) -> None:
    chat = Chat()
    done = chat.change("write_file", BELL, "", "one\n", is_new=True)
    call = chat.records[-1]["toolCalls"][0]
    parts = [{"functionCall": {"id": call["id"], "name": call["name"], "args": call["args"]}}]
    response = [{"functionResponse": {"id": call["id"], "name": call["name"], "response": {"output": "ok"}}}]
    time = "2026-10-20T09:16:00.000Z"
    anew = [
        chat.records[1],
        {"id": chat.records[-1]["id"], "timestamp": time, "type": "gemini", "content": parts},
        {"id": "m-r", "timestamp": time, "type": "user", "content": response},
    ]
    chat.records.append({"$set": {"messages": anew}})
    history = chat.write(tmp_path)
    assert known(history, done, BELL) == ("exact", b"one\n")


@pytest.fixture
def git() -> str:
    found = shutil.which("git")
    if found is None:
        pytest.skip("git is not installed")
    return found


def checkpoint(home: Path, git: str, files: dict[str, bytes], call: dict[str, Any]) -> Path:
    """A checkpoint as the client makes it; returns the repository."""
    history, work = home / ".gemini/history/bell", home / "work"
    history.mkdir(parents=True, exist_ok=True)
    work.mkdir(exist_ok=True)
    (history / ".project_root").write_text(FOLDER)
    for name, body in files.items():
        (work / name).write_bytes(body)
    environment = {**os.environ, "GIT_DIR": str(history / ".git"), "GIT_WORK_TREE": str(work), "HOME": str(home)}
    who = ["-c", "user.name=Gemini CLI", "-c", "user.email=gemini@example.org"]
    for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-q", "--allow-empty", "-m", "Snapshot for replace"]):
        subprocess.run([git, *words], check=True, env=environment, cwd=work)
    done = subprocess.run([git, "rev-parse", "HEAD"], check=True, env=environment, cwd=work, capture_output=True)
    folder = home / ".gemini/tmp/bell/checkpoints"
    folder.mkdir(parents=True, exist_ok=True)
    content = {"toolCall": call, "commitHash": done.stdout.decode().strip()}
    (folder / f"2026-10-20T09-15-0{len(list(folder.iterdir()))}_000Z-bell.py-replace.json").write_text(
        json.dumps(content)
    )
    return history


def test_a_checkpoint_makes_the_change_behind_it_exact(tmp_path: Path, git: str) -> None:
    chat = Chat()
    done = chat.change("replace", BELL, "one\ntwo\n", "one\n2\n")
    args = chat.records[-1]["toolCalls"][0]["args"]
    checkpoint(tmp_path, git, {"bell.py": b"one\r\ntwo\r\n"}, {"name": "replace", "args": args})
    history = chat.write(tmp_path)
    assert known(history, 1, BELL) == ("exact", b"one\r\ntwo\r\n")
    assert known(history, done, BELL) == ("exact", b"one\r\n2\r\n")


@pytest.mark.skipif(sys.platform == "win32", reason="no folder has such a name")
def test_a_checkpoint_in_a_folder_with_an_odd_name(tmp_path: Path, git: str) -> None:
    chat = Chat()
    chat.change("replace", BELL, "one\n", "two\n")
    args = chat.records[-1]["toolCalls"][0]["args"]
    home = tmp_path / '#two "lines" with\n\\n'
    home.mkdir()
    checkpoint(home, git, {"bell.py": b"one\r\n"}, {"name": "replace", "args": args})
    assert known(chat.write(home), 1, BELL) == ("exact", b"one\r\n")


@pytest.mark.parametrize("path", [BELL, f"{FOLDER}/bell blob"])
def test_a_file_that_a_checkpoint_lacks_is_not_said_to_be_absent(tmp_path: Path, git: str, path: str) -> None:
    chat = Chat()
    chat.change("replace", path, "one\n", "two\n")
    args = chat.records[-1]["toolCalls"][0]["args"]
    checkpoint(tmp_path, git, {"other": b"x"}, {"name": "replace", "args": args})
    assert known(chat.write(tmp_path), 1, path) == ("text", b"one\n")


def test_the_same_call_twice_has_no_checkpoint_of_its_own(tmp_path: Path, git: str) -> None:
    chat = Chat()
    chat.change("replace", BELL, "one\n", "two\n")
    args = chat.records[-1]["toolCalls"][0]["args"]
    checkpoint(tmp_path, git, {"bell.py": b"one\n"}, {"name": "replace", "args": args})
    checkpoint(tmp_path, git, {"bell.py": b"other\n"}, {"name": "replace", "args": args})
    assert known(chat.write(tmp_path), 1, BELL) == ("text", b"one\n")


def test_a_hostile_repository_runs_nothing(tmp_path: Path, git: str) -> None:
    chat = Chat()
    done = chat.change("replace", BELL, "one\n", "two\n")
    args = chat.records[-1]["toolCalls"][0]["args"]
    repository = checkpoint(tmp_path, git, {"bell.py": b"one\n"}, {"name": "replace", "args": args}) / ".git"
    trap = f"touch {tmp_path / 'sprung'}"
    settings = f"""
[core]
    fsmonitor = "{trap}"
    hooksPath = {tmp_path / "hooks"}
    pager = "{trap}"
    sshCommand = "{trap}"
[alias]
    cat-file = "!{trap}"
[extensions]
    partialClone = origin
[remote "origin"]
    url = "ext::sh -c '{trap}'"
    promisor = true
[protocol "ext"]
    allow = always
[include]
    path = /dev/zero
"""
    with (repository / "config").open("a") as handle:
        handle.write(settings)
    (tmp_path / "hooks").mkdir()
    for name in ("post-checkout", "reference-transaction", "fsmonitor-watchman"):
        hook = tmp_path / "hooks" / name
        hook.write_text(f"#!/bin/sh\n{trap}\n")
        hook.chmod(0o755)
    history = chat.write(tmp_path)
    assert known(history, done, BELL) == ("exact", b"two\n")
    # A commit that is missing must not be fetched either.
    for path in (tmp_path / ".gemini/tmp/bell/checkpoints").iterdir():
        path.write_text(json.dumps({"toolCall": {"name": "replace", "args": args}, "commitHash": "0" * 40}))
    assert known(chat.write(tmp_path), done, BELL) == ("text", b"two\n")
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("how", ["alternates", "objects", ".git", "history"])
def test_a_checkpoint_gives_nothing_of_another_repository(how: str, tmp_path: Path, git: str) -> None:
    """The objects are those of the checkpoints: neither a list of other stores nor a link leads to others."""
    chat = Chat()
    args = {"file_path": BELL, "old_string": "one", "new_string": "two"}
    chat.tool("replace", args, {"fileDiff": ""})
    private = checkpoint(tmp_path / "home", git, {"bell.py": b"private\n"}, {"name": "replace", "args": args})
    repo, history = tmp_path / "repo", tmp_path / "repo/.gemini/history/bell"
    shutil.copytree(tmp_path / "home/.gemini/tmp", repo / ".gemini/tmp")
    if how == "history":
        (repo / ".gemini/history").symlink_to(private.parent)
    elif how == ".git":
        history.mkdir(parents=True)
        (history / ".git").symlink_to(private / ".git")
    elif how == "objects":
        (history / ".git").mkdir(parents=True)
        (history / ".git/objects").symlink_to(private / ".git/objects")
    else:
        (history / ".git/objects/info").mkdir(parents=True)
        (history / ".git/objects/info/alternates").write_text(f"{private / '.git/objects'}\n")
    assert known(chat.write(repo), 1, BELL)[1] != b"private\n"


def test_a_checkpoint_that_would_fill_the_memory_is_not_read(
    tmp_path: Path, git: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = Chat()
    args = {"file_path": BELL, "old_string": "one", "new_string": "two"}
    chat.tool("replace", args, {"fileDiff": ""})
    checkpoint(tmp_path, git, {"bell.py": b"one\n" * 5000}, {"name": "replace", "args": args})
    monkeypatch.setattr("clew.agents.gemini.checkpoints._MAX_BYTES", 10_000)
    assert known(chat.write(tmp_path), 1, BELL) == ("unknown", None)


@pytest.mark.parametrize("session_id", ["/../../x", "../../..", "..", "a\x00b", "\n"])
def test_rescue_copies_stay_in_their_folder_whatever_id_a_session_claims(tmp_path: Path, session_id: str) -> None:
    chat = Chat()
    chat.records[0]["sessionId"] = session_id
    done = chat.change("write_file", BELL, "", "one\n", is_new=True)
    path = chat.write(tmp_path / "home").source.path
    work = tmp_path / "work"
    work.mkdir()
    (work / "bell.py").write_text("mine, the only copy\n")
    assert clew("restore", f"{path}#{done}", "--into", work, "--from", FOLDER, "--write", "--force").code == 0
    copies = [copy for copy in data_dir().rglob("bell.py") if copy.is_file()]
    assert [copy.relative_to(data_dir() / "rescue").parts[1:] for copy in copies] == [("bell.py",)]
    assert copies[0].read_text() == "mine, the only copy\n"
