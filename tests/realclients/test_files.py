"""The time machine on sessions that the real clients wrote, against copies of the project made while they ran.

Each time a client asks its model, the project is copied. Every answer that claims to be exact must equal the copy of
that moment byte for byte, at every message; the share of exact answers is printed.

Started as `python -m tests.realclients.test_files JOB OUTCOME` it is the part of a run inside the network namespace.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import msgspec
import pytest

from clew.agents.file_evidence import FileContent
from clew.file_history.history import FileHistory
from clew.library import Library, StoredSession
from clew.sources.wsl import host_at
from tests.realclients import inside
from tests.realclients.clients import CLAUDE, CODEX, GEMINI, Client
from tests.realclients.history import JSON
from tests.realclients.inside import Job, Outcome
from tests.realclients.lab import LAB, ROOT, SECONDS, Run, _path, alone
from tests.realclients.model import Model
from tests.realclients.script import Call, Say, Script, Turn, turn
from tests.realclients.wire import Answer

FILES = {
    "bell.py": b"def ring():\n    return 'dong'\n\n\nprint(ring())\n",
    "crlf.txt": b"one\r\ntwo\r\nthree\r\n",
    "mark.txt": b"\xef\xbb\xbfone\ntwo\n",
    "open.txt": b"one\ntwo",
    "mixed.txt": b"one\r\ntwo\nthree\r\n",
}
CHECKPOINTS = {"CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING": "1"}


class Watching(Model):
    """A model that has the project copied before each answer of the main conversation."""

    project: Path
    asked = 0

    def _converse(self, path: str, body: JSON) -> Answer:
        left = len(self._lanes[""])
        answer = super()._converse(path, body)
        if len(self._lanes[""]) < left:
            target = self.project.with_name("moments") / str(Watching.asked)
            shutil.copytree(self.project, target, ignore=shutil.ignore_patterns(".git"))
            Watching.asked += 1
        return answer


def main(job_path: Path, outcome_path: Path) -> None:
    """Do a job as `tests.realclients.inside` does, while watching."""
    Watching.project = Path(msgspec.json.decode(job_path.read_bytes(), type=Job).folder)
    Watching.asked = len(list(Watching.project.with_name("moments").glob("*")))
    with mock.patch.object(inside, "Model", Watching):
        inside.main(job_path, outcome_path)


class Told(NamedTuple):
    """A session to record: for each run the prompt and the calls, one in each turn."""

    name: str
    client: Client
    runs: Callable[[Path], tuple[tuple[Call, ...], ...]]
    environment: dict[str, str] = {}
    least: float = 0.0
    """The share of answers that must be exact."""


def play(told: Told, folder: Path) -> Path:
    """Let the client do it all; returns the project."""
    project, home = folder / "harbour", folder / "home"
    project.mkdir(parents=True)
    for name, body in FILES.items():
        (project / name).write_bytes(body)
    session: str | None = None
    step = 0
    for number, calls in enumerate(told.runs(project)):
        turns: list[Turn] = []
        for call in calls:
            turns.append(turn(Say(f"Step {step}."), call))
            step += 1
        turns.append(turn(Say(f"Step {step}.")))
        step += 1
        run(told, home, project, f"Part {number}, please.", Script(tuple(turns)), session).check()
        (session,) = told.client.session_ids(home)
    shutil.copytree(project, folder / "moments" / str(step))
    return project


def run(told: Told, home: Path, project: Path, prompt: str, script: Script, session: str | None) -> Run:
    client = told.client
    home.mkdir(parents=True, exist_ok=True)
    client.prepare(home)
    environment = {"PATH": _path(), "HOME": str(home), **client.environment, **told.environment}
    argv = [str(next(LAB.glob(client.binary))), *client.words(prompt, session)]
    job = Job(client.name, argv, environment, str(project), script, SECONDS)
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder, "job.json"), Path(folder, "outcome.json")
        asked.write_bytes(msgspec.json.encode(job))
        command = [*alone(), sys.executable, "-m", "tests.realclients.test_files", str(asked), str(answered)]
        subprocess.run(command, cwd=ROOT, check=True)
        return Run(client, msgspec.json.decode(answered.read_bytes(), type=Outcome))


def _claude(project: Path) -> tuple[tuple[Call, ...], ...]:
    def path(name: str) -> dict[str, str]:
        return {"file_path": str(project / name)}

    def edit(name: str, old: str, new: str) -> Call:
        return Call("Edit", {**path(name), "old_string": old, "new_string": new})

    def bash(command: str) -> Call:
        return Call("Bash", {"command": command, "description": "A command"})

    first = (
        *(Call("Read", path(name)) for name in FILES),
        edit("bell.py", "'dong'", "'dong dong'"),
        Call("Write", {**path("horn.py"), "content": "def blow():\n    return 'toot'\n"}),
        bash("cat horn.py | head -3"),
        edit("horn.py", "'toot'", "'TOOT'"),
        edit("crlf.txt", "two", "TWO"),
        edit("mark.txt", "two\n", "TWO\nTHREE\n"),
        edit("open.txt", "two", "2"),
        edit("mixed.txt", "two", "TWO"),
        bash("python3 bell.py > sound.txt"),
        edit("bell.py", "'dong dong'", "'DONG'"),
        Call("Read", path("sound.txt")),
    )
    second = (
        Call("Write", {**path("crlf.txt"), "content": "new\nlines\n"}),
        bash("rm horn.py && printf 'x' > new.txt"),
        Call("Read", path("new.txt")),
        edit("bell.py", "'not there'", "'x'"),
        edit("bell.py", "DONG", "ding"),
    )
    return first, second


def _patch(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def _codex(project: Path) -> tuple[tuple[Call, ...], ...]:
    def shell(command: str) -> Call:
        return Call("exec_command", {"cmd": command})

    def change(name: str, old: str, *new: str) -> Call:
        lines = (f"*** Update File: {name}", "@@", f"-{old}", *(f"+{line}" for line in new))
        return Call("apply_patch", _patch(*lines))

    first = (
        *(shell(f"cat {name}") for name in FILES),
        change("bell.py", "    return 'dong'", "    return 'dong dong'"),
        Call("apply_patch", _patch("*** Add File: sub/horn.py", "+def blow():", "+    return 'toot'")),
        shell("cat sub/horn.py | head -3"),
        change("sub/horn.py", "    return 'toot'", "    return 'TOOT'"),
        change("crlf.txt", "two", "TWO"),
        change("mark.txt", "two", "TWO", "THREE"),
        change("open.txt", "two", "2"),
        change("mixed.txt", "two", "TWO"),
        Call(
            "apply_patch",
            _patch("*** Update File: sub/horn.py", "*** Move to: horn.py", "@@", "-def blow():", "+def honk():"),
        ),
        shell("python3 bell.py > sound.txt"),
        change("bell.py", "    return 'dong dong'", "    return 'DONG'"),
        shell("cat bell.py"),
        shell("cat sound.txt"),
    )
    second = (
        Call("apply_patch", _patch("*** Delete File: horn.py")),
        change("bell.py", "    return 'not there'", "    x"),
        shell("apply_patch <<'EOF'\n" + _patch("*** Add File: heredoc.txt", "+here") + "\nEOF"),
        change("bell.py", "    return 'DONG'", "    return 'ding'"),
    )
    return first, second


def _gemini(project: Path) -> tuple[tuple[Call, ...], ...]:
    def path(name: str) -> dict[str, str]:
        return {"file_path": str(project / name)}

    def replace(name: str, old: str, new: str) -> Call:
        return Call("replace", {**path(name), "instruction": "Change it", "old_string": old, "new_string": new})

    def shell(command: str) -> Call:
        return Call("run_shell_command", {"command": command})

    first = (
        *(Call("read_file", path(name)) for name in FILES),
        replace("bell.py", "'dong'", "'dong dong'"),
        Call("write_file", {**path("horn.py"), "content": "def blow():\n    return 'toot'\n"}),
        shell("cat horn.py | head -3"),
        replace("horn.py", "'toot'", "'TOOT'"),
        replace("crlf.txt", "two", "TWO"),
        replace("mark.txt", "two\n", "TWO\nTHREE\n"),
        replace("open.txt", "two", "2"),
        replace("mixed.txt", "two", "TWO"),
        shell("python3 bell.py > sound.txt"),
        replace("bell.py", "'dong dong'", "'DONG'"),
        Call("read_file", path("sound.txt")),
    )
    second = (
        Call("write_file", {**path("open.txt"), "content": "new\nlines\n"}),
        Call("write_file", {**path("crlf.txt"), "content": "new\nlines\n"}),
        shell("rm horn.py && printf 'x' > new.txt"),
        Call("read_file", path("new.txt")),
        replace("bell.py", "DONG", "ding"),
    )
    return first, second


TOLD = (
    Told("claude", CLAUDE, _claude, least=0.05),
    Told("claude-checkpoints", CLAUDE, _claude, CHECKPOINTS, least=0.5),
    Told("codex", CODEX, _codex, least=0.5),
    Told("gemini", GEMINI, _gemini, least=0.1),
)


class Share(NamedTuple):
    """How many answers there were of each certainty, at every message and file."""

    counts: Counter[str]

    @property
    def exact(self) -> float:
        return self.counts["exact"] / sum(self.counts.values())

    def __str__(self) -> str:
        return ", ".join(f"{name} {count}" for name, count in sorted(self.counts.items()))


def moments(session: StoredSession) -> Iterator[tuple[int, int]]:
    """For each message the copy of the project that shows the files as they were then.

    A call has done nothing yet when it is recorded, and all of it when its result is.
    """
    step, done = 0, 0
    for message in session.messages:
        for block in message.content:
            text = getattr(block, "text", "")
            if message.role == "assistant" and text.startswith("Step "):
                step, done = int(text[5:-1]), 0
            if type(block).__name__ == "ToolResult":
                done = 1
        yield message.index, step + done


def check(session: StoredSession, project: Path) -> Share:
    """Compare every answer about a file of the project with the truth."""
    history = FileHistory(session.agent, session.source)
    asked = []
    for index, moment in moments(session):
        for path, timeline in history.timelines.items():
            if path.startswith(f"{project}/"):
                truth = project.with_name("moments") / str(moment) / path[len(str(project)) + 1 :]
                asked.append((index, timeline.at(index), truth))
    contents = history.contents([answer for _, answer, _ in asked])
    for (index, answer, truth), state in zip(asked, contents, strict=True):
        if answer.certainty in ("exact", "text"):
            found = truth.read_bytes() if truth.exists() else None
            told = state.body if isinstance(state, FileContent) else None
            if answer.certainty == "text" and found is not None and told is not None:
                found, told = _characters(found), _characters(told)
            assert told == found, f"message {index}, {truth}: {answer}"
    return Share(Counter(answer.certainty for _, answer, _ in asked))


def _characters(body: bytes) -> bytes:
    return body.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")


@pytest.mark.parametrize("told", TOLD, ids=lambda told: told.name)
def test_what_is_called_exact_is_what_was_there(
    told: Told, lab: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = play(told, tmp_path)
    sessions = list(Library(host_at(tmp_path / "home")).sources())
    (session,) = [one for one in sessions if one.agent.id == told.client.agent]
    share = check(session, project)
    with capsys.disabled():
        print(f"\n{told.name}: {share.exact:.0%} exact of {sum(share.counts.values())} answers ({share})")
    assert share.exact >= told.least


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
