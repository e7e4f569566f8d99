"""What rollouts of Codex prove about files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clew.agents import registry
from clew.agents.patches import in_command, parse, updated
from clew.file_history.history import FileHistory
from tests.files.asking import is_absent, known

THREAD = "019f0000-0000-7000-8000-00000000000a"
FOLDER = "/home/ada/tide"
BELL, HORN = f"{FOLDER}/bell.py", f"{FOLDER}/horn.py"


class Rollout:
    """A rollout that grows; messages are counted as clew does."""

    def __init__(self, mode: str = "legacy") -> None:
        meta = {"id": THREAD, "timestamp": "2026-03-02T10:00:00.000Z", "cwd": FOLDER, "history_mode": mode}
        self.lines: list[dict[str, Any]] = []
        self.index = 0
        self._calls = 0
        self._line("session_meta", {**meta, "originator": "codex_exec", "cli_version": "0.166.0", "source": "exec"})
        self.said("Go.")

    def _line(self, kind: str, payload: dict[str, Any]) -> None:
        time = f"2026-03-02T10:00:{len(self.lines) % 60:02}.000Z"
        self.lines.append({"timestamp": time, "type": kind, "payload": payload})

    def said(self, text: str) -> int:
        self.index += 1
        self._line(
            "response_item", {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        )
        return self.index

    def call(self, name: str, given: dict[str, Any] | str) -> str:
        self._calls += 1
        self.index += 1
        key = f"call_{self._calls}"
        if isinstance(given, str):
            self._line("response_item", {"type": "custom_tool_call", "name": name, "input": given, "call_id": key})
        else:
            arguments = json.dumps(given)
            self._line("response_item", {"type": "function_call", "name": name, "arguments": arguments, "call_id": key})
        return key

    def output(self, key: str, text: str, custom: bool = False) -> int:
        self.index += 1
        kind = "custom_tool_call_output" if custom else "function_call_output"
        self._line("response_item", {"type": kind, "call_id": key, "output": text})
        return self.index

    def item(self, kind: str, key: str, **more: Any) -> None:
        item = {"type": kind, "id": key, **more}
        self._line("event_msg", {"type": "item_completed", "thread_id": THREAD, "turn_id": "t", "item": item})

    def shell(self, command: str, printed: str = "", code: int = 0, **more: Any) -> int:
        key = self.call("exec_command", {"cmd": command, **more})
        head = f"Chunk ID: a1\nWall time: 0.1 seconds\nProcess exited with code {code}\nOriginal token count: 1\n"
        return self.output(key, f"{head}Output:\n{printed}")

    def patch(self, *lines: str, changes: dict[str, Any] | None = None, text: str = "Success.") -> int:
        key = self.call("apply_patch", "\n".join(["*** Begin Patch", *lines, "*** End Patch"]))
        if changes is not None:
            self._line("event_msg", {"type": "patch_apply_end", "call_id": key, "success": True, "changes": changes})
        return self.output(key, f"Exit code: 0\nWall time: 0 seconds\nOutput:\n{text}", custom=True)

    def write(self, home: Path) -> FileHistory:
        path = home / ".codex/sessions/2026/03/02" / f"rollout-2026-03-02T10-00-00-{THREAD}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(line) + "\n" for line in self.lines), encoding="utf-8")
        agent = registry.get("codex")
        return FileHistory(agent, agent.locate(path))


def test_a_file_that_was_printed_whole_is_exact(tmp_path: Path) -> None:
    told = Rollout()
    done = told.shell("cat bell.py", "one\r\ntwo")
    assert known(told.write(tmp_path), done, BELL) == ("exact", b"one\r\ntwo")


@pytest.mark.parametrize("printed", ["caf\ufffd\n", "a\n…12 tokens truncated…\nb\n"])
def test_what_was_printed_with_gaps_proves_nothing(tmp_path: Path, printed: str) -> None:
    told = Rollout()
    done = told.shell("cat bell.py", printed)
    assert known(told.write(tmp_path), done, BELL) == ("unknown", None)


def test_a_terminal_ends_lines_in_its_own_way(tmp_path: Path) -> None:
    told = Rollout()
    done = told.shell("cat bell.py", "one\r\n", tty=True)
    assert known(told.write(tmp_path), done, BELL) == ("text", b"one\n")


def test_the_account_of_a_finished_patch(tmp_path: Path) -> None:
    told = Rollout()
    made = told.patch("*** Add File: bell.py", "+x", changes={BELL: {"type": "add", "content": "one\ntwo\n"}})
    diff = "@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    changed = told.patch("*** Update File: bell.py", changes={BELL: {"type": "update", "unified_diff": diff}})
    moved = told.patch(
        "*** Update File: bell.py",
        changes={BELL: {"type": "update", "unified_diff": "@@ -1 +1 @@\n-one\n+1\n", "move_path": HORN}},
    )
    gone = told.patch("*** Delete File: horn.py", changes={HORN: {"type": "delete", "content": "1\n2\n"}})
    history = told.write(tmp_path)
    assert known(history, made, BELL) == ("exact", b"one\ntwo\n")
    assert known(history, changed, BELL) == ("exact", b"one\n2\n")
    assert is_absent(history, moved, BELL)
    assert known(history, moved, HORN) == ("exact", b"1\n2\n")
    assert is_absent(history, gone, HORN)


def test_an_account_in_the_newest_form_is_the_same(tmp_path: Path) -> None:
    told = Rollout("paginated")
    key = told.call("apply_patch", "*** Begin Patch\n*** Add File: bell.py\n+x\n*** End Patch")
    told.item("FileChange", key, status="completed", changes={BELL: {"type": "add", "content": "one\n"}})
    done = told.output(key, "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess.", custom=True)
    assert known(told.write(tmp_path), done, BELL) == ("exact", b"one\n")


def test_the_words_of_a_patch_count_where_no_account_is_kept(tmp_path: Path) -> None:
    told = Rollout()
    told.patch("*** Add File: bell.py", "+one", "+two", "+three")
    changed = told.patch("*** Update File: bell.py", "@@ one", "-two", "+2", " three")
    moved = told.patch("*** Update File: bell.py", "*** Move to: horn.py", "@@", "-2", "+II")
    history = told.write(tmp_path)
    assert known(history, changed, BELL) == ("exact", b"one\n2\nthree\n")
    assert known(history, moved, HORN) == ("exact", b"one\nII\nthree\n")
    assert is_absent(history, moved, BELL)


def test_a_change_of_something_unknown_is_unknown(tmp_path: Path) -> None:
    told = Rollout()
    done = told.patch("*** Update File: bell.py", "@@", "-two", "+2")
    history = told.write(tmp_path)
    assert known(history, done, BELL) == ("unknown", None)
    assert history.at(done, BELL).reason == "the content before the change is not known"


def test_a_patch_that_failed_changed_nothing(tmp_path: Path) -> None:
    told = Rollout()
    told.patch("*** Add File: bell.py", "+one")
    key = told.call("apply_patch", "*** Begin Patch\n*** Delete File: bell.py\n*** End Patch")
    done = told.output(key, "apply_patch verification failed: no such lines", custom=True)
    assert known(told.write(tmp_path), done, BELL) == ("exact", b"one\n")


ADD = "*** Begin Patch\n*** Add File: bell.py\n+one\n*** End Patch"


@pytest.mark.parametrize(
    "given",
    [
        {"cmd": f"apply_patch <<'EOF'\n{ADD}\nEOF"},
        {"cmd": f"cd {FOLDER} && apply_patch <<EOF\n{ADD}\nEOF\n"},
        {"command": ["apply_patch", ADD]},
        {"command": ["bash", "-lc", f"apply_patch <<'E'\n{ADD}\nE"]},
        {"command": ["apply_patch", ADD.replace("bell", "../tide/bell")], "workdir": "."},
    ],
)
def test_a_patch_inside_a_command(tmp_path: Path, given: dict[str, Any]) -> None:
    told = Rollout()
    key = told.call("shell" if "command" in given else "exec_command", given)
    done = told.output(key, "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess.")
    assert known(told.write(tmp_path), done, BELL) == ("exact", b"one\n")


def test_commands_disturb_and_a_running_one_until_it_ends(tmp_path: Path) -> None:
    told = Rollout()
    made = told.patch("*** Add File: bell.py", "+one")
    key = told.call("exec_command", {"cmd": "make watch"})
    running = told.output(key, "Chunk ID: a\nWall time: 1.0 seconds\nProcess running with session ID 7\nOutput:\n")
    told.patch("*** Add File: horn.py", "+toot")
    meanwhile = told.index
    key = told.call("write_stdin", {"session_id": 7, "chars": ""})
    told.output(key, "Chunk ID: b\nWall time: 1.0 seconds\nProcess exited with code 0\nOutput:\n")
    after = told.patch("*** Add File: flag.txt", "+red")
    history = told.write(tmp_path)
    assert known(history, made, BELL)[0] == "exact"
    assert known(history, running, BELL)[0] == "unproved"
    assert known(history, meanwhile, HORN)[0] == "unproved"
    assert known(history, after, f"{FOLDER}/flag.txt") == ("exact", b"red\n")


def test_a_script_is_known_by_what_it_ran(tmp_path: Path) -> None:
    told = Rollout("paginated")
    key = told.call("exec", "await tools.apply_patch('...'); text(await tools.exec_command({cmd: 'ls'}))")
    told.item("FileChange", "exec-1", status="completed", changes={BELL: {"type": "add", "content": "one\n"}})
    told.item("CommandExecution", "exec-2", command=["bash", "-lc", "ls"], cwd=f"file://{FOLDER}", exit_code=0)
    done = told.output(key, "Script completed\nOutput:\n", custom=True)
    key = told.call("exec", "text(await tools.exec_command({cmd: 'make'}))")
    told.item("CommandExecution", "exec-3", command=["bash", "-lc", "make"], cwd=f"file://{FOLDER}", exit_code=0)
    ran = told.output(key, "Script completed\nOutput:\n", custom=True)
    history = told.write(tmp_path)
    assert known(history, done, BELL) == ("exact", b"one\n")
    assert known(history, ran, BELL)[0] == "unproved"


@pytest.mark.parametrize("code", ["tools['apply_patch'](x)", "const t = tools; t.exec_command(y)", "tools.mystery()"])
def test_a_script_that_may_do_anything_disturbs(tmp_path: Path, code: str) -> None:
    told = Rollout("paginated")
    key = told.call("apply_patch", "*** Begin Patch\n*** Add File: bell.py\n+one\n*** End Patch")
    told.item("FileChange", key, status="completed", changes={BELL: {"type": "add", "content": "one\n"}})
    told.output(key, "Success.", custom=True)
    key = told.call("exec", code)
    done = told.output(key, "Script completed\nOutput:\n", custom=True)
    assert known(told.write(tmp_path), done, BELL)[0] == "unproved"


def test_a_command_that_the_script_left_running_disturbs(tmp_path: Path) -> None:
    told = Rollout("paginated")
    key = told.call("exec", "await tools.exec_command({cmd: 'make watch'})")
    told.output(key, "Script completed\nOutput:\n", custom=True)
    key = told.call("apply_patch", "*** Begin Patch\n*** Add File: bell.py\n+one\n*** End Patch")
    told.item("FileChange", key, status="completed", changes={BELL: {"type": "add", "content": "one\n"}})
    done = told.output(key, "Success.", custom=True)
    assert known(told.write(tmp_path), done, BELL)[0] == "unproved"


@pytest.mark.parametrize(
    "text",
    ["", "no patch", "*** Begin Patch\n*** End Patch", "*** Begin Patch\n*** Add File: x\nno sign\n*** End Patch"],
)
def test_what_is_no_patch_is_none(text: str) -> None:
    assert parse(text) is None


def test_a_command_that_does_more_than_patch_is_none() -> None:
    patch = "*** Begin Patch\n*** Add File: x\n+y\n*** End Patch"
    assert in_command(f"apply_patch <<'E'\n{patch}\nE") == (patch, None)
    assert in_command(f"apply_patch <<'E'\n{patch}\nE\nrm x") is None
    assert in_command("rm x && apply_patch 'y'") is None


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("@@", "-b", "+B"), "a\nB\nc\nb\n"),
        (("@@ c", "-b", "+B"), "a\nb\nc\nB\n"),
        (("@@", "-b", "+B", "*** End of File"), "a\nb\nc\nB\n"),
        (("@@", "+d"), "a\nb\nc\nb\nd\n"),
        (("@@", "-x", "+y"), None),
        (("@@ nowhere", "-b", "+B"), None),
        ((" a", "-b", "@@", " c", "-b", "+z"), "a\nc\nz\n"),
    ],
)
def test_an_update_finds_its_lines(lines: tuple[str, ...], expected: str | None) -> None:
    sections = parse("\n".join(["*** Begin Patch", "*** Update File: x", *lines, "*** End Patch"]))
    assert sections is not None and sections[0].chunks is not None
    assert updated("a\nb\nc\nb\n", sections[0].chunks) == expected


def test_a_sub_agent_disturbs_until_it_is_seen_to_end(tmp_path: Path) -> None:
    told = Rollout()
    key = told.call("spawn_agent", {"message": "Help."})
    told.output(key, '{"agent_id": "a-1"}')
    meanwhile = told.patch("*** Add File: bell.py", "+one")
    key = told.call("wait", {"ids": ["a-1"]})
    told.output(key, '{"status": {"a-1": {"completed": "Done."}}, "timed_out": false}')
    after = told.patch("*** Add File: horn.py", "+toot")
    history = told.write(tmp_path)
    assert known(history, meanwhile, BELL)[0] == "unproved"
    assert known(history, after, HORN) == ("exact", b"toot\n")
